"""Text of maps: the published spellings, to the letter, and errors with their place."""

from __future__ import annotations

import pytest

from warpsmith.errors import IndexingSyntaxError
from warpsmith.indexing import (
    IndexingMap,
    Interval,
    Variable,
    bitcast_map,
    dim,
    floordiv,
    mod,
    parse_expr,
    parse_map,
    print_map,
    symbol,
    work_item_map,
)
from warpsmith.indexing.rewire import remove_unused_vars, symbols_to_dims

WALK_THROUGH = (
    "(th_x, bl_x)[vector_index] -> ("
    "bl_x floordiv 4096, (bl_x floordiv 8) mod 512, (bl_x mod 8) * 512 + th_x * 4 + vector_index), "
    "domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]"
)


def gelu() -> IndexingMap:
    """Threads and blocks to elements of bf16[6,512,4096], four elements a thread."""
    return remove_unused_vars(work_item_map((6, 512, 4096), None, (128,), (24576,), 4))[0]


def test_the_published_loop_map() -> None:
    assert str(gelu()) == WALK_THROUGH


def test_the_published_flat_map() -> None:
    flat = gelu().then(bitcast_map((6, 512, 4096), None, (12582912,), None)).simplify()
    assert str(flat) == (
        "(th_x, bl_x)[vector_index] -> (th_x * 4 + bl_x * 512 + vector_index), "
        "domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]"
    )
    assert str(symbols_to_dims(flat)).startswith("(th_x, bl_x, vector_index) -> (th_x * 4 + bl_x * 512 +")


def test_the_published_text_over_several_lines_is_read() -> None:
    text = WALK_THROUGH.replace("-> (", "-> (\n ").replace("), ", "),\n ")
    assert parse_map(text) == gelu()
    assert str(parse_map(text)) == WALK_THROUGH


# What XLA:GPU (jaxlib 0.10.2) prints in its dumps of these fusions.
FROM_XLA = [
    "(th_x, th_y, th_z, bl_x, bl_y, bl_z) -> ((bl_x * 128 + th_x) / 56, (bl_x * 128 + th_x) mod 56), "
    "domain: th_x in [0, 127], th_y in [0, 0], th_z in [0, 0], bl_x in [0, 6], bl_y in [0, 0], bl_z in [0, 0], "
    "bl_x * 128 + th_x in [0, 839]",
    "(d0, d1) -> (((d0 * 56 + d1) / 35) mod 3), domain: d0 in [0, 14], d1 in [0, 55]",
    "(d0, d1) -> ((d0 * 8 + d1 / 7) mod 5), domain: d0 in [0, 14], d1 in [0, 55]",
    "(th_x, bl_x, d2) -> ((th_x / 32) * 2 + bl_x * 64 + d2 * 8 + 1), domain: th_x in [0, 127], bl_x in [0, 1], "
    "d2 in [0, 7], bl_x * 32 + d2 * 4 + th_x / 32 in [0, 32]",
]


@pytest.mark.parametrize("text", FROM_XLA)
def test_maps_of_the_real_compiler_print_as_they_came(text: str) -> None:
    map = parse_map(text)
    assert map is not None
    assert print_map(map, "xla") == text
    assert print_map(map.simplify(), "xla") == text
    assert parse_map(print_map(map)) == map


def test_a_grid_that_overshoots_prints_its_guard() -> None:
    map = work_item_map((15, 56), None, (128,), (7,))
    assert print_map(map, "xla") == FROM_XLA[0]


PRINTED = [
    ("d0 - 1", "d0 - 1"),
    ("-d0 + 9", "-d0 + 9"),
    ("d1 - d0", "-d0 + d1"),
    ("d1 * 2 - d0 * 3", "d0 * -3 + d1 * 2"),
    ("(d0 mod 4) * 2", "(d0 mod 4) * 2"),
    ("(d0 floordiv 4) * 2", "(d0 floordiv 4) * 2"),
    ("(d0 floordiv 4) mod 8", "(d0 floordiv 4) mod 8"),
    ("d0 % 4", "d0 mod 4"),
    ("d0 floorDiv 4", "d0 floordiv 4"),
    ("d0 ceilDiv 4", "(d0 + 3) floordiv 4"),
    ("min(d0, d1) - max(d0, 3) * 2", "max(d0, 3) * -2 + min(d0, d1)"),
    ("(d0 + d1) mod 7 + 1", "(d0 + d1) mod 7 + 1"),
    ("(-d0) mod 4", "(-d0) mod 4"),
    ("2 * d0", "d0 * 2"),
    ("d0 * -1 - -3", "-d0 + 3"),
]


