"""tanh, sinh, cosh, asinh, acosh and atanh in f32."""

from __future__ import annotations

from warpsmith.numerics.expr import Float, Precision, poly
from warpsmith.numerics.functions.exponential import exp_scaled
from warpsmith.numerics.functions.logarithm import log1p

__all__ = ["acosh", "asinh", "atanh", "cosh", "double_angle", "sinh", "tanh"]

_LN2 = 0.69314718055994530942
_HUGE = 1e10  # from here on x**2 + 1 is x**2, and log1p(x) is log(x)

# For f32: 2 tanh(x/2) = x P(x**2) / Q(x**2) up to where tanh(x) rounds to 1; its error counts for ever less in
# tanh(x) as that comes near 1, and this weighted error is 2**-26.8.  P(0) = Q(0) = 1: small x come back as they are.
# At the limit the program gives 1, and never more below it, with FMA or without.
_HALF_ANGLE = (8.84668, (1.0, 0.029777432, 0.00011433311), (1.0, 0.11311073, 0.0012069313, 1.2306235e-06))
# For 16-bit results: tanh(x) = x P(x**2) / Q(x**2), relative error 2**-19.7, 2**-17.0.
_TANH_F16 = (4.6, (1.0, 0.117353186, 0.0016907495), (1.0, 0.4506801, 0.0185951, 6.8259156e-05))
_TANH_BF16 = (3.6, (1.0, 0.10650536, 0.000816153), (1.0, 0.43979952, 0.014147779))
# sinh(x) = x + x**3 P(x**2) on |x| <= 1: 2**-31.6, 2**-25.3, 2**-17.0.
_SINH_F32 = (0.16666667, 0.008333311, 0.00019842609, 2.7842698e-06)
_SINH_F16 = (0.16666718, 0.008330213, 0.00020378186)
_SINH_BF16 = (0.16658045, 0.00861339)


def tanh(x: Float, precision: Precision) -> Float:
    """Hyperbolic tangent; in f32 as 2 t / (1 + t**2) with t = tanh(x/2)."""
    limit, p, q = precision.pick(_HALF_ANGLE, _TANH_F16, _TANH_BF16)
    x = x.at_most(limit).at_least(-limit)
    z = x * x
    if precision is Precision.BF16:
        return _quotient(x * poly(z, p), poly(z, q))
    if precision is Precision.F16:
        return (x * poly(z, p)) / poly(z, q)
    return double_angle(x + (x * z) * poly(z, p[1:]), poly(z, q))


def _quotient(a: Float, b: Float) -> Float:
    """a / b for b from 1 to 32, to 2**-22: a GPU divides by a call, this is in line.

    The bits of 1/b are about a constant minus those of b, within 5 %; each Newton step squares that.  The product
    comes last and alone, so that a zero keeps its sign.
    """
    r = (0x7EF311C7 - b.bits()).as_float()
    for _ in range(3):
        r = r * (2.0 - b * r)
    return a * r


def double_angle(n: Float, d: Float) -> Float:
    """2 t / (1 + t**2) for t = n / (2 d), with one division; rounding of n and d shrinks as t comes near 1."""
    return (n * d) / d.muladd(d, (n * n) * 0.25)


def _half_exp(a: Float, precision: Precision) -> Float:
    """e**a / 2 for a >= 0, which reaches as far as sinh and cosh do."""
    return exp_scaled(a.at_most(precision.pick(91.0, 13.0, 91.0)), precision, 0.5)


def sinh(x: Float, precision: Precision) -> Float:
    """Hyperbolic sine."""
    a = abs(x)
    h = _half_exp(a, precision)
    large = h - 0.25 / h
    z = x * x
    small = a + (a * z) * poly(z, precision.pick(_SINH_F32, _SINH_F16, _SINH_BF16))
    return (a < 1.0).select(small, large).with_sign_of(x)


def cosh(x: Float, precision: Precision) -> Float:
    """Hyperbolic cosine."""
    h = _half_exp(abs(x), precision)
    return h + 0.25 / h


def asinh(x: Float, precision: Precision) -> Float:
    """log(|x| + sqrt(x**2 + 1)) with x's sign; the argument less 1 is |x| + x**2 / (1 + sqrt(x**2 + 1))."""
    a = abs(x)
    z = a * a
    huge = a > _HUGE
    argument = huge.select(a, a + z / (1.0 + (z + 1.0).sqrt()))
    return (log1p(argument, precision) + huge.choose(_LN2, 0.0)).with_sign_of(x)


def acosh(x: Float, precision: Precision) -> Float:
    """log(x + sqrt(x**2 - 1)), NaN below 1; with t = x - 1 the argument less 1 is t + sqrt(t**2 + 2 t)."""
    t = x - 1.0
    huge = x > _HUGE
    argument = huge.select(x, t + (t * t + (t + t)).sqrt())
    result = log1p(argument, precision) + huge.choose(_LN2, 0.0)
    return (x < 1.0).select(x.constant(float("nan")), result)


def atanh(x: Float, precision: Precision) -> Float:
    """log1p(2 |x| / (1 - |x|)) / 2 with x's sign; NaN beyond 1."""
    a = abs(x)
    return (log1p((a + a) / (1.0 - a), precision) * 0.5).with_sign_of(x)
