"""Sets of warps that read one place, each at a moment: interned, so that a mark is the number of one.

Needed where barriers of a part of a block order some readers of a place and not others.
"""

from __future__ import annotations

import numpy as np

from warpsmith.arrays import Array

__all__ = ["Readers"]


_NEVER = -1


class Readers:
    """Set 0 is empty.  A set has a moment for each of a block's `warps`."""

    def __init__(self, warps: int) -> None:
        self._times = np.full((1, warps), _NEVER, np.int32)
        self._numbers: dict[bytes, int] = {self._times[0].tobytes(): 0}

    def joined(self, sets: Array, warps: Array, moment: int) -> Array:
        """The sets with more warps (a bit each), which read at a moment."""
        keys, where = np.unique(np.stack([sets, warps]), axis=1, return_inverse=True)
        numbers: list[int] = []
        for old, bits in keys.T.tolist():
            times = self._times[old].copy()
            times[[w for w in range(times.shape[0]) if bits >> w & 1]] = moment
            numbers.append(self._intern(times))
        return np.array(numbers, np.int32)[where]

    def _intern(self, times: Array) -> int:
        found = self._numbers.setdefault(times.tobytes(), self._times.shape[0])
        if found == self._times.shape[0]:
            self._times = np.concatenate([self._times, times[None]])
        return found

    def known(self, sets: Array, seen: Array) -> Array:
        """Whether all of each set is ordered before whoever knows of each warp up to the moments in a row of `seen`."""
        before: Array = self._times[sets] < seen
        return np.logical_and.reduce(before, axis=1)
