"""Maps: simplifying, composing, and changing variables, on the cases that the reference pins."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from indexing.bijection import is_bijection_onto

from warpsmith.errors import IndexingError
from warpsmith.indexing import (
    IndexingMap,
    Interval,
    RangeEvaluator,
    Simplifier,
    Variable,
    bitcast_map,
    compose,
    dim,
    floordiv,
    mod,
    parse_expr,
    parse_map,
    reshape_map,
    symbol,
    work_item_map,
)
from warpsmith.indexing.points import contains
from warpsmith.indexing.rewire import (
    range_vars_to_dims,
    remove_unused_symbols,
    remove_unused_vars,
    rescale_symbols,
    symbols_to_dims,
)


def simplified(text: str) -> str:
    map = parse_map(text)
    assert map is not None
    return str(map.simplify())


SIMPLIFIED = [
    # the domain
    ("(d0) -> (d0), domain: d0 in [0, 9], d0 mod 20 in [0, 19]", "(d0) -> (d0), domain: d0 in [0, 9]"),
    ("(d0) -> (d0), domain: d0 in [0, 99], d0 * 3 + 2 in [7, 20]", "(d0) -> (d0), domain: d0 in [2, 6]"),
    ("(d0) -> (d0), domain: d0 in [0, 99], d0 * -3 in [-20, -7]", "(d0) -> (d0), domain: d0 in [3, 6]"),
    ("(d0) -> (d0), domain: d0 in [0, 99], d0 floordiv 8 in [2, 3]", "(d0) -> (d0), domain: d0 in [16, 31]"),
    ("(d0) -> (d0), domain: d0 in [0, 9], d0 * 2 in [3, 3]", "KNOWN EMPTY"),
    ("(d0) -> (d0), domain: d0 in [0, 9], d0 in [12, 13]", "KNOWN EMPTY"),
    ("(d0, d1) -> (d0), domain: d0 in [0, 9], d1 in [0, 9], d0 + d1 in [30, 40]", "KNOWN EMPTY"),
    # what can't reach the next multiple doesn't matter for the bound
    (
        "(d0, d1)[s0] -> (d0), domain: d0 in [0, 127], d1 in [0, 9], s0 in [0, 3], d0 * 4 + d1 * 512 + s0 in [0, 4999]",
        "(d0, d1)[s0] -> (d0), domain: d0 in [0, 127], d1 in [0, 9], s0 in [0, 3], d1 * 128 + d0 in [0, 1249]",
    ),
    # ... but here it does
    (
        "(d0)[s0] -> (d0), domain: d0 in [0, 127], s0 in [0, 3], d0 * 4 + s0 in [0, 49]",
        "(d0)[s0] -> (d0), domain: d0 in [0, 127], s0 in [0, 3], d0 * 4 + s0 in [0, 49]",
    ),
    # ... and a part that may be negative isn't dropped from a lower bound of 0
    (
        "(d0, d1) -> (d0), domain: d0 in [-2, 9], d1 in [-3, -1], d0 * 4 + d1 in [0, 31]",
        "(d0, d1) -> (d0), domain: d0 in [1, 8], d1 in [-3, -1]",
    ),
    # remainders
    (
        "(d0) -> (d0), domain: d0 in [0, 19], d0 mod 2 in [1, 1], d0 mod 3 in [1, 1]",
        "(d0) -> (d0), domain: d0 in [1, 19], d0 mod 6 in [1, 1]",
    ),
    (
        "(d0) -> (d0), domain: d0 in [-7, 6], d0 mod 4 in [3, 3]",
        "(d0) -> (d0), domain: d0 in [-5, 3], (d0) mod 4 in [3, 3]".replace("(d0) mod", "d0 mod"),
    ),
    ("(d0) -> (d0), domain: d0 in [4, 6], d0 mod 5 in [0, 0]", "(d0) -> (5), domain: d0 in [5, 5]"),
    # results
    ("(d0) -> ((d0 + 3) mod 8), domain: d0 in [0, 4]", "(d0) -> (d0 + 3), domain: d0 in [0, 4]"),
    ("(d0) -> ((d0 - 5) mod 8), domain: d0 in [0, 4]", "(d0) -> (d0 + 3), domain: d0 in [0, 4]"),
    (
        "(d0, d1) -> ((d0 * 8 + d1) floordiv 32), domain: d0 in [0, 99], d1 in [0, 7]",
        "(d0, d1) -> (d0 floordiv 4), domain: d0 in [0, 99], d1 in [0, 7]",
    ),
    (
        "(d0, d1) -> ((d0 * 8 + d1) mod 32), domain: d0 in [0, 99], d1 in [0, 7]",
        "(d0, d1) -> ((d0 mod 4) * 8 + d1), domain: d0 in [0, 99], d1 in [0, 7]",
    ),
    (
        "(d0) -> (d0 - (d0 floordiv 4) * 4), domain: d0 in [0, 99]",
        "(d0) -> (d0 mod 4), domain: d0 in [0, 99]",
    ),
    (
        "(d0, d1) -> ((d0 + d1 floordiv 3) floordiv 4), domain: d0 in [0, 9], d1 in [0, 9]",
        "(d0, d1) -> ((d0 * 3 + d1) floordiv 12), domain: d0 in [0, 9], d1 in [0, 9]",
    ),
    (
        "(d0) -> (((d0 floordiv 5) mod 7) * 5 + d0 mod 5), domain: d0 in [0, 99]",
        "(d0) -> (d0 mod 35), domain: d0 in [0, 99]",
    ),
    (
        "(d0, d1) -> (min(d0, d1)), domain: d0 in [0, 4], d1 in [4, 9]",
        "(d0, d1) -> (d0), domain: d0 in [0, 4], d1 in [4, 9]",
    ),
    # a constraint on an expression bounds it in the results
    (
        "(d0, d1) -> ((d0 * 7 + d1) mod 40), domain: d0 in [0, 9], d1 in [0, 9], d0 * 7 + d1 in [0, 39]",
        "(d0, d1) -> (d0 * 7 + d1), domain: d0 in [0, 9], d1 in [0, 9], d0 * 7 + d1 in [0, 39]",
    ),
]


@pytest.mark.parametrize(("text", "want"), SIMPLIFIED, ids=[row[0][:60] for row in SIMPLIFIED])
def test_simplify(text: str, want: str) -> None:
    assert simplified(text) == want


def test_every_small_split_of_a_sum_is_exact() -> None:
    """`g * x + y` under mod, division and bounds, with y's range on each side of every limit."""
    for g in (2, 3, 4):
        for low, high in itertools.combinations_with_replacement(range(-2, g + 3), 2):
            dims = [Variable("", Interval(-3, 4)), Variable("", Interval(low, high))]
            total = dim(0) * g + dim(1)
            results = [f(total, n) for n in (g, 2 * g, 3 * g, 6) for f in (mod, floordiv)]
            bounds = [(a, b) for a in (-g - 1, -1, 0, 1, g) for b in (0, 1, g, 2 * g - 1, 2 * g)]
            x, y = (v.ravel() for v in np.meshgrid(np.arange(-3, 5), np.arange(low, high + 1)))
            plain = IndexingMap.make(dims, results)
            for one, other in zip(plain.evaluate([x, y]), plain.simplify().evaluate([x, y]), strict=True):
                np.testing.assert_array_equal(np.broadcast_to(one, x.shape), np.broadcast_to(other, x.shape))
            for a, b in bounds:
                bounded = IndexingMap.make(dims, [dim(0)], constraints=[(total, Interval(a, b))])
                inside = (x * g + y >= a) & (x * g + y <= b)
                np.testing.assert_array_equal(contains(bounded.simplify(), [x, y]), inside)


