"""Large dots and convolutions on the host, through numpy's BLAS.

In: arrays in HLO's dims.  Out: arrays.  Products of floats of up to 32 bits are summed in float32, of f64 in float64,
and rounded once to the result's type, as the numerics' contract has it; a convolution is a dot of its windows, unfolded
a part of the batch at a time, or, where most of the windows lies in the padding, a sum of dots, one a place of the
window, which leave the padding out.  Integers are the reference interpreter's to do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType
from warpsmith.hlo.attributes import ConvDimNumbers, Window
from warpsmith.hlo.evaluator.arithmetic.formats import round_once, widen
from warpsmith.hlo.evaluator.ops.dot import matrices, narrowed
from warpsmith.hlo.evaluator.ops.window import Place, window_slices
from warpsmith.hlo.module import HloInstruction

__all__ = ["HostFunction", "library_function"]

HostFunction = Callable[[Sequence[Array]], Sequence[Array]]

_UNFOLDED_BYTES = 64 << 20
_SPARSE = 4  # times the elements outside the padding that windows hold, from which on the padding is left out


def library_function(instruction: HloInstruction) -> HostFunction | None:
    """What computes a dot or convolution of floats; None for other ops and types."""
    make = _MAKERS.get(instruction.opcode)
    if make is None or "sparsity" in instruction.attributes:
        return None
    sources = [each.array_shape.dtype for each in instruction.operands[:2]]
    target = instruction.array_shape.dtype
    if not all(each.is_float for each in (*sources, target)):
        return None
    return make(instruction, sources, target)


def _carrier(sources: Sequence[DType], target: DType) -> Callable[[Array, DType], Array]:
    """The operand in the type that the library multiplies: float32, or float64 where f64 is among the types."""
    wide = any(each.bits == 64 for each in (*sources, target))

    def carry(array: Array, source: DType) -> Array:
        found = widen(array, source)
        return found.astype(np.float64 if wide else np.float32, copy=False)

    return carry


def _dot(instruction: HloInstruction, sources: Sequence[DType], target: DType) -> HostFunction:
    lhs_batch, rhs_batch = (instruction.ints(f"{side}_batch_dims", ()) for side in ("lhs", "rhs"))
    lhs_sum, rhs_sum = (instruction.ints(f"{side}_contracting_dims", ()) for side in ("lhs", "rhs"))
    algorithm = instruction.attributes.get("algorithm")
    name = str(algorithm) if algorithm is not None else None
    carry, dims = _carrier(sources, target), instruction.array_shape.dims

    def dot(arrays: Sequence[Array]) -> Sequence[Array]:
        lhs, rhs = (carry(narrowed(array, dtype, name), dtype) for array, dtype in zip(arrays, sources, strict=True))
        left, _ = matrices(lhs, lhs_batch, lhs_sum, contracting_last=True)
        right, _ = matrices(rhs, rhs_batch, rhs_sum, contracting_last=False)
        with np.errstate(all="ignore"):
            product = np.matmul(left[0], right[0]) if len(left) == 1 else np.matmul(left, right)
            return [round_once(product, target).reshape(dims)]

    return dot


def _convolution(instruction: HloInstruction, sources: Sequence[DType], target: DType) -> HostFunction:
    shape = _Convolution(instruction)
    carry = _carrier(sources, target)

    def convolution(arrays: Sequence[Array]) -> Sequence[Array]:
        lhs, rhs = (carry(array, dtype) for array, dtype in zip(arrays, sources, strict=True))
        with np.errstate(all="ignore"):
            return [round_once(shape.apply(lhs, rhs), target)]

    return convolution


class _Convolution:
    """One convolution's shape: [group, batch, features, space...] by [group, out, in, window...]."""

    def __init__(self, instruction: HloInstruction) -> None:
        labels = instruction.attr("dim_labels", ConvDimNumbers)
        self.lhs_order, self.rhs_order = _to_front(labels.lhs, "bf"), _to_front(labels.rhs, "oi")
        order = _to_front(labels.output, "bf")
        self.back = [order.index(dim) for dim in range(len(order))]
        self.dims = [instruction.array_shape.dims[dim] for dim in order]
        self.window = instruction.attr("window", Window) if "window" in instruction.attributes else Window(())
        self.groups = _count(instruction, "feature_group_count")
        self.batches = _count(instruction, "batch_group_count")

    def apply(self, lhs: Array, rhs: Array) -> Array:
        """The convolution of arrays of one float type, in the output's order of dims."""
        if not (lhs.size and rhs.size and math.prod(self.dims)):
            return np.zeros(self.dims, lhs.dtype).transpose(self.back)
        image = lhs.transpose(self.lhs_order)
        places = window_slices(self.window, image.shape[2:], self.dims[2:])
        held = sum(math.prod(len(range(*each.indices(1 << 62))) for each in out) for _, out, _ in places)
        sparse = math.prod(self.dims[2:]) * math.prod(dim.size for dim in self.window.dims) > _SPARSE * held
        if not sparse:
            image = self._padded(image)
        total = self.groups * self.batches  # at most one of them isn't 1
        batch, features = self.dims[0], self.dims[1]
        space = image.shape[2:]
        split = image.reshape(self.batches, batch, self.groups, -1, *space)
        grouped = np.moveaxis(split, 2, 1).reshape(total, batch, split.shape[3], *space)
        taps = rhs.transpose(self.rhs_order)
        flips = tuple(slice(None, None, -1 if dim.reversal else 1) for dim in self.window.dims)
        taps = taps[(slice(None), slice(None), *flips)]
        if sparse:
            split = taps.reshape(total, features // total, *taps.shape[1:])
            pixels = np.ascontiguousarray(np.moveaxis(grouped, 2, -1))
            by_place = np.ascontiguousarray(np.moveaxis(split, (0, 2, 1), (-3, -2, -1)))
            whole = self._by_places(pixels, by_place, places)
            return whole.reshape(self.dims).transpose(self.back)
        matrix = taps.reshape(total, features // total, -1).swapaxes(1, 2)
        windows = self._windows(grouped)
        result = np.empty((batch, math.prod(self.dims[2:]), total, features // total), lhs.dtype)
        step = max(1, _UNFOLDED_BYTES // max(1, windows[:, :1].size * lhs.dtype.itemsize))
        for start in range(0, batch, step):
            part = windows[:, start : start + step]
            rows = part.reshape(total, -1, matrix.shape[1])
            product = np.matmul(rows, matrix)
            result[start : start + step] = np.moveaxis(
                product.reshape(total, part.shape[1], -1, features // total), 0, 2
            )
        whole = np.moveaxis(result.reshape(batch, -1, features), 2, 1).reshape(self.dims)
        return whole.transpose(self.back)

    def _by_places(self, grouped: Array, taps: Array, places: Sequence[Place]) -> Array:
        """[batch, features, space...] of [group, batch, space..., in] by [window..., group, in, out]."""
        total, batch, features = *grouped.shape[:2], taps.shape[-1]
        result = np.zeros((total, batch, *self.dims[2:], features), grouped.dtype)
        for place, out, into in places:
            piece = grouped[(slice(None), slice(None), *into)]
            product = np.matmul(piece.reshape(total, -1, piece.shape[-1]), taps[place])
            result[(slice(None), slice(None), *out)] += product.reshape(*piece.shape[:-1], features)
        return np.moveaxis(np.moveaxis(result, -1, 2), 0, 1)

    def _padded(self, image: Array) -> Array:
        """The image with holes and margins of zeros, or cropped where padding is negative."""
        dims = self.window.dims
        spread = [
            1 + (size - 1) * dim.base_dilation if size else 0 for size, dim in zip(image.shape[2:], dims, strict=True)
        ]
        sizes = [size + dim.pad_low + dim.pad_high for size, dim in zip(spread, dims, strict=True)]
        if sizes == list(image.shape[2:]) and not any(dim.pad_low for dim in dims):
            return image
        padded = np.zeros((*image.shape[:2], *(max(size, 0) for size in sizes)), image.dtype)
        into: list[slice] = []
        take: list[slice] = []
        for size, total, dim in zip(image.shape[2:], sizes, dims, strict=True):
            step = dim.base_dilation
            first = max(0, -(dim.pad_low // step)) if dim.pad_low < 0 else 0
            last = min(size, (total - dim.pad_low + step - 1) // step)
            count = max(last - first, 0)
            start = dim.pad_low + first * step
            into.append(slice(start, start + (count - 1) * step + 1 if count else start, step))
            take.append(slice(first, first + count))
        padded[(slice(None), slice(None), *into)] = image[(slice(None), slice(None), *take)]
        return padded

    def _windows(self, grouped: Array) -> Array:
        """A view [group, batch, places..., features, window...]."""
        dims = self.window.dims
        axes = tuple(range(3, 3 + len(dims)))
        reach = tuple(1 + (dim.size - 1) * dim.window_dilation for dim in dims)
        if not dims:
            return grouped
        view = np.lib.stride_tricks.sliding_window_view(grouped, reach, axes)
        places = tuple(slice(None, None, dim.stride) for dim in dims)
        taps = tuple(slice(None, None, dim.window_dilation) for dim in dims)
        view = view[(slice(None), slice(None), slice(None), *places, *taps)]
        return np.moveaxis(view, 2, 2 + len(dims))


def _to_front(labels: str, first: str) -> list[int]:
    """The order of dims that brings the two of `first`, then space 0, 1, ..., to the front."""
    return [labels.index(each) for each in (*first, *map(str, range(len(labels) - 2)))]


def _count(instruction: HloInstruction, name: str) -> int:
    return instruction.attr(name, int) if name in instruction.attributes else 1


_MAKERS: dict[str, Callable[[HloInstruction, Sequence[DType], DType], HostFunction]] = {
    "dot": _dot,
    "convolution": _convolution,
}
