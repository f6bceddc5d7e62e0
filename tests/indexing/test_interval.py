"""Interval arithmetic: every result holds every value, counted out, and the edges of int64 stay edges."""

from __future__ import annotations

import itertools
import operator

import pytest

from warpsmith.indexing import INT64_MAX, INT64_MIN, Interval

SMALL = [Interval(a, b) for a in range(-4, 5) for b in range(a, min(a + 4, 5))]
POSITIVE = [i for i in SMALL if i.lower > 0]
FULL = Interval.full()


def values(interval: Interval) -> range:
    return range(interval.lower, interval.upper + 1)


@pytest.mark.parametrize("symbol", ["add", "sub", "mul"])
def test_ring_operations_are_exact_hulls(symbol: str) -> None:
    operation = getattr(operator, symbol)
    for a, b in itertools.product(SMALL, SMALL):
        got = operation(a, b)
        results = [operation(x, y) for x, y in itertools.product(values(a), values(b))]
        assert (got.lower, got.upper) == (min(results), max(results))


def test_floor_division_is_an_exact_hull() -> None:
    for a, b in itertools.product(SMALL, SMALL):
        if 0 in b:
            assert a // b == FULL
            continue
        results = [x // y for x, y in itertools.product(values(a), values(b))]
        assert ((a // b).lower, (a // b).upper) == (min(results), max(results))


def test_remainder_holds_every_value_and_is_exact_without_wrapping() -> None:
    for a, b in itertools.product(SMALL, POSITIVE):
        got = a % b
        results = [x % y for x, y in itertools.product(values(a), values(b))]
        assert got.lower <= min(results)
        assert max(results) <= got.upper < b.upper + (b.upper == 0)
        if b.is_point and a.lower // b.lower == a.upper // b.lower:
            assert (got.lower, got.upper) == (min(results), max(results))


def test_min_max_intersection_union() -> None:
    for a, b in itertools.product(SMALL, SMALL):
        pairs = list(itertools.product(values(a), values(b)))
        assert values(a.min(b)) == range(min(map(min, pairs)), max(map(min, pairs)) + 1)
        assert values(a.max(b)) == range(min(map(max, pairs)), max(map(max, pairs)) + 1)
        assert set(values(a.intersect(b))) == set(values(a)) & set(values(b))
        assert a.union(b).contains(a)
        assert a.union(b).contains(b)
        assert a.contains(b) == (set(values(b)) <= set(values(a)))


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_comparisons_say_true_false_or_unknown(name: str) -> None:
    for a, b in itertools.product(SMALL, SMALL):
        answers = {getattr(operator, name)(x, y) for x, y in itertools.product(values(a), values(b))}
        got = getattr(a, name)(b)
        assert got is (answers.pop() if len(answers) == 1 else None)


def test_saturated_bounds_stay_unbounded() -> None:
    half = Interval(0, INT64_MAX)
    assert (half - 5).upper == INT64_MAX
    assert (half + 5) == Interval(5, INT64_MAX)
    assert half * -2 == Interval(INT64_MIN, 0)
    assert -half == Interval(INT64_MIN, 0)
    assert half // 7 == half
    assert half % 7 == Interval(0, 6)
    assert Interval(0, 0) == FULL * 0
    assert Interval(INT64_MAX - 1, INT64_MAX - 1) + 9 == Interval(INT64_MAX, INT64_MAX)
    assert not (Interval(INT64_MAX - 1, INT64_MAX - 1) + 9).is_point
    assert Interval(2**40, 2**40) * 2**40 == Interval(INT64_MAX, INT64_MAX)


def test_empty_intervals() -> None:
    empty = Interval(3, 1)
    assert empty.is_empty
    assert empty.size == 0
    assert Interval(0, 5).contains(empty)
    assert empty.union(Interval(1, 2)) == Interval(1, 2)
    assert Interval(1, 2).union(empty) == Interval(1, 2)
    assert Interval.of_size(0).is_empty
    assert Interval.of_size(3) == Interval(0, 2)
    assert str(Interval(-1, 2)) == "[-1, 2]"