def test_two_inner_divisions_each_round_on_their_own() -> None:
    # 16 // 3 + 2 // 3 == 5, and 5 // 6 == 0, but (16 + 2) // 18 == 1
    map = IndexingMap.from_sizes([floordiv(floordiv(dim(0), 3) + floordiv(dim(1), 3), 6)], [20, 20])
    assert map.simplify().evaluate((16, 2)) == (0,)


def test_a_map_that_is_simple_is_returned_itself() -> None:
    map = IndexingMap.identity((4, 5))
    assert map.simplify() is map


def test_names_survive_although_equality_ignores_them() -> None:
    text = "(th_x, bl_x)[i] -> ((bl_x * 8 + th_x) mod 100 + i), domain: th_x in [0, 7], bl_x in [0, 3], i in [0, 1]"
    first, second = parse_map(text), parse_map(text.replace("th_x", "d0").replace("bl_x", "d1"))
    assert first == second
    assert hash(first) == hash(second)
    assert str(first.simplify()).startswith("(th_x, bl_x)[i] -> (bl_x * 8 + th_x + i)")
    assert str(second.simplify()).startswith("(d0, d1)[i] -> (d1 * 8 + d0 + i)".replace("d1 * 8 + d0", "d1 * 8 + d0"))


def test_peeling_the_last_iteration_frees_the_others_of_their_guard() -> None:
    map = parse_map(
        "(d0)[s0, s1] -> (s0, s1), domain: d0 in [0, 3], s0 in [0, 7], s1 in [0, 10], d0 + s0 in [0, 9],"
        " d0 + s1 in [0, 12]"
    )
    main = map.with_symbol_bounds(1, Interval(0, 9)).simplify()
    assert not main.is_symbol_constrained(1)
    main = main.with_symbol_bounds(0, Interval(0, 6)).simplify()
    assert str(main) == "(d0)[s0, s1] -> (s0, s1), domain: d0 in [0, 3], s0 in [0, 6], s1 in [0, 9]"
    tail = map.with_symbol_bounds(0, Interval(7, 7)).simplify()
    assert tail.dim_vars[0].bounds == Interval(0, 2)


