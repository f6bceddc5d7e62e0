"""What ops that concern a thread's place, or other threads, do in the simulator: ids, maps, barriers, shuffles."""

from __future__ import annotations

import numpy as np

from warpsmith.arrays import Array
from warpsmith.errors import SimulationError
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.dialects import gpu
from warpsmith.simt.ir.interpreter import Frame, Handler, Interpreter
from warpsmith.simt.ir.memory import Datum
from warpsmith.simt.ir.observe import barrier, shuffle

__all__ = ["WARPS", "exchange", "lanes", "thread_ids"]


def thread_ids(interpreter: Interpreter, frame: Frame, name: str) -> Array:
    """One of the launch's ids (`thread_id.x`...), for each thread of the frame."""
    array = interpreter.machine.ids.get(name)
    if array is None:
        raise SimulationError(f"{name} has no value in this launch")
    if array.shape[0] in (1, frame.threads):
        return array
    return np.repeat(array, frame.threads // array.shape[0], axis=0)


def _id(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    name = op.name.partition(".")[2]
    frame[op.result] = thread_ids(interpreter, frame, f"{name}.{gpu.dimension(op)}")


def _lane_id(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    frame[op.result] = lanes(interpreter, frame)


def lanes(interpreter: Interpreter, frame: Frame) -> Array:
    """Each thread's place in its warp."""
    machine = interpreter.machine
    return np.arange(frame.threads) % machine.threads_per_block % machine.warp_size


def _apply_indexing(_: Interpreter, frame: Frame, op: Operation) -> None:
    map = gpu.map_of(op)
    operands = [frame.array(v) for v in op.operands]
    split = len(map.dim_vars)
    for result, value in zip(op.results, map.evaluate(operands[:split], operands[split:]), strict=True):
        frame[result] = np.atleast_1d(np.asarray(value, np.int64))


def _forward(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    """A barrier, which hands on its operands."""
    barrier(interpreter, frame, op)
    for operand, result in zip(op.operands, op.results, strict=False):
        frame[result] = frame[operand]


def exchange(
    interpreter: Interpreter, frame: Frame, op: Operation, value: Array, offset: Array, kind: str
) -> tuple[Array, Array]:
    """Each thread's value from the lane that `offset` names, and whether there is one; else its own.

    `kind` is `xor` (lane ^ offset), `up` (lane - offset), `down` (lane + offset) or `idx` (lane number offset).
    """
    shuffle(interpreter, frame, op)
    threads, size = frame.threads, interpreter.machine.warp_size
    lane = lanes(interpreter, frame)
    others = {"xor": lane ^ offset, "up": lane - offset, "down": lane + offset, "idx": 0 * lane + offset}
    source = others[kind]
    first = np.arange(threads) - lane
    inside = np.arange(threads) % interpreter.machine.threads_per_block - lane + source
    valid = (source >= 0) & (source < size) & (inside < interpreter.machine.threads_per_block)
    value = np.broadcast_to(value, (threads, *value.shape[1:]))
    taken = value[np.where(valid, first + source, np.arange(threads))]
    return taken, valid


def _shuffle(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    kind = gpu.shuffle_mode(op)
    if kind not in ("xor", "up", "down", "idx"):
        raise SimulationError(f"{op.name} of mode '{kind}'")
    value, offset = (frame.array(v) for v in op.operands[:2])
    frame.bind(op.results, exchange(interpreter, frame, op, value, offset.astype(np.int64), kind))


def _shuffle_reduce(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    """xla_gpu.shuffle_reduce: combine with the lane `distance` further on, for distances max, max/2, ..., 1."""
    combiner = interpreter.machine.function(op.str_attr("combiner"))
    values: list[Datum] = [frame[v] for v in op.operands]
    distance = op.int_attr("max_distance")
    while distance > 0:
        others: list[Datum] = [
            exchange(interpreter, frame, op, v, np.array([distance]), "down")[0]
            for v in values
            if isinstance(v, np.ndarray)
        ]
        values = interpreter.call(frame, combiner, [*values, *others])
        distance //= 2
    frame.bind(op.results, values)


WARPS: dict[str, Handler] = {
    "gpu.thread_id": _id,
    "gpu.block_id": _id,
    "gpu.block_dim": _id,
    "gpu.grid_dim": _id,
    "gpu.lane_id": _lane_id,
    "xla_gpu.workgroup_id": _id,
    "xla_gpu.apply_indexing": _apply_indexing,
    "xla_gpu.sync_threads": _forward,
    "gpu.barrier": _forward,
    "gpu.shuffle": _shuffle,
    "xla_gpu.shuffle_reduce": _shuffle_reduce,
}
