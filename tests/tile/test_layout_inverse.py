"""From places back to elements, banks of an access, layouts in words: brute force, and the simulator's count."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsmith.errors import InvalidLayout
from warpsmith.indexing import IndexingMap
from warpsmith.indexing.points import points
from warpsmith.simt.core.traffic import wavefronts
from warpsmith.tile.layout import (
    AXES,
    ComposeLayout,
    Iter,
    R,
    S,
    TileLayout,
    bank_turns,
    explain,
    is_injective,
    laneid,
    m,
    owner_table,
    partition_map,
    row_major,
    swizzle_for,
    tile,
    warpid,
)
from warpsmith.tile.layout.banks import address_of
from warpsmith.tile.layout.maps import places
from warpsmith.tile.layout.picture import bank_picture, owner_picture


def by_search(
    layout: TileLayout, shape: list[int]
) -> dict[tuple[tuple[int, ...], tuple[int, ...]], set[tuple[int, ...]]]:
    """By place on (thread axes, memory axes) of the canonical form: the coordinates of what is there."""
    plain = layout.canonical()
    threads, memory = [a for a in plain.axes() if a.is_thread], [a for a in plain.axes() if not a.is_thread]
    points = list(itertools.product(*map(range, shape)))
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], set[tuple[int, ...]]] = {}
    for flat, place in places(plain):
        key = tuple(place[a] for a in threads), tuple(place[a] for a in memory)
        found.setdefault(key, set()).add(points[flat])
    return found


def by_map(map: IndexingMap) -> dict[tuple[tuple[int, ...], tuple[int, ...]], set[tuple[int, ...]]]:
    """The same from every point of a map's domain."""
    dims, symbols = points(map)
    results = [np.broadcast_to(each, (dims or symbols)[0].shape) for each in map.evaluate(dims, symbols)]
    return {
        (tuple(int(d[i]) for d in dims), tuple(int(s[i]) for s in symbols)): {tuple(int(r[i]) for r in results)}
        for i in range((dims or symbols)[0].shape[0])
    }


FAMILIES = [["m"], ["laneid", "m"], ["laneid", "warpid", "m"], ["wid_in_wg", "laneid", "m"]]


@st.composite
def drawn(draw: st.DrawFn) -> TileLayout:
    """A layout whose steps along an axis mostly lie beyond those before, some with gaps, some overlapping."""
    axes = [AXES[name] for name in draw(st.sampled_from(FAMILIES))]
    reach = dict.fromkeys(axes, 1)
    iters: list[Iter] = []
    for _ in range(draw(st.integers(1, 4))):
        axis, extent = draw(st.sampled_from(axes)), draw(st.integers(1, 4))
        stride = (
            draw(st.sampled_from([1, 1, 1, 2, 3])) * reach[axis] if draw(st.integers(0, 5)) else draw(st.integers(0, 5))
        )
        reach[axis] = max(reach[axis], stride * extent)
        iters.append(Iter(extent, stride, axis))
    split = draw(st.integers(0, 1)) if len(iters) > 1 else 0
    shard = draw(st.permutations(iters[split:]))
    offset = draw(st.dictionaries(st.sampled_from(axes), st.integers(-3, 9), max_size=2))
    try:
        return TileLayout(shard=shard, replica=iters[:split], offset=offset)
    except InvalidLayout:  # scopes that don't connect: in memory instead
        return TileLayout(shard=[Iter(each.extent, each.stride, m) for each in shard])


@settings(max_examples=250, deadline=None)
@given(drawn())
def test_the_partition_is_every_place_and_the_element_that_is_there(layout: TileLayout) -> None:
    shape = [each.extent for each in layout.shard]
    map = partition_map(layout, shape)
    expected = by_search(layout, shape)
    if map is not None:
        assert by_map(map) == expected
    assert is_injective(layout) == all(len(elements) == 1 for elements in by_search_unfused(layout).values())


def by_search_unfused(layout: TileLayout) -> dict[tuple[int, ...], set[int]]:
    found: dict[tuple[int, ...], set[int]] = {}
    for flat, place in places(layout):
        found.setdefault(tuple(place.values()), set()).add(flat)
    return found


