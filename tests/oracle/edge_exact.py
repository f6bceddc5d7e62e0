"""Exact numbers of every float type: codes to rationals and back, with a decoder and a rounding of its own.

In: an element type and codes (the bits of elements as integers).  Out: `Exact` values, and the code that an exact
value rounds to.  Nothing here is shared with the interpreter or the compiler, whose test this is: of `DType` it takes
the widths of the fields alone, and what their codes mean (`FloatFormat`'s bias, largest number, overflow, NaN) it has
of its own, one word a format in `_KINDS`.
"""

from __future__ import annotations

from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from warpsmith.dtypes import DType

__all__ = [
    "Exact",
    "Special",
    "array_of",
    "codes_of",
    "decode",
    "encode",
    "is_nan",
    "is_negative",
    "largest",
    "least_normal",
    "magnitude",
    "negated",
    "smallest",
    "two_to",
]


class Special(Enum):
    """What is no rational number."""

    NAN = "nan"
    INF = "inf"
    NEG_INF = "-inf"
    NEG_ZERO = "-0"


Exact: TypeAlias = Fraction | Special
"""A number: a rational (0 is +0), or one of the four others."""

# IEEE: all-ones exponents are infinities and NaN.  FN: one NaN a sign, no infinity.  FNUZ: the code of -0 is the one
# NaN.  FINITE: neither.  SCALE: powers of two.
_KINDS = {
    "f4e2m1fn": "finite",
    "f8e8m0fnu": "scale",
    "f8e4m3fn": "fn",
    "f8e4m3b11fnuz": "fnuz",
    "f8e4m3fnuz": "fnuz",
    "f8e5m2fnuz": "fnuz",
}


def _kind(dtype: DType) -> str:
    return _KINDS.get(dtype.name, "ieee")


def _bias(dtype: DType) -> int:
    if dtype.name == "f8e4m3b11fnuz":
        return 11
    return (1 << (dtype.exponent - 1)) - (0 if _kind(dtype) == "fnuz" else 1)


def two_to(exponent: int) -> Fraction:
    """2 to a power, also a negative one."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def is_nan(value: Exact) -> bool:
    """Whether it is NaN."""
    return value is Special.NAN


def is_negative(value: Exact) -> bool:
    """The sign bit; False for NaN."""
    if isinstance(value, Special):
        return value in (Special.NEG_INF, Special.NEG_ZERO)
    return value < 0


def negated(value: Exact) -> Exact:
    """The other sign; NaN stays."""
    opposite = {
        Special.INF: Special.NEG_INF,
        Special.NEG_INF: Special.INF,
        Special.NEG_ZERO: Fraction(0),
        Special.NAN: Special.NAN,
    }
    if isinstance(value, Special):
        return opposite[value]
    return Special.NEG_ZERO if value == 0 else -value


def magnitude(value: Exact) -> Exact:
    """The value without its sign."""
    return negated(value) if is_negative(value) else value


def _largest_code(dtype: DType) -> int:
    """The code of the largest finite number."""
    every = (1 << (dtype.bits - 1)) - 1
    match _kind(dtype):
        case "ieee":
            return every - (1 << dtype.mantissa)
        case "fn":
            return every - 1
        case "scale":
            return 0xFE
        case _:
            return every


def largest(dtype: DType) -> Fraction:
    """The largest finite number."""
    value = decode(dtype, _largest_code(dtype))
    assert isinstance(value, Fraction)
    return value


def least_normal(dtype: DType) -> Fraction:
    """The least positive number of a float type that isn't subnormal."""
    return two_to(-127) if _kind(dtype) == "scale" else two_to(1 - _bias(dtype))


def smallest(dtype: DType) -> Fraction:
    """The least positive number."""
    return least_normal(dtype) / (1 << dtype.mantissa)


