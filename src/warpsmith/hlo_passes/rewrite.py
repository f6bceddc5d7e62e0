"""Rewriting computations of steps: what HLO rewrites before scheduling share.

In: a module, a function that says what becomes of one instruction.  Out: a module in which every computation that
control flow reaches is rewritten, callees first, so that a caller names its callees' new versions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from warpsmith.hlo.control_flow import RUNS, step_computations
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule, frozen
from warpsmith.hlo.traversal import callees_first

__all__ = ["Rewriting", "rewritten", "with_operands"]


def with_operands(
    old: HloInstruction, operands: Sequence[HloInstruction], attributes: Mapping[str, object] | None = None
) -> HloInstruction:
    """The same instruction with other operands (and attributes)."""
    return HloInstruction(
        *(old.name, old.opcode, old.shape, tuple(operands)),
        old.attributes if attributes is None else frozen(attributes),
        *(old.literal, old.parameter_number, old.origin),
    )


@dataclass(slots=True)
class Rewriting:
    """One computation while it is rewritten.

    `new` maps each old instruction that came before to what stands for it; `emit` appends an instruction.  `bodies`
    collects computations that the new instructions call.
    """

    computation: HloComputation
    computations: Mapping[HloComputation, HloComputation]
    taken: set[str]
    new: dict[HloInstruction, HloInstruction] = field(default_factory=dict[HloInstruction, HloInstruction])
    instructions: list[HloInstruction] = field(default_factory=list[HloInstruction])
    bodies: list[HloComputation] = field(default_factory=list[HloComputation])

    def emit(self, instruction: HloInstruction) -> HloInstruction:
        """Add an instruction to the new computation."""
        self.instructions.append(instruction)
        return instruction

    def operands(self, old: HloInstruction) -> tuple[HloInstruction, ...]:
        """What stands for an old instruction's operands in the new computation."""
        return tuple(self.new[each] for each in old.operands)

    def fresh(self, name: str) -> str:
        """A name that no computation and no instruction of the module has."""
        candidate, count = name, 0
        while candidate in self.taken:
            count += 1
            candidate = f"{name}.{count}"
        self.taken.add(candidate)
        return candidate

    def keep(self, old: HloInstruction) -> HloInstruction:
        """Emit the instruction as it was, on its operands' new versions and with its callees' new versions."""
        attributes = self._attributes(old)
        operands = self.operands(old)
        if attributes is None and all(a is b for a, b in zip(operands, old.operands, strict=True)):
            return self.emit(old)
        return self.emit(with_operands(old, operands, attributes))

    def _attributes(self, old: HloInstruction) -> dict[str, object] | None:
        names = RUNS.get(old.opcode, ())
        changed: dict[str, object] = {}
        for name in names:
            value = old.attributes.get(name)
            if isinstance(value, HloComputation):
                new: object = self.computations.get(value, value)
            elif isinstance(value, tuple):
                each = cast("tuple[HloComputation, ...]", value)
                new = tuple(self.computations.get(callee, callee) for callee in each)
            else:
                continue
            if new != value:
                changed[name] = new
        return {**old.attributes, **changed} if changed else None


Replace = Callable[[Rewriting, HloInstruction], HloInstruction]
"""Emits what an instruction becomes, if anything, and gives what stands for its value."""


def rewritten(module: HloModule, replace: Replace) -> HloModule:
    """`module` with every instruction of its computations of steps replaced; itself when nothing changes.

    Computations that nothing names any more are left out.
    """
    taken = {computation.name for computation in module.computations}
    taken.update(instruction.name for instruction in module.instructions())
    computations: dict[HloComputation, HloComputation] = {}
    bodies: dict[HloComputation, list[HloComputation]] = {}
    for old in step_computations(module):
        at = Rewriting(old, computations, taken)
        for instruction in old:
            at.new[instruction] = replace(at, instruction)
        if len(at.instructions) != len(old) or any(a is not b for a, b in zip(at.instructions, old, strict=True)):
            root = at.new[old.root]
            computations[old] = HloComputation(old.name, tuple(at.instructions), root, old.attributes, old.origin)
            bodies[old] = at.bodies
    if not computations:
        return module
    everything: list[HloComputation] = []
    for computation in module.computations:
        everything += bodies.get(computation, [])
        everything.append(computations.get(computation, computation))
    entry = computations.get(module.entry, module.entry)
    named = set(callees_first([entry]))
    kept = tuple(each for each in everything if each in named)
    return HloModule(module.name, kept, entry, module.attributes, module.style)
