"""Real numbers of an elementwise op with Python's operators, so that long formulas read as formulas.

In: the op's `Scalars` and an IR value of f64 (or f32).  Out: a `Real` whose arithmetic emits arith and math ops, or a
`Truth` that chooses between two of them.  Comparisons are ordered: false for NaN.
"""

from __future__ import annotations

from dataclasses import dataclass

from warpsmith.emitters.elemental.scalars import Scalars
from warpsmith.ir.core.ssa import Value

__all__ = ["Real", "Truth"]


@dataclass(frozen=True, slots=True, eq=False)
class Real:
    """One float."""

    s: Scalars
    value: Value

    def number(self, value: float) -> Real:
        """A constant of the same type."""
        return Real(self.s, self.s.emitter.constant(value, self.value.type))

    def _value(self, other: Real | float) -> Value:
        return other.value if isinstance(other, Real) else self.number(other).value

    def __add__(self, other: Real | float) -> Real:
        return Real(self.s, self.s.arith("addf", self.value, self._value(other)))

    def __sub__(self, other: Real | float) -> Real:
        return Real(self.s, self.s.arith("subf", self.value, self._value(other)))

    def __rsub__(self, other: float) -> Real:
        return self.number(other) - self

    def __mul__(self, other: Real | float) -> Real:
        return Real(self.s, self.s.arith("mulf", self.value, self._value(other)))

    def __truediv__(self, other: Real | float) -> Real:
        return Real(self.s, self.s.arith("divf", self.value, self._value(other)))

    def __neg__(self) -> Real:
        return Real(self.s, self.s.negf(self.value))

    def __abs__(self) -> Real:
        return self.apply("absf")

    def apply(self, function: str, *others: Real | float) -> Real:
        """An op of the math dialect."""
        return Real(self.s, self.s.math(function, self.value, *map(self._value, others)))

    def with_sign_of(self, other: Real) -> Real:
        """This magnitude with another number's sign."""
        return self.apply("copysign", other)

    def _compare(self, predicate: str, other: Real | float) -> Truth:
        return Truth(self.s, self.s.cmpf(predicate, self.value, self._value(other)))

    def __lt__(self, other: Real | float) -> Truth:
        return self._compare("olt", other)

    def __gt__(self, other: Real | float) -> Truth:
        return self._compare("ogt", other)

    def __ge__(self, other: Real | float) -> Truth:
        return self._compare("oge", other)

    def equals(self, other: Real | float) -> Truth:
        """Whether both are equal; false where one is NaN."""
        return self._compare("oeq", other)

    def is_nan(self) -> Truth:
        """Whether it is NaN."""
        return self._compare("uno", self)

    def is_negative(self) -> Truth:
        """By the sign bit: of -0 too."""
        return self.number(1.0).with_sign_of(self) < 0.0

    def max(self, other: Real) -> Real:
        """NaN if either is."""
        return Real(self.s, self.s.arith("maximumf", self.value, other.value))


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """A condition."""

    s: Scalars
    value: Value

    def __and__(self, other: Truth) -> Truth:
        return Truth(self.s, self.s.arith("andi", self.value, other.value))

    def __or__(self, other: Truth) -> Truth:
        return Truth(self.s, self.s.arith("ori", self.value, other.value))

    def select(self, a: Real, b: Real) -> Real:
        """`a` where it holds, `b` elsewhere."""
        return Real(self.s, self.s.select(self.value, a.value, b.value))
