"""inline-calls: calls become their callee's instructions, so that schedule, fusions and buffers see through them.

In: a module.  Out: a module whose calls of small computations, and of computations that are called once, are spliced
into their callers:

    r = f32[8] call(x), to_apply=relu        ->        r.zero = f32[] constant(0) ...
                                                       r.max = f32[8] maximum(x, r.broadcast)
"""

from __future__ import annotations

from collections import Counter

from warpsmith.devices import Device
from warpsmith.hlo.control_flow import run_by, step_computations
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule
from warpsmith.hlo_passes.kit import Rewriting, rewrite_steps

__all__ = ["CONTRACT", "inline_calls", "run", "spliced"]

CONTRACT = "E"

_SMALL = 256
"""Instructions up to which a callee is spliced in wherever it is called."""


def run(module: HloModule, _: Device) -> HloModule:
    """`inline_calls` as a pass."""
    return inline_calls(module)


def inline_calls(module: HloModule) -> HloModule:
    """`module` without the calls that are worth splicing in; itself when there is none."""
    callers = Counter(callee for each in step_computations(module) for one in each for callee in run_by(one))
    if not callers:
        return module

    def rule(at: Rewriting) -> HloInstruction | None:
        old = at.old
        if old.opcode != "call":
            return None
        named = old.attr("to_apply", HloComputation)
        callee = at.computations.get(named, named)
        if callers[named] > 1 and len(callee) > _SMALL:
            return None
        return spliced(at, old, callee)

    return rewrite_steps(module, rule)


def spliced(at: Rewriting, call: HloInstruction, callee: HloComputation) -> HloInstruction:
    """Emit the instructions of what `call` calls in its place; what stands for its value."""
    inside: dict[HloInstruction, HloInstruction] = {}
    for each in callee:
        if each.parameter_number is not None:
            inside[each] = at.new[call.operands[each.parameter_number]]
            continue
        name = call.name if each is callee.root else at.fresh(f"{call.name}.{each.name}")
        operands = tuple(inside[operand] for operand in each.operands)
        inside[each] = at.emit(
            HloInstruction(name, each.opcode, each.shape, operands, each.attributes, each.literal, origin=each.origin)
        )
    return inside[callee.root]
