"""What tile programs use beside the fusions' ops: private memory, barriers of part of a block, an elected lane, copies
in flight, and a warp's tiles and matrix products.  A private memory has one copy a thread.
"""

from __future__ import annotations

import numpy as np

from warpsmith.arrays import Array
from warpsmith.errors import SimulationError
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.types import MemRefType, numpy_dtype
from warpsmith.ir.dialects.tile import PRIVATE
from warpsmith.simt.core import async_copies
from warpsmith.simt.core.matrix import (
    FLOPS,
    ROW,
    by_thread,
    by_warp,
    gather_tiles,
    multiply,
    providers,
    scatter_tiles,
)
from warpsmith.simt.core.tracked import Copy, End, Tracked
from warpsmith.simt.ir.accesses import positions
from warpsmith.simt.ir.interpreter import Frame, Handler, Interpreter
from warpsmith.simt.ir.memory import AccessFault, Buffer, output_buffer, shared_buffer, track_shared
from warpsmith.simt.ir.observe import Elements, barrier, matrix, part_barrier, saw, whole_warp
from warpsmith.simt.ir.vectors import lanes_of
from warpsmith.simt.ir.warps import lanes

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


# ------------------------------------------------------------------------------------------------------------- meetings
def _warp_barrier(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    watch = interpreter.machine.watch
    if watch is not None:
        watch.warp_barrier(frame.mask)


def _named_barrier(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    number, count = (frame.array(v) for v in op.operands)
    if bool((count == interpreter.machine.threads_per_block).all()):
        barrier(interpreter, frame, op)
    else:
        part_barrier(interpreter, frame, op, number, count)


def _elect(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    """The lowest active lane of each warp, which must be here as a whole."""
    whole_warp(interpreter, frame, op)
    machine = interpreter.machine
    active = np.ones(frame.threads, np.bool_) if frame.mask is None else np.broadcast_to(frame.mask, (frame.threads,))
    thread = np.arange(frame.threads)
    block, own = np.divmod(thread, machine.threads_per_block)
    warp = block * -(-machine.threads_per_block // machine.warp_size) + own // machine.warp_size
    first = np.full(int(warp.max()) + 1, frame.threads)
    np.minimum.at(first, warp[active], thread[active])
    frame[op.result] = first[warp] == thread


# --------------------------------------------------------------------------------------------------------------- copies
def _bytes(interpreter: Interpreter, frame: Frame, op: Operation, base: int, width: int, active: Array | None) -> Array:
    """The byte at which each thread's access of `width` bytes begins, in bounds and aligned where it's active."""
    buffer = frame.buffer(op.operands[base])
    item = buffer.data.itemsize
    where = positions(interpreter, frame, op, base, slice(base + 1, base + 2), active, max(1, width // item)) * item
    where = np.broadcast_to(where, (frame.threads,))
    own = where % (buffer.size * item) if buffer.copies > 1 else where
    bad = own % width != 0
    if active is not None:
        bad = bad & active
    if bad.any():
        thread = int(bad.argmax())
        byte = int(own[thread])
        cause = f"{op.name} of {width} bytes at byte {byte} of {buffer.name}, which isn't a multiple of {width}"
        raise AccessFault("misaligned", cause, thread, byte)
    return where


def _async_copy(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    machine, size = interpreter.machine, op.int_attr("bytes")
    threads = np.arange(frame.threads) if frame.mask is None else np.flatnonzero(frame.mask)

    def end(base: int) -> End:
        buffer = frame.buffer(op.operands[base])
        return End(buffer.bytes, _bytes(interpreter, frame, op, base, size, frame.mask)[threads], buffer.tracked)

    copy = Copy(op, threads, source=end(2), target=end(0), size=size, filled=size)
    async_copies.start(machine.copies, machine.watch, copy)


def _commit(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    interpreter.machine.copies.commit(frame.mask)


def _wait(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    machine = interpreter.machine
    async_copies.wait(machine.copies, machine.watch, frame.mask, op.int_attr("n"), op)


# ------------------------------------------------------------------------------------------------------------- matrices
def _rows(interpreter: Interpreter, frame: Frame, op: Operation, base: int) -> tuple[Buffer, Array, Array]:
    """The bytes at which rows of tiles begin, and which threads give one."""
    matrix(interpreter, frame, op)
    giving = frame.active(providers(lanes(interpreter, frame), op.int_attr("num_tiles")))
    return frame.buffer(op.operands[base]), _bytes(interpreter, frame, op, base, ROW, giving), giving


def _load_matrix(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    tiles, per_block = op.int_attr("num_tiles"), interpreter.machine.threads_per_block
    buffer, where, giving = _rows(interpreter, frame, op, 0)
    saw(interpreter, frame, op, Elements("load", buffer, where, ROW, giving, whole=True))
    rows = np.zeros((frame.threads, ROW), np.uint8)
    rows[giving] = buffer.bytes[where[giving][:, None] + np.arange(ROW)]
    held = gather_tiles(by_warp(rows.view(np.uint16), per_block), tiles, transpose=bool(op.int_attr("transpose")))
    frame[op.result] = by_thread(held, per_block).view(numpy_dtype(op.result.type))


def _store_matrix(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    tiles, per_block = op.int_attr("num_tiles"), interpreter.machine.threads_per_block
    buffer, where, giving = _rows(interpreter, frame, op, 1)
    held = by_warp(_fragment(frame, op, 0).view(np.uint16), per_block)
    rows = by_thread(scatter_tiles(held, tiles, transpose=bool(op.int_attr("transpose"))), per_block)
    saw(interpreter, frame, op, Elements("store", buffer, where, ROW, giving, rows, whole=True))
    target = buffer.bytes
    target[where[giving][:, None] + np.arange(ROW)] = rows[giving].view(np.uint8)


def _fragment(frame: Frame, op: Operation, position: int) -> Array:
    """A vector operand, a row a thread."""
    value = frame.array(op.operands[position])
    return np.ascontiguousarray(np.broadcast_to(value, (frame.threads, lanes_of(op.operands[position].type))))


def _multiply(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    machine = interpreter.machine
    matrix(interpreter, frame, op)
    if machine.watch is not None:
        machine.watch.multiplied(frame.mask, FLOPS)
    parts = (by_warp(_fragment(frame, op, i), machine.threads_per_block) for i in range(3))
    frame[op.result] = by_thread(multiply(*parts), machine.threads_per_block)


NVGPU: dict[str, Handler] = {
    "memref.alloca": _alloca,
    "nvvm.bar.warp.sync": _warp_barrier,
    "nvvm.barrier": _named_barrier,
    "nvvm.elect.sync": _elect,
    "nvgpu.device_async_copy": _async_copy,
    "nvvm.cp.async.commit.group": _commit,
    "nvvm.cp.async.wait.group": _wait,
    "nvgpu.ldmatrix": _load_matrix,
    "nvgpu.stmatrix": _store_matrix,
    "nvgpu.mma.sync": _multiply,
}
