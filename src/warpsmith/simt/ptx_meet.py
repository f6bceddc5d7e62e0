"""Instructions by which threads meet, to steps: barriers, shuffles, votes, matches, reductions over a warp."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpsmith.simt.ptx_machine import Frame, Mask, Step
from warpsmith.simt.ptx_module import Pair, Register, Sink
from warpsmith.simt.ptx_operands import Context
from warpsmith.simt.ptx_round import Array
from warpsmith.simt.ptx_values import UNSIGNED, writer
from warpsmith.simt.ptx_warp import REDUCTIONS, ballot, match_any, shuffle, votes

__all__ = ["MEET"]


def _barrier(context: Context) -> Step:
    """bar.sync and barrier.sync; bar.warp.sync waits for nothing, in lockstep."""
    instruction, flags = context.instruction, context.form.flags
    if "warp" in flags:
        return _warp_barrier
    if "sync" not in flags or len(context.operands) > 1:
        context.unknown()
    return lambda frame, mask: frame.batch.barrier(instruction, mask)


def _warp_barrier(frame: Frame, mask: Mask) -> None:
    watch = frame.batch.launch.watch
    if watch is not None:
        watch.barrier(mask, of_warp=True)


def _slots(context: Context) -> tuple[int | None, int | None]:
    target = context.operands[0]
    pair = target if isinstance(target, Pair) else Pair(target, Sink())
    first, second = (each.slot if isinstance(each, Register) else None for each in (pair.first, pair.second))
    return first, second


def _check_members(frame: Frame, members: Array, mask: Mask, opcode: str, line: int) -> None:
    """A thread that runs the instruction must be in its own member mask."""
    lanes = frame.batch.warps.lane
    absent = ((members >> lanes) & np.uint32(1)) == 0
    if mask is not None:
        absent = absent & mask
    if absent.any():
        frame.batch.launch.counts.find(f"line {line}: {opcode} is run by a lane that its member mask leaves out")


def _shuffle(context: Context) -> Step:
    form, operands, instruction = context.form, context.operands, context.instruction
    mode = next((m for m in ("up", "down", "bfly", "idx") if m in form.flags), "")
    if not mode or form.type != "b32":
        context.unknown()
    value, amount, clamp = (context.value(o, "b32") for o in operands[1:4])
    members = context.value(operands[4], "b32") if len(operands) > 4 else None
    target, predicate = _slots(context)

    def step(frame: Frame, mask: Mask) -> None:
        if members is not None:
            _check_members(frame, members(frame), mask, instruction.opcode, instruction.text_line)
        moved, valid, missing = shuffle(frame.batch.warps, mode, value(frame), amount(frame), clamp(frame), mask)
        lost = missing & valid if mask is None else missing & valid & mask
        if lost.any():
            where = f"line {instruction.text_line}: {instruction.opcode}"
            who = frame.batch.who(int(np.flatnonzero(lost)[0]))
            frame.batch.launch.counts.find(f"{where} takes a value from a lane that doesn't run it ({who})")
        if target is not None:
            frame.write(target, moved, mask)
        if predicate is not None:
            frame.write(predicate, valid, mask)

    return step


def _vote(context: Context) -> Step:
    form, operands = context.form, context.operands
    name = next((n for n in ("all", "any", "uni", "ballot") if n in form.flags), "")
    target = context.register(operands[0])
    predicate = context.value(operands[1], "pred")
    if not name:
        context.unknown()

    def step(frame: Frame, mask: Mask) -> None:
        warps = frame.batch.warps
        found = (
            ballot(warps, predicate(frame), mask) if name == "ballot" else votes(warps, name, predicate(frame), mask)
        )
        frame.write(target.slot, found, mask)

    return step


def _active_mask(context: Context) -> Step:
    target = context.register(context.operands[0])
    everyone = np.ones(1, np.bool_)
    return lambda frame, mask: frame.write(target.slot, ballot(frame.batch.warps, everyone, mask), mask)


def _match(context: Context) -> Step:
    form = context.form
    value = context.value(context.operands[1], form.type)
    target, predicate = _slots(context)
    if "any" not in form.flags and "all" not in form.flags:
        context.unknown()

    def step(frame: Frame, mask: Mask) -> None:
        same = match_any(frame.batch.warps, value(frame), mask)
        if "all" in form.flags:
            everyone = ballot(frame.batch.warps, np.ones(1, np.bool_), mask)
            agree = same == everyone
            same = np.where(agree, same, np.uint32(0))
            if predicate is not None:
                frame.write(predicate, agree, mask)
        if target is not None:
            frame.write(target, same, mask)

    return step


def _reduce(context: Context) -> Step:
    form, operands = context.form, context.operands
    name = next((n for n in REDUCTIONS if n in form.flags), "")
    if not name or form.type not in ("u32", "s32", "b32"):
        context.unknown()
    value, target = context.value(operands[1], form.type), context.register(operands[0])
    write, function = writer(form.type), REDUCTIONS[name]
    return lambda frame, mask: frame.write(target.slot, write(function(frame.batch.warps, value(frame), mask)), mask)


def _elect(context: Context) -> Step:
    """elect.sync: the first active lane of each warp."""
    target, predicate = _slots(context)

    def step(frame: Frame, mask: Mask) -> None:
        active = ballot(frame.batch.warps, np.ones(1, np.bool_), mask)
        lowest = np.bitwise_count((active & (~active + np.uint32(1))) - np.uint32(1)).astype(UNSIGNED[32])
        if target is not None:
            frame.write(target, lowest, mask)
        if predicate is not None:
            frame.write(predicate, frame.batch.warps.lane == lowest, mask)

    return step


MEET: dict[str, Callable[[Context], Step]] = {
    "bar": _barrier,
    "barrier": _barrier,
    "shfl": _shuffle,
    "vote": _vote,
    "activemask": _active_mask,
    "match": _match,
    "redux": _reduce,
    "elect": _elect,
}
"""How instructions that several threads run together become steps."""
