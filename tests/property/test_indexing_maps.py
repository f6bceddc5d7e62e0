"""Indexing maps against counting: every operation is checked at every point of small random domains."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from indexing.bijection import is_bijection_onto

from warpsmith.indexing import (
    Expr,
    IndexingMap,
    Interval,
    Variable,
    add,
    bitcast_map,
    ceildiv,
    compose,
    const,
    dim,
    floordiv,
    linear_index,
    maximum,
    minimum,
    mod,
    mul,
    parse_map,
    print_map,
    reshape_map,
    symbol,
    work_item_map,
)
from warpsmith.indexing.points import contains, points
from warpsmith.indexing.rewire import (
    range_vars_to_dims,
    remove_unused_symbols,
    remove_unused_vars,
    rescale_symbols,
    symbols_to_dims,
    unused_variables,
)

DIMS, SYMBOLS = 2, 2
quick = settings(deadline=None, max_examples=60)


@st.composite
def raw(draw: st.DrawFn, depth: int = 4) -> tuple:
    """An expression as nested tuples, so that its value can be computed without the code under test."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return draw(
            st.one_of(
                st.tuples(st.just("const"), st.integers(-9, 9)),
                st.tuples(st.just("dim"), st.integers(0, DIMS - 1)),
                st.tuples(st.just("symbol"), st.integers(0, SYMBOLS - 1)),
            )
        )
    kind = draw(st.sampled_from(["+", "+", "+", "-", "*", "//", "//", "%", "%", "ceil", "min", "max", "xy"]))
    left = draw(raw(depth=depth - 1))
    if kind in ("*", "//", "%", "ceil"):
        low = 1 if kind == "%" else -4
        return (kind, left, draw(st.integers(low, 12).filter(bool)))
    return (kind, left, draw(raw(depth=depth - 1)))


def build(tree: tuple) -> Expr:
    match tree:
        case ("const", value):
            return const(value)
        case ("dim", index):
            return dim(index)
        case ("symbol", index):
            return symbol(index)
        case (kind, left, right):
            a, b = build(left), build(right) if isinstance(right, tuple) else const(right)
            table = {"+": add, "*": mul, "xy": mul, "//": floordiv, "%": mod, "ceil": ceildiv, "min": minimum}
            if kind == "-":
                return a - b
            return table.get(kind, maximum)(a, b)
    raise AssertionError(tree)


