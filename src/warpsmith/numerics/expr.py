"""A tiny straight-line language over f32, i32 and i1, in which `functions/` describes elementary functions.

In: a `Backend` that makes constants and applies the ops of the table `OPS` to values of its own.  Out: one
description of a function, which an IR pass turns into arith and math ops (scalars and vectors alike) and which
`NumpyBackend` evaluates over arrays; both give the same bits, as every op is IEEE with a single rounding.

`Float`, `Int` and `Bool` wrap a backend's value and carry Python's operators, so that formulas read as formulas.
There is no control flow but `rare`, which marks work that a backend may skip when no lane needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, TypeVar

__all__ = ["OPS", "Backend", "Bool", "Float", "Int", "Precision", "Type", "poly", "rare"]

T = TypeVar("T")


class Type(Enum):
    """Type of one lane."""

    F32 = "f32"
    I32 = "i32"
    I1 = "i1"


class Precision(Enum):
    """What a result has to be good for: f32 itself, or f16 or bf16 (computed in f32, rounded once by the caller).

    A 16-bit precision also promises that the arguments came from that type; no f16 is subnormal as f32.
    """

    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"

    def pick(self, f32: T, f16: T, bf16: T) -> T:
        """The choice for this precision."""
        return f32 if self is Precision.F32 else f16 if self is Precision.F16 else bf16


# Each op: result type and number of operands.  The names are MLIR's, without the dialect, but for `umulh`, the high
# word of an unsigned 32x32 product.  Shift amounts are always below 32; `fptosi` never meets a value out of range
# whose result is used.
OPS: dict[str, tuple[Type, int]] = {
    "addf": (Type.F32, 2),
    "subf": (Type.F32, 2),
    "mulf": (Type.F32, 2),
    "divf": (Type.F32, 2),
    "negf": (Type.F32, 1),
    "absf": (Type.F32, 1),
    "copysign": (Type.F32, 2),
    "sqrt": (Type.F32, 1),
    "muladd": (Type.F32, 3),  # a * b + c, rounded once or twice: the backend's choice
    "addi": (Type.I32, 2),
    "subi": (Type.I32, 2),
    "muli": (Type.I32, 2),
    "umulh": (Type.I32, 2),
    "andi": (Type.I32, 2),
    "ori": (Type.I32, 2),
    "xori": (Type.I32, 2),
    "shli": (Type.I32, 2),
    "shrui": (Type.I32, 2),
    "shrsi": (Type.I32, 2),
    "sitofp": (Type.F32, 1),
    "fptosi": (Type.I32, 1),
    "and": (Type.I1, 2),
    "or": (Type.I1, 2),
    "xor": (Type.I1, 2),
}


class Backend(Protocol):
    """What gives the ops their meaning.  A value is whatever the backend says it is: an array, an SSA value..."""

    def constant(self, type: Type, value: float) -> Any:
        """`value` in every lane, rounded to nearest for f32, modulo 2**32 for i32."""
        ...

    def apply(self, op: str, *operands: Any) -> Any:
        """A row of `OPS`."""
        ...

    def bitcast(self, type: Type, operand: Any) -> Any:
        """f32 to i32 or back, bits kept."""
        ...

    def compare(self, op: str, predicate: str, a: Any, b: Any) -> Any:
        """`cmpf` or `cmpi` with one of MLIR's predicates."""
        ...

    def select(self, condition: Any, a: Any, b: Any) -> Any:
        """`a` where the condition holds, `b` elsewhere; one of two f32, i32 or i1 values."""
        ...

    def rare(self, condition: Any, slow: Callable[[], list[Any]], fast: list[Any]) -> list[Any]:
        """`slow()` where the condition holds, `fast` elsewhere; `slow` may be skipped if no lane needs it."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Float:
    """An f32 value.  Comparisons are ordered (false for NaN)."""

    b: Backend
    raw: Any

    def _raw(self, other: Float | float) -> Any:
        return other.raw if isinstance(other, Float) else self.b.constant(Type.F32, other)

    def constant(self, value: float) -> Float:
        """`value` as a value of the same backend."""
        return Float(self.b, self.b.constant(Type.F32, value))

    def _op(self, op: str, a: Any, b: Any) -> Float:
        return Float(self.b, self.b.apply(op, a, b))

    def __add__(self, other: Float | float) -> Float:
        return self._op("addf", self.raw, self._raw(other))

    def __radd__(self, other: float) -> Float:
        return self._op("addf", self._raw(other), self.raw)

    def __sub__(self, other: Float | float) -> Float:
        return self._op("subf", self.raw, self._raw(other))

    def __rsub__(self, other: float) -> Float:
        return self._op("subf", self._raw(other), self.raw)

    def __mul__(self, other: Float | float) -> Float:
        return self._op("mulf", self.raw, self._raw(other))

    def __rmul__(self, other: float) -> Float:
        return self._op("mulf", self._raw(other), self.raw)

    def __truediv__(self, other: Float | float) -> Float:
        return self._op("divf", self.raw, self._raw(other))

    def __rtruediv__(self, other: float) -> Float:
        return self._op("divf", self._raw(other), self.raw)

    def __neg__(self) -> Float:
        return Float(self.b, self.b.apply("negf", self.raw))

    def __abs__(self) -> Float:
        return Float(self.b, self.b.apply("absf", self.raw))

    def muladd(self, factor: Float | float, addend: Float | float) -> Float:
        """`self * factor + addend`, where a single rounding would do no harm."""
        return Float(self.b, self.b.apply("muladd", self.raw, self._raw(factor), self._raw(addend)))

    def sqrt(self) -> Float:
        """The square root, rounded once."""
        return Float(self.b, self.b.apply("sqrt", self.raw))

    def with_sign_of(self, other: Float) -> Float:
        """This magnitude with another number's sign."""
        return self._op("copysign", self.raw, other.raw)

    def bits(self) -> Int:
        """The 32 bits as an integer."""
        return Int(self.b, self.b.bitcast(Type.I32, self.raw))

    def truncated(self) -> Int:
        """Towards zero; the value must be within i32 wherever the result is used."""
        return Int(self.b, self.b.apply("fptosi", self.raw))

    def _compare(self, predicate: str, other: Float | float) -> Bool:
        return Bool(self.b, self.b.compare("cmpf", predicate, self.raw, self._raw(other)))

    def __lt__(self, other: Float | float) -> Bool:
        return self._compare("olt", other)

    def __le__(self, other: Float | float) -> Bool:
        return self._compare("ole", other)

    def __gt__(self, other: Float | float) -> Bool:
        return self._compare("ogt", other)

    def __ge__(self, other: Float | float) -> Bool:
        return self._compare("oge", other)

    def equals(self, other: Float | float) -> Bool:
        """Whether both are equal; false where one is NaN."""
        return self._compare("oeq", other)

    def unordered(self, other: Float | float) -> Bool:
        """Whether either is NaN."""
        return self._compare("uno", other)

    def at_most(self, limit: float) -> Float:
        """min(self, limit); a NaN stays.  Written as the compare and select that CPUs do in one instruction."""
        return (self > limit).select(self.constant(limit), self)

    def at_least(self, limit: float) -> Float:
        """max(self, limit); a NaN stays."""
        return (self < limit).select(self.constant(limit), self)


