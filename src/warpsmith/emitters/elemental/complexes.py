"""Elementwise ops on complex numbers, held as two floats: rows of the table.

c64 quotients, moduli and roots are computed in f64, where nothing overflows, and rounded once; c128 is scaled instead.
"""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.emitters.elemental.emitter import Values
from warpsmith.emitters.elemental.scalars import Row, Scalar, Scalars, as_pred
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.core.types import F64, FloatType

__all__ = [
    "COMPLEX_ROWS",
    "Pair",
    "complex_product",
    "exponential",
    "log_modulus",
    "modulus",
    "pair",
    "power",
    "quotient",
    "root",
    "scaled",
    "times",
    "unbounded",
    "wide",
    "without_angle",
]

Pair = tuple[Value, Value]

_LN2 = 0.6931471805599453


def pair(values: Values) -> Pair:
    """The real and the imaginary part of a complex element."""
    return values[0], values[1]


def _componentwise(name: str) -> Scalar:
    def emit(s: Scalars) -> Values:
        (a, b), (c, d) = pair(s.args[0]), pair(s.args[1])
        return s.arith(name, a, c), s.arith(name, b, d)

    return emit


def complex_product(s: Scalars, x: Pair, y: Pair) -> Pair:
    """(a + bi)(c + di) by four products, as XLA computes it."""
    (a, b), (c, d) = x, y
    real = s.arith("subf", s.arith("mulf", a, c), s.arith("mulf", b, d))
    return real, s.arith("addf", s.arith("mulf", a, d), s.arith("mulf", b, c))


def _multiply(s: Scalars) -> Values:
    """c64 in f64, where no product overflows: a part that is finite comes out finite; in xla numerics in f32."""
    return (wide(_product) if s.emitter.strict else _product)(s)


def _product(s: Scalars) -> Values:
    return complex_product(s, pair(s.args[0]), pair(s.args[1]))


def wide(emit: Scalar) -> Scalar:
    """Compute in f64 and round once."""

    def wide(s: Scalars) -> Values:
        type = s.args[0][0].type
        assert isinstance(type, FloatType)
        if type is F64:
            return emit(s)
        args = [tuple(s.resize_float(part, F64) for part in each) for each in s.args]
        return tuple(s.resize_float(v, type) for v in emit(Scalars(s.emitter, s.instruction, args, s.dtype)))

    return wide


def quotient(s: Scalars, x: Pair, y: Pair) -> Pair:
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
    parts = s.arith("divf", top, bottom), s.arith("divf", s.select(real_larger, cross_one, cross_two), bottom)
    return _recovered(s, x, y, parts)


def _recovered(s: Scalars, x: Pair, y: Pair, parts: Pair) -> Pair:
    """Where both parts came out NaN: what C's Annex G gives for x/0, infinite/finite, and finite/infinite."""
    zero = s.emitter.constant(0.0, x[0].type)
    one = s.emitter.constant(1.0, x[0].type)
    infinity = s.emitter.constant(float("inf"), x[0].type)

    def is_infinite(z: Pair) -> Value:
        return s.arith("ori", *(s.cmpf("oeq", s.math("absf", part), infinity) for part in z))

    def is_finite(z: Pair) -> Value:
        return s.arith("andi", *(s.cmpf("olt", s.math("absf", part), infinity) for part in z))

    def directions(chosen: Value, z: Pair) -> Pair:
        """Infinite parts as 1 and others as 0, signs kept, where `chosen`."""
        a, b = (
            s.math("copysign", s.select(s.cmpf("oeq", s.math("absf", part), infinity), one, zero), part) for part in z
        )
        return s.select(chosen, a, z[0]), s.select(chosen, b, z[1])

    grows = s.arith("andi", is_infinite(x), is_finite(y))
    vanishes = s.arith("andi", is_infinite(y), is_finite(x))
    (a, b), (c, d) = directions(grows, x), directions(vanishes, y)
    size = s.select(grows, infinity, zero)
    known = s.arith("ori", grows, vanishes)
    by_zero = s.arith("andi", s.cmpf("oeq", y[0], zero), s.cmpf("oeq", y[1], zero))
    toward = s.math("copysign", infinity, y[0])
    found = (
        s.arith("mulf", size, s.arith("addf", s.arith("mulf", a, c), s.arith("mulf", b, d))),
        s.arith("mulf", size, s.arith("subf", s.arith("mulf", b, c), s.arith("mulf", a, d))),
    )
    lost = s.arith("andi", s.cmpf("uno", parts[0], parts[0]), s.cmpf("uno", parts[1], parts[1]))
    real, imaginary = (
        s.select(lost, s.select(by_zero, s.arith("mulf", toward, top), s.select(known, value, part)), part)
        for top, value, part in zip(x, found, parts, strict=True)
    )
    return real, imaginary


