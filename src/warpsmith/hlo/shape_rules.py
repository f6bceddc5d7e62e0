"""Verifier rules of ops that move, select or combine elements: what the result's sizes must be.

In: an instruction.  Out: nothing, or InvalidHlo.  `SHAPE_RULES` is the table.
"""

from __future__ import annotations

from typing import cast

from warpsmith.hlo.attributes import PaddingConfig, SliceDim, Window
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.rules import (
    Rule,
    array_operand,
    array_result,
    check,
    check_dims,
    check_type,
    fail,
    is_static,
)
from warpsmith.hlo.shapes import UNBOUNDED, AnyShape, Shape, TupleShape, same_type

__all__ = ["SHAPE_RULES"]


def _dimensions(instruction: HloInstruction, rank: int, name: str = "dimensions") -> tuple[int, ...]:
    """The attribute `name`: distinct dimensions below `rank`."""
    dims = instruction.ints(name)
    for dim in dims:
        check(0 <= dim < rank, instruction, f"{name} names dimension {dim} of an array of rank {rank}")
    check(len(set(dims)) == len(dims), instruction, f"{name} names a dimension twice")
    return dims


def _broadcast(instruction: HloInstruction) -> None:
    operand, result = array_operand(instruction, 0), array_result(instruction)
    check_type(instruction, result, operand)
    dims = _dimensions(instruction, result.rank)
    check(
        len(dims) == operand.rank,
        instruction,
        f"dimensions names {len(dims)} dimensions, the operand has {operand.rank}",
        help="say for each operand dimension which result dimension it becomes",
    )
    for index, dim in enumerate(dims):
        check(
            operand.dims[index] == result.dims[dim] or not is_static(operand, result),
            instruction,
            f"operand dimension {index} has size {operand.dims[index]}, "
            f"result dimension {dim}, which it becomes, has {result.dims[dim]}",
        )


def _reshape(instruction: HloInstruction) -> None:
    operand, result = array_operand(instruction, 0), array_result(instruction)
    check_type(instruction, result, operand)
    if is_static(operand, result):
        check(
            operand.elements == result.elements,
            instruction,
            f"reshape makes {result.elements} elements of {operand.elements}",
        )


def _bitcast(instruction: HloInstruction) -> None:
    operand, result = instruction.operands[0].shape, instruction.shape
    if isinstance(operand, Shape) and isinstance(result, Shape) and is_static(operand, result):
        bits = operand.elements * operand.dtype.bits, result.elements * result.dtype.bits
        check(bits[0] == bits[1], instruction, f"bitcast makes {bits[1]} bits of {bits[0]}")