@pytest.mark.parametrize(("text", "want"), PRINTED)
def test_expressions_print_with_the_fewest_parentheses(text: str, want: str) -> None:
    expr = parse_expr(text, ["d0", "d1"])
    assert str(expr) == want
    assert parse_expr(want, ["d0", "d1"]) is expr


def test_runtime_variables_print_in_braces() -> None:
    map = IndexingMap.make(
        [Variable("", Interval(0, 9))],
        [dim(0) + symbol(1), symbol(0)],
        range_vars=[Variable("", Interval(0, 2))],
        rt_vars=[Variable("", Interval(0, 5))],
    )
    text = "(d0)[s0]{rt0} -> (d0 + rt0, s0), domain: d0 in [0, 9], s0 in [0, 2], rt0 in [0, 5]"
    assert str(map) == text
    assert parse_map(text) == map


def test_constraints_sort_as_text() -> None:
    map = parse_map("(d0, d1) -> (d0), domain: d0 in [0, 9], d1 in [0, 9], d1 mod 3 in [0, 1], d0 mod 2 in [0, 0],")
    assert str(map) == ("(d0, d1) -> (d0), domain: d0 in [0, 9], d1 in [0, 9], d0 mod 2 in [0, 0], d1 mod 3 in [0, 1]")


def test_maps_without_variables_points_or_value() -> None:
    assert str(IndexingMap.constant(())) == "() -> ()"
    assert parse_map("() -> ()") == IndexingMap.constant(())
    assert str(IndexingMap.constant((3,))) == "() -> (3)"
    assert str(IndexingMap.identity((0, 4))) == "KNOWN EMPTY"
    assert parse_map("KNOWN EMPTY").known_empty
    assert print_map(None) == "UNDEFINED"
    assert parse_map("UNDEFINED") is None


BAD = [
    ("d0 -> (d0)", "starts with its dimensions", 1, 1),
    ("(d0) -> (d1), domain: d0 in [0, 1]", "unknown variable 'd1'", 1, 10),
    ("(d0) -> (d0)", "no bounds", 1, 13),
    ("(d0, d0) -> (d0), domain: d0 in [0, 1]", "declared twice", 1, 6),
    ("(d0) -> (d0 +), domain: d0 in [0, 1]", "expected an index expression", 1, 14),
    ("(d0) -> (d0,\n  d0 mod 0), domain: d0 in [0, 1]", "must be positive", 2, 6),
    ("(d0) -> (d0 / 0), domain: d0 in [0, 1]", "division by zero", 1, 13),
    ("(d0) -> (d0), domain: d0 in [0, 99999999999999999999]", "64 bits", 1, 33),
    ("(d0) -> (d0), domain: d0 in [0, 1] extra", "unexpected 'extra'", 1, 36),
    ("(d0) -> (d0), domain: d0 in [0; 1]", "unexpected character ';'", 1, 31),
    ("(d0) -> (d0), domain: d0 in (0, 1)", "expected '['", 1, 29),
    ("(d0) -> (" + "(" * 5000 + "d0", "levels deep", 1, 110),
    ("(d0) -> (" + "-" * 5000 + "d0", "levels deep", 1, 110),
    ("(d0) -> (min(d0)), domain: d0 in [0, 1]", "expected ','", 1, 16),
    ("(mod) -> (mod), domain: mod in [0, 1]", "expected the name", 1, 2),
    ("", "starts with its dimensions", 1, 1),
]


@pytest.mark.parametrize(("text", "cause", "line", "column"), BAD, ids=[row[1] + row[0][:9] for row in BAD])
def test_errors_name_their_place(text: str, cause: str, line: int, column: int) -> None:
    with pytest.raises(IndexingSyntaxError) as caught:
        parse_map(text, "map.txt")
    assert cause in caught.value.cause
    span = caught.value.span
    assert span is not None
    assert (span.file, span.line, span.column) == ("map.txt", line, column)
    assert span.text == text.split("\n")[line - 1]


def test_an_unknown_variable_gets_a_suggestion() -> None:
    with pytest.raises(IndexingSyntaxError, match="did you mean 'th_x'"):
        parse_map("(th_x, bl_x) -> (thx), domain: th_x in [0, 1], bl_x in [0, 1]")


def test_names_that_look_like_operators_only_in_part_are_names() -> None:
    text = "(model, index)[modulus] -> (model + modulus), domain: model in [0, 1], index in [0, 2], modulus in [0, 3]"
    assert str(parse_map(text)) == text


def test_division_spelled_three_ways_is_one_thing() -> None:
    names = ["d0"]
    assert parse_expr("d0 / 3", names) is parse_expr("d0 floordiv 3", names) is floordiv(dim(0), 3)
    assert parse_expr("d0 mod 3 + d0 % 3", names) is mod(dim(0), 3) * 2