@pytest.mark.parametrize(
    ("layout", "shape", "text"),
    [
        (
            TileLayout(S[(32, 8) : (1 @ laneid, 1)]),
            (32, 8),
            "(laneid)[s0] -> (laneid, s0), domain: laneid in [0, 31], s0 in [0, 7]",
        ),
        (
            TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)]),
            (16, 8),
            "(laneid)[s0] -> ((s0 floordiv 2) * 8 + laneid floordiv 4, (laneid mod 4) * 2 + s0 mod 2), "
            "domain: laneid in [0, 31], s0 in [0, 3]",
        ),
        (
            TileLayout(S[(16, 4) : (1 @ laneid, 1)] + R[2 : 16 @ laneid]),
            (16, 4),
            "(laneid)[s0] -> (laneid mod 16, s0), domain: laneid in [0, 31], s0 in [0, 3]",
        ),
        (
            TileLayout(S[(4, 32, 2) : (1 @ warpid, 1 @ laneid, 1)]),
            (128, 2),
            "(tx)[s0] -> (tx, s0), domain: tx in [0, 127], s0 in [0, 1]",
        ),
    ],
)
def test_partitions_by_hand(layout: TileLayout, shape: tuple[int, ...], text: str) -> None:
    assert str(partition_map(layout, shape)) == text


def test_there_is_no_partition_where_elements_share_a_place() -> None:
    assert partition_map(TileLayout(S[(4, 4) : (1, 1)]), (4, 4)) is None
    assert partition_map(TileLayout(S[(4, 4) : (0, 1)]), (4, 4)) is None


def test_round_trip_of_a_partition_and_the_forward_map() -> None:
    """A tile of mma fragments over two warps: from (thread, register) to the element and back."""
    fragment = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
    layout = tile(TileLayout(S[(2, 3) : (1 @ warpid, 1)]), fragment, (2, 3), (16, 8))
    map = partition_map(layout, (32, 24))
    assert map is not None
    plain = layout.canonical()
    for thread, register in itertools.product(range(64), range(12)):
        row, column = map.evaluate([thread], [register])
        assert plain.apply(int(row), int(column), shape=(32, 24)) == {AXES["tx"]: thread, m: register}


