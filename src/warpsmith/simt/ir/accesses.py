"""What memory ops do in the simulator: reads and writes of elements and vectors, buffers of the module and the block.

Every active access is checked against the buffer's bounds and the alignment that the op claims.
"""

from __future__ import annotations

import numpy as np

from warpsmith.arrays import Array
from warpsmith.errors import SimulationError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.types import MemRefType, ShapedType, TensorType, numpy_dtype
from warpsmith.ir.dialects.semantics import as_unsigned
from warpsmith.simt.ir.interpreter import Frame, Handler, Interpreter
from warpsmith.simt.ir.memory import (
    AccessFault,
    Buffer,
    check_alignment,
    gather,
    linear_index,
    scatter,
    shared_buffer,
    track_shared,
    where_from,
)
from warpsmith.simt.ir.observe import Elements, saw, saw_lanes
from warpsmith.simt.ir.vectors import lanes_of

__all__ = ["ACCESSES", "constant", "no_effect", "positions"]


def constant(_: Interpreter, frame: Frame, op: Operation) -> None:
    """A scalar, a vector, or a tensor in memory order."""
    value, type = op.attributes["value"], op.result.type
    if isinstance(value, at.DenseAttr):
        if isinstance(type, TensorType):
            frame[op.result] = Buffer("constant", np.ascontiguousarray(_in_layout(value.array, type)), type.elements)
        else:
            frame[op.result] = value.array[None]
    elif isinstance(value, at.FloatAttr):
        frame[op.result] = np.array([value.scalar])
    elif isinstance(value, at.IntegerAttr):
        frame[op.result] = np.array([value.value]).astype(numpy_dtype(type))
    else:
        raise SimulationError(f"{op.name} of '{value}'{where_from(op)}")


def _in_layout(array: Array, type: TensorType) -> Array:
    order = type.minor_to_major
    return (array if order is None else array.transpose(order[::-1])).reshape(-1)


def _shaped(type: object) -> ShapedType:
    if not isinstance(type, (TensorType, MemRefType)):
        raise SimulationError(f"{type} isn't memory")
    return type


def positions(
    interpreter: Interpreter,
    frame: Frame,
    op: Operation,
    base: int,
    indices: slice,
    active: Array | None,
    lanes: int = 1,
) -> Array:
    """Where in the buffer's data each thread's (first) element is."""
    buffer = frame.buffer(op.operands[base])
    arrays = [frame.array(v) for v in op.operands[indices]]
    type = _shaped(op.operands[base].type)
    if not arrays and type.rank == 0:
        where: Array = np.zeros(1, np.int64)
    else:
        where = linear_index(op, type, arrays, active, lanes)
    check_alignment(op, where, buffer.data.itemsize, active)
    return where + _copy_start(frame, buffer)


def _copy_start(frame: Frame, buffer: Buffer) -> Array:
    """Where in the data each thread's copy of a buffer begins: its block's of shared memory, its own of registers."""
    if buffer.copies <= 1:
        return np.zeros(1, np.int64)
    return np.arange(frame.threads) // max(frame.threads // buffer.copies, 1) * buffer.size


