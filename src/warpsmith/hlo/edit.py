"""Changing HLO: every edit takes a module and gives a new one; what didn't change is shared.

In: modules, and instructions made with `builder` or by hand.  Out: modules.  Each edit takes time linear in the size
of the module.  Nothing is verified here: `verify_module` says whether what came out fits together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import cast

from warpsmith.errors import InvalidHlo
from warpsmith.hlo.builder import ComputationBuilder, build_module
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule, frozen
from warpsmith.hlo.traversal import callees_first, operands_first, post_order

__all__ = ["clone", "clone_computation", "extract", "prune", "replace", "replace_all"]

Rename = Callable[[str], str]

_EFFECTS = frozenset(
    {
        *("infeed", "outfeed", "send", "send-done", "recv", "recv-done", "rng", "rng-get-and-update-state"),
        *("custom-call", "while", "conditional", "call", "async-start", "async-done"),
    }
)
"""Ops that may do more than make a result; `prune` keeps them."""


def replace(module: HloModule, old: HloInstruction, new: HloInstruction) -> HloModule:
    """`module` with `new` wherever `old` was used.

    `new` may use instructions of the same computation (also `old`) and new ones, which are put in with it.  `old` goes
    unless something still uses it.  InvalidHlo when `old` isn't in the module, when element types or sizes differ, or
    when `new` depends on a user of `old`.
    """
    return replace_all(module, {old: new})


def replace_all(module: HloModule, replacements: Mapping[HloInstruction, HloInstruction]) -> HloModule:
    """`module` with each key replaced by its value, as `replace` does, in one walk (a value isn't replaced again)."""
    for old, new in replacements.items():
        if old.shape.without_layout() != new.shape.without_layout():
            raise InvalidHlo(
                f"'{old.name}' is {old.shape}, it can't be replaced by '{new.name}' of {new.shape}", span=old.span
            )
    here: dict[HloComputation, dict[HloInstruction, HloInstruction]] = {}
    left = dict(replacements)
    for computation in module.computations:
        for each in computation.instructions:
            if each in left:
                here.setdefault(computation, {})[each] = left.pop(each)
    if left:
        raise InvalidHlo(f"'{next(iter(left)).name}' isn't an instruction of module '{module.name}'")

    def callees(computation: HloComputation) -> list[HloComputation]:
        """What a computation calls before or after the edit."""
        found = [called for each in computation.instructions for called in each.called_computations]
        if computation in here:
            new = operands_first(here[computation].values())
            found += [called for each in new for called in each.called_computations]
        return list(dict.fromkeys(found))

    order = post_order(module.computations, callees, lambda computation: computation.name)
    rebuilt: dict[HloComputation, HloComputation] = {}
    for computation in order:
        rebuilt[computation] = _Rebuild(computation, here.get(computation, {}), rebuilt).result()
    known = set(module.computations)
    brought = [rebuilt[each] for each in order if each not in known]
    computations = (*brought, *(rebuilt[each] for each in module.computations))
    return HloModule(module.name, computations, rebuilt[module.entry], module.attributes, module.style)


class _Rebuild:
    """One computation with some instructions replaced and callees exchanged."""

    def __init__(
        self,
        computation: HloComputation,
        replacements: Mapping[HloInstruction, HloInstruction],
        callees: Mapping[HloComputation, HloComputation],
    ) -> None:
        self.computation = computation
        self.replacements = replacements
        self.callees = callees
        self.original = set(computation.instructions)
        self.made: dict[HloInstruction, HloInstruction] = {}
        self.open: set[HloInstruction] = set()

    def result(self) -> HloComputation:
        computation = self.computation
        if not self.replacements and not any(self._calls_changed(each) for each in computation.instructions):
            return computation
        for each in computation.instructions:
            if each not in self.replacements:
                self._make(each)
        for new in self.replacements.values():
            self._make(new)
        for old in self.replacements:
            if old.opcode == "parameter":
                self._make(old)
        root = self.replacements.get(computation.root, computation.root)
        made = _unique(self.made, self.original)
        return HloComputation(
            computation.name, tuple(made.values()), made[root], computation.attributes, computation.origin
        )

    def _calls_changed(self, instruction: HloInstruction) -> bool:
        return bool(instruction.attributes) and any(
            self.callees.get(called, called) is not called for called in instruction.called_computations
        )

    def _seen_by(self, user: HloInstruction, operand: HloInstruction) -> HloInstruction:
        """What stands for `operand` in `user`: a new instruction may still use what it replaces."""
        new = self.replacements.get(operand, operand)
        return operand if user not in self.original or new is user else new

    def _make(self, root: HloInstruction) -> None:
        stack: list[tuple[HloInstruction, bool]] = [(root, False)]
        while stack:
            each, ready = stack.pop()
            if each in self.made:
                continue
            needs = [self._seen_by(each, operand) for operand in (*each.operands, *_predecessors(each))]
            if ready:
                self.open.discard(each)
                self.made[each] = self._copied(each, needs[: len(each.operands)])
                continue
            if each in self.open:
                raise InvalidHlo(f"the replacement '{each.name}' would depend on itself", span=each.span)
            self.open.add(each)
            stack.append((each, True))
            stack.extend((need, False) for need in reversed(needs) if need not in self.made)

    def _copied(self, instruction: HloInstruction, needs: Sequence[HloInstruction]) -> HloInstruction:
        operands = tuple([self.made[need] for need in needs])
        attributes = instruction.attributes
        if attributes and (self._calls_changed(instruction) or "control-predecessors" in attributes):
            attributes = frozen((name, self._value(instruction, value)) for name, value in attributes.items())
        if attributes is instruction.attributes and all(map(_same_object, operands, instruction.operands)):
            return instruction
        return _with(instruction, operands=operands, attributes=attributes)

    def _value(self, user: HloInstruction, value: object) -> object:
        if isinstance(value, HloComputation):
            return self.callees.get(value, value)
        if isinstance(value, HloInstruction):
            return self.made[self._seen_by(user, value)]
        if isinstance(value, tuple):
            return tuple(self._value(user, item) for item in cast("tuple[object, ...]", value))
        return value


def _same_object(a: object, b: object) -> bool:
    return a is b


def _predecessors(instruction: HloInstruction) -> tuple[HloInstruction, ...]:
    if "control-predecessors" not in instruction.attributes:
        return ()
    values = cast("tuple[object, ...]", instruction.attributes["control-predecessors"])
    return tuple(each for each in values if isinstance(each, HloInstruction))


def _with(
    instruction: HloInstruction,
    *,
    name: str | None = None,
    operands: tuple[HloInstruction, ...] | None = None,
    attributes: Mapping[str, object] | None = None,
) -> HloInstruction:
    return HloInstruction(
        instruction.name if name is None else name,
        instruction.opcode,
        instruction.shape,
        instruction.operands if operands is None else operands,
        instruction.attributes if attributes is None else attributes,
        instruction.literal,
        instruction.parameter_number,
        instruction.origin,
    )


def _unique(
    made: Mapping[HloInstruction, HloInstruction], original: Set[HloInstruction]
) -> dict[HloInstruction, HloInstruction]:
    """`made` with names that occur once: new instructions give way (`add` becomes `add.1`), and users follow."""
    taken = {each.name for each in made.values()}
    if len(taken) == len(made):
        return dict(made)
    counts: dict[str, int] = {}
    used = {new.name for old, new in made.items() if old in original}
    renamed: dict[HloInstruction, HloInstruction] = {}
    result: dict[HloInstruction, HloInstruction] = {}
    for old, new in made.items():
        name = new.name
        if old not in original:
            if name in used:
                count = counts.get(name, 1)
                while f"{name}.{count}" in taken:
                    count += 1
                counts[name], name = count + 1, f"{name}.{count}"
                taken.add(name)
            used.add(name)
        operands = tuple([renamed[operand] for operand in new.operands])
        same = name == new.name and all(map(_same_object, operands, new.operands))
        result[old] = renamed[new] = new if same else _with(new, name=name, operands=operands)
    return result


def prune(module: HloModule) -> HloModule:
    """`module` without instructions whose results nothing needs, and without computations that nothing calls.

    Parameters stay, and ops that may have effects (custom calls, control flow, infeed, random state).
    """
    rebuilt: dict[HloComputation, HloComputation] = {}
    for computation in callees_first([module.entry]):
        needed = {computation.root}
        for each in reversed(computation.instructions):
            if each in needed or each.opcode in _EFFECTS or each.opcode == "parameter":
                needed.update((each, *each.operands, *_predecessors(each)))
        kept = tuple(each for each in computation.instructions if each in needed)
        smaller = computation
        if len(kept) < len(computation.instructions):
            smaller = HloComputation(
                computation.name, kept, computation.root, computation.attributes, computation.origin
            )
        rebuilt[computation] = _Rebuild(smaller, {}, rebuilt).result()
    computations = tuple(rebuilt[each] for each in module.computations if each in rebuilt)
    return HloModule(module.name, computations, rebuilt[module.entry], module.attributes, module.style)


def clone_computation(
    computation: HloComputation,
    name: str | None = None,
    rename: Rename | None = None,
    callees: Mapping[HloComputation, HloComputation] | None = None,
) -> HloComputation:
    """A copy with instructions of its own, under other names; `callees` says what stands for which called one."""
    others = callees or {}
    made: dict[HloInstruction, HloInstruction] = {}

    def value(old: object) -> object:
        if isinstance(old, HloComputation):
            return others.get(old, old)
        if isinstance(old, HloInstruction):
            return made[old]
        return tuple(map(value, cast("tuple[object, ...]", old))) if isinstance(old, tuple) else old

    for each in computation.instructions:
        attributes = frozen((key, value(old)) for key, old in each.attributes.items())
        operands = tuple([made[operand] for operand in each.operands])
        new = rename(each.name) if rename is not None else each.name
        made[each] = _with(each, name=new, operands=operands, attributes=attributes)
    return HloComputation(
        computation.name if name is None else name,
        tuple(made.values()),
        made[computation.root],
        computation.attributes,
        computation.origin,
    )


def clone(module: HloModule, name: str | None = None, rename: Rename | None = None) -> HloModule:
    """A copy of `module`; `rename` is applied to the names of computations and instructions."""
    made: dict[HloComputation, HloComputation] = {}
    for computation in callees_first(module.computations):
        new = rename(computation.name) if rename is not None else None
        made[computation] = clone_computation(computation, new, rename, made)
    computations = tuple(made[each] for each in module.computations)
    return HloModule(
        module.name if name is None else name, computations, made[module.entry], module.attributes, module.style
    )


def extract(module: HloModule, what: HloInstruction | HloComputation, *, keep_constants: bool = False) -> HloModule:
    """A module that computes `what` alone, with every computation that it calls.

    An instruction becomes the root of a new entry whose parameters are its operands (with `keep_constants`, constants
    among them stay constants); a computation becomes the entry.  InvalidHlo for a parameter.
    """
    if isinstance(what, HloComputation):
        entry = what
    else:
        if what.opcode == "parameter":
            raise InvalidHlo(f"'{what.name}' is a parameter: there is nothing to extract", span=what.span)
        entry = _entry_around(what, keep_constants)
    made = build_module(f"{module.name}_{what.name}", entry)
    return HloModule(made.name, made.computations, made.entry, made.attributes, module.style)


def _entry_around(instruction: HloInstruction, keep_constants: bool) -> HloComputation:
    called = {each.name for each in callees_first(instruction.called_computations)}
    name = next(each for each in _names("main") if each not in called)
    builder = ComputationBuilder(name)
    made: dict[HloInstruction, HloInstruction] = {}
    count = 0
    for operand in dict.fromkeys(instruction.operands):
        if keep_constants and operand.opcode == "constant":
            made[operand] = builder.append(operand)
        else:
            made[operand] = builder.parameter(count, operand.shape, operand.name)
            count += 1
    attributes = frozen((key, value) for key, value in instruction.attributes.items() if key != "control-predecessors")
    operands = tuple([made[operand] for operand in instruction.operands])
    return builder.build(builder.append(_with(instruction, operands=operands, attributes=attributes)))


def _names(first: str) -> Iterable[str]:
    yield first
    count = 1
    while True:
        yield f"{first}.{count}"
        count += 1
