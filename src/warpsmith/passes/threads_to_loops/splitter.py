"""The walk: one control flow for all threads of a block, and loops over them where it doesn't synchronise.

In: a function and its `Levels`.  Out: a block in which control flow that holds a synchronisation stands outside, and
what lies between is loops over threads (`segments`).  Ops are collected until something ends the segment:

    a barrier                          nothing: the loop's end is the barrier
    a collective (shuffle, mma...)     what lanes bring is kept in slots before it, and read in the next loop
    a loop that all threads run alike  its body is loops over threads: the innermost loop then is contiguous
    a branch                           as the block's, or under a mask

A value that all threads share is computed once, outside.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.effects import is_pure, is_speculatable
from warpsmith.ir.core.ssa import Block, Operation, Region, Trait, Value
from warpsmith.ir.core.types import INDEX, Type
from warpsmith.ir.dialects import arith, memory, scf
from warpsmith.passes.threads_to_loops.collectives import COLLECTIVES, SHUFFLE, Lane
from warpsmith.passes.threads_to_loops.levels import LOADS, STORES, Level, Levels, is_private
from warpsmith.passes.threads_to_loops.masks import Mask, Test, everyone
from warpsmith.passes.threads_to_loops.memories import Memories, Slot
from warpsmith.passes.threads_to_loops.refusals import BARRIERS, check_barrier, check_warps, diverges
from warpsmith.passes.threads_to_loops.segments import IDS, NOTHING, Pending, Segment, is_recomputed

__all__ = ["Splitter"]

_OF_LANES = frozenset((SHUFFLE, "nvvm.bar.warp.sync"))  # for the lanes that are there, whichever these are


class Splitter:
    """One function's rewrite; `shared` maps values of the old text to those of the block in the new one."""

    def __init__(self, function: Operation, levels: Levels, block: tuple[int, int, int]) -> None:
        self.function = function
        self.levels = levels
        self.extents = block
        self.shared: dict[Value, Value] = {}
        self.slots: dict[Value, Slot] = {}
        self.recomputed: dict[Value, bool] = {}
        self.pending: list[Pending] = []
        self.free: dict[Type, list[Slot]] = {}
        self.splits: dict[Operation, bool] = {}
        self.new = Block()
        for argument in function.body.args:
            self.shared[argument] = self.new.add_arg(argument.type, argument.name)
        self.b = Builder.at_end(self.new)
        mark = self.b.create("builtin.unrealized_conversion_cast")  # allocations stand before it
        self.mark = mark
        self.memories = Memories(Builder(self.new, mark), levels.threads, levels.warp_size)

    def run(self) -> int:
        """Replace the function's body; the bytes that the block's memories take."""
        old, mask = self.function.body, everyone(self.levels.threads)
        self.block(old, self.b, mask)
        self.flush(self.b, mask)
        self.b.insert(old.terminator.clone(self.shared))
        self.mark.erase()
        for op in old:
            op.drop_references()
        region = self.function.regions[0]
        region.blocks.clear()
        region.add(self.new)
        return self.memories.bytes

    # -- a block's ops
    def block(self, old: Block, b: Builder, mask: Mask) -> None:
        """All ops but the terminator; the last of them wait in `pending`."""
        for op in old:
            if op is old.last and op.row.has(Trait.TERMINATOR):
                return
            b.location = op.location
            self.op(op, b, mask)

    def op(self, op: Operation, b: Builder, mask: Mask) -> None:
        """Put one op where it belongs: into the loop over threads that is open, or between two such loops."""
        name = op.name
        if name in BARRIERS:
            check_barrier(op, mask)
            self.flush(b, mask)
        elif name in COLLECTIVES:
            if name != SHUFFLE:
                check_warps(op, mask, self.levels.warp_size)
            self.collective(op, b, mask)
        elif name in NOTHING:
            return
        elif name == "memref.alloca" and is_private(op.result):
            spread = self.levels[op.result] is not Level.BLOCK
            self.shared[op.result] = self.memories.private(op, spread=spread)
        elif name in _CONTROL and self.is_split(op):
            _CONTROL[name](self, op, b, mask)
        elif self.is_access_of_block(op):
            operands = [self.block_value(v, b, mask) for v in op.operands]
            if name in STORES:
                self.flush(b, mask)  # loops over threads that read what was there
            self.copy(op, b, dict(zip(op.operands, operands, strict=True)))
        elif self.is_shared(op):
            self.copy(op, b, self.shared)
        elif not is_recomputed(op, self.shared, self.recomputed):
            self.pending.append(Pending(op))

    def copy(self, op: Operation, b: Builder, mapping: dict[Value, Value]) -> None:
        """The op, once for the block."""
        copy = b.insert(op.clone(mapping))
        self.shared.update(zip(op.results, copy.results, strict=True))

    def is_shared(self, op: Operation) -> bool:
        """Whether an op is done once for the block: all threads would compute the same, and it may run early."""
        return (
            bool(op.results)
            and not op.regions
            and op.name not in IDS
            and all(self.levels[r] is Level.BLOCK for r in op.results)
            and all(v in self.shared for v in op.operands)
            and (op.name == "memref.get_global" or (is_pure(op) and is_speculatable(op)))
        )

    def is_access_of_block(self, op: Operation) -> bool:
        """Whether an op reads or writes a private memory whose copies are always alike, so that there is one."""
        if op.name in STORES:
            return self.is_alike(op.operands[1])
        return op.name in LOADS and self.is_alike(op.operands[0]) and self.levels[op.result] is Level.BLOCK

    def is_alike(self, memory_: Value) -> bool:
        """Whether a buffer of a thread's own holds the same in all threads."""
        return is_private(memory_) and self.levels[memory_] is Level.BLOCK

    def block_value(self, value: Value, b: Builder, mask: Mask) -> Value:
        """A value that all threads have alike, outside of loops over threads: as the first active one has it."""
        found = self.shared.get(value)
        if found is not None:
            return found
        known = self.levels.known.get(value)
        if known is not None:
            found = arith.constant(b, int(known[0]), value.type)
        else:
            slot = self.slots.get(value)
            if slot is None:
                slot = self.memories.slot(value.type, value.name)
                self.flush(b, mask, ((value, slot),))
            first = mask.first if mask.first is not None else arith.index(b, mask.bounds[0])
            found = self.memories.kept(b, slot, first)
        self.shared[value] = found
        return found

    # -- loops over threads
    def flush(
        self, b: Builder, mask: Mask, keeps: Sequence[tuple[Value, Slot]] = (), closing: Operation | None = None
    ) -> None:
        """Do what is pending, for all threads of the mask, and keep values in slots, where `closing` finds them."""
        pending, self.pending = self.pending, []
        if not pending and not keeps:
            return
        inside, kept = {each.op for each in pending}, {value for value, _ in keeps}
        segment = Segment(b, mask, self.extents, self.shared, self.slots, self.memories)
        for each in pending:
            segment.run(each)
            for result in each.op.results:
                if _lives_on(result, inside, closing if result in kept else None):
                    slot = self.slots[result] = self.memories.slot(result.type, result.name)
                    segment.keep(result, slot)
        for value, _ in keeps:  # a slot may hold the old value of another
            segment.fetch(value)
        for value, slot in keeps:
            segment.keep(value, slot)
        segment.finish()
        for each in pending:
            for slot in each.slots:
                self.free.setdefault(slot.type, []).append(slot)

    def exchange(self, value: Value) -> Slot:
        """A slot to bring a value to other lanes: one whose last readers are through, if there is one."""
        free = self.free.get(value.type)
        return free.pop() if free else self.memories.slot(value.type, "brought")

    def collective(self, op: Operation, b: Builder, mask: Mask) -> None:
        """An op that all threads of a warp or block run together: computed from all their values at once."""
        spec = COLLECTIVES[op.name]
        if op.name == SHUFFLE and op.operands[0] in self.shared and not op.results[1].users:
            self.shared[op.results[0]] = self.shared[op.operands[0]]
            return
        slots = [self.exchange(value) if i in spec.brought else None for i, value in enumerate(op.operands)]
        keeps = [(value, slot) for value, slot in zip(op.operands, slots, strict=True) if slot is not None]
        own = {value for value, slot in zip(op.operands, slots, strict=True) if slot is None}
        self.flush(b, mask, keeps, None if own.intersection(value for value, _ in keeps) else op)

        def emit(segment: Segment) -> list[Value]:
            return spec.emit(op, Lane(segment.b, segment.thread, segment.fetch, slots, self.memories))

        self.pending.append(Pending(op, emit, tuple(slot for slot in slots if slot is not None)))
        if spec.alone:
            self.flush(b, mask)

    # -- control flow
    def is_split(self, op: Operation) -> bool:
        """Whether control flow stands outside of loops over threads."""
        found = self.splits.get(op)
        if found is None:
            found = self.splits[op] = self._is_split(op)
        return found

    def _is_split(self, op: Operation) -> bool:
        found = {inner.name for inner in op.walk() if inner.name in BARRIERS or inner.name in COLLECTIVES}
        synchronises = bool(found) or any(o.name in STORES and self.is_alike(o.operands[1]) for o in op.walk())
        if op.name == "scf.for":
            alike = all(self.levels[v] is Level.BLOCK for v in op.operands[:3])
        elif op.name == "scf.while":
            alike = self.levels[op.regions[0].blocks[0].terminator.operands[0]] is Level.BLOCK
        else:
            condition = op.operands[0]
            alike = self.levels[condition] is not Level.THREAD or condition in self.levels.known
            alike |= found <= _OF_LANES  # those that are here
        if synchronises and not alike:
            raise diverges(op)
        if synchronises or (op.name == "scf.for" and alike):
            return True
        # A loop in a branch becomes contiguous over threads when the branch is a mask of known threads.
        return (
            op.name == "scf.if"
            and (self.levels[op.operands[0]] is Level.BLOCK or op.operands[0] in self.levels.known)
            and any(
                inner.name == "scf.for" and self.is_split(inner) for r in op.regions for k in r.blocks for inner in k
            )
        )

    @contextmanager
    def inner(self) -> Generator[None]:
        """Values that are defined inside aren't known afterwards."""
        shared, slots = self.shared, self.slots
        self.shared, self.slots = dict(shared), dict(slots)
        yield
        self.shared, self.slots = shared, slots

    def places(self, values: Sequence[Value]) -> list[Slot | None]:
        """For each value a slot, or None where it is one for the block."""
        return [None if self.levels[v] is Level.BLOCK else self.memories.slot(v.type, v.name) for v in values]

    def hand_over(
        self, values: Sequence[Value], slots: Sequence[Slot | None], b: Builder, mask: Mask, closing: Operation
    ) -> list[Value]:
        """Put values into slots; those of the block are given back."""
        pairs = list(zip(values, slots, strict=True))
        alike = [self.block_value(value, b, mask) for value, slot in pairs if slot is None]
        self.flush(b, mask, [(value, slot) for value, slot in pairs if slot is not None], closing)
        return alike

    def receive(self, values: Sequence[Value], slots: Sequence[Slot | None], alike: Sequence[Value]) -> None:
        """The other side of `hand_over`: `values` are what is in the slots, and `alike` in order."""
        rest = iter(alike)
        for value, slot in zip(values, slots, strict=True):
            if slot is None:
                self.shared[value] = next(rest)
            else:
                self.slots[value] = slot

    def for_(self, op: Operation, b: Builder, mask: Mask) -> None:
        """A loop that all threads run alike, with barriers inside: it stays outside of the loops over threads."""
        bounds = [self.block_value(v, b, mask) for v in op.operands[:3]]
        iv, *carried = op.body.args
        slots = self.places(carried)
        inits = self.hand_over(op.operands[3:], slots, b, mask, op)
        new = scf.for_(b, bounds[0], bounds[1], bounds[2], inits, iv.name)
        inside = Builder.at_end(new.body, op.location)
        with self.inner():
            self.shared[iv] = new.body.args[0]
            self.receive(carried, slots, new.body.args[1:])
            self.block(op.body, inside, mask)
            closing = op.body.terminator
            scf.yield_(inside, self.hand_over(closing.operands, slots, inside, mask, closing))
        self.receive(op.results, slots, new.results)

    def while_(self, op: Operation, b: Builder, mask: Mask) -> None:
        """The same of a loop with a condition."""
        before, after = op.regions[0].blocks[0], op.regions[1].blocks[0]
        slots, handed = self.places(before.args), self.places(after.args)
        inits = self.hand_over(op.operands, slots, b, mask, op)
        blocks = [
            Block([a.type for a, slot in zip(old.args, places, strict=True) if slot is None])
            for old, places in ((before, slots), (after, handed))
        ]
        types = [a.type for a in blocks[1].args]
        new = b.create("scf.while", inits, types, None, [Region((block,)) for block in blocks])
        with self.inner():
            inside, closing = Builder.at_end(blocks[0], op.location), before.terminator
            self.receive(before.args, slots, blocks[0].args)
            self.block(before, inside, mask)
            condition = self.block_value(closing.operands[0], inside, mask)
            alike = self.hand_over(closing.operands[1:], handed, inside, mask, closing)
            inside.create("scf.condition", (condition, *alike))
        with self.inner():
            inside, closing = Builder.at_end(blocks[1], op.location), after.terminator
            self.receive(after.args, handed, blocks[1].args)
            self.block(after, inside, mask)
            scf.yield_(inside, self.hand_over(closing.operands, slots, inside, mask, closing))
        self.receive(op.results, handed, new.results)

    def if_(self, op: Operation, b: Builder, mask: Mask) -> None:
        """A branch with barriers inside: all threads take it, or a mask says which."""
        if self.levels[op.operands[0]] is not Level.BLOCK:
            self.masked_if(op, b, mask)
            return
        condition = self.block_value(op.operands[0], b, mask)
        self.flush(b, mask)
        slots = self.places(op.results)
        types = [r.type for r, slot in zip(op.results, slots, strict=True) if slot is None]
        new = scf.if_(b, condition, types, with_else=bool(op.regions[1].blocks))
        for region, target in zip(op.regions, new.regions, strict=True):
            for old, block in zip(region.blocks, target.blocks, strict=True):
                inside = Builder.at_end(block, op.location)
                with self.inner():
                    self.block(old, inside, mask)
                    closing = old.terminator
                    scf.yield_(inside, self.hand_over(closing.operands, slots, inside, mask, closing))
        self.receive(op.results, slots, new.results)

    def masked_if(self, op: Operation, b: Builder, mask: Mask) -> None:
        """Both sides in order, each for the threads that take it."""
        self.flush(b, mask)
        condition = op.operands[0]
        known = self.levels.known.get(condition)
        slots = self.places(op.results)
        for holds, region in ((True, op.regions[0]), (False, op.regions[1])):
            test = Test(condition, holds)
            narrow = mask.asking(test) if known is None else mask.narrowed(test, known)
            if narrow.is_empty:
                continue
            for old in region.blocks:
                with self.inner():
                    inside = b
                    if narrow.asked:
                        narrow, inside = self.guarded(narrow, b)
                    self.block(old, inside, narrow)
                    closing = old.terminator
                    self.hand_over(closing.operands, slots, inside, narrow, closing)
                    if inside is not b:
                        scf.yield_(inside)
        self.receive(op.results, slots, ())

    def guarded(self, mask: Mask, b: Builder) -> tuple[Mask, Builder]:
        """A branch that is taken where the mask has a thread, and the mask with one of them."""
        place, zero, none = self.memories.allocate(1, INDEX, "active"), arith.index(b, 0), self.levels.threads
        memory.store(b, arith.index(b, none), place, zero)
        segment = Segment(b, mask, self.extents, self.shared, self.slots, self.memories)
        memory.store(segment.b, segment.thread, place, zero)
        segment.finish()
        first = memory.load(b, place, zero)
        branch = scf.if_(b, arith.cmpi(b, "ult", first, arith.index(b, none)))
        return replace(mask, first=first), Builder.at_end(branch.body, b.location)


_CONTROL: dict[str, Callable[[Splitter, Operation, Builder, Mask], None]] = {
    "scf.for": Splitter.for_,
    "scf.if": Splitter.if_,
    "scf.while": Splitter.while_,
}


def _lives_on(value: Value, inside: set[Operation], served: Operation | None) -> bool:
    """Whether an op outside of this loop over threads uses a value, `served` aside."""
    block = value.parent_block
    for user in value.users:
        if user is served:
            continue
        holder: Operation | None = user
        while holder is not None and holder.block is not block:
            holder = holder.parent
        if holder not in inside:
            return True
    return False