def _divide(s: Scalars) -> Values:
    return quotient(s, pair(s.args[0]), pair(s.args[1]))


def modulus(s: Scalars, z: Pair) -> Value:
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
    return (modulus(s, pair(s.args[0])),)


def _sign(s: Scalars) -> Values:
    z = pair(s.args[0])
    size = modulus(s, z)
    is_zero = s.cmpf("oeq", size, s.emitter.constant(0.0, size.type))
    safe = s.select(is_zero, s.emitter.constant(1.0, size.type), size)
    return tuple(s.arith("divf", part, safe) for part in z)


def _exp(s: Scalars) -> Values:
    return exponential(s, *pair(s.args[0]))


def exponential(s: Scalars, a: Value, b: Value) -> Pair:
    """e^a (cos b + i sin b); nothing where a is -inf, whatever b is."""
    size = s.math("exp", a)
    parts = unbounded(s, size, b, times(s, size, s.math("cos", b))), times(s, size, s.math("sin", b))
    return without_angle(s, a, b, parts)


def times(s: Scalars, x: Value, y: Value) -> Value:
    """x * y, zero where either is."""
    zero = s.emitter.constant(0.0, x.type)
    product = s.arith("mulf", x, y)
    vanishes = s.arith("ori", s.cmpf("oeq", x, zero), s.cmpf("oeq", y, zero))
    signed = s.math("copysign", zero, s.arith("mulf", s.math("copysign", s.emitter.constant(1.0, x.type), x), y))
    return s.select(vanishes, signed, product)


def unbounded(s: Scalars, size: Value, angle: Value, product: Value) -> Value:
    """Infinity where `size` is infinite and the angle nowhere, else the product: C's Annex G leaves the sign open."""
    infinity = s.emitter.constant(float("inf"), size.type)
    nowhere = s.cmpf("uge", s.math("absf", angle), infinity)
    return s.select(s.arith("andi", s.cmpf("oeq", s.math("absf", size), infinity), nowhere), infinity, product)


def without_angle(s: Scalars, a: Value, b: Value, parts: Pair) -> Pair:
    """NaN where b, an angle, isn't finite and a is, and isn't zero; else `parts`."""
    infinity = s.emitter.constant(float("inf"), a.type)
    size = s.math("absf", a)
    finite = s.arith("andi", s.cmpf("olt", size, infinity), s.cmpf("ogt", size, s.emitter.constant(0.0, a.type)))
    lost = s.arith("andi", finite, s.cmpf("uge", s.math("absf", b), infinity))
    nan = s.emitter.constant(float("nan"), a.type)
    return s.select(lost, nan, parts[0]), s.select(lost, nan, parts[1])


def _log(s: Scalars) -> Values:
    a, b = pair(s.args[0])
    return log_modulus(s, (a, b)), s.math("atan2", b, a)


def log_modulus(s: Scalars, z: Pair) -> Value:
    """log|z|; near 1 as log1p(|z|^2 - 1) / 2 with the difference taken by factors, so that nothing cancels."""
    x, y = s.math("absf", z[0]), s.math("absf", z[1])
    size = modulus(s, z)
    constant = s.emitter.constant
    one, half = constant(1.0, size.type), constant(0.5, size.type)
    x_larger = s.cmpf("oge", x, y)
    large, small = s.select(x_larger, x, y), s.select(x_larger, y, x)
    above = s.arith("mulf", s.arith("subf", large, one), s.arith("addf", large, one))
    near = s.arith("mulf", half, s.math("log1p", s.arith("addf", above, s.arith("mulf", small, small))))
    low, high = s.cmpf("ogt", size, half), s.cmpf("olt", size, constant(2.0, size.type))
    inner, by_size = scaled(s, (x, y))
    far = s.arith("addf", s.math("log", modulus(s, inner)), by_size(2 * _LN2, 0.0, -108 * _LN2))
    return s.select(s.arith("andi", low, high), near, far)


def power(s: Scalars, x: Pair, y: Pair) -> Pair:
    """exp(y log x); anything to the 0 is 1, and 0 to a power with positive real part is 0."""
    zero, one = s.emitter.constant(0.0, x[0].type), s.emitter.constant(1.0, x[0].type)

    def is_zero(z: Pair) -> Value:
        return s.arith("andi", s.cmpf("oeq", z[0], zero), s.cmpf("oeq", z[1], zero))

    grown = exponential(s, *complex_product(s, y, (log_modulus(s, x), s.math("atan2", x[1], x[0]))))
    vanishes = s.arith("andi", is_zero(x), s.cmpf("ogt", y[0], zero))
    parts = (s.select(vanishes, zero, part) for part in grown)
    trivial = is_zero(y)
    real, imaginary = (s.select(trivial, at_zero, part) for part, at_zero in zip(parts, (one, zero), strict=True))
    return real, imaginary


