"""The layout algebra: the peer's recorded results, laws, and brute force."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsmith.errors import InvalidLayout
from warpsmith.indexing import evaluate
from warpsmith.tile.layout import (
    AXES,
    ComposeLayout,
    Iter,
    R,
    S,
    TileLayout,
    bank_turns,
    covers,
    direct_sum,
    direct_summand,
    inner_of_tile,
    is_injective,
    laneid,
    m,
    outer_of_tile,
    owners,
    parse_layout,
    row_major,
    swizzle_for,
    tid_in_wg,
    tile,
    tile_to,
    to_indexing_map,
    tx,
    warpid,
    wgid,
    wid_in_wg,
)
from warpsmith.tile.layout.banks import bank_of, column_conflicts
from warpsmith.tile.layout.maps import places
from warpsmith.tile.layout.picture import bank_picture, owner_picture
from warpsmith.tile.layout.words import in_words

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "layouts.json").read_text())
REFUSED = "refused"


def made(data: Any) -> Any:
    """A recorded layout; None where the peer found none, REFUSED where it raised."""
    if data is None:
        return None
    if "error" in data:
        return REFUSED
    shard = [Iter(e, s, AXES[a]) for e, s, a in data["shard"]]
    replica = [Iter(e, s, AXES[a]) for e, s, a in data["replica"]]
    offset = {AXES[a]: amount for a, amount in data["offset"].items()}
    return TileLayout(shard=shard or [Iter(1, 1, m)], replica=replica, offset=offset)


def attempt(function: Any, *arguments: Any, **options: Any) -> Any:
    try:
        return function(*arguments, **options)
    except InvalidLayout:
        return REFUSED


def normal(layout: Any) -> Any:
    """Copies in any order, and offsets of 0 left out: how the peer's results are compared."""
    if not isinstance(layout, TileLayout):
        return layout
    return layout.shard, sorted(map(str, layout.replica)), {a: n for a, n in layout.offset.items() if n}


CASES = RECORDED["cases"]


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_a_recorded_layout(case: dict[str, Any]) -> None:
    layout = made(case["layout"])
    assert layout.size() == case["size"]
    assert layout.span() == case["span"]
    assert layout.is_trivial() == case["trivial"]
    assert list(layout.scope_pair() or ()) == (case["scope"] or [])
    assert normal(layout.storage()) == normal(made(case["storage"]))
    assert normal(layout.canonical(fuse=False)) == normal(made(case["canonical"]))
    shape, region = case["group_shape"], case["region"]
    assert normal(attempt(layout.slice, shape, region)) == normal(made(case["slice"]))
    grouped = attempt(layout.group, shape)
    if "error" in case["group"]:
        assert grouped == REFUSED
    else:
        assert (normal(grouped[0]), grouped[1]) == (normal(made(case["group"]["layout"])), case["group"]["seps"])
    if "apply_shape" in case:
        points = itertools.product(*map(range, shape))
        found = [{a.name: v for a, v in layout.apply(*p, shape=shape).items() if v} for p in points]
        assert found == [{a: v for a, v in each.items() if v} for each in case["apply_shape"]]


def test_fused_axes_are_the_recorded_ones_but_for_offsets_that_the_peer_overwrites() -> None:
    """Its offsets on two axes that fuse to one: the last wins; here they add up."""
    differ = [
        case for case in CASES if normal(made(case["layout"]).canonical()) != normal(made(case["canonical_cuda"]))
    ]
    assert len(differ) == 1
    for case in differ:
        ours, theirs = made(case["layout"]).canonical(), made(case["canonical_cuda"])
        assert (ours.shard, ours.replica) == (theirs.shard, theirs.replica)
        assert ours.offset[tx] == 4 * 128 + 4 != theirs.offset[tx]


def test_the_canonical_form_of_one_element_stays_as_it_is() -> None:
    layout = TileLayout(S[1 : 1 @ wid_in_wg] + R[2 : 4 @ laneid]).canonical()
    assert layout == layout.canonical()
    assert layout.shard == (Iter(1, 1, tid_in_wg),)


def test_an_offset_of_0_along_a_thread_axis_still_names_a_scope() -> None:
    layout = TileLayout(S[32 : 1 @ laneid] + 0 @ warpid)
    assert layout.scope_pair() == ("thread", "cta")
    assert parse_layout(str(layout)) == layout != TileLayout(S[32 : 1 @ laneid])
    assert TileLayout(S[32] + 0) == TileLayout(S[32])


