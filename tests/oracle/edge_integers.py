"""Integer and pred ops at their edges, by Python's own integers: wrap-around, division by zero, shifts past the width.

In: an opcode and a type.  Out: operands and the bits that HLO defines as the result (reference: emitters.md 9.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product

from warpsmith.dtypes import DType

__all__ = ["BINARY", "PRED_BINARY", "UNARY", "edges", "pairs"]


def _divide(a: int, b: int, dtype: DType) -> int:
    """Truncated; -1 (all bits set) by zero.  MIN / -1 wraps to MIN."""
    if b == 0:
        return -1
    size = abs(a) // abs(b)
    return -size if (a < 0) != (b < 0) else size


def _remainder(a: int, b: int, dtype: DType) -> int:
    """The dividend's sign; the dividend by zero."""
    if b == 0:
        return a
    size = abs(a) % abs(b)
    return -size if a < 0 else size


def _power(a: int, b: int, dtype: DType) -> int:
    """Wrapping; a negative exponent gives 1/a truncated, 0 for 0."""
    if b < 0:
        return {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)
    return pow(a, b, 1 << dtype.bits)


def _amount(b: int, dtype: DType) -> int:
    """Shift amounts are unsigned."""
    return b % (1 << dtype.bits)


def _shift_left(a: int, b: int, dtype: DType) -> int:
    amount = _amount(b, dtype)
    return 0 if amount >= dtype.bits else a << amount


def _shift_right_logical(a: int, b: int, dtype: DType) -> int:
    amount = _amount(b, dtype)
    return 0 if amount >= dtype.bits else (a % (1 << dtype.bits)) >> amount


def _shift_right_arithmetic(a: int, b: int, dtype: DType) -> int:
    """Copies the top bit, whatever the type's signedness."""
    bits = a % (1 << dtype.bits)
    value = bits - (1 << dtype.bits) if bits >> (dtype.bits - 1) else bits
    return value >> min(_amount(b, dtype), dtype.bits - 1)


BINARY: Mapping[str, Callable[[int, int, DType], int]] = {
    "add": lambda a, b, _: a + b,
    "subtract": lambda a, b, _: a - b,
    "multiply": lambda a, b, _: a * b,
    "divide": _divide,
    "remainder": _remainder,
    "power": _power,
    "maximum": lambda a, b, _: max(a, b),
    "minimum": lambda a, b, _: min(a, b),
    "and": lambda a, b, _: a & b,
    "or": lambda a, b, _: a | b,
    "xor": lambda a, b, _: a ^ b,
    "shift-left": _shift_left,
    "shift-right-logical": _shift_right_logical,
    "shift-right-arithmetic": _shift_right_arithmetic,
    "mulhi": lambda a, b, dtype: (a * b) >> dtype.bits,
}

UNARY: Mapping[str, Callable[[int, DType], int]] = {
    "abs": lambda a, _: abs(a),
    "negate": lambda a, _: -a,
    "sign": lambda a, _: (a > 0) - (a < 0),
    "not": lambda a, _: ~a,
    "popcnt": lambda a, dtype: (a % (1 << dtype.bits)).bit_count(),
    "count-leading-zeros": lambda a, dtype: dtype.bits - (a % (1 << dtype.bits)).bit_length(),
}

PRED_BINARY: Mapping[str, Callable[[bool, bool], bool]] = {
    "add": lambda a, b: a or b,
    "multiply": lambda a, b: a and b,
    "maximum": lambda a, b: a or b,
    "minimum": lambda a, b: a and b,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
    "xor": lambda a, b: a != b,
}
"""pred is the integers modulo nothing: add is or, multiply is and."""


def edges(dtype: DType) -> list[int]:
    """The values at which something changes; all of a type of at most 8 bits."""
    least = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
    most = least + (1 << dtype.bits) - 1
    if dtype.bits <= 8:
        return list(range(least, most + 1))
    width = dtype.bits
    near = {least, least + 1, -width, -3, -2, -1, 0, 1, 2, 3, 7, width - 1, width, width + 1, most // 2, most // 2 + 1}
    near |= {most - 1, most} | {1 << (width // 2), (1 << (width // 2)) - 1}
    return sorted(value for value in near if least <= value <= most)


def pairs(dtype: DType) -> list[tuple[int, int]]:
    """Every pair of edges, of a type of 8 bits those of a sixteenth of its values and the extremes."""
    values = edges(dtype)
    if len(values) == 256:
        values = sorted({*values[::16], *values[:2], *values[-2:], *values[126:131], *range(11)})
    return list(product(values, values))
