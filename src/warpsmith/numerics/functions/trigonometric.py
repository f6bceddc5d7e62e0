"""sin, cos and tan in f32 for every finite argument.

x = q pi/2 + r with |r| <= pi/4.  Up to `_LIMIT` pi/2 is subtracted in parts short enough for exact products; beyond
it (`rare`) x's 24 bits are multiplied by the 96 bits of 2/pi that matter for its exponent, in 32-bit integers.
"""

from __future__ import annotations

from warpsmith.numerics.expr import Float, Int, Precision, poly, rare
from warpsmith.numerics.functions.exponential import ROUNDER

__all__ = ["cos", "sin", "tan"]

_LIMIT = 4096.0
_TWO_OVER_PI = 0.63661977236758134308
_PI_OVER_TWO = 1.57079632679489661923
_PI_OVER_TWO_HIGH, _PI_OVER_TWO_LOW = 1.57080078125, -4.4544551033807687e-6
# pi/2 in parts of 11 bits, and what is left.
_PI_PARTS = (1.5703125, 4.837512969970703e-4, 7.549533620476723e-8, 2.5632829192545614e-12, 6.123234262925839e-17)
# The first 224 bits of 2/pi.  Windows start no earlier than 13 bits before the point (see `_reduce_large`).
_BITS = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163AB
_LEAD = 13
_WORDS = tuple((_BITS >> (192 + _LEAD - 32 * i)) & 0xFFFFFFFF for i in range(7))

# sin(r) = r + r**3 P(r**2): relative error 2**-27.8, 2**-27.8, 2**-19.0.
_SIN_F32 = (-0.16666654, 0.008332106, -0.00019507881)
_SIN_BF16 = (-0.16663325, 0.008161594)
# cos(r) = 1 - r**2/2 + r**4 P(r**2): 2**-32.9, 2**-23.5, 2**-23.5.
_COS_F32 = (0.041666646, -0.0013887305, 2.4431425e-05)
_COS_HALF = (0.041660957, -0.0013646289)


def _reduce_small(a: Float) -> tuple[Float, Int]:
    t = a.muladd(_TWO_OVER_PI, ROUNDER)
    q = t - ROUNDER
    r = a
    for part in _PI_PARTS:
        r = r - q * part
    return r, t.bits()


def _reduce_large(a: Float) -> tuple[Float, Int]:
    """For a >= _LIMIT, inf and NaN: (r, q modulo 4)."""
    bits = a.bits()
    mantissa = (bits & 0x7FFFFF) | 0x800000
    # a = mantissa * 2**(e - 150), e the exponent field.  Bit i of 2/pi, of weight 2**-i, gives multiples of 4 where
    # i <= e - 152: the window starts with the bit after those, which is bit e - 139 of `_WORDS`.
    position = bits.logical_shift_right(23) - (152 - _LEAD)
    index, shift = position >> 5, position & 31
    back = 31 - shift
    odd, upper_half = (index & 1).equals(1), (index & 2).equals(2)

    def word(offset: int) -> Int:
        w = _WORDS[offset : offset + 4]
        return upper_half.select(odd.choose_int(w[3], w[2]), odd.choose_int(w[1], w[0]))

    words = [word(offset) for offset in range(4)]

    def window(i: int) -> Int:
        # Two shifts to the right: the amount 32 - shift may be 32.
        return (words[i] << shift) | words[i + 1].logical_shift_right(1).logical_shift_right(back)

    top, middle, bottom = window(0), window(1), window(2)
    # 64 bits of mantissa * window, in units of 2**-62: two bits of q, then the fraction.
    partial = bottom.times_high(mantissa)
    lower = middle * mantissa + partial
    carry = lower.below(partial).choose_int(1, 0)
    upper = top * mantissa + middle.times_high(mantissa) + carry
    q = (upper + 0x20000000) >> 30
    upper = upper - (q << 30)
    # Twelve bits of the fraction give an exact product with twelve bits of pi/2.
    high = (upper + (1 << 17)) & -(1 << 18)
    rest = (upper - high).to_float().muladd(2.0**-30, lower.logical_shift_right(8).to_float() * 2.0**-54)
    leading = high.to_float() * 2.0**-30
    r = leading * _PI_OVER_TWO_HIGH + (leading * _PI_OVER_TWO_LOW + rest * _PI_OVER_TWO)
    return r + (a - a), q


def _reduce(a: Float, precision: Precision) -> tuple[Float, Int]:
    """|x| as q pi/2 + r: (r, q), of q only the last two bits count."""
    return rare(a > _LIMIT, lambda: _reduce_large(a), _reduce_small(a))


def _sin_poly(r: Float, z: Float, precision: Precision) -> Float:
    return (r * z).muladd(poly(z, precision.pick(_SIN_F32, _SIN_F32, _SIN_BF16)), r)


def _cos_poly(z: Float, precision: Precision) -> Float:
    return (z * z).muladd(poly(z, precision.pick(_COS_F32, _COS_HALF, _COS_HALF)), 1.0 - z * 0.5)


def sin(x: Float, precision: Precision) -> Float:
    """Sine; NaN at infinity."""
    r, q = _reduce(abs(x), precision)
    z = r * r
    value = (q & 1).equals(0).select(_sin_poly(r, z, precision), _cos_poly(z, precision))
    sign = ((q << 30) ^ x.bits()) & -0x80000000
    return (value.bits() ^ sign).as_float()


def cos(x: Float, precision: Precision) -> Float:
    """Cosine; NaN at infinity."""
    r, q = _reduce(abs(x), precision)
    z = r * r
    value = (q & 1).equals(0).select(_cos_poly(z, precision), _sin_poly(r, z, precision))
    sign = ((q + 1) << 30) & -0x80000000
    return (value.bits() ^ sign).as_float()


def tan(x: Float, precision: Precision) -> Float:
    """Tangent; NaN at infinity."""
    r, q = _reduce(abs(x), precision)
    z = r * r
    s, c = _sin_poly(r, z, precision), _cos_poly(z, precision)
    even = (q & 1).equals(0)
    value = even.select(s, c) / even.select(c, s)
    sign = ((q << 31) ^ x.bits()) & -0x80000000
    return (value.bits() ^ sign).as_float()
