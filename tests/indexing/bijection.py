"""Whether a map is one to one, by counting every point."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from warpsmith.indexing import IndexingMap, evaluate_all
from warpsmith.indexing.points import box_size, points

__all__ = ["is_bijection_onto"]

_CHUNK = 1 << 20  # points looked at together


def is_bijection_onto(map: IndexingMap, shape: Sequence[int]) -> bool:
    """Whether the domain is mapped one to one onto all indices of `shape`."""
    if len(shape) != map.num_results:
        return False
    total = math.prod(shape)
    if map.known_empty or box_size(map) < total:
        return total == 0
    seen = np.zeros(total, np.bool_)
    count = 0
    for start in range(0, box_size(map), _CHUNK):
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
