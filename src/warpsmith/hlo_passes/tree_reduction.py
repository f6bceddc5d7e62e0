"""tree-reduction: reductions that are too large for one block, or for one core, become two kernels.

    f = f32[] fusion(x)                                f.partial = f32[4096] fusion(x)
      { ROOT abs(reduce(negate(x))) }          ->        { ROOT reduce(reshape(negate(x)), dims {1}) }
                                                       f = f32[] fusion(x, f.partial)
                                                         { ROOT abs(reduce(partial)) }

In: a module as `wrap` leaves it, and a device.  Out: the module with such fusions split into one for partial results
and one for the rest: on a GPU what XLA's `tree_reduction_rewriter.cc` splits, on a CPU reduces of many elements to few
results, which one core each would take.  Several reduced dims are taken in turn, the minor ones first in a row
reduction, the major ones first in a column reduction; one dim of n elements becomes k1 x k2 with k1 near the root of n,
padded where n has no such divisor.  Partial results are kept as `combiners` says: a bf16 sum stays f32 until its end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warpsmith.devices import Device
from warpsmith.fusion.combiners import CombinerRule, combiner_rule
from warpsmith.fusion.heroes import find_hero
from warpsmith.fusion.reductions import MAX_ROW_MAJOR, MAX_ROW_REDUCED, ReductionDimensions, few_results, oversized
from warpsmith.fusion.traversal import reachable, roots_of
from warpsmith.hlo.attributes import PaddingConfig, PaddingDim
from warpsmith.hlo.literals import Literal
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule
from warpsmith.hlo.shapes import Shape, TupleShape
from warpsmith.hlo_passes.kit import Rewriting, rewrite_steps, with_operands
from warpsmith.hlo_passes.support.bodies import Body, Outer, elements_of, fusion_of
from warpsmith.hlo_passes.wrap import wrap

__all__ = ["CONTRACT", "run", "split_reductions"]

CONTRACT = "R"


def run(module: HloModule, target: Device) -> HloModule:
    """The module with plain ops wrapped, then `split_reductions`."""
    return split_reductions(wrap(module), target)


def split_reductions(module: HloModule, target: Device) -> HloModule:
    """The module with every fusion split whose hero is a reduce that one block can't finish, or one core shouldn't."""

    def rule(at: Rewriting) -> HloInstruction | None:
        return _split(at, at.old, at.operands(at.old), target) if at.old.opcode == "fusion" else None

    return rewrite_steps(module, rule)


@dataclass(frozen=True, slots=True)
class _Stages:
    """How a reduce is taken apart, by dims.

    The operand is seen as `before` x one reduced dim x `after` (`merged`, padded to `padded`), then as `dims`, of which
    the first stage reduces `first`; of what is left the second stage reduces `second`.
    """

    merged: tuple[int, ...]
    padded: tuple[int, ...]
    dims: tuple[int, ...]
    first: tuple[int, ...]
    second: tuple[int, ...]


def _factors(n: int) -> tuple[int, int]:
    """k1 and k2 with k1 * k2 >= n, k1 near the root from below, and as little more than n as can be."""
    root = math.isqrt(n)
    best = min(range(max(1, root // 2), root + 1), key=lambda k: (-n % k, k & (k - 1) != 0, -k))
    return best, -(-n // best)


def _stages(hero: HloInstruction, found: ReductionDimensions) -> _Stages:
    """The stages of a reduce of a row-major operand, reduced dims of size 1 left out."""
    reduced = set(hero.ints("dimensions"))
    sizes = [(n, d in reduced) for d, n in enumerate(hero.operands[0].array_shape.dims) if n != 1 or d not in reduced]
    end = max(i for i, (_, gone) in enumerate(sizes) if gone) + 1
    start = end
    while start and sizes[start - 1][1]:
        start -= 1
    before = tuple(n for n, _ in sizes[:start])
    after = tuple(n for n, _ in sizes[end:])
    n = math.prod(size for size, _ in sizes[start:end])
    majors = tuple(i for i, (_, gone) in enumerate(sizes[:start]) if gone)
    merged = (*before, n, *after)
    if found.is_row and majors and n <= MAX_ROW_REDUCED:  # too many major ones: the minor ones first
        return _Stages(merged, merged, merged, (start,), majors)
    k1, k2 = _factors(n)
    dims = (*before, k1, k2, *after)
    padded = (*before, k1 * k2, *after)
    if not found.is_row:
        return _Stages(merged, padded, dims, (start,), (start,))
    if found.sizes[0] <= MAX_ROW_MAJOR:
        return _Stages(merged, padded, dims, (*majors, start + 1), (start - len(majors),))
    return _Stages(merged, padded, dims, (start + 1,), (*majors, start))


def _candidate(
    fusion: HloInstruction, target: Device
) -> tuple[HloInstruction, ReductionDimensions, CombinerRule] | None:
    """A hero of the fusion to take apart."""
    body = fusion.attr("calls", HloComputation)
    for root in roots_of(body):
        hero = find_hero(root, body)
        found = oversized(hero, target.warp_size) if target.is_gpu else few_results(hero)
        if found is None:
            continue
        shapes = [*(each.array_shape for each in hero.operands), *hero.shape.leaves()]
        rule = combiner_rule(hero)
        if not isinstance(rule, str) and all(shape.is_row_major for shape in shapes):
            return hero, found, rule
    return None


def _split(at: Rewriting, old: HloInstruction, operands: tuple[HloInstruction, ...], target: Device) -> HloInstruction:
    """Emit a fusion on new operands, in as many kernels as it takes; what stands for it."""
    candidate = _candidate(old, target)
    fusion = old if operands == old.operands else with_operands(old, operands)
    if candidate is None:
        return at.emit(fusion)
    hero, found, rule = candidate
    split = _Split(at, fusion, hero, _stages(hero, found), rule)
    name = at.fresh(f"{fusion.name}.partial")
    partial = _split(at, *fusion_of(at, fusion, name, split.first_stage()), target)
    count = len(rule.kept)
    parts = elements_of(at, partial, count + len(split.sides_first))
    values = dict(zip(split.sides_first, parts[count:], strict=True))
    if split.sides_apart:
        apart = _split(at, *fusion_of(at, fusion, at.fresh(f"{fusion.name}.sides"), split.others()), target)
        values.update(zip(split.sides_apart, elements_of(at, apart, len(split.sides_apart)), strict=True))
    name = at.fresh(f"{fusion.name}.rest") if values else fusion.name
    rest = _split(at, *fusion_of(at, fusion, name, split.second_stage(parts[:count])), target)
    if not values:
        return rest
    values.update(zip(split.finished, elements_of(at, rest, len(split.finished)), strict=True))
    listed = tuple(values[root] for root in split.body.root.operands)
    return at.emit(HloInstruction(fusion.name, "tuple", fusion.shape, listed, origin=fusion.origin))


def _computation(at: Rewriting, rule: CombinerRule) -> HloComputation:
    """What combines partial results, as a computation of the module."""
    own = rule.hero.attr("to_apply", HloComputation)
    if rule.computation is own:
        return own
    made = HloComputation(at.fresh(rule.computation.name), rule.computation.instructions, rule.computation.root)
    at.bodies.append(made)
    return made


def _starts(rule: CombinerRule) -> list[Literal]:
    """What partial results start from, in the types that they have."""
    inits = rule.hero.operands[len(rule.kept) :]
    found: list[Literal] = []
    for i, (init, dtype) in enumerate(zip(inits, rule.kept, strict=True)):
        if rule.identity is None:
            assert init.literal is not None
            value = np.asarray(init.literal.array).reshape(())
        elif dtype.is_integer and not dtype.is_signed:
            value = np.asarray(int(rule.identity[i]) % (1 << dtype.bits))
        else:
            value = np.asarray(rule.identity[i])
            value = value + 1j * value if dtype.is_complex else value
        found.append(Literal.of(value.astype(dtype.numpy)))
    return found


class _Split:
    """The bodies that a fusion is taken apart into.

    Roots that the hero has no part in are computed as its operand is read, in the first stage, where they have as many
    elements, else in a fusion of their own.
    """

    def __init__(
        self, at: Rewriting, fusion: HloInstruction, hero: HloInstruction, stages: _Stages, rule: CombinerRule
    ) -> None:
        self.at, self.fusion, self.hero, self.stages, self.rule = at, fusion, hero, stages, rule
        self.body = fusion.attr("calls", HloComputation)
        roots = roots_of(self.body)
        sides = tuple(root for root in roots if hero not in reachable((root,)))
        elements = math.prod(stages.padded)
        fits = all(not root.shape.is_tuple and root.array_shape.elements == elements for root in sides)
        self.finished = tuple(root for root in roots if root not in sides)
        self.sides_first = sides if fits else ()
        self.sides_apart = () if fits else sides

    def _new(self, suffix: str) -> Body:
        return Body(self.at, self.body, self.fusion.operands, f"{self.fusion.name}.{suffix}")

    def first_stage(self) -> tuple[HloComputation, Outer]:
        """Partial results, then the roots that are computed with them."""
        rule, stages, body = self.rule, self.stages, self._new("partial.body")
        b, count = body.builder, len(rule.kept)
        body.take([*self.hero.operands[:count], *self.sides_first])
        starts = [b.constant(literal, f"start.{i}") for i, literal in enumerate(_starts(rule))]
        values: list[HloInstruction] = []
        for operand, dtype, start in zip(self.hero.operands[:count], rule.kept, starts, strict=True):
            value = body.convert(body.inside[operand], dtype, f"{operand.name}.wide")
            if value.array_shape.dims != stages.merged:
                value = b.add("reshape", Shape(dtype, stages.merged), [value])
            if stages.padded != stages.merged:
                amounts = (PaddingDim(0, high - low) for low, high in zip(stages.merged, stages.padded, strict=True))
                attributes = {"padding": PaddingConfig(tuple(amounts))}
                value = b.add("pad", Shape(dtype, stages.padded), [value, start], attributes)
            if stages.dims != stages.padded:
                value = b.add("reshape", Shape(dtype, stages.dims), [value])
            values.append(value)
        partial = self._reduce(body, values, starts, stages.first, f"{self.hero.name}.partial")
        if not self.sides_first:
            return b.build(partial), body.outer
        parts = [partial] if count == 1 else [b.get_tuple_element(partial, i) for i in range(count)]
        b.tuple([*parts, *(body.inside[root] for root in self.sides_first)])
        return b.build(), body.outer

    def others(self) -> tuple[HloComputation, Outer]:
        """The roots that have nothing to do with the hero."""
        body = self._new("sides.body")
        body.take(self.sides_apart)
        return self._rooted(body, self.sides_apart), body.outer

    def second_stage(self, parts: Sequence[HloInstruction]) -> tuple[HloComputation, Outer]:
        """The roots that depend on the hero, with partial results in place of the hero's operands."""
        rule, body = self.rule, self._new("body")
        inits = self.hero.operands[len(rule.kept) :]
        body.take(inits)
        values = [body.parameter(part.shape, f"partial.{i}", part) for i, part in enumerate(parts)]
        starts = [
            body.convert(body.inside[init], dtype, f"{init.name}.wide")
            for init, dtype in zip(inits, rule.kept, strict=True)
        ]
        narrow = rule.kept == rule.dtypes
        name = self.hero.name if narrow else f"{self.hero.name}.wide"
        result = self._reduce(body, values, starts, self.stages.second, name)
        body.inside[self.hero] = result if narrow else body.convert(result, rule.dtypes[0], self.hero.name)
        if self.sides_first or self.sides_apart:
            body.take(self.finished)
            return self._rooted(body, self.finished), body.outer
        body.take([self.body.root])
        return body.builder.build(body.inside[self.body.root]), body.outer

    def _rooted(self, body: Body, roots: Sequence[HloInstruction]) -> HloComputation:
        """The finished body: one root, or a tuple of several."""
        if len(roots) == 1:
            return body.builder.build(body.inside[roots[0]])
        body.builder.tuple([body.inside[root] for root in roots])
        return body.builder.build()

    def _reduce(
        self,
        body: Body,
        values: Sequence[HloInstruction],
        starts: Sequence[HloInstruction],
        dims: tuple[int, ...],
        name: str,
    ) -> HloInstruction:
        kept = tuple(n for d, n in enumerate(values[0].array_shape.dims) if d not in dims)
        leaves = tuple(Shape(dtype, kept) for dtype in self.rule.kept)
        shape = leaves[0] if len(leaves) == 1 else TupleShape(leaves)
        attributes = {"dimensions": dims, "to_apply": _computation(self.at, self.rule)}
        return body.builder.add("reduce", shape, [*values, *starts], attributes, name=name)
