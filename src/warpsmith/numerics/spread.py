"""How far evaluations that err at random lie apart: stochastic arithmetic, for modules and for tile programs.

In: a reference, and what evaluations of the same gave.  Out: the largest distance for each element.  Vignes, "A
stochastic arithmetic for reliable scientific computation" (1993).
"""

from __future__ import annotations

import numpy as np

from warpsmith.arrays import Array

__all__ = ["Spread"]


class Spread:
    """The largest distance from a reference so far; infinite where evaluations disagree on what is a number.

    A `discrete` result, of integers or truth values, is the same in all evaluations or says nothing: a distance is
    infinite there.
    """

    def __init__(self, reference: Array, *, discrete: bool = False) -> None:
        self._reference = reference
        self._discrete = discrete
        self.largest = np.zeros(reference.shape, np.float64)

    def add(self, found: Array, more: float | Array = 0.0) -> None:
        """Another evaluation; `more` is added to its distances."""
        with np.errstate(all="ignore"):
            same = (found == self._reference) | (np.isnan(found) & np.isnan(self._reference))
            apart = np.where(same, 0.0, np.abs(found - self._reference))
            apart = np.where(np.isnan(apart) | ((apart > 0) & self._discrete), np.inf, apart)
            np.maximum(self.largest, apart + more, out=self.largest)
