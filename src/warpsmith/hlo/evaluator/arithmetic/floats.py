"""Float ops: exact ones in the carrier format, transcendental ones in float64; the caller rounds to the HLO type.

In: float arrays as `formats.widen` gives them (exact ops) or float64 (transcendental ops).  Out: arrays of that format.
An op in `EXACT_*` gives the correctly rounded result after the one rounding that follows; one in `WIDE_*` gives
float64 within about an ulp of float64, so that the rounded result is the correct one almost always.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from warpsmith.arrays import Array
from warpsmith.hlo.evaluator.arithmetic.special import erf, logistic, rsqrt
from warpsmith.numerics.functions.table import BY_OPCODE, implemented

__all__ = [
    "COMPARE",
    "EXACT_BINARY",
    "EXACT_UNARY",
    "WIDE_BINARY",
    "WIDE_UNARY",
    "maximum",
    "minimum",
    "total_order",
]

Unary: TypeAlias = Callable[[Array], Array]
Binary: TypeAlias = Callable[[Array, Array], Array]


def _sign(x: Array) -> Array:
    return np.where((x == 0) | np.isnan(x), x, np.copysign(x.dtype.type(1), x))


def _round_away(x: Array) -> Array:
    """The nearest integer, halves away from zero."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(x.dtype.type(1), x), whole)


def _either_zero(a: Array, b: Array, picked: Array, bits: Callable[[Array, Array], Array]) -> Array:
    """`picked`, save that where both operands are zero the sign bits decide."""
    zeros = (a == 0) & (b == 0)
    if not zeros.any():
        return picked
    kind = f"u{a.dtype.itemsize}"
    return np.where(zeros, bits(a.view(kind), b.view(kind)).view(a.dtype), picked)


def maximum(a: Array, b: Array) -> Array:
    """NaN if either is; +0 above -0."""
    return _either_zero(a, b, np.maximum(a, b), np.bitwise_and)


def minimum(a: Array, b: Array) -> Array:
    """NaN if either is; -0 below +0."""
    return _either_zero(a, b, np.minimum(a, b), np.bitwise_or)


EXACT_UNARY: Mapping[str, Unary] = {
    "abs": np.abs,
    "negate": np.negative,
    "ceil": np.ceil,
    "floor": np.floor,
    "round-nearest-afz": _round_away,
    "round-nearest-even": np.rint,
    "sign": _sign,
    "sqrt": np.sqrt,
    "real": np.positive,
}

EXACT_BINARY: Mapping[str, Binary] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "remainder": np.fmod,
    "maximum": maximum,
    "minimum": minimum,
}

_OWN: dict[str, Unary] = {"erf": erf, "logistic": logistic, "rsqrt": rsqrt}
"""Functions that numpy hasn't."""


def _wide(arity: int) -> dict[str, Callable[..., Array]]:
    """The elementary functions of so many arguments, but for those that are exact."""
    rows = [row for row in BY_OPCODE.values() if row.arity == arity and row.opcode not in EXACT_UNARY]
    known: dict[str, Callable[..., Array]] = {row.opcode: row.numpy for row in rows if row.numpy is not None} | _OWN
    return implemented("hlo/evaluator/arithmetic/floats.py", known, [row.opcode for row in rows])


WIDE_UNARY: Mapping[str, Unary] = _wide(1)
WIDE_BINARY: Mapping[str, Binary] = _wide(2)

COMPARE: Mapping[str, Binary] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def total_order(array: Array) -> Array:
    """Integers that stand in the order -NaN < -inf < ... < -0 < +0 < ... < inf < NaN, from a float array's own bits."""
    signed = array.view(f"i{array.dtype.itemsize}")
    return np.where(signed < 0, signed ^ np.iinfo(signed.dtype).max, signed)