# ------------------------------------------------------------------------------------------------------------ banks
@st.composite
def accesses(draw: st.DrawFn) -> tuple[Any, tuple[int, int], int, list[tuple[int, int]], int]:
    bits = draw(st.sampled_from([8, 16, 32, 64]))
    rows, columns = draw(st.sampled_from([8, 32])), draw(st.sampled_from([32, 64]))
    pad = draw(st.sampled_from([0, 16]))
    layout: Any = TileLayout(S[(rows, columns) : (columns + pad, 1)])
    if draw(st.booleans()):
        layout = swizzle_for(bits, draw(st.sampled_from([32, 64, 128]))).with_tile(layout)
    vector = draw(st.sampled_from([v for v in (1, 2, 4, 8, 16) if v * bits <= 128]))
    lane = st.tuples(st.integers(0, rows - 1), st.integers(0, columns // vector - 1).map(lambda c: c * vector))
    return layout, (rows, columns), bits, draw(st.lists(lane, min_size=1, max_size=32)), vector


@settings(max_examples=150, deadline=None)
@given(accesses())
def test_turns_of_an_access_are_those_that_the_simulator_counts(
    access: tuple[ComposeLayout | TileLayout, tuple[int, int], int, list[tuple[int, int]], int],
) -> None:
    layout, shape, bits, lanes, vector = access
    starts = np.zeros((1, 32), np.int64)
    active = np.zeros((1, 32), np.bool_)
    for i, (row, column) in enumerate(lanes):
        starts[0, i] = address_of(layout, row * shape[1] + column) * bits // 8
        active[0, i] = True
    assert bank_turns(layout, shape, bits, lanes, vector) == wavefronts(starts, active, bits * vector // 8)


def test_the_swizzles_of_the_hardware_read_matrices_without_conflicts() -> None:
    """ldmatrix reads 8 rows of 16 bytes at once: 8 turns' worth of words in one quarter of a warp."""
    eight_rows = [(i, 16) for i in range(8)]
    assert bank_turns(row_major((8, 64)), (8, 64), 16, eight_rows, 8) == (8, 1)
    assert bank_turns(swizzle_for(16, 128).over((8, 64)), (8, 64), 16, eight_rows, 8) == (1, 1)


# --------------------------------------------------------------------------------------------------- words, pictures
def test_the_published_layout_in_words() -> None:
    assert explain(TileLayout(S[(32, 8) : (1 @ laneid, 1)]), (32, 8)).splitlines() == [
        "32 x 8 elements over 32 threads (laneid), 8 to a thread",
        "element (i, j) is in lane i, register j",
        "lane i owns row i",
        "8 registers a lane",
    ]


@pytest.mark.parametrize(
    ("layout", "shape", "line"),
    [
        (TileLayout(S[(8, 32) : (1, 1 @ laneid)]), (8, 32), "lane i owns column i"),
        (TileLayout(S[(16, 4) : (2 @ laneid, 3)]), (16, 4), "4 registers a lane of the 10 that its addresses span"),
        (TileLayout(S[(16, 4) : (2 @ laneid, 1)]), (16, 4), "15 of the lanes below 31 hold nothing, lane 1 the first"),
        (
            TileLayout(S[(16, 4) : (1 @ laneid, 1)] + R[2 : 16 @ laneid]),
            (16, 4),
            "16 x 4 elements over 32 threads (laneid), 4 to a thread, 2 copies of each",
        ),
        (
            TileLayout(S[(32, 4) : (0 @ laneid, 1)]),
            (32, 4),
            "some elements share a place: what is written to one, the others read",
        ),
        (
            swizzle_for(16, 128).over((8, 64)),
            (8, 64),
            "bits 6 to 8 of an address are xored into bits 3 to 5; 8 elements stay side by side",
        ),
    ],
)
def test_what_is_odd_about_a_layout_is_said(layout: Any, shape: tuple[int, ...], line: str) -> None:
    assert line in explain(layout, shape).splitlines()


def test_the_rows_of_a_thread_are_claimed_only_if_it_holds_all_of_each() -> None:
    assert "owns row" not in explain(TileLayout(S[(32, 2, 4) : (1 @ laneid, 1, 2)] + 1 @ laneid), (32, 8))
    assert "owns row" not in explain(TileLayout(S[(16, 2, 4) : (2 @ laneid, 1 @ laneid, 1)]), (16, 8))


def test_a_table_has_the_same_cells_as_the_picture() -> None:
    layout = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
    table, picture = owner_table(layout, (16, 8)).splitlines(), owner_picture(layout, (16, 8))
    assert len(table) == 17
    assert table[10].split()[1:5] == ["4", "r2", "4", "r3"]  # row 9 begins with registers 2 and 3 of lane 4
    for i, j in itertools.product(range(16), range(8)):
        assert f">{4 * (i % 8) + j // 2} r{2 * (i // 8) + j % 2}</text>" in picture
    copied = TileLayout(S[(16, 4) : (1 @ laneid, 1)] + R[2 : 16 @ laneid])
    assert ">3,19 r2</text>" in owner_picture(copied, (16, 4))
    blocks = TileLayout(S[(2, 2, 32) : (1 @ AXES["bx"], 1 @ warpid, 1 @ laneid)])
    assert ">bx1 warpid0 laneid5 r0</text>" in owner_picture(blocks, (4, 32))
    assert "the first 64 x 64 of 128 x 65" in owner_table(row_major((128, 65)), (128, 65))


def test_a_picture_of_banks_outlines_an_access_and_counts_its_turns() -> None:
    picture = bank_picture(row_major((32, 32)), (32, 32), 32, lanes=[(i, 3) for i in range(32)])
    assert picture.count('class="asked"') == 32
    assert "the outlined access takes 32 turns of the banks; 1 without conflicts" in picture
    padded = TileLayout(S[(32, 32) : (33, 1)])
    assert "takes 1 turn of the banks" in bank_picture(padded, (32, 32), 32, lanes=[(i, 3) for i in range(32)])
