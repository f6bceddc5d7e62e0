"""atan, atan2, asin and acos in f32."""

from __future__ import annotations

from warpsmith.numerics.expr import Float, Precision, poly

__all__ = ["acos", "asin", "atan", "atan2"]

_INF = float("inf")
# pi and pi/2 as an f32 and what it lacks.
_PI, _PI_LOW = 3.1415927410125732, -8.742278000372485e-8
_HALF_PI, _HALF_PI_LOW = 1.5707963705062866, -4.3711390001862426e-8

# atan(t) = t + t**3 P(t**2) on [0, 1]: relative error 2**-28.5, 2**-20.4, 2**-17.6.
_ATAN_F32 = (
    -0.333333, 0.19998531, -0.14264052, 0.10951175, -0.08400475, 0.057906546, -0.031127002, 0.010887361, -0.0017875476,
)  # fmt: skip
_ATAN_F16 = (-0.3332849, 0.19897866, -0.13544545, 0.08484041, -0.03779614, 0.0081061665)
_ATAN_BF16 = (-0.333089, 0.19618303, -0.12251479, 0.058769975, -0.01395498)
# asin(t) = t + t**3 P(t**2) on [0, 1/2]: 2**-27.6, 2**-19.1, 2**-19.1.
_ASIN_F32 = (0.16666752, 0.074953094, 0.04546915, 0.024184778, 0.042158306)
_ASIN_HALF = (0.16680126, 0.07189981, 0.06410727)


def _atan_unit(t: Float, precision: Precision) -> Float:
    """atan on [0, 1]."""
    z = t * t
    return (t * z).muladd(poly(z, precision.pick(_ATAN_F32, _ATAN_F16, _ATAN_BF16)), t)


def atan(x: Float, precision: Precision) -> Float:
    """Inverse tangent."""
    a = abs(x)
    large = a > 1.0
    t = large.select(x.constant(1.0), a) / large.select(a, x.constant(1.0))
    r = _atan_unit(t, precision)
    return large.select(_HALF_PI - (r - _HALF_PI_LOW), r).with_sign_of(x)


def atan2(y: Float, x: Float, precision: Precision) -> Float:
    """Angle of the point (x, y); signed zeros and infinities as C's atan2."""
    a, b = abs(y), abs(x)
    steep = a > b
    least, most = steep.select(b, a), steep.select(a, b)
    t = least / most.equals(0.0).select(x.constant(1.0), most)
    t = least.equals(_INF).select(x.constant(1.0), t)
    r = _atan_unit(t, precision)
    r = steep.select(_HALF_PI - (r - _HALF_PI_LOW), r)
    r = (x.bits() < 0).select(_PI - (r - _PI_LOW), r).with_sign_of(y)
    return y.unordered(x).select(y + x, r)


def _asin_parts(x: Float, precision: Precision) -> tuple[Float, Float]:
    """(|x|, p): p is asin(|x|) up to a half, and asin(sqrt((1 - |x|) / 2)) above."""
    a = abs(x)
    large = a > 0.5
    z = large.select((1.0 - a) * 0.5, a * a)
    s = large.select(z.sqrt(), a)
    return a, (s * z).muladd(poly(z, precision.pick(_ASIN_F32, _ASIN_HALF, _ASIN_HALF)), s)


def asin(x: Float, precision: Precision) -> Float:
    """Inverse sine; NaN beyond 1."""
    a, p = _asin_parts(x, precision)
    return (a > 0.5).select(_HALF_PI - ((p + p) - _HALF_PI_LOW), p).with_sign_of(x)


def acos(x: Float, precision: Precision) -> Float:
    """Inverse cosine; NaN beyond 1."""
    a, p = _asin_parts(x, precision)
    twice = p + p
    outer = (x < 0.0).select(_PI - (twice - _PI_LOW), twice)
    inner = _HALF_PI - (p.with_sign_of(x) - _HALF_PI_LOW)
    return (a > 0.5).select(outer, inner)
