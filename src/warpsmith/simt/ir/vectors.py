"""What ops on vectors in registers do in the simulator.  A vector value is an array of threads by lanes."""

from __future__ import annotations

import numpy as np

from warpsmith.arrays import Array
from warpsmith.errors import SimulationError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.types import Type, VectorType, numpy_dtype
from warpsmith.ir.dialects import vector
from warpsmith.simt.ir.interpreter import Frame, Handler, Interpreter

__all__ = ["VECTORS", "bitcast", "extract_lane", "insert_lane", "lanes_of", "shuffle_lanes"]


def lanes_of(type: Type) -> int:
    """How many lanes a vector type has."""
    if not isinstance(type, VectorType):
        raise SimulationError(f"{type} isn't a vector")
    return type.elements


def integers(op: Operation, name: str) -> tuple[int, ...]:
    """An attribute that lists integers."""
    found = op.attributes[name]
    if isinstance(found, at.DenseArrayAttr):
        return found.values
    if isinstance(found, at.ArrayAttr):
        return tuple(each.value for each in found.items if isinstance(each, at.IntegerAttr))
    raise SimulationError(f"{op.name}: '{name}' is no list of integers")


def extract_lane(source: Array, position: Array) -> Array:
    """Each thread's lane at its position."""
    threads = max(source.shape[0], position.shape[0])
    rows = np.arange(threads, dtype=np.int64) * (source.shape[0] > 1)
    return source[rows, np.broadcast_to(position, (threads,))]


def insert_lane(value: Array, dest: Array, position: Array) -> Array:
    """Each thread's vector with the lane at its position replaced."""
    threads = max(value.shape[0], dest.shape[0], position.shape[0])
    copy = np.array(np.broadcast_to(dest, (threads, *dest.shape[1:])))
    copy[np.arange(threads), np.broadcast_to(position, (threads,))] = value
    return copy


def shuffle_lanes(first: Array, second: Array, mask: tuple[int, ...]) -> Array:
    """Lanes of two vectors, numbered through; a negative number leaves a lane open (here its first)."""
    threads = max(first.shape[0], second.shape[0])
    both = [np.broadcast_to(v, (threads, v.shape[1])) for v in (first, second)]
    return np.concatenate(both, axis=1)[:, [max(lane, 0) for lane in mask]]


def bitcast(op: Operation, value: Array) -> Array:
    """The same bits as another vector; i1 lanes are single bits, the first the lowest."""
    type = op.results[0].type
    value = np.ascontiguousarray(value)
    if value.dtype == np.bool_ and numpy_dtype(type) != np.bool_:
        value = np.packbits(value, axis=-1, bitorder="little")
    if numpy_dtype(type) == np.bool_ and value.dtype != np.bool_:
        bits = np.unpackbits(value.view(np.uint8), axis=-1, bitorder="little")
        return bits[..., : lanes_of(type)].astype(np.bool_)
    return value.view(numpy_dtype(type))


def _position(frame: Frame, op: Operation, first: int) -> Array:
    static = integers(op, "static_position")
    return frame.array(op.operands[first]) if static[0] == vector.DYNAMIC else np.array([static[0]])


def _extract(_: Interpreter, frame: Frame, op: Operation) -> None:
    frame[op.result] = extract_lane(frame.array(op.operands[0]), _position(frame, op, 1))


def _insert(_: Interpreter, frame: Frame, op: Operation) -> None:
    value, dest = (frame.array(v) for v in op.operands[:2])
    frame[op.result] = insert_lane(value, dest, _position(frame, op, 2))


def _broadcast(_: Interpreter, frame: Frame, op: Operation) -> None:
    value = frame.array(op.operands[0])
    frame[op.result] = np.broadcast_to(
        value if value.ndim > 1 else value[:, None], (value.shape[0], lanes_of(op.result.type))
    )


def _step(_: Interpreter, frame: Frame, op: Operation) -> None:
    frame[op.result] = np.arange(lanes_of(op.result.type), dtype=numpy_dtype(op.result.type))[None]


def _create_mask(_: Interpreter, frame: Frame, op: Operation) -> None:
    frame[op.result] = np.arange(lanes_of(op.result.type)) < frame.array(op.operands[0])[:, None]


def _shuffle(_: Interpreter, frame: Frame, op: Operation) -> None:
    first, second = (frame.array(v) for v in op.operands)
    frame[op.result] = shuffle_lanes(first, second, integers(op, "mask"))


def compressed_lanes(value: Array, mask: Array) -> Array:
    """The lanes in which the mask holds, side by side; those that it leaves out come after them."""
    value, mask = np.broadcast_arrays(value, mask)
    return np.take_along_axis(value, np.argsort(~mask, axis=-1, kind="stable"), axis=-1)


def _compress(_: Interpreter, frame: Frame, op: Operation) -> None:
    frame[op.result] = compressed_lanes(*(frame.array(v) for v in op.operands))


def _bitcast(_: Interpreter, frame: Frame, op: Operation) -> None:
    frame[op.result] = bitcast(op, frame.array(op.operands[0]))


def _from_elements(_: Interpreter, frame: Frame, op: Operation) -> None:
    frame[op.result] = np.stack(np.broadcast_arrays(*(frame.array(v) for v in op.operands)), axis=-1)


def _extract_slice(_: Interpreter, frame: Frame, op: Operation) -> None:
    (start,), (size,) = integers(op, "offsets"), integers(op, "sizes")
    frame[op.result] = frame.array(op.operands[0])[:, start : start + size]


def _insert_slice(_: Interpreter, frame: Frame, op: Operation) -> None:
    value, dest = (frame.array(v) for v in op.operands)
    (start,) = integers(op, "offsets")
    copy = np.array(np.broadcast_to(dest, (max(value.shape[0], dest.shape[0]), dest.shape[1])))
    copy[:, start : start + value.shape[1]] = value
    frame[op.result] = copy


VECTORS: dict[str, Handler] = {
    "vector.extract": _extract,
    "vector.insert": _insert,
    "vector.broadcast": _broadcast,
    "vector.step": _step,
    "vector.create_mask": _create_mask,
    "vector.shuffle": _shuffle,
    "xla_cpu.compress": _compress,
    "vector.bitcast": _bitcast,
    "vector.from_elements": _from_elements,
    "vector.extract_strided_slice": _extract_slice,
    "vector.insert_strided_slice": _insert_slice,
}
