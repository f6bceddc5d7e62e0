"""Exact rounding: what IEEE arithmetic gives in any format and direction, from double arithmetic and its errors.

A result that isn't exact in double is *rounded to odd* there (its last bit says that something was lost), so that the
second rounding, to the format asked for, can't go wrong.  Double itself is reached through error-free sums and products
(Boldo and Melquiond), and through fractions where those could overflow or underflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import TF32, FloatFormat, by_name

__all__ = ["FORMATS", "exact_fma", "fma_f64", "fused", "in_fractions", "odd_sum", "round_to", "two_sum"]


FORMATS: dict[str, FloatFormat] = {
    **{name: by_name(name).format for name in ("f64", "f32", "bf16", "f16")},
    "tf32": TF32,
    "e4m3": by_name("f8e4m3fn").format,
    "e5m2": by_name("f8e5m2").format,
    "e2m1": by_name("f4e2m1fn").format,
}
"""Formats by their names in PTX."""


def _away(x: Array) -> Array:
    """Half away from zero; the doubles here have bits to spare, so adding a half is exact."""
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


_INTEGRAL: dict[str, Callable[[Array], Array]] = {
    "rn": np.rint,
    "rz": np.trunc,
    "rm": np.floor,
    "rp": np.ceil,
    "rna": _away,
}


def round_to(x: Array, format: FloatFormat, mode: str = "rn") -> Array:
    """Doubles (exact, or rounded to odd) to doubles that `format` can hold; past the largest, that or infinity."""
    _, exponent = np.frexp(x)
    quantum = np.maximum(exponent - 1, format.least_exponent) - format.mantissa
    with np.errstate(all="ignore"):
        rounded = np.ldexp(_INTEGRAL[mode](np.ldexp(x, -quantum)), quantum)
    over = np.abs(rounded) > format.most
    if over.any():
        limit = np.copysign(_overflow(x, format, mode), x)
        rounded = np.where(over & np.isfinite(x), limit, rounded)
    return rounded


def _overflow(x: Array, format: FloatFormat, mode: str) -> Array:
    """The magnitude that an overflow gives."""
    if mode in ("rn", "rna"):
        return np.full(x.shape, np.inf)
    if mode == "rz":
        return np.full(x.shape, format.most)
    return np.where((x < 0) == (mode == "rm"), np.inf, format.most)


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Knuth's: the rounded sum and its error, exactly."""
    total = a + b
    virtual = total - a
    return total, (a - (total - virtual)) + (b - virtual)


def _to_odd(total: Array, error: Array) -> Array:
    """Make a rounded sum's last bit sticky: odd whenever the error isn't zero."""
    integer = np.int32 if total.dtype == np.float32 else np.int64
    bits = total.view(integer)
    inexact = (error != 0) & ((bits & integer(1)) == 0) & np.isfinite(total)
    if not inexact.any():
        return total
    step = np.where((error > 0) == (total > 0), integer(1), integer(-1))
    return (bits + np.where(inexact, step, integer(0))).view(total.dtype)


def odd_sum(a: Array, b: Array) -> Array:
    """a + b, rounded to odd in the operands' own format."""
    return _to_odd(*two_sum(*np.broadcast_arrays(a, b)))


def fused(a: Array, b: Array, c: Array) -> Array:
    """a * b + c of f32 (or narrower) values as doubles, rounded to odd; the product is exact in double."""
    return odd_sum(a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64))


def narrow_odd(x: Array) -> Array:
    """Doubles to f32, rounded to odd."""
    near = x.astype(np.float32)
    back = near.astype(np.float64)
    bits = near.view(np.int32)
    inexact = (back != x) & ((bits & np.int32(1)) == 0) & np.isfinite(near)
    if not inexact.any():
        return near
    step = np.where(np.abs(back) < np.abs(x), np.int32(1), np.int32(-1))
    return (bits + np.where(inexact, step, np.int32(0))).view(np.float32)


# ------------------------------------------------------------------------------------------------------------- double
_SPLIT = 134217729.0  # 2^27 + 1
_LARGEST = FORMATS["f64"].most


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Dekker's: the rounded product and its error, exactly, where nothing overflows or underflows."""
    product = a * b
    wide_a, wide_b = a * _SPLIT, b * _SPLIT
    high_a, high_b = wide_a - (wide_a - a), wide_b - (wide_b - b)
    low_a, low_b = a - high_a, b - high_b
    return product, ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b


def fma_f64(a: Array, b: Array, c: Array) -> Array:
    """fma.rn.f64."""
    a, b, c = np.broadcast_arrays(a, b, c)
    with np.errstate(all="ignore"):
        high, low = _two_product(a, b)
        first, first_error = two_sum(c, low)
        second, second_error = two_sum(high, first)
        result = second + odd_sum(first_error, second_error)
        plain = a * b + c
        finite = np.isfinite(a) & np.isfinite(b)
        simple = ~finite | (a == 0) | (b == 0)
        size_a, size_b, size_c = np.abs(a), np.abs(b), np.abs(c)
        safe = (size_a >= 2.0**-480) & (size_a <= 2.0**480) & (size_b >= 2.0**-480) & (size_b <= 2.0**480)
        safe &= (c == 0) | ((size_c >= 2.0**-960) & (size_c <= 2.0**990))
    result = np.where(simple, plain, np.where(np.isfinite(c) | np.isnan(c), result, c))
    result = np.where(np.isnan(c), c, result)
    hard = ~simple & ~safe & np.isfinite(c)
    if hard.any():
        result[hard] = in_fractions(exact_fma, "rn", plain[hard], a[hard], b[hard], c[hard])
    return result


def exact_fma(x: Fraction, y: Fraction, z: Fraction) -> Fraction:
    """x y + z without loss."""
    return x * y + z


def in_fractions(function: Callable[..., Fraction], mode: str, zeros: Array, *arrays: Array) -> Array:
    """A function of finite doubles evaluated exactly and rounded once: slow, right everywhere.

    Where the exact result is 0, its sign is a matter of rules, and `zeros` has the answer.
    """
    columns = [array.tolist() for array in np.broadcast_arrays(zeros, *arrays)]
    return np.array(
        [_round_fraction(function(*map(Fraction, row)), mode, zero) for zero, *row in zip(*columns, strict=True)]
    )


def _round_fraction(value: Fraction, mode: str, zero: float) -> float:
    if value == 0:
        return zero
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if abs(value) < Fraction(2) ** exponent:
        exponent -= 1
    quantum = max(exponent, -1022) - 52
    scaled = abs(value) / Fraction(2) ** quantum
    whole = scaled.numerator // scaled.denominator
    rest = scaled - whole
    half = Fraction(1, 2)
    up = {
        "rn": rest > half or (rest == half and whole & 1 == 1),
        "rz": False,
        "rm": rest > 0 and value < 0,
        "rp": rest > 0 and value > 0,
    }[mode]
    whole += up
    if whole.bit_length() + quantum > 1024:
        beyond = math.inf if mode == "rn" or (mode != "rz" and (mode == "rm") == (value < 0)) else _LARGEST
        return -beyond if value < 0 else beyond
    magnitude = math.ldexp(whole, quantum)
    return -magnitude if value < 0 else magnitude
