"""A layout as an indexing map, and what follows from all its places: who owns what, and whether that is unambiguous.

In: a layout, the shape of its tile.  Out: a map from the tile's indices to places (one result an axis), sets of owners,
answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from warpsmith.errors import InvalidLayout, did_you_mean
from warpsmith.indexing import Expr, IndexingMap, const, dim
from warpsmith.tile.layout.axes import Axis, axis_of
from warpsmith.tile.layout.inverse import chain
from warpsmith.tile.layout.tile_layout import TileLayout

__all__ = ["Place", "covers", "is_injective", "owners", "places", "to_indexing_map"]

Place = Mapping[Axis, int] | Mapping[str, int]
"""A value for each axis of a layout."""

_SCOPES: Mapping[str, tuple[str, ...]] = {
    "thread": (),
    "warp": ("laneid",),
    "warpgroup": ("laneid", "tid_in_wg"),
    "cta": ("laneid", "tid_in_wg", "tx"),
}
"""By scope, the axes that count its threads where no narrower scope repeats."""


def to_indexing_map(layout: TileLayout, shape: Sequence[int]) -> IndexingMap:
    """The map from a tile's indices to places: one result an axis, in the order of `layout.axes()`."""
    places = layout.apply(*(dim(i) for i in range(len(shape))), shape=shape)
    results = [_expr(places.get(axis, 0)) for axis in layout.axes()]
    return IndexingMap.from_sizes(results, tuple(shape)).simplify()


def _expr(value: int | Expr) -> Expr:
    return const(value) if isinstance(value, int) else value


def copies(layout: TileLayout) -> Iterator[dict[Axis, int]]:
    """The distances of every element's copies: all combinations of the replica's steps, the element itself first."""
    for steps in product(*(range(each.extent) for each in layout.replica)):
        distance: dict[Axis, int] = {}
        for each, step in zip(layout.replica, steps, strict=True):
            distance[each.axis] = distance.get(each.axis, 0) + step * each.stride
        yield distance


def places(layout: TileLayout) -> Iterator[tuple[int, dict[Axis, int]]]:
    """(element, place) for every element in row-major order and every copy of it."""
    axes = layout.axes()
    shifts = list(copies(layout))
    for flat in range(layout.size()):
        found = {axis: at for axis, at in layout.apply(flat).items() if isinstance(at, int)}
        for shift in shifts:
            yield flat, {axis: found.get(axis, 0) + shift.get(axis, 0) for axis in axes}


def is_injective(layout: TileLayout) -> bool:
    """Whether no two elements share a place (an element's own copies may)."""
    iters = (*layout.shard, *layout.replica)
    if all(chain(each for each in iters if each.axis == axis) is not None for axis in layout.axes()):
        return True
    holders: dict[tuple[int, ...], int] = {}
    return all(holders.setdefault(tuple(place.values()), flat) == flat for flat, place in places(layout))


def owners(layout: TileLayout, place: Place) -> list[int]:
    """The elements, as row-major numbers, whose place agrees with `place` on the axes that it names.

    With thread axes alone: what a thread holds.
    """
    wanted = {axis_of(axis): at for axis, at in place.items()}
    found = (flat for flat, each in places(layout) if all(each.get(axis, 0) == at for axis, at in wanted.items()))
    return list(dict.fromkeys(found))


def covers(layout: TileLayout, scope: str, threads: int) -> bool:
    """Whether each of the first `threads` threads of a scope (thread, warp, warpgroup, cta) holds an element or a copy,
    and no thread beyond them does.

    A layout over lanes covers a CTA of one warp, but not one of two.  InvalidLayout for a scope that has no threads.
    """
    if scope not in _SCOPES:
        raise InvalidLayout(
            f"no scope of threads is called '{scope}'",
            help=did_you_mean(scope, _SCOPES) or f"the scopes are {', '.join(_SCOPES)}",
        )
    plain = layout.canonical()
    used = [axis for axis in plain.axes() if axis.is_thread]
    if not used:
        return threads == 1
    if len(used) > 1 or used[0].name not in _SCOPES[scope]:
        return False
    return {place[used[0]] for _, place in places(plain)} == set(range(threads))
