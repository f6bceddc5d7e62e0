"""What integer ops other than sums and products compute: divisions, shifts, high halves, counts of bits.

In and out as in `semantics`.  What MLIR calls poison gives some value and never raises.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpsmith.arrays import Array
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.types import bit_width, element_type
from warpsmith.ir.dialects.semantics import Function, as_unsigned, from_unsigned, quiet


def _wide(a: Array) -> Array:
    return a if a.dtype.kind == "i" else a.astype(np.int8)


def div_signed(_op: Operation, a: Array, b: Array) -> Array:
    """`arith.divsi`: towards zero.  A division by 0 has no result in MLIR; here and below it is one by 1."""
    x, y = _wide(a), _safe_divisor(_wide(b))
    quotient = x // y
    remainder = x - quotient * y
    adjusted = quotient + ((remainder != 0) & ((x < 0) != (y < 0)))
    return adjusted.astype(a.dtype)


def rem_signed(op: Operation, a: Array, b: Array) -> Array:
    """`arith.remsi`: with the sign of the dividend."""
    x, y = _wide(a), _safe_divisor(_wide(b))
    return (x - div_signed(op, x, y) * y).astype(a.dtype)


def absolute(_op: Operation, a: Array) -> Array:
    """|a|; the least integer stays as it is."""
    return np.where(a < 0, -_wide(a), a).astype(a.dtype)


def floor_div_signed(_op: Operation, a: Array, b: Array) -> Array:
    """`arith.floordivsi`: downwards."""
    return (_wide(a) // _safe_divisor(_wide(b))).astype(a.dtype)


def _safe_divisor(b: Array) -> Array:
    return np.where(b == 0, np.ones_like(b), b)


def div_unsigned(a: Array, b: Array) -> Array:
    """`arith.divui`."""
    return a // _safe_divisor(b)


def ceil_div_unsigned(a: Array, b: Array) -> Array:
    """`arith.ceildivui`: upwards."""
    d = _safe_divisor(b)
    return a // d + (a % d != 0).astype(a.dtype)


def rem_unsigned(a: Array, b: Array) -> Array:
    """`arith.remui`."""
    return a % _safe_divisor(b)


def _op_width(op: Operation) -> int:
    return bit_width(element_type(op.results[0].type))


def shift(kind: str) -> Function:
    """Shifts; an amount at or past the width is poison in MLIR and gives 0 (or the sign) here."""

    def apply(op: Operation, a: Array, b: Array) -> Array:
        width = _op_width(op)
        amount = as_unsigned(b).astype(np.uint64)
        over = amount >= width
        amount = np.where(over, 0, amount).astype(np.uint64)
        if kind == "right_arithmetic":
            shifted = np.right_shift(a.astype(np.int64), np.where(over, width - 1, amount).astype(np.int64))
            return from_unsigned(shifted.view(np.uint64), a.dtype)
        bits = as_unsigned(a).astype(np.uint64)
        moved = np.left_shift(bits, amount) if kind == "left" else np.right_shift(bits, amount)
        return from_unsigned(np.where(over, np.uint64(0), moved), a.dtype)

    return quiet(apply)


def multiply_high(signed: bool) -> Callable[[Operation, Array, Array], tuple[Array, Array]]:
    """The two halves (low, high) of the double-width product."""

    def halves(op: Operation, a: Array, b: Array) -> tuple[Array, Array]:
        width = _op_width(op)
        if width <= 32:
            return _halves_in_64_bits(a, b, width, signed)
        x, y = ((v if signed else as_unsigned(v)).astype(object) for v in (a, b))
        product: Array = x * y
        mask = (1 << width) - 1
        low, high = (np.asarray(part & mask).astype(np.uint64) for part in (product, product >> width))
        return from_unsigned(low, a.dtype), from_unsigned(high, a.dtype)

    return halves


def _halves_in_64_bits(a: Array, b: Array, width: int, signed: bool) -> tuple[Array, Array]:
    x, y = (v.astype(np.int64) if signed else as_unsigned(v).astype(np.uint64) for v in (a, b))
    product: Array = x * y
    high: Array = product >> product.dtype.type(width)
    return from_unsigned(product.view(np.uint64), a.dtype), from_unsigned(high.view(np.uint64), a.dtype)


def _bits_as_uint64(op: Operation, a: Array) -> tuple[Array, int]:
    return as_unsigned(a).astype(np.uint64), _op_width(op)


def count_ones(op: Operation, a: Array) -> Array:
    """`math.ctpop`: how many bits are 1."""
    bits, _ = _bits_as_uint64(op, a)
    return from_unsigned(np.bitwise_count(bits).astype(np.uint64), a.dtype)


def count_leading_zeros(op: Operation, a: Array) -> Array:
    """`math.ctlz`: how many bits, from the top, are 0 before the first 1."""
    bits, width = _bits_as_uint64(op, a)
    filled = bits.copy()
    for step in (1, 2, 4, 8, 16, 32):
        filled |= filled >> np.uint64(step)
    return from_unsigned(np.uint64(width) - np.bitwise_count(filled).astype(np.uint64), a.dtype)


def count_trailing_zeros(op: Operation, a: Array) -> Array:
    """`math.cttz`: how many bits, from the bottom, are 0 before the first 1."""
    bits, width = _bits_as_uint64(op, a)
    below = ~bits & (bits - np.uint64(1))
    mask = np.uint64((1 << width) - 1)
    return from_unsigned(np.bitwise_count(below & mask).astype(np.uint64), a.dtype)