def value(tree: tuple, dims: list, symbols: list) -> np.ndarray:
    match tree:
        case ("const", number):
            return np.int64(number)
        case ("dim", index):
            return dims[index]
        case ("symbol", index):
            return symbols[index]
        case (kind, left, right):
            a = value(left, dims, symbols)
            b = value(right, dims, symbols) if isinstance(right, tuple) else np.int64(right)
            table = {
                "+": np.add,
                "-": np.subtract,
                "*": np.multiply,
                "xy": np.multiply,
                "//": np.floor_divide,
                "%": np.mod,
                "ceil": lambda x, y: -(-x // y),
                "min": np.minimum,
                "max": np.maximum,
            }
            return table[kind](a, b)
    raise AssertionError(tree)


intervals = st.builds(lambda low, size: Interval(low, low + size), st.integers(-6, 6), st.integers(0, 6))
wide = st.builds(lambda low, size: Interval(low, low + size), st.integers(-20, 10), st.integers(0, 30))


@st.composite
def boxes(draw: st.DrawFn) -> tuple[list[Variable], list[Variable]]:
    dims = [Variable("", draw(intervals)) for _ in range(DIMS)]
    return dims, [Variable("", draw(intervals)) for _ in range(SYMBOLS)]


def grid(dims: list[Variable], symbols: list[Variable]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    axes = [np.arange(v.bounds.lower, v.bounds.upper + 1) for v in (*dims, *symbols)]
    flat = [a.ravel() for a in np.meshgrid(*axes, indexing="ij")]
    return flat[: len(dims)], flat[len(dims) :]


def same_function(a: IndexingMap, b: IndexingMap, dims: list, symbols: list) -> None:
    """a and b have the same domain within the grid, and the same values on it."""
    inside = contains(a, dims, symbols)
    np.testing.assert_array_equal(inside, contains(b, dims, symbols))
    for left, right in zip(a.evaluate(dims, symbols), b.evaluate(dims, symbols), strict=True):
        shape = inside.shape
        np.testing.assert_array_equal(np.broadcast_to(left, shape)[inside], np.broadcast_to(right, shape)[inside])


maps = st.builds(
    lambda box, results, constraints: (
        IndexingMap.make(
            box[0],
            [build(r) for r in results],
            range_vars=box[1],
            constraints=[(build(e), i) for e, i in constraints],
        ),
        box,
    ),
    boxes(),
    st.lists(raw(), min_size=1, max_size=2),
    st.lists(st.tuples(raw(depth=3), wide), max_size=3),
)


@quick
@given(raw(), boxes())
def test_canonical_form_keeps_the_value(tree: tuple, box: tuple) -> None:
    dims, symbols = grid(*box)
    expr = build(tree)
    expected = np.broadcast_to(value(tree, dims, symbols), dims[0].shape)
    got = IndexingMap.make(box[0], [expr], range_vars=box[1]).evaluate(dims, symbols)[0]
    np.testing.assert_array_equal(np.broadcast_to(np.asarray(got), dims[0].shape), expected)
    point = [int(v[0]) for v in dims], [int(v[0]) for v in symbols]
    assert IndexingMap.make(box[0], [expr], range_vars=box[1]).evaluate(*point)[0] == expected[0]


@quick
@given(raw(), boxes())
def test_ranges_hold_every_value(tree: tuple, box: tuple) -> None:
    dims, symbols = grid(*box)
    found = IndexingMap.make(box[0], [build(tree)], range_vars=box[1]).result_ranges()[0]
    expected = np.broadcast_to(value(tree, dims, symbols), dims[0].shape)
    assert found.lower <= expected.min()
    assert expected.max() <= found.upper


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(maps, st.booleans())
def test_simplify_keeps_domain_and_values(made: tuple, preserve: bool) -> None:
    original, box = made
    simplified = original.simplify(preserve_points=preserve)
    same_function(original, simplified, *grid(*box))
    assert simplified.simplify(preserve_points=preserve) is simplified


@pytest.mark.slow
@quick
@given(maps, maps)
def test_compose_is_composition_of_functions(one: tuple, two: tuple) -> None:
    first, box = one
    second, second_box = two
    if first.num_results != second.num_dims:
        first = first.with_results([*first.results, dim(0)][: second.num_dims])
    if first.num_results != second.num_dims:
        return
    composed = compose(first, second)
    dims, own = grid(*box)
    extra = [np.full_like(dims[0], v.bounds.lower) for v in second_box[1]]
    middle = [np.broadcast_to(np.asarray(v), dims[0].shape) for v in first.evaluate(dims, own)]
    inside = contains(first, dims, own) & contains(second, middle, extra)
    np.testing.assert_array_equal(contains(composed, dims, [*extra, *own]), inside)
    expected = second.evaluate(middle, extra)
    for result in (composed, composed.simplify()):
        for left, right in zip(result.evaluate(dims, [*extra, *own]), expected, strict=True):
            np.testing.assert_array_equal(
                np.broadcast_to(left, inside.shape)[inside], np.broadcast_to(right, inside.shape)[inside]
            )


@quick
@given(maps, st.sampled_from(["mlir", "xla"]))
def test_text_round_trip(made: tuple, style: str) -> None:
    original, _ = made
    if original.known_empty:
        assert parse_map(print_map(original, style)).known_empty
    else:
        assert parse_map(print_map(original, style)) == original


@quick
@given(maps)
def test_copies_are_equal_and_share_expressions(made: tuple) -> None:
    original, _ = made
    for other in (copy.deepcopy(original), pickle.loads(pickle.dumps(original))):
        assert other == original
        assert hash(other) == hash(original)
        assert all(a is b for a, b in zip(other.results, original.results, strict=True))


@quick
@given(maps)
def test_dropping_unused_variables_keeps_the_used_points(made: tuple) -> None:
    original, _ = made
    for reduced, unused in (
        (remove_unused_symbols(original), unused_variables(original, dims=False)),
        remove_unused_vars(original),
    ):
        if original.known_empty:
            assert reduced.known_empty
            continue
        dims, symbols = points(original)
        if not len(dims[0]):
            continue
        kept = [v for v, gone in zip((*dims, *symbols), unused, strict=True) if not gone]
        kept_dims, kept_symbols = kept[: reduced.num_dims], kept[reduced.num_dims :]
        shape = dims[0].shape
        assert contains(reduced, kept_dims, kept_symbols).all()
        for left, right in zip(
            reduced.evaluate(kept_dims, kept_symbols), original.evaluate(dims, symbols), strict=True
        ):
            np.testing.assert_array_equal(np.broadcast_to(left, shape), np.broadcast_to(right, shape))


@pytest.mark.slow
@quick
@given(maps, st.integers(1, 4), st.integers(0, 3))
def test_rescaling_symbols_visits_the_same_results(made: tuple, c: int, k: int) -> None:
    original = made[0].add_constraint(symbol(0) % c, Interval.point(k % c)).simplify()
    rescaled = rescale_symbols(original)

    def visited(map: IndexingMap) -> list:
        if map.known_empty:
            return []
        dims, symbols = points(map)
        n = len(dims[0])
        columns = [*dims, *(np.broadcast_to(np.asarray(v), (n,)) for v in map.evaluate(dims, symbols))]
        return sorted(zip(*[column.tolist() for column in columns], strict=True))

    assert visited(rescaled) == visited(original)


@pytest.mark.slow
@quick
@given(maps)
def test_symbols_become_dimensions_in_order(made: tuple) -> None:
    original, box = made
    dims, symbols = grid(*box)
    moved = range_vars_to_dims(original, [0])
    for variant, d, s in (
        (symbols_to_dims(original), [*dims, *symbols], []),
        (moved, [*dims, symbols[0]], symbols[1:]),
    ):
        np.testing.assert_array_equal(contains(variant, d, s), contains(original, dims, symbols))
        for left, right in zip(variant.evaluate(d, s), original.evaluate(dims, symbols), strict=True):
            np.testing.assert_array_equal(np.broadcast_to(left, d[0].shape), np.broadcast_to(right, d[0].shape))


shapes = st.lists(st.sampled_from([1, 1, 2, 3, 4, 5, 6, 8]), min_size=0, max_size=4)


@st.composite
def bitcasts(draw: st.DrawFn) -> tuple:
    """Two shapes of equal counts, each with a layout."""
    factors = draw(st.lists(st.sampled_from([2, 2, 3, 5]), max_size=6))

    def shape() -> list[int]:
        sizes = [1] * draw(st.integers(1 if factors else 0, 4))
        for factor in factors:
            sizes[draw(st.integers(0, len(sizes) - 1))] *= factor
        return sizes

    a, b = shape(), shape()
    return a, draw(st.permutations(range(len(a)))), b, draw(st.permutations(range(len(b))))


@quick
@given(bitcasts())
def test_bitcast_keeps_the_place_in_memory(case: tuple) -> None:
    a, a_layout, b, b_layout = case
    found = bitcast_map(a, a_layout, b, b_layout)
    assert is_bijection_onto(found, b)
    # numpy's own idea of layout: strides in elements
    memory = np.arange(int(np.prod(a)))
    in_a = memory.reshape([a[d] for d in reversed(a_layout)]).transpose(np.argsort(list(reversed(a_layout))))
    in_b = memory.reshape([b[d] for d in reversed(b_layout)]).transpose(np.argsort(list(reversed(b_layout))))
    for index in np.ndindex(*a):
        assert in_a[index] == in_b[tuple(found.evaluate(index))]
    dims, _ = points(found)
    position = found.then(IndexingMap.from_sizes([linear_index(b, b_layout)], b)).simplify()
    if a:
        np.testing.assert_array_equal(
            np.broadcast_to(position.evaluate(dims)[0], dims[0].shape),
            np.broadcast_to(IndexingMap.from_sizes([linear_index(a, a_layout)], a).evaluate(dims)[0], dims[0].shape),
        )


@quick
@given(shapes, st.randoms())
def test_reshape_agrees_with_numpy(sizes: list[int], random) -> None:
    target = list(sizes)
    while len(target) > 1 and random.random() < 0.6:
        i = random.randrange(len(target) - 1)
        target[i : i + 2] = [target[i] * target[i + 1]]
    if random.random() < 0.5:
        target.insert(random.randrange(len(target) + 1), 1)
    source, found = np.arange(int(np.prod(sizes))).reshape(sizes), reshape_map(sizes, target)
    reshaped = source.reshape(target)
    for index in np.ndindex(*sizes):
        assert source[index] == reshaped[tuple(found.evaluate(index))]


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.integers(1, 9), max_size=3),
    st.integers(0, 5),
    st.sampled_from([1, 2, 4]),
    st.tuples(st.integers(1, 8), st.integers(1, 2)),
    st.tuples(st.integers(1, 9), st.integers(1, 2)),
)
def test_default_work_covers_each_element_once(sizes, order, unroll, block, blocks) -> None:
    layout = sorted(range(len(sizes)), key=lambda d: (d * 7 + order) % 5)
    found = work_item_map(sizes, layout, block, blocks, unroll)
    assert is_bijection_onto(found, sizes)
    if found.num_symbols and found.symbol_vars[-1].name == "vector_index" and not found.known_empty:
        # the unrolled elements of one thread are neighbours in memory
        position = found.then(IndexingMap.from_sizes([linear_index(sizes, layout)], sizes)).simplify()
        dims, symbols = points(position)
        first = [*symbols[:-1], np.zeros_like(symbols[-1])]
        np.testing.assert_array_equal(
            position.evaluate(dims, symbols)[0], position.evaluate(dims, first)[0] + symbols[-1]
        )
