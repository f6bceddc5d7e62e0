"""convolution: for each kernel position one dot of a strided slice of the input with that position's kernel.

In: input, kernel, window (strides, padding, dilations, reversal), dimension labels, group counts.  Out: an array.
Sums run as in `dot`: float64, rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType
from warpsmith.hlo.attributes import ConvDimNumbers, Window
from warpsmith.hlo.evaluator.arithmetic.convert import converter, plain_integer
from warpsmith.hlo.evaluator.arithmetic.formats import round_once, wide
from warpsmith.hlo.evaluator.arithmetic.integers import load, store
from warpsmith.hlo.evaluator.ops.window import window_slices
from warpsmith.hlo.evaluator.values import Caller, Kernel, Value, arrays_of
from warpsmith.hlo.module import HloInstruction

__all__ = ["CONVOLUTION"]


def _to_front(labels: str, first: str, second: str) -> list[int]:
    """The order of dimensions that brings `first`, `second`, then spatial 0, 1, ... to the front."""
    spatial = [labels.index(str(number)) for number in range(len(labels) - 2)]
    return [labels.index(first), labels.index(second), *spatial]


def _accumulable(array: Array, source: DType, target: DType) -> Array:
    """The operand in the type that sums run in."""
    if target.is_complex:
        return array.astype(np.complex128)
    if target.is_float:
        return wide(array, source)
    return load(converter(source, target)(array), target)


def _convolution(_: Caller, instruction: HloInstruction) -> Kernel:
    labels = instruction.attr("dim_labels", ConvDimNumbers)
    lhs_order, rhs_order = (
        _to_front(labels.lhs, "b", "f"),
        _to_front(labels.rhs, "o", "i"),
    )
    out_order = _to_front(labels.output, "b", "f")
    window = instruction.attr("window", Window) if "window" in instruction.attributes else Window(())
    groups = instruction.attr("feature_group_count", int) if "feature_group_count" in instruction.attributes else 1
    batches = instruction.attr("batch_group_count", int) if "batch_group_count" in instruction.attributes else 1
    sources = [operand.array_shape.dtype for operand in instruction.operands]
    target = instruction.array_shape

    def kernel(values: Sequence[Value]) -> Value:
        lhs, rhs = (
            _accumulable(array, source, target.dtype) for array, source in zip(arrays_of(values), sources, strict=True)
        )
        image, taps = lhs.transpose(lhs_order), rhs.transpose(rhs_order)
        dims = [target.dims[dim] for dim in out_order]
        batch, features = dims[0], dims[1]
        total = batches * groups  # at most one of them isn't 1
        # [group, batch, feature, space...]: groups of features lie in the feature dimension, of batches in the batch's.
        split = image.reshape(batches, batch, groups, image.shape[1] // groups, *image.shape[2:])
        grouped = np.moveaxis(split, 2, 1).reshape(total, batch, split.shape[3], *image.shape[2:])
        taps = taps.reshape(total, features // total, *taps.shape[1:])
        kind = np.complex128 if target.dtype.is_complex else np.float64
        if target.dtype.is_integer:
            kind = plain_integer(target.dtype)
        result = np.zeros((total, batch, features // total, *dims[2:]), kind)
        for place, out, into in window_slices(window, image.shape[2:], dims[2:]):
            tap = tuple(
                dim.size - 1 - number if dim.reversal else number
                for dim, number in zip(window.dims, place, strict=True)
            )
            piece = grouped[(slice(None), slice(None), slice(None), *into)]
            result[(slice(None), slice(None), slice(None), *out)] += np.einsum(
                "gbi...,goi->gbo...",
                piece,
                taps[(slice(None), slice(None), slice(None), *tap)],
            )
        joined = np.moveaxis(result, 0, 1).reshape(dims)
        back = joined.transpose([out_order.index(dim) for dim in range(len(dims))])
        if target.dtype.is_float:
            return round_once(back, target.dtype)
        return store(back, target.dtype) if target.dtype.is_integer else back.astype(target.dtype.numpy)

    return kernel


CONVOLUTION = {"convolution": _convolution}
