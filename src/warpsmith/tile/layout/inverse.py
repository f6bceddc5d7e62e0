"""The way back: from a thread and its register to the element that is there.

In: a layout.  Out: an indexing map from places to the indices of a tile, where the places of the layout's factors don't
run into one another; it is what a partition of work is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from warpsmith.indexing import Expr, IndexingMap, Interval, Variable, const, dim, floordiv, linearize, mod, symbol
from warpsmith.tile.layout.axes import Axis
from warpsmith.tile.layout.iters import Iter
from warpsmith.tile.layout.tile_layout import TileLayout

__all__ = ["chain", "partition_map"]


def chain(iters: Iterable[Iter]) -> list[Iter] | None:
    """The factors along one axis from the finest step to the coarsest, each beyond the reach of those before it and a
    multiple of their steps; None where they overlap.

    Then a place has its digits in one way: a factor's digit is the place divided by its stride, up to the next stride.
    Factors of extent 1 have no digit and are left out.
    """
    found = sorted((each for each in iters if each.extent > 1), key=lambda each: each.stride)
    if found and found[0].stride < 1:
        return None
    for finer, coarser in pairwise(found):
        if coarser.stride % finer.stride or coarser.stride < finer.extent * finer.stride:
            return None
    return found


def partition_map(layout: TileLayout, shape: Sequence[int]) -> IndexingMap | None:
    """(threads)[registers] -> the indices of the element of a tile of `shape` that is there.

    Thread axes, fused, are the dimensions and bear their names; memory axes are the range variables.  The domain holds
    the places that have an element, so lanes without one and gaps between registers are outside it, and every copy of
    an element is inside.  None where factors overlap, so that a place has two elements or can't be told apart without
    a search.  InvalidLayout where the layout can't be grouped by the shape.
    """
    fused, bounds = layout.canonical().group(shape)
    axes = fused.axes()
    threads, memory = [a for a in axes if a.is_thread], [a for a in axes if not a.is_thread]
    variables: dict[Axis, Expr] = {axis: dim(i) for i, axis in enumerate(threads)}
    variables |= {axis: symbol(i) for i, axis in enumerate(memory)}
    digits: dict[Iter, Expr] = {}  # no two factors of a chain are equal
    constraints: list[tuple[Expr, Interval]] = []
    for axis, variable in variables.items():
        along = chain(each for each in (*fused.shard, *fused.replica) if each.axis == axis)
        if along is None:
            return None
        place = variable - fused.offset.get(axis, 0)
        ends = [*(each.stride for each in along[1:]), None]
        for each, end in zip(along, ends, strict=False):
            digit = floordiv(place, each.stride)
            digit = digit if end is None else mod(digit, end // each.stride)
            digits[each] = digit
            constraints.append((digit, Interval.of_size(each.extent)))
        constraints.append((mod(place, along[0].stride) if along else place, Interval.point(0)))
    results: list[Expr] = []
    for start, end in pairwise(bounds):
        owned = fused.shard[start:end]
        results.append(linearize([digits.get(each, const(0)) for each in owned], [each.extent for each in owned]))
    return IndexingMap.make(
        [_variable(fused, axis) for axis in threads],
        results,
        range_vars=[_variable(fused, axis) for axis in memory],
        constraints=constraints,
    ).simplify()


def _variable(layout: TileLayout, axis: Axis) -> Variable:
    lowest = min(0, layout.offset.get(axis, 0))
    return Variable(axis.name if axis.is_thread else "", Interval(lowest, layout.span(axis) - 1))
