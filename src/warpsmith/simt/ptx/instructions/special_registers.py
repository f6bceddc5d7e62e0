"""PTX's special registers: where a thread is in its block, its warp and the grid."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Protocol

import numpy as np

from warpsmith.arrays import Array
from warpsmith.simt.ptx.instructions.warp import Warps

__all__ = ["special"]


class Grid(Protocol):
    """What special registers depend on: the batch of blocks that runs."""

    numbers: Array
    count: int
    per_block: int
    threads: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int

    warps: cached_property[Warps]


def special(batch: Grid, name: str) -> Array:
    """The value of `%name`: one item a thread, or one for all; 0 for what has no meaning here, such as clocks."""
    base, _, axis = name.partition(".")
    if base in ("tid", "ctaid", "ntid", "nctaid"):
        return _index(batch, base, "xyzw".index(axis))
    lane = batch.warps.lane
    one = np.uint32(1)
    table: dict[str, Callable[[], Array]] = {
        "laneid": lambda: lane,
        "warpid": lambda: (np.arange(batch.threads) % batch.per_block // 32).astype(np.uint32),
        "nwarpid": lambda: np.array([-(-batch.per_block // 32)], np.uint32),
        "lanemask_eq": lambda: one << lane,
        "lanemask_lt": lambda: (one << lane) - one,
        "lanemask_le": lambda: ((one << lane) - one) | (one << lane),
        "lanemask_gt": lambda: ~(((one << lane) - one) | (one << lane)),
        "lanemask_ge": lambda: ~((one << lane) - one),
        "total_smem_size": lambda: np.array([batch.shared_bytes], np.uint32),
        "nsmid": lambda: np.array([1], np.uint32),
    }
    if name in table:
        return table[name]()
    return np.zeros(1, np.uint64 if name.endswith(("64", "timer")) else np.uint32)


def _index(batch: Grid, base: str, axis: int) -> Array:
    dims = batch.block if base.endswith("tid") and "cta" not in base else batch.grid
    extent = dims[axis] if axis < 3 else (1 if base.startswith("n") else 0)
    if base.startswith("n"):
        return np.array([extent], np.uint32)
    if axis == 3 or extent == 1:
        return np.zeros(1, np.uint32)
    inner = int(np.prod(dims[:axis], dtype=np.int64))
    if base == "tid":
        own = (np.arange(batch.per_block, dtype=np.uint32) // np.uint32(inner)) % np.uint32(extent)
        return np.tile(own, batch.count)
    blocks = batch.numbers // inner % extent
    return np.repeat(blocks.astype(np.uint32), batch.per_block if batch.count > 1 else 1)
