"""Compares a result with its reference, by ulp or by XLA's rule, and says how far apart they are.

In: two arrays of one dtype and shape, and a tolerance.  Out: a `Comparison`.  Elements of equal bits cost one pass;
only the others are measured, a chunk at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warpsmith.arrays import Array
from warpsmith.dtypes import DType, by_name, from_numpy
from warpsmith.errors import ArgumentMismatch, UsageError
from warpsmith.numerics.ulp import UNCOMPARABLE, bits_of, ulp_distance, ulp_size

__all__ = ["Comparison", "Tolerance", "compare"]

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Tolerance:
    """When an element is right.

    By ulp (the default): its distance is at most `ulp`, or its absolute error at most `absolute` (a number, or an array
    of the result's shape: the a-priori bounds of sums).  With `abs_error` or `rel_error` set, XLA's rule: it is wrong
    only if its absolute *and* its relative error exceed these (one that isn't given counts as 0).

    `estimated` says how many of `absolute` are estimates rather than bounds; it changes no verdict.  UsageError for a
    tolerance below zero, or NaN.
    """

    ulp: int = 0
    absolute: float | Array = 0.0
    abs_error: float | None = None
    rel_error: float | None = None
    estimated: int = 0

    def __post_init__(self) -> None:
        for name in ("ulp", "abs_error", "rel_error"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, (int, float)) and value >= 0):
                raise UsageError(f"{name} is {value!r}; a tolerance is a number of at least 0")

    @property
    def is_xla(self) -> bool:
        """Whether XLA's rule holds, by absolute and relative error."""
        return self.abs_error is not None or self.rel_error is not None

    def __str__(self) -> str:
        if self.is_xla:
            return f"abs error {self.abs_error or 0:g} or rel error {self.rel_error or 0:g}"
        bounded = isinstance(self.absolute, np.ndarray) or self.absolute > 0
        return f"{self.ulp} ulp" + (" or the a-priori bound" if bounded else "")


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcome.  Errors are the largest over all elements; `worst` is the index of the first worst element.

    NaN against a number counts as an infinite error and UNCOMPARABLE ulp.  Integers and pred have their difference as
    distance.  `max_share` is the largest error as a share of its own bound, where that is finite; None by XLA's rule.
    """

    match: bool
    elements: int
    mismatches: int
    max_ulp: int
    max_abs_error: float
    max_rel_error: float
    worst: tuple[int, ...] | None = None
    actual: str = ""
    expected: str = ""
    max_share: float | None = None


def compare(actual: Array, expected: Array, tolerance: Tolerance | None = None) -> Comparison:
    """Compare elementwise.  ArgumentMismatch when dtypes or shapes differ."""
    tolerance = tolerance or Tolerance()
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        raise ArgumentMismatch(
            f"can't compare {actual.dtype}{list(actual.shape)} with {expected.dtype}{list(expected.shape)}"
        )
    dtype = from_numpy(actual.dtype)
    a, e = np.ascontiguousarray(actual).reshape(-1), np.ascontiguousarray(expected).reshape(-1)
    absolute = tolerance.absolute
    bounds = absolute.reshape(-1) if isinstance(absolute, np.ndarray) else None
    found = _Worst()
    for start in range(0, a.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        where = _unequal(a[part], e[part])
        if where.size:
            limit = absolute if bounds is None else bounds[part][where]
            found.add(_Errors.of(a[part][where], e[part][where], dtype), tolerance, limit, where + start)
    worst = found.index
    return Comparison(
        match=found.mismatches == 0,
        elements=a.size,
        mismatches=found.mismatches,
        max_ulp=found.ulp,
        max_abs_error=found.abs_error,
        max_rel_error=found.rel_error,
        worst=None if worst is None else tuple(int(i) for i in np.unravel_index(worst, actual.shape)),
        actual="" if worst is None else str(a[worst]),
        expected="" if worst is None else str(e[worst]),
        max_share=None if tolerance.is_xla else found.share,
    )


def _unequal(a: Array, e: Array) -> NDArray[np.intp]:
    """Where bits differ."""
    if a.dtype.itemsize == 16:
        pairs = a.view(np.uint64).reshape(-1, 2) != e.view(np.uint64).reshape(-1, 2)
        return np.flatnonzero(pairs.any(axis=1))
    return np.flatnonzero(bits_of(a) != bits_of(e))


@dataclass(frozen=True, slots=True)
class _Errors:
    """Distances and errors of some elements."""

    ulp: NDArray[np.int64]
    abs_error: NDArray[np.float64]
    rel_error: NDArray[np.float64]

    @staticmethod
    def of(a: Array, e: Array, dtype: DType) -> _Errors:
        with np.errstate(all="ignore"):
            if dtype.is_complex:
                return _Errors._of_complex(a, e, dtype)
            if dtype.is_float:
                return _Errors(ulp_distance(a, e), *_float_errors(a.astype(np.float64), e.astype(np.float64)))
            return _Errors._of_integers(a, e)

    @staticmethod
    def _of_integers(a: Array, e: Array) -> _Errors:
        wide = np.uint64 if a.dtype == np.uint64 else np.int64
        x, y = a.astype(wide), e.astype(wide)
        gap = (np.maximum(x, y) - np.minimum(x, y)).astype(np.uint64)
        distance = np.minimum(gap, np.uint64(UNCOMPARABLE)).astype(np.int64)
        size = np.abs(e.astype(np.float64))
        return _Errors(distance, gap.astype(np.float64), np.where(gap == 0, 0.0, gap.astype(np.float64) / size))

    @staticmethod
    def _of_complex(a: Array, e: Array, dtype: DType) -> _Errors:
        """Both parts in ulp of the larger part of the expected value; the worse one counts."""
        part = by_name("f32" if dtype.bits == 64 else "f64")
        x, y = (
            a.view(part.numpy).astype(np.float64).reshape(-1, 2),
            e.view(part.numpy).astype(np.float64).reshape(-1, 2),
        )
        abs_error, rel_error = _float_errors(x, y)
        size = np.abs(np.where(np.isfinite(y), y, 0.0)).max(axis=1, keepdims=True)
        steps = np.ceil(abs_error / ulp_size(size, part))
        steps = np.where(steps < 2.0**62, steps, np.float64(2.0**62))
        distance = np.where(np.isfinite(abs_error), steps.astype(np.int64), np.int64(UNCOMPARABLE))
        return _Errors(distance.max(axis=1), abs_error.max(axis=1), rel_error.max(axis=1))


def _float_errors(a: NDArray[np.float64], e: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Absolute and relative errors: 0 for two NaN or equal infinities, infinite for one of these against another."""
    same = (a == e) | (np.isnan(a) & np.isnan(e))
    abs_error = np.where(same, 0.0, np.abs(a - e))
    abs_error = np.where(np.isnan(abs_error), np.inf, abs_error)
    rel_error = np.where(same, 0.0, abs_error / np.abs(e))
    return abs_error, np.where(np.isnan(rel_error), np.inf, rel_error)


class _Worst:
    """Running maxima over chunks."""

    __slots__ = ("_key", "abs_error", "index", "mismatches", "rel_error", "share", "ulp")

    def __init__(self) -> None:
        self.mismatches = 0
        self.ulp = 0
        self.abs_error = 0.0
        self.rel_error = 0.0
        self.share = 0.0
        self.index: int | None = None
        self._key: float = -1.0

    def add(self, errors: _Errors, tolerance: Tolerance, limit: float | Array, where: NDArray[np.intp]) -> None:
        if tolerance.is_xla:
            wrong = (errors.abs_error > (tolerance.abs_error or 0.0)) & (
                errors.rel_error > (tolerance.rel_error or 0.0)
            )
            rank = np.minimum(errors.abs_error, errors.rel_error)
        else:
            wrong = (errors.ulp > tolerance.ulp) & (errors.abs_error > limit)
            rank = errors.ulp.astype(np.float64)
            self.share = max(self.share, float(_shares(errors, tolerance.ulp, limit).max()))
        self.mismatches += int(wrong.sum())
        self.ulp = max(self.ulp, int(errors.ulp.max()))
        self.abs_error = max(self.abs_error, float(errors.abs_error.max()))
        self.rel_error = max(self.rel_error, float(errors.rel_error.max()))
        # The first worst among the wrong ones, or among all while none is wrong.
        rank = np.where(wrong, rank + 2.0**64, rank)
        best = int(np.argmax(rank))
        if float(rank[best]) > self._key:
            self._key, self.index = float(rank[best]), int(where[best])


def _shares(errors: _Errors, ulp: int, limit: float | Array) -> NDArray[np.float64]:
    """Each error as a share of the bound that it is nearest to keeping; 0 where there is none, or no error."""
    with np.errstate(all="ignore"):
        shares = np.where(errors.abs_error > 0, errors.abs_error / np.asarray(limit, np.float64), 0.0)
        shares = np.minimum(shares, errors.ulp / ulp) if ulp else shares
    return np.nan_to_num(shares, nan=0.0, posinf=np.inf)
