"""Comparison finds what differs, by either rule, and says where and how much."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsmith.dtypes import BY_NAME, by_name
from warpsmith.errors import ArgumentMismatch
from warpsmith.numerics.compare import Tolerance, compare
from warpsmith.numerics.inputs import random_array
from warpsmith.numerics.ulp import UNCOMPARABLE

ARRAYS = [row.name for row in BY_NAME.values() if row.is_array_element]


@pytest.mark.parametrize("name", ARRAYS)
def test_equal_arrays_match_with_no_error(name: str) -> None:
    """inf and NaN among them: the inputs hold both."""
    a = random_array(by_name(name), (7, 300), seed=3)
    found = compare(a, a.copy())
    assert (found.match, found.mismatches, found.max_ulp, found.max_abs_error, found.worst) == (True, 0, 0, 0.0, None)
    assert found.elements == 2100


def test_one_wrong_element_is_found_anywhere() -> None:
    """Past the first chunk, in the middle of equal ones."""
    a = np.zeros((3, 1 << 20), np.float32)
    b = a.copy()
    b[2, 12345] = 1.5
    found = compare(b, a, Tolerance(ulp=4))
    assert not found.match
    assert found.mismatches == 1
    assert found.worst == (2, 12345)
    assert (found.actual, found.expected) == ("1.5", "0.0")
    assert found.max_abs_error == 1.5
    assert found.max_rel_error == np.inf


def test_ulp_tolerance_is_inclusive() -> None:
    a = np.float32([1.0, 2.0])
    b = (a.view(np.int32) + np.int32([3, 1])).view(np.float32)
    assert compare(b, a, Tolerance(ulp=3)).match
    found = compare(b, a, Tolerance(ulp=2))
    assert (found.match, found.mismatches, found.max_ulp, found.worst) == (False, 1, 3, (0,))


def test_a_priori_bound_excuses_an_element_but_not_its_neighbour() -> None:
    """Cancelled sums are far in ulp and close in value; the bound is by element."""
    e = np.float32([1e-7, 1e-7])
    a = np.float32([2e-7, 2e-7])
    assert compare(a, e, Tolerance(absolute=np.array([1e-6, 1e-6]))).match
    found = compare(a, e, Tolerance(absolute=np.array([1e-6, 1e-9])))
    assert (found.mismatches, found.worst) == (1, (1,))


def test_xla_rule_needs_both_errors_to_exceed() -> None:
    """A small number may be all wrong, a large one far off, as long as only one error is large."""
    e = np.float32([1e-6, 1000.0, 1.0])
    a = np.float32([2e-6, 1000.5, 1.1])
    found = compare(a, e, Tolerance(abs_error=1e-3, rel_error=1e-3))
    assert (found.mismatches, found.worst) == (1, (2,))
    assert compare(a[:2], e[:2], Tolerance(abs_error=1e-3, rel_error=1e-3)).match


@pytest.mark.parametrize("tolerance", [Tolerance(ulp=1000, absolute=1e30), Tolerance(abs_error=1e30, rel_error=1e30)])
def test_nan_or_inf_against_a_number_never_matches(tolerance: Tolerance) -> None:
    e = np.float32([1.0, np.nan, np.inf, -np.inf, 1.0])
    a = np.float32([np.nan, 1.0, 1.0, np.inf, -np.inf])
    found = compare(a, e, tolerance)
    assert found.mismatches == 5
    assert found.max_abs_error == np.inf
    assert found.max_ulp == UNCOMPARABLE


def test_all_nan_are_equal() -> None:
    a = np.array([0x7FC00000, 0xFFC00001], np.uint32).view(np.float32)
    assert compare(a, a[::-1].copy()).match


def test_zeros_match_whatever_their_sign() -> None:
    assert compare(np.float32([0.0]), np.float32([-0.0])).match


@pytest.mark.parametrize(("dtype", "a", "e", "distance"), [
    (np.int32, -(2**31), 2**31 - 1, 2**32 - 1),
    (np.uint64, 0, 2**64 - 1, UNCOMPARABLE),
    (np.int8, -3, 4, 7),
    (ml_dtypes.int4, -8, 7, 15),
    (np.bool_, True, False, 1),
])  # fmt: skip
def test_integers_differ_by_their_difference(dtype: Any, a: int, e: int, distance: int) -> None:
    """Without wrap-around, in every width."""
    found = compare(np.array([a]).astype(dtype), np.array([e]).astype(dtype))
    assert (found.match, found.max_ulp) == (False, distance)


def test_complex_error_is_relative_to_the_larger_part() -> None:
    """The real part of (1e8 + 1e-8 i) (...) can't be held to its own ulp."""
    e = np.array([1.0 + 1e-9j], np.complex64)
    a = np.array([1.0 + 2e-9j], np.complex64)
    assert compare(a, e, Tolerance(ulp=1)).match
    far = np.array([1.0 + 1e-6j], np.complex64)
    assert not compare(far, e, Tolerance(ulp=1)).match
    assert not compare(np.array([complex(1.0, np.nan)], np.complex64), e, Tolerance(ulp=1)).match


def test_unlike_arrays_are_refused() -> None:
    with pytest.raises(ArgumentMismatch):
        compare(np.zeros(3, np.float32), np.zeros(4, np.float32))
    with pytest.raises(ArgumentMismatch):
        compare(np.zeros(3, np.float32), np.zeros(3, np.float64))


def test_empty_and_scalar_arrays() -> None:
    assert compare(np.zeros((0, 4), np.float32), np.zeros((0, 4), np.float32)).match
    found = compare(np.float32(2.0).reshape(()), np.float32(1.0).reshape(()))
    assert (found.match, found.worst) == (False, ())


@settings(deadline=None, max_examples=100)
@given(st.floats(width=32), st.floats(width=32), st.integers(0, 5))
def test_matching_is_symmetric(x: float, y: float, ulp: int) -> None:
    a, b = np.float32([x]), np.float32([y])
    assert compare(a, b, Tolerance(ulp=ulp)).match == compare(b, a, Tolerance(ulp=ulp)).match
