"""What a fusion is: roots, heroes, and the emitter that the rules choose for it.

In: a fusion's body and the device.  Out: `FusionAnalysis`, with the reason in words for each emitter that was refused.
The order of decisions is that of the reference, sections 2.6 and 2.7; 5b, input slices, is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from warpsmith.devices import Device
from warpsmith.errors import UnsupportedFusion
from warpsmith.fusion.heroes import consistent_transpose, find_hero
from warpsmith.fusion.in_place import in_place_updates
from warpsmith.fusion.reductions import ReductionDimensions, real_reduction
from warpsmith.fusion.transposes import TransposeDescription
from warpsmith.fusion.traversal import reachable, roots_of, shape_bits, slice_dims
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.shapes import Shape, TupleShape

__all__ = ["FusionAnalysis", "Refusal", "analyze"]

MAX_CONCATENATE_OPERANDS = 4
UNBOUNDED_BITS = 2**31 - 1  # no array among parameters (or roots): as wide as can be


@dataclass(frozen=True, slots=True)
class Refusal:
    """An emitter that was considered, and the condition that failed, in words."""

    emitter: str
    reason: str


@dataclass(frozen=True, eq=False)
class FusionAnalysis:
    """The facts that emitters and reports share.

    `emitter` is what the rules choose: loop, concatenate, dynamic_update_slice, input_slices, scatter, transpose,
    reduction, or a kind that no emitter takes (sort).  `heroes[i]` belongs to `roots[i]`.
    """

    name: str
    body: HloComputation
    device: Device
    roots: tuple[HloInstruction, ...]
    heroes: tuple[HloInstruction, ...]
    emitter: str
    refused: tuple[Refusal, ...]
    transpose: TransposeDescription | None = None
    reduction: ReductionDimensions | None = None
    updates: tuple[HloInstruction, ...] = ()

    @property
    def parameters(self) -> tuple[HloInstruction, ...]:
        return self.body.parameters

    @cached_property
    def instructions(self) -> tuple[HloInstruction, ...]:
        """What the root depends on, operands first (dead instructions left out)."""
        alive = reachable((self.body.root,))
        return tuple(each for each in self.body.instructions if each in alive)

    @cached_property
    def root_shapes(self) -> tuple[Shape, ...]:
        """One leaf shape an output buffer, in ABI order (a root listed twice in the tuple has two)."""
        return tuple(self.body.root.shape.leaves())

    @cached_property
    def smallest_input_bits(self) -> int:
        return _smallest(self.parameters)

    @cached_property
    def smallest_output_bits(self) -> int:
        return _smallest(self.roots)


def _smallest(instructions: tuple[HloInstruction, ...]) -> int:
    bits = [found for each in instructions if (found := shape_bits(each.shape)) is not None]
    return min(bits, default=UNBOUNDED_BITS)


@dataclass(slots=True)
class _Choice:
    """What a rule found: the fields of the analysis beside the emitter's name."""

    transpose: TransposeDescription | None = None
    reduction: ReductionDimensions | None = None
    updates: tuple[HloInstruction, ...] = ()
    keeps_heroes: bool = True


@dataclass(frozen=True, slots=True)
class _Facts:
    body: HloComputation
    device: Device
    roots: tuple[HloInstruction, ...]
    heroes: tuple[HloInstruction, ...]


def _reduction(facts: _Facts) -> _Choice | str:
    warp = 32 if facts.device.is_cpu else facts.device.warp_size
    pairs = list(zip(facts.roots, facts.heroes, strict=True))
    found = [real_reduction(root, hero, warp) for root, hero in pairs]
    first = next((i for i, each in enumerate(found) if isinstance(each, ReductionDimensions)), None)
    if first is None:
        reasons = [str(each) for each, (_, hero) in zip(found, pairs, strict=True) if hero.opcode == "reduce"]
        return reasons[0] if reasons else "no hero is a reduce"
    dims, hero = found[first], pairs[first][1]
    assert isinstance(dims, ReductionDimensions)
    elements = hero.operands[0].array_shape.elements
    for (root, _), other in zip(pairs, found, strict=True):
        if root is hero:
            continue
        if isinstance(other, ReductionDimensions):
            if other != dims:
                return f"the reduction under '{root.name}' has other dimensions than '{hero.name}'"
        elif isinstance(root.shape, TupleShape) or root.shape.elements != elements:
            return f"the side output '{root.name}' has another number of elements than '{hero.name}' reduces"
    return _Choice(reduction=dims)


