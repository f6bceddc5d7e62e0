"""The lockstep interpreter: every op runs once for all threads, under a mask of the active ones.

A value is an array whose first axis is the threads (length 1 where all threads agree), followed by the vector's own; a
tensor or memref is a `Buffer`.  A branch runs both sides under masks; a loop runs until its last thread is done.

A loop whose iterations don't depend on each other (it carries nothing but buffers, and reads none that it writes) runs
with its iterations as more threads: `Frame` repeats the outer values when they are asked for.  So a CPU kernel, a few
threads with long loops, is as quick here as a GPU kernel.

Ops are handled by `simt/handlers.py`; elementwise ones by the numpy function of their row, which the folder shares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Union

import numpy as np

from warpsmith.errors import SimulationError
from warpsmith.indexing import IndexingMap
from warpsmith.ir.core import Block, Operation, Trait, Value
from warpsmith.ir.dialects import func
from warpsmith.simt.memory import Array, Buffer

__all__ = ["Frame", "Interpreter", "Machine"]

Datum = Union[Array, Buffer]

MAX_LANES = 1 << 20  # threads times unrolled iterations


class Frame:
    """Values and mask of some threads.  A frame made by `spread` has `factor` threads for each one of its parent."""

    __slots__ = ("factor", "mask", "parent", "threads", "values")

    def __init__(self, threads: int, parent: Frame | None = None, factor: int = 1) -> None:
        self.values: dict[Value, Datum] = {}
        self.threads = threads
        self.parent = parent
        self.factor = factor
        self.mask: Array | None = None if parent is None or parent.mask is None else self._repeat(parent.mask)

    def _repeat(self, array: Array) -> Array:
        return array if array.shape[0] == 1 else np.repeat(array, self.factor, axis=0)

    def __getitem__(self, value: Value) -> Datum:
        found = self.values.get(value)
        if found is None:
            if self.parent is None:
                raise SimulationError(f"a value of type {value.type} is used before it has been computed")
            found = self.parent[value]
            if isinstance(found, np.ndarray):
                found = self._repeat(found)
            self.values[value] = found
        return found

    def array(self, value: Value) -> Array:
        found = self[value]
        assert isinstance(found, np.ndarray)
        return found

    def buffer(self, value: Value) -> Buffer:
        found = self[value]
        assert isinstance(found, Buffer)
        return found

    def __setitem__(self, value: Value, datum: Datum) -> None:
        self.values[value] = datum

    def masked(self, condition: Array) -> Array:
        return condition if self.mask is None else self.mask & condition


class Machine:
    """What the threads of a batch share: ids, warp size, module-level buffers, the module's functions."""

    __slots__ = ("blocks", "functions", "globals", "ids", "threads_per_block", "warp_size")

    def __init__(
        self,
        module: Operation,
        ids: dict[str, Array],
        blocks: int,
        threads_per_block: int,
        global_buffers: dict[str, Buffer],
        warp_size: int = 32,
    ) -> None:
        self.ids = ids
        self.blocks = blocks
        self.threads_per_block = threads_per_block
        self.warp_size = warp_size
        self.globals = global_buffers
        self.functions = {op.str_attr("sym_name"): op for op in func.functions(module)}

    def block_offsets(self, threads: int) -> Array:
        """Each thread's block within the batch; `threads` may be a multiple of the batch's."""
        per_block = threads // self.blocks
        return np.arange(threads) // max(per_block, 1)


Handler = Callable[["Interpreter", Frame, Operation], None]


