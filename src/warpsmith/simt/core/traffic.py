"""What warps' accesses cost on the hardware: pure functions of addresses, one row of lanes a warp access.

Global memory moves in sectors of 32 bytes: a warp's access costs as many as it touches.  Shared memory has 32 banks of
four bytes, and a turn serves one word of each: lanes that want different words of one bank wait for one another, those
that want the same word are served together.  An access of 8 bytes a lane goes in two halves of the warp, of 16 bytes in
four quarters (CUDA C++ programming guide, "Shared memory"; Nsight Compute's metrics `sectors` and `wavefronts`).
"""

from __future__ import annotations

import numpy as np

from warpsmith.arrays import Array
from warpsmith.simt.core.results import SECTOR

__all__ = ["meeting_lanes", "sectors", "wavefronts"]


_BANKS = 32
_NONE = -1  # the key of a lane that takes no part


def _sorted(keys: Array, active: Array | None) -> Array:
    """Each row's keys in order; those of inactive lanes are _NONE, which comes first."""
    if active is not None:
        keys = np.where(active, keys, _NONE)
    elif bool((keys[:, 1:] >= keys[:, :-1]).all()):
        return keys
    return np.sort(keys, axis=1)


def _distinct(keys: Array, active: Array | None) -> Array:
    """How many different keys each row's active lanes have."""
    ordered = _sorted(keys, active)
    count = np.count_nonzero(ordered[:, 1:] != ordered[:, :-1], axis=1) + 1
    return count if active is None else count - (ordered[:, 0] == _NONE)


def sectors(start: Array, active: Array | None, size: int) -> tuple[int, int]:
    """Sectors that rows of accesses of `size` bytes touch, summed; and how many would hold the different bytes.

    `start` has the first byte of each lane's access, a row a warp; `active` says which lanes take part.
    """
    first = start // SECTOR
    touched = first
    taking_part = active
    if size > 1:
        last = (start + (size - 1)) // SECTOR
        if (last != first).any():
            touched = np.concatenate([first, last], axis=1)
            taking_part = None if active is None else np.concatenate([active, active], axis=1)
    count = int(_distinct(touched, taking_part).sum())
    least = -(-_distinct(start, active) * size // SECTOR)
    return count, int(least.sum())


def wavefronts(start: Array, active: Array | None, size: int) -> tuple[int, int]:
    """Turns of the banks that rows of accesses to shared memory take, summed; and without conflicts."""
    words = max(1, size // 4)
    word = start // 4
    if words > 1:
        word = word[:, :, None] + np.arange(words)
        active = None if active is None else np.repeat(active, words, axis=1)
    word = word.reshape(-1, _BANKS)
    active = None if active is None else active.reshape(-1, _BANKS)
    groups = word.shape[0]
    span = int(word.max(initial=0)) // _BANKS + 1
    key = word % _BANKS * span + word // _BANKS
    ordered = _sorted(key, active)
    new = np.ones(ordered.shape, np.bool_)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    if active is not None:
        new &= ordered != _NONE
    least = groups if active is None else int(active.any(axis=1).sum())
    if int(new.sum()) == least:
        return least, least
    row = np.broadcast_to(np.arange(groups)[:, None] * _BANKS, new.shape)[new]
    in_bank = np.bincount(row + ordered[new] // span, minlength=groups * _BANKS)
    return int(in_bank.reshape(groups, _BANKS).max(axis=1).sum()), least


def meeting_lanes(start: Array, active: Array | None) -> tuple[int, int]:
    """The most lanes of a row that access one address; and the sum over rows of each one's most."""
    ordered = _sorted(start, active)
    new = np.ones(ordered.shape, np.bool_)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    run = np.cumsum(new.reshape(-1)) - 1
    count = np.bincount(run, weights=(ordered != _NONE).reshape(-1)).astype(np.int64)
    most = np.maximum.reduceat(count, run.reshape(new.shape)[:, 0])
    return int(most.max(initial=0)), int(most.sum())