@dataclass(frozen=True, slots=True, eq=False)
class Int:
    """An i32 value; arithmetic wraps, comparisons are signed."""

    b: Backend
    raw: Any

    def _raw(self, other: Int | int) -> Any:
        return other.raw if isinstance(other, Int) else self.b.constant(Type.I32, other)

    def _op(self, op: str, other: Int | int) -> Int:
        return Int(self.b, self.b.apply(op, self.raw, self._raw(other)))

    def constant(self, value: int) -> Int:
        """A constant of 32 bits."""
        return Int(self.b, self.b.constant(Type.I32, value))

    def __add__(self, other: Int | int) -> Int:
        return self._op("addi", other)

    def __sub__(self, other: Int | int) -> Int:
        return self._op("subi", other)

    def __rsub__(self, other: int) -> Int:
        return self.constant(other) - self

    def __mul__(self, other: Int | int) -> Int:
        return self._op("muli", other)

    def times_high(self, other: Int) -> Int:
        """High word of the unsigned product."""
        return self._op("umulh", other)

    def __and__(self, other: Int | int) -> Int:
        return self._op("andi", other)

    def __or__(self, other: Int | int) -> Int:
        return self._op("ori", other)

    def __xor__(self, other: Int | int) -> Int:
        return self._op("xori", other)

    def __lshift__(self, other: Int | int) -> Int:
        return self._op("shli", other)

    def __rshift__(self, other: Int | int) -> Int:
        """Arithmetic."""
        return self._op("shrsi", other)

    def logical_shift_right(self, other: Int | int) -> Int:
        """The bits shifted right, zeros from the left."""
        return self._op("shrui", other)

    def as_float(self) -> Float:
        """The f32 with these bits."""
        return Float(self.b, self.b.bitcast(Type.F32, self.raw))

    def to_float(self) -> Float:
        """The f32 nearest to this signed integer."""
        return Float(self.b, self.b.apply("sitofp", self.raw))

    def _compare(self, predicate: str, other: Int | int) -> Bool:
        return Bool(self.b, self.b.compare("cmpi", predicate, self.raw, self._raw(other)))

    def equals(self, other: Int | int) -> Bool:
        """Whether both are equal."""
        return self._compare("eq", other)

    def __lt__(self, other: Int | int) -> Bool:
        return self._compare("slt", other)

    def below(self, other: Int | int) -> Bool:
        """Unsigned less-than."""
        return self._compare("ult", other)


