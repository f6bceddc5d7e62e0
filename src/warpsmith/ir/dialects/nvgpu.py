"""The nvvm and nvgpu ops that tile programs use below warp level: barriers of part of a block, one elected lane.

Names are MLIR's.  Memory operands are rank-1 memrefs with an index.
"""

from __future__ import annotations

from warpsmith.ir.builder import Builder
from warpsmith.ir.core import Effect, Operation, OpRow, Value
from warpsmith.ir.dialects import arith
from warpsmith.ir.types import I1, I32

__all__ = ["ROWS", "elect_sync", "named_barrier", "warp_sync"]

_BARRIER = ((Effect.BARRIER, None),)

ROWS = [
    OpRow("nvvm.bar.warp.sync", ("mask",), (), effects=_BARRIER),
    OpRow("nvvm.barrier", ("barrierId", "numberOfThreads"), (), effects=_BARRIER),
    OpRow("nvvm.elect.sync", (), ("pred",), effects=_BARRIER),
]


def warp_sync(b: Builder) -> Operation:
    """Wait for all lanes of the warp; what they wrote is seen afterwards."""
    return b.create("nvvm.bar.warp.sync", (arith.constant(b, -1, I32),))


def named_barrier(b: Builder, number: int, threads: int) -> Operation:
    """Wait for `threads` threads of the block at barrier `number` (0 to 15)."""
    return b.create("nvvm.barrier", (arith.constant(b, number, I32), arith.constant(b, threads, I32)))


def elect_sync(b: Builder) -> Value:
    """True in one active lane of the warp, which one isn't said."""
    return b.op1("nvvm.elect.sync", (), I1, None, "elected")
