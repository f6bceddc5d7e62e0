"""sqrt, rsqrt and cbrt in f32."""

from __future__ import annotations

from warpsmith.numerics.expr import Float, Precision

__all__ = ["cbrt", "rsqrt", "sqrt"]


def sqrt(x: Float, precision: Precision) -> Float:
    """Square root, correctly rounded."""
    return x.sqrt()


def rsqrt(x: Float, precision: Precision) -> Float:
    """1 / sqrt(x)."""
    return 1.0 / x.sqrt()


def cbrt(x: Float, precision: Precision) -> Float:
    """Cube root: a third of the exponent field as a first guess, then Halley's iteration (cubic) twice.

    x is scaled into [2**-53, 2**96] first, so that the guess is normal and no cube overflows.
    """
    a = abs(x)
    small = a < 1.0
    a = a * small.choose(2.0**96, 2.0**-48)
    # bits/3 + 2/3 of the bias, centred; the conversions round, which a guess can bear.
    guess = (a.bits().to_float() * (1.0 / 3.0) + 709958130.0).truncated()
    y = guess.as_float()
    for _ in range(precision.pick(2, 2, 1)):
        cube = y * y * y
        y = y - y * ((cube - a) / (cube + cube + a))
    y = y * small.choose(2.0**-32, 2.0**16)
    ordinary = (abs(x) < float("inf")) & (abs(x) > 0.0)
    return ordinary.select(y.with_sign_of(x), x)
