"""scatter, in all its forms: windows, batching dimensions, several operands.

In: operands, index vectors, updates, a combiner.  Out: the operands with updates combined in, in the row-major order
of the updates.  A window that doesn't lie wholly inside the operand is dropped whole, as XLA's emitters do.
Updates of one element run in rounds: each round takes at most one update an element, so that a round is one vector
operation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpsmith.arrays import Array
from warpsmith.hlo.evaluator.arithmetic.integers import load, store
from warpsmith.hlo.evaluator.ops.indexed import batch_positions, index_columns
from warpsmith.hlo.evaluator.ops.reduce import single_op
from warpsmith.hlo.evaluator.values import Caller, Kernel, Value, arrays_of
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.shapes import TupleShape

__all__ = ["SCATTER", "destinations", "rounds"]


def destinations(instruction: HloInstruction, indices: Array) -> tuple[Array, Array, list[int]]:
    """Where updates go: (kept, places, order).

    `order` transposes an updates array to [scatter dims..., window dims...]; `places` are flat positions in an
    operand, one an element of the transposed updates that isn't dropped; `kept` is the mask of those.
    """
    count = len(instruction.operands) // 2
    operand, update = (
        instruction.operands[0].array_shape,
        instruction.operands[count + 1].array_shape,
    )
    window_dims = instruction.ints("update_window_dims", ())
    inserted = instruction.ints("inserted_window_dims", ())
    operand_batch = instruction.ints("input_batching_dims", ())
    index_batch = instruction.ints("scatter_indices_batching_dims", ())
    index_map = instruction.ints("scatter_dims_to_operand_dims", ())
    vector_dim = instruction.attr("index_vector_dim", int)
    columns = index_columns(indices, instruction.operands[count].array_shape.dtype, vector_dim)
    batch = columns.shape[:-1]
    scatter_dims = [dim for dim in range(update.rank) if dim not in window_dims]
    order = [*scatter_dims, *window_dims]
    kept_dims = [dim for dim in range(operand.rank) if dim not in inserted and dim not in operand_batch]
    sizes = dict.fromkeys(range(operand.rank), 1) | {
        dim: update.dims[axis] for dim, axis in zip(kept_dims, window_dims, strict=True)
    }
    starts: list[Array] = [np.zeros(batch, np.int64)] * operand.rank
    for column, dim in enumerate(index_map):
        starts[dim] = columns[..., column]
    for dim, position in zip(operand_batch, batch_positions(batch, vector_dim, index_batch), strict=True):
        starts[dim] = position
    inside = np.ones(batch, np.bool_)
    flat = np.zeros(batch, np.int64)
    window = np.zeros([sizes[dim] for dim in kept_dims], np.int64)
    stride = 1
    for dim in reversed(range(operand.rank)):
        inside &= (starts[dim] >= 0) & (starts[dim] <= operand.dims[dim] - sizes[dim])
        flat = flat + np.where(inside, starts[dim], 0) * stride
        if dim in kept_dims:
            axis = kept_dims.index(dim)
            line = np.arange(sizes[dim], dtype=np.int64) * stride
            window = window + line.reshape([-1 if other == axis else 1 for other in range(len(kept_dims))])
        stride *= operand.dims[dim]
    shape = (*batch, *window.shape)
    spread = (..., *([None] * window.ndim))
    kept = np.broadcast_to(inside[spread], shape)
    places = np.broadcast_to(flat[spread] + window, shape)[kept]
    return kept, places, order


def rounds(places: Array) -> list[Array]:
    """Positions into `places`, split so that no part has a place twice and repeated places keep their order."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(first)
    nth = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.append(starts, len(ordered))))
    by_round = order[np.argsort(nth, kind="stable")]
    return np.split(by_round, np.cumsum(np.bincount(nth))[:-1]) if len(ordered) else []


def _scatter(caller: Caller, instruction: HloInstruction) -> Kernel:
    combiner = instruction.attr("to_apply", HloComputation)
    count = len(instruction.operands) // 2
    is_tuple = isinstance(instruction.shape, TupleShape)
    overwrites = count == 1 and len(combiner.parameters) == 2 and combiner.root is combiner.parameters[1]
    dtype = instruction.operands[0].array_shape.dtype
    adds_integers = count == 1 and dtype.is_integer and single_op(combiner) == "add"

    def kernel(values: Sequence[Value]) -> Value:
        arrays = arrays_of(values)
        operands, updates = arrays[:count], arrays[count + 1 :]
        kept, places, order = destinations(instruction, arrays[count])
        items = [update.transpose(order)[kept] for update in updates]
        results = [np.array(operand, order="C") for operand in operands]
        flats = [result.reshape(-1) for result in results]
        if overwrites:
            last = rounds(places)  # numpy leaves open which of several writes wins
            for part in last:
                flats[0][places[part]] = items[0][part]
        elif adds_integers:
            numbers = load(flats[0], dtype).copy()
            np.add.at(numbers, places, load(items[0], dtype))
            flats[0][...] = store(numbers, dtype)
        else:
            for part in rounds(places):
                target = places[part]
                combined = caller.run_lanes(combiner, [*[f[target] for f in flats], *[i[part] for i in items]])
                for flat, new in zip(flats, combined, strict=True):
                    flat[target] = new
        return tuple(results) if is_tuple else results[0]

    return kernel


SCATTER = {"scatter": _scatter}
