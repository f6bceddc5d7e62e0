"""Ops that say where elements come from: index-only ops, constants, iota, concatenate, pad, slices, gather, tuples.

In: an instruction and indices.  Out: its scalars.  Unlike in XLA, gathers of any form are taken, and
bitcast-convert to another width.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpsmith.dtypes import DType, Kind, by_name
from warpsmith.emitters.elemental.bits import as_bits, bitcast_element, from_bits
from warpsmith.emitters.elemental.converts import convert
from warpsmith.emitters.elemental.emitter import ElementalEmitter, Emission, Indices, Values
from warpsmith.emitters.elemental.index_ops import check, clamp_start, to_integer
from warpsmith.emitters.elemental.scalars import Scalars
from warpsmith.emitters.kernel.types import element_types, leaf_types, scalar_type
from warpsmith.errors import UnsupportedFusion
from warpsmith.hlo.indexing.maps import output_to_input_indexing
from warpsmith.hlo.literals import Literal
from warpsmith.hlo.module import HloInstruction
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.core.types import tensor
from warpsmith.ir.dialects import arith, memory, scf

__all__ = [
    "bitcast",
    "bitcast_convert",
    "concatenate",
    "constant",
    "dynamic_slice",
    "dynamic_update_slice",
    "gather",
    "get_tuple_element",
    "iota",
    "literal_scalars",
    "pad",
    "through_map",
]


def through_map(e: ElementalEmitter, instruction: HloInstruction, indices: Indices) -> Emission:
    """broadcast, reshape, reverse, slice, transpose, copy: the operand at another index."""
    map = output_to_input_indexing(instruction)[0][0]
    return (yield instruction.operands[0], e.apply(map, indices))


def bitcast(e: ElementalEmitter, instruction: HloInstruction, indices: Indices) -> Emission:
    """The operand's element at the same place in memory, its bits as the result's type (of the same width)."""
    maps = output_to_input_indexing(instruction)[0]
    source, target = instruction.operands[0].array_shape.dtype, instruction.array_shape.dtype
    if not maps or source.bits != target.bits:
        raise UnsupportedFusion(
            f"bitcast '{instruction.name}' changes the width of its elements",
            span=instruction.span,
            help="use bitcast-convert, which says how elements are joined or split",
        )
    values = yield instruction.operands[0], e.apply(maps[0], indices)
    return bitcast_element(Scalars(e, instruction, (values,), source), values, target)


def bitcast_convert(e: ElementalEmitter, instruction: HloInstruction, indices: Indices) -> Emission:
    """The same bits; to a narrower type an element becomes a row of them, low bits first, and the other way round."""
    operand = instruction.operands[0]
    source, target = operand.array_shape.dtype, instruction.array_shape.dtype
    if source.bits == target.bits:
        values = yield operand, indices
        return bitcast_element(Scalars(e, instruction, (values,), source), values, target)
    wide_word = by_name(f"u{max(source.bits, target.bits)}") if max(source.bits, target.bits) <= 64 else None
    if wide_word is None or source.is_complex or target.is_complex:
        raise UnsupportedFusion(
            f"bitcast-convert of {source} to {target} ('{instruction.name}')",
            span=instruction.span,
            help="convert through real and imag, or through types of 64 bits and fewer",
        )
    s = Scalars(e, instruction, (), wide_word)
    if source.bits > target.bits:
        (value,) = yield operand, indices[:-1]
        place = to_integer(e, indices[-1], wide_word.bits)
        shift = arith.binary(e.b, "muli", place, e.constant(target.bits, place.type))
        part = arith.binary(e.b, "shrui", as_bits(s, value), shift)
        return (from_bits(s, s.resize_int(part, target.bits, signed=False), target),)
    word: Value | None = None
    for i in range(target.bits // source.bits):
        (value,) = yield operand, (*indices, e.index(i))
        part = s.resize_int(as_bits(s, value), target.bits, signed=False)
        if i:
            part = arith.binary(e.b, "shli", part, e.constant(i * source.bits, part.type))
        word = part if word is None else arith.binary(e.b, "ori", word, part)
    assert word is not None
    return (from_bits(s, word, target),)


def literal_scalars(e: ElementalEmitter, literal: Literal) -> Values:
    """The parts of a literal that holds one value."""
    dtype = literal.dtype
    value = literal.splat_value
    type = scalar_type(dtype)
    if dtype.is_complex:
        return (e.constant(value.real, type), e.constant(value.imag, type))
    return (e.constant(value if dtype.is_float else int(value), type),)


def constant(e: ElementalEmitter, instruction: HloInstruction, indices: Indices) -> Emission:
    """One value as a constant; many as a constant tensor that is read at the index."""
    yield from ()
    literal = instruction.literal
    if literal is None or literal.is_tuple:
        raise UnsupportedFusion(f"constant '{instruction.name}' is no array", span=instruction.span)
    if literal.is_splat:
        return literal_scalars(e, literal)
    dtype = literal.dtype
    dims, array = _dense_data(literal, dtype)
    type = tensor(dims, scalar_type(dtype))
    table = e.constant_attribute(at.dense(array, type), type)
    if dtype.is_complex:
        return tuple(memory.extract(e.b, table, (*indices, e.index(part))) for part in (0, 1))
    return (memory.extract(e.b, table, indices),)


def _dense_data(literal: Literal, dtype: DType) -> tuple[tuple[int, ...], np.ndarray]:
    """A literal's dims and values as signless data: pred as bytes, complex with a dimension of its parts."""
    array = literal.array
    if dtype.is_complex:
        parts = np.stack([np.real(array), np.imag(array)], axis=-1)
        return parts.shape, parts
    if dtype.kind is Kind.PRED:
        return array.shape, array.astype(np.int8)
    if dtype.kind is Kind.UINT and dtype.bits < 8:
        wide = array.astype(np.int8)
        return array.shape, np.where(wide >= 1 << (dtype.bits - 1), wide - (1 << dtype.bits), wide)
    if dtype.kind is Kind.UINT:
        return array.shape, np.ascontiguousarray(array).view(f"i{array.dtype.itemsize}")
    return array.shape, array