def test_offsets_that_fuse_to_one_axis_are_added() -> None:
    layout = TileLayout(S[(4, 32) : (1 @ wid_in_wg, 1 @ laneid)] + 2 @ wid_in_wg + 5 @ laneid)
    assert layout.canonical().offset == {tid_in_wg: 69}


def test_warps_of_a_warpgroup_fuse_to_warps_of_the_cta() -> None:
    """The peer's table has wgid where warpid is meant."""
    layout = TileLayout(S[(2, 4) : (1 @ wgid, 1 @ wid_in_wg)])
    assert layout.canonical() == TileLayout(S[8 : 1 @ warpid])


TILES = RECORDED["tiles"]


@pytest.mark.parametrize("case", TILES, ids=range(len(TILES)))
def test_a_recorded_tile_and_sum(case: dict[str, Any]) -> None:
    inner, outer = made(case["inner"]), made(case["outer"])
    shapes = (case["outer_shape"], case["inner_shape"])
    assert normal(attempt(tile, outer, inner, *shapes)) == normal(made(case["tile"]))
    assert normal(attempt(direct_sum, outer, inner, *shapes)) == normal(made(case["direct_sum"]))


def test_the_outer_layout_of_a_tile_is_found_also_where_scopes_differ() -> None:
    """Where the peer finds one, ours is the same; where it gives up, ours tiles to the whole."""
    more = 0
    for case in TILES:
        whole, inner = made(case["tile"]), made(case["inner"])
        shape = [a * b for a, b in zip(case["outer_shape"], case["inner_shape"], strict=True)]
        found, recorded = outer_of_tile(whole, inner, shape, case["inner_shape"]), made(case["is_tile_inner"])
        if recorded is not None:
            assert normal(found) == normal(recorded)
        elif found is not None:
            more += 1
            assert tile(found, inner, case["outer_shape"], case["inner_shape"]).canonical() == whole.canonical()
    assert more == 2


def test_the_inner_layout_of_a_tile_is_found_also_where_the_peer_gives_up() -> None:
    """Where the peer finds one, ours is the same; where it gives up, ours tiles to the whole."""
    more = 0
    for case in TILES:
        whole, outer = made(case["tile"]), made(case["outer"])
        shape = [a * b for a, b in zip(case["outer_shape"], case["inner_shape"], strict=True)]
        found, recorded = inner_of_tile(whole, outer, shape, case["outer_shape"]), made(case["is_tile_outer"])
        if recorded is not None:
            assert normal(found) == normal(recorded)
        elif found is not None:
            more += 1
            assert tile(outer, found, case["outer_shape"], case["inner_shape"]).canonical() == whole.canonical()
    assert more == 4


def test_copies_that_outer_and_inner_both_keep_are_told_apart() -> None:
    outer = TileLayout(S[(4, 3) : (12, 1)] + R[4 : 16 @ tid_in_wg])
    inner = TileLayout(S[(4, 3) : (12, 8)] + R[(4, 4) : (1 @ tid_in_wg, 16 @ tid_in_wg)])
    whole = tile(outer, inner, (12,), (12,))
    for found, again in (
        (outer_of_tile(whole, inner, (144,), (12,)), lambda one: tile(one, inner, (12,), (12,))),
        (inner_of_tile(whole, outer, (144,), (12,)), lambda one: tile(outer, one, (12,), (12,))),
    ):
        assert found is not None
        assert again(found).canonical() == whole.canonical()


def test_a_tile_whose_outer_layout_would_not_connect_has_none() -> None:
    outer = TileLayout(S[(4, 2) : (2 @ laneid, 1 @ laneid)])
    inner = TileLayout(S[(8, 2) : (2 @ laneid, 1 @ wid_in_wg)] + R[2 : 16 @ wgid] + 32 @ wgid)
    whole = tile(outer, inner, (4, 2), (2, 8))
    assert outer_of_tile(whole, inner, (8, 16), (2, 8)) is None


