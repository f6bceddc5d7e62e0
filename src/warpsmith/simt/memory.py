"""Memory as the simulator sees it: buffers of elements, one item an element (sub-byte types aren't packed).

A tensor or memref value in the interpreter is a `Buffer`; an insert or store changes it in place, which is what
destination-passing style means.  Shared memory has one copy a block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from warpsmith.errors import SimulationError
from warpsmith.ir.core import Operation
from warpsmith.ir.types import MemRefType, ShapedType, TensorType, numpy_dtype

__all__ = ["Array", "Buffer", "linear_index", "make_shared"]

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(eq=False, slots=True)
class Buffer:
    """Elements in memory order.  `copies` > 1 for shared memory: element e of block b is `data[b * size + e]`."""

    name: str
    data: Array
    size: int
    copies: int = 1


def make_shared(type: ShapedType, blocks: int, name: str) -> Buffer:
    """Zeroed shared memory for each block of a batch."""
    return Buffer(name, np.zeros(type.elements * blocks, numpy_dtype(type)), type.elements, blocks)


def strides(type: ShapedType) -> list[int]:
    """Elements to the next index in each dim, from the layout."""
    order = type.minor_to_major if isinstance(type, TensorType) and type.minor_to_major is not None else None
    dims = range(type.rank - 1, -1, -1) if order is None else order
    result = [0] * type.rank
    step = 1
    for d in dims:
        result[d] = step
        step *= type.shape[d]
    return result


def linear_index(op: Operation, type: ShapedType, indices: list[Array], active: Array | None, lanes: int = 1) -> Array:
    """The position of each thread's element (or first of `lanes`); SimulationError when an active one is out of bounds."""
    if not indices:
        return np.zeros(1, np.int64)
    total: Array = np.zeros(1, np.int64)
    for d, (index, step) in enumerate(zip(indices, strides(type), strict=True)):
        last = type.shape[d] - (lanes if d == type.rank - 1 else 1)
        bad = (index < 0) | (index > last)
        if active is not None:
            bad = bad & active
        if bad.any():
            thread = int(np.flatnonzero(np.broadcast_to(bad, bad.shape))[0])
            value = int(np.broadcast_to(index, bad.shape)[thread])
            raise SimulationError(
                f"{op.name} at index {value} of dim {d}, which has {type.shape[d]} elements (thread {thread} of the batch)"
                + (f"; from HLO instruction {', '.join(op.location.names)}" if op.location.names else "")
            )
        total = total + np.clip(index, 0, max(last, 0)) * step
    return total


def is_buffer_type(type: object) -> bool:
    return isinstance(type, (TensorType, MemRefType))
