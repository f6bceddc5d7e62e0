"""Rules of ops that make or move elements: constants, broadcasts, reshapes, slices, pads and the like.

In: an instruction.  Out: the shape of its result.  `MOVEMENT` is the table.
"""

from __future__ import annotations

from typing import cast

from warpsmith.dtypes import Kind
from warpsmith.hlo.attributes import PaddingConfig, SliceDim
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.shapes import UNBOUNDED, AnyShape, Shape
from warpsmith.hlo.verifier.common import (
    Rule,
    agree,
    array_operand,
    array_result,
    brief,
    compatible,
    dimensions,
    fail,
    is_static,
    of_dims,
    scalar,
)

__all__ = ["MOVEMENT"]


def _parameter(instruction: HloInstruction) -> AnyShape:
    if instruction.parameter_number is None:
        raise fail(instruction, "parameter.number", "a parameter has no number")
    return instruction.shape


def _constant(instruction: HloInstruction) -> AnyShape:
    literal = instruction.literal
    if literal is None:
        raise fail(instruction, "constant.value", "a constant has no value")
    if not compatible(literal.shape, instruction.shape):
        raise fail(
            instruction,
            "constant.value",
            f"a constant of {brief(instruction.shape)} holds a value of {brief(literal.shape)}",
        )
    return instruction.shape


def _iota(instruction: HloInstruction) -> AnyShape:
    result = array_result(instruction)
    dim = instruction.attr("iota_dimension", int)
    if not 0 <= dim < result.rank:
        raise fail(instruction, "iota.dimension", f"iota_dimension is {dim}, the result has rank {result.rank}")
    if result.dtype.kind is Kind.PRED:
        raise fail(instruction, "iota.type", f"iota can't make {result.dtype}")
    return result


def _broadcast(instruction: HloInstruction) -> AnyShape:
    operand, result = array_operand(instruction, 0), array_result(instruction)
    dims = dimensions(instruction, result.rank)
    if len(dims) != operand.rank:
        raise fail(
            instruction,
            "dimensions.count",
            f"dimensions names {len(dims)} dimensions, the operand has {operand.rank}",
            help="say for each operand dimension which result dimension it becomes",
        )
    for index, dim in enumerate(dims):
        size, becomes = operand.dims[index], result.dims[dim]
        if size != becomes and UNBOUNDED not in (size, becomes):
            raise fail(
                instruction,
                "broadcast.sizes",
                f"operand dimension {index} has size {size}, result dimension {dim}, which it becomes, has {becomes}",
            )
    return result if result.dtype is operand.dtype else result.with_dtype(operand.dtype)


def _reshape(instruction: HloInstruction) -> AnyShape:
    operand, result = array_operand(instruction, 0), array_result(instruction)
    if is_static(operand, result) and operand.elements != result.elements:
        raise fail(
            instruction,
            "reshape.elements",
            f"reshape makes {result.elements} elements of {operand.elements}: {brief(operand)} to {brief(result)}",
        )
    return result if result.dtype is operand.dtype else result.with_dtype(operand.dtype)


def _dynamic_reshape(instruction: HloInstruction) -> AnyShape:
    result = _reshape(instruction)
    sizes = instruction.operands[1:]
    if len(sizes) != len(result.leaves()[0].dims):
        raise fail(instruction, "dynamic-reshape.sizes", f"{len(sizes)} sizes are given for {brief(result)}")
    for each in sizes:
        if not compatible(each.shape, scalar("s32")):
            raise fail(instruction, "dynamic-reshape.sizes", f"size '{each.name}' is {brief(each.shape)}")
    return result


def _bitcast(instruction: HloInstruction) -> AnyShape:
    operand, result = instruction.operands[0].shape, instruction.shape
    if isinstance(operand, Shape) and isinstance(result, Shape):
        if is_static(operand, result):
            bits = operand.elements * operand.dtype.bits, result.elements * result.dtype.bits
            if bits[0] != bits[1]:
                raise fail(instruction, "bitcast.bits", f"bitcast makes {bits[1]} bits of {bits[0]}")
        return result
    return operand


