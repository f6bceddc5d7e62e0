"""Integer and pred ops on numpy containers: wrap-around arithmetic and HLO's edge cases.

In: integer arrays of a numpy type at least as wide as the HLO type (s4 and s2 in int8, u4 and u2 in uint8), with the
HLO type's width where it matters.  Out: arrays whose low bits are the result; `store` drops the others.
As XLA has them: x/0 = -1, x%0 = x, MIN/-1 = MIN, and shifts of the width or more give 0 or the sign.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType

__all__ = ["BINARY", "PRED_BINARY", "UNARY", "load", "store"]

IntOp: TypeAlias = Callable[..., Array]


def load(array: Array, dtype: DType) -> Array:
    """The same integers in a plain numpy type."""
    if dtype.bits >= 8:
        return array
    spare = 8 - dtype.bits
    if dtype.is_signed:
        return np.right_shift(np.left_shift(array.view(np.int8), spare), spare)
    return np.bitwise_and(array.view(np.uint8), (1 << dtype.bits) - 1)


def store(array: Array, dtype: DType) -> Array:
    """The low bits of plain integers as `dtype`."""
    if dtype.bits >= 8:
        return array.astype(dtype.numpy, copy=False)
    return np.bitwise_and(array.astype(np.uint8, copy=False), np.uint8((1 << dtype.bits) - 1)).view(dtype.numpy)


def _bits(array: Array, width: int) -> Array:
    """The two's complement bits as an unsigned number below 2^width."""
    unsigned = array.view(f"u{array.dtype.itemsize}")
    return unsigned if width == 8 * array.dtype.itemsize else unsigned & ((1 << width) - 1)


def _signed(array: Array) -> bool:
    return array.dtype.kind == "i"


def _divide(a: Array, b: Array, width: int) -> Array:
    none = b == 0
    if not _signed(a):
        return np.where(
            none,
            np.bitwise_not(np.zeros_like(a)),
            a // np.where(none, b.dtype.type(1), b),
        )
    flip = b == -1  # -a wraps where a // -1 would overflow
    safe = np.where(none | flip, b.dtype.type(1), b)
    quotient = a // safe
    quotient = quotient + ((quotient * safe != a) & ((a < 0) != (safe < 0)))  # floor to truncation
    return np.where(none, a.dtype.type(-1), np.where(flip, np.negative(a), quotient)).astype(a.dtype, copy=False)


def _remainder(a: Array, b: Array, width: int) -> Array:
    none = b == 0
    unit = none | (b == -1) if _signed(a) else none
    rest = np.fmod(a, np.where(unit, b.dtype.type(1), b))
    return np.where(none, a, rest)


def _power(a: Array, b: Array, width: int) -> Array:
    """Square and multiply over all exponent bits, wrapping; 1/a truncated for a negative exponent."""
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    result = np.ones(np.broadcast_shapes(a.shape, b.shape), a.dtype)
    left, base = b.view(unsigned), a
    while left.any():
        result = np.where((left & 1) != 0, result * base, result)
        base = base * base
        left = left >> 1
    if not _signed(a):
        return result
    odd = (b & 1) != 0
    inverse = np.where(a == 1, 1, np.where(a == -1, np.where(odd, -1, 1), 0))
    return np.where(b < 0, inverse, result).astype(a.dtype, copy=False)


def _shift_left(a: Array, b: Array, width: int) -> Array:
    amount = _bits(b, width)
    over = amount >= width
    return np.where(over, 0, _bits(a, width) << np.where(over, 0, amount)).astype(a.dtype)


def _shift_right_logical(a: Array, b: Array, width: int) -> Array:
    amount = _bits(b, width)
    over = amount >= width
    return np.where(over, 0, _bits(a, width) >> np.where(over, 0, amount)).astype(a.dtype)


def _shift_right_arithmetic(a: Array, b: Array, width: int) -> Array:
    bits = _bits(a, width)
    spare = 8 * a.dtype.itemsize - width
    signed = (bits << spare).view(f"i{a.dtype.itemsize}") >> spare
    amount = np.minimum(_bits(b, width), width - 1).astype(signed.dtype)
    return (signed >> amount).astype(a.dtype)


def _mulhi(a: Array, b: Array, width: int) -> Array:
    """The upper half of the product of twice the width."""
    if width < 64:
        wider = np.int64 if _signed(a) else np.uint64
        return ((a.astype(wider) * b.astype(wider)) >> width).astype(a.dtype)
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    x, y = a.view(np.uint64), b.view(np.uint64)
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    middle = x1 * y0 + ((x0 * y0) >> half)
    other = x0 * y1 + (middle & low)
    high = x1 * y1 + (middle >> half) + (other >> half)
    if _signed(a):  # the signed product differs by b where a < 0 and by a where b < 0
        high = high - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return high.view(a.dtype)


def _popcnt(a: Array, width: int) -> Array:
    return np.bitwise_count(_bits(a, width)).astype(a.dtype)


def _count_leading_zeros(a: Array, width: int) -> Array:
    bits = _bits(a, width)
    step = 1
    while step < width:  # copy the leading one into every lower bit
        bits = bits | (bits >> step)
        step *= 2
    return (width - np.bitwise_count(bits).astype(np.int64)).astype(a.dtype)


def _sign(a: Array, width: int) -> Array:
    return np.sign(a)


def _wrapping(function: Callable[[Array, Array], Array]) -> IntOp:
    def op(a: Array, b: Array, width: int) -> Array:
        return function(a, b)

    return op


def _wrapping_unary(function: Callable[[Array], Array]) -> IntOp:
    def op(a: Array, width: int) -> Array:
        return function(a)

    return op


BINARY: Mapping[str, IntOp] = {
    "add": _wrapping(np.add),
    "subtract": _wrapping(np.subtract),
    "multiply": _wrapping(np.multiply),
    "divide": _divide,
    "remainder": _remainder,
    "power": _power,
    "maximum": _wrapping(np.maximum),
    "minimum": _wrapping(np.minimum),
    "and": _wrapping(np.bitwise_and),
    "or": _wrapping(np.bitwise_or),
    "xor": _wrapping(np.bitwise_xor),
    "shift-left": _shift_left,
    "shift-right-logical": _shift_right_logical,
    "shift-right-arithmetic": _shift_right_arithmetic,
    "mulhi": _mulhi,
}

UNARY: Mapping[str, IntOp] = {
    "abs": _wrapping_unary(np.abs),
    "negate": _wrapping_unary(np.negative),
    "not": _wrapping_unary(np.bitwise_not),
    "sign": _sign,
    "popcnt": _popcnt,
    "count-leading-zeros": _count_leading_zeros,
}

PRED_BINARY: Mapping[str, Callable[[Array, Array], Array]] = {
    "add": np.logical_or,
    "multiply": np.logical_and,
    "maximum": np.logical_or,
    "minimum": np.logical_and,
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}
