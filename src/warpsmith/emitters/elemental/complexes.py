"""Elementwise ops on complex numbers, held as two floats: rows of the table.  Reference: section 9.2.

c64 quotients, moduli and roots are computed in f64, where nothing overflows, and rounded once; c128 is scaled instead.
"""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.emitters.elemental.emitter import Values
from warpsmith.emitters.elemental.scalars import Row, Scalar, Scalars, as_pred
from warpsmith.ir.core import Value
from warpsmith.ir.types import F64, FloatType

__all__ = ["COMPLEX_ROWS", "complex_product"]

Pair = tuple[Value, Value]


def _pair(values: Values) -> Pair:
    return values[0], values[1]


def _componentwise(name: str) -> Scalar:
    def emit(s: Scalars) -> Values:
        (a, b), (c, d) = _pair(s.args[0]), _pair(s.args[1])
        return s.arith(name, a, c), s.arith(name, b, d)

    return emit


def complex_product(s: Scalars, x: Pair, y: Pair) -> Pair:
    (a, b), (c, d) = x, y
    real = s.arith("subf", s.arith("mulf", a, c), s.arith("mulf", b, d))
    return real, s.arith("addf", s.arith("mulf", a, d), s.arith("mulf", b, c))


def _multiply(s: Scalars) -> Values:
    return complex_product(s, _pair(s.args[0]), _pair(s.args[1]))


def _wide(emit: Scalar) -> Scalar:
    """Compute in f64 and round once."""

    def wide(s: Scalars) -> Values:
        type = s.args[0][0].type
        assert isinstance(type, FloatType)
        if type is F64:
            return emit(s)
        args = [tuple(s.resize_float(part, F64) for part in each) for each in s.args]
        return tuple(s.resize_float(v, type) for v in emit(Scalars(s.emitter, s.instruction, args, s.dtype)))

    return wide


def _quotient(s: Scalars, x: Pair, y: Pair) -> Pair:
    """Smith's algorithm: scaled by the larger part of the divisor."""
    (a, b), (c, d) = x, y
    real_larger = s.cmpf("oge", s.math("absf", c), s.math("absf", d))
    large, small = s.select(real_larger, c, d), s.select(real_larger, d, c)
    ratio = s.arith("divf", small, large)
    bottom = s.arith("addf", large, s.arith("mulf", small, ratio))
    first, second = s.select(real_larger, a, b), s.select(real_larger, b, a)
    top = s.arith("addf", first, s.arith("mulf", second, ratio))
    # (a+bi)/(c+di): imaginary top is b - a*r when |c| >= |d|, and b*r - a otherwise.
    cross_one = s.arith("subf", b, s.arith("mulf", a, ratio))
    cross_two = s.arith("subf", s.arith("mulf", b, ratio), a)
    return s.arith("divf", top, bottom), s.arith("divf", s.select(real_larger, cross_one, cross_two), bottom)


def _divide(s: Scalars) -> Values:
    return _quotient(s, _pair(s.args[0]), _pair(s.args[1]))


def _modulus(s: Scalars, z: Pair) -> Value:
    """sqrt(a^2 + b^2), scaled by the larger part; an infinite part makes it infinite whatever the other is."""
    a, b = s.math("absf", z[0]), s.math("absf", z[1])
    infinity = s.emitter.constant(float("inf"), a.type)
    larger_is_a = s.cmpf("oge", a, b)
    large, small = s.select(larger_is_a, a, b), s.select(larger_is_a, b, a)
    zero, one = s.emitter.constant(0.0, a.type), s.emitter.constant(1.0, a.type)
    ratio = s.arith("divf", small, s.select(s.cmpf("oeq", large, zero), one, large))
    root = s.arith("mulf", large, s.math("sqrt", s.arith("addf", one, s.arith("mulf", ratio, ratio))))
    infinite = s.arith("ori", s.cmpf("oeq", a, infinity), s.cmpf("oeq", b, infinity))
    return s.select(infinite, infinity, root)


def _abs(s: Scalars) -> Values:
    return (_modulus(s, _pair(s.args[0])),)


def _sign(s: Scalars) -> Values:
    z = _pair(s.args[0])
    size = _modulus(s, z)
    is_zero = s.cmpf("oeq", size, s.emitter.constant(0.0, size.type))
    safe = s.select(is_zero, s.emitter.constant(1.0, size.type), size)
    return tuple(s.arith("divf", part, safe) for part in z)


def _exp(s: Scalars) -> Values:
    a, b = _pair(s.args[0])
    size = s.math("exp", a)
    return s.arith("mulf", size, s.math("cos", b)), s.arith("mulf", size, s.math("sin", b))


def _log(s: Scalars) -> Values:
    a, b = _pair(s.args[0])
    return _log_modulus(s, (a, b)), s.math("atan2", b, a)


