"""Rules of ops that apply a function of scalars: map, reduce, windows, sort, and topk, which sorts by itself.

In: an instruction.  Out: the shape of its result.  `REDUCTIONS` is the table.  Functions take the arrays' own element
types, as XLA demands on CPU and GPU (on TPU it lets float precisions differ).
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.dtypes import BY_NAME, DType
from warpsmith.hlo.attributes import Window
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.shapes import UNBOUNDED, AnyShape, Shape, TupleShape
from warpsmith.hlo.verifier.common import (
    PRED_SCALAR,
    Rule,
    agree,
    array_operand,
    brief,
    check_rank,
    compatible,
    dimensions,
    fail,
    of_dims,
    one_or_tuple,
    scalar_operand,
)

__all__ = ["REDUCTIONS", "check_function", "combiner_types", "window_places"]


def check_function(instruction: HloInstruction, called: HloComputation, given: Sequence[DType], what: str) -> None:
    """`called` takes one scalar of each type in `given`."""
    if len(called.parameters) != len(given):
        raise fail(
            instruction,
            "function.parameters",
            f"{what} needs a function of {len(given)}, '{called.name}' has {len(called.parameters)} parameters",
        )
    for index, (parameter, dtype) in enumerate(zip(called.parameters, given, strict=True)):
        shape = parameter.shape
        if not isinstance(shape, Shape) or shape.dims:
            raise fail(
                instruction,
                "function.scalars",
                f"parameter '{parameter.name}' of '{called.name}' is {brief(shape)}, not a scalar",
            )
        if shape.dtype is not dtype:
            raise fail(
                instruction,
                "function.parameters",
                f"parameter {index} of '{called.name}' is {shape.dtype}, {what} gives it {dtype}",
            )


def combiner_types(instruction: HloInstruction, called: HloComputation, inits: Sequence[DType]) -> list[DType]:
    """What `called` returns: one scalar for each initial value, of its type."""
    results = called.root.shape.leaves()
    if len(results) != len(inits) or any(each.dims for each in results):
        raise fail(
            instruction,
            "function.result",
            f"'{called.name}' returns {brief(called.root.shape)}, {instruction.opcode} needs "
            f"{len(inits)} scalar{'s' * (len(inits) > 1)}",
        )
    for index, (result, init) in enumerate(zip(results, inits, strict=True)):
        if result.dtype is not init:
            raise fail(
                instruction,
                "function.result",
                f"initial value {index} is {init}, '{called.name}' returns {result.dtype} for it",
            )
    return [each.dtype for each in results]


def _one_function(instruction: HloInstruction, name: str = "to_apply") -> HloComputation:
    return instruction.attr(name, HloComputation)


def _same_sizes(instruction: HloInstruction, count: int) -> list[Shape]:
    """The shapes of the first `count` operands, arrays of one size."""
    shapes = [array_operand(instruction, index) for index in range(count)]
    for operand, shape in zip(instruction.operands, shapes, strict=False):
        if not agree(shape.dims, shapes[0].dims):
            raise fail(
                instruction,
                "operand.sizes",
                f"operand '{operand.name}' is {brief(shape)}, the first one {brief(shapes[0])}; "
                "they must have the same sizes",
            )
    return shapes


def _inputs_and_results(instruction: HloInstruction) -> tuple[Shape, list[DType]]:
    """The first input of a variadic reduction, and the element types of its results."""
    half = len(instruction.operands) // 2
    inputs = _same_sizes(instruction, half)
    inits = [scalar_operand(instruction, half + index).dtype for index in range(half)]
    called = _one_function(instruction)
    what = f"{instruction.opcode} of {half} input{'s' * (half > 1)}"
    check_function(instruction, called, [*inits, *(each.dtype for each in inputs)], what)
    return inputs[0], combiner_types(instruction, called, inits)


def _map(instruction: HloInstruction) -> AnyShape:
    shapes = _same_sizes(instruction, len(instruction.operands))
    first = shapes[0]
    if "dimensions" in instruction.attributes:
        dims = instruction.ints("dimensions")
        if dims not in ((), tuple(range(first.rank))):
            raise fail(
                instruction,
                "dimensions.count",
                f"map goes over dimensions {{{','.join(map(str, dims))}}} of an array of rank {first.rank}",
                help="map names all dimensions in order, or none",
            )
    called = _one_function(instruction)
    check_function(instruction, called, [each.dtype for each in shapes], "map")
    root = called.root.shape
    if not isinstance(root, Shape) or root.dims:
        raise fail(instruction, "function.result", f"'{called.name}' returns {brief(root)}, map needs a scalar")
    return first.with_dtype(root.dtype)


def _reduce(instruction: HloInstruction) -> AnyShape:
    first, types = _inputs_and_results(instruction)
    dims = set(dimensions(instruction, first.rank))
    kept = [size for dim, size in enumerate(first.dims) if dim not in dims]
    return one_or_tuple([of_dims(dtype, kept) for dtype in types])


def window_places(instruction: HloInstruction, sizes: Sequence[int], window: Window) -> list[int]:
    """How many places the window has in each dimension of an array of `sizes`."""
    if len(window.dims) != len(sizes):
        raise fail(
            instruction, "window.rank", f"the window has {len(window.dims)} dimensions, it slides over {len(sizes)}"
        )
    places: list[int] = []
    for index, (each, size) in enumerate(zip(window.dims, sizes, strict=True)):
        if min(each.size, each.stride, each.base_dilation, each.window_dilation) < 1:
            raise fail(
                instruction,
                "window.positive",
                f"dimension {index} of the window has a size, stride or dilation below 1",
            )
        if size == UNBOUNDED:
            places.append(size)
            continue
        base = (size - 1) * each.base_dilation + 1 if size else 0
        span = (each.size - 1) * each.window_dilation + 1
        padded = base + each.pad_low + each.pad_high
        places.append(0 if padded < span else (padded - span) // each.stride + 1)
    return places


def _window(instruction: HloInstruction) -> Window:
    return instruction.attr("window", Window) if "window" in instruction.attributes else Window(())


def _reduce_window(instruction: HloInstruction) -> AnyShape:
    first, types = _inputs_and_results(instruction)
    places = window_places(instruction, first.dims, _window(instruction))
    return one_or_tuple([of_dims(dtype, places) for dtype in types])


def _select_and_scatter(instruction: HloInstruction) -> AnyShape:
    operand, source, init = (array_operand(instruction, index) for index in range(3))
    scalar_operand(instruction, 2)
    for shape in (source, init):
        if shape.dtype is not operand.dtype:
            raise fail(
                instruction,
                "operand.same-type",
                f"select-and-scatter of {operand.dtype} takes a source and an initial value of that type, "
                f"not {shape.dtype}",
            )
    select, scatter = _one_function(instruction, "select"), _one_function(instruction, "scatter")
    check_function(instruction, select, [operand.dtype] * 2, "select-and-scatter's select")
    _check_predicate(instruction, select)
    check_function(instruction, scatter, [operand.dtype] * 2, "select-and-scatter's scatter")
    combiner_types(instruction, scatter, [init.dtype])
    places = window_places(instruction, operand.dims, _window(instruction))
    if not agree(places, source.dims):
        raise fail(
            instruction,
            "select-and-scatter.source",
            f"the window has places [{','.join(map(str, places))}], the source is {brief(source)}",
        )
    return operand


def _check_predicate(instruction: HloInstruction, called: HloComputation) -> None:
    if not compatible(called.root.shape, PRED_SCALAR):
        raise fail(instruction, "function.result", f"'{called.name}' returns {brief(called.root.shape)}, not pred[]")


def _sort(instruction: HloInstruction) -> AnyShape:
    shapes = _same_sizes(instruction, len(instruction.operands))
    dims = dimensions(instruction, shapes[0].rank)
    if len(dims) != 1:
        raise fail(instruction, "sort.dimension", f"sort takes one dimension, not {len(dims)}")
    called = _one_function(instruction)
    check_function(instruction, called, [each.dtype for each in shapes for _ in range(2)], "sort")
    _check_predicate(instruction, called)
    return one_or_tuple(shapes)


def _topk(instruction: HloInstruction) -> AnyShape:
    operand, k = check_rank(instruction, 0, 1), instruction.attr("k", int)
    if not 0 <= k <= operand.dims[-1] and operand.dims[-1] != UNBOUNDED:
        raise fail(instruction, "topk.k", f"k is {k}, the last dimension of {brief(operand)} has {operand.dims[-1]}")
    dims = (*operand.dims[:-1], k)
    return TupleShape((of_dims(operand.dtype, dims), of_dims(BY_NAME["s32"], dims)))


REDUCTIONS: dict[str, Rule] = {
    "map": _map,
    "reduce": _reduce,
    "reduce-window": _reduce_window,
    "select-and-scatter": _select_and_scatter,
    "sort": _sort,
    "topk": _topk,
}
"""The rule of each op that applies a function of scalars."""
