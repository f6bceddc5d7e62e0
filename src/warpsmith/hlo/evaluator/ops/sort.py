"""sort, by any comparator: a stable merge sort in which every comparison of a step runs at once.

In: arrays of equal dims, a comparator of (a0, b0, a1, b1, ...) that says whether a comes first.  Out: the arrays,
sorted along one dimension together.  Elements find their place in the neighbouring sorted run by binary search: those
of the left run behind smaller ones, those of the right run behind smaller or equal ones, which keeps the order of
equals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from warpsmith.arrays import Array
from warpsmith.hlo.evaluator.values import Caller, Kernel, Value, arrays_of
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.shapes import TupleShape

__all__ = ["SORT"]

Precedes = Callable[[Sequence[Array], Sequence[Array]], Array]


def _merge(rows: Sequence[Array], width: int, precedes: Precedes) -> list[Array]:
    """One level: runs of `width` along the last dimension of [outer, n] arrays merged in pairs."""
    outer, size = rows[0].shape
    column = np.arange(size, dtype=np.int64)
    run = column // width
    left = run % 2 == 0
    other = np.where(left, (run + 1) * width, (run - 1) * width)  # where the neighbouring run starts
    low = np.broadcast_to(np.minimum(other, size), (outer, size)).copy()
    high = np.broadcast_to(np.minimum(other + width, size), (outer, size)).copy()
    for _ in range(width.bit_length()):
        open_ = low < high
        middle = np.where(open_, (low + high) // 2, 0)
        there = [np.take_along_axis(row, middle, 1) for row in rows]
        # How many of the neighbouring run stand before me: those below me, and for the right run also equals.
        before = np.where(left, precedes(there, rows), ~precedes(rows, there))
        low = np.where(open_ & before, middle + 1, low)
        high = np.where(open_ & ~before, middle, high)
    passed = low - np.minimum(other, size)
    start = np.where(left, run * width, other)
    place = start + (column - run * width) + passed
    merged: list[Array] = []
    for row in rows:
        target = np.empty_like(row)
        np.put_along_axis(target, place, row, 1)
        merged.append(target)
    return merged


def _sort(caller: Caller, instruction: HloInstruction) -> Kernel:
    comparator = instruction.attr("to_apply", HloComputation)
    (axis,) = instruction.ints("dimensions")
    is_tuple = isinstance(instruction.shape, TupleShape)

    def precedes(a: Sequence[Array], b: Sequence[Array]) -> Array:
        pairs = [each for pair in zip(a, b, strict=True) for each in pair]
        return caller.run_lanes(comparator, pairs)[0]

    def kernel(values: Sequence[Value]) -> Value:
        arrays = arrays_of(values)
        moved = [np.moveaxis(array, axis, -1) for array in arrays]
        dims, size = moved[0].shape, moved[0].shape[-1]
        rows = [np.ascontiguousarray(each).reshape(-1, size) if each.size else each for each in moved]
        width = 1
        while width < size and moved[0].size:
            rows = _merge(rows, width, precedes)
            width *= 2
        back = tuple(np.moveaxis(row.reshape(dims), -1, axis) for row in rows)
        return back if is_tuple else back[0]

    return kernel


SORT = {"sort": _sort}