Value = TypeVar("Value", Float, Int)


@dataclass(frozen=True, slots=True, eq=False)
class Bool:
    """An i1 value."""

    b: Backend
    raw: Any

    def __and__(self, other: Bool) -> Bool:
        return Bool(self.b, self.b.apply("and", self.raw, other.raw))

    def __or__(self, other: Bool) -> Bool:
        return Bool(self.b, self.b.apply("or", self.raw, other.raw))

    def __xor__(self, other: Bool) -> Bool:
        return Bool(self.b, self.b.apply("xor", self.raw, other.raw))

    def select(self, a: Value, b: Value) -> Value:
        """`a` where this holds, `b` elsewhere."""
        return type(a)(self.b, self.b.select(self.raw, a.raw, b.raw))

    def choose(self, a: float, b: float) -> Float:
        """One of two f32 constants."""
        f32 = Type.F32
        return Float(self.b, self.b.select(self.raw, self.b.constant(f32, a), self.b.constant(f32, b)))

    def choose_int(self, a: int, b: int) -> Int:
        """One of two i32 constants."""
        i32 = Type.I32
        return Int(self.b, self.b.select(self.raw, self.b.constant(i32, a), self.b.constant(i32, b)))


def rare(condition: Bool, slow: Callable[[], tuple[Float, Int]], fast: tuple[Float, Int]) -> tuple[Float, Int]:
    """`slow()` where the condition holds, `fast` elsewhere; a backend may skip `slow` when no lane needs it."""

    def raw_slow() -> list[Any]:
        return [value.raw for value in slow()]

    b = condition.b
    value, integer = b.rare(condition.raw, raw_slow, [one.raw for one in fast])
    return Float(b, value), Int(b, integer)


def poly(x: Float, coefficients: tuple[float, ...]) -> Float:
    """c[0] + c[1] x + c[2] x**2 + ..., by Horner's rule."""
    value: Float | float = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        value = x.muladd(value, coefficient)
    return value if isinstance(value, Float) else x.constant(value)
