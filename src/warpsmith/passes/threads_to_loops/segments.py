"""A loop over a block's threads: the ops between two synchronisations, one thread after the other.

In: ops in order, values of the block, slots of values that live longer.  Out: an `scf.for` over the mask's threads.  A
value from another loop is read from its slot, or computed again where that takes only integer arithmetic on ids: LLVM
then sees how addresses grow from thread to thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from warpsmith.errors import InternalError
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import I1, VectorType, is_integer
from warpsmith.ir.dialects import arith, gpu, scf
from warpsmith.passes.threads_to_loops.collectives import copy_at_once, lane_of
from warpsmith.passes.threads_to_loops.masks import Mask
from warpsmith.passes.threads_to_loops.memories import Memories, Slot

__all__ = ["IDS", "NOTHING", "Pending", "Segment", "external_operands", "is_recomputed"]

IDS = frozenset(("gpu.thread_id", "gpu.lane_id", "nvvm.elect.sync"))
"""What a thread computes from its number alone."""
NOTHING = frozenset(("nvvm.cp.async.commit.group", "nvvm.cp.async.wait.group"))
"""Copies are done where they start, so there is nothing to wait for."""


@dataclass(frozen=True, slots=True)
class Pending:
    """An op that waits for its loop; `emit` makes its results there, else a copy does.

    `slots` are free again after that loop.
    """

    op: Operation
    emit: Callable[[Segment], list[Value]] | None = None
    slots: tuple[Slot, ...] = ()


def is_recomputed(op: Operation | None, shared: Mapping[Value, Value], known: dict[Value, bool]) -> bool:
    """Whether an op's result is computed again in each loop that wants it: integer arithmetic on ids.

    `shared` holds the block's values; `known` remembers answers.
    """
    if op is None or len(op.results) != 1:
        return False
    answer = known.get(op.result)
    if answer is None:
        answer = op.name in IDS or (
            op.row.numpy is not None
            and not op.regions
            and not op.row.effects
            and not isinstance(op.result.type, VectorType)
            and is_integer(op.result.type)
            and all(is_integer(v.type) for v in op.operands)
            and all(v in shared or is_recomputed(v.defining_op, shared, known) for v in op.operands)
        )
        known[op.result] = answer
    return answer


def external_operands(op: Operation) -> list[Value]:
    """What an op, and the ops in its regions, use from outside."""
    if not op.regions:
        return op.operands
    inside: set[Value] = set()
    used: dict[Value, None] = {}
    for inner in op.walk():
        if inner is not op:
            inside.update(inner.results)
        for region in inner.regions:
            for block in region.blocks:
                inside.update(block.args)
        used.update(dict.fromkeys(inner.operands))
    return [v for v in used if v not in inside]


class Segment:
    """One loop while it is built."""

    def __init__(
        self,
        b: Builder,
        mask: Mask,
        block: tuple[int, int, int],
        shared: Mapping[Value, Value],
        slots: Mapping[Value, Slot],
        memories: Memories,
    ) -> None:
        lower, upper = mask.bounds
        self.block = block
        self.memories = memories
        self.slots = slots
        self.loop = scf.for_(b, arith.index(b, lower), arith.index(b, upper), arith.index(b, 1), iv_name="thread")
        self.thread: Value = self.loop.body.args[0]
        self.b = Builder.at_end(self.loop.body, b.location)
        self.blocks = [self.loop.body]
        self.local: dict[Value, Value] = dict(shared)
        for test in mask.tests:  # one in the other: a condition may be computed only where those around it hold
            branch = scf.if_(self.b, self._passed(test.condition, test.holds))
            self.b = Builder.at_end(branch.body, b.location)
            self.blocks.append(branch.body)

    def _passed(self, condition: Value, holds: bool) -> Value:
        value = self.fetch(condition)
        return value if holds else arith.binary(self.b, "xori", value, arith.constant(self.b, 1, I1))

    def fetch(self, value: Value) -> Value:
        """A value as this thread has it."""
        found = self.local.get(value)
        if found is None:
            slot, op = self.slots.get(value), value.defining_op
            if slot is not None:
                found = self.memories.kept(self.b, slot, self.thread)
                found.name = value.name
            elif op is not None:
                found = self._again(op)
            else:
                raise InternalError(f"a value of {value.type} is wanted in a loop over threads that doesn't have it")
            self.local[value] = found
        return found

    def _again(self, op: Operation) -> Value:
        for operand in op.operands:
            self.fetch(operand)
        return self.b.insert(op.clone(self.local)).result

    def run(self, pending: Pending) -> None:
        """One op."""
        op = pending.op
        self.b.location = op.location
        if pending.emit is not None:
            self.local.update(zip(op.results, pending.emit(self), strict=True))
            return
        for value in external_operands(op):
            self.fetch(value)
        self.b.insert(op.clone(self.local))

    def keep(self, value: Value, slot: Slot) -> None:
        """Write a value where other loops, or other threads, find it."""
        self.memories.keep(self.b, slot, self.fetch(value), self.thread)

    def finish(self) -> None:
        """Close the loop; ids, private memories and copies in flight in it become this thread's."""
        for op in list(self.loop.walk()):
            if op.name in IDS:
                b = Builder.before(op)
                value = self._id(b, op)
                value.name = value.name or op.result.name
                op.replace_by((value,))
            elif op.name in NOTHING:
                op.erase()
            elif op.name == "nvgpu.device_async_copy":
                copy_at_once(op)
            elif op is not self.loop and not op.regions:
                self.memories.rewrite(op, self.thread)
        for block in self.blocks:
            scf.yield_(Builder.at_end(block, self.loop.location))

    def _id(self, b: Builder, op: Operation) -> Value:
        if op.name == "gpu.lane_id":
            return lane_of(b, self.thread, self.memories.warp_size)
        if op.name == "nvvm.elect.sync":
            return arith.cmpi(b, "eq", lane_of(b, self.thread, self.memories.warp_size), arith.index(b, 0))
        x, y, z = self.block
        before, extent = {"x": (1, x), "y": (x, y), "z": (x * y, z)}[gpu.dimension(op)]
        value = self.thread
        if before > 1:
            value = arith.binary(b, "divui", value, arith.index(b, before))
        return arith.binary(b, "remui", value, arith.index(b, extent)) if before * extent < x * y * z else value
