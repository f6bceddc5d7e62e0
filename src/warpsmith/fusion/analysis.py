"""What a fusion is: roots, heroes, and the emitter that the rules choose for it.

In: a fusion's body and the device.  Out: `FusionAnalysis`, with the reason in words for each emitter that was refused.
The order of decisions is that of XLA's `xla/service/gpu/hlo_fusion_analysis.cc`; input slices are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from warpsmith.devices import Device
from warpsmith.errors import UnsupportedFusion
from warpsmith.fusion.heroes import consistent_transpose, find_hero
from warpsmith.fusion.in_place import in_place_updates
from warpsmith.fusion.reasons import Reason, reason
from warpsmith.fusion.reductions import ReductionDimensions, core_reduction, real_reduction
from warpsmith.fusion.transposes import TransposeDescription, describe_transpose
from warpsmith.fusion.traversal import reachable, roots_of, shape_bits, slice_dims
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.shapes import Shape, TupleShape

__all__ = ["FusionAnalysis", "Refusal", "analyze", "later_rules"]

MAX_CONCATENATE_OPERANDS = 4
UNBOUNDED_BITS = 2**31 - 1  # no array among parameters (or roots): as wide as can be


@dataclass(frozen=True, slots=True)
class Refusal:
    """An emitter that was considered, and the condition that failed: in words, and its numbers by name."""

    emitter: str
    reason: str
    numbers: Mapping[str, int] = field(default_factory=dict[str, int], hash=False)

    @classmethod
    def of(cls, emitter: str, why: Reason | str) -> Refusal:
        """A refusal for a reason in words, or in words and numbers."""
        return cls(emitter, why) if isinstance(why, str) else cls(emitter, why.text, why.numbers)


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
        """The fusion's parameters, in order."""
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
        """The width of the parameters' narrowest elements."""
        return _smallest(self.parameters)

    @cached_property
    def smallest_output_bits(self) -> int:
        """The width of the roots' narrowest elements."""
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


def _reduction(facts: _Facts) -> _Choice | Reason:
    if facts.device.is_cpu:
        found = [core_reduction(hero) for hero in facts.heroes]
    else:
        found = [real_reduction(hero, facts.device.warp_size) for hero in facts.heroes]
    first = next((i for i, each in enumerate(found) if isinstance(each, ReductionDimensions)), None)
    if first is None:
        reasons = [each for each, hero in zip(found, facts.heroes, strict=True) if hero.opcode == "reduce"]
        why = next((each for each in reasons if isinstance(each, Reason)), None)
        return why or _no_hero(facts, "reduce", "a chain of ops with one operand each")
    dims, hero = found[first], facts.heroes[first]
    assert isinstance(dims, ReductionDimensions)
    elements = hero.operands[0].array_shape.elements
    for root, other in zip(facts.roots, found, strict=True):
        if root is hero:
            continue
        if isinstance(other, ReductionDimensions):
            if other != dims:
                return reason(
                    f"the reduction under '{root.name}' has the dimensions {list(other.sizes)}, '{hero.name}' "
                    f"{list(dims.sizes)}: one grid can't serve both"
                )
        elif isinstance(root.shape, TupleShape) or root.shape.elements != elements:
            others = [leaf.elements for leaf in root.shape.leaves()]
            return reason(
                f"the side output '{root.name}' has {others[0]} elements, '{hero.name}' reduces {elements}",
                elements=others[0],
                reduced=elements,
            )
    return _Choice(reduction=dims)


def _no_hero(facts: _Facts, opcode: str, way: str) -> Reason:
    """Why no hero is a `opcode`: there is none, or it isn't reached from a root by `way`."""
    inside = [each.name for each in facts.body if each.opcode == opcode]
    if not inside:
        return reason(f"the fusion has no {opcode}")
    return reason(f"no hero is a {opcode}: '{inside[0]}' isn't what a root reaches through {way}")


_CHAIN = "elementwise ops and bitcasts of at most three operands, it alone and on every path"


