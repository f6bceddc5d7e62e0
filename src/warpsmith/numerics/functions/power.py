"""pow in f32: 2**(y log2 x), with the logarithm and the product in two words each.

A product y log2 x near 128 leaves 17 bits for its fraction, so one f32 wouldn't do.  Words are split into halves of 12
bits, whose products are exact.  Half precision works with one word.
"""

from __future__ import annotations

from warpsmith.numerics.expr import Bool, Float, Precision, poly
from warpsmith.numerics.functions.exponential import ROUNDER
from warpsmith.numerics.functions.logarithm import LOG2_F32, split

__all__ = ["pow"]

_INF = float("inf")
_HALF_WORD = -0x1000  # keeps 12 bits of a significand
_ROOT_THREE_QUARTERS_BITS = 0x3F5DB3D7
_EXPONENT = -0x800000
_LEAST_NORMAL = 1.17549435e-38
# |y| beyond this gives 0, 1 or inf as this does, and is even too.
_MOST_Y = 2147483520.0

# 2 / ln 2 and log2(1.5), the first words of 12 bits.
_TWO_LOG2_E, _TWO_LOG2_E_LOW = 2.8857421875, -3.52105722073226e-4
_TWO_LOG2_E_ALL = 2.88539008177792681472
_LOG2_3_2, _LOG2_3_2_LOW = 0.5849609375, 1.5632211898264359e-6
# atanh(s) = s + s**3 P(s**2) on |s| <= 0.1015: absolute error of P s**2 below 2**-35.
_ATANH = (0.33333334, 0.1999902, 0.14485304)
# 2**r = 1 + r P(r) on |r| <= 1/2: relative error 2**-28.2.
_EXP2 = (0.6931472, 0.24022648, 0.05550358, 0.009618503, 0.001339189, 0.00015329235)


def _high(x: Float) -> Float:
    """x with 12 bits of significand, cut off."""
    return (x.bits() & _HALF_WORD).as_float()


def _log2_words(a: Float) -> tuple[Float, Float]:
    """log2 of a positive finite a as a 12-bit word and the rest."""
    small = a < _LEAST_NORMAL
    scaled = small.select(a * 8388608.0, a)
    shifted = (scaled.bits() - _ROOT_THREE_QUARTERS_BITS) & _EXPONENT
    m = (scaled.bits() - shifted).as_float()  # in [0.866, 1.732)
    k = (shifted >> 23).to_float() - small.choose(23.0, 0.0)
    # log2 m = log2 c + (2 / ln 2) atanh(s) with s = (m - c) / (m + c), |s| <= 0.1015.
    upper = m > 1.2247449
    c = upper.choose(1.5, 1.0)
    u, total = m - c, m + c
    inverse = 1.0 / total
    s = u * inverse
    s_high = _high(s)
    total_high = _high(total)
    total_low = m - (total_high - c)
    s_low = inverse * ((u - s_high * total_high) - s_high * total_low)
    z = s * s
    rest = s_low + (s * z) * poly(z, _ATANH)
    product = s_high * _TWO_LOG2_E  # exact
    tail = s_high * _TWO_LOG2_E_LOW + rest * _TWO_LOG2_E_ALL + upper.choose(_LOG2_3_2_LOW, 0.0)
    # k and log2 c are whole and of 12 bits: their sum is exact; the larger goes first into each exact sum below.
    base = k + upper.choose(_LOG2_3_2, 0.0)
    whole = base + product
    lost = (base - whole) + product
    # When the base is 0 nothing is lost; else it is the larger one, so that `lost` is exact.
    high = _high(whole + tail)
    return high, (whole - high) + (lost + tail)


def _exponent_words(a: Float, y: Float) -> tuple[Float, Float]:
    """y log2 a as (n, r) with integer n, |r| <= 1/2, or n beyond the exponents of f32 and |r| <= 1."""
    high, low = _log2_words(a)
    y_high = _high(y)
    product = y_high * high  # exact
    rest = (y - y_high) * high + y * low
    n = (product + rest).at_most(160.0).at_least(-160.0) + ROUNDER - ROUNDER
    return n, ((product - n) + rest).at_most(1.0).at_least(-1.0)


def _magnitude(a: Float, y: Float, precision: Precision) -> Float:
    """a**y for positive finite a and |y| <= _MOST_Y."""
    if precision is Precision.F32:
        n, r = _exponent_words(a, y)
    else:
        f, k = split(a, precision)
        z = (y * f.muladd(poly(f, LOG2_F32), k)).at_most(160.0).at_least(-160.0)
        n = z + ROUNDER - ROUNDER
        r = z - n
    whole = n.truncated()
    half = whole >> 1
    first = ((half + 127) << 23).as_float()
    second = ((whole - half + 127) << 23).as_float()
    return (r.muladd(poly(r, _EXP2), 1.0) * first) * second


def pow(x: Float, y: Float, precision: Precision) -> Float:
    """x**y with the special cases of C's pow."""
    a = abs(x)
    bounded = y.at_most(_MOST_Y).at_least(-_MOST_Y)
    result = _magnitude(a, bounded, precision)
    zero = a.equals(0.0)
    to_zero: Bool = zero ^ (y < 0.0)
    result = (zero | a.equals(_INF)).select(to_zero.choose(0.0, _INF), result)
    integer = bounded.truncated()
    sign = (integer << 31) & x.bits() & -0x80000000
    whole = integer.to_float().equals(bounded)
    # Of non-integer powers the sign is dropped: (-0)**0.5 and (-inf)**0.5 are positive, others NaN.
    result = (result.bits() | whole.select(sign, sign.constant(0))).as_float()
    finite_negative = (x < 0.0) & (a < _INF)
    result = whole.select(result, finite_negative.select(x.constant(float("nan")), result))
    result = x.unordered(y).select(x + y, result)
    return (y.equals(0.0) | x.equals(1.0)).select(x.constant(1.0), result)