def _log_modulus(s: Scalars, z: Pair) -> Value:
    """log|z|; near 1 as log1p(|z|^2 - 1) / 2 with the difference taken by factors, so that nothing cancels."""
    x, y = s.math("absf", z[0]), s.math("absf", z[1])
    size = _modulus(s, z)
    constant = s.emitter.constant
    one, half = constant(1.0, size.type), constant(0.5, size.type)
    x_larger = s.cmpf("oge", x, y)
    large, small = s.select(x_larger, x, y), s.select(x_larger, y, x)
    above = s.arith("mulf", s.arith("subf", large, one), s.arith("addf", large, one))
    near = s.arith("mulf", half, s.math("log1p", s.arith("addf", above, s.arith("mulf", small, small))))
    low, high = s.cmpf("ogt", size, half), s.cmpf("olt", size, constant(2.0, size.type))
    return s.select(s.arith("andi", low, high), near, s.math("log", size))


def _power(s: Scalars) -> Values:
    """exp(y log x); 0 to a power with positive real part is 0, and 0 to the 0 is 1."""
    x, y = _pair(s.args[0]), _pair(s.args[1])
    size = _modulus(s, x)
    zero, one = s.emitter.constant(0.0, size.type), s.emitter.constant(1.0, size.type)
    is_zero = s.cmpf("oeq", size, zero)
    logarithm = (s.select(is_zero, zero, _log_modulus(s, x)), s.math("atan2", x[1], x[0]))
    real, imaginary = complex_product(s, y, logarithm)
    grown = s.math("exp", real)
    exponent_is_zero = s.arith("andi", s.cmpf("oeq", y[0], zero), s.cmpf("oeq", y[1], zero))
    at_zero = s.select(exponent_is_zero, one, zero)
    return (
        s.select(is_zero, at_zero, s.arith("mulf", grown, s.math("cos", imaginary))),
        s.select(is_zero, zero, s.arith("mulf", grown, s.math("sin", imaginary))),
    )


def _sqrt(s: Scalars) -> Values:
    """sqrt((|z|+|a|)/2) and b over twice that, swapped for a negative real part."""
    a, b = _pair(s.args[0])
    zero, half = s.emitter.constant(0.0, a.type), s.emitter.constant(0.5, a.type)
    size = _modulus(s, (a, b))
    halves = s.arith("addf", s.arith("mulf", half, size), s.arith("mulf", half, s.math("absf", a)))
    large = s.math("sqrt", halves)
    is_zero = s.cmpf("oeq", large, zero)
    safe = s.select(is_zero, s.emitter.constant(1.0, a.type), large)
    small = s.arith("mulf", half, s.arith("divf", s.math("absf", b), safe))
    infinity = s.emitter.constant(float("inf"), a.type)  # an infinite imaginary part makes both parts so
    small = s.select(s.cmpf("oeq", s.math("absf", b), infinity), infinity, small)
    negative = s.cmpf("olt", a, zero)
    real = s.select(negative, small, large)
    return real, s.math("copysign", s.select(negative, large, small), b)


def _compare(s: Scalars) -> Values:
    """EQ and NE by parts; the orderings are by real part, then imaginary."""
    (a, b), (c, d) = _pair(s.args[0]), _pair(s.args[1])
    direction = str(s.instruction.attributes["direction"])
    if direction == "EQ":
        return as_pred(s, s.arith("andi", s.cmpf("oeq", a, c), s.cmpf("oeq", b, d)))
    if direction == "NE":
        return as_pred(s, s.arith("ori", s.cmpf("une", a, c), s.cmpf("une", b, d)))
    return as_pred(s, _ordered(s, direction, (a, b), (c, d)))


_STRICT = {"LT": "olt", "LE": "olt", "GT": "ogt", "GE": "ogt"}
_LAST = {"LT": "olt", "LE": "ole", "GT": "ogt", "GE": "oge"}


def _ordered(s: Scalars, direction: str, x: Pair, y: Pair) -> Value:
    by_real = s.cmpf(_STRICT[direction], x[0], y[0])
    by_imaginary = s.arith("andi", s.cmpf("oeq", x[0], y[0]), s.cmpf(_LAST[direction], x[1], y[1]))
    return s.arith("ori", by_real, by_imaginary)


def _choose(direction: str) -> Scalar:
    def emit(s: Scalars) -> Values:
        x, y = _pair(s.args[0]), _pair(s.args[1])
        first = _ordered(s, direction, x, y)
        return tuple(s.select(first, p, q) for p, q in zip(x, y, strict=True))

    return emit


def _parts(function: Callable[[Scalars, Value], Value]) -> Scalar:
    return lambda s: tuple(function(s, part) for part in s.args[0])


COMPLEX_ROWS: dict[str, Row] = {
    "add": Row(complex=_componentwise("addf")),
    "subtract": Row(complex=_componentwise("subf")),
    "multiply": Row(complex=_multiply),
    "divide": Row(complex=_wide(_divide)),
    "negate": Row(complex=_parts(lambda s, x: s.negf(x))),
    "abs": Row(complex=_wide(_abs)),
    "sign": Row(complex=_wide(_sign)),
    "exponential": Row(complex=_wide(_exp)),
    "log": Row(complex=_wide(_log)),
    "power": Row(complex=_wide(_power)),
    "sqrt": Row(complex=_wide(_sqrt)),
    "compare": Row(complex=_compare),
    "maximum": Row(complex=_choose("GE")),
    "minimum": Row(complex=_choose("LE")),
    "real": Row(complex=lambda s: (s.args[0][0],)),
    "imag": Row(complex=lambda s: (s.args[0][1],)),
}
