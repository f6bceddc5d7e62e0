"""Smaller modules: what a reduction tries.

In: a module.  Out: modules that are smaller by `weight` and that the verifier takes, the boldest first.  None of them
means the same as the module; whether one still shows the failure that is looked for is the caller's to find out
(`shrink` asks a predicate, in the manner of delta debugging: Zeller and Hildebrandt, "Simplifying and isolating
failure-inducing input", 2002).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import cast

from warpsmith.errors import WarpsmithError
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule, frozen
from warpsmith.hlo.shapes import TupleShape
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.hlo.traversal import callees_first, operands_first
from warpsmith.hlo.verifier import verify_module

__all__ = ["candidates", "shrink", "weight"]

Candidates = Iterator[HloModule]
_MOST_ROOTS = 48
"""Of a long computation so many instructions are tried as the root, spread over its length."""


def weight(module: HloModule) -> tuple[int, int]:
    """What a reduction makes smaller: instructions other than parameters, then elements of all of them."""
    count = elements = 0
    for computation in callees_first([module.entry]):
        for each in computation:
            count += each.opcode != "parameter"
            elements += 1 + sum(leaf.elements for leaf in each.shape.leaves())
    return count, elements


def shrink(module: HloModule, fails: Callable[[HloModule], bool], *, limit: int = 2000) -> HloModule:
    """The smallest module found for which `fails` holds, from one for which it does; at most `limit` questions.

    Whatever `fails` raises ends the reduction: a predicate says what errors mean to it.
    """
    asked = 0
    tried: set[str] = set()
    progress = True
    while progress:
        progress = False
        for candidate in candidates(module):
            text = str(candidate)
            if text in tried:
                continue
            tried.add(text)
            if asked == limit:
                return module
            asked += 1
            if fails(candidate):
                module, progress = candidate, True
                break
    return module


def candidates(module: HloModule) -> Candidates:
    """Modules that are smaller than `module` and valid, the boldest cuts first."""
    size = weight(module)
    for strategy in _STRATEGIES:
        for candidate in strategy(module):
            if weight(candidate) < size and _is_valid(candidate):
                yield candidate


def _is_valid(module: HloModule) -> bool:
    try:
        verify_module(module)
    except WarpsmithError:
        return False
    return True


# --------------------------------------------------------------------------------------------------------- strategies
def _other_roots(module: HloModule) -> Candidates:
    """Each instruction as the result, those that need little first."""
    entry = module.entry
    inner = [each for each in entry if each.opcode not in ("parameter", "tuple") and each is not entry.root]
    sizes = {each: len(operands_first([each])) for each in _spread(inner, _MOST_ROOTS)}
    for each in sorted(sizes, key=sizes.__getitem__):
        yield _module(module, _Cut(entry, root=each).result())


def _fusion_bodies(module: HloModule) -> Candidates:
    """Of a module that is one fusion, the same strategies on the fusion's body."""
    fusion = module.entry.root
    if fusion.opcode != "fusion" or any(op.opcode != "parameter" for op in fusion.operands):
        return
    body = fusion.attr("calls", HloComputation)
    alone = HloModule(module.name, tuple(callees_first([body])), body)
    for strategy in (_other_roots, _cut_instructions, _bypassed):
        for candidate in strategy(alone):
            yield _around(module, fusion, candidate.entry)


def _cut_instructions(module: HloModule) -> Candidates:
    """Runs of instructions turned into parameters, long runs first; with them goes all that they alone needed."""
    entry = module.entry
    inner = [each for each in entry if each.opcode not in ("parameter", "tuple") and each is not entry.root]
    run = len(inner)
    while run:
        for start in range(0, len(inner), run):
            yield _module(module, _Cut(entry, cut=inner[start : start + run]).result())
        run //= 2


def _bypassed(module: HloModule) -> Candidates:
    """Each instruction replaced by an operand of its shape."""
    for each in module.entry:
        for operand in dict.fromkeys(each.operands):
            if operand.shape.without_layout() == each.shape.without_layout():
                yield _module(module, _Cut(module.entry, bypass={each: operand}).result())


def _simpler_callees(module: HloModule) -> Candidates:
    """Each instruction of a called computation replaced by something of its shape that comes before it."""
    order = callees_first([module.entry])
    for computation in order[:-1]:
        for each in computation:
            for other in _alike_before(computation, each):
                made: dict[HloComputation, HloComputation] = {}
                for one in order:
                    bypass = {each: other} if one is computation else {}
                    made[one] = _Cut(one, bypass=bypass, keep_parameters=True, callees=made).result()
                yield _module(module, made[module.entry])