def _bitcast_convert(instruction: HloInstruction) -> AnyShape:
    operand, dtype = array_operand(instruction, 0), array_result(instruction).dtype
    if operand.dtype.is_complex != dtype.is_complex:
        raise fail(instruction, "bitcast-convert.kind", f"bitcast-convert can't turn {operand.dtype} into {dtype}")
    wide, narrow = operand.dtype.bits, dtype.bits
    if wide == narrow:
        return operand.with_dtype(dtype)
    if wide > narrow:
        return of_dims(dtype, (*operand.dims, wide // narrow))
    ratio = narrow // wide
    if not operand.dims or operand.dims[-1] not in (ratio, UNBOUNDED):
        raise fail(
            instruction,
            "bitcast-convert.last-dimension",
            f"bitcast-convert from {operand.dtype} to {dtype} needs a last dimension of {ratio}, not {brief(operand)}",
        )
    return of_dims(dtype, operand.dims[:-1])


def _transpose(instruction: HloInstruction) -> AnyShape:
    operand = array_operand(instruction, 0)
    dims = dimensions(instruction, operand.rank)
    if len(dims) != operand.rank:
        raise fail(
            instruction,
            "dimensions.count",
            f"dimensions names {len(dims)} of {operand.rank} dimensions",
            help="transpose needs a permutation of all dimensions",
        )
    return of_dims(operand.dtype, [operand.dims[dim] for dim in dims])


def _reverse(instruction: HloInstruction) -> AnyShape:
    operand = array_operand(instruction, 0)
    dimensions(instruction, operand.rank)
    return operand


def _slice(instruction: HloInstruction) -> AnyShape:
    operand = array_operand(instruction, 0)
    ranges = cast("tuple[object, ...]", instruction.attr("slice", tuple))
    dims = [each for each in ranges if isinstance(each, SliceDim)]
    if len(dims) != operand.rank:
        raise fail(instruction, "dimensions.count", f"slice has {len(dims)} ranges for an array of rank {operand.rank}")
    for index, (each, size) in enumerate(zip(dims, operand.dims, strict=True)):
        if each.stride < 1:
            raise fail(instruction, "slice.stride", f"the stride of dimension {index} is {each.stride}")
        if not 0 <= each.start <= each.limit or (each.limit > size and size != UNBOUNDED):
            raise fail(
                instruction,
                "slice.range",
                f"slice [{each.start}:{each.limit}] doesn't lie in dimension {index} of size {size}",
            )
    return of_dims(operand.dtype, [-(-(each.limit - each.start) // each.stride) for each in dims])


def _pad(instruction: HloInstruction) -> AnyShape:
    operand, value = array_operand(instruction, 0), array_operand(instruction, 1)
    if value.dims:
        raise fail(instruction, "operand.scalar", f"pad's value is {brief(value)}, not a scalar of {operand.dtype}")
    if value.dtype is not operand.dtype:
        raise fail(instruction, "operand.same-type", f"pad's value is {value.dtype}, not a scalar of {operand.dtype}")
    dims = instruction.attr("padding", PaddingConfig).dims
    if len(dims) != operand.rank:
        raise fail(instruction, "dimensions.count", f"padding has {len(dims)} dimensions, the operand {operand.rank}")
    padded: list[int] = []
    for index, (each, size) in enumerate(zip(dims, operand.dims, strict=True)):
        if each.interior < 0:
            raise fail(instruction, "pad.interior", f"the interior padding of dimension {index} is {each.interior}")
        if size == UNBOUNDED:
            padded.append(size)
            continue
        padded.append(each.low + each.high + size + max(size - 1, 0) * each.interior)
        if padded[-1] < 0:
            raise fail(instruction, "pad.size", f"padding leaves dimension {index} with size {padded[-1]}")
    return of_dims(operand.dtype, padded)


def _concatenate(instruction: HloInstruction) -> AnyShape:
    first = array_operand(instruction, 0)
    dims = dimensions(instruction, first.rank)
    if len(dims) != 1:
        raise fail(instruction, "dimensions.count", f"concatenate takes one dimension, not {len(dims)}")
    along = dims[0]
    total = 0
    for index, operand in enumerate(instruction.operands):
        shape = array_operand(instruction, index)
        if shape.dtype is not first.dtype:
            raise fail(
                instruction,
                "operand.same-type",
                f"the operands of concatenate have different types, {first.dtype} and {shape.dtype}",
            )
        rest = (*shape.dims[:along], *shape.dims[along + 1 :]), (*first.dims[:along], *first.dims[along + 1 :])
        if shape.rank != first.rank or not agree(*rest):
            raise fail(
                instruction,
                "concatenate.sizes",
                f"operand '{operand.name}' of {brief(shape)} doesn't line up with {brief(first)}",
                help=f"all dimensions but {along} must agree",
            )
        size = shape.dims[along]
        total = UNBOUNDED if UNBOUNDED in (total, size) else total + size
    return of_dims(first.dtype, (*first.dims[:along], total, *first.dims[along + 1 :]))


def _one_dimension(instruction: HloInstruction) -> Shape:
    operand = array_operand(instruction, 0)
    dims = dimensions(instruction, operand.rank)
    if len(dims) != 1:
        raise fail(instruction, "dimensions.count", f"{instruction.opcode} takes one dimension, not {len(dims)}")
    return operand


def _get_dimension_size(instruction: HloInstruction) -> AnyShape:
    _one_dimension(instruction)
    return scalar("s32")


def _set_dimension_size(instruction: HloInstruction) -> AnyShape:
    operand, size = _one_dimension(instruction), instruction.operands[1]
    if not compatible(size.shape, scalar("s32")):
        raise fail(instruction, "dimension-size.type", f"the size '{size.name}' is {brief(size.shape)}")
    return operand


MOVEMENT: dict[str, Rule] = {
    "parameter": _parameter,
    "constant": _constant,
    "iota": _iota,
    "broadcast": _broadcast,
    "reshape": _reshape,
    "dynamic-reshape": _dynamic_reshape,
    "bitcast": _bitcast,
    "bitcast-convert": _bitcast_convert,
    "transpose": _transpose,
    "reverse": _reverse,
    "slice": _slice,
    "pad": _pad,
    "concatenate": _concatenate,
    "get-dimension-size": _get_dimension_size,
    "set-dimension-size": _set_dimension_size,
}
"""The rule of each op that makes or moves elements without reading indices."""
