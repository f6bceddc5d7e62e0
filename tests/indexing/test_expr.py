"""Expressions: one object for equal ones, canonical form, and no trouble with size or depth."""

from __future__ import annotations

import copy
import gc
import pickle
import threading

import numpy as np
import pytest
from work import calls_of

from warpsmith.errors import IndexingError
from warpsmith.indexing import (
    Expr,
    IndexingMap,
    Mod,
    add,
    ceildiv,
    const,
    dim,
    evaluate,
    floordiv,
    maximum,
    minimum,
    mod,
    mul,
    parse_expr,
    parse_map,
    substitute,
    symbol,
)
from warpsmith.indexing import nodes as node_module

X, Y, S = dim(0), dim(1), symbol(0)

CANONICAL = [
    (X + Y + X, "d0 * 2 + d1"),
    (X - X, "0"),
    (1 + X + 2, "d0 + 3"),
    (3 - X, "-d0 + 3"),
    ((X + Y) * 3 - Y * 3, "d0 * 3"),
    (mul(mul(X, 4), Y), "d0 * d1 * 4"),
    (mul(Y, X), "d0 * d1"),
    (mul(X + 1, Y - 2), "d0 * d1 - d0 * 2 + d1 - 2"),
    (floordiv(X, 1), "d0"),
    (floordiv(X, -1), "-d0"),
    (floordiv(const(0), 5), "0"),
    (floordiv(X * 6, 4), "(d0 * 3) floordiv 2"),
    (floordiv(X * 8 + Y, 4), "d0 * 2 + d1 floordiv 4"),
    (floordiv(X * 4 + 3, 4), "d0"),
    (floordiv(X * 4 + 7, 8), "(d0 + 1) floordiv 2"),
    (floordiv(X - 1, 2), "(d0 + 1) floordiv 2 - 1"),
    (floordiv(floordiv(X, 3), 5), "d0 floordiv 15"),
    (floordiv(mod(X, 12), 4), "(d0 floordiv 4) mod 3"),
    (ceildiv(X, 4), "(d0 + 3) floordiv 4"),
    (mod(X, 1), "0"),
    (mod(X * 6, 4), "((d0 * 3) mod 2) * 2"),
    (mod(X * 8 + Y + 9, 4), "(d1 + 1) mod 4"),
    (mod(X - 1, 2), "(d0 + 1) mod 2"),
    (mod(mod(X, 12), 4), "d0 mod 4"),
    (mod(mod(X, 4), 12), "d0 mod 4 mod 12"),
    (mod(X, 8) + floordiv(X, 8) * 8, "d0"),
    (mod(X + Y, 8) * 3 + floordiv(X + Y, 8) * 24, "d0 * 3 + d1 * 3"),
    (mod(floordiv(X, 4), 8) * 4 + floordiv(X, 32) * 32 + mod(X, 4), "d0"),
    (minimum(X, X + 3), "d0"),
    (maximum(X, X + 3), "d0 + 3"),
    (minimum(Y, X), "min(d0, d1)"),
    (maximum(const(2), const(5)), "5"),
    (S + X + floordiv(X, 2) + mod(X, 3) + X * Y, "d0 * d1 + d0 mod 3 + d0 floordiv 2 + d0 + s0"),
]


@pytest.mark.parametrize(("expr", "text"), CANONICAL, ids=[row[1] for row in CANONICAL])
def test_canonical_form(expr: Expr, text: str) -> None:
    assert str(expr) == text
    assert parse_expr(text, ["d0", "d1"], ["s0"]) is expr


def test_equal_expressions_are_one_object() -> None:
    def built() -> Expr:
        return mod(dim(3) * 7 + symbol(2), 100) + floordiv(dim(40) + 12345678, 9)

    kept = built()
    assert built() is kept
    assert copy.deepcopy(kept) is kept
    assert pickle.loads(pickle.dumps(kept)) is kept


