"""cp.async and its groups, to steps: copies from global to shared memory that a thread starts and waits for later."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from warpsmith.arrays import Array
from warpsmith.simt.core import async_copies
from warpsmith.simt.core.tracked import Copy, End
from warpsmith.simt.ptx.instructions.access import window_of
from warpsmith.simt.ptx.machine import Frame, Mask, Step
from warpsmith.simt.ptx.memory import Memory, MemoryFault
from warpsmith.simt.ptx.operands import Context, Fetch
from warpsmith.simt.ptx.text.module import Immediate, Register

__all__ = ["ASYNC"]


def _async(context: Context) -> Step:
    """cp.async; the rest of cp (bulk copies, reductions) isn't known."""
    flags = context.form.flags
    if "async" not in flags or flags & {"bulk", "mbarrier"}:
        context.unknown()
    if "commit_group" in flags:
        return lambda frame, mask: frame.batch.copies.commit(mask)
    if "wait_group" in flags or "wait_all" in flags:
        return _wait(context)
    return _copy(context)


def _wait(context: Context) -> Step:
    """wait_group N; wait_all, which commits what isn't committed and waits for it."""
    instruction, everything = context.instruction, "wait_all" in context.form.flags
    most = 0
    if not everything:
        (operand,) = context.operands
        if not isinstance(operand, Immediate):
            context.unknown()
        most = operand.value

    def step(frame: Frame, mask: Mask) -> None:
        batch = frame.batch
        if everything:
            batch.copies.commit(mask)
        async_copies.wait(batch.copies, batch.run.watch, mask, most, id(instruction))

    return step


def _filled(context: Context, size: int) -> Fetch:
    """How many bytes each thread reads; the rest of what it writes is zero."""
    more = context.operands[3:]
    if "L2::cache_hint" in context.form.flags:
        more = more[:-1]
    if not more:
        whole = np.array([size], np.int64)
        return lambda frame: whole
    (operand,) = more
    if isinstance(operand, Register) and operand.type == "pred":  # ignore-src
        ignored = context.value(operand, "pred")
        return lambda frame: np.where(ignored(frame), 0, size)
    count = context.value(operand, "u32")
    return lambda frame: count(frame).astype(np.int64)


def _copy(context: Context) -> Step:
    instruction, operands = context.instruction, context.operands
    if len(operands) < 3 or not isinstance(operands[2], Immediate):
        context.unknown()
    size = operands[2].value
    if size not in (4, 8, 16) or ("cg" in context.form.flags and size != 16):
        context.unknown()
    named, target = context.address(operands[0])
    _, source = context.address(operands[1])
    filled = _filled(context, size)
    space = window_of(named or "shared")

    def step(frame: Frame, mask: Mask) -> None:
        batch = frame.batch
        everyone = np.ones(batch.threads, np.bool_) if mask is None else np.broadcast_to(mask, (batch.threads,))
        to, at = (np.broadcast_to(each(frame), (batch.threads,)) for each in (target, source))
        count = np.broadcast_to(filled(frame), (batch.threads,))
        more = everyone & (count > size)
        if more.any():
            lane = int(more.argmax())
            batch.fail(instruction, f"a copy of {size} bytes can't read {int(count[lane])}", lane)
        try:
            (place,) = batch.memory.places(space, to, size, everyone)
            start = np.zeros(batch.threads, np.int64)
            start[everyone] = place.positions * size
            for lanes, end, held in _sources(batch.memory, at, count, size, everyone):
                goal = End(place.region.data, start[lanes], place.region.tracked)
                copy = Copy(id(instruction), lanes, end, goal, size, held)
                async_copies.start(batch.copies, batch.run.watch, copy)
        except MemoryFault as fault:
            batch.fault(instruction, fault)

    return step


def _sources(
    memory: Memory, address: Array, count: Array, size: int, everyone: Array
) -> Iterator[tuple[Array, End, int]]:
    """The threads that read as many bytes of one buffer, where these begin, and how many they are."""
    for held in np.unique(count[everyone]).tolist():
        mask = everyone & (count == held)
        if held == 0:
            lanes = np.flatnonzero(mask)
            yield lanes, End(np.zeros(1, np.uint8), np.zeros(lanes.shape[0], np.int64)), 0
            continue
        width = size if held == size else 1
        if width == 1:  # no address past the last byte is read
            crooked = np.flatnonzero(mask & (address % np.uint64(size) != 0))
            if crooked.size:
                where = memory.describe(int(address[crooked[0]]))
                raise MemoryFault("misaligned", f"{size} bytes at {where}, aren't aligned to {size}", int(crooked[0]))
            memory.places("", address + np.uint64(held - 1), 1, mask)
        for place in memory.places("", address, width, mask):
            lanes = np.flatnonzero(mask) if place.lanes is None else place.lanes
            start = np.broadcast_to(place.positions * width, lanes.shape)
            yield lanes, End(place.region.data, start, place.region.tracked), held


ASYNC: dict[str, Callable[[Context], Step]] = {"cp": _async}
"""How asynchronous copies become steps."""
