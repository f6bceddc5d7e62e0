"""The points of a map's domain, and what the map does to them, by counting.

In: a map.  Out: arrays of points, and yes or no.  This is the ground truth that everything clever is tested against.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from warpsmith.indexing.walk import IntArray, Values, evaluate_all

if TYPE_CHECKING:
    from warpsmith.indexing.map import IndexingMap

__all__ = ["contains", "is_bijection_onto", "points"]

_CHUNK = 1 << 20  # points looked at together


def _box_size(map: IndexingMap) -> int:
    return math.prod(v.bounds.size for v in (*map.dim_vars, *map.symbol_vars))


def contains(map: IndexingMap, dims: Sequence[Values], symbols: Sequence[Values]) -> npt.NDArray[np.bool_]:
    """See `IndexingMap.contains`."""
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
    """See `IndexingMap.points`."""
    size = _box_size(map)
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


def is_bijection_onto(map: IndexingMap, shape: Sequence[int]) -> bool:
    """See `IndexingMap.is_bijection_onto`."""
    if len(shape) != map.num_results:
        return False
    total = math.prod(shape)
    if map.known_empty or _box_size(map) < total:
        return total == 0
    seen = np.zeros(total, np.bool_)
    count = 0
    for start in range(0, _box_size(map), _CHUNK):
        dims, symbols = points(map, start, start + _CHUNK)
        n = len((*dims, *symbols)[0]) if dims or symbols else 1
        linear = np.zeros(n, np.int64)
        for value, size in zip(evaluate_all(map.results, dims, symbols), shape, strict=True):
            index = np.broadcast_to(np.asarray(value, dtype=np.int64), (n,))
            if n and not (index.min() >= 0 and index.max() < size):
                return False
            linear = linear * size + index
        count += n
        if count > total:
            return False
        seen[linear] = True
    return count == total and bool(seen.all())
