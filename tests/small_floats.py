"""What the small float formats are, written down from their definitions: the oracle of the conversion tests.

Values are exact rationals (`Fraction`); nothing here comes from the package or from ml_dtypes.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from warpsmith.arrays import Array

__all__ = ["FORMATS", "Format", "probes"]


@dataclass(frozen=True)
class Format:
    """`family`: ieee (infinities, NaNs at the top), fn (one NaN a sign, no infinity), fnuz (NaN is the code of -0),
    finite (neither), scale (powers of two, no sign)."""

    name: str
    ir: str
    bits: int
    exponent: int
    mantissa: int
    bias: int
    family: str

    @cached_property
    def finite(self) -> list[tuple[Fraction, int]]:
        """(value, code) of every finite number without sign, in order."""
        if self.family == "scale":
            return [(Fraction(2) ** (code - 127), code) for code in range(255)]
        found: list[tuple[Fraction, int]] = []
        for code in range(1 << (self.bits - 1)):
            exponent, fraction = code >> self.mantissa, code & (1 << self.mantissa) - 1
            if self.family == "ieee" and exponent == (1 << self.exponent) - 1:
                break
            if self.family == "fn" and code == (1 << (self.bits - 1)) - 1:
                break
            lead = Fraction(fraction, 1 << self.mantissa) + (1 if exponent else 0)
            found.append((lead * Fraction(2) ** (max(exponent, 1) - self.bias), code))
        return found

    @property
    def nan(self) -> int:
        match self.family:
            case "ieee":
                return (((1 << self.exponent) - 1) << self.mantissa) | 1 << (self.mantissa - 1)
            case "fn":
                return (1 << (self.bits - 1)) - 1
            case "scale":
                return 255
            case _:
                return 1 << (self.bits - 1)  # fnuz: its NaN; finite: -0 stands for it

    @property
    def infinity(self) -> int | None:
        return ((1 << self.exponent) - 1) << self.mantissa if self.family == "ieee" else None

    def decode(self, code: int) -> float:
        """The value of a code; every finite one is exact in double."""
        if self.family == "scale":
            return float("nan") if code == 255 else 2.0 ** (code - 127)
        sign, magnitude = code >> (self.bits - 1), code & (1 << (self.bits - 1)) - 1
        if self.family == "fnuz" and code == self.nan:
            return float("nan")
        if magnitude < len(self.finite):
            return float(self.finite[magnitude][0]) * (-1.0 if sign else 1.0)
        return (-1.0 if sign else 1.0) * (float("inf") if magnitude == self.infinity else float("nan"))

    @cached_property
    def borders(self) -> Array:
        """Between each finite number and the next (after the largest: where it would have been); exact in double."""
        values = [value for value, _ in self.finite]
        if self.family == "scale":
            middles = [value * 3 / 2 for value in values]
        else:
            middles = [(a + b) / 2 for a, b in zip(values, [*values[1:], 2 * values[-1] - values[-2]], strict=True)]
        found = np.array([float(each) for each in middles])
        assert all(Fraction(float(f)) == exact for f, exact in zip(found, middles, strict=True))
        return found

    def encode(self, values: Array) -> Array:
        """The codes of doubles, rounded to nearest even."""
        magnitudes = np.abs(values)
        low, high = (np.searchsorted(self.borders, magnitudes, side) for side in ("left", "right"))
        if self.family == "scale":  # ties go up
            return np.where((values > 0) & ~np.isinf(values), high, self.nan).astype(np.uint8)
        codes = np.where(low % 2 == 0, low, high)  # they differ on a border alone
        over = {"ieee": self.infinity, "finite": len(self.finite) - 1}.get(self.family, self.nan)
        codes = np.where(codes < len(self.finite), codes, over)
        codes = np.where(np.isnan(values), self.nan, codes)
        sign = np.where(np.signbit(values), 1 << (self.bits - 1), 0)
        if self.family == "fnuz":
            sign = np.where(codes == 0, 0, sign)
        return (codes | sign).astype(np.uint16 if self.bits > 8 else np.uint8)


FORMATS = [
    Format("f4e2m1fn", "f4E2M1FN", 4, 2, 1, 1, "finite"),
    Format("f8e3m4", "f8E3M4", 8, 3, 4, 3, "ieee"),
    Format("f8e4m3", "f8E4M3", 8, 4, 3, 7, "ieee"),
    Format("f8e4m3fn", "f8E4M3FN", 8, 4, 3, 7, "fn"),
    Format("f8e4m3b11fnuz", "f8E4M3B11FNUZ", 8, 4, 3, 11, "fnuz"),
    Format("f8e4m3fnuz", "f8E4M3FNUZ", 8, 4, 3, 8, "fnuz"),
    Format("f8e5m2", "f8E5M2", 8, 5, 2, 15, "ieee"),
    Format("f8e5m2fnuz", "f8E5M2FNUZ", 8, 5, 2, 16, "fnuz"),
    Format("f8e8m0fnu", "f8E8M0FNU", 8, 8, 0, 127, "scale"),
]


def probes(form: Format, dtype: type[np.floating[Any]], count: int, seed: int = 0) -> Array:
    """Numbers that find rounding errors: each value, each tie, their neighbours, specials, and `count` of all sizes."""
    values = [float(value) for value, _ in form.finite]
    ties = [(a + b) / 2 for a, b in zip(values, [*values[1:], 2 * values[-1] - values[-2]], strict=True)]
    if form.family == "scale":
        ties = [1.5 * value for value in values]
    with np.errstate(over="ignore"):
        exact = np.array([*values, *ties]).astype(dtype)
        near = np.concatenate([exact, np.nextafter(exact, dtype(0)), np.nextafter(exact, dtype(np.inf))])
        info = np.finfo(dtype)
        special = np.array([0, info.smallest_subnormal, info.tiny, info.max, np.inf, np.nan], dtype)
        rng = np.random.default_rng(seed)
        low, high = np.log2(values[1] / 4), np.log2(values[-1] * 4)
        spread = np.exp2(rng.uniform(low, high, count)).astype(dtype)
    bits = rng.integers(0, 256, (count, np.dtype(dtype).itemsize), np.uint8).view(dtype).reshape(-1)
    positive = np.concatenate([near, special, spread])
    return np.concatenate([positive, np.negative(positive), bits])
