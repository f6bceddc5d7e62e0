"""Memory with one element a thread: values that live across a synchronisation, and private memories.

In: a type, or a private memory's `memref.alloca`.  Out: a `memref.alloca` of the block, element (register, thread) at
`register * threads + thread`, so that neighbouring threads' copies of one register are neighbours.  All of them stand
at the top of the function.  Accesses of vectors are taken apart into elements, which LLVM joins over threads instead.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from warpsmith.errors import LoweringError
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import MemRefType, Type, VectorType, bit_width, element_type, memref
from warpsmith.ir.dialects import arith, memory
from warpsmith.ir.dialects import vector as vec

__all__ = ["MOST_BYTES", "Memories", "Slot"]

MOST_BYTES = 3 << 17 if sys.platform == "darwin" else 1 << 20
"""Of a block, for its shared memory, private memories and values across synchronisations: they lie on a stack, of which
a thread of macOS has 512 KiB, of Linux 8 MiB."""

_LINE_BYTES = 64


@dataclass(frozen=True, slots=True)
class Slot:
    """Memory for one value a thread; a vector takes as many elements as it has."""

    memory: Value
    type: Type


class Memories:
    """The memories of one function; they are allocated at the start of the block that `b` is at the start of."""

    def __init__(self, b: Builder, threads: int, warp_size: int) -> None:
        self.b, self.threads, self.warp_size = b, threads, warp_size
        self.bytes = 0
        self.spread: set[Value] = set()
        """Private memories that have a copy a thread."""

    def allocate(self, elements: int, element: Type, name: str) -> Value:
        """A buffer for the block."""
        self.bytes += elements * max(1, bit_width(element) // 8)
        return memory.alloca(self.b, memref((elements,), element), _LINE_BYTES, name)

    def slot(self, type: Type, name: str) -> Slot:
        """Room for a value a thread."""
        count = type.elements if isinstance(type, VectorType) else 1
        return Slot(self.allocate(count * self.threads, element_type(type), name or "kept"), type)

    def private(self, op: Operation, *, spread: bool) -> Value:
        """A private memory's place: one copy a thread, or (`spread` false) one for the block, whose threads agree."""
        type = op.result.type
        assert isinstance(type, MemRefType)
        copies = self.threads if spread else 1
        made = self.allocate(type.elements * copies, type.element, op.result.name or "private")
        if spread:
            self.spread.add(made)
        return made

    # -- accesses by a thread
    def keep(self, b: Builder, slot: Slot, value: Value, thread: Value) -> None:
        """Write a thread's value."""
        if not isinstance(slot.type, VectorType):
            memory.store(b, value, slot.memory, thread)
            return
        for i in range(slot.type.elements):
            memory.store(b, vec.extract(b, value, i), slot.memory, self._copy(b, arith.index(b, i), thread))

    def kept(self, b: Builder, slot: Slot, thread: Value) -> Value:
        """Read a thread's value."""
        if not isinstance(slot.type, VectorType):
            return memory.load(b, slot.memory, thread)
        return vec.from_elements(b, [self.element(b, slot, i, thread) for i in range(slot.type.elements)])

    def element(self, b: Builder, slot: Slot, i: int, thread: Value) -> Value:
        """Read one element of a thread's vector."""
        return memory.load(b, slot.memory, self._copy(b, arith.index(b, i), thread))

    def _copy(self, b: Builder, register: Value, thread: Value) -> Value:
        first = arith.binary(b, "muli", register, arith.index(b, self.threads))
        return arith.binary(b, "addi", first, thread)

    def place(self, b: Builder, base: Value, index: Value, thread: Value) -> Value:
        """The element of a memory that a thread means by `index`."""
        return self._copy(b, index, thread) if base in self.spread else index

    def rewrite(self, op: Operation, thread: Value) -> None:
        """An access of a thread: to its own copy, element by element."""
        where = _BASES.get(op.name)
        if where is None:
            if any(v in self.spread for v in op.operands):
                raise LoweringError(f"{op.name} on a thread's own memory has no form on a CPU")
            return
        base, index = op.operands[where : where + 2]
        b = Builder.before(op)
        vector = op.operands[0].type if where else op.result.type
        if not isinstance(vector, VectorType):
            op.set_operand(where + 1, self.place(b, base, index, thread))
            return
        indices = [
            self.place(b, base, arith.binary(b, "addi", index, arith.index(b, i)) if i else index, thread)
            for i in range(vector.elements)
        ]
        if where:
            for i, place in enumerate(indices):
                memory.store(b, vec.extract(b, op.operands[0], i), base, place)
            op.erase()
        else:
            op.replace_by((vec.from_elements(b, [memory.load(b, base, place) for place in indices]),))


_BASES = {"memref.load": 0, "vector.load": 0, "memref.store": 1, "vector.store": 1}  # the operand that is the memory
