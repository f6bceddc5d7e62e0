"""Instructions by which threads meet, to steps: barriers, shuffles, votes, matches, reductions over a warp."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpsmith.arrays import Array
from warpsmith.simt.core.checks import torn_block
from warpsmith.simt.core.named_barriers import BARRIERS, HELP, meet
from warpsmith.simt.core.results import WARP
from warpsmith.simt.ptx.instructions.warp import REDUCTIONS, ballot, match_any, shuffle, votes
from warpsmith.simt.ptx.machine import Frame, Mask, Step
from warpsmith.simt.ptx.operands import Context
from warpsmith.simt.ptx.text.module import Immediate, Instruction, Pair, Register, Sink
from warpsmith.simt.ptx.values import UNSIGNED, writer

__all__ = ["MEET"]


def _barrier(context: Context) -> Step:
    """bar.sync and barrier.sync, of the block or of so many threads; bar.warp.sync waits for nothing, in lockstep."""
    instruction, flags = context.instruction, context.form.flags
    if "warp" in flags:
        return _warp_barrier
    if "sync" not in flags:
        context.unknown()
    if len(context.operands) > 1:
        return _part_barrier(context)
    if not context.operands:
        context.unknown()
    number = context.operands[0]
    if isinstance(number, Immediate) and not 0 <= number.value < BARRIERS:
        context.fail(f"barrier {number.value}: a block has barriers 0 to {BARRIERS - 1}")
    return lambda frame, mask: _block_barrier(frame, instruction, mask)


def _block_barrier(frame: Frame, instruction: Instruction, mask: Mask) -> None:
    """All threads of a block that haven't ended must be here, or none: CheckFailed otherwise."""
    batch = frame.batch
    if batch.run.watch is not None:
        batch.run.watch.barrier(mask)
    torn = None if mask is None else torn_block(mask, batch.finished, batch.count, batch.per_block)
    if torn is not None:
        _, here, away, lane = torn
        cause = f"{here} threads of a block wait here, {away} are elsewhere; one of these is"
        help = "a barrier in a branch hangs unless all threads of the block take the branch"
        batch.stop("barrier-divergence", instruction, cause, lane, away, help)


def _warp_barrier(frame: Frame, mask: Mask) -> None:
    watch = frame.batch.run.watch
    if watch is not None:
        watch.warp_barrier(mask)


def _part_barrier(context: Context) -> Step:
    instruction = context.instruction
    number, count = (context.value(operand, "u32") for operand in context.operands)

    def step(frame: Frame, mask: Mask) -> None:
        batch, wanted = frame.batch, count(frame)
        if bool((wanted == batch.per_block).all()):
            _block_barrier(frame, instruction, mask)
            return
        meeting = meet(mask, number(frame), wanted, batch.count, batch.per_block)
        watch = batch.run.watch
        mixed = None if watch is None else watch.part_barrier(meeting)
        trouble = meeting.trouble or mixed
        if trouble is not None and trouble.code == "barrier-members":
            batch.find(trouble.code, instruction, trouble.cause, trouble.lane, trouble.count)
        elif trouble is not None:
            batch.stop(trouble.code, instruction, trouble.cause, trouble.lane, trouble.count, HELP)

    return step


def _slots(context: Context) -> tuple[int | None, int | None]:
    target = context.operands[0]
    pair = target if isinstance(target, Pair) else Pair(target, Sink())
    first, second = (each.slot if isinstance(each, Register) else None for each in (pair.first, pair.second))
    return first, second


def _check_members(frame: Frame, instruction: Instruction, members: Array, mask: Mask) -> None:
    """A thread that runs the instruction must be in its own member mask, and all that the mask names must run it."""
    batch, warps, opcode = frame.batch, frame.batch.warps, instruction.opcode
    absent = ((members >> warps.lane) & np.uint32(1)) == 0
    if mask is not None:
        absent = absent & mask
    if absent.any():
        cause = f"{opcode} is run by a lane that its member mask leaves out"
        batch.find("shuffle-members", instruction, cause, int(absent.argmax()), int(absent.sum()))
    if mask is None:
        return
    active = warps.active(mask)
    wanted = np.bitwise_or.reduce(np.where(active, warps.spread(members), np.uint32(0)), axis=1, keepdims=True)
    named = (wanted >> np.arange(WARP, dtype=np.uint32)) & np.uint32(1) != 0
    missing = warps.gather(named & ~active)  # lanes past the end of a small block are no threads
    if batch.finished is not None:
        missing = missing & ~batch.finished
    if missing.any():
        cause = f"{opcode} waits for a lane that doesn't run it"
        batch.find("shuffle-divergence", instruction, cause, int(missing.argmax()), int(missing.sum()))


def _meeting(context: Context, step: Step, position: int) -> Step:
    """A step that meets the lanes of the member mask in an operand; one without a mask meets none."""
    instruction = context.instruction
    members = context.value(context.operands[position], "b32") if len(context.operands) > position else None

    def meeting(frame: Frame, mask: Mask) -> None:
        if members is not None:
            _check_members(frame, instruction, members(frame), mask)
        watch = frame.batch.run.watch
        if watch is not None:
            watch.shuffle(mask, frame.batch.threads)
        step(frame, mask)

    return meeting


def _shuffle(context: Context) -> Step:
    form, operands, instruction = context.form, context.operands, context.instruction
    mode = next((m for m in ("up", "down", "bfly", "idx") if m in form.flags), "")
    if not mode or form.type != "b32":
        context.unknown()
    value, amount, clamp = (context.value(o, "b32") for o in operands[1:4])
    target, predicate = _slots(context)

    def step(frame: Frame, mask: Mask) -> None:
        moved, valid, missing = shuffle(frame.batch.warps, mode, value(frame), amount(frame), clamp(frame), mask)
        lost = missing & valid if mask is None else missing & valid & mask
        if lost.any():
            cause = f"{instruction.opcode} takes a value from a lane that doesn't run it"
            frame.batch.find("shuffle-divergence", instruction, cause, int(lost.argmax()), int(lost.sum()))
        if target is not None:
            frame.write(target, moved, mask)
        if predicate is not None:
            frame.write(predicate, valid, mask)

    return _meeting(context, step, 4)


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

    return _meeting(context, step, 2)


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

    return _meeting(context, step, 2)


def _reduce(context: Context) -> Step:
    form, operands = context.form, context.operands
    name = next((n for n in REDUCTIONS if n in form.flags), "")
    if not name or form.type not in ("u32", "s32", "b32"):
        context.unknown()
    value, target = context.value(operands[1], form.type), context.register(operands[0])
    write, function = writer(form.type), REDUCTIONS[name]

    def step(frame: Frame, mask: Mask) -> None:
        frame.write(target.slot, write(function(frame.batch.warps, value(frame), mask)), mask)

    return _meeting(context, step, 2)


def _elect(context: Context) -> Step:
    """elect.sync: the first active lane of each warp."""
    target, predicate = _slots(context)
    members, instruction = context.value(context.operands[1], "b32"), context.instruction

    def step(frame: Frame, mask: Mask) -> None:
        _check_members(frame, instruction, members(frame), mask)
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