def _alike_before(computation: HloComputation, each: HloInstruction) -> Sequence[HloInstruction]:
    """An instruction's operands and the parameters, where they have its shape."""
    if each.opcode in ("parameter", "constant"):
        return ()
    found = dict.fromkeys((*each.operands, *computation.parameters))
    return [one for one in found if one.shape.without_layout() == each.shape.without_layout()]


def _fewer_results(module: HloModule) -> Candidates:
    """A tuple at the root with half of its elements, or with one less."""
    root = module.entry.root
    if root.opcode != "tuple" or len(root.operands) < 2:
        return
    count = len(root.operands)
    kept = [root.operands[: count // 2], root.operands[count // 2 :]]
    kept += [root.operands[:i] + root.operands[i + 1 :] for i in range(count)]
    for operands in kept:
        made = HloInstruction(root.name, "tuple", TupleShape(tuple(each.shape for each in operands)), operands)
        yield _module(module, _Cut(module.entry, root=made).result())


def _inlined(module: HloModule) -> Candidates:
    """A fusion or call spliced into the entry; one round of a loop or one branch for the whole."""
    for each in module.entry:
        for body, operands in _CALLS.get(each.opcode, _no_calls)(each):
            made = _splice(body, operands)
            yield _module(module, _Cut(module.entry, bypass={each: made}).result())


def _smaller_dims(module: HloModule) -> Candidates:
    """One extent made smaller wherever it or a multiple of it stands: 1, 2, 3, an eighth, a half, one less."""
    text = str(module)
    extents = sorted({dim for each in module.instructions() for leaf in each.shape.leaves() for dim in leaf.dims})
    for extent in reversed(extents):
        for smaller in dict.fromkeys((1, 2, 3, extent // 8, extent // 2, extent - 1)):
            if 0 < smaller < extent:
                for multiples in (True, False):
                    found = _parsed(_with_extent(text, extent, smaller, multiples), module)
                    if found is not None:
                        yield found


def _plain(module: HloModule) -> Candidates:
    """Without metadata, back-end configurations and attributes of the module."""
    made: dict[HloComputation, HloComputation] = {}
    for computation in callees_first([module.entry]):
        made[computation] = _Cut(computation, keep_parameters=True, callees=made, drop=_DECORATION).result()
    yield _module(module, made[module.entry])


_STRATEGIES: tuple[Callable[[HloModule], Candidates], ...] = (
    _plain,
    _other_roots,
    _fewer_results,
    _fusion_bodies,
    _cut_instructions,
    _inlined,
    _bypassed,
    _simpler_callees,
    _smaller_dims,
)
_DECORATION = frozenset({"metadata", "backend_config", "frontend_attributes", "control-predecessors", "sharding"})


# ------------------------------------------------------------------------------------------------------ the new entry
class _Cut:
    """A computation remade from its root down: only what the root needs, parameters numbered anew.

    `cut` instructions become parameters; a `bypass`ed one gives way to its value, an instruction of the same shape.
    """

    def __init__(
        self,
        computation: HloComputation,
        *,
        root: HloInstruction | None = None,
        cut: Iterable[HloInstruction] = (),
        bypass: Mapping[HloInstruction, HloInstruction] | None = None,
        keep_parameters: bool = False,
        callees: Mapping[HloComputation, HloComputation] | None = None,
        drop: frozenset[str] = frozenset({"control-predecessors"}),
    ) -> None:
        self.computation = computation
        self.root = computation.root if root is None else root
        self.cut = set(cut)
        self.bypass = bypass or {}
        self.kept = computation.parameters if keep_parameters else ()
        self.callees = callees or {}
        self.drop = drop

    def result(self) -> HloComputation:
        order = self._needed()
        leaves = [each for each in order if self._is_leaf(each)]
        numbers = {each: number for number, each in enumerate(sorted(leaves, key=_number))}
        made: dict[HloInstruction, HloInstruction] = {}
        taken: set[str] = set()
        for each in order:
            name = _free(each.name, taken)
            if each in numbers:
                made[each] = HloInstruction(name, "parameter", each.shape, parameter_number=numbers[each])
                continue
            operands = tuple(made[self._value(operand)] for operand in each.operands)
            made[each] = HloInstruction(
                name, each.opcode, each.shape, operands, self._attributes(each), each.literal, origin=each.origin
            )
        return HloComputation(self.computation.name, tuple(made.values()), made[self._value(self.root)])

    def _value(self, instruction: HloInstruction) -> HloInstruction:
        """What stands for an instruction; its own operands are seen past it."""
        return self.bypass.get(instruction, instruction)

    def _is_leaf(self, instruction: HloInstruction) -> bool:
        return instruction.opcode == "parameter" or instruction in self.cut

    def _needed(self) -> list[HloInstruction]:
        order: dict[HloInstruction, None] = dict.fromkeys(self.kept)
        stack = [(self._value(self.root), False)]
        while stack:
            each, ready = stack.pop()
            if ready:
                order[each] = None
            elif each not in order:
                stack.append((each, True))
                if not self._is_leaf(each):
                    stack.extend((self._value(operand), False) for operand in reversed(each.operands))
        return list(order)

    def _attributes(self, instruction: HloInstruction) -> Mapping[str, object]:
        kept = [(key, self._called(value)) for key, value in instruction.attributes.items() if key not in self.drop]
        return frozen(kept)

    def _called(self, value: object) -> object:
        if isinstance(value, HloComputation):
            return self.callees.get(value, value)
        if isinstance(value, tuple):
            return tuple(self._called(item) for item in cast("tuple[object, ...]", value))
        return value


def _number(leaf: HloInstruction) -> tuple[bool, int]:
    """Parameters by number, then what was cut, in the order of use (sorting is stable)."""
    return leaf.parameter_number is None, leaf.parameter_number or 0


def _free(name: str, taken: set[str]) -> str:
    found, count = name, 0
    while found in taken:
        count += 1
        found = f"{name}.{count}"
    taken.add(found)
    return found


def _module(module: HloModule, entry: HloComputation) -> HloModule:
    """`entry` and what it calls; the header's facts on layouts and aliases don't fit a changed entry."""
    return HloModule(module.name, tuple(callees_first([entry])), entry, style=module.style)


def _around(module: HloModule, fusion: HloInstruction, body: HloComputation) -> HloModule:
    """A module that is one fusion with another body."""
    parameters = tuple(
        HloInstruction(f"p{i}", "parameter", each.shape, parameter_number=i) for i, each in enumerate(body.parameters)
    )
    attributes = frozen((key, body if key == "calls" else value) for key, value in fusion.attributes.items())
    made = HloInstruction(fusion.name, "fusion", body.root.shape, parameters, attributes, origin=fusion.origin)
    return _module(module, HloComputation(module.entry.name, (*parameters, made), made))


# ------------------------------------------------------------------------------------------------------------- calls
Call = tuple[HloComputation, Sequence[HloInstruction]]


def _no_calls(_: HloInstruction) -> Sequence[Call]:
    return ()


def _named(attribute: str) -> Callable[[HloInstruction], Sequence[Call]]:
    return lambda each: [(each.attr(attribute, HloComputation), each.operands)]


def _branches(each: HloInstruction) -> Sequence[Call]:
    return [(body, [operand]) for body, operand in zip(each.called_computations, each.operands[1:], strict=False)]


_CALLS: dict[str, Callable[[HloInstruction], Sequence[Call]]] = {
    "fusion": _named("calls"),
    "call": _named("to_apply"),
    "while": _named("body"),
    "conditional": _branches,
}


def _splice(body: HloComputation, operands: Sequence[HloInstruction]) -> HloInstruction:
    """The body's result on `operands`, as new instructions."""
    made: dict[HloInstruction, HloInstruction] = {}
    for each in body:
        if each.parameter_number is not None:
            made[each] = operands[each.parameter_number]
        else:
            inside = tuple(made[operand] for operand in each.operands)
            made[each] = HloInstruction(
                each.name, each.opcode, each.shape, inside, each.attributes, each.literal, origin=each.origin
            )
    return made[body.root]


# -------------------------------------------------------------------------------------------------------------- dims
_SIZES = re.compile(
    r"(?<=[\w])\[[\d,<= ]*\]"  # of a shape: f32[128,64]
    r"|\b(?:slice|dynamic_slice_sizes|slice_sizes|sizes)=\{[^}]*\}"
    r"|\bwindow=\{[^}]*\}"
)
_INTEGER = re.compile(r"\d+")


def _with_extent(text: str, extent: int, smaller: int, multiples: bool) -> str:
    def number(match: re.Match[str]) -> str:
        value = int(match[0])
        if value == extent:
            return str(smaller)
        if multiples and extent > 1 and value and value % extent == 0:
            return str(value // extent * smaller)
        return match[0]

    return _SIZES.sub(lambda sizes: _INTEGER.sub(number, sizes[0]), text)


def _parsed(text: str, module: HloModule) -> HloModule | None:
    try:
        found = parse_hlo(text, module.name)
    except WarpsmithError:
        return None
    return found


# ------------------------------------------------------------------------------------------------------------ helpers


def _spread(items: Sequence[HloInstruction], most: int) -> Sequence[HloInstruction]:
    """At most `most` of the items, evenly spread, the last among them."""
    if len(items) <= most:
        return items
    return [items[(i + 1) * len(items) // most - 1] for i in range(most)]
