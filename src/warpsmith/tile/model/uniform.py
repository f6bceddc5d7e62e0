"""What each thread of a block computes, as far as it can be known before the kernel runs.

In: an SSA value.  Out: `Known` (an array: one value a thread, or one for all), `UNIFORM` (all threads of the block have
the same, whatever it is), `Grouped` (all threads of a warp, or of a warpgroup, have), or `Varying` with the reason.
The block's shape is known, so ids and what follows from them are computed outright, thread by thread, by the numpy
functions that the simulator runs too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpsmith.arrays import Array
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.ssa import Block, BlockArgument, Operation, OpResult, Value
from warpsmith.ir.core.types import numpy_dtype
from warpsmith.ir.dialects import gpu

__all__ = ["UNIFORM", "Grouped", "Known", "Uniformity", "Varying", "What"]


@dataclass(frozen=True, eq=False, slots=True)
class Known:
    """One value a thread; an array of one element where all threads have it."""

    values: Array

    @property
    def is_same(self) -> bool:
        """Whether all threads have the same value."""
        return bool((self.values == self.values[:1]).all())


@dataclass(frozen=True, slots=True)
class _Uniform:
    """All threads of a block have one value, which isn't known."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """All threads of each group of so many, a warp or a warpgroup, have one value, which isn't known."""

    threads: int


@dataclass(frozen=True, slots=True)
class Varying:
    """Threads may differ, in a way that isn't known: `reason` says why."""

    reason: str


UNIFORM = _Uniform()
What = Known | _Uniform | Grouped | Varying

_CONSTANT = "arith.constant"
_MIXED = "it mixes a thread's id with a value that is known only when the kernel runs"
_GROUPS = (128, 32)
"""Threads of a warpgroup and of a warp."""


