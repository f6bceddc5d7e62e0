"""Closed integer intervals with saturating int64 arithmetic.

In: bounds, expressions' ranges.  Out: ranges.  A bound that sits at the edge of int64 means "no bound on this
side" and stays there under arithmetic.  An interval whose lower bound is above its upper bound is empty.
Comparisons have three values: True or False when it holds or fails for every pair of members, None otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = [
    "INT64_MAX",
    "INT64_MIN",
    "Bounds",
    "Interval",
    "add_bounds",
    "floordiv_bounds",
    "mod_bounds",
    "mul_bounds",
]

INT64_MAX: Final = 2**63 - 1
INT64_MIN: Final = -(2**63)

Bounds = tuple[int, int]  # (lower, upper): the form that hot loops work on


def _saturate(value: int) -> int:
    return INT64_MAX if value > INT64_MAX else max(value, INT64_MIN)


def add_bounds(a: Bounds, b: Bounds) -> Bounds:
    """The range of x + y."""
    al, au = a
    bl, bu = b
    lower = INT64_MIN if al == INT64_MIN or bl == INT64_MIN else _saturate(al + bl)
    upper = INT64_MAX if au == INT64_MAX or bu == INT64_MAX else _saturate(au + bu)
    return lower, upper


def _times(a: int, b: int) -> int:
    # A saturated factor means "any size", so its product with a non-zero number is unbounded too.
    product = a * b
    if product and (a in (INT64_MIN, INT64_MAX) or b in (INT64_MIN, INT64_MAX)):
        return INT64_MAX if product > 0 else INT64_MIN
    return _saturate(product)


def mul_bounds(a: Bounds, b: Bounds) -> Bounds:
    """The range of x * y."""
    corners = (_times(a[0], b[0]), _times(a[0], b[1]), _times(a[1], b[0]), _times(a[1], b[1]))
    return min(corners), max(corners)


def _floordiv(a: int, d: int) -> int:
    if a in (INT64_MIN, INT64_MAX):
        return a if d > 0 else INT64_MAX if a == INT64_MIN else INT64_MIN
    return _saturate(a // d)


def floordiv_bounds(a: Bounds, b: Bounds) -> Bounds:
    """The range of floor(x / y).  Unbounded when y may be 0."""
    if b[0] <= 0 <= b[1]:
        return INT64_MIN, INT64_MAX
    corners = (_floordiv(a[0], b[0]), _floordiv(a[0], b[1]), _floordiv(a[1], b[0]), _floordiv(a[1], b[1]))
    return min(corners), max(corners)


def mod_bounds(a: Bounds, b: Bounds) -> Bounds:
    """The range of x - floor(x / y) * y.  Unbounded when y may be 0 or less."""
    if b[0] <= 0:
        return INT64_MIN, INT64_MAX
    al, au = a
    if b[0] == b[1]:
        m = b[0]
        if al > INT64_MIN and au < INT64_MAX and al // m == au // m and al <= au:
            return al % m, au % m
        return 0, m - 1
    return (al, au) if al >= 0 and au < b[0] else (0, b[1] - 1)


@dataclass(frozen=True, slots=True, order=False)
class Interval:
    """All integers from `lower` to `upper`, both included."""

    lower: int
    upper: int

    @classmethod
    def point(cls, value: int) -> Interval:
        """The interval of one number."""
        return cls(value, value)

    @classmethod
    def full(cls) -> Interval:
        """No bound on either side."""
        return cls(INT64_MIN, INT64_MAX)

    @classmethod
    def of_size(cls, size: int) -> Interval:
        """The indices of a dimension of `size` elements: [0, size - 1]."""
        return cls(0, size - 1)

    @property
    def bounds(self) -> Bounds:
        """Both ends, inclusive."""
        return self.lower, self.upper

    @property
    def is_empty(self) -> bool:
        """Whether no number is in it."""
        return self.lower > self.upper

    @property
    def is_point(self) -> bool:
        """Exactly one known member (a saturated bound is no known value)."""
        return self.lower == self.upper and INT64_MIN < self.lower < INT64_MAX

    @property
    def size(self) -> int:
        """The number of members.  For an unbounded interval: as if the edges of int64 were bounds."""
        return max(0, self.upper - self.lower + 1)

    def contains(self, other: Interval | int) -> bool:
        """Whether a number, or every member of an interval, lies in this interval."""
        if isinstance(other, int):
            return self.lower <= other <= self.upper
        return other.is_empty or (self.lower <= other.lower and other.upper <= self.upper)

    def __contains__(self, value: int) -> bool:
        return self.lower <= value <= self.upper

    def intersect(self, other: Interval) -> Interval:
        """The numbers that are in both."""
        return Interval(max(self.lower, other.lower), min(self.upper, other.upper))

    def union(self, other: Interval) -> Interval:
        """The smallest interval that holds both."""
        if self.is_empty:
            return other
        if other.is_empty:
            return self
        return Interval(min(self.lower, other.lower), max(self.upper, other.upper))

    def __add__(self, other: Interval | int) -> Interval:
        return Interval(*add_bounds(self.bounds, _bounds(other)))

    def __neg__(self) -> Interval:
        return Interval(*mul_bounds(self.bounds, (-1, -1)))

    def __sub__(self, other: Interval | int) -> Interval:
        return Interval(*add_bounds(self.bounds, mul_bounds(_bounds(other), (-1, -1))))

    def __mul__(self, other: Interval | int) -> Interval:
        return Interval(*mul_bounds(self.bounds, _bounds(other)))

    def __floordiv__(self, other: Interval | int) -> Interval:
        return Interval(*floordiv_bounds(self.bounds, _bounds(other)))

    def __mod__(self, other: Interval | int) -> Interval:
        return Interval(*mod_bounds(self.bounds, _bounds(other)))

    def min(self, other: Interval) -> Interval:
        """The range of min(x, y)."""
        return Interval(min(self.lower, other.lower), min(self.upper, other.upper))

    def max(self, other: Interval) -> Interval:
        """The range of max(x, y)."""
        return Interval(max(self.lower, other.lower), max(self.upper, other.upper))

    def lt(self, other: Interval | int) -> bool | None:
        """x < y for all members, for none (False), or it depends (None)."""
        lower, upper = _bounds(other)
        return True if self.upper < lower else False if self.lower >= upper else None

    def le(self, other: Interval | int) -> bool | None:
        """x <= y for all members, for none (False), or it depends (None)."""
        lower, upper = _bounds(other)
        return True if self.upper <= lower else False if self.lower > upper else None

    def gt(self, other: Interval | int) -> bool | None:
        """x > y for all members, for none (False), or it depends (None)."""
        return _negate(self.le(other))

    def ge(self, other: Interval | int) -> bool | None:
        """x >= y for all members, for none (False), or it depends (None)."""
        return _negate(self.lt(other))

    def eq(self, other: Interval | int) -> bool | None:
        """x == y for all members, for none (False), or it depends (None)."""
        lower, upper = _bounds(other)
        if self.upper < lower or upper < self.lower:
            return False
        return True if self.lower == self.upper == lower == upper else None

    def ne(self, other: Interval | int) -> bool | None:
        """x != y for all members, for none (False), or it depends (None)."""
        return _negate(self.eq(other))

    def __str__(self) -> str:
        return f"[{self.lower}, {self.upper}]"


def _bounds(value: Interval | int) -> Bounds:
    return (value, value) if isinstance(value, int) else (value.lower, value.upper)


def _negate(answer: bool | None) -> bool | None:
    return None if answer is None else not answer