def decode(dtype: DType, code: int) -> Exact:
    """The number that `code` stands for."""
    kind = _kind(dtype)
    if kind == "scale":
        return Special.NAN if code == 0xFF else two_to(code - 127)
    top = 1 << (dtype.bits - 1)
    negative, bits = bool(code & top), code & (top - 1)
    exponent, fraction = bits >> dtype.mantissa, bits & ((1 << dtype.mantissa) - 1)
    if kind == "ieee" and exponent == (1 << dtype.exponent) - 1:
        if fraction:
            return Special.NAN
        return Special.NEG_INF if negative else Special.INF
    if (kind == "fn" and bits == top - 1) or (kind == "fnuz" and code == top):
        return Special.NAN
    lead = fraction + ((1 << dtype.mantissa) if exponent else 0)
    value = lead * two_to(max(exponent, 1) - _bias(dtype) - dtype.mantissa)
    return negated(value) if negative else value


def _nan_code(dtype: DType) -> int:
    top = 1 << (dtype.bits - 1)
    match _kind(dtype):
        case "ieee":
            return (top - 1) ^ ((1 << (dtype.mantissa - 1)) - 1)  # quiet, no payload
        case "scale":
            return 0xFF
        case "fn":
            return top - 1
        case _:
            return top  # in a format without NaN the code of -0


def encode(dtype: DType, value: Exact) -> int:
    """The code of the number of `dtype` next to `value`, ties to even.

    Too large a number is infinity, NaN in a format without, the largest number in one without either.  Scales (f8e8m0)
    round ties up, and have no zero and no negative numbers: NaN.  Any NaN stands for all of them.
    """
    kind, top = _kind(dtype), 1 << (dtype.bits - 1)
    if value is Special.NAN:
        return _nan_code(dtype)
    if kind == "scale":
        return _encode_scale(value)
    sign = top if is_negative(value) else 0
    size = magnitude(value)
    code = _overflow(dtype) if isinstance(size, Special) else _rounded(dtype, size)
    if kind == "fnuz" and code in (0, top):
        return code
    return sign | code


def _overflow(dtype: DType) -> int:
    match _kind(dtype):
        case "ieee":
            return ((1 << dtype.exponent) - 1) << dtype.mantissa
        case "finite":
            return _largest_code(dtype)
        case _:
            return _nan_code(dtype)


def _rounded(dtype: DType, size: Fraction) -> int:
    if size == 0:
        return 0
    exponent = max(_log2(size), 1 - _bias(dtype))
    quantum = two_to(exponent - dtype.mantissa)
    count = round(size / quantum)  # Python rounds ties to even
    if count * quantum > largest(dtype):
        return _overflow(dtype)
    # Counts of the least exponent run on through subnormal and normal codes; a carry is the next exponent's first code.
    return count + ((exponent + _bias(dtype) - 1) << dtype.mantissa)


def _log2(size: Fraction) -> int:
    """The exponent of the power of two at or below."""
    guess = size.numerator.bit_length() - size.denominator.bit_length()
    return guess if two_to(guess) <= size else guess - 1


def _encode_scale(value: Exact) -> int:
    if isinstance(value, Special) or value <= 0:
        return 0xFF
    exponent = _log2(value)
    exponent += value >= two_to(exponent) * Fraction(3, 2)
    return 0xFF if exponent > 127 else max(exponent, -127) + 127


def _carrier(dtype: DType) -> np.dtype[np.unsignedinteger]:
    return np.dtype(f"u{dtype.numpy.itemsize}")


def array_of(dtype: DType, codes: list[int]) -> NDArray[Any]:
    """An array of `dtype` (not a complex one) with these bits."""
    return np.array(codes, np.uint64).astype(_carrier(dtype)).view(dtype.numpy)


def codes_of(dtype: DType, array: NDArray[Any]) -> list[int]:
    """The bits of each element, upper bits of a byte that holds a narrower one left out."""
    flat = np.ascontiguousarray(array).reshape(-1).view(_carrier(dtype))
    return [int(code) & ((1 << dtype.bits) - 1) for code in flat]
