"""Ops that read or write at run-time indices: dynamic-slice, dynamic-update-slice, gather.

In: arrays and integer indices.  Out: arrays.  Starts are clamped so that the whole slice lies inside the operand,
with indices read by their own signedness.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType
from warpsmith.hlo.evaluator.arithmetic.integers import load
from warpsmith.hlo.evaluator.values import Caller, Kernel, Rule, Value, arrays_of
from warpsmith.hlo.module import HloInstruction

__all__ = ["INDEXED", "batch_positions", "index_columns", "start_indices"]


def _starts(instruction: HloInstruction, first: int) -> list[DType]:
    return [operand.array_shape.dtype for operand in instruction.operands[first:]]


def start_indices(indices: Sequence[Array], dtypes: Sequence[DType], room: Sequence[int]) -> list[int]:
    """Start indices (scalars, or one vector of them) clamped to 0..room."""
    numbers: list[int] = []
    for index, dtype in zip(indices, dtypes, strict=True):
        numbers.extend(int(number) for number in load(index.reshape(-1), dtype))
    return [min(max(number, 0), most) for number, most in zip(numbers, room, strict=True)]


def _dynamic_slice(_: Caller, instruction: HloInstruction) -> Kernel:
    sizes, dtypes = instruction.ints("dynamic_slice_sizes"), _starts(instruction, 1)

    def kernel(values: Sequence[Value]) -> Value:
        array, *indices = arrays_of(values)
        room = [dim - size for dim, size in zip(array.shape, sizes, strict=True)]
        starts = start_indices(indices, dtypes, room)
        return array[
            (
                *[slice(start, start + size) for start, size in zip(starts, sizes, strict=True)],
                ...,
            )
        ]

    return kernel


def _dynamic_update_slice(_: Caller, instruction: HloInstruction) -> Kernel:
    dtypes = _starts(instruction, 2)

    def kernel(values: Sequence[Value]) -> Value:
        array, update, *indices = arrays_of(values)
        room = [dim - size for dim, size in zip(array.shape, update.shape, strict=True)]
        starts = start_indices(indices, dtypes, room)
        result = array.copy()
        result[
            (
                *[slice(start, start + size) for start, size in zip(starts, update.shape, strict=True)],
                ...,
            )
        ] = update
        return result

    return kernel


def index_columns(indices: Array, dtype: DType, vector_dim: int) -> Array:
    """Index vectors as int64 [batch..., K]: the vector dimension moved last (or added, when it lies past the end)."""
    numbers = load(indices, dtype)
    # An unsigned index past the signed range is past every dimension too.
    wide = np.minimum(numbers, np.uint64((1 << 63) - 1)) if numbers.dtype == np.uint64 else numbers
    whole = wide.astype(np.int64)
    return whole[..., None] if vector_dim == whole.ndim else np.moveaxis(whole, vector_dim, -1)


def batch_positions(batch: Sequence[int], vector_dim: int, dims: Sequence[int]) -> list[Array]:
    """For each of `dims` (dimensions of the indices operand), every batch element's position along it."""
    positions: list[Array] = []
    for dim in dims:
        axis = dim if dim < vector_dim else dim - 1
        line = np.arange(batch[axis], dtype=np.int64)
        spread = line.reshape([-1 if other == axis else 1 for other in range(len(batch))])
        positions.append(np.broadcast_to(spread, batch))
    return positions


def _gather(_: Caller, instruction: HloInstruction) -> Kernel:
    offset_dims, collapsed = (
        instruction.ints("offset_dims", ()),
        instruction.ints("collapsed_slice_dims", ()),
    )
    index_map, sizes = (
        instruction.ints("start_index_map", ()),
        instruction.ints("slice_sizes", ()),
    )
    vector_dim = instruction.attr("index_vector_dim", int)
    operand_batch = instruction.ints("operand_batching_dims", ())
    index_batch = instruction.ints("start_indices_batching_dims", ())
    dtype = instruction.operands[1].array_shape.dtype

    def kernel(values: Sequence[Value]) -> Value:
        array, indices = arrays_of(values)
        columns = index_columns(indices, dtype, vector_dim)
        batch = columns.shape[:-1]
        kept = [dim for dim in range(array.ndim) if dim not in collapsed and dim not in operand_batch]
        places: list[Array] = [np.zeros(batch, np.int64)] * array.ndim
        for column, dim in enumerate(index_map):
            places[dim] = np.clip(columns[..., column], 0, array.shape[dim] - sizes[dim])
        for dim, position in zip(operand_batch, batch_positions(batch, vector_dim, index_batch), strict=True):
            places[dim] = position
        index: list[Array] = []
        for dim, place in enumerate(places):
            spread = place.reshape([*batch, *([1] * len(kept))])
            if dim in kept:
                axis = len(batch) + kept.index(dim)
                line = np.arange(sizes[dim], dtype=np.int64)
                spread = spread + line.reshape([-1 if other == axis else 1 for other in range(len(batch) + len(kept))])
            index.append(spread)
        shape = (*batch, *[sizes[dim] for dim in kept])
        picked = np.broadcast_to(array[tuple(index)], shape)
        return np.moveaxis(picked, range(len(batch), picked.ndim), offset_dims)

    return kernel


INDEXED: dict[str, Rule] = {
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update_slice,
    "gather": _gather,
}