@pytest.mark.parametrize("case", RECORDED["swizzle"], ids=lambda case: str(case["params"]))
def test_a_recorded_swizzle(case: dict[str, Any]) -> None:
    parameters = case["params"]
    if "addr" not in case:
        with pytest.raises(InvalidLayout, match="isn't well formed"):
            ComposeLayout(*parameters)
        return
    layout = ComposeLayout(*parameters)
    assert [layout.address(i) for i in range(len(case["addr"]))] == case["addr"]
    assert sorted(layout.addresses(layout.period)) == list(range(layout.period))


# ----------------------------------------------------------------------------------------------------- by hand
def test_the_published_layout_gives_lane_i_row_i() -> None:
    layout = TileLayout(S[(32, 8) : (1 @ laneid, 1)])
    for i, j in itertools.product(range(32), range(8)):
        assert layout.apply(i, j) == {laneid: i, m: j}
    assert layout.storage() == row_major((8,))
    assert covers(layout, "warp", 32)
    assert owners(layout, {laneid: 3}) == [24 + j for j in range(8)]
    assert str(layout) == "S[(32, 8):(1@laneid, 1)]"


def test_the_mma_fragment() -> None:
    """D of m16n8k16: row and column to lane and register, as the PTX manual draws it."""
    layout = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
    for i, j in itertools.product(range(16), range(8)):
        assert layout.apply(i, j, shape=(16, 8)) == {laneid: 4 * (i % 8) + j // 2, m: 2 * (i // 8) + j % 2}


def test_notation() -> None:
    assert TileLayout(S[8, 4]) == TileLayout(S[(8, 4)]) == TileLayout(S[(8, 4) : (4, 1)]) == row_major((8, 4))
    layout = TileLayout(S[8 : 4 @ laneid] + R[2 : 32 @ laneid] + 5 @ warpid + 4 + 1)
    assert layout.shard == (Iter(8, 4, laneid),)
    assert layout.replica == (Iter(2, 32, laneid),)
    assert layout.offset == {m: 5, warpid: 5}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: S[(2, 3) : (1,)], "2 extents and 1 strides"),
        (lambda: S[2.5:1], "an extent is an integer"),
        (lambda: TileLayout(S[0:1]), "at least 1"),
        (lambda: TileLayout(row_major((2,))), "made of S"),
        (lambda: TileLayout(S[(2, 32) : (1 @ wgid, 1 @ laneid)]), "don't connect"),
        (lambda: TileLayout(S[(2, 32) : (1 @ tx, 1 @ laneid)]), "conflicting scopes"),
        (lambda: parse_layout("S[(2):(1@lane_id)]"), "did you mean 'laneid'"),
        (lambda: parse_layout("T[2:1]"), "can't read 'T\\[2:1\\]'"),
        (lambda: row_major((4,)).apply(1, 2), "2 coordinates for 1 factors"),
        (lambda: row_major((4,)).apply(1, 2, shape=(2, 3)), "layout of 4 elements"),
        (lambda: row_major((4, 4)).slice((4, 4), [(0, 4), (2, 5)]), "2:5 isn't a part of 4"),
        (lambda: TileLayout(S[(2, 4) : (6, 1)]).pack(4), "aren't multiples of 4"),
        (lambda: TileLayout(S[(2, 4) : (4, 2)]).pack(2), "side by side"),
        (lambda: swizzle_for(16, 96), "modes are 32, 64 and 128"),
        (lambda: tile_to(row_major((4,)), (6,), (4,)), "whole tiles"),
        (lambda: "a" @ laneid, "a distance along an axis is an integer, not 'a'"),
        (lambda: S[8 : 1.5 @ laneid], "is an integer, not 1.5"),
        (lambda: row_major((4, 8)).apply(4, 0, shape=(4, 8)), "coordinate 4 is outside the 4 elements"),
        (lambda: row_major((4, 4)).slice((4, 4), [(0, 4)]), "a region of 1 dims"),
        (lambda: row_major((4,)).group((0,)), "has no elements"),
        (lambda: row_major((4,)).pack(0), "made of at least 1"),
        (lambda: covers(row_major((4,)), "wrap", 32), "did you mean 'warp'"),
        (lambda: ComposeLayout(3, 3, 3, tile=TileLayout(S[32 : 1 @ laneid])).apply(1), "no addresses"),
        (lambda: ComposeLayout(3, 3, 3, tile=TileLayout(S[(4, 8) : (1 @ AXES["P"], 1)])).apply(1), "no addresses"),
        (lambda: bank_picture(TileLayout(S[(32, 8) : (1 @ laneid, 1)]), (32, 8), 32), "no addresses in memory"),
        (lambda: owner_picture(row_major((4, 4)), (4, 5)), "shape \\(4, 5\\) in a layout of 16"),
        (lambda: bank_turns(row_major((64,)), (64,), 32, [(64,)]), "no element of a tile"),
        (lambda: bank_turns(row_major((64,)), (64,), 32, [(0,)], vector=8), "up to 16 bytes"),
        (lambda: bank_turns(row_major((64,)), (64,), 32, []), "no access of 0 lanes"),
        (lambda: bank_turns(TileLayout(S[(4, 4) : (5, 1)]), (4, 4), 32, [(1, 0)], vector=4), "lane 0 moves 16 bytes"),
    ],
)
def test_what_is_no_layout_is_refused_with_the_reason(make: Any, words: str) -> None:
    with pytest.raises(InvalidLayout, match=words):
        make()