def iota(e: ElementalEmitter, instruction: HloInstruction, indices: Indices) -> Emission:
    """The index along one dimension, converted to the element type."""
    yield from ()
    shape = instruction.array_shape
    along = instruction.attr("iota_dimension", int)
    word = by_name("u64" if shape.dtype.bits == 64 and not shape.dtype.is_complex else "u32")
    value = to_integer(e, indices[along], word.bits)
    scalars = Scalars(e, instruction, (), word)
    return convert(scalars, (value,), word, shape.dtype)


def concatenate(e: ElementalEmitter, instruction: HloInstruction, indices: Indices) -> Emission:
    """A balanced tree of comparisons finds the operand; its index starts at 0."""
    along = instruction.ints("dimensions")[0]
    types = leaf_types(instruction.shape)
    operands = [each for each in instruction.operands if each.array_shape.dims[along]] or [instruction.operands[0]]
    offsets = [0]
    for operand in operands:
        offsets.append(offsets[-1] + operand.array_shape.dims[along])

    def between(first: int, last: int) -> Emission:
        if last - first == 1:
            at_operand = list(indices)
            if offsets[first]:
                at_operand[along] = arith.binary(e.b, "subi", indices[along], e.index(offsets[first]))
            return (yield operands[first], tuple(at_operand))
        middle = (first + last) // 2
        branch = e.if_(arith.cmpi(e.b, "ult", indices[along], e.index(offsets[middle])), types)
        for region, (low, high) in zip(branch.regions, ((first, middle), (middle, last)), strict=True):
            with e.inside(region.blocks[0]):
                scf.yield_(e.b, (yield from between(low, high)))
        return tuple(branch.results)

    return (yield from between(0, len(operands)))


def pad(e: ElementalEmitter, instruction: HloInstruction, indices: Indices) -> Emission:
    """The operand where the index falls on one of its elements, the padding value elsewhere."""
    source, padding = instruction.operands
    map = output_to_input_indexing(instruction)[0][0]
    if map.known_empty:
        return (yield padding, ())
    condition = check(e, map, instruction.array_shape.dims, indices)
    if condition is None:
        return (yield source, e.apply(map, indices))
    branch = e.if_(condition, leaf_types(instruction.shape))
    with e.inside(branch.regions[0].blocks[0]):
        scf.yield_(e.b, (yield source, e.apply(map, indices)))
    with e.inside(branch.regions[1].blocks[0]):
        scf.yield_(e.b, (yield padding, ()))
    return tuple(branch.results)


def _starts(e: ElementalEmitter, operands: Sequence[HloInstruction], limits: Sequence[int]) -> Emission:
    """Start indices clamped to [0, limit]; one whose limit is 0 is never read."""
    found: list[Value] = []
    for d, limit in enumerate(limits):
        if limit <= 0:
            found.append(e.index(0))
        elif len(operands) == 1 and operands[0].array_shape.rank == 1:  # one vector instead of scalars
            (value,) = yield operands[0], (e.index(d),)
            found.append(clamp_start(e, value, operands[0], limit))
        else:
            (value,) = yield operands[d], ()
            found.append(clamp_start(e, value, operands[d], limit))
    return tuple(found)


