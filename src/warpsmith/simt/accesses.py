"""What memory ops do in the simulator: reads and writes of elements and vectors, buffers of the module and the block.

Every active access is checked against the buffer's bounds and the alignment that the op claims.
"""

from __future__ import annotations

import numpy as np

from warpsmith.errors import SimulationError
from warpsmith.ir import attributes as at
from warpsmith.ir.core import Operation
from warpsmith.ir.dialects.semantics import as_unsigned
from warpsmith.ir.types import MemRefType, ShapedType, TensorType, VectorType, numpy_dtype
from warpsmith.simt.interpreter import Frame, Handler, Interpreter
from warpsmith.simt.memory import (
    Array,
    Buffer,
    check_alignment,
    gather,
    linear_index,
    scatter,
    shared_buffer,
    where_from,
)

__all__ = ["ACCESSES", "constant", "positions"]


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


def _lanes(type: object) -> int:
    if not isinstance(type, VectorType):
        raise SimulationError(f"{type} isn't a vector")
    return type.elements


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
    if buffer.copies > 1:
        where = where + interpreter.machine.block_of(frame.threads) * buffer.size
    return where


# ------------------------------------------------------------------------------------------------------------- elements
def _extract(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    where = positions(interpreter, frame, op, 0, slice(1, None), frame.mask)
    frame[op.result] = gather(frame.buffer(op.operands[0]), where)


def _insert(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    where = positions(interpreter, frame, op, 1, slice(2, None), frame.mask)
    buffer = frame.buffer(op.operands[1])
    scatter(buffer, where, frame.array(op.operands[0]), frame.mask)
    for result in op.results:
        frame[result] = buffer


def _predicated_insert(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    active = frame.active(frame.array(op.operands[-1]))
    where = positions(interpreter, frame, op, 1, slice(2, -1), active)
    buffer = frame.buffer(op.operands[1])
    scatter(buffer, where, frame.array(op.operands[0]), active)
    frame[op.result] = buffer


def _predicated_extract(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    condition, fallback = frame.array(op.operands[-2]), frame.array(op.operands[-1])
    where = positions(interpreter, frame, op, 0, slice(1, -2), frame.active(condition))
    frame[op.result] = np.where(condition, gather(frame.buffer(op.operands[0]), where), fallback)


# -------------------------------------------------------------------------------------------------------------- vectors
def _vector_read(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    lanes = _lanes(op.result.type)
    rank = _shaped(op.operands[0].type).rank
    where = positions(interpreter, frame, op, 0, slice(1, 1 + rank), frame.mask, lanes)
    frame[op.result] = gather(frame.buffer(op.operands[0]), where[:, None] + np.arange(lanes))


def _vector_write(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    value = frame.array(op.operands[0])
    lanes = _lanes(op.operands[0].type)
    rank = _shaped(op.operands[1].type).rank
    where = positions(interpreter, frame, op, 1, slice(2, 2 + rank), frame.mask, lanes)
    buffer = frame.buffer(op.operands[1])
    scatter(buffer, where[:, None] + np.arange(lanes), value, None if frame.mask is None else frame.mask[:, None])
    for result in op.results:
        frame[result] = buffer


def _masked_positions(frame: Frame, op: Operation, start: Array, offsets: Array, mask: Array) -> tuple[Array, Array]:
    """Positions of all lanes and which are active; SimulationError when an active one is outside."""
    size = _shaped(op.operands[0].type).elements
    where, mask = np.broadcast_arrays(start[:, None] + offsets, mask)
    active = mask if frame.mask is None else mask & frame.mask[:, None]
    outside = active & ((where < 0) | (where >= size))
    if outside.any():
        place = int(np.broadcast_to(where, outside.shape)[outside][0])
        raise SimulationError(f"{op.name} at index {place} of a buffer of {size} elements{where_from(op)}")
    return np.clip(where, 0, max(size - 1, 0)), active


def _masked_load(_: Interpreter, frame: Frame, op: Operation) -> None:
    start, mask, fallback = (frame.array(v) for v in op.operands[1:])
    where, active = _masked_positions(frame, op, start, np.arange(_lanes(op.result.type)), mask)
    frame[op.result] = np.where(active, gather(frame.buffer(op.operands[0]), where), fallback)


def _masked_store(_: Interpreter, frame: Frame, op: Operation) -> None:
    start, mask, value = (frame.array(v) for v in op.operands[1:])
    where, active = _masked_positions(frame, op, start, np.arange(_lanes(op.operands[3].type)), mask)
    scatter(frame.buffer(op.operands[0]), where, value, active)


def _gather(_: Interpreter, frame: Frame, op: Operation) -> None:
    start, indices, mask, fallback = (frame.array(v) for v in op.operands[1:])
    where, active = _masked_positions(frame, op, start, indices, mask)
    frame[op.result] = np.where(active, gather(frame.buffer(op.operands[0]), where), fallback)


def _lookup(_: Interpreter, frame: Frame, op: Operation) -> None:
    value = np.ascontiguousarray(frame.array(op.operands[1]))
    bits = as_unsigned(value.view(f"i{value.dtype.itemsize}")).astype(np.int64)
    frame[op.result] = gather(frame.buffer(op.operands[0]), bits)


# -------------------------------------------------------------------------------------------------------------- buffers
def _allocate_shared(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    frame[op.result] = shared_buffer(_shaped(op.result.type), interpreter.machine.blocks, op.result.name or "shared")


def _get_global(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    frame[op.result] = interpreter.machine.globals[op.str_attr("name")]


ACCESSES: dict[str, Handler] = {
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
