"""A layout as an indexing map, and what follows from all its places: who owns what, and whether that is unambiguous.

In: a layout, the shape of its tile.  Out: a map from the tile's indices to places (one result an axis), sets of owners,
answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from warpsmith.indexing import IndexingMap, const, dim
from warpsmith.indexing.expr import Expr
from warpsmith.tile.layout.axes import Axis
from warpsmith.tile.layout.tile_layout import TileLayout

__all__ = ["Place", "covers", "is_injective", "owners", "places", "to_indexing_map"]

Place = Mapping[Axis, int]
"""A value for each axis of a layout."""

THREADS: Mapping[str, str] = {"warp": "laneid", "warpgroup": "tid_in_wg", "cta": "tx"}
"""The axis that counts a scope's threads when axes are fused."""


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
    holders: dict[tuple[int, ...], int] = {}
    return all(holders.setdefault(tuple(place.values()), flat) == flat for flat, place in places(layout))


def owners(layout: TileLayout, place: Place) -> list[int]:
    """The elements, as row-major numbers, whose place agrees with `place` on the axes that it names.

    With thread axes alone: what a thread holds.
    """
    found = (flat for flat, each in places(layout) if all(each.get(axis, 0) == at for axis, at in place.items()))
    return list(dict.fromkeys(found))


def covers(layout: TileLayout, scope: str, threads: int) -> bool:
    """Whether every thread of a scope (warp, warpgroup, cta) of `threads` threads holds some element, and no other."""
    plain = layout.canonical()
    used = {axis for axis in plain.axes() if axis.is_thread}
    if [axis.name for axis in used] != [THREADS.get(scope)]:
        return threads == 1 and not used
    (axis,) = used
    return {each[axis] for _, each in places(plain)} == set(range(threads))
