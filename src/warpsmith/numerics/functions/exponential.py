"""exp, exp2, expm1 and logistic in f32.

Each writes its argument as 2 m ln 2 + r with an integer m and |r| <= ln 2, so that the result is (e**r 2**m) 2**m.
The first scaling is exact and the second rounds once: overflow and subnormal results need no case of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

from warpsmith.numerics.expr import Float, Int, Precision, poly

__all__ = ["exp", "exp2", "exp_scaled", "expm1", "logistic"]

_ONE_BITS = 0x3F800000
# 1.5 * 2**23: adding it leaves the nearest integer in the low bits, and subtracting it gives that integer back.
ROUNDER = 12582912.0
_HALF_LOG2_E = 0.72134752044448170368
# 2 ln 2 = high + low; high has 9 bits, so that m * high is exact.
_TWO_LN2_HIGH = 1.38671875
_TWO_LN2_LOW = -4.2438888001465583e-4
_TWO_LN2 = 1.38629436111989061883

# e**r = 1 + r + r**2 P(r) on |r| <= ln 2: relative error 2**-26.0, 2**-21.3, 2**-17.0.
_EXP_F32 = (0.50000036, 0.16666615, 0.041661184, 0.008336044, 0.0014105862, 0.00019621105)
_EXP_F16 = (0.49999592, 0.16664377, 0.041693483, 0.0084742475, 0.0013603523)
_EXP_BF16 = (0.49989685, 0.16674773, 0.042516053, 0.008226828)
# 2**r = 1 + r P(r) on |r| <= 1: 2**-26.1, 2**-21.8, 2**-17.4.
_EXP2_F32 = (0.69314724, 0.24022669, 0.05550367, 0.009616836, 0.0013341438, 0.00015646304, 1.4934865e-05)
_EXP2_F16 = (0.6931483, 0.2402247, 0.055492606, 0.009623252, 0.0013587724, 0.00015185581)
_EXP2_BF16 = (0.6931345, 0.24016348, 0.055554897, 0.009829809, 0.0013065268)


@dataclass(frozen=True, slots=True)
class _Reduced:
    """An argument as 2 m ln 2 + r; `shifted` is m in an exponent's place."""

    r: Float
    shifted: Int

    @property
    def scale(self) -> Float:
        """2**m."""
        return (self.shifted + _ONE_BITS).as_float()

    @property
    def inverse_scale(self) -> Float:
        """2**-m."""
        return (_ONE_BITS - self.shifted).as_float()


def _reduce(x: Float, precision: Precision) -> _Reduced:
    """x within +-110.  For 16-bit results 2 ln 2 is one constant, which leaves r off by less than 2**-17."""
    t = x.muladd(_HALF_LOG2_E, ROUNDER)
    m = t - ROUNDER
    if precision is Precision.F32:
        r = (x - m * _TWO_LN2_HIGH) - m * _TWO_LN2_LOW
    else:
        r = x - m * _TWO_LN2
    return _Reduced(r, t.bits() << 23)


def _tail(r: Float, precision: Precision) -> Float:
    """e**r - 1."""
    p = poly(r, precision.pick(_EXP_F32, _EXP_F16, _EXP_BF16))
    return (r * r).muladd(p, r)


def _scaled(value: Float, reduced: _Reduced, factor: float = 1.0) -> Float:
    """value * 2**(2 m) * factor, rounded once; by products, which keep a NaN whatever its bits."""
    scale = reduced.scale
    return (value * scale) * (scale if factor == 1.0 else scale * factor)


def exp_scaled(x: Float, precision: Precision, factor: float) -> Float:
    """factor * e**x, factor a power of two in [1/4, 4], for x within +-110 (f16: +-40)."""
    reduced = _reduce(x, precision)
    return _scaled(1.0 + _tail(reduced.r, precision), reduced, factor)


def exp(x: Float, precision: Precision) -> Float:
    """e**x."""
    low, high = precision.pick((-104.0, 89.0), (-20.0, 12.0), (-104.0, 89.0))
    return exp_scaled(x.at_most(high).at_least(low), precision, 1.0)


def exp2(x: Float, precision: Precision) -> Float:
    """2**x; exact for integers."""
    low, high = precision.pick((-151.0, 129.0), (-26.0, 17.0), (-151.0, 129.0))
    x = x.at_most(high).at_least(low)
    t = x.muladd(0.5, ROUNDER)
    reduced = _Reduced(x - (t - ROUNDER) * 2.0, t.bits() << 23)
    p = poly(reduced.r, precision.pick(_EXP2_F32, _EXP2_F16, _EXP2_BF16))
    return _scaled(reduced.r.muladd(p, 1.0), reduced)


def expm1(x: Float, precision: Precision) -> Float:
    """e**x - 1, as 2**m (2**m (e**r - 1) + (2**m - 2**-m)): exact where m is 0, and no early overflow."""
    reduced = _reduce(x.at_most(89.0).at_least(-104.0), precision)
    scale = reduced.scale
    result = (scale * _tail(reduced.r, precision) + (scale - reduced.inverse_scale)) * scale
    return result.with_sign_of(x)  # -0 would come out as 0


def logistic(x: Float, precision: Precision) -> Float:
    """1 / (1 + e**-x), from e**-|x|, which can't overflow: small results keep all their digits."""
    negative = (x.bits() | -0x80000000).as_float()
    e = exp_scaled(negative.at_least(precision.pick(-104.0, -20.0, -104.0)), precision, 1.0)
    return (x < 0.0).select(e, x.constant(1.0)) / (1.0 + e)
