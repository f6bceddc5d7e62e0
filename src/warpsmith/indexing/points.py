"""The points of a map's domain.

In: a map.  Out: arrays of points, and yes or no.  This is the ground truth that everything clever is tested against.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from warpsmith.indexing.map import IndexingMap
from warpsmith.indexing.walk import IntArray, Values, evaluate_all

__all__ = ["box_size", "contains", "points"]


def box_size(map: IndexingMap) -> int:
    """How many points the bounds allow, constraints aside."""
    return math.prod(v.bounds.size for v in (*map.dim_vars, *map.symbol_vars))


def contains(map: IndexingMap, dims: Sequence[Values], symbols: Sequence[Values] = ()) -> npt.NDArray[np.bool_]:
    """Whether points are in the domain: an array of the broadcast shape of the values given."""
    values = [np.asarray(v) for v in (*dims, *symbols)]
    shape = np.broadcast_shapes(*(v.shape for v in values))
    if map.known_empty:
        return np.zeros(shape, np.bool_)
    inside = np.ones(shape, np.bool_)
    for value, variable in zip(values, (*map.dim_vars, *map.symbol_vars), strict=True):
        inside &= (value >= variable.bounds.lower) & (value <= variable.bounds.upper)
    for value, interval in zip(
        evaluate_all(list(map.constraints), dims, symbols), map.constraints.values(), strict=True
    ):
        inside &= (np.asarray(value) >= interval.lower) & (np.asarray(value) <= interval.upper)
    return inside


def points(map: IndexingMap, start: int = 0, stop: int | None = None) -> tuple[list[IntArray], list[IntArray]]:
    """The points of the domain in lexicographic order (dims, then symbols), as one array a variable.

    `start` and `stop` cut the box of the bounds (by linear position) for domains too large to hold at once.
    """
    size = box_size(map)
    linear = np.arange(start, size if stop is None else min(stop, size), dtype=np.int64)
    values: list[IntArray] = []
    for variable in reversed((*map.dim_vars, *map.symbol_vars)):
        values.append(linear % variable.bounds.size + variable.bounds.lower)
        linear = linear // variable.bounds.size
    values.reverse()
    dims, symbols = values[: map.num_dims], values[map.num_dims :]
    if map.constraints:
        inside = contains(map, dims, symbols)
        dims, symbols = [v[inside] for v in dims], [v[inside] for v in symbols]
    return dims, symbols