def test_symbols_of_the_second_map_come_first() -> None:
    first = parse_map("(d0)[s0]{rt0} -> (d0 + s0 + rt0), domain: d0 in [0, 9], s0 in [0, 1], rt0 in [0, 2]")
    second = parse_map("(d0)[s0]{rt0} -> (d0 * 2 + s0 * 10 + rt0), domain: d0 in [0, 9], s0 in [0, 3], rt0 in [0, 4]")
    composed = compose(first, second)
    assert str(composed) == (
        "(d0)[s0, s1]{rt0, rt1} -> (d0 * 2 + s0 * 10 + s1 * 2 + rt0 + rt1 * 2), domain: d0 in [0, 9], s0 in [0, 3],"
        " s1 in [0, 1], rt0 in [0, 4], rt1 in [0, 2], d0 + s1 + rt1 in [0, 9]"
    ).replace("s1 * 2 + rt0 + rt1 * 2", "s1 * 2 + rt1 * 2 + rt0")
    assert compose(None, second) is None
    assert compose(first, None) is None
    assert compose(first.emptied(), second).known_empty
    with pytest.raises(IndexingError, match="1 results, the second 2 dimensions"):
        compose(first, IndexingMap.identity((2, 2)))


def test_rescaling_a_symbol() -> None:
    map = parse_map("(d0)[s0] -> (d0 + s0), domain: d0 in [0, 9], s0 in [0, 12], s0 mod 3 in [1, 1]")
    # 1, 4, 7, 10
    for each in (map, map.simplify()):
        assert str(rescale_symbols(each)) == "(d0)[s0] -> (s0 * 3 + d0 + 1), domain: d0 in [0, 9], s0 in [0, 3]"
    negative = parse_map("(d0)[s0] -> (s0), domain: d0 in [0, 9], s0 in [-5, 5], s0 mod 4 in [2, 2]")
    # -2, 2
    assert str(rescale_symbols(negative)) == "(d0)[s0] -> (s0 * 4 + 2), domain: d0 in [0, 9], s0 in [-1, 0]"


def test_moving_and_dropping_variables() -> None:
    map = parse_map(
        "(d0, d1)[s0, s1, s2]{rt0} -> (d0 + s1, rt0), domain: d0 in [0, 9], d1 in [0, 9], s0 in [0, 1], s1 in [0, 2],"
        " s2 in [0, 3], rt0 in [0, 4], s0 + s2 in [0, 3], d1 + s1 in [0, 5]"
    )
    # s0 and s2 only constrain each other; d1 constrains s1, which is used
    assert str(remove_unused_symbols(map)) == (
        "(d0, d1)[s0]{rt0} -> (d0 + s0, rt0), domain: d0 in [0, 9], d1 in [0, 9], s0 in [0, 2], rt0 in [0, 4],"
        " d1 + s0 in [0, 5]"
    )
    reduced, gone = remove_unused_vars(map)
    assert gone == (False, False, True, False, True, False)
    assert reduced == remove_unused_symbols(map)
    assert range_vars_to_dims(map, [1]).num_dims == 3
    assert str(range_vars_to_dims(map, [2, 0])).startswith("(d0, d1, d2, d3)[s0]{rt0} -> (d0 + s0, rt0)")
    assert symbols_to_dims(map).num_symbols == 0


def test_preserving_points_keeps_unit_dimensions_visible() -> None:
    map = IndexingMap.identity((1, 5))
    assert str(map.simplify(preserve_points=True)).startswith("(d0, d1) -> (d0, d1)")
    assert str(map.simplify()).startswith("(d0, d1) -> (0, d1)")


