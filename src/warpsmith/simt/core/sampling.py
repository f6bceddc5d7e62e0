"""Which blocks of a grid run when not all do."""

from __future__ import annotations

import numpy as np

from warpsmith.arrays import Array

__all__ = ["chosen_blocks"]


_SEED = 5


def chosen_blocks(blocks: int, most: int | None) -> Array:
    """The numbers of `most` blocks of a grid of `blocks`, in order; all where there are no more, or `most` is None.

    A third are the first, a third the last (where bounds are), the rest random between them, the same at every call.
    """
    if most is None or blocks <= most:
        return np.arange(blocks, dtype=np.int64)
    ends = max(1, most // 3)
    first, last = np.arange(ends), np.arange(blocks - ends, blocks)
    middle = np.random.default_rng(_SEED).integers(ends, blocks - ends, max(0, most - 2 * ends))
    return np.unique(np.concatenate([first, middle, last])).astype(np.int64)
