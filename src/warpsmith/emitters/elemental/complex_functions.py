"""Elementary functions of complex numbers by real ones: rows of the table.

As in `complexes.py`, c64 is computed in f64 and rounded once.  The formulas are those whose parts don't cancel; where
one factor of a product is zero and the other infinite (a sinh on the axes) the zero wins, as in C's Annex G.
"""

from __future__ import annotations

from warpsmith.emitters.elemental.complexes import (
    Pair,
    log_modulus,
    modulus,
    pair,
    quotient,
    root,
    scaled,
    times,
    unbounded,
    wide,
    without_angle,
)
from warpsmith.emitters.elemental.emitter import Values
from warpsmith.emitters.elemental.scalars import Row, Scalar, Scalars
from warpsmith.ir.core.ssa import Value

__all__ = ["COMPLEX_FUNCTION_ROWS"]

_FLAT = 22.0  # from here on tanh is 1 in double


def _number(s: Scalars, value: float, like: Value) -> Value:
    return s.emitter.constant(value, like.type)


def _even_odd(s: Scalars, x: Value) -> Pair:
    """cosh and sinh."""
    return s.math("cosh", x), s.math("sinh", x)


def _sinh(s: Scalars, a: Value, b: Value) -> Pair:
    """sinh(a + bi) = sinh a cos b + i cosh a sin b"""
    even, odd = _even_odd(s, a)
    parts = unbounded(s, odd, b, times(s, odd, s.math("cos", b))), times(s, even, s.math("sin", b))
    return without_angle(s, a, b, parts)


def _cosh(s: Scalars, a: Value, b: Value) -> Pair:
    """cosh(a + bi) = cosh a cos b + i sinh a sin b"""
    even, odd = _even_odd(s, a)
    parts = unbounded(s, even, b, times(s, even, s.math("cos", b))), times(s, odd, s.math("sin", b))
    return without_angle(s, a, b, parts)


def _sin(s: Scalars, a: Value, b: Value) -> Pair:
    real, imaginary = _sinh(s, b, a)  # sin(a + bi) has the parts of sinh(b + ai), swapped
    return imaginary, real


def _cos(s: Scalars, a: Value, b: Value) -> Pair:
    real, imaginary = _cosh(s, b, a)
    return real, s.negf(imaginary)


def _tanh(s: Scalars, a: Value, b: Value) -> Pair:
    """(sinh a cosh a + i sin b cos b) / (sinh^2 a + cos^2 b); for large a 1 + 4i sin b cos b e^(-2a)"""
    even, odd = _even_odd(s, a)
    cosine, sine = s.math("cos", b), s.math("sin", b)
    angle = s.arith("mulf", sine, cosine)
    bottom = s.arith("addf", s.arith("mulf", odd, odd), s.arith("mulf", cosine, cosine))
    size = s.math("absf", a)
    flat = s.cmpf("ogt", size, _number(s, _FLAT, a))
    decay = s.math("exp", s.arith("mulf", size, _number(s, -2.0, a)))
    far = times(s, s.arith("mulf", angle, _number(s, 4.0, a)), decay)
    real = s.select(
        flat, s.math("copysign", _number(s, 1.0, a), a), s.arith("divf", s.arith("mulf", odd, even), bottom)
    )
    imaginary = s.select(flat, far, s.arith("divf", angle, bottom))
    parts = without_angle(s, a, b, (real, imaginary))
    # On the axes one part is zero whatever the other is.
    zero = _number(s, 0.0, a)
    return s.select(s.cmpf("oeq", a, zero), a, parts[0]), s.select(s.cmpf("oeq", b, zero), b, parts[1])


def _tan(s: Scalars, a: Value, b: Value) -> Pair:
    """-i tanh(iz)"""
    real, imaginary = _tanh(s, s.negf(b), a)
    return imaginary, s.negf(real)


def _expm1(s: Scalars, a: Value, b: Value) -> Pair:
    """expm1(a) cos b - 2 sin^2(b/2) + i exp(a) sin b"""
    half = s.math("sin", s.arith("mulf", b, _number(s, 0.5, b)))
    lost = s.arith("mulf", _number(s, 2.0, b), s.arith("mulf", half, half))
    real = s.arith("subf", times(s, s.math("expm1", a), s.math("cos", b)), lost)
    parts = without_angle(s, a, b, (real, times(s, s.math("exp", a), s.math("sin", b))))
    # Where e^a is nothing it has no angle.
    gone = s.cmpf("oeq", a, _number(s, float("-inf"), a))
    unknown = s.cmpf("uno", parts[1], parts[1])
    imaginary = s.select(s.arith("andi", gone, unknown), _number(s, 0.0, a), parts[1])
    return s.select(gone, _number(s, -1.0, a), parts[0]), imaginary