def test_threads_get_the_same_objects() -> None:
    results: list[list[Expr]] = []

    def work() -> None:
        results.append([mod(dim(i % 7) * 3 + dim(5) + i, 1000 + i) for i in range(300)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for other in results[1:]:
        assert all(a is b for a, b in zip(results[0], other, strict=True))


def test_dropped_expressions_leave_the_table() -> None:
    gc.collect()
    before = len(node_module._table)
    kept = [mod(dim(1) * 3 + dim(2) + i, 1_000_003) for i in range(2000)]
    assert len(node_module._table) > before + 2000
    del kept
    gc.collect()
    assert len(node_module._table) <= before + node_module._KEPT_CONSTANTS


def test_variables_that_occur() -> None:
    expr = dim(0) * 3 + mod(symbol(4), 5) + dim(9)
    assert expr.dims == (0, 9)
    assert expr.symbols == (4,)
    assert not expr.is_constant
    assert const(3).is_constant


def test_substitution_is_simultaneous() -> None:
    assert substitute(X * 10 + Y, {X: Y, Y: X}) is Y * 10 + X
    assert substitute(mod(X * 10 + Y, 7), {mod(X * 10 + Y, 7): S}) is S


def test_values_on_integers_and_arrays() -> None:
    expr = mod(X * 3 - Y, 5) + floordiv(X - Y, 2) + maximum(X, Y) - minimum(X, Y)
    x, y = np.arange(-5, 6)[:, None], np.arange(-4, 5)[None, :]
    want = (x * 3 - y) % 5 + (x - y) // 2 + abs(x - y)
    np.testing.assert_array_equal(evaluate(expr, [x, y]), want)
    assert evaluate(expr, [-5, 4]) == want[0, 8]
    assert isinstance(evaluate(expr, [-5, 4]), int)


def test_literal_zero_divisors_are_errors() -> None:
    for build in (floordiv, ceildiv, mod):
        with pytest.raises(IndexingError, match=r"zero|positive"):
            build(X, 0)
    with pytest.raises(IndexingError, match="positive"):
        mod(X, -3)
    with pytest.raises(IndexingError, match="no value for symbol 0"):
        evaluate(X + S, [1])
    with pytest.raises(IndexingError, match="lacks"):
        IndexingMap.from_sizes([dim(2)], [3, 3])


def test_depth_is_refused_not_overflowed() -> None:
    def nested(levels: int) -> Expr:
        deep: Expr = X
        for i in range(levels):
            deep = mod(deep * 3 + Y, 1_000 + i)
        return deep

    with pytest.raises(IndexingError, match="levels deep"):
        nested(10_000)
    # What is allowed can be compared, printed, evaluated and simplified.
    deep = nested(80)
    assert isinstance(deep, Mod)
    assert parse_map(f"(d0, d1) -> ({nested(30)}), domain: d0 in [0, 9], d1 in [0, 9]").results == (nested(30),)
    map = IndexingMap.from_sizes([deep + nested(79)], [10, 10])
    assert map.simplify().evaluate((3, 4)) == map.evaluate((3, 4))


@pytest.mark.slow
def test_long_sums_take_linear_work() -> None:
    def sums(n: int) -> None:
        total = add(*[mul(dim(i), i % 7 + 1) for i in range(n)])
        map = IndexingMap.from_sizes([floordiv(total, 3), mod(total, 8)], [8] * n).simplify()
        assert parse_map(str(map)) == map

    sums(100)
    assert calls_of(lambda: sums(4000)) < 16 * calls_of(lambda: sums(500))  # quadratic would be 64 times


def test_adding_terms_one_by_one_gives_the_same_sum() -> None:
    total: Expr = const(5)
    for i in [*range(0, 200, 2), *range(1, 200, 2), *range(0, 200, 3)]:
        total = total + dim(i) * (i % 3 + 1)
    everything = [dim(i) * (i % 3 + 1) for i in [*range(200), *range(0, 200, 3)]]
    assert total is add(5, *everything)