def dynamic_slice(e: ElementalEmitter, instruction: HloInstruction, indices: Indices) -> Emission:
    """An element of a dynamic slice: start indices are clamped so that the slice lies inside its operand."""
    source = instruction.operands[0]
    sizes = zip(source.array_shape.dims, instruction.array_shape.dims, strict=True)
    starts = yield from _starts(e, instruction.operands[1:], [whole - part for whole, part in sizes])
    return (yield source, tuple(_plus(e, index, start) for index, start in zip(indices, starts, strict=True)))


def _plus(e: ElementalEmitter, index: Value, start: Value) -> Value:
    return index if start is e.index(0) else arith.binary(e.b, "addi", index, start)


def dynamic_update_slice(e: ElementalEmitter, instruction: HloInstruction, indices: Indices) -> Emission:
    """The update where it covers the index, the operand elsewhere."""
    source, update = instruction.operands[:2]
    whole, part = source.array_shape.dims, update.array_shape.dims
    starts = yield from _starts(e, instruction.operands[2:], [a - b for a, b in zip(whole, part, strict=True)])
    condition: Value | None = None
    at_update = list(indices)
    for d, (start, size) in enumerate(zip(starts, part, strict=True)):
        if size == whole[d]:
            continue
        end = arith.binary(e.b, "addi", start, e.index(size))
        inside = arith.binary(
            *(e.b, "andi", arith.cmpi(e.b, "sge", indices[d], start), arith.cmpi(e.b, "slt", indices[d], end))
        )
        condition = inside if condition is None else arith.binary(e.b, "andi", condition, inside)
        at_update[d] = arith.binary(e.b, "subi", indices[d], start)
    if 0 in part:
        return (yield source, indices)
    if condition is None:
        return (yield update, indices)
    branch = e.if_(condition, leaf_types(instruction.shape))
    with e.inside(branch.regions[0].blocks[0]):
        scf.yield_(e.b, (yield update, tuple(at_update)))
    with e.inside(branch.regions[1].blocks[0]):
        scf.yield_(e.b, (yield source, indices))
    return tuple(branch.results)


def gather(e: ElementalEmitter, instruction: HloInstruction, indices: Indices) -> Emission:
    """The operand at a start index, clamped so that the slice fits, plus the index within the slice."""
    source, starts = instruction.operands
    sizes = instruction.ints("slice_sizes")
    offset_dims = instruction.ints("offset_dims", ())
    collapsed = (*instruction.ints("collapsed_slice_dims", ()), *instruction.ints("operand_batching_dims", ()))
    batching = instruction.ints("operand_batching_dims", ())
    start_batching = instruction.ints("start_indices_batching_dims", ())
    vector_dim = instruction.attr("index_vector_dim", int)
    start_rank = starts.array_shape.rank
    batch = [index for d, index in enumerate(indices) if d not in offset_dims]
    offsets = iter([indices[d] for d in offset_dims])
    whole = source.array_shape.dims
    place: list[Value] = [e.index(0) if d in collapsed else next(offsets) for d in range(len(whole))]
    start_dims = [d for d in range(start_rank) if d != vector_dim]
    for d, at_start in zip(batching, start_batching, strict=True):
        place[d] = batch[start_dims.index(at_start)]
    for k, d in enumerate(instruction.ints("start_index_map")):
        limit = whole[d] - sizes[d]
        if limit <= 0:
            continue
        at_vector = list(batch)
        if vector_dim < start_rank:
            at_vector.insert(vector_dim, e.index(k))
        (value,) = yield starts, tuple(at_vector)
        start = clamp_start(e, value, starts, limit)
        place[d] = start if place[d] is e.index(0) else arith.binary(e.b, "addi", start, place[d])
    return (yield source, tuple(place))


def get_tuple_element(e: ElementalEmitter, instruction: HloInstruction, indices: Indices) -> Emission:
    """One leaf of an op that gives several; all its leaves have one shape."""
    producer = instruction.operands[0]
    values = yield producer, indices
    number = instruction.attr("index", int)
    leaves = producer.shape.leaves()
    first = sum(len(element_types(leaf.dtype)) for leaf in leaves[:number])
    return values[first : first + len(element_types(leaves[number].dtype))]
