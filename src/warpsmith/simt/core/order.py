"""Who is ordered after whom in a batch of blocks: what barriers of a block, a warp, and of some warps have ordered.

A barrier of the block gives all its threads a new time, one of a warp those that meet there.  A barrier of some of a
block's warps orders these alone, and through them whatever they were ordered after: `seen` says for each warp up to
which moment it knows what each other warp of its block did.  Moments are counted over the batch.
"""

from __future__ import annotations

import numpy as np

from warpsmith.arrays import Array
from warpsmith.simt.core.named_barriers import BARRIERS
from warpsmith.simt.core.results import WARP
from warpsmith.simt.core.shadow import Clock

__all__ = ["Order"]


class Order:
    """The threads of the blocks of these numbers, in order; `partial`: some barriers are of a part of a block."""

    def __init__(self, blocks: Array, per_block: int, warp_size: int = WARP, *, partial: bool = False) -> None:
        own = np.tile(np.arange(per_block, dtype=np.int64), blocks.shape[0])
        self.blocks = blocks
        self.per_block = per_block
        self.warp_size = warp_size
        self.warps = -(-per_block // warp_size)
        self.block: Array = blocks.repeat(per_block)
        self.thread = self.block * per_block + own
        self.warp = self.block * self.warps + own // warp_size
        first: Array = np.arange(blocks.shape[0], dtype=np.int64) * self.warps
        self.row: Array = np.repeat(first, per_block) + own // warp_size
        self.column = own % warp_size
        self._block_time = np.zeros(blocks.shape[0], np.int32)
        self._warp_time = np.zeros(self.thread.shape[0], np.int32)
        self._timed = False
        self._moment = 0
        self._seen = np.zeros((blocks.shape[0], self.warps, self.warps), np.int32) if partial else None
        # Of each barrier: when some of a block's warps last met there, and one of them; when the whole block last met.
        self._met, self._there = (np.zeros((blocks.shape[0], BARRIERS), np.int32) for _ in range(2))
        self._block_moment = np.zeros(blocks.shape[0], np.int32)

    def barrier(self, lanes: Array) -> None:
        """All threads of these threads' blocks have met."""
        self._timed = True
        blocks = np.unique(lanes // self.per_block)
        self._block_time[blocks] += 1
        self._block_moment[blocks] = self._moment

    def warp_barrier(self, mask: Array | None) -> None:
        """These threads have met the others of their warp."""
        self._timed = True
        self._warp_time[... if mask is None else mask] += 1
        if self._seen is not None:
            everyone = np.arange(self.thread.shape[0], dtype=np.int64)
            here = self._rows(everyone if mask is None else everyone[mask])
            block, warp = np.divmod(np.flatnonzero(here), self.warps)
            self._moment += 1
            self._seen[block, warp, warp] = self._moment

    def part_barrier(self, lanes: Array, group: Array, barrier: Array) -> Array:
        """Of these threads, those of one block and `group` have met at a barrier; they are whole warps.

        Returns those threads that don't know whether others, who met at the same barrier before, have all been there:
        on hardware they might meet with some of these.
        """
        self._timed = True
        self._warp_time[lanes] += 1
        if self._seen is None:
            return lanes[:0]
        self._moment += 1
        block = lanes // self.per_block
        keys, number = np.unique(np.stack([block, group]), axis=1, return_inverse=True)
        members = np.zeros((keys.shape[1], self.warps), np.bool_)
        members[number, self.row[lanes] % self.warps] = True
        known = self._seen[keys[0]]
        strangers = self._strangers(keys[0], number, barrier, members, known)[number, self.row[lanes] % self.warps]
        joint = np.where(members[:, :, None], known, 0).max(axis=1)
        joint = np.where(members, self._moment, joint)
        party, warp = np.nonzero(members)
        self._seen[keys[0][party], warp] = joint[party]
        return lanes[strangers]

    def _strangers(self, block: Array, number: Array, barrier: Array, members: Array, known: Array) -> Array:
        """Of each party's warps, those that don't know of the last meeting at its barrier; now it's this one."""
        at = np.zeros(block.shape[0], np.int64)
        at[number] = barrier % BARRIERS
        last, there = self._met[block, at], self._there[block, at]
        self._met[block, at], self._there[block, at] = self._moment, members.argmax(axis=1)
        unaware = known[np.arange(block.shape[0]), :, there] < last[:, None]
        return members & unaware & (last > self._block_moment[block])[:, None]

    def _rows(self, lanes: Array) -> Array:
        """Which warps of the batch have all their threads among these."""
        count = self.blocks.shape[0] * self.warps
        return np.bincount(self.row[lanes], minlength=count) == np.bincount(self.row, minlength=count)

    def clock(self, who: Array | None) -> Clock:
        """The time of these threads (None: each one)."""
        thread, block, warp, warp_time = (
            each if who is None else each[who] for each in (self.thread, self.block, self.warp, self._warp_time)
        )
        if not self._timed:
            block_time = warp_time  # all are 0
        else:
            own = np.repeat(self._block_time, self.per_block)
            block_time = own if who is None else own[who]
        if self._seen is None:
            return Clock(thread, block, warp, block_time, warp_time)
        place = self.row if who is None else self.row[who]
        return Clock(thread, block, warp, block_time, warp_time, place, self._moment, self._seen)
