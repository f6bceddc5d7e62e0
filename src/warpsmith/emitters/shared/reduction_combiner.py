"""A reduction's arithmetic as IR: the rule of `fusion.combiners`, applied to scalars.

In: a reduce and scalars of its operands, or partial results.  Out: scalars.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.dtypes import DType
from warpsmith.emitters.elemental import ElementalEmitter, Values
from warpsmith.emitters.elemental.converts import convert
from warpsmith.emitters.elemental.scalars import Scalars
from warpsmith.emitters.kernel.types import element_types
from warpsmith.fusion.combiners import CombinerRule, combiner_rule
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.core.types import Type

__all__ = ["Combiner", "by_hero", "combiner_of"]


@dataclass(frozen=True, slots=True)
class Combiner:
    """One reduce's arithmetic.  Values are given and taken as flat scalars, operand after operand."""

    rule: CombinerRule

    @property
    def hero(self) -> HloInstruction:
        """The reduction that is combined."""
        return self.rule.hero

    @property
    def computation(self) -> HloComputation:
        """What combines partial results."""
        return self.rule.computation

    @property
    def kept(self) -> tuple[DType, ...]:
        """The types of partial results."""
        return self.rule.kept

    @property
    def initial_counts(self) -> bool:
        """Whether the initial value isn't what threads start from, and must be combined in the end."""
        return self.rule.identity is not None

    @property
    def types(self) -> list[Type]:
        """The IR types of a partial result's scalars."""
        return [type for dtype in self.kept for type in element_types(dtype)]

    def split(self, values: Sequence[Value]) -> list[Values]:
        """Flat scalars as those of each operand."""
        found: list[Values] = []
        first = 0
        for dtype in self.kept:
            last = first + len(element_types(dtype))
            found.append(tuple(values[first:last]))
            first = last
        return found

    def start(self, e: ElementalEmitter) -> Values:
        """What a thread starts from, and what a thread without a value gives."""
        if self.rule.identity is None:
            return self.initial(e)
        return tuple(
            e.constant(number, type)
            for number, dtype in zip(self.rule.identity, self.kept, strict=True)
            for type in element_types(dtype)
        )

    def initial(self, e: ElementalEmitter) -> Values:
        """The reduce's own initial values."""
        count = len(self.kept)
        return self.widened(e, [e.evaluate(each, ()) for each in self.hero.operands[count:]])

    def widened(self, e: ElementalEmitter, values: Sequence[Values]) -> Values:
        """Elements of the operands, in the types that partial results have."""
        return self._converted(e, values, self.rule.dtypes, self.kept)

    def narrowed(self, e: ElementalEmitter, values: Sequence[Value]) -> Values:
        """A result in the reduce's own types."""
        return self._converted(e, self.split(values), self.kept, self.rule.dtypes)

    def _converted(
        self, e: ElementalEmitter, values: Sequence[Values], source: Sequence[DType], target: Sequence[DType]
    ) -> Values:
        found: list[Value] = []
        for parts, old, new in zip(values, source, target, strict=True):
            found += convert(Scalars(e, self.hero, (), old), parts, old, new)
        return tuple(found)

    def combine(self, e: ElementalEmitter, left: Sequence[Value], right: Sequence[Value]) -> Values:
        """Two partial results as one."""
        assert e.caller is not None
        return e.caller(e, self.computation, [*self.split(left), *self.split(right)])


def combiner_of(hero: HloInstruction) -> Combiner | str:
    """The combiner of a reduce; in words why its value can't be put together from partial results."""
    rule = combiner_rule(hero)
    return rule if isinstance(rule, str) else Combiner(rule)


def by_hero(combiners: Sequence[Combiner], values: Sequence[Value]) -> list[tuple[Combiner, list[Value]]]:
    """Flat values as those of each hero."""
    found: list[tuple[Combiner, list[Value]]] = []
    first = 0
    for combiner in combiners:
        last = first + len(combiner.types)
        found.append((combiner, list(values[first:last])))
        first = last
    return found