def _transpose(facts: _Facts) -> _Choice | Reason:
    found = consistent_transpose(facts.roots, facts.heroes)
    if not isinstance(found, Reason):
        return _Choice(transpose=found)
    if any(hero.opcode == "transpose" for hero in facts.heroes):
        return found
    # A transpose that wants no tile is no hero: it says why itself.
    inside = [describe_transpose(each) for each in facts.body if each.opcode == "transpose"]
    untiled = [each for each in inside if isinstance(each, Reason)]
    return untiled[0] if untiled and len(untiled) == len(inside) else _no_hero(facts, "transpose", _CHAIN)


def _input_slices(facts: _Facts) -> _Choice | Reason:
    if len(facts.roots) < 2:
        return reason("there is 1 root, and slices are worth it from 2 on", roots=1, least=2)
    for root in facts.roots:
        if root.opcode != "slice":
            return reason(f"the root '{root.name} = {root.opcode}' is no slice")
        strides = [each.stride for each in slice_dims(root)]
        if max(strides, default=1) != 1:
            return reason(
                f"the slice '{root.name}' has the strides {strides}, not 1 alone", stride=max(strides), most=1
            )
    sources = [root.operands[0].array_shape for root in facts.roots]
    if any(each.dims != sources[0].dims or each.minor_to_major != sources[0].minor_to_major for each in sources):
        shapes = ", ".join(dict.fromkeys(str(each) for each in sources))
        return reason(f"the slices' operands differ in shape: {shapes}")
    return _Choice()


def _scatter(facts: _Facts) -> _Choice | Reason:
    return _only_root(facts, "scatter")


def _sort(facts: _Facts) -> _Choice | Reason:
    return _only_root(facts, "sort")


def _several_roots(facts: _Facts) -> Reason | None:
    count = len(facts.roots)
    return None if count == 1 else reason(f"there are {count} roots, and it writes one", roots=count, most=1)


def _only_root(facts: _Facts, opcode: str) -> _Choice | Reason:
    root = facts.roots[0]
    found = None if root.opcode == opcode else reason(f"the root is '{root.name} = {root.opcode}', no {opcode}")
    return _several_roots(facts) or found or _Choice()


def _concatenate(facts: _Facts) -> _Choice | Reason:
    several = _several_roots(facts)
    if several is not None:
        return several
    hero = facts.heroes[0]
    if hero.opcode != "concatenate":
        return _no_hero(facts, "concatenate", _CHAIN)
    count = len(hero.operands)
    if count > MAX_CONCATENATE_OPERANDS:
        text = f"'{hero.name}' has {count} operands, more than {MAX_CONCATENATE_OPERANDS}"
        return reason(text, operands=count, most=MAX_CONCATENATE_OPERANDS)
    return _Choice()


def _update(facts: _Facts) -> _Choice | Reason:
    found = in_place_updates(facts.body, facts.roots)
    return found if isinstance(found, Reason) else _Choice(updates=found, keeps_heroes=False)


_RULES: tuple[tuple[str, Callable[[_Facts], _Choice | Reason]], ...] = (
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
        if isinstance(choice, Reason):
            refused.append(Refusal.of(emitter, choice))
            continue
        kept = heroes if choice.keeps_heroes else roots
        return FusionAnalysis(
            name or body.name,
            body,
            device,
            roots,
            kept,
            emitter,
            tuple(refused),
            transpose=choice.transpose,
            reduction=choice.reduction,
            updates=choice.updates,
        )
    # No hero: the loop emitter works from the roots.
    return FusionAnalysis(name or body.name, body, device, roots, roots, "loop", tuple(refused))


def later_rules(analysis: FusionAnalysis) -> tuple[Refusal, ...]:
    """Why not an emitter whose rule wasn't asked: the rule that `analyze` chose by stands before its own.

    What such a rule would have said is part of the reason.
    """
    names = [emitter for emitter, _ in _RULES]
    if analysis.emitter not in names:
        return ()
    roots = analysis.roots
    facts = _Facts(analysis.body, analysis.device, roots, tuple(find_hero(root, analysis.body) for root in roots))
    found: list[Refusal] = []
    for emitter, rule in _RULES[names.index(analysis.emitter) + 1 :]:
        choice = rule(facts)
        holds = reason(f"its conditions hold, and {analysis.emitter} is asked before it")
        found.append(Refusal.of(emitter, choice if isinstance(choice, Reason) else holds))
    return tuple(found)
