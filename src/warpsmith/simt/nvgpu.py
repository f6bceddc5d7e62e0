"""What tile programs use beside the fusions' ops: private memory, barriers of part of a block, an elected lane.

A private memory has one copy a thread.  A named barrier of 128 threads orders them as a block's barrier does where the
block is no larger; in a larger one only each warp's own accesses are taken as ordered by it.
"""

from __future__ import annotations

import numpy as np

from warpsmith.errors import SimulationError
from warpsmith.ir.core import Operation
from warpsmith.ir.dialects.tile import PRIVATE
from warpsmith.ir.types import MemRefType, numpy_dtype
from warpsmith.simt.interpreter import Frame, Handler, Interpreter
from warpsmith.simt.memory import output_buffer, shared_buffer, track_shared
from warpsmith.simt.observe import barrier
from warpsmith.simt.tracked import Tracked

__all__ = ["NVGPU"]


def _alloca(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    """Registers of each thread (space 5); else memory of each block."""
    type = op.result.type
    if not isinstance(type, MemRefType):
        raise SimulationError(f"{op.name} of {type}")
    machine, name = interpreter.machine, op.result.name or "private"
    if type.space != PRIVATE:
        buffer = shared_buffer(type, machine.blocks, op.result.name or "shared")
        frame[op.result] = track_shared(buffer) if machine.watch is not None else buffer
        return
    threads = machine.blocks * machine.threads_per_block
    buffer = output_buffer(name, type.elements * threads, numpy_dtype(type))
    buffer.size, buffer.copies = type.elements, threads
    if machine.watch is not None:
        size = buffer.size * buffer.data.itemsize
        buffer.tracked = Tracked(name, "local", buffer.bytes, size, fresh=True, item=buffer.data.itemsize)
    frame[op.result] = buffer


def _warp_barrier(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    watch = interpreter.machine.watch
    if watch is not None:
        watch.warp_barrier(frame.mask)


def _named_barrier(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    count = frame.array(op.operands[1])
    if bool((count == interpreter.machine.threads_per_block).all()):
        barrier(interpreter, frame, op)
    else:
        _warp_barrier(interpreter, frame, op)


def _elect(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    """The lowest active lane of each warp."""
    machine = interpreter.machine
    active = np.ones(frame.threads, np.bool_) if frame.mask is None else np.broadcast_to(frame.mask, (frame.threads,))
    thread = np.arange(frame.threads)
    warp = thread // machine.threads_per_block * 64 + thread % machine.threads_per_block // machine.warp_size
    first = np.full(int(warp.max()) + 1, frame.threads)
    np.minimum.at(first, warp[active], thread[active])
    frame[op.result] = first[warp] == thread


NVGPU: dict[str, Handler] = {
    "memref.alloca": _alloca,
    "nvvm.bar.warp.sync": _warp_barrier,
    "nvvm.barrier": _named_barrier,
    "nvvm.elect.sync": _elect,
}
