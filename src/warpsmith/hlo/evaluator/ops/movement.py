"""Ops that move elements without looking at them.

In: arrays of any numpy type (the error bounds of `error_bound` move through the same kernels).  Out: views wherever
numpy can make one: a broadcast, transpose, slice or reverse costs no memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import by_name
from warpsmith.errors import InvalidHlo
from warpsmith.hlo.attributes import PaddingConfig, SliceDim
from warpsmith.hlo.evaluator.arithmetic.convert import bitcast_elements, converter
from warpsmith.hlo.evaluator.values import Caller, Kernel, Rule, Value, arrays_of, constant_kernel
from warpsmith.hlo.literals import Literal
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.shapes import Shape

__all__ = ["MOVEMENT", "literal_value", "padded", "reshaped"]


def literal_value(literal: Literal) -> Value:
    """A constant's value; a splat stays a view of one element."""
    if literal.is_tuple:
        return tuple(literal_value(element) for element in literal.elements)
    return literal.array


def _constant(_: Caller, instruction: HloInstruction) -> Kernel:
    if instruction.literal is None:
        raise InvalidHlo(f"constant '{instruction.name}' has no value", span=instruction.span)
    return constant_kernel(literal_value(instruction.literal))


def _iota(_: Caller, instruction: HloInstruction) -> Kernel:
    shape, axis = instruction.array_shape, instruction.attr("iota_dimension", int)
    if not 0 <= axis < shape.rank:
        raise InvalidHlo(f"{shape} has no dimension {axis}", span=instruction.span)
    line = converter(by_name("s64"), shape.dtype)(np.arange(shape.dims[axis], dtype=np.int64))
    spread = line.reshape([-1 if dim == axis else 1 for dim in range(shape.rank)])
    return constant_kernel(np.broadcast_to(spread, shape.dims))


def _broadcast(_: Caller, instruction: HloInstruction) -> Kernel:
    dims, targets = instruction.array_shape.dims, instruction.ints("dimensions", ())
    order = sorted(range(len(targets)), key=targets.__getitem__)
    spread = tuple(slice(None) if dim in targets else None for dim in range(len(dims)))

    def kernel(values: Sequence[Value]) -> Value:
        (array,) = arrays_of(values)
        return np.broadcast_to(array.transpose(order)[spread], dims)

    return kernel


def reshaped(array: Array, dims: Sequence[int]) -> Array:
    """`array.reshape(dims)`; one value repeated stays a view."""
    if array.size > 1 and all(stride == 0 for stride, dim in zip(array.strides, array.shape, strict=True) if dim > 1):
        return np.broadcast_to(array[(0,) * array.ndim], dims)
    return array.reshape(dims)


def _reshape(_: Caller, instruction: HloInstruction) -> Kernel:
    dims = instruction.array_shape.dims

    def kernel(values: Sequence[Value]) -> Value:
        return reshaped(arrays_of(values)[0], dims)

    return kernel


def _major_to_minor(shape: Shape) -> list[int]:
    return list(reversed(shape.minor_to_major))


def _bitcast(_: Caller, instruction: HloInstruction) -> Kernel:
    """The same memory under another shape: to the operand's physical order, and from the result's."""
    source, target = instruction.operands[0].array_shape, instruction.array_shape
    out_of, into = _major_to_minor(source), _major_to_minor(target)
    physical = target.physical_dims()
    back = [into.index(dim) for dim in range(target.rank)]

    def kernel(values: Sequence[Value]) -> Value:
        array = arrays_of(values)[0].transpose(out_of)
        if source.dtype is not target.dtype and source.dtype.bits != target.dtype.bits:
            narrow = target.dtype.bits < source.dtype.bits
            ratio = target.dtype.bits // source.dtype.bits
            flat = array.reshape(-1) if narrow else array.reshape(-1, ratio)
            array = bitcast_elements(flat, source.dtype, target.dtype)
        elif source.dtype is not target.dtype:
            array = bitcast_elements(array, source.dtype, target.dtype)
        return reshaped(array, physical).transpose(back)

    return kernel


def _bitcast_convert(_: Caller, instruction: HloInstruction) -> Kernel:
    source, target = instruction.operands[0].array_shape, instruction.array_shape

    def kernel(values: Sequence[Value]) -> Value:
        return bitcast_elements(arrays_of(values)[0], source.dtype, target.dtype).reshape(target.dims)

    return kernel


def _transpose(_: Caller, instruction: HloInstruction) -> Kernel:
    order = instruction.ints("dimensions")

    def kernel(values: Sequence[Value]) -> Value:
        return arrays_of(values)[0].transpose(order)

    return kernel


def _reverse(_: Caller, instruction: HloInstruction) -> Kernel:
    axes = instruction.ints("dimensions")

    def kernel(values: Sequence[Value]) -> Value:
        return np.flip(arrays_of(values)[0], axes)

    return kernel


def _slice(_: Caller, instruction: HloInstruction) -> Kernel:
    dims = cast("tuple[SliceDim, ...]", instruction.attr("slice", tuple))
    index = (
        *[slice(dim.start, dim.limit, dim.stride) for dim in dims],
        ...,
    )  # "...": a scalar stays an array

    def kernel(values: Sequence[Value]) -> Value:
        return arrays_of(values)[0][index]

    return kernel


def padded(array: Array, value: Array, config: PaddingConfig, dims: Sequence[int]) -> Array:
    """`array` spread by the interior padding, then cropped or extended at its edges, as an array of `dims`."""
    result = np.empty(dims, array.dtype)
    result[...] = value
    source: list[slice] = []
    target: list[slice] = []
    for dim, size, extent in zip(config.dims, array.shape, dims, strict=True):
        step = dim.interior + 1
        first = max(0, -(dim.low // step))  # the least i with low + i * step >= 0
        last = min(size - 1, (extent - 1 - dim.low) // step)
        if last < first:
            return result
        source.append(slice(first, last + 1))
        target.append(slice(dim.low + first * step, dim.low + last * step + 1, step))
    result[(*target, ...)] = array[(*source, ...)]
    return result


def _pad(_: Caller, instruction: HloInstruction) -> Kernel:
    config, dims = (
        instruction.attr("padding", PaddingConfig),
        instruction.array_shape.dims,
    )

    def kernel(values: Sequence[Value]) -> Value:
        array, value = arrays_of(values)
        return padded(array, value, config, dims)

    return kernel


def _concatenate(_: Caller, instruction: HloInstruction) -> Kernel:
    (axis,) = instruction.ints("dimensions")

    def kernel(values: Sequence[Value]) -> Value:
        return np.concatenate(arrays_of(values), axis)

    return kernel


MOVEMENT: dict[str, Rule] = {
    "bitcast": _bitcast,
    "bitcast-convert": _bitcast_convert,
    "broadcast": _broadcast,
    "concatenate": _concatenate,
    "constant": _constant,
    "iota": _iota,
    "pad": _pad,
    "reshape": _reshape,
    "reverse": _reverse,
    "slice": _slice,
    "transpose": _transpose,
}
