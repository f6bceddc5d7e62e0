"""How much the threads of a block differ in a value: not at all, from warp to warp, or from thread to thread.

In: a kernel of buffers and arithmetic (a dispatched tile program), its block.  Out: `Levels`: for each value a `Level`,
and the value for every thread where it follows from ids and constants.  A private memory's level is that of what is
stored in it, and of the control flow around the stores.  Loop-carried values start as uniform and are raised until
nothing changes.

`tile/model/uniform.py` asks the same of a kernel before dispatch, where an author wants the reason in words, and an
element that another thread may write counts as different.  Here a synchronisation lies in between, or it's a race.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.effects import is_pure
from warpsmith.ir.core.ssa import Block, Effect, Operation, Trait, Value
from warpsmith.ir.core.types import MemRefType, VectorType, is_integer, numpy_dtype
from warpsmith.ir.dialects import gpu
from warpsmith.ir.dialects.tile import PRIVATE
from warpsmith.passes.support.capabilities import capabilities

__all__ = ["LOADS", "STORES", "Level", "Levels", "is_private"]


_ELECT = "nvvm.elect.sync"


class Level(IntEnum):
    """What has one value: the block, each warp, or only each thread."""

    BLOCK = 0
    WARP = 1
    THREAD = 2


_SAME = frozenset(("gpu.block_id", "gpu.block_dim", "gpu.grid_dim", "memref.get_global", "xla_gpu.workgroup_id"))
LOADS = frozenset(("memref.load", "vector.load"))
STORES = frozenset(("memref.store", "vector.store"))


class Levels:
    """The answer for one function whose block has the extents `block` along x, y and z."""

    def __init__(self, function: Operation, block: tuple[int, int, int]) -> None:
        self.threads = block[0] * block[1] * block[2]
        self.warp_size = capabilities(function).warp_size
        self.known: dict[Value, Array] = {}
        """For each thread (or one for all), of integers that ids and constants decide."""
        self.elections: dict[Operation, Level] = {}
        """The control flow that each `nvvm.elect.sync` is in."""
        self._found: dict[Value, Level] = {}
        rest = np.arange(self.threads, dtype=np.int64)
        self._ids: dict[str, Array] = {"lane": rest % self.warp_size}
        for axis, extent in zip("xyz", block, strict=True):
            self._ids[axis] = rest % extent
            rest = rest // extent
        self._changed = True
        while self._changed:
            self._changed = False
            self._block(function.body, Level.BLOCK)

    def __getitem__(self, value: Value) -> Level:
        return self._found.get(value, Level.BLOCK)

    def _raise(self, value: Value, level: Level) -> None:
        if level > self._found.get(value, Level.BLOCK):
            self._found[value] = level
            self._changed = True

    def _most(self, *values: Value) -> Level:
        return max((self[v] for v in values), default=Level.BLOCK)

    # -- ops, in the control flow of a level
    def _block(self, block: Block, flow: Level) -> None:
        for op in block:
            if op.name == "scf.for":
                self._for(op, flow)
            elif op.name == "scf.if":
                self._if(op, flow)
            elif op.name == "scf.while":
                self._while(op, flow)
            elif op.regions:
                for result in op.results:
                    self._raise(result, Level.THREAD)
                for region in op.regions:
                    for inner in region.blocks:
                        self._block(inner, Level.THREAD)
            else:
                self._plain(op, flow)

    def _for(self, op: Operation, flow: Level) -> None:
        turns = self._most(*op.operands[:3])
        iv, *carried = op.body.args
        self._raise(iv, turns)
        self._block(op.body, max(flow, turns))
        self._carry(turns, op.operands[3:], op.body.terminator.operands, carried, op.results)

    def _if(self, op: Operation, flow: Level) -> None:
        condition = self[op.operands[0]]
        for region in op.regions:
            for block in region.blocks:
                self._block(block, max(flow, condition))
                for value, result in zip(block.terminator.operands, op.results, strict=True):
                    self._raise(result, max(condition, self[value]))

    def _while(self, op: Operation, flow: Level) -> None:
        before, after = op.regions[0].blocks[0], op.regions[1].blocks[0]
        condition, *handed = before.terminator.operands
        turns = self[condition]
        self._carry(turns, op.operands, after.terminator.operands, before.args, ())
        self._block(before, max(flow, turns))
        for value, argument, result in zip(handed, after.args, op.results, strict=True):
            self._raise(argument, max(turns, self[value]))
            self._raise(result, max(turns, self[value]))
        self._block(after, max(flow, turns))

    def _carry(self, turns: Level, *groups: Any) -> None:
        """Values that take each other's places: first, next, the argument, the result."""
        first, following, arguments, results = groups
        for i, argument in enumerate(arguments):
            level = max(turns, self[first[i]], self[following[i]])
            self._raise(argument, level)
            if results:
                self._raise(results[i], level)

    def _plain(self, op: Operation, flow: Level) -> None:
        name = op.name
        if name in STORES:
            value, base, index = op.operands
            if is_private(base):
                self._raise(base, max(flow, self._most(value, index)))
            return
        if not op.results or name in _SAME or name == "memref.alloca" or op.row.has(Trait.CONSTANT):
            self._know(op)
        elif name in ("gpu.thread_id", "gpu.lane_id", _ELECT):
            self._know(op)
            self._raise(op.result, self._level_of_known(op.result))
            if name == _ELECT:
                self.elections[op] = flow
        elif name in LOADS:
            base, index = op.operands
            self._raise(op.result, max(self[base], self[index]) if is_private(base) else self[index])
        elif is_pure(op) and not op.row.has(Trait.CALL):
            self._know(op)
            level = self._level_of_known(op.results[0]) if op.results[0] in self.known else self._most(*op.operands)
            for result in op.results:
                self._raise(result, level)
        else:
            self._uncertain(op)

    def _uncertain(self, op: Operation) -> None:
        """What the memory or another thread gives; whatever else is written to private memory differs."""
        for effect, place in op.row.effects:
            if effect is Effect.WRITE and place is not None:
                for value in op.operands:
                    if is_private(value):
                        self._raise(value, Level.THREAD)
        same = op.name == "gpu.shuffle" and self[op.operands[0]] is Level.BLOCK
        for i, result in enumerate(op.results):
            self._raise(result, Level.BLOCK if same and i == 0 else Level.THREAD)

    # -- values thread by thread
    def _know(self, op: Operation) -> None:
        if len(op.results) != 1 or op.result in self.known:
            return
        type = op.result.type
        if isinstance(type, VectorType) or not is_integer(type):
            return
        if op.row.has(Trait.CONSTANT):
            value = op.attributes["value"]
            if isinstance(value, at.IntegerAttr):
                self.known[op.result] = np.array([value.value]).astype(numpy_dtype(type))
        elif op.name == "gpu.thread_id":
            self.known[op.result] = self._ids[gpu.dimension(op)]
        elif op.name == "gpu.lane_id":
            self.known[op.result] = self._ids["lane"]
        elif op.name == _ELECT:
            self.known[op.result] = self._ids["lane"] == 0
        elif op.row.numpy is not None and op.operands and all(v in self.known for v in op.operands):
            with np.errstate(all="ignore"):
                result = op.row.numpy(op, *(self.known[v] for v in op.operands))
            self.known[op.result] = np.atleast_1d(np.asarray(result))

    def _level_of_known(self, value: Value) -> Level:
        values = self.known[value]
        if bool((values == values[:1]).all()):
            return Level.BLOCK
        size = self.warp_size
        whole = values[: self.threads // size * size].reshape(-1, size)
        rest = values[whole.size :]
        of_warps = bool((whole == whole[:, :1]).all()) and bool((rest == rest[:1]).all())
        return Level.WARP if of_warps else Level.THREAD


def is_private(value: Value) -> bool:
    """Whether a value is memory of which each thread has its own."""
    return isinstance(value.type, MemRefType) and value.type.space == PRIVATE