def _log1p(s: Scalars, a: Value, b: Value) -> Pair:
    """log|1 + z|; near 0 log1p((2 + a) a + b^2) / 2"""
    one, half = _number(s, 1.0, a), _number(s, 0.5, a)
    shifted = s.arith("addf", a, one)
    size = s.arith("maximumf", s.math("absf", a), s.math("absf", b))
    square = s.arith("addf", s.arith("mulf", s.arith("addf", a, _number(s, 2.0, a)), a), s.arith("mulf", b, b))
    near = s.arith("mulf", half, s.math("log1p", square))
    real = s.select(s.cmpf("olt", size, half), near, log_modulus(s, (shifted, b)))
    return real, s.math("atan2", b, shifted)


def _logistic(s: Scalars, a: Value, b: Value) -> Pair:
    """1 / (1 + e^-z), or e^z / (1 + e^z) where that is the smaller power.

    1 + E e^ib is (1 - E) + 2 E cos^2(b/2) + i E sin b: near a pole, where b is pi, that keeps its digits.
    """
    zero, one = _number(s, 0.0, a), _number(s, 1.0, a)
    right = s.cmpf("oge", a, zero)
    down = s.negf(s.math("absf", a))
    size = s.math("exp", down)
    angle = s.select(right, s.negf(b), b)
    w = (times(s, size, s.math("cos", angle)), times(s, size, s.math("sin", angle)))
    half = s.math("cos", s.arith("mulf", angle, _number(s, 0.5, a)))
    above = times(s, s.arith("mulf", size, _number(s, 2.0, a)), s.arith("mulf", half, half))
    bottom = (s.arith("subf", above, s.math("expm1", down)), w[1])
    top = (s.select(right, one, w[0]), s.select(right, zero, w[1]))
    return without_angle(s, a, b, quotient(s, top, bottom))


def _rsqrt(s: Scalars, a: Value, b: Value) -> Pair:
    """The root's conjugate over the modulus."""
    z, by_size = scaled(s, (a, b))
    size = modulus(s, z)
    real, imaginary = root(s, z)
    back = by_size(0.5, 1.0, 2.0**54)
    infinite = s.cmpf("oeq", size, _number(s, float("inf"), size))
    zero = _number(s, 0.0, size)
    parts = [s.arith("mulf", s.arith("divf", part, size), back) for part in (real, s.negf(imaginary))]
    is_zero = s.cmpf("oeq", size, _number(s, 0.0, size))
    parts[0] = s.select(is_zero, _number(s, float("inf"), size), parts[0])
    return s.select(infinite, zero, parts[0]), s.select(infinite, zero, parts[1])


def _cbrt(s: Scalars, a: Value, b: Value) -> Pair:
    """The real root of the modulus at a third of the angle."""
    z, by_size = scaled(s, (a, b))
    size = s.arith("mulf", s.math("cbrt", modulus(s, z)), by_size(4.0 ** (1 / 3), 1.0, 2.0**-36))
    angle = s.arith("divf", s.math("atan2", b, a), _number(s, 3.0, a))
    return times(s, size, s.math("cos", angle)), times(s, size, s.math("sin", angle))


_FUNCTIONS = {
    "cbrt": _cbrt,
    "cosh": _cosh,
    "cosine": _cos,
    "exponential-minus-one": _expm1,
    "log-plus-one": _log1p,
    "logistic": _logistic,
    "rsqrt": _rsqrt,
    "sine": _sin,
    "sinh": _sinh,
    "tan": _tan,
    "tanh": _tanh,
}


def _row(name: str) -> Scalar:
    function = _FUNCTIONS[name]

    def emit(s: Scalars) -> Values:
        return function(s, *pair(s.args[0]))

    return wide(emit)


COMPLEX_FUNCTION_ROWS: dict[str, Row] = {name: Row(complex=_row(name)) for name in _FUNCTIONS}
