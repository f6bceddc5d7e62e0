"""Functions of float64 arrays that numpy has not, or not with HLO's edge cases.

In: float64 arrays.  Out: float64 arrays, within about one ulp.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from warpsmith.arrays import Array

__all__ = ["erf", "logistic", "rsqrt"]


def logistic(x: Array) -> Array:
    """1 / (1 + exp(-x)) without overflow on the way, and with full relative accuracy for negative x."""
    tail = np.exp(-np.abs(x))
    return np.where(x < 0, tail, 1.0) / (1.0 + tail)


def rsqrt(x: Array) -> Array:
    """1 / sqrt(x): -0 gives -inf, negative numbers NaN."""
    return 1.0 / np.sqrt(x)


_SPLIT = 0.5
_CELLS = 64  # nodes a unit: a step of at most 1/128 from the nearest node
_LAST = 6.0  # erf(6) is 1 in float64
_ORDER = 7


@cache
def _erf_series() -> list[float]:
    """Coefficients of erf(x) / x in x^2."""
    return [2 / math.sqrt(math.pi) * (-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(13)]


@cache
def _erf_nodes() -> Array:
    """Taylor coefficients of erf at 0, 1/64, ..., 6: one row an order."""
    rows: list[list[float]] = []
    for cell in range(int(_LAST * _CELLS) + 1):
        node = cell / _CELLS
        # The derivatives of exp(-x^2) are exp(-x^2) times Hermite polynomials, which obey a three-term recurrence.
        scale = 2 / math.sqrt(math.pi) * math.exp(-node * node)
        before, now = 0.0, 1.0
        row = [math.erf(node)]
        for n in range(1, _ORDER + 1):
            row.append(scale * now / math.factorial(n))
            before, now = now, -2 * node * now - 2 * (n - 1) * before
        rows.append(row)
    return np.array(rows, np.float64).T.copy()


def erf(x: Array) -> Array:
    """The error function: a power series below 1/2, a Taylor series around tabled nodes above."""
    size = np.abs(x)
    square = np.minimum(size, _SPLIT) ** 2
    near = np.zeros_like(square)
    for coefficient in reversed(_erf_series()):
        near = near * square + coefficient
    clipped = np.minimum(np.where(np.isnan(size), 0.0, size), _LAST)
    cell = np.rint(clipped * _CELLS).astype(np.int64)
    step = clipped - cell / _CELLS
    nodes = _erf_nodes()
    far = nodes[_ORDER][cell]
    for order in range(_ORDER - 1, -1, -1):
        far = far * step + nodes[order][cell]
    result = np.where(size < _SPLIT, x * near, np.copysign(np.minimum(far, 1.0), x))
    return np.where(np.isnan(x), x, result)