def test_an_axis_that_is_split_is_found_in_a_fused_tile() -> None:
    found = outer_of_tile(TileLayout(S[128 : 1 @ tx]), TileLayout(S[32 : 1 @ laneid]), [128], [32])
    assert found == TileLayout(S[4 : 1 @ warpid])


def test_direct_summands() -> None:
    outer, inner = TileLayout(S[4:64]), TileLayout(S[8:1])
    whole = direct_sum(outer, inner, [4], [8])
    assert direct_summand(whole, inner, [32], [8]) == outer
    assert direct_summand(row_major((30,)), inner, [30], [8]) is None


def test_covering_and_sharing() -> None:
    assert not covers(TileLayout(S[(16, 8) : (1 @ laneid, 1)]), "warp", 32)
    assert not covers(TileLayout(S[(32, 8) : (2 @ laneid, 1)]), "warp", 32)
    assert covers(TileLayout(S[(16, 8) : (1 @ laneid, 1)] + R[2 : 16 @ laneid]), "warp", 32)
    assert covers(TileLayout(S[(4, 32) : (1 @ warpid, 1 @ laneid)]), "cta", 128)
    assert covers(TileLayout(S[(32, 8) : (1 @ laneid, 1)]), "cta", 32)
    assert not covers(TileLayout(S[(32, 8) : (1 @ laneid, 1)]), "cta", 64)
    assert not covers(TileLayout(S[128 : 1 @ tx]), "warp", 128)
    assert covers(row_major((4,)), "thread", 1)
    assert not is_injective(TileLayout(S[(4, 4) : (1, 1)]))
    assert is_injective(TileLayout(S[(4, 4) : (1, 4)]))


def test_pictures_say_what_the_layout_says() -> None:
    layout = TileLayout(S[(32, 8) : (1 @ laneid, 1)])
    picture = owner_picture(layout, (32, 8))
    assert picture.count("<rect") == 1 + 32 * 8
    assert ">7 r3</text>" in picture
    assert in_words(layout, (32, 8)) == "32 x 8 elements over 32 threads (laneid), 8 to a thread"
    dense = bank_picture(row_major((32, 32)), (32, 32), 32)
    assert "32 threads that read one column meet 32 to a bank" in dense
    assert "with 16 bytes a thread it takes 32 turns, 4 without conflicts" in dense
    swizzled = bank_picture(swizzle_for(32, 64).over((128, 16)), (128, 16), 32)
    assert "meet 4 to a bank; with 16 bytes a thread it takes 4 turns, the fewest" in swizzled
    assert "16 bytes" not in bank_picture(TileLayout(S[(32, 32) : (33, 1)]), (32, 32), 32)
    assert "free of conflicts" in bank_picture(TileLayout(S[(32, 32) : (33, 1)]), (32, 32), 32)
    assert column_conflicts(swizzle_for(16, 128).over((8, 64)), (8, 64), 16) == 1
    assert bank_of(row_major((64,)), 33, 32) == 1
    assert "of 128 x 8" in owner_picture(row_major((128, 8)), (128, 8))


# -------------------------------------------------------------------------------------------------------- laws
FAMILIES = [["m"], ["laneid", "m"], ["laneid", "warpid", "m"], ["tid_in_wg", "wgid", "m"], ["wid_in_wg", "laneid", "m"]]


