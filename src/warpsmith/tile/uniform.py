"""What each thread of a block computes, as far as it can be known before the kernel runs.

In: an SSA value.  Out: `Known` (an array: one value a thread, or one for all), `UNIFORM` (all threads of the block have
the same, whatever it is), or `Varying` with the reason.  The block's shape is known, so ids and what follows from them
are computed outright, thread by thread, by the numpy functions that the simulator runs too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from warpsmith.ir import attributes as at
from warpsmith.ir.core import Block, BlockArgument, Operation, Value
from warpsmith.ir.dialects import gpu
from warpsmith.ir.types import numpy_dtype

__all__ = ["UNIFORM", "Known", "Uniformity", "Varying", "What"]

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False, slots=True)
class Known:
    """One value a thread; an array of one element where all threads have it."""

    values: Array

    @property
    def is_same(self) -> bool:
        return bool((self.values == self.values[:1]).all())


@dataclass(frozen=True, slots=True)
class _Uniform:
    """All threads of a block have one value, which isn't known."""


@dataclass(frozen=True, slots=True)
class Varying:
    """Threads may differ, in a way that isn't known: `reason` says why."""

    reason: str


UNIFORM = _Uniform()
What = Known | _Uniform | Varying

_CONSTANT = "arith.constant"


class Uniformity:
    """Answers for one kernel; `block` is its extents along x, y, z."""

    def __init__(self, function: Operation, block: tuple[int, int, int]) -> None:
        self.function = function
        threads = np.arange(block[0] * block[1] * block[2], dtype=np.int64)
        self.ids: dict[str, Array] = {}
        rest = threads
        for axis, extent in zip("xyz", block, strict=True):
            self.ids[axis] = rest % extent
            rest = rest // extent
        self.found: dict[Value, What] = {}
        self.uniform_variables: set[Value] = set()
        self._settle_variables()

    def _settle_variables(self) -> None:
        """Variables all of whose stores are of uniform values in uniform control flow: the largest such set."""
        stores: dict[Value, list[Operation]] = {}
        for op in self.function.walk():
            if op.name == "memref.alloca":
                stores[op.result] = []
        for op in self.function.walk():
            if op.name == "memref.store" and op.operands[1] in stores:
                stores[op.operands[1]].append(op)
        self.uniform_variables = set(stores)
        while True:
            self.found.clear()
            broken = {
                variable
                for variable in self.uniform_variables
                if any(not self._is_uniform_store(op) for op in stores[variable])
            }
            if not broken:
                return
            self.uniform_variables -= broken

    def _is_uniform_store(self, op: Operation) -> bool:
        return self.is_uniform(op.operands[0]) and self._in_uniform_flow(op)

    def _in_uniform_flow(self, op: Operation) -> bool:
        """Whether every condition and loop around an op is the same for all threads."""
        at_op: Operation | None = op.parent
        while at_op is not None and at_op is not self.function:
            conditions: list[Value] = []
            if at_op.name == "scf.if":
                conditions = [at_op.operands[0]]
            elif at_op.name == "scf.for":
                conditions = list(at_op.operands[:3])
            elif at_op.name == "scf.while":
                conditions = [at_op.body.terminator.operands[0]]
            if not all(self.is_uniform(each) for each in conditions) or self.leaves_early(at_op):
                return False
            at_op = at_op.parent
        return True

    def leaves_early(self, loop: Operation) -> bool:
        """Whether a loop has a break or continue that only some threads may reach."""
        if loop.name not in ("scf.for", "scf.while"):
            return False
        for op in loop.walk():
            if op.name in ("tile.break", "tile.continue"):
                inside: Operation | None = op.parent
                while inside is not None and inside is not loop:
                    if inside.name == "scf.if" and not self.is_uniform(inside.operands[0]):
                        return True
                    inside = inside.parent
        return False

    # -- values
    def is_uniform(self, value: Value) -> bool:
        """Whether all threads of a block have one value."""
        found = self.what(value)
        return isinstance(found, _Uniform) or (isinstance(found, Known) and found.is_same)

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
        if op.regions or (op.row.numpy is None and name != "xla_gpu.apply_indexing"):
            return Varying(f"it comes from {name}")
        return self._computed(op)

    def _computed(self, op: Operation) -> What:
        operands = [self.what(v) for v in op.operands]
        for each in operands:
            if isinstance(each, Varying):
                return each
        known = [each for each in operands if isinstance(each, Known)]
        if len(known) < len(operands):
            if all(each.is_same for each in known):
                return UNIFORM
            return Varying("it mixes a thread's id with a value that is known only when the kernel runs")
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
            if all(self.is_uniform(bound) for bound in op.operands[:3]):
                return UNIFORM
            return Varying("the loop's bounds differ between threads")
        return Varying("it is carried by a loop")

    def _load(self, op: Operation) -> What:
        memory = op.operands[0]
        if memory in self.uniform_variables:
            return UNIFORM
        return Varying(f"'{memory.name}' is assigned values that differ between threads")

    def _element(self, op: Operation) -> What:
        """An element of a parameter that the kernel only reads, at a place that is the same for all threads."""
        from warpsmith.tile.buffers import buffer_of

        root = buffer_of(op.operands[0]).root
        holder = root.defining_op
        if holder is None or holder.name != "tile.match_buffer" or self._is_written(root):
            return Varying(f"it is read from '{op.operands[0].name}', which threads may see differently")
        if all(self.is_uniform(index) for index in op.operands[1:]):
            return UNIFORM
        return Varying(f"each thread reads its own element of '{op.operands[0].name}'")

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
