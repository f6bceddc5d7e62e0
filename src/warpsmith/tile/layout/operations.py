"""Layouts made of two, and the other way round.

`tile` repeats an inner layout at the places of an outer one, `direct_sum` adds their places; `outer_of_tile`,
`inner_of_tile` and `direct_summand` find the one where the whole and the other are known.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.errors import InvalidLayout
from warpsmith.tile.layout.axes import SPLIT, Axis, axis_of
from warpsmith.tile.layout.iters import Iter
from warpsmith.tile.layout.tile_layout import TileLayout, row_major

__all__ = ["direct_sum", "direct_summand", "inner_of_tile", "outer_of_tile", "tile", "tile_to"]


def tile(outer: TileLayout, inner: TileLayout, outer_shape: Sequence[int], inner_shape: Sequence[int]) -> TileLayout:
    """`inner` at each place of `outer`: the outer strides count whole inner tiles.

    The result places a tile of the product of the shapes, dim by dim.  InvalidLayout where a layout can't be grouped by
    its shape.
    """
    inner = inner.canonical(fuse=False)
    spans = {axis: inner.span(axis) for axis in {each.axis for each in inner.shard}}
    return _interleaved(outer.canonical(fuse=False), inner, outer_shape, inner_shape, spans)


def direct_sum(
    outer: TileLayout, inner: TileLayout, outer_shape: Sequence[int], inner_shape: Sequence[int]
) -> TileLayout:
    """Like `tile`, with the outer strides as they are."""
    plain = inner.canonical(fuse=False)
    return _interleaved(outer.canonical(fuse=False), plain, outer_shape, inner_shape, {})


def _interleaved(
    outer: TileLayout,
    inner: TileLayout,
    outer_shape: Sequence[int],
    inner_shape: Sequence[int],
    spans: dict[Axis, int],
) -> TileLayout:
    if len(outer_shape) != len(inner_shape):
        raise InvalidLayout(f"shapes {tuple(outer_shape)} and {tuple(inner_shape)} have different numbers of dims")
    outside, outer_bounds = outer.group(outer_shape)
    inside, inner_bounds = inner.group(inner_shape)
    shard: list[Iter] = []
    for d in range(len(outer_shape)):
        coarse = outside.shard[outer_bounds[d] : outer_bounds[d + 1]]
        shard += [each.along(each.stride * spans.get(each.axis, 1)) for each in coarse]
        shard += inside.shard[inner_bounds[d] : inner_bounds[d + 1]]
    offset = dict(inside.offset)
    for axis, amount in outside.offset.items():
        offset[axis] = offset.get(axis, 0) + amount
    return TileLayout(shard=shard, replica=(*inside.replica, *outside.replica), offset=offset).canonical(fuse=False)


def tile_to(layout: TileLayout, shape: Sequence[int], current: Sequence[int]) -> TileLayout:
    """The layout of a tile of `current` repeated, row-major, to a tile of `shape`."""
    if len(shape) != len(current) or any(big % small for big, small in zip(shape, current, strict=False)):
        raise InvalidLayout(f"{tuple(shape)} isn't made of whole tiles of {tuple(current)}")
    outer = tuple(big // small for big, small in zip(shape, current, strict=True))
    return tile(row_major(outer), layout, outer, current)


def outer_of_tile(
    whole: TileLayout, inner: TileLayout, whole_shape: Sequence[int], inner_shape: Sequence[int]
) -> TileLayout | None:
    """The layout whose `tile` with `inner` is `whole`; None where there is none."""
    return _outer(whole, inner, whole_shape, inner_shape, scaled=True)


def inner_of_tile(
    whole: TileLayout, outer: TileLayout, whole_shape: Sequence[int], outer_shape: Sequence[int]
) -> TileLayout | None:
    """The layout of which `whole` is the `tile` at the places of `outer`; None where there is none."""
    if len(whole_shape) != len(outer_shape) or any(w % o for w, o in zip(whole_shape, outer_shape, strict=False)):
        return None
    inner_shape = tuple(w // o for w, o in zip(whole_shape, outer_shape, strict=True))
    refined = [extent for pair in zip(outer_shape, inner_shape, strict=True) for extent in pair]
    both = whole.canonical(fuse=False).try_group(refined)
    if both is None:
        return None
    layout, bounds = both
    shard: list[Iter] = []
    for d in range(len(inner_shape)):
        shard += layout.shard[bounds[2 * d + 1] : bounds[2 * d + 2]]
    offset = {axis: amount - outer.offset.get(axis, 0) for axis, amount in layout.offset.items()}
    replica = _without(layout.replica, outer.replica)
    try:
        found = TileLayout(shard=shard, replica=replica, offset=offset)
        again = tile(outer, found, outer_shape, inner_shape)
    except InvalidLayout:
        return None
    return found if again.canonical() == whole.canonical() else None


def direct_summand(
    whole: TileLayout, inner: TileLayout, whole_shape: Sequence[int], inner_shape: Sequence[int]
) -> TileLayout | None:
    """The layout whose `direct_sum` with `inner` is `whole`; None where there is none."""
    return _outer(whole, inner, whole_shape, inner_shape, scaled=False)


def _outer(
    whole: TileLayout, inner: TileLayout, whole_shape: Sequence[int], inner_shape: Sequence[int], *, scaled: bool
) -> TileLayout | None:
    if len(whole_shape) != len(inner_shape) or any(w % i for w, i in zip(whole_shape, inner_shape, strict=False)):
        return None
    outer_shape = tuple(w // i for w, i in zip(whole_shape, inner_shape, strict=True))
    parts = split_axes(whole.canonical(fuse=False), inner)
    refined = [extent for pair in zip(outer_shape, inner_shape, strict=True) for extent in pair]
    both = parts.try_group(refined) if parts is not None else None
    if both is None:
        return None
    layout, bounds = both
    plain = inner.canonical(fuse=False)
    spans = {axis: plain.span(axis) for axis in {each.axis for each in plain.shard}} if scaled else {}
    shard: list[Iter] = []
    for d in range(len(outer_shape)):
        for each in layout.shard[bounds[2 * d] : bounds[2 * d + 1]]:
            unit = spans.get(each.axis, 1)
            if each.extent > 1 and each.stride % unit:
                return None
            shard.append(each if each.extent == 1 else each.along(each.stride // unit))
    replica = _without(layout.replica, plain.replica)
    offset = {axis: amount - plain.offset.get(axis, 0) for axis, amount in layout.offset.items()}
    try:
        found = TileLayout(shard=shard, replica=replica, offset=offset)
        again = (tile if scaled else direct_sum)(found, inner, outer_shape, inner_shape)
    except InvalidLayout:
        return None
    return found if again.canonical() == whole.canonical() else None


def _without(every: Sequence[Iter], known: Sequence[Iter]) -> list[Iter]:
    """What is left of copies without those that are known, as often as they are."""
    left = list(every)
    for each in known:
        if each in left:
            left.remove(each)
    return left


def split_axes(layout: TileLayout, like: TileLayout) -> TileLayout | None:
    """Fused thread axes split so that the scopes of `like` show; None where a factor straddles the split."""
    names = {each.axis.name for each in (*like.shard, *like.replica)}
    shard: list[Iter] = []
    for each in layout.shard:
        pair = next(
            (SPLIT[at] for at in SPLIT if at[0] == each.axis.name and SPLIT[at][1] in names and at[0] not in names),
            None,
        )
        parts = [each] if pair is None else _split(each, *pair)
        if parts is None:
            return None
        shard += parts
    return TileLayout(shard=shard, replica=layout.replica, offset=layout.offset)


def _split(each: Iter, outer: str, inner: str, size: int) -> list[Iter] | None:
    """A factor along an axis of which `size` steps of the inner axis make one of the outer."""
    reach = each.extent * each.stride
    if each.stride == 0 or reach <= size:
        return [each.along(each.stride, axis_of(inner))]
    if size % each.stride == 0 and reach % size == 0:
        return [
            Iter(reach // size, 1, axis_of(outer)),
            Iter(size // each.stride, each.stride, axis_of(inner)),
        ]
    if each.stride % size == 0:
        return [each.along(each.stride // size, axis_of(outer))]
    return None
