"""Distances in ulp for every float type: how many representable values two numbers are apart.

In: two arrays of one float dtype.  Out: int64 distances.  The bits of a float, read as sign and magnitude, count the
representable values in order, whatever the format; both zeros count as one value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpsmith.dtypes import DType, from_numpy
from warpsmith.errors import ArgumentMismatch

__all__ = ["UNCOMPARABLE", "ordered", "ulp_distance", "ulp_size"]

# The distance between NaN and a number.
UNCOMPARABLE = (1 << 63) - 1

_UNSIGNED = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32), 8: np.dtype(np.uint64)}


def bits_of(values: NDArray[Any]) -> NDArray[Any]:
    """The bits of each item as an unsigned integer of its size."""
    return np.ascontiguousarray(values).view(_UNSIGNED[values.dtype.itemsize])


def _float_type(values: NDArray[Any]) -> DType:
    dtype = from_numpy(values.dtype)
    if not dtype.is_float:
        raise ArgumentMismatch(f"ulp distances are for floats, not {dtype}")
    return dtype


def ordered(values: NDArray[Any]) -> NDArray[np.int64]:
    """Each float's place among the values of its dtype: zero is 0, the least positive value 1, its negative -1...

    Places of NaN mean nothing.
    """
    dtype = _float_type(values)
    bits = bits_of(values).astype(np.int64)
    if dtype.name == "f8e8m0fnu":  # no sign, no zero
        return bits
    sign = 1 << (dtype.bits - 1)
    if dtype.bits == 64:
        return np.where(bits < 0, -(bits & (sign - 1)), bits)
    magnitude = bits & (sign - 1)
    return np.where(bits & sign, -magnitude, magnitude)


def ulp_distance(a: NDArray[Any], b: NDArray[Any], *, signed_zero: bool = False) -> NDArray[np.int64]:
    """How many values of their dtype `a` and `b` are apart, elementwise.

    Two NaN are 0 apart, NaN and a number UNCOMPARABLE; infinity is one step from the largest finite value.  +0 and -0
    are 0 apart, or 1 with `signed_zero`.  ArgumentMismatch for unlike dtypes or what isn't float.
    """
    if a.dtype != b.dtype:
        raise ArgumentMismatch(f"can't compare {a.dtype} with {b.dtype}")
    x, y = ordered(a), ordered(b)
    low, high = np.minimum(x, y), np.maximum(x, y)
    distance = high - low
    distance[distance < 0] = UNCOMPARABLE - 1  # f64 of opposite signs
    if signed_zero:
        distance[(x == 0) & (y == 0) & (bits_of(a) != bits_of(b))] = 1
    a_nan, b_nan = np.isnan(a), np.isnan(b)
    distance[a_nan | b_nan] = UNCOMPARABLE
    distance[a_nan & b_nan] = 0
    return distance


def ulp_size(magnitude: NDArray[np.float64], dtype: DType) -> NDArray[np.float64]:
    """The gap between neighbours of `dtype` at a finite magnitude, as f64."""
    least = dtype.format.least_exponent
    _, exponent = np.frexp(magnitude)
    exponent = np.where(magnitude == 0, least, exponent)
    return np.ldexp(1.0, np.maximum(exponent - 1, least) - dtype.mantissa)
