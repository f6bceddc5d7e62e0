"""ulp distances count representable values, in every float type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from warpsmith.dtypes import BY_NAME, by_name
from warpsmith.errors import ArgumentMismatch
from warpsmith.numerics.ulp import UNCOMPARABLE, ulp_distance, ulp_size

FLOATS = [row.name for row in BY_NAME.values() if row.is_float]
SMALL = [name for name in FLOATS if by_name(name).bits <= 16]


def all_values(name: str) -> NDArray[Any]:
    dtype = by_name(name)
    unsigned = np.uint8 if dtype.bits <= 8 else np.uint16
    return np.arange(1 << dtype.bits, dtype=np.uint32).astype(unsigned).view(dtype.numpy)


@pytest.mark.parametrize("name", SMALL)
def test_distance_is_difference_of_ranks(name: str) -> None:
    """Sorted by value, distinct numbers are one apart: a wrong sign or NaN rule would break the count."""
    values = all_values(name)
    with np.errstate(invalid="ignore"):  # signalling NaN
        wide = values.astype(np.float64)
    numbers = values[~np.isnan(wide)]
    distinct, first = np.unique(numbers.astype(np.float64), return_index=True)
    ranked = numbers[first]
    assert distinct.size == ranked.size
    steps = ulp_distance(ranked[:-1], ranked[1:])
    assert (steps == 1).all()
    assert int(ulp_distance(ranked[:1], ranked[-1:])[0]) == distinct.size - 1


@pytest.mark.parametrize("name", FLOATS)
def test_nan_equals_nan_and_nothing_else(name: str) -> None:
    """A result of NaN must not pass for a number."""
    dtype = by_name(name)
    one = np.ones(1, dtype.numpy)
    if name == "f4e2m1fn":  # has no NaN
        assert ulp_distance(one, one)[0] == 0
        return
    nan = np.array([np.nan]).astype(dtype.numpy)
    assert ulp_distance(nan, nan)[0] == 0
    assert ulp_distance(nan, one)[0] == UNCOMPARABLE
    assert ulp_distance(one, nan)[0] == UNCOMPARABLE


def test_zeros_are_equal_unless_signs_are_asked_for() -> None:
    zero, minus = np.float32([0.0]), np.float32([-0.0])
    assert ulp_distance(zero, minus)[0] == 0
    assert ulp_distance(zero, minus, signed_zero=True)[0] == 1


def test_f64_extremes_do_not_wrap() -> None:
    """The distance of -inf and inf doesn't fit 63 bits."""
    assert ulp_distance(np.array([-np.inf]), np.array([np.inf]))[0] == UNCOMPARABLE - 1


def test_unlike_types_are_refused() -> None:
    with pytest.raises(ArgumentMismatch):
        ulp_distance(np.zeros(1, np.float32), np.zeros(1, np.float64))
    with pytest.raises(ArgumentMismatch):
        ulp_distance(np.zeros(1, np.int32), np.zeros(1, np.int32))


@settings(deadline=None, max_examples=200)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_ulp_size_is_the_gap_above(x: float) -> None:
    """numpy's spacing is the same quantity (but at the type's end)."""
    value = np.float32(x)
    size = ulp_size(np.abs(np.float64([value])), by_name("f32"))[0]
    gap = 2.0**104 if np.abs(value) == np.finfo(np.float32).max else float(np.spacing(np.abs(value)))
    assert size == gap


@settings(deadline=None, max_examples=200)
@given(st.floats(width=64, allow_nan=False), st.integers(0, 20))
def test_stepping_n_times_is_n_ulp(x: float, n: int) -> None:
    start = np.array([x])
    end = start.copy()
    with np.errstate(over="ignore"):
        for _ in range(n):
            end = np.nextafter(end, np.inf)
    if np.isfinite(end).all() and np.isfinite(start).all():
        assert ulp_distance(start, end)[0] == n
