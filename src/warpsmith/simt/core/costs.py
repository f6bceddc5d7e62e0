"""Accesses of threads as accesses of warps: a row of addresses each, what they cost, and the counters of each place."""

from __future__ import annotations

import numpy as np

from warpsmith.arrays import Array
from warpsmith.simt.core.order import Order
from warpsmith.simt.core.results import SECTOR, AccessCounters
from warpsmith.simt.core.tracked import Tracked
from warpsmith.simt.core.traffic import meeting_lanes, sectors, wavefronts

__all__ = ["add_cost"]


def add_cost(
    counters: AccessCounters,
    order: Order,
    buffer: Tracked,
    start: Array,
    lanes: Array | None,
    turns: int,
    *,
    whole: bool,
) -> None:
    """Add what an access costs to the counters of its place.

    `start` has the first byte of each access, one a thread or `turns` of them, of the numbers `lanes`.  `whole`: lanes
    that don't access are no loss, such as those of ldmatrix that give no place.
    """
    kind, size = counters.kind, counters.bytes
    addresses, active, present = _warp_rows(order, start, lanes, turns)
    counters.warps += addresses.shape[0]
    counters.threads += addresses.size if active is None else int(np.count_nonzero(active))
    if active is not None and not whole:
        counters.partial += int((np.count_nonzero(active, axis=1) < present).sum())
    if buffer.space == "shared":
        turned, least = wavefronts(addresses % max(1, buffer.copy), active, size)
        counters.wavefronts += turned
        counters.ideal_wavefronts += least
    else:
        touched, least = sectors(addresses, active, size)
        counters.sectors += touched
        counters.ideal_sectors += least
        if buffer.read is not None and buffer.written is not None:
            for marks, wanted in ((buffer.read, kind != "store"), (buffer.written, kind != "load")):
                if wanted:
                    marks[start // SECTOR] = True
                    marks[(start + (size - 1)) // SECTOR] = True
    if kind == "atomic":
        most, sum_ = meeting_lanes(addresses, active)
        counters.contention = max(counters.contention, most)
        counters.turns += sum_


def _warp_rows(order: Order, start: Array, lanes: Array | None, turns: int) -> tuple[Array, Array | None, Array]:
    """Addresses, a row a warp access; which are of active lanes (None: all); and how many threads it has."""
    width = order.warp_size
    last = order.per_block - (order.warps - 1) * width
    whole = np.full(order.warps, width)
    whole[-1] = last
    if lanes is None and last == width:
        rows = start.reshape(-1, width, turns).swapaxes(1, 2).reshape(-1, width)
        return np.ascontiguousarray(rows), None, whole
    who = np.arange(order.thread.shape[0] * turns, dtype=np.int64) if lanes is None else lanes
    thread = who if turns == 1 else who // turns
    row = order.row[thread]
    if turns > 1:
        row = row * turns + who % turns
    used = np.zeros(order.blocks.shape[0] * order.warps * turns, np.bool_)
    used[row] = True
    number = np.cumsum(used) - 1
    kept = np.flatnonzero(used)
    addresses = np.zeros((kept.shape[0], width), np.int64)
    active = np.zeros((kept.shape[0], width), np.bool_)
    place = number[row], order.column[thread]
    addresses[place] = start
    active[place] = True
    return addresses, active, whole[kept // turns % order.warps]