def _power(s: Scalars) -> Values:
    return power(s, pair(s.args[0]), pair(s.args[1]))


def _sqrt(s: Scalars) -> Values:
    return root(s, pair(s.args[0]))


def root(s: Scalars, z: Pair) -> Pair:
    """sqrt((|z|+|a|)/2) and b over twice that, swapped for a negative real part."""
    (a, b), by_size = scaled(s, z)
    zero, half = s.emitter.constant(0.0, a.type), s.emitter.constant(0.5, a.type)
    size = modulus(s, (a, b))
    halves = s.arith("addf", s.arith("mulf", half, size), s.arith("mulf", half, s.math("absf", a)))
    large = s.math("sqrt", halves)
    is_zero = s.cmpf("oeq", large, zero)
    safe = s.select(is_zero, s.emitter.constant(1.0, a.type), large)
    small = s.arith("mulf", half, s.arith("divf", s.math("absf", b), safe))
    infinity = s.emitter.constant(float("inf"), a.type)  # an infinite imaginary part makes both parts so
    infinite = s.cmpf("oeq", s.math("absf", b), infinity)
    large, small = s.select(infinite, infinity, large), s.select(infinite, infinity, small)
    negative = s.cmpf("olt", a, zero)
    back = by_size(2.0, 1.0, 2.0**-54)
    real, imaginary = (
        s.arith("mulf", part, back) for part in (s.select(negative, small, large), s.select(negative, large, small))
    )
    return real, s.math("copysign", imaginary, b)


BySize = Callable[[float, float, float], Value]


def scaled(s: Scalars, z: Pair) -> tuple[Pair, BySize]:
    """z times 2^-2 where its modulus could overflow, times 2^108 where its parts are subnormal; and a choice by these.

    c64 needs none of it: it's in f64, whose range is that of no modulus of it.
    """
    constant = s.emitter.constant
    type = z[0].type
    if s.dtype.bits == 64:
        return z, lambda _large, usual, _small: constant(usual, type)
    size = s.arith("maximumf", s.math("absf", z[0]), s.math("absf", z[1]))
    large, small = s.cmpf("ogt", size, constant(2.0**1000, type)), s.cmpf("olt", size, constant(2.0**-960, type))

    def by_size(if_large: float, usual: float, if_small: float) -> Value:
        return s.select(
            large, constant(if_large, type), s.select(small, constant(if_small, type), constant(usual, type))
        )

    factor = by_size(0.25, 1.0, 2.0**108)
    return (s.arith("mulf", z[0], factor), s.arith("mulf", z[1], factor)), by_size


def _compare(s: Scalars) -> Values:
    """EQ and NE by parts; the orderings are by real part, then imaginary."""
    (a, b), (c, d) = pair(s.args[0]), pair(s.args[1])
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


def _chosen(s: Scalars, direction: str, x: Pair, y: Pair) -> Pair:
    first = _ordered(s, direction, x, y)
    return s.select(first, x[0], y[0]), s.select(first, x[1], y[1])


def _choose(direction: str) -> Scalar:
    return lambda s: _chosen(s, direction, pair(s.args[0]), pair(s.args[1]))


def _clamp(s: Scalars) -> Values:
    low, x, high = (pair(each) for each in s.args)
    return _chosen(s, "LE", _chosen(s, "GE", x, low), high)


def _parts(function: Callable[[Scalars, Value], Value]) -> Scalar:
    return lambda s: tuple(function(s, part) for part in s.args[0])


COMPLEX_ROWS: dict[str, Row] = {
    "add": Row(complex=_componentwise("addf")),
    "subtract": Row(complex=_componentwise("subf")),
    "multiply": Row(complex=_multiply),
    "divide": Row(complex=wide(_divide)),
    "negate": Row(complex=_parts(lambda s, x: s.negf(x))),
    "abs": Row(complex=wide(_abs)),
    "sign": Row(complex=wide(_sign)),
    "exponential": Row(complex=wide(_exp)),
    "log": Row(complex=wide(_log)),
    "power": Row(complex=wide(_power)),
    "sqrt": Row(complex=wide(_sqrt)),
    "compare": Row(complex=_compare),
    "maximum": Row(complex=_choose("GE")),
    "minimum": Row(complex=_choose("LE")),
    "clamp": Row(complex=_clamp),
    "real": Row(complex=lambda s: (s.args[0][0],)),
    "imag": Row(complex=lambda s: (s.args[0][1],)),
}
