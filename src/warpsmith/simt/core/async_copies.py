"""Asynchronous copies as both machines run them: started, committed to a group, awaited; each step told to a watch.

A copy reads and writes when it starts, as far as races go; then nobody may touch what it writes, nor write what it
reads, until its own thread has waited for its group; and then it's as if this thread had written at that moment, so
that others need a barrier after it.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from warpsmith.arrays import Array
from warpsmith.simt.core.tracked import Copy, End, Flight, Groups
from warpsmith.simt.core.watch import Access, Watch

__all__ = ["start", "wait"]


def start(groups: Groups, watch: Watch | None, copy: Copy) -> None:
    """Start copies, which are in bounds and aligned."""
    source, target = copy.source, copy.target
    if watch is not None:
        _saw(watch, copy, "load", source, copy.filled)
        _saw(watch, copy, "store", target, copy.size)
    groups.start(copy)
    if watch is None:
        return
    if source.tracked is not None and not source.tracked.read_only and copy.filled:
        source.tracked.leaving = _flight(source.tracked.leaving, source.data)
        source.tracked.leaving.begin(copy, source.start, copy.filled)
    if target.tracked is not None:
        target.tracked.arriving = _flight(target.tracked.arriving, target.data)
        target.tracked.arriving.begin(copy, target.start, copy.size)


def _flight(known: Flight | None, data: Array) -> Flight:
    return Flight(data.size) if known is None else known


def _saw(watch: Watch, copy: Copy, kind: str, end: End, size: int) -> None:
    if end.tracked is not None and size:
        rows = np.arange(copy.lanes.shape[0], dtype=np.int64)
        made = Access(kind, end.tracked, end.start, size, copy.lanes, new=lambda: copy.bytes(rows))
        watch.access(copy.key, made)


def wait(groups: Groups, watch: Watch | None, mask: Array | None, most: int, key: Hashable) -> None:
    """These threads wait until at most `most` of their groups are in flight."""
    for copy, rows in groups.wait(mask, most, key):
        if watch is None:
            continue
        source, target = copy.source, copy.target
        if source.tracked is not None and source.tracked.leaving is not None and copy.filled:
            source.tracked.leaving.end(copy, source.start[rows], copy.filled)
        if target.tracked is not None and target.tracked.arriving is not None:
            target.tracked.arriving.end(copy, target.start[rows], copy.size)
            watch.arrived(copy.key, key, target.tracked, target.start[rows], copy.size, copy.lanes[rows])
