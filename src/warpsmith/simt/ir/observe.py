"""What the interpreter of IR tells a watch: accesses, barriers, shuffles, branches; and the checks on the latter.

Without a watch only torn barriers are looked for, as a block would hang there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpsmith.arrays import Array
from warpsmith.ir.core.ssa import Operation
from warpsmith.simt.core.checks import fail, torn_block
from warpsmith.simt.core.named_barriers import HELP as NAMED_BARRIER_HELP
from warpsmith.simt.core.named_barriers import meet
from warpsmith.simt.core.results import Finding, words
from warpsmith.simt.core.watch import Access
from warpsmith.simt.ir.interpreter import Frame, Interpreter
from warpsmith.simt.ir.memory import Buffer, where_from
from warpsmith.simt.ir.op_classes import site_of

__all__ = ["Elements", "barrier", "matrix", "part_barrier", "parted", "saw", "saw_lanes", "shuffle", "whole_warp"]


@dataclass(frozen=True, slots=True)
class Elements:
    """What an op does to memory: `size` bytes of a buffer from the byte `start` of each active thread on.

    A store's `value` isn't there yet.  `whole`: that other threads don't access is no loss.
    """

    kind: str
    buffer: Buffer
    start: Array
    size: int
    active: Array | None
    value: Array | None = None
    whole: bool = False


def saw(interpreter: Interpreter, frame: Frame, op: Operation, made: Elements) -> None:
    """An access of each active thread."""
    watch, tracked = interpreter.machine.watch, made.buffer.tracked
    if watch is None or tracked is None:
        return
    threads, start = frame.threads, made.start
    lanes = None if made.active is None else np.flatnonzero(np.broadcast_to(made.active, (threads,)))
    if lanes is not None and start.shape[0] > 1:
        start = start[lanes]

    def new() -> Array:
        assert made.value is not None
        data = np.ascontiguousarray(np.broadcast_to(made.value, (threads, *made.value.shape[1:])))
        rows = data.reshape(threads, -1).view(np.uint8)
        return rows if lanes is None else rows[lanes]

    turns = threads // watch.threads
    stored = new if made.kind == "store" else None
    watch.access(op, Access(made.kind, tracked, start, made.size, lanes, turns, stored, made.whole))


def saw_lanes(interpreter: Interpreter, frame: Frame, op: Operation, made: Elements) -> None:
    """The same where each lane of a vector has an address and a mask of its own: so many accesses one after another."""
    watch, tracked, active = interpreter.machine.watch, made.buffer.tracked, made.active
    if watch is None or tracked is None or active is None:
        return
    shape = (frame.threads, active.shape[-1])
    lanes = np.flatnonzero(np.broadcast_to(active, shape))

    def new() -> Array:
        assert made.value is not None
        return np.ascontiguousarray(np.broadcast_to(made.value, shape)).reshape(-1, 1).view(np.uint8)[lanes]

    flat = np.broadcast_to(made.start, shape).reshape(-1)[lanes]
    turns = shape[0] * shape[1] // watch.threads
    stored = new if made.kind == "store" else None
    watch.access(op, Access(made.kind, tracked, flat, made.size, lanes, turns, stored))


def barrier(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    """All threads of a block must be here, or none: CheckFailed otherwise."""
    machine, mask = interpreter.machine, frame.mask
    if machine.watch is not None:
        machine.watch.barrier(mask)
    torn = None if mask is None else torn_block(mask, None, machine.blocks, machine.threads_per_block)
    if torn is None:
        return
    _, here, away, lane = torn
    cause = f"{op.name}: {here} threads of a block wait here, {away} are elsewhere; one of these is"
    finding, who = _finding(interpreter, frame, op, "barrier-divergence", cause, lane, away)
    fail(
        finding,
        cause=f"{cause} {who}{where_from(op)}",
        help="a barrier in a branch hangs unless all threads of the block take the branch",
    )


def shuffle(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    """All threads of a warp must take part, or none."""
    watch = interpreter.machine.watch
    if watch is not None:
        watch.shuffle(frame.mask, frame.threads)
    whole_warp(interpreter, frame, op)


def whole_warp(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    """The same without an exchange of values."""
    machine, mask = interpreter.machine, frame.mask
    torn = None if mask is None or machine.watch is None else machine.watch.torn_warp(mask)
    if torn is None:
        return
    cause = f"{op.name} waits for a lane that doesn't run it"
    finding, _ = _finding(interpreter, frame, op, "shuffle-divergence", cause, *torn)
    machine.findings.add(finding, (finding.code, op))


def part_barrier(interpreter: Interpreter, frame: Frame, op: Operation, number: Array, count: Array) -> None:
    """Threads meet at a barrier of `count` of a block: CheckFailed where it can't be reached by as many."""
    machine = interpreter.machine
    meeting = meet(frame.mask, number, count, machine.blocks, machine.threads_per_block)
    mixed = None if machine.watch is None else machine.watch.part_barrier(meeting)
    trouble = meeting.trouble or mixed
    if trouble is None:
        return
    cause = f"{op.name}: {trouble.cause}"
    finding, who = _finding(interpreter, frame, op, trouble.code, cause, trouble.lane, trouble.count)
    if trouble.code == "barrier-members":
        machine.findings.add(finding, (trouble.code, op))
        return
    fail(finding, cause=f"{cause}; {who} is elsewhere{where_from(op)}", help=NAMED_BARRIER_HELP)


def matrix(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    """All 32 lanes of a warp must take part, or none."""
    machine = interpreter.machine
    short = None if machine.watch is None else machine.watch.short_warp(frame.mask)
    if short is None:
        return
    cause = f"{op.name} is run by a part of a warp; it takes all 32 lanes"
    finding, _ = _finding(interpreter, frame, op, "matrix-divergence", cause, *short)
    machine.findings.add(finding, (finding.code, op))


def _finding(
    interpreter: Interpreter, frame: Frame, op: Operation, code: str, cause: str, lane: int, count: int
) -> tuple[Finding, str]:
    """What `count` threads did wrong at an op, `lane` of the batch among them; and who that is, in words."""
    block, thread = interpreter.machine.place(lane, frame.threads)
    who = f"block {words(block)}, thread {words(thread)}"
    return Finding(code, cause, site_of(op), block=block, thread=thread, count=count), who


def parted(interpreter: Interpreter, frame: Frame, some: Array, others: Array) -> None:
    """Active threads go two ways."""
    watch = interpreter.machine.watch
    if watch is not None and some.any() and others.any():
        watch.parted(some, others, frame.threads)
