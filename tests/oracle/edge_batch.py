"""Batches of edge values, and which values those are.

Out: `Batch`, the operands of one op on one type and what it must give; the codes at which something changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from oracle.edge_exact import Exact, Special, array_of, encode, largest, least_normal, negated, smallest, two_to

from warpsmith.arrays import Array
from warpsmith.dtypes import BY_NAME, DType, Kind

__all__ = ["FLOATS", "Batch", "edge_codes", "exponent_of", "float_codes", "whole_array"]


FLOATS = tuple(row for row in BY_NAME.values() if row.is_float)


@dataclass(frozen=True)
class Batch:
    """`opcode` with `attributes` (HLO text) of `operands`, of types `sources`, gives `expected`, of type `target`.

    All are arrays of one dimension (but for a bitcast to a narrower type).  `either_sign` marks elements whose sign is
    nobody's promise.  NaN stands for any NaN.
    """

    opcode: str
    sources: tuple[DType, ...]
    operands: tuple[Array, ...]
    target: DType
    expected: Array
    attributes: str = ""
    either_sign: Array | None = None

    @property
    def id(self) -> str:
        """A short name: the opcode, its types and attributes."""
        types = "-".join(dict.fromkeys(each.name for each in (*self.sources, self.target)))
        extra = self.attributes.replace(", ", "-").replace("=", "_")
        return f"{self.opcode}-{types}{extra}"

    def text(self) -> str:
        """A module of the op alone."""
        sizes = [",".join(map(str, array.shape)) for array in self.operands]
        lines = [
            f"  p{i} = {dtype.name}[{size}] parameter({i})"
            for i, (dtype, size) in enumerate(zip(self.sources, sizes, strict=True))
        ]
        names = ", ".join(f"p{i}" for i in range(len(self.sources)))
        dims = ",".join(map(str, self.expected.shape))
        root = f"  ROOT r = {self.target.name}[{dims}] {self.opcode}({names}){self.attributes}"
        return "\n".join(["HloModule edges", "ENTRY e {", *lines, root, "}", ""])

    def wrong(self, found: Array) -> list[str]:
        """A line for each of the first elements that aren't as expected."""
        differs = _differs(self.target, found, self.expected, self.either_sign).reshape(-1)
        return [self._line(int(i), found) for i in np.flatnonzero(differs)[:8]]

    def _line(self, index: int, found: Array) -> str:
        given = ", ".join(str(operand.reshape(-1)[index % operand.size]) for operand in self.operands)
        return f"{self.id}({given}) = {found.reshape(-1)[index]}, not {self.expected.reshape(-1)[index]}"


def _differs(dtype: DType, found: Array, expected: Array, either_sign: Array | None) -> Array:
    if dtype.is_complex:
        part = np.float32 if dtype.bits == 64 else np.float64
        a, b = (np.ascontiguousarray(each).view(part).reshape(-1, 2) for each in (found, expected))
        return np.asarray(_float_differs(a, b, either_sign).any(axis=1), np.bool_)
    if dtype.is_float:
        return _float_differs(found, expected, either_sign)
    return np.not_equal(found, expected, dtype=np.bool_)


def _float_differs(found: Array, expected: Array, either_sign: Array | None) -> Array:
    nan: Array = np.isnan(expected)
    code = f"u{expected.dtype.itemsize}"
    same = found.view(code) == expected.view(code)
    if either_sign is not None:
        same |= either_sign & (np.abs(found) == np.abs(expected))
    return np.where(nan, ~np.isnan(found), ~same)


def float_codes(dtype: DType) -> list[int]:
    """All codes of a type of at most 8 bits; of a wider one the edges, its own and those of narrower types."""
    if dtype.bits <= 8:
        return list(range(1 << dtype.bits))
    values: list[Exact] = [Fraction(0), Special.INF, Special.NAN, Fraction(3), Fraction(1, 3), Fraction(10)]
    values += [Fraction(n, 2) for n in range(1, 8)]
    for narrow in FLOATS:
        if narrow.bits <= dtype.bits:
            top, small = largest(narrow), smallest(narrow)
            gap = top - largest_below(narrow)
            values += [top, top + gap / 2, top + gap, least_normal(narrow), small, small / 2, small * Fraction(3, 2)]
            values += [least_normal(narrow) - small, 1 + two_to(-narrow.mantissa - 1), 1 + two_to(-narrow.mantissa)]
    for width in (1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64):
        edge = two_to(width)
        values += [edge, edge - 1, edge - Fraction(1, 2), edge + edge * two_to(-dtype.mantissa)]
        values += [edge - edge * two_to(-dtype.mantissa - 1)]
    codes = {encode(dtype, value) for value in values}
    codes |= {encode(dtype, negated(value)) for value in values}
    return sorted(codes)


def largest_below(dtype: DType) -> Fraction:
    """The number next below the largest."""
    return largest(dtype) - two_to(exponent_of(largest(dtype)) - dtype.mantissa)


def exponent_of(value: Fraction) -> int:
    """The e of a positive value with 2^e <= value < 2^(e+1)."""
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if two_to(guess) <= value else guess - 1


def edge_codes(dtype: DType) -> list[int]:
    """Edges for pairs."""
    if dtype.bits <= 4:
        return list(range(1 << dtype.bits))
    values: list[Exact] = [Fraction(0), Special.INF, Special.NAN, largest(dtype), least_normal(dtype), smallest(dtype)]
    values += [largest_below(dtype), *(Fraction(n, 2) for n in (1, 2, 3, 4, 5, 6, 10))]
    values += [1 + two_to(-dtype.mantissa), 1 - two_to(-dtype.mantissa - 1)]
    return sorted({encode(dtype, v) for v in values} | {encode(dtype, negated(v)) for v in values})


def whole_array(dtype: DType, values: Sequence[int]) -> Array:
    """Integers or preds as an array."""
    if dtype.kind is Kind.PRED:
        return np.array([bool(value) for value in values])
    return array_of(dtype, [value % (1 << dtype.bits) for value in values])