def _bitcast_convert(instruction: HloInstruction) -> None:
    operand, result = array_operand(instruction, 0), array_result(instruction)
    check(
        operand.dtype.is_complex == result.dtype.is_complex,
        instruction,
        f"bitcast-convert can't turn {operand.dtype} into {result.dtype}",
    )
    wide, narrow = operand.dtype.bits, result.dtype.bits
    if wide == narrow:
        check_dims(instruction, result, operand.dims)
    elif wide > narrow:
        check_dims(instruction, result, (*operand.dims, wide // narrow))
    else:
        ratio = narrow // wide
        check(
            operand.rank > 0 and operand.dims[-1] in (ratio, UNBOUNDED),
            instruction,
            f"bitcast-convert from {operand.dtype} to {result.dtype} needs a last dimension of {ratio}",
        )
        check_dims(instruction, result, operand.dims[:-1])


def _transpose(instruction: HloInstruction) -> None:
    operand, result = array_operand(instruction, 0), array_result(instruction)
    check_type(instruction, result, operand)
    dims = _dimensions(instruction, operand.rank)
    check(
        len(dims) == operand.rank,
        instruction,
        f"dimensions names {len(dims)} of {operand.rank} dimensions",
        help="transpose needs a permutation of all dimensions",
    )
    check_dims(instruction, result, tuple(operand.dims[dim] for dim in dims))


def _reverse(instruction: HloInstruction) -> None:
    operand, result = array_operand(instruction, 0), array_result(instruction)
    check_type(instruction, result, operand)
    _dimensions(instruction, operand.rank)
    check_dims(instruction, result, operand.dims)


def _slice(instruction: HloInstruction) -> None:
    operand, result = array_operand(instruction, 0), array_result(instruction)
    check_type(instruction, result, operand)
    ranges = cast("tuple[object, ...]", instruction.attr("slice", tuple))
    dims = [each for each in ranges if isinstance(each, SliceDim)]
    check(len(dims) == operand.rank, instruction, f"slice has {len(dims)} ranges for an array of rank {operand.rank}")
    for index, (each, size) in enumerate(zip(dims, operand.dims, strict=True)):
        check(
            each.stride >= 1, instruction, f"the stride of dimension {index} is {each.stride}", "strides are 1 or more"
        )
        check(
            0 <= each.start <= each.limit and (each.limit <= size or size == UNBOUNDED),
            instruction,
            f"slice [{each.start}:{each.limit}] doesn't lie in dimension {index} of size {size}",
        )
    check_dims(instruction, result, tuple(-(-(each.limit - each.start) // each.stride) for each in dims))


def _pad(instruction: HloInstruction) -> None:
    operand, value, result = array_operand(instruction, 0), array_operand(instruction, 1), array_result(instruction)
    check_type(instruction, result, operand)
    check(
        value.dims == () and value.dtype is operand.dtype,
        instruction,
        f"pad's value is {value.text(layout=False)}, not a scalar of {operand.dtype}",
    )
    dims = instruction.attr("padding", PaddingConfig).dims
    check(len(dims) == operand.rank, instruction, f"padding has {len(dims)} dimensions, the operand {operand.rank}")
    expected: list[int] = []
    for index, (each, size) in enumerate(zip(dims, operand.dims, strict=True)):
        check(each.interior >= 0, instruction, f"the interior padding of dimension {index} is negative")
        if size == UNBOUNDED:
            expected.append(size)
            continue
        padded = each.low + each.high + size + max(size - 1, 0) * each.interior
        check(padded >= 0, instruction, f"padding leaves dimension {index} with size {padded}")
        expected.append(padded)
    check_dims(instruction, result, tuple(expected))


def _concatenate(instruction: HloInstruction) -> None:
    result = array_result(instruction)
    dims = _dimensions(instruction, result.rank)
    check(len(dims) == 1, instruction, f"concatenate takes one dimension, not {len(dims)}")
    total = 0
    first = array_operand(instruction, 0)
    for index, operand in enumerate(instruction.operands):
        shape = array_operand(instruction, index)
        check_type(instruction, result, shape)
        check(
            shape.rank == first.rank
            and (
                not is_static(shape, first)
                or all(a == b for dim, (a, b) in enumerate(zip(shape.dims, first.dims, strict=True)) if dim != dims[0])
            ),
            instruction,
            f"operand '{operand.name}' of {shape.text(layout=False)} doesn't line up with {first.text(layout=False)}",
            help=f"all dimensions but {dims[0]} must agree",
        )
        total = UNBOUNDED if UNBOUNDED in (total, shape.dims[dims[0]]) else total + shape.dims[dims[0]]
    check_dims(instruction, result, (*first.dims[: dims[0]], total, *first.dims[dims[0] + 1 :]))


def _iota(instruction: HloInstruction) -> None:
    result = array_result(instruction)
    dim = instruction.attr("iota_dimension", int)
    check(0 <= dim < result.rank, instruction, f"iota_dimension is {dim}, the result has rank {result.rank}")
    check(
        result.dtype.is_integer or result.dtype.is_float or result.dtype.is_complex,
        instruction,
        f"iota can't make {result.dtype}",
    )


def _result_of(parts: list[Shape]) -> AnyShape:
    return parts[0] if len(parts) == 1 else TupleShape(tuple(parts))


def _check_result(instruction: HloInstruction, expected: AnyShape) -> None:
    check(
        same_type(instruction.shape, expected) or not is_static(instruction.shape, expected),
        instruction,
        f"{instruction.opcode} makes {expected} here, not {instruction.shape}",
    )


def _inputs_and_inits(instruction: HloInstruction) -> tuple[list[Shape], list[Shape]]:
    """The two halves of the operands: arrays of one size, scalars."""
    half = len(instruction.operands) // 2
    shapes = [array_operand(instruction, index) for index in range(2 * half)]
    inputs, inits = shapes[:half], shapes[half:]
    for operand, shape in zip(instruction.operands, inputs, strict=False):
        check(
            shape.dims == inputs[0].dims or not is_static(shape, inputs[0]),
            instruction,
            f"operand '{operand.name}' is {shape.text(layout=False)}, the first one {inputs[0].text(layout=False)}; "
            "they must have the same sizes",
        )
    for operand, shape in zip(instruction.operands[half:], inits, strict=True):
        check(
            shape.dims == (), instruction, f"initial value '{operand.name}' is {shape.text(layout=False)}, not a scalar"
        )
    return inputs, inits


def _check_combiner(instruction: HloInstruction, inits: list[Shape]) -> list[Shape]:
    """`to_apply` takes two scalars an input and returns one each; the element types that it returns."""
    called = instruction.called_computations[0]
    count = len(inits)
    check(
        len(called.parameters) == 2 * count,
        instruction,
        f"{instruction.opcode} of {count} inputs needs a function of {2 * count}, "
        f"'{called.name}' has {len(called.parameters)} parameters",
    )
    for parameter in called.parameters:
        check(
            isinstance(parameter.shape, Shape) and parameter.shape.dims == () and parameter.shape.is_array,
            instruction,
            f"parameter '{parameter.name}' of '{called.name}' is {parameter.shape}, not a scalar",
        )
    results = called.root.shape.leaves()
    check(
        len(results) == count and all(each.dims == () for each in results),
        instruction,
        f"'{called.name}' returns {called.root.shape}, {instruction.opcode} needs {count} scalar{'s' * (count > 1)}",
    )
    for index, (result, init) in enumerate(zip(results, inits, strict=True)):
        check(
            result.dtype is init.dtype,
            instruction,
            f"initial value {index} is {init.dtype}, '{called.name}' returns {result.dtype} for it",
        )
    return results


def _reduce(instruction: HloInstruction) -> None:
    inputs, inits = _inputs_and_inits(instruction)
    dims = set(_dimensions(instruction, inputs[0].rank))
    kept = tuple(size for dim, size in enumerate(inputs[0].dims) if dim not in dims)
    results = _check_combiner(instruction, inits)
    _check_result(instruction, _result_of([Shape(each.dtype, kept, None, _flags(kept)) for each in results]))


def _flags(dims: tuple[int, ...]) -> tuple[bool, ...]:
    return tuple(size == UNBOUNDED for size in dims)


def window_dims(instruction: HloInstruction, sizes: tuple[int, ...], window: Window) -> tuple[int, ...]:
    """How many places the window has in each dimension of an array of `sizes`."""
    check(
        len(window.dims) == len(sizes),
        instruction,
        f"the window has {len(window.dims)} dimensions, the operand {len(sizes)}",
    )
    places: list[int] = []
    for index, (each, size) in enumerate(zip(window.dims, sizes, strict=True)):
        check(
            each.size >= 1 and each.stride >= 1 and each.base_dilation >= 1 and each.window_dilation >= 1,
            instruction,
            f"dimension {index} of the window has a size, stride or dilation below 1",
        )
        if size == UNBOUNDED:
            places.append(size)
            continue
        base = max(0, (size - 1) * each.base_dilation + 1) if size else 0
        span = (each.size - 1) * each.window_dilation + 1
        padded = base + each.pad_low + each.pad_high
        places.append(0 if padded < span else (padded - span) // each.stride + 1)
    return tuple(places)


def _reduce_window(instruction: HloInstruction) -> None:
    inputs, inits = _inputs_and_inits(instruction)
    window = instruction.attr("window", Window) if "window" in instruction.attributes else Window(())
    places = window_dims(instruction, inputs[0].dims, window)
    results = _check_combiner(instruction, inits)
    _check_result(instruction, _result_of([Shape(each.dtype, places, None, _flags(places)) for each in results]))


def _check_indices(instruction: HloInstruction, first: int, rank: int) -> None:
    """Start indices from operand `first` on: one integer scalar a dimension, or one vector."""
    count = len(instruction.operands) - first
    shapes = [array_operand(instruction, index) for index in range(first, len(instruction.operands))]
    vector = count == 1 and shapes[0].rank == 1
    check(
        count == rank or vector,
        instruction,
        f"{instruction.opcode} of rank {rank} needs {rank} start indices, {count} are given",
    )
    for operand, shape in zip(instruction.operands[first:], shapes, strict=True):
        check(
            shape.dtype.is_integer and (vector or shape.dims == ()),
            instruction,
            f"start index '{operand.name}' is {shape.text(layout=False)}, not an integer scalar",
        )


def _dynamic_slice(instruction: HloInstruction) -> None:
    operand, result = array_operand(instruction, 0), array_result(instruction)
    check_type(instruction, result, operand)
    _check_indices(instruction, 1, operand.rank)
    sizes = instruction.ints("dynamic_slice_sizes")
    check(len(sizes) == operand.rank, instruction, f"{len(sizes)} slice sizes for an array of rank {operand.rank}")
    for dim, (size, whole) in enumerate(zip(sizes, operand.dims, strict=True)):
        check(
            size >= 0 and (size <= whole or whole == UNBOUNDED),
            instruction,
            f"slice size {size} doesn't fit in dimension {dim} of size {whole}",
        )
    check_dims(instruction, result, sizes)


def _dynamic_update_slice(instruction: HloInstruction) -> None:
    operand, update, result = array_operand(instruction, 0), array_operand(instruction, 1), array_result(instruction)
    check_type(instruction, result, operand)
    check_dims(instruction, result, operand.dims)
    _check_indices(instruction, 2, operand.rank)
    check(
        update.dtype is operand.dtype and update.rank == operand.rank,
        instruction,
        f"an update of {update.text(layout=False)} doesn't fit into {operand.text(layout=False)}",
    )
    for dim, (size, whole) in enumerate(zip(update.dims, operand.dims, strict=True)):
        check(
            size <= whole or UNBOUNDED in (size, whole),
            instruction,
            f"the update has size {size} in dimension {dim}, the array {whole}",
        )


def _dot(instruction: HloInstruction) -> None:
    lhs, rhs, result = array_operand(instruction, 0), array_operand(instruction, 1), array_result(instruction)
    if "sparsity" in instruction.attributes or len(instruction.operands) != 2:
        return
    batch = instruction.ints("lhs_batch_dims", ()), instruction.ints("rhs_batch_dims", ())
    contracted = instruction.ints("lhs_contracting_dims", ()), instruction.ints("rhs_contracting_dims", ())
    kept: list[int] = [lhs.dims[dim] for dim in batch[0] if 0 <= dim < lhs.rank]
    for side, shape in enumerate((lhs, rhs)):
        used = (*batch[side], *contracted[side])
        if any(not 0 <= dim < shape.rank for dim in used) or len(set(used)) != len(used):
            raise fail(instruction, f"the dimension numbers of dot don't fit operand {side} of rank {shape.rank}")
        kept += [size for dim, size in enumerate(shape.dims) if dim not in used]
    for name, (left, right) in (("batch", batch), ("contracting", contracted)):
        check(len(left) == len(right), instruction, f"dot has {len(left)} and {len(right)} {name} dimensions")
        for a, b in zip(left, right, strict=True):
            check(
                lhs.dims[a] == rhs.dims[b] or not is_static(lhs, rhs),
                instruction,
                f"{name} dimensions {a} and {b} of dot have sizes {lhs.dims[a]} and {rhs.dims[b]}",
            )
    check_dims(instruction, result, tuple(kept))


SHAPE_RULES: dict[str, Rule] = {
    "broadcast": _broadcast,
    "reshape": _reshape,
    "bitcast": _bitcast,
    "bitcast-convert": _bitcast_convert,
    "transpose": _transpose,
    "reverse": _reverse,
    "slice": _slice,
    "pad": _pad,
    "concatenate": _concatenate,
    "iota": _iota,
    "reduce": _reduce,
    "reduce-window": _reduce_window,
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update_slice,
    "dot": _dot,
}
"""The rule of each op that this module knows."""
