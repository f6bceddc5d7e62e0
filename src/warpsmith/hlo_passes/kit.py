"""The kit of HLO passes: a module is rewritten instruction by instruction, operands before users, callees first.

In: a module, and a rule that says what becomes of one instruction.  Out: a module; what no rule touches is shared with
the old one, and computations that nothing names any more are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from warpsmith.hlo.control_flow import step_computations
from warpsmith.hlo.literals import Literal
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule, frozen
from warpsmith.hlo.shapes import AnyShape, Shape
from warpsmith.hlo.traversal import callees_first

__all__ = ["Rewriting", "Rule", "of_dims", "rewrite", "rewrite_computation", "rewrite_steps", "with_operands"]


def with_operands(
    old: HloInstruction, operands: Sequence[HloInstruction], attributes: Mapping[str, object] | None = None
) -> HloInstruction:
    """The same instruction with other operands (and attributes)."""
    given = old.attributes if attributes is None else frozen(attributes)
    return replace(old, operands=tuple(operands), attributes=given)


def of_dims(like: HloInstruction, dims: Sequence[int]) -> Shape:
    """A shape of the element type of `like`, in the default layout."""
    return Shape(like.array_shape.dtype, tuple(dims))


@dataclass(slots=True)
class Rewriting:
    """One computation while it is rewritten.

    `old` is the instruction that a rule looks at; `new` maps each one that came before to what stands for it.  `emit`
    and `add` append an instruction.  `computations` maps callees to their new versions; `bodies` collects computations
    that the new instructions call.
    """

    computation: HloComputation
    computations: Mapping[HloComputation, HloComputation]
    taken: set[str]
    old: HloInstruction = field(init=False)
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
        """Emit the instruction as it was, on its operands' and its callees' new versions."""
        operands = self.operands(old)
        attributes = {name: self._value(value) for name, value in old.attributes.items()}
        same = all(a is b for a, b in zip(operands, old.operands, strict=True))
        if same and all(attributes[name] is value for name, value in old.attributes.items()):
            return self.emit(old)
        return self.emit(with_operands(old, operands, attributes))

    def _value(self, value: object) -> object:
        """An attribute with new versions of what it names; itself where nothing in it is new."""
        if isinstance(value, HloComputation):
            return self.computations.get(value, value)
        if isinstance(value, HloInstruction):
            return self.new.get(value, value)
        if isinstance(value, tuple):
            items = cast("tuple[object, ...]", value)
            new = tuple(self._value(item) for item in items)
            return new if any(a is not b for a, b in zip(new, items, strict=True)) else items
        return value

    # -- new instructions, named after the one that they stand for
    def add(
        self,
        opcode: str,
        shape: AnyShape,
        operands: Sequence[HloInstruction],
        attributes: Mapping[str, object] | None = None,
    ) -> HloInstruction:
        """Emit `shape opcode(operands), attributes`."""
        name = self.fresh(f"{self.old.name}.{opcode}")
        return self.emit(HloInstruction(name, opcode, shape, tuple(operands), frozen(attributes or {})))

    def full(self, value: Literal, shape: Shape) -> HloInstruction:
        """A scalar constant, broadcast to `shape`."""
        name = self.fresh(f"{self.old.name}.constant")
        scalar = self.emit(HloInstruction(name, "constant", value.shape, literal=value))
        return self.add("broadcast", shape, [scalar], {"dimensions": ()})

    def reshape(self, value: HloInstruction, dims: Sequence[int]) -> HloInstruction:
        """`value` with other dims; itself where it has them."""
        if value.array_shape.dims == tuple(dims):
            return value
        return self.add("reshape", of_dims(value, dims), [value])

    def transpose(self, value: HloInstruction, order: Sequence[int]) -> HloInstruction:
        """`value` with its dims in another order; itself where the order is theirs."""
        if list(order) == list(range(len(order))):
            return value
        dims = [value.array_shape.dims[d] for d in order]
        return self.add("transpose", of_dims(value, dims), [value], {"dimensions": tuple(order)})


Rule = Callable[[Rewriting], HloInstruction | None]
"""Emits what `at.old` becomes, if anything, and gives what stands for its value; None keeps it as it is."""


def rewrite(module: HloModule, rule: Rule) -> HloModule:
    """`module` with the rule applied to every instruction of every computation; itself when nothing changes."""
    return _rewritten(module, rule, callees_first(module.computations))


def rewrite_steps(module: HloModule, rule: Rule) -> HloModule:
    """As `rewrite`, in the computations that control flow reaches, whose instructions are steps; not inside fusions."""
    return _rewritten(module, rule, step_computations(module))


def rewrite_computation(computation: HloComputation, rule: Rule) -> HloComputation:
    """`computation` with the rule applied to every instruction, and the same callees; itself when nothing changes."""
    at = Rewriting(computation, {}, {each.name for each in computation})
    return _apply(at, rule)


def _rewritten(module: HloModule, rule: Rule, order: Iterable[HloComputation]) -> HloModule:
    taken = {computation.name for computation in module.computations}
    taken.update(instruction.name for instruction in module.instructions())
    computations: dict[HloComputation, HloComputation] = {}
    bodies: dict[HloComputation, list[HloComputation]] = {}
    for old in order:
        at = Rewriting(old, computations, taken)
        new = _apply(at, rule)
        if new is not old:
            computations[old], bodies[old] = new, at.bodies
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


def _apply(at: Rewriting, rule: Rule) -> HloComputation:
    """The computation that the rule makes of `at`'s; itself when nothing changes."""
    old = at.computation
    for instruction in old:
        at.old = instruction
        new = rule(at)
        at.new[instruction] = at.keep(instruction) if new is None else new
    if len(at.instructions) == len(old) and all(a is b for a, b in zip(at.instructions, old, strict=True)):
        return old
    return HloComputation(old.name, tuple(at.instructions), at.new[old.root], old.attributes, old.origin)
