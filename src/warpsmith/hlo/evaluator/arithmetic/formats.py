"""Float formats as bits: exact widening, and one correct rounding from float64 to any of them.

In: float arrays.  Out: float arrays of another format, rounded to nearest even once (ml_dtypes goes through float32
on the way from float64, which rounds twice).  Overflow, NaN and zero follow each format: IEEE-like formats overflow
to infinity, `fn` and `fnuz` formats to NaN, f4e2m1fn saturates; `fnuz` formats have no negative zero.
f8e8m0fnu holds powers of two alone: ties go up, zero and negative numbers are NaN (as ml_dtypes and XLA:CPU have it).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType, FloatFormat, by_name

__all__ = ["round_once", "wide", "widen"]

_F64 = by_name("f64").format


def widen(array: Array, dtype: DType) -> Array:
    """The same numbers in the carrier format: float32, or the type itself when it is f64.

    In it +, -, *, / and sqrt followed by one rounding to `dtype` are correctly rounded: float32 has more than twice
    the bits of every smaller format (Figueroa), f32 and f64 are their own.
    """
    if dtype.bits >= 32:
        return array
    if dtype.bits == 16:
        return array.astype(np.float32)
    return _decode_table(dtype)[array.view(np.uint8)]


def wide(array: Array, dtype: DType) -> Array:
    """The same numbers in float64."""
    return array if dtype.bits == 64 else widen(array, dtype).astype(np.float64)


@cache
def _decode_table(dtype: DType) -> Array:
    """Float32 values of the 256 bytes of an 8-bit format (of a 4-bit one, by the low bits)."""
    codes = range(256)
    if dtype.name == "f8e8m0fnu":
        return np.array(
            [np.nan if code == 0xFF else 2.0 ** (code - 127) for code in codes],
            np.float32,
        )
    return np.array([_decode(dtype.format, code) for code in codes], np.float32)


def _decode(form: FloatFormat, code: int) -> float:
    code &= (1 << form.bits) - 1
    sign, magnitude = code >> (form.bits - 1), code & ((1 << (form.bits - 1)) - 1)
    if not form.signed_zero and code == form.nan:
        return float("nan")
    if form.signed_zero and magnitude > form.largest:
        infinite = magnitude == form.overflow and form.overflow != form.nan
        return math.copysign(float("inf") if infinite else float("nan"), -sign)
    exponent, fraction = (
        magnitude >> form.mantissa,
        magnitude & ((1 << form.mantissa) - 1),
    )
    lead = fraction if exponent == 0 else fraction + (1 << form.mantissa)
    return (-1.0) ** sign * lead * 2.0 ** (max(exponent, 1) - form.bias - form.mantissa)


def round_once(array: Array, dtype: DType) -> Array:
    """A float32 or float64 array rounded once, to nearest even, to `dtype`."""
    target = dtype.numpy
    if array.dtype == target:
        return array
    if dtype.bits >= 32 or dtype.name == "f16" or (dtype.name == "bf16" and array.dtype == np.float32):
        return array.astype(target)  # one rounding each
    exact = array if array.dtype == np.float64 else array.astype(np.float64)
    if dtype.name == "f8e8m0fnu":
        return _encode_scale(exact).view(target)
    form = dtype.format
    return _encode(exact, form).astype(f"u{target.itemsize}").view(target)


def _encode(array: Array, form: FloatFormat) -> Array:
    """Codes (uint64) of a float64 array in `form`."""
    shift = _F64.mantissa - form.mantissa
    bits = array.view(np.uint64)
    magnitude = bits & np.uint64((1 << 63) - 1)
    least_normal = form.least_normal
    step = form.least
    # Add half a unit in the last kept place, less one if that place is even: what is cut off then rounds to even.
    kept = magnitude + (np.uint64((1 << (shift - 1)) - 1) + ((magnitude >> np.uint64(shift)) & np.uint64(1)))
    kept >>= np.uint64(shift)
    codes = kept - np.uint64((_F64.bias - form.bias) << form.mantissa)
    value = magnitude.view(np.float64)
    small = value < least_normal
    if small.any():
        # Subnormal results lie on a fixed grid: adding 1.5 * 2^52 steps leaves the rounded count in the low bits.
        grid = 1.5 * 2.0**_F64.mantissa * step
        counts = (np.where(small, value, 0.0) + grid).view(np.uint64) & np.uint64((1 << (_F64.mantissa - 1)) - 1)
        codes = np.where(small, counts, codes)
    codes = np.where((codes > form.largest) & ~small, np.uint64(form.overflow), codes)
    codes = np.where(np.isnan(value), np.uint64(form.nan), codes)
    sign = (bits >> np.uint64(63)) << np.uint64(form.bits - 1)
    if not form.signed_zero:
        sign = np.where((codes == 0) | (codes == form.nan), np.uint64(0), sign)
    if form.bits == 4:
        sign = np.where(np.isnan(value), np.uint64(0), sign)  # NaN has no code: it becomes -0
    return codes | sign


def _encode_scale(array: Array) -> Array:
    """Codes of f8e8m0fnu: the nearest power of two, ties up, at least 2^-127."""
    fraction, exponent = np.frexp(array)  # fraction in [0.5, 1)
    nearest = exponent - 1 + (fraction >= 0.75)
    codes = np.maximum(nearest, -127) + 127
    bad = ~(array > 0) | np.isinf(array) | (codes > 254)
    return np.where(bad, 0xFF, codes).astype(np.uint8)