def _transpose(facts: _Facts) -> _Choice | str:
    found = consistent_transpose(facts.roots, facts.heroes)
    return found if isinstance(found, str) else _Choice(transpose=found)


def _input_slices(facts: _Facts) -> _Choice | str:
    if len(facts.roots) < 2:
        return "there is one root"
    for root in facts.roots:
        if root.opcode != "slice":
            return f"the root '{root.name}' is no slice"
        if any(each.stride != 1 for each in slice_dims(root)):
            return f"the slice '{root.name}' has a stride"
    sources = [root.operands[0].array_shape for root in facts.roots]
    if any(each.dims != sources[0].dims or each.minor_to_major != sources[0].minor_to_major for each in sources):
        return "the slices' operands differ in shape"
    return _Choice()


def _scatter(facts: _Facts) -> _Choice | str:
    return _only_root(facts, "scatter")


def _sort(facts: _Facts) -> _Choice | str:
    return _only_root(facts, "sort")


def _only_root(facts: _Facts, opcode: str) -> _Choice | str:
    if len(facts.roots) != 1:
        return "there are several roots"
    return _Choice() if facts.roots[0].opcode == opcode else f"the root is no {opcode}"


def _concatenate(facts: _Facts) -> _Choice | str:
    if len(facts.roots) != 1:
        return "there are several roots"
    hero = facts.heroes[0]
    if hero.opcode != "concatenate":
        return "the hero is no concatenate"
    if len(hero.operands) > MAX_CONCATENATE_OPERANDS:
        return f"'{hero.name}' has {len(hero.operands)} operands, more than {MAX_CONCATENATE_OPERANDS}"
    return _Choice()


def _update(facts: _Facts) -> _Choice | str:
    found = in_place_updates(facts.body, facts.roots)
    return found if isinstance(found, str) else _Choice(updates=found, keeps_heroes=False)


_RULES: tuple[tuple[str, Callable[[_Facts], _Choice | str]], ...] = (
    ("reduction", _reduction),
    ("transpose", _transpose),
    ("input_slices", _input_slices),
    ("scatter", _scatter),
    ("sort", _sort),
    ("concatenate", _concatenate),
    ("dynamic_update_slice", _update),
)


def analyze(body: HloComputation, device: Device, name: str = "") -> FusionAnalysis:
    """The analysis of a fusion whose body is `body`; `name` is the fusion's own (the body's when empty).

    UnsupportedFusion for a body that gives nothing.
    """
    roots = roots_of(body)
    if not roots:
        raise UnsupportedFusion(f"fusion '{name or body.name}' has no result", span=body.root.span)
    heroes = tuple(find_hero(root, body) for root in roots)
    facts = _Facts(body, device, roots, heroes)
    refused: list[Refusal] = []
    for emitter, rule in _RULES:
        choice = rule(facts)
        if isinstance(choice, str):
            refused.append(Refusal(emitter, choice))
            continue
        kept = heroes if choice.keeps_heroes else roots
        return FusionAnalysis(
            *(name or body.name, body, device, roots, kept, emitter, tuple(refused)),
            transpose=choice.transpose,
            reduction=choice.reduction,
            updates=choice.updates,
        )
    # No hero: the loop emitter works from the roots.
    return FusionAnalysis(name or body.name, body, device, roots, roots, "loop", tuple(refused))
