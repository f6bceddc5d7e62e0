"""Watching memory while PTX runs: how well warps' accesses fit the hardware, and races in shared memory.

Global memory moves in sectors of 32 bytes: a warp's access costs as many as it touches.  Shared memory has 32 banks of
four bytes: lanes that want different words of one bank wait for one another, in groups of lanes that together ask for
at most 128 bytes.  Two accesses to a byte of shared memory race if they're of two threads, one at least is a write, and
no barrier (of the block, or of the warp that both belong to) lies between them; atomics don't race with one another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpsmith.simt.ptx_memory import Place
from warpsmith.simt.ptx_round import Array
from warpsmith.simt.ptx_warp import WARP, Warps

__all__ = ["Traffic", "Watch"]

_SECTOR = 32
_BANKS = 32


@dataclass(slots=True)
class Traffic:
    """What one instruction cost: `requests` of warps, in `steps` (sectors of global memory, or turns of the banks of
    shared memory), where `least` would have done for as many bytes.
    """

    text: str
    kind: str
    space: str
    requests: int = 0
    steps: int = 0
    least: int = 0


class Watch:
    """Sees each access of a launch.  `begin_batch` gives it fresh shared memory."""

    def __init__(self) -> None:
        self.traffic: dict[int, Traffic] = {}
        self.races: dict[tuple[int, int], str] = {}
        self.warps = Warps(1, 1)
        self.epoch: Array = np.zeros(1, np.int64)
        self.warp_epoch: Array = np.zeros(1, np.int64)
        self.writes = _Marks(0)
        self.reads = _Marks(0)

    def begin_batch(self, warps: Warps, shared_bytes: int) -> None:
        self.warps = warps
        self.epoch = np.zeros(warps.blocks, np.int64)
        self.warp_epoch = np.zeros(warps.blocks * warps.rows, np.int64)
        self.writes, self.reads = _Marks(shared_bytes), _Marks(shared_bytes)

    def barrier(self, mask: Array | None, of_warp: bool) -> None:
        """These threads have met: what they did before is ordered before what they do now."""
        lanes = np.arange(self.warps.threads) if mask is None else np.flatnonzero(mask)
        if of_warp:
            self.warp_epoch[np.unique(self.warps.slot[lanes] // WARP)] += 1
        else:
            self.epoch[np.unique(lanes // self.warps.per_block)] += 1

    def access(self, line: int, text: str, kind: str, place: Place, total: int, mask: Array | None) -> None:
        """One instruction's access of `total` bytes a lane; a store's data is in memory already."""
        lanes = place.lanes
        if lanes is None:
            lanes = np.arange(self.warps.threads) if mask is None else np.flatnonzero(mask)
        positions = np.broadcast_to(place.positions, lanes.shape)
        shared = place.region.copy > 0
        if shared and place.region.name != "shared memory":
            return
        row = self.traffic.get(line)
        if row is None:
            row = self.traffic[line] = Traffic(text, kind, "shared" if shared else "global")
        warp = self.warps.slot[lanes] // WARP
        row.requests += np.unique(warp).shape[0]
        if shared:
            start = positions * total % place.region.copy
            self._banks(row, self.warps.slot[lanes], start, total)
            self._races(line, kind, lanes, positions * total, total)
        else:
            self._sectors(row, warp, positions, total)

    @staticmethod
    def _sectors(row: Traffic, warp: Array, positions: Array, total: int) -> None:
        row.steps += _pairs(warp, positions * total // _SECTOR)[0].shape[0]
        asked, _ = _pairs(warp, positions)  # lanes that ask for the same bytes share them
        _, count = np.unique(asked, return_counts=True)
        row.least += int((-(-count * total // _SECTOR)).sum())

    @staticmethod
    def _banks(row: Traffic, slot: Array, start: Array, total: int) -> None:
        words = max(1, total // 4)
        group = slot // max(1, WARP // words)
        word = (start // 4)[:, None] + np.arange(words)
        groups, found = _pairs(np.repeat(group, words), word.reshape(-1))
        keys, count = np.unique(groups * _BANKS + found % _BANKS, return_counts=True)
        _, first = np.unique(keys // _BANKS, return_index=True)
        row.steps += int(np.maximum.reduceat(count, first).sum())
        row.least += first.shape[0]

    # -- races
    def _races(self, line: int, kind: str, lanes: Array, start: Array, total: int) -> None:
        where = (start[:, None] + np.arange(total)).reshape(-1)
        who = np.repeat(lanes, total)
        block_epoch = self.epoch[who // self.warps.per_block]
        warp = self.warps.slot[who] // WARP
        warp_epoch = self.warp_epoch[warp]
        atomic = kind == "atomic"
        others = [self.writes] if kind == "load" else [self.writes, self.reads]
        for marks in others:
            meets = (marks.epoch[where] == block_epoch) & (marks.lane[where] != who)
            meets &= (marks.warp[where] != warp) | (marks.warp_epoch[where] == warp_epoch)
            if atomic:
                meets &= ~marks.atomic[where]
            for index in np.flatnonzero(meets)[:1].tolist():
                self._note(line, int(marks.line[where[index]]), kind, marks is self.writes, int(where[index]))
        mine = self.reads if kind == "load" else self.writes
        mine.put(where, who, warp, block_epoch, warp_epoch, line, atomic)

    def _note(self, line: int, other: int, kind: str, after_write: bool, where: int) -> None:
        key = (min(line, other), max(line, other))
        if key not in self.races:
            verb = {"load": "reads", "store": "writes"}.get(kind, "changes")
            self.races[key] = (
                f"line {line} {verb} a byte of shared memory that line {other} {'writes' if after_write else 'reads'} "
                f"in another thread, with no barrier between them (byte {where} of the batch)"
            )


def _pairs(first: Array, second: Array) -> tuple[Array, Array]:
    """The different pairs of two arrays of numbers from 0, in order."""
    span = int(second.max()) + 1
    keys = np.unique(first * span + second)
    return keys // span, keys % span


class _Marks:
    """For each byte of a batch's shared memory, the last access of a kind: by which lane and warp (-1: several of them
    since the last barrier), when, at which line.
    """

    def __init__(self, size: int) -> None:
        self.lane = np.full(size, -2, np.int64)
        self.warp = np.full(size, -2, np.int64)
        self.epoch = np.full(size, -1, np.int64)
        self.warp_epoch = np.full(size, -1, np.int64)
        self.line = np.zeros(size, np.int32)
        self.atomic = np.zeros(size, np.bool_)

    def put(
        self, where: Array, who: Array, warp: Array, epoch: Array, warp_epoch: Array, line: int, atomic: bool
    ) -> None:
        current = self.epoch[where] == epoch
        for marks, owner in ((self.lane, who), (self.warp, warp)):
            several = current & (marks[where] != owner)
            marks[where] = owner
            marks[where[several | (marks[where] != owner)]] = -1
        self.epoch[where] = epoch
        self.warp_epoch[where] = warp_epoch
        self.line[where] = line
        self.atomic[where] = atomic