def test_ranges_use_constraints_when_asked() -> None:
    map = parse_map("(d0, d1) -> (d0 + d1), domain: d0 in [0, 9], d1 in [0, 9], d0 + d1 in [2, 5]")
    assert map.ranges().range_of(dim(0) + dim(1)) == Interval(0, 18)
    assert map.result_ranges() == (Interval(2, 5),)
    loose = map.clear_constraints().add_constraint(dim(0) + dim(1), Interval(-5, 50))
    assert loose.result_ranges() == (Interval(0, 18),)
    assert RangeEvaluator([Interval(0, 4)]).range_of(mod(dim(0) + 6, 8)) == Interval(0, 7)
    with pytest.raises(IndexingError, match="no bounds for symbol 0"):
        map.ranges().range_of(symbol(0))


def test_an_unbounded_variable_is_never_assumed_to_fit() -> None:
    simplifier = Simplifier(RangeEvaluator([Interval.full(), Interval(0, 3)]))
    for text in ("d0 mod 8", "(d0 * 4 + d1) floordiv 8", "max(d0, d1)"):
        expr = parse_expr(text, ["d0", "d1"])
        assert simplifier.simplify(expr) is (expr if "floordiv" not in text else floordiv(dim(0), 2))


# 12 and 5.9 of the reference: index texts that tests of the original pin
def test_reshape_and_layout_texts() -> None:
    assert str(reshape_map((8,), (2, 4))) == "(d0) -> (d0 floordiv 4, d0 mod 4), domain: d0 in [0, 7]"
    assert str(reshape_map((5,), (1, 5, 1))) == "(d0) -> (0, d0, 0), domain: d0 in [0, 4]"
    column_major = bitcast_map((2, 3), (0, 1), (6,), None)
    assert str(column_major) == "(d0, d1) -> (d1 * 2 + d0), domain: d0 in [0, 1], d1 in [0, 2]"
    assert column_major.evaluate((1, 2)) == (5,)
    with pytest.raises(IndexingError, match="numbers of elements"):
        reshape_map((4,), (5,))
    with pytest.raises(IndexingError, match="no layout"):
        bitcast_map((2, 2), (0, 0), (4,), None)


def test_work_without_elements_or_with_one() -> None:
    assert str(remove_unused_vars(work_item_map((), None, (1,), (1,)))[0]) == "() -> ()"
    assert work_item_map((0, 4), None, (1,), (1,)).known_empty
    assert work_item_map((1, 1), None, (1,), (1,)).evaluate((0,) * 6) == (0, 0)


def test_a_grid_too_small_walks_in_chunks() -> None:
    map = remove_unused_vars(work_item_map((1000,), None, (8,), (4,), 2))[0]
    assert str(map) == (
        "(th_x, bl_x)[chunk_id, vector_index] -> (th_x * 2 + bl_x * 16 + chunk_id * 64 + vector_index), domain:"
        " th_x in [0, 7], bl_x in [0, 3], chunk_id in [0, 15], vector_index in [0, 1],"
        " bl_x * 8 + chunk_id * 32 + th_x in [0, 499]"
    )


def test_counting_tells_bijections_from_others() -> None:
    assert is_bijection_onto(IndexingMap.identity((3, 4)), (3, 4))
    assert not is_bijection_onto(IndexingMap.identity((3, 4)), (3, 5))
    assert not is_bijection_onto(IndexingMap.identity((3, 4)), (3, 3))
    assert not is_bijection_onto(IndexingMap.from_sizes([mod(dim(0), 3)], (6,)), (6,))
    assert not is_bijection_onto(IndexingMap.from_sizes([dim(0)], (4, 2)), (4,))
    assert is_bijection_onto(
        IndexingMap.make([Variable("", Interval(0, 9))], [dim(0)], constraints=[(dim(0) * 2, Interval(0, 7))]), (4,)
    )
    assert is_bijection_onto(IndexingMap.identity((0,)), (0,))
    large = work_item_map((130, 17, 19, 22), None, (128,), (1805,), 4)
    assert is_bijection_onto(large, (130, 17, 19, 22))


def test_a_notebook_shows_a_table() -> None:
    """If this failed, a notebook would show text alone, or text that isn't HTML."""
    html = IndexingMap.from_sizes([dim(0) + dim(1)], (4, 8))._repr_html_()
    assert html.count("<tr>") == 3
    assert "<code>d0 + d1</code>" in html
    assert "<code>in [0, 7]</code>" in html
