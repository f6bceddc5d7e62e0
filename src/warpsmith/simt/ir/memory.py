"""Memory as the simulator sees it: buffers of elements, one item an element (sub-byte types aren't packed).

A tensor or memref value in the interpreter is a `Buffer`; an insert or store changes it in place, which is what
destination-passing style means.  Shared memory has one copy a block.  Below `convert-to-llvm` a pointer is a `Pointer`:
a buffer and each thread's (and lane's) distance from its start in bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np

from warpsmith.arrays import Array
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.types import ShapedType, TensorType, numpy_dtype
from warpsmith.simt.core.tracked import Tracked

__all__ = [
    "AccessFault",
    "Buffer",
    "Datum",
    "Pointer",
    "PointerTable",
    "gather",
    "linear_index",
    "scatter",
    "shared_buffer",
]


UNWRITTEN = 0xA5
"""What fresh outputs and shared memory are filled with, so that an element that nobody writes is noticed."""


class AccessFault(Exception):
    """An access that no hardware would do: what is wrong (a code of `results.CODES`, and in words), by which thread of
    the frame, at which byte of the buffer.  The interpreter adds the op.
    """

    def __init__(self, code: str, cause: str, thread: int, byte: int | None = None) -> None:
        super().__init__(cause)
        self.code = code
        self.cause = cause
        self.thread = thread
        self.byte = byte


@dataclass(eq=False, slots=True)
class Buffer:
    """Elements in memory order.  Shared memory has `copies`: element e of block b is `data[b * size + e]`.

    `tracked` is what a watch knows of it.
    """

    name: str
    data: Array
    size: int
    copies: int = 1
    tracked: Tracked | None = None

    @property
    def bytes(self) -> Array:
        """The memory, byte by byte."""
        return self.data.reshape(-1).view(np.uint8)


@dataclass(eq=False, slots=True)
class Pointer:
    """An address: `offset` bytes from the start of `buffer`, one for each thread (and lane)."""

    buffer: Buffer
    offset: Array


@dataclass(eq=False, slots=True)
class PointerTable:
    """A pointer to entry `index` of an array of pointers, such as a CPU kernel's first argument."""

    entries: tuple[Buffer, ...]
    index: int = 0


Datum = Union[Array, Buffer, Pointer, PointerTable, "tuple[Datum, ...]"]
"""What a value is: numbers (threads first), memory, an address, or a struct of these."""


def output_buffer(name: str, elements: int, dtype: np.dtype[Any]) -> Buffer:
    """A fresh output with no element written yet."""
    data = np.zeros(elements, dtype)
    data.view(np.uint8)[...] = UNWRITTEN if dtype.itemsize > 1 or dtype.kind == "i" else 0
    return Buffer(name, data, elements)


def shared_buffer(type: ShapedType, blocks: int, name: str) -> Buffer:
    """Memory for each block of a batch, with nothing written yet."""
    buffer = output_buffer(name, type.elements * blocks, numpy_dtype(type))
    buffer.size, buffer.copies = type.elements, blocks
    return buffer


def track_shared(buffer: Buffer) -> Buffer:
    """Let a watch see a buffer of shared memory."""
    size = buffer.size * buffer.data.itemsize
    buffer.tracked = Tracked(buffer.name, "shared", buffer.bytes, size, fresh=True, item=buffer.data.itemsize)
    return buffer


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


def where_from(op: Operation) -> str:
    """The HLO instructions that an op came from, for messages."""
    return f"; from HLO instruction {', '.join(op.location.names)}" if op.location.names else ""


def linear_index(
    op: Operation, type: ShapedType, indices: Sequence[Array], active: Array | None, lanes: int = 1
) -> Array:
    """Where each thread's element (or first of `lanes`) is; AccessFault when an active one is out of bounds."""
    total: Array = np.zeros(1, np.int64)
    for d, (index, step) in enumerate(zip(indices, strides(type), strict=True)):
        last = type.shape[d] - (lanes if d == type.rank - 1 else 1)
        bad = (index < 0) | (index > last)
        if active is not None:
            bad = bad & active
        if bad.any():
            thread = int(np.flatnonzero(bad)[0])
            value = int(np.broadcast_to(index, bad.shape)[thread])
            cause = f"{op.name} at index {value} of dim {d}, which has {type.shape[d]} elements"
            raise AccessFault("out-of-bounds", cause, thread)
        total = total + np.clip(index, 0, max(last, 0)) * step
    return total


def check_alignment(op: Operation, positions: Array, itemsize: int, active: Array | None) -> None:
    """AccessFault when an active access isn't aligned as the op's attribute `alignment` claims."""
    if "alignment" not in op.attributes:
        return
    alignment = op.int_attr("alignment")
    bad = (positions * itemsize) % alignment != 0
    if active is not None:
        bad = bad & active
    if bad.any():
        thread = int(np.flatnonzero(bad)[0])
        byte = int(np.broadcast_to(positions, bad.shape)[thread]) * itemsize
        raise AccessFault(
            "misaligned", f"{op.name} at byte {byte}, which isn't a multiple of {alignment}", thread, byte
        )


def gather(buffer: Buffer, positions: Array) -> Array:
    """Elements at positions; zeros of a buffer without any (no thread that reads there is active)."""
    return buffer.data[positions] if buffer.data.size else np.zeros(positions.shape, buffer.data.dtype)


def scatter(buffer: Buffer, positions: Array, value: Array, active: Array | None) -> None:
    """Write the active threads' (and lanes') elements; of several at one place the last wins."""
    active = np.ones(1, np.bool_) if active is None else active
    positions, value, active = np.broadcast_arrays(positions, value, active)
    buffer.data[positions[active]] = value[active]