class Uniformity:
    """Answers for one kernel; `block` is its extents along x, y, z."""

    def __init__(self, function: Operation, block: tuple[int, int, int]) -> None:
        self.function = function
        threads = np.arange(block[0] * block[1] * block[2], dtype=np.int64)
        self.threads = threads.size
        self.ids: dict[str, Array] = {}
        rest = threads
        for axis, extent in zip("xyz", block, strict=True):
            self.ids[axis] = rest % extent
            rest = rest // extent
        self.found: dict[Value, What] = {}
        self.variables: dict[Value, int] = {}
        self._settle_variables()

    def _settle_variables(self) -> None:
        """Variables, and in how large groups of threads their stores are of one value in one flow of control."""
        stores: dict[Value, list[Operation]] = {}
        for op in self.function.walk():
            if op.name == "memref.alloca":
                stores[op.result] = []
        for op in self.function.walk():
            if op.name == "memref.store" and op.operands[1] in stores:
                stores[op.operands[1]].append(op)
        self.variables = dict.fromkeys(stores, self.threads)
        changed = True
        while changed:
            self.found.clear()
            changed = False
            for variable, own in stores.items():
                group = min([self.threads, *(min(self.group(op.operands[0]), self._flow(op)) for op in own)])
                changed |= group < self.variables[variable]
                self.variables[variable] = min(group, self.variables[variable])

    def _flow(self, op: Operation) -> int:
        """In how large groups of threads every condition and loop around an op is the same."""
        found = self.threads
        at_op: Operation | None = op.parent
        while at_op is not None and at_op is not self.function:
            conditions: list[Value] = []
            if at_op.name == "scf.if":
                conditions = [at_op.operands[0]]
            elif at_op.name == "scf.for":
                conditions = list(at_op.operands[:3])
            elif at_op.name == "scf.while":
                conditions = [at_op.body.terminator.operands[0]]
            found = min([found, self.leaving(at_op), *map(self.group, conditions)])
            at_op = at_op.parent
        return found

    def leaving(self, loop: Operation) -> int:
        """In how large groups of threads a loop's breaks and continues are reached, if it is a loop with some."""
        found = self.threads
        if loop.name not in ("scf.for", "scf.while"):
            return found
        for op in loop.walk():
            if op.name in ("tile.break", "tile.continue"):
                inside: Operation | None = op.parent
                while inside is not None and inside is not loop:
                    if inside.name == "scf.if":
                        found = min(found, self.group(inside.operands[0]))
                    inside = inside.parent
        return found

    # -- values
    def is_uniform(self, value: Value) -> bool:
        """Whether all threads of a block have one value."""
        return self.group(value) == self.threads

    def group(self, value: Value) -> int:
        """In how large groups of threads all have one value: the block's, a warpgroup's, a warp's; else 1."""
        found = self.what(value)
        if isinstance(found, _Uniform) or (isinstance(found, Known) and found.is_same):
            return self.threads
        if isinstance(found, Grouped):
            return found.threads
        if isinstance(found, Known):
            for size in _GROUPS:
                if found.values.size % size == 0 and self.threads > size:
                    rows = found.values.reshape(-1, size)
                    if (rows == rows[:, :1]).all():
                        return size
        return 1

    def _of_group(self, group: int, reason: str) -> What:
        if group == self.threads:
            return UNIFORM
        return Grouped(group) if group in _GROUPS else Varying(reason)

    def what(self, value: Value) -> What:
        """What is known of a value."""
        known = self.found.get(value)
        if known is None:
            self.found[value] = Varying("it depends on itself")  # a cycle through a variable is broken here
            known = self.found[value] = self._find(value)
        return known

    def _find(self, value: Value) -> What:
        if isinstance(value, BlockArgument):
            return self._argument(value.block, value)
        op = value.defining_op
        assert op is not None
        name = op.name
        if name == _CONSTANT:
            attribute = op.attributes["value"]
            if isinstance(attribute, at.IntegerAttr):
                return Known(np.array([attribute.value]).astype(numpy_dtype(value.type)))
            return Known(np.array([attribute.scalar])) if isinstance(attribute, at.FloatAttr) else UNIFORM
        if name == "gpu.thread_id":
            return Known(self.ids[gpu.dimension(op)])
        if name in ("gpu.block_id", "gpu.grid_dim", "gpu.block_dim", "memref.get_global"):
            return UNIFORM
        if name == "memref.load":
            return self._load(op)
        if name == "tile.load":
            return self._element(op)
        if name == "nvvm.elect.sync":
            return Varying("which lane elect_sync picks isn't said")
        if name == "gpu.shuffle":
            return Varying("it is exchanged between lanes")
        if name == "scf.if" and isinstance(value, OpResult):
            return self._branches(op, value)
        if op.regions or (op.row.numpy is None and name != "xla_gpu.apply_indexing"):
            return Varying(f"it comes from {name}")
        return self._computed(op)

    def _branches(self, op: Operation, value: OpResult) -> What:
        """What a branch gives: `a and b` is one that computes b only where a holds."""
        condition = self.what(op.operands[0])
        sides = [self.what(region.blocks[0].terminator.operands[value.index]) for region in op.regions]
        for each in (condition, *sides):
            if isinstance(each, Varying):
                return each
        yes, no = sides
        if isinstance(condition, Known) and isinstance(yes, Known) and isinstance(no, Known):
            return Known(np.where(condition.values.astype(np.bool_), yes.values, no.values))
        given = [region.blocks[0].terminator.operands[value.index] for region in op.regions]
        return self._of_group(min(self.group(each) for each in (op.operands[0], *given)), _MIXED)

    def _computed(self, op: Operation) -> What:
        operands = [self.what(v) for v in op.operands]
        for each in operands:
            if isinstance(each, Varying):
                return each
        known = [each for each in operands if isinstance(each, Known)]
        if len(known) < len(operands):
            return self._of_group(min(self.group(each) for each in op.operands), _MIXED)
        if op.name == "xla_gpu.apply_indexing":
            map = gpu.map_of(op)
            arrays = [each.values for each in known]
            split = len(map.dim_vars)
            results = map.evaluate(arrays[:split], arrays[split:])
            return Known(np.atleast_1d(np.asarray(results[0], np.int64))) if len(results) == 1 else UNIFORM
        compute = op.row.numpy
        assert compute is not None
        result = compute(op, *(each.values for each in known))
        return Known(np.atleast_1d(np.asarray(result))) if len(op.results) == 1 else Varying(f"it comes from {op.name}")

    def _argument(self, block: Block, value: BlockArgument) -> What:
        op = block.parent_op
        if op is self.function:
            return UNIFORM
        if op is not None and op.name == "scf.for" and value.index == 0:
            return self._of_group(min(map(self.group, op.operands[:3])), "the loop's bounds differ between threads")
        return Varying("it is carried by a loop")

    def _load(self, op: Operation) -> What:
        memory = op.operands[0]
        reason = f"'{memory.name}' is assigned values that differ between threads"
        return self._of_group(self.variables.get(memory, 1), reason)

    def _element(self, op: Operation) -> What:
        """An element of a parameter that the kernel only reads, at a place that is the same for all threads."""
        from warpsmith.tile.model.buffers import buffer_of

        root = buffer_of(op.operands[0]).root
        holder = root.defining_op
        if holder is None or holder.name != "tile.match_buffer" or self._is_written(root):
            return Varying(f"it is read from '{op.operands[0].name}', which threads may see differently")
        reason = f"each thread reads its own element of '{op.operands[0].name}'"
        return self._of_group(min([self.threads, *map(self.group, op.operands[1:])]), reason)

    def _is_written(self, root: Value) -> bool:
        """Whether a buffer is stored to, or is the destination of a primitive, by itself or through a view."""
        stack = [root]
        while stack:
            value = stack.pop()
            for user in value.users:
                if user.name == "tile.store" or (
                    user.name not in ("tile.view", "tile.region", "tile.load") and user.operands[0] is value
                ):
                    return True
                if user.name in ("tile.view", "tile.region"):
                    stack.append(user.results[0])
        return False
