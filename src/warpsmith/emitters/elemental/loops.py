"""Ops that loop over elements for one result: reduce, reduce-window, dot, convolution; and map.

In: an instruction and indices.  Out: its scalars.  One add or multiply of floats narrower
than f32 is accumulated in f32 and rounded once (the numerics contract; XLA does so for bf16 dots alone).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warpsmith.dtypes import DType, Kind, by_name
from warpsmith.emitters.elemental.calls import combiner_opcode
from warpsmith.emitters.elemental.complexes import complex_product
from warpsmith.emitters.elemental.converts import convert
from warpsmith.emitters.elemental.emitter import ElementalEmitter, Emission, Indices, Values
from warpsmith.emitters.elemental.index_ops import check
from warpsmith.emitters.elemental.scalars import Scalars
from warpsmith.emitters.kernel.types import element_types
from warpsmith.errors import UnsupportedFusion
from warpsmith.fusion.operand_maps import index_dims
from warpsmith.hlo.indexing.maps import output_to_input_indexing
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.indexing import IndexingMap
from warpsmith.ir.dialects import scf

__all__ = ["call_map", "dot", "reduce"]

F16, F32, F64 = by_name("f16"), by_name("f32"), by_name("f64")
_IV_NAMES = "ijklmn"

Body = Callable[[Indices, Values], Emission]


def _nest(
    e: ElementalEmitter, map: IndexingMap, sizes: Sequence[int], indices: Indices, init: Values, body: Body
) -> Emission:
    """scf.for loops over the map's range variables that carry `init`; points outside the map's domain are skipped."""

    def level(depth: int, operands: Indices, carried: Values) -> Emission:
        if depth < len(map.range_vars):
            bounds = map.range_vars[depth].bounds
            loop = scf.for_(
                *(e.b, e.index(bounds.lower), e.index(bounds.upper + 1), e.index(1), carried),
                iv_name=_IV_NAMES[depth % len(_IV_NAMES)],
                iter_names=["acc"] * len(carried),
            )
            with e.inside(loop.body):
                iv, *accumulators = loop.body.args
                scf.yield_(e.b, (yield from level(depth + 1, (*operands, iv), tuple(accumulators))))
            return tuple(loop.results)
        condition = check(e, map, sizes, operands)
        if condition is None:
            return (yield from body(operands, carried))
        branch = e.if_(condition, [value.type for value in carried])
        with e.inside(branch.regions[0].blocks[0]):
            scf.yield_(e.b, (yield from body(operands, carried)))
        with e.inside(branch.regions[1].blocks[0]):
            scf.yield_(e.b, carried)
        return tuple(branch.results)

    if map.known_empty:
        return init
    return (yield from level(0, indices, init))


def _accumulator(opcode: str | None, dtype: DType) -> DType:
    """The type that partial results are kept in."""
    narrow = dtype.is_float and dtype.bits < 32
    return F32 if narrow and opcode in ("add", "multiply") else dtype


def reduce(e: ElementalEmitter, instruction: HloInstruction, indices: Indices) -> Emission:
    """reduce and reduce-window: the initial value once, then each element in order, the last dimension fastest."""
    count = len(instruction.operands) // 2
    sources = instruction.operands[:count]
    computation = instruction.attr("to_apply", HloComputation)
    map = output_to_input_indexing(instruction)[0][0]
    opcode = combiner_opcode(computation) if count == 1 else None
    dtypes = [leaf.dtype for leaf in instruction.shape.leaves()]
    kept = [_accumulator(opcode, dtype) for dtype in dtypes]
    scalars = Scalars(e, instruction, (), kept[0])
    caller = e.caller
    if caller is None:
        raise UnsupportedFusion(f"'{instruction.name}' calls a computation here", span=instruction.span)
    init: list[Values] = []
    for operand, dtype, wide in zip(instruction.operands[count:], dtypes, kept, strict=True):
        init.append(convert(scalars, (yield operand, ()), dtype, wide))

    def body(operands: Indices, carried: Values) -> Emission:
        at = e.apply(map, operands)
        values: list[Values] = []
        for source, dtype, wide in zip(sources, dtypes, kept, strict=True):
            values.append(convert(scalars, (yield source, at), dtype, wide))
        if kept[0] is not dtypes[0]:
            return (scalars.arith("addf" if opcode == "add" else "mulf", carried[0], values[0][0]),)
        return caller(e, computation, [*_split(carried, dtypes), *values])

    total = yield from _nest(e, map, index_dims(instruction), indices, tuple(p for each in init for p in each), body)
    if kept[0] is not dtypes[0]:
        return convert(scalars, total, kept[0], dtypes[0])
    return total


def _split(values: Values, dtypes: Sequence[DType]) -> list[Values]:
    """Flat parts as one tuple an element."""
    found: list[Values] = []
    first = 0
    for dtype in dtypes:
        last = first + len(element_types(dtype))
        found.append(values[first:last])
        first = last
    return found


def dot(e: ElementalEmitter, instruction: HloInstruction, indices: Indices) -> Emission:
    """dot and convolution: the sum of products over the contracted dimensions, kept in f32 or wider."""
    left, right = instruction.operands[:2]
    left_map, right_map = (maps[0] for maps in output_to_input_indexing(instruction)[:2])
    target = instruction.array_shape.dtype
    kept = _dot_accumulator(instruction, e.strict)
    scalars = Scalars(e, instruction, (), kept)
    zero = tuple(e.constant(0, type) for type in element_types(kept))

    def body(operands: Indices, carried: Values) -> Emission:
        x = yield left, e.apply(left_map, operands)
        y = yield right, e.apply(right_map, operands)
        x = convert(scalars, x, left.array_shape.dtype, kept)
        y = convert(scalars, y, right.array_shape.dtype, kept)
        if kept.is_complex:
            product = complex_product(scalars, (x[0], x[1]), (y[0], y[1]))
            return tuple(scalars.arith("addf", a, b) for a, b in zip(carried, product, strict=True))
        times, plus = _DOT_OPS[kept.kind]
        return (scalars.arith(plus, carried[0], scalars.arith(times, x[0], y[0])),)

    total = yield from _nest(e, left_map, index_dims(instruction), indices, zero, body)
    return convert(scalars, total, kept, target)


_DOT_OPS: dict[Kind, tuple[str, str]] = {
    Kind.FLOAT: ("mulf", "addf"),
    Kind.SINT: ("muli", "addi"),
    Kind.UINT: ("muli", "addi"),
    Kind.PRED: ("andi", "ori"),
}


def _dot_accumulator(instruction: HloInstruction, strict: bool) -> DType:
    """f32 or wider for floats; in xla numerics f16 for f16."""
    dtypes = [each.array_shape.dtype for each in (instruction, *instruction.operands[:2])]
    target = dtypes[0]
    if not target.is_float or (not strict and all(dtype is F16 for dtype in dtypes)):
        return target
    return F64 if F64 in dtypes else F32


def call_map(e: ElementalEmitter, instruction: HloInstruction, indices: Indices) -> Emission:
    """map: the mapped computation on the operands' elements."""
    args: tuple[Values, ...] = ()
    for operand in instruction.operands:
        args += ((yield operand, indices if len(index_dims(operand)) == len(indices) else ()),)
    if e.caller is None:
        raise UnsupportedFusion(f"'{instruction.name}' calls a computation here", span=instruction.span)
    return e.caller(e, instruction.attr("to_apply", HloComputation), args)
