"""Instructions by which the threads of a warp meet: shfl, vote, match, redux, activemask.

A block's threads are numbered x fastest; each 32 of them are a warp.  `Warps` maps threads to slots of whole warps, so
that a warp is a row of 32, the last one of a block perhaps not full.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from warpsmith.arrays import Array
from warpsmith.simt.core.results import WARP

__all__ = ["REDUCTIONS", "Warps", "ballot", "match_any", "shuffle", "votes"]


class Warps:
    """The warps of a batch of blocks."""

    def __init__(self, blocks: int, per_block: int) -> None:
        self.threads = blocks * per_block
        self.per_block = per_block
        self.rows = -(-per_block // WARP)
        self.blocks = blocks
        self.full = per_block % WARP == 0

    @cached_property
    def slot(self) -> Array:
        """Each thread's slot."""
        thread = np.arange(self.threads, dtype=np.int64)
        return thread // self.per_block * (self.rows * WARP) + thread % self.per_block

    @cached_property
    def lane(self) -> Array:
        """Each thread's place in its warp."""
        return (np.arange(self.threads, dtype=np.int64) % self.per_block % WARP).astype(np.uint32)

    def spread(self, values: Array, fill: int | bool = 0) -> Array:
        """One row a warp; slots without a thread hold `fill`."""
        values = np.broadcast_to(values, (self.threads,))
        if self.full:
            return values.reshape(-1, WARP)
        rows = np.full(self.blocks * self.rows * WARP, fill, values.dtype)
        rows[self.slot] = values
        return rows.reshape(-1, WARP)

    def gather(self, rows: Array) -> Array:
        """One item a thread again; a row may have one item for the whole warp."""
        if rows.shape[1] == 1:
            rows = np.broadcast_to(rows, (rows.shape[0], WARP))
        flat = rows.reshape(-1)
        return flat if self.full else flat[self.slot]

    def active(self, mask: Array | None) -> Array:
        """Which slots hold an active thread."""
        everyone = np.ones(1, np.bool_) if mask is None else mask
        return self.spread(everyone, False)

    @cached_property
    def whole(self) -> Array:
        """How many threads each warp has."""
        return np.count_nonzero(self.active(None), axis=1)

    def count(self, mask: Array) -> tuple[int, int]:
        """How many warps have an active thread, and how many have no other."""
        here = np.count_nonzero(self.active(mask), axis=1)
        return int(np.count_nonzero(here)), int(np.count_nonzero(here == self.whole))


def shuffle(
    warps: Warps, mode: str, value: Array, operand: Array, clamp: Array, mask: Array | None
) -> tuple[Array, Array, Array]:
    """shfl.sync: each thread's value from another lane; whether that lane was in range; whether it is inactive."""
    lane = warps.lane
    amount, bound = operand & np.uint32(31), clamp & np.uint32(31)
    segment = (clamp >> np.uint32(8)) & np.uint32(31)
    last = (lane & segment) | (bound & ~segment & np.uint32(31))
    first = lane & segment
    signed = lane.astype(np.int64)
    if mode == "up":
        source = signed - amount.astype(np.int64)
        valid = source >= last.astype(np.int64)
    else:
        if mode == "down":
            source = signed + amount.astype(np.int64)
        elif mode == "bfly":
            source = signed ^ amount.astype(np.int64)
        else:
            source = (first | (amount & ~segment & np.uint32(31))).astype(np.int64)
        valid = source <= last.astype(np.int64)
    source = np.where(valid, source, signed)
    slot = warps.slot - signed + source
    flat = warps.spread(value).reshape(-1)
    missing = (warps.active(None) & ~warps.active(mask)).reshape(-1)[slot]
    return flat[slot], valid, missing


def ballot(warps: Warps, predicate: Array, mask: Array | None) -> Array:
    """A word with a bit for each active lane whose predicate holds."""
    bits = warps.spread(predicate, False) & warps.active(mask)
    packed = np.packbits(bits, axis=1, bitorder="little").view(np.uint32)
    return warps.gather(packed)


def votes(warps: Warps, name: str, predicate: Array, mask: Array | None) -> Array:
    """vote.all, .any, .uni over the active lanes."""
    active = warps.active(mask)
    held = warps.spread(predicate, False)
    every: Array = np.logical_and.reduce(held | ~active, axis=1, keepdims=True)
    some: Array = np.logical_or.reduce(held & active, axis=1, keepdims=True)
    table: dict[str, Array] = {"all": every, "any": some, "uni": every | ~some}
    return warps.gather(table[name])


def match_any(warps: Warps, value: Array, mask: Array | None) -> Array:
    """match.any: for each lane the lanes that hold the same value."""
    rows, active = warps.spread(value), warps.active(mask)
    same = (rows[:, :, None] == rows[:, None, :]) & active[:, None, :]
    packed = np.packbits(same, axis=2, bitorder="little").view(np.uint32)[:, :, 0]
    return warps.gather(packed)


def _reduction(function: np.ufunc, neutral: Callable[[np.dtype[np.uint32]], int]) -> Callable[..., Array]:
    def reduce(warps: Warps, value: Array, mask: Array | None) -> Array:
        rows = np.where(warps.active(mask), warps.spread(value), value.dtype.type(neutral(value.dtype)))
        return warps.gather(function.reduce(rows, axis=1, keepdims=True, dtype=value.dtype))

    return reduce


REDUCTIONS: dict[str, Callable[..., Array]] = {
    "add": _reduction(np.add, lambda dtype: 0),
    "min": _reduction(np.minimum, lambda dtype: int(np.iinfo(dtype).max)),
    "max": _reduction(np.maximum, lambda dtype: int(np.iinfo(dtype).min)),
    "and": _reduction(np.bitwise_and, lambda dtype: -1 if dtype.kind == "i" else int(np.iinfo(dtype).max)),
    "or": _reduction(np.bitwise_or, lambda dtype: 0),
    "xor": _reduction(np.bitwise_xor, lambda dtype: 0),
}
"""redux.sync over the active lanes, on integers."""
