"""Computations that control flow runs: the entry, and what calls, loops and branches reach from it.

In: a module.  Out: its computations of steps, callees before callers; what each instruction runs.  Reducers,
comparators and fusion bodies are none of them: they are parts of one op.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule
from warpsmith.hlo.traversal import callees_first

__all__ = ["RUNS", "run_by", "step_computations"]

RUNS: Mapping[str, tuple[str, ...]] = {
    "call": ("to_apply",),
    "while": ("condition", "body"),
    "conditional": ("true_computation", "false_computation", "branch_computations"),
}
"""By opcode: the attributes that name computations of steps, in the order in which `run_by` lists them."""


def run_by(instruction: HloInstruction) -> tuple[HloComputation, ...]:
    """The computations that a call, while or conditional runs: condition and body, or the branches in order."""
    found: list[HloComputation] = []
    for name in RUNS.get(instruction.opcode, ()):
        value = instruction.attributes.get(name)
        if isinstance(value, HloComputation):
            found.append(value)
        elif isinstance(value, tuple):
            found.extend(cast("tuple[HloComputation, ...]", value))
    return tuple(found)


def step_computations(module: HloModule) -> list[HloComputation]:
    """The entry and all that control flow reaches from it, each after those that it runs.  The entry is the last."""
    reached = {module.entry}
    stack = [module.entry]
    while stack:
        for instruction in stack.pop():
            for callee in run_by(instruction):
                if callee not in reached:
                    reached.add(callee)
                    stack.append(callee)
    return [each for each in callees_first([module.entry]) if each in reached]
