"""The lockstep interpreter: every op runs once for all threads, under a mask of the active ones.

A value is an array whose first axis is the threads (length 1 where all threads agree), followed by the vector's own; a
tensor or memref is a `Buffer`.  A branch runs both sides under masks; a loop runs until its last thread is done.

A loop whose iterations don't depend on each other runs them as more threads (`simt/ir/spread.py`): `Frame`
repeats the outer values when they are asked for.  So a CPU kernel, a few threads with long loops, is as quick here as
a GPU kernel.

Ops are handled by `simt/ir/handlers.py`; elementwise ones by the numpy function of their row, which the folder shares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

import numpy as np

from warpsmith.arrays import Array, Dim3
from warpsmith.errors import SimulationError
from warpsmith.ir.core.ssa import Block, Operation, Trait, Value
from warpsmith.simt.core.checks import Findings, fail, triple
from warpsmith.simt.core.results import WARP, Finding, words
from warpsmith.simt.core.tracked import Groups
from warpsmith.simt.core.watch import Watch
from warpsmith.simt.ir.memory import AccessFault, Buffer, Datum, Pointer, where_from
from warpsmith.simt.ir.op_classes import class_of, site_of

__all__ = ["Frame", "Handler", "Interpreter", "Machine", "merge"]


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

    def __setitem__(self, value: Value, datum: Datum) -> None:
        self.values[value] = datum

    def array(self, value: Value) -> Array:
        """A value that is numbers."""
        found = self[value]
        if not isinstance(found, np.ndarray):
            raise SimulationError(f"a value of type {value.type} is memory where numbers are needed")
        return found

    def buffer(self, value: Value) -> Buffer:
        """A value that is memory."""
        found = self[value]
        if not isinstance(found, Buffer):
            raise SimulationError(f"a value of type {value.type} isn't memory")
        return found

    def known(self, value: Value) -> Datum | None:
        """The value, if it has been computed here or further out."""
        at: Frame | None = self
        while at is not None:
            found = at.values.get(value)
            if found is not None:
                return found
            at = at.parent
        return None

    def active(self, condition: Array) -> Array:
        """Which threads are active and meet the condition."""
        return condition if self.mask is None else self.mask & condition

    def bind(self, values: Sequence[Value], data: Sequence[Datum]) -> None:
        """Several values at once."""
        for value, datum in zip(values, data, strict=True):
            self.values[value] = datum


def merge(condition: Array, new: Datum, old: Datum) -> Datum:
    """Per thread, `new` where the condition holds; memory is one and the same."""
    if not (isinstance(new, np.ndarray) and isinstance(old, np.ndarray)):
        return new
    extra = max(new.ndim, old.ndim) - condition.ndim
    return np.where(condition.reshape(condition.shape + (1,) * extra), new, old)


class Machine:
    """What the threads of a batch share: ids, warp size, module-level buffers, the module's functions.

    `shape` is the grid and the block, `numbers` the blocks of the batch; `watch` sees all, if there is one.  `copies`
    are the asynchronous ones in flight.
    """

    __slots__ = (
        "blocks",
        "copies",
        "findings",
        "functions",
        "globals",
        "ids",
        "numbers",
        "shape",
        "threads_per_block",
        "warp_size",
        "watch",
    )

    def __init__(
        self,
        module: Operation,
        ids: Mapping[str, Array],
        blocks: int,
        threads_per_block: int,
        global_buffers: Mapping[str, Buffer],
        warp_size: int = WARP,
        *,
        shape: tuple[Dim3, Dim3] = ((1, 1, 1), (1, 1, 1)),
        numbers: Array | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.ids = ids
        self.shape = shape
        self.numbers: Array = np.arange(blocks, dtype=np.int64) if numbers is None else numbers
        self.watch = watch
        self.findings = Findings() if watch is None else watch.findings
        self.blocks = blocks
        self.copies = Groups(blocks * threads_per_block)
        self.threads_per_block = threads_per_block
        self.warp_size = warp_size
        self.globals = global_buffers
        self.functions = {op.str_attr("sym_name"): op for op in module.body if op.name in FUNCTIONS}

    def place(self, thread: int, threads: int) -> tuple[Dim3, Dim3]:
        """The block and the thread there of one of a frame's `threads`."""
        own = thread // max(threads // max(self.blocks * self.threads_per_block, 1), 1)
        block = int(self.numbers[own // self.threads_per_block])
        return triple(block, self.shape[0]), triple(own % self.threads_per_block, self.shape[1])

    def block_of(self, threads: int) -> Array:
        """Each thread's block within the batch; `threads` may be a multiple of the batch's."""
        return np.arange(threads) // max(threads // self.blocks, 1)

    def function(self, name: str) -> Operation:
        """A function of the module."""
        found = self.functions.get(name)
        if found is None:
            raise SimulationError(f"the module has no function @{name}")
        return found


FUNCTIONS = ("func.func", "llvm.func")

Handler = Callable[["Interpreter", Frame, Operation], None]


class Interpreter:
    """Runs functions of one module over a `Machine`; `handlers` says what each op that isn't elementwise does."""

    __slots__ = ("handlers", "machine", "run_blocks")

    def __init__(
        self,
        machine: Machine,
        handlers: Mapping[str, Handler],
        run_blocks: Callable[[Interpreter, Frame, Sequence[Block]], list[Datum]],
    ) -> None:
        self.machine = machine
        self.handlers = handlers
        self.run_blocks = run_blocks

    def call(self, frame: Frame, function: Operation, arguments: Sequence[Datum]) -> list[Datum]:
        """Run a function with the frame's threads and mask; what it returns."""
        callee = Frame(frame.threads)
        callee.mask = frame.mask
        callee.bind(function.body.args, arguments)
        blocks = function.regions[0].blocks
        return self.block(callee, blocks[0]) if len(blocks) == 1 else self.run_blocks(self, callee, blocks)

    def block(self, frame: Frame, block: Block) -> list[Datum]:
        """Run a block; the operands of its terminator."""
        for op in block:
            if op.row.traits & Trait.TERMINATOR:
                return [frame[v] for v in op.operands]
            self.op(frame, op)
        return []

    def op(self, frame: Frame, op: Operation) -> None:
        """Run one op that is no terminator.  CheckFailed for an access that no hardware would do."""
        watch = self.machine.watch
        if watch is not None:
            kind = class_of(op)
            if kind:
                watch.executed(kind, frame.mask, frame.threads)
        handler = self.handlers.get(op.name)
        if handler is not None:
            try:
                handler(self, frame, op)
            except AccessFault as fault:
                self._fault(frame, op, fault)
            return
        compute = op.row.numpy
        if compute is None:
            raise SimulationError(
                f"the simulator doesn't know {op.name}{where_from(op)}",
                help="simt/ir/handlers.py joins the tables of what ops do; its row in ir/dialects/ has no numpy",
            )
        results = compute(op, *(frame.array(v) for v in op.operands))
        if len(op.results) == 1:
            frame.values[op.results[0]] = results
        else:
            frame.bind(op.results, results)

    def _fault(self, frame: Frame, op: Operation, fault: AccessFault) -> NoReturn:
        block, thread = self.machine.place(fault.thread, frame.threads)
        buffer = next((b for b in map(_memory, map(frame.known, op.operands)) if b is not None), None)
        finding = Finding(
            fault.code,
            fault.cause,
            site_of(op),
            block=block,
            thread=thread,
            space="" if buffer is None or buffer.tracked is None else buffer.tracked.space,
            buffer="" if buffer is None else buffer.name,
            byte=fault.byte,
        )
        fail(finding, cause=f"{fault.cause} (block {words(block)}, thread {words(thread)}){where_from(op)}")


def _memory(datum: Datum | None) -> Buffer | None:
    return datum.buffer if isinstance(datum, Pointer) else datum if isinstance(datum, Buffer) else None
