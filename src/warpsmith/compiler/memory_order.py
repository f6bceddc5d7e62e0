"""Between arrays in HLO's dims and the flat memory that kernels see.

In: an array, and the shape whose layout orders its memory.  Out: elements in memory order, and back.  A complex number
is two reals in memory.
"""

from __future__ import annotations

import numpy as np

from warpsmith.arrays import Array
from warpsmith.hlo.shapes import Shape

__all__ = ["from_memory", "to_memory"]


def to_memory(array: Array, shape: Shape) -> Array:
    """The elements in memory order, flat."""
    return np.ascontiguousarray(array.transpose(shape.minor_to_major[::-1])).reshape(-1)


def from_memory(data: Array, shape: Shape) -> Array:
    """The array whose elements in memory order are `data`; the inverse of `to_memory`."""
    order = shape.minor_to_major[::-1]
    typed = data if data.dtype == shape.dtype.numpy else data.view(shape.dtype.numpy)
    physical = typed.reshape([shape.dims[d] for d in order])
    return physical.transpose([order.index(d) for d in range(len(order))])