@st.composite
def layouts(draw: st.DrawFn, most: int = 4) -> TileLayout:
    axes = [AXES[name] for name in draw(st.sampled_from(FAMILIES))]
    iters = st.builds(Iter, st.integers(1, 6), st.integers(0, 12), st.sampled_from(axes))
    shard = draw(st.lists(iters, min_size=1, max_size=most))
    replica = draw(st.lists(iters, max_size=1))
    offset = draw(st.dictionaries(st.sampled_from(axes), st.integers(0, 9), max_size=2))
    try:
        return TileLayout(shard=shard, replica=replica, offset=offset)
    except InvalidLayout:  # scopes that don't connect: in memory instead
        flat = [Iter(each.extent, each.stride, m) for each in shard]
        return TileLayout(shard=flat)


def fused_place(place: dict[Any, Any], table: dict[str, tuple[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for axis, value in place.items():
        name, factor = table.get(axis.name, (axis.name, 1))
        found[name] = found.get(name, 0) + value * factor
    return {name: value for name, value in found.items() if value}


@settings(max_examples=150, deadline=None)
@given(layouts())
def test_the_canonical_form_has_the_same_places(layout: TileLayout) -> None:
    from warpsmith.tile.layout.axes import FUSED

    plain = layout.canonical(fuse=False)
    table = dict(FUSED.get(plain.scope_pair() or ("", ""), {}))
    for form, rules in ((plain, {}), (layout.canonical(), table)):
        for flat in range(layout.size()):
            assert fused_place(form.apply(flat), {}) == fused_place(layout.apply(flat), rules)
    assert plain.canonical(fuse=False) == plain
    assert layout.canonical().canonical() == layout.canonical()


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(layouts())
def test_text_reads_back(layout: TileLayout) -> None:
    assert parse_layout(str(layout)) == layout
    assert hash(parse_layout(str(layout))) == hash(layout)
    swizzled = ComposeLayout(2, 1, 3, tile=layout)
    assert str(parse_layout(str(swizzled))) == str(swizzled)


@settings(max_examples=100, deadline=None)
@given(layouts(), st.data())
def test_a_slice_is_the_layout_from_the_slices_beginning(layout: TileLayout, data: st.DataObject) -> None:
    shape = [each.extent for each in layout.shard]
    region: list[tuple[int, int]] = []
    for extent in shape:
        begin = data.draw(st.integers(0, extent - 1))
        region.append((begin, data.draw(st.integers(begin + 1, extent))))
    part = layout.slice(shape, region)
    if part is None:
        return
    sizes = [end - begin for begin, end in region]
    for point in itertools.product(*map(range, sizes)):
        there = [p + begin for p, (begin, _) in zip(point, region, strict=True)]
        found, whole = part.apply(*point, shape=sizes), layout.apply(*there, shape=shape)
        assert fused_place(found, {}) == fused_place(whole, {})


@settings(max_examples=100, deadline=None)
@given(layouts())
def test_the_indexing_map_gives_the_same_places(layout: TileLayout) -> None:
    shape = [each.extent for each in layout.shard]
    map = to_indexing_map(layout, shape)
    for point in itertools.product(*(range(extent) for extent in shape)):
        expected = layout.apply(*point, shape=shape)
        found = [int(evaluate(result, list(point), [])) for result in map.results]
        assert found == [expected.get(axis, 0) for axis in layout.axes()]


@settings(max_examples=100, deadline=None)
@given(layouts(3))
def test_owners_are_the_inverse_of_places_and_injectivity_is_what_it_says(layout: TileLayout) -> None:
    everything = [(flat, tuple(sorted((a.name, v) for a, v in place.items()))) for flat, place in places(layout)]
    by_place: dict[Any, set[int]] = {}
    for flat, place in everything:
        by_place.setdefault(place, set()).add(flat)
    assert is_injective(layout) == all(len(elements) == 1 for elements in by_place.values())
    flat, place = everything[-1]
    assert set(owners(layout, {AXES[name]: value for name, value in place})) == by_place[place]
    assert flat in by_place[place]


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(layouts(2), layouts(2))
def test_a_tile_is_the_inner_layout_at_each_place_of_the_outer_one(outer: TileLayout, inner: TileLayout) -> None:
    outer = TileLayout(shard=[Iter(e.extent, e.stride, m) for e in outer.shard])
    inner = TileLayout(shard=[Iter(e.extent, e.stride, m) for e in inner.shard])
    rank = max(len(outer.shard), len(inner.shard))

    def shape_of(layout: TileLayout) -> list[int]:
        return [1] * (rank - len(layout.shard)) + [each.extent for each in layout.shard]

    outer_shape, inner_shape = shape_of(outer), shape_of(inner)
    whole_shape = [a * b for a, b in zip(outer_shape, inner_shape, strict=True)]
    whole, total = tile(outer, inner, outer_shape, inner_shape), direct_sum(outer, inner, outer_shape, inner_shape)
    for big in itertools.product(*map(range, outer_shape)):
        for small in itertools.product(*map(range, inner_shape)):
            at = [b * e + s for b, e, s in zip(big, inner_shape, small, strict=True)]
            x, y = outer.apply(*big, shape=outer_shape)[m], inner.apply(*small, shape=inner_shape)[m]
            assert whole.apply(*at, shape=whole_shape)[m] == x * inner.span() + y
            assert total.apply(*at, shape=whole_shape)[m] == x + y
    assert inner_of_tile(whole, outer, whole_shape, outer_shape) is not None


@settings(max_examples=100, deadline=None)
@given(layouts(), st.randoms(use_true_random=False))
def test_permuted_factors_place_permuted_digits(layout: TileLayout, random: Any) -> None:
    order = list(range(len(layout.shard)))
    random.shuffle(order)
    turned = layout.permute(order)
    for point in itertools.product(*(range(each.extent) for each in layout.shard)):
        moved = turned.apply(*(point[i] for i in order)) if len(order) > 1 else turned.apply(point[0])
        assert moved == (layout.apply(*point) if len(order) > 1 else layout.apply(point[0]))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.integers(1, 5), st.sampled_from([2, 4]))
def test_packing_undoes_unpacking(rows: int, columns: int, factor: int) -> None:
    layout = TileLayout(S[(rows, columns) : (columns + 3, 1)] + 7)
    wide = layout.unpack(factor)
    assert wide.size() == math.prod((rows, columns, factor))
    assert wide.pack(factor).canonical(fuse=False) == TileLayout(
        S[(rows, columns, 1) : (columns + 3, 1, 1)] + 7
    ).canonical(fuse=False)


def test_axes_by_name_are_those_axes() -> None:
    """If this failed, a name would match nothing, and `size("laneid")` be 1."""
    layout = TileLayout(S[(32, 8) : (1 @ laneid, 1)], offset={"laneid": 0})
    assert (layout.size("laneid"), layout.span("laneid"), layout.size("m")) == (32, 32, 8)
    assert owners(layout, {"laneid": 3}) == owners(layout, {laneid: 3}) == list(range(24, 32))
    assert layout.broadcast(2, 0, "laneid").shard[0].axis is laneid
    with pytest.raises(InvalidLayout, match=r"no axis is called 'lane'\n.*did you mean 'laneid'"):
        layout.size("lane")
    with pytest.raises(InvalidLayout, match="an axis is one such as laneid, or its name, not 3"):
        layout.size(3)


def test_a_swizzle_refuses_what_it_would_drop() -> None:
    """If this failed, a tile in the place of `inner` would be dropped without a word."""
    tile = TileLayout(S[8, 64])
    with pytest.raises(InvalidLayout, match=r"inner is True or False, not TileLayout.*\n.*tile=layout"):
        ComposeLayout(3, 3, 3, tile)
    assert ComposeLayout(3, 3, 3, tile=tile).tile == tile
    with pytest.raises(InvalidLayout, match="a length is an integer, not 'x'"):
        ComposeLayout("x", 3, 3)


def test_a_notebook_shows_the_picture() -> None:
    """If this failed, a notebook would show a layout as text, or a fragment in another shape than its tile's."""
    fragment = TileLayout(S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)])
    assert fragment._repr_html_() == owner_picture(fragment, (16, 8))
    swizzled = swizzle_for(16, 128).over((8, 64))
    assert swizzled._repr_html_() == owner_picture(swizzled, (8, 64))