# ------------------------------------------------------------------------------------------------------------- elements
def _extract(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    where = positions(interpreter, frame, op, 0, slice(1, None), frame.mask)
    buffer = frame.buffer(op.operands[0])
    saw(interpreter, frame, op, _elements("load", buffer, where, frame.mask))
    frame[op.result] = gather(buffer, where)


def _elements(
    kind: str, buffer: Buffer, where: Array, active: Array | None, value: Array | None = None, lanes: int = 1
) -> Elements:
    """An access of `lanes` elements from each thread's position on."""
    size = buffer.data.itemsize
    return Elements(kind, buffer, where * size, lanes * size, active, value)


def _insert(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    where = positions(interpreter, frame, op, 1, slice(2, None), frame.mask)
    buffer, value = frame.buffer(op.operands[1]), frame.array(op.operands[0])
    saw(interpreter, frame, op, _elements("store", buffer, where, frame.mask, value))
    scatter(buffer, where, value, frame.mask)
    for result in op.results:
        frame[result] = buffer


def _predicated_insert(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    active = frame.active(frame.array(op.operands[-1]))
    where = positions(interpreter, frame, op, 1, slice(2, -1), active)
    buffer, value = frame.buffer(op.operands[1]), frame.array(op.operands[0])
    saw(interpreter, frame, op, _elements("store", buffer, where, active, value))
    scatter(buffer, where, value, active)
    frame[op.result] = buffer


def _predicated_extract(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    condition, fallback = frame.array(op.operands[-2]), frame.array(op.operands[-1])
    active, buffer = frame.active(condition), frame.buffer(op.operands[0])
    where = positions(interpreter, frame, op, 0, slice(1, -2), active)
    saw(interpreter, frame, op, _elements("load", buffer, where, active))
    frame[op.result] = np.where(condition, gather(buffer, where), fallback)


# -------------------------------------------------------------------------------------------------------------- vectors
def _vector_read(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    lanes = lanes_of(op.result.type)
    rank = _shaped(op.operands[0].type).rank
    where = positions(interpreter, frame, op, 0, slice(1, 1 + rank), frame.mask, lanes)
    buffer = frame.buffer(op.operands[0])
    saw(interpreter, frame, op, _elements("load", buffer, where, frame.mask, lanes=lanes))
    frame[op.result] = gather(buffer, where[:, None] + np.arange(lanes))


def _vector_write(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    value = frame.array(op.operands[0])
    lanes = lanes_of(op.operands[0].type)
    rank = _shaped(op.operands[1].type).rank
    where = positions(interpreter, frame, op, 1, slice(2, 2 + rank), frame.mask, lanes)
    buffer = frame.buffer(op.operands[1])
    saw(interpreter, frame, op, _elements("store", buffer, where, frame.mask, value, lanes))
    scatter(buffer, where[:, None] + np.arange(lanes), value, None if frame.mask is None else frame.mask[:, None])
    for result in op.results:
        frame[result] = buffer


def _masked_positions(frame: Frame, op: Operation, start: Array, offsets: Array, mask: Array) -> tuple[Array, Array]:
    """Positions of all lanes and which are active; AccessFault when an active one is outside."""
    size = _shaped(op.operands[0].type).elements
    where, mask = np.broadcast_arrays(start[:, None] + offsets, mask)
    active = mask if frame.mask is None else mask & frame.mask[:, None]
    outside = active & ((where < 0) | (where >= size))
    if outside.any():
        thread, place = int(np.argwhere(outside)[0][0]), int(where[outside][0])
        raise AccessFault("out-of-bounds", f"{op.name} at index {place} of a buffer of {size} elements", thread)
    inside = np.clip(where, 0, max(size - 1, 0))
    return inside + _copy_start(frame, frame.buffer(op.operands[0]))[:, None], active


def _masked_load(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    start, mask, fallback = (frame.array(v) for v in op.operands[1:])
    where, active = _masked_positions(frame, op, start, np.arange(lanes_of(op.result.type)), mask)
    saw_lanes(interpreter, frame, op, _elements("load", frame.buffer(op.operands[0]), where, active))
    frame[op.result] = np.where(active, gather(frame.buffer(op.operands[0]), where), fallback)


def _masked_store(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    start, mask, value = (frame.array(v) for v in op.operands[1:])
    where, active = _masked_positions(frame, op, start, np.arange(lanes_of(op.operands[3].type)), mask)
    saw_lanes(interpreter, frame, op, _elements("store", frame.buffer(op.operands[0]), where, active, value))
    scatter(frame.buffer(op.operands[0]), where, value, active)


def _gather(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    start, indices, mask, fallback = (frame.array(v) for v in op.operands[1:])
    where, active = _masked_positions(frame, op, start, indices, mask)
    saw_lanes(interpreter, frame, op, _elements("load", frame.buffer(op.operands[0]), where, active))
    frame[op.result] = np.where(active, gather(frame.buffer(op.operands[0]), where), fallback)


def _lookup(_: Interpreter, frame: Frame, op: Operation) -> None:
    value = np.ascontiguousarray(frame.array(op.operands[1]))
    bits = as_unsigned(value.view(f"i{value.dtype.itemsize}")).astype(np.int64)
    frame[op.result] = gather(frame.buffer(op.operands[0]), bits)


# -------------------------------------------------------------------------------------------------------------- buffers
def _allocate_shared(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    name = op.result.name or "shared"
    frame[op.result] = track_shared(shared_buffer(_shaped(op.result.type), interpreter.machine.blocks, name))


def _get_global(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    frame[op.result] = interpreter.machine.globals[op.str_attr("name")]


def no_effect(_: Interpreter, _frame: Frame, _op: Operation) -> None:
    """A hint, or an order among threads that run in step."""


ACCESSES: dict[str, Handler] = {
    "xla_cpu.prefetch": no_effect,
    "arith.constant": constant,
    "tensor.extract": _extract,
    "tensor.insert": _insert,
    "memref.load": _extract,
    "memref.store": _insert,
    "xla_gpu.predicated_insert": _predicated_insert,
    "xla_gpu.predicated_extract": _predicated_extract,
    "vector.transfer_read": _vector_read,
    "vector.transfer_write": _vector_write,
    "vector.load": _vector_read,
    "vector.store": _vector_write,
    "vector.maskedload": _masked_load,
    "vector.maskedstore": _masked_store,
    "vector.gather": _gather,
    "xla_cpu.lookup": _lookup,
    "xla_gpu.allocate_shared": _allocate_shared,
    "memref.get_global": _get_global,
}