class Interpreter:
    """Runs functions of one module over a `Machine`."""

    def __init__(self, machine: Machine) -> None:
        from warpsmith.simt.handlers import HANDLERS  # the handlers are written in terms of this class

        self.machine = machine
        self.handlers = HANDLERS

    def call(self, frame: Frame, function: Operation, arguments: Sequence[Datum]) -> list[Datum]:
        """Run a function with the frame's threads and mask."""
        callee = Frame(frame.threads)
        callee.mask = frame.mask
        for argument, datum in zip(function.body.args, arguments, strict=True):
            callee[argument] = datum
        return self.block(callee, function.body)

    def block(self, frame: Frame, block: Block) -> list[Datum]:
        """Run a block; the operands of its terminator."""
        for op in block:
            if op.row.traits & Trait.TERMINATOR:
                return [frame[v] for v in op.operands]
            self.op(frame, op)
        return []

    def op(self, frame: Frame, op: Operation) -> None:
        handler = self.handlers.get(op.name)
        if handler is not None:
            handler(self, frame, op)
            return
        compute = op.row.numpy
        if compute is None:
            raise SimulationError(f"the simulator doesn't know {op.name}", help="it runs IR up to the pass convert-scf-to-cf")
        results = compute(op, *(frame.array(v) for v in op.operands))
        if len(op.results) == 1:
            frame[op.results[0]] = results
        else:
            for result, array in zip(op.results, results, strict=True):
                frame[result] = array

    # -- loops as more threads
    def can_spread(self, frame: Frame, op: Operation, carried: Sequence[Datum], trips: int) -> bool:
        """Whether the iterations are independent, and not too many."""
        if any(not isinstance(d, Buffer) for d in carried) or trips * frame.threads > MAX_LANES or trips < 2:
            return False
        read: set[Buffer] = set()
        written: set[Buffer] = set(d for d in carried if isinstance(d, Buffer))
        stack = [op]
        while stack:
            for nested in stack.pop().walk():
                if nested.name in _CROSS_THREAD:
                    return False
                callee = nested.attributes.get("callee") and self.machine.functions.get(nested.str_attr("callee"))
                if callee is not None:
                    return self._spread_with_calls(read, written)
                self._note_access(frame, nested, read, written)
        return not read & written

    def _spread_with_calls(self, read: set[Buffer], written: set[Buffer]) -> bool:
        """Functions read tensors and compute; only the entry writes, to outputs, which functions never see."""
        return not read & written

    def _note_access(self, frame: Frame, op: Operation, read: set[Buffer], written: set[Buffer]) -> None:
        for position, into in _ACCESSES.get(op.name, ()):
            value = op.operands[position]
            found = _try(frame, value)
            if isinstance(found, Buffer):
                (read if into == "read" else written).add(found)

    def spread(self, frame: Frame, trips: int) -> Frame:
        """A frame with `trips` threads for each of `frame`'s, iterations of one thread side by side."""
        return Frame(frame.threads * trips, frame, trips)


_CROSS_THREAD = {
    "gpu.barrier",
    "gpu.shuffle",
    "xla_gpu.sync_threads",
    "xla_gpu.shuffle_reduce",
    "xla_gpu.atomic_rmw",
    "xla_gpu.allocate_shared",
}
_ACCESSES: dict[str, tuple[tuple[int, str], ...]] = {
    "tensor.extract": ((0, "read"),),
    "tensor.insert": ((1, "write"),),
    "vector.transfer_read": ((0, "read"),),
    "vector.transfer_write": ((1, "write"),),
    "xla_gpu.predicated_extract": ((0, "read"),),
    "xla_gpu.predicated_insert": ((1, "write"),),
    "memref.load": ((0, "read"),),
    "memref.store": ((1, "write"),),
    "vector.load": ((0, "read"),),
    "vector.store": ((1, "write"),),
    "vector.maskedload": ((0, "read"),),
    "vector.maskedstore": ((0, "write"),),
    "vector.gather": ((0, "read"),),
    "xla_cpu.lookup": ((0, "read"),),
}


def _try(frame: Frame, value: Value) -> Datum | None:
    """The value if it is known outside the loop."""
    at: Frame | None = frame
    while at is not None:
        found = at.values.get(value)
        if found is not None:
            return found
        at = at.parent
    return None


def symbol_points(map: IndexingMap) -> list[Array]:
    """All values of the map's symbols in lexicographic order, one array a symbol."""
    ranges = [np.arange(v.bounds.lower, v.bounds.upper + 1, dtype=np.int64) for v in map.range_vars]
    grids = np.meshgrid(*ranges, indexing="ij") if ranges else []
    return [g.reshape(-1) for g in grids]
