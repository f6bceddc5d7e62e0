"""The nvvm and nvgpu ops that tile programs use: partial barriers, an elected lane, copies in flight, matrix units.

Names are MLIR's.  Memory operands are rank-1 memrefs, each with the index of an element.

    nvgpu.device_async_copy %dst, %i, %src, %j {bytes = 16}   4, 8 or 16 bytes, global -> shared, not awaited (cp.async)
    nvvm.cp.async.commit.group                                what this thread has started since is one group
    nvvm.cp.async.wait.group {n = 1}                          wait until at most n of this thread's groups are in flight
    %t = nvgpu.ldmatrix %base, %i {num_tiles = 4, transpose = false} : vector<8xf16>
    nvgpu.stmatrix %t, %base, %i {num_tiles = 4, transpose = false}
    %d = nvgpu.mma.sync %a, %b, %c {shape = array<i64: 16, 8, 16>}    d = a b + c in f32, a warp's fragments

An 8 x 8 tile of 16-bit elements is 16 bytes a row.  Lane 8 k + r gives the place of row r of tile k; lane l then holds
elements 2 (l mod 4) and the one after of row l / 4 of each tile (of its transpose with `transpose`): two a tile.
Fragments of mma.m16n8k16, with g = lane / 4 and p = 2 (lane mod 4) (PTX ISA, "Matrix fragments for mma.m16n8k16"):
a[0:2] at (g, p), a[2:4] at (g + 8, p), a[4:6] at (g, p + 8), a[6:8] at (g + 8, p + 8); b[0:2] at (p, g), b[2:4] at
(p + 8, g); c and d [0:2] at (g, p), [2:4] at (g + 8, p).
"""

from __future__ import annotations

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Effect, Operation, OpRow, Value
from warpsmith.ir.core.types import I1, I32, I64, Type, vector
from warpsmith.ir.dialects import arith
from warpsmith.ir.dialects import nvgpu_rules as rules

__all__ = [
    "CAPABILITY",
    "ROWS",
    "async_commit",
    "async_copy",
    "async_wait",
    "elect_sync",
    "ldmatrix",
    "mma_sync",
    "named_barrier",
    "stmatrix",
    "warp_sync",
]

_BARRIER = ((Effect.BARRIER, None),)

ROWS = [
    OpRow("nvvm.bar.warp.sync", ("mask",), (), verify=rules.words, effects=_BARRIER),
    OpRow("nvvm.barrier", ("barrierId", "numberOfThreads"), (), verify=rules.words, effects=_BARRIER),
    OpRow("nvvm.elect.sync", (), ("pred",), verify=rules.elect, effects=_BARRIER),
    OpRow(
        "nvgpu.device_async_copy",
        ("dst", "dstIndex", "src", "srcIndex"),
        (),
        attributes=("bytes",),
        verify=rules.copy,
        effects=((Effect.READ, "src"), (Effect.WRITE, "dst")),
    ),
    # What is in flight is written by the time of the wait, and no access of it may cross one.
    OpRow("nvvm.cp.async.commit.group", (), (), effects=_BARRIER),
    OpRow("nvvm.cp.async.wait.group", (), (), attributes=("n",), verify=rules.wait, effects=_BARRIER),
    # The lanes of a warp exchange what they hold, so these stay where the whole warp is.
    OpRow(
        "nvgpu.ldmatrix",
        ("base", "index"),
        ("res",),
        attributes=("num_tiles", "transpose"),
        verify=rules.load_matrix,
        effects=((Effect.READ, "base"), (Effect.BARRIER, None)),
    ),
    OpRow(
        "nvgpu.stmatrix",
        ("value", "base", "index"),
        (),
        attributes=("num_tiles", "transpose"),
        verify=rules.store_matrix,
        effects=((Effect.WRITE, "base"), (Effect.BARRIER, None)),
    ),
    OpRow(
        "nvgpu.mma.sync",
        ("matrixA", "matrixB", "matrixC"),
        ("res",),
        attributes=("shape",),
        verify=rules.multiply,
        effects=_BARRIER,
    ),
]

CAPABILITY: dict[str, int] = {
    **dict.fromkeys(("nvgpu.device_async_copy", "nvvm.cp.async.commit.group", "nvvm.cp.async.wait.group"), 80),
    "nvgpu.ldmatrix": 75,
    "nvgpu.stmatrix": 90,
    "nvgpu.mma.sync": 80,
}
"""The least compute capability, times ten, of the ops that not every GPU has an instruction for (PTX ISA, "Target ISA
Notes" of each).  `nvvm.elect.sync` is none of them: where there is no instruction it takes a few."""


def warp_sync(b: Builder) -> Operation:
    """Wait for all lanes of the warp; what they wrote is seen afterwards."""
    return b.create("nvvm.bar.warp.sync", (arith.constant(b, -1, I32),))


def named_barrier(b: Builder, number: int | Value, threads: int) -> Operation:
    """Wait for `threads` threads of the block at barrier `number` (0 to 15; an i32)."""
    number = arith.constant(b, number, I32) if isinstance(number, int) else number
    return b.create("nvvm.barrier", (number, arith.constant(b, threads, I32)))


def elect_sync(b: Builder) -> Value:
    """True in one active lane of the warp, which one isn't said."""
    return b.op1("nvvm.elect.sync", (), I1, None, "elected")


def async_copy(b: Builder, dst: Value, dst_index: Value, src: Value, src_index: Value, bytes: int) -> Operation:
    """Start a copy of 4, 8 or 16 `bytes` from global to shared memory (compute capability 8)."""
    return b.create(
        "nvgpu.device_async_copy", (dst, dst_index, src, src_index), (), {"bytes": at.integer_attr(bytes, I64)}
    )


def async_commit(b: Builder) -> Operation:
    """What this thread has started to copy since its last commit is a group."""
    return b.create("nvvm.cp.async.commit.group")


def async_wait(b: Builder, groups: int) -> Operation:
    """Wait until at most `groups` of this thread's latest groups are in flight."""
    return b.create("nvvm.cp.async.wait.group", (), (), {"n": at.integer_attr(groups, I32)})


def ldmatrix(b: Builder, base: Value, index: Value, element: Type, tiles: int, *, transpose: bool) -> Value:
    """A lane's part of 1, 2 or 4 `tiles` of 8 x 8 from shared memory: vector<(2 tiles) x element>."""
    attributes: dict[str, at.Attribute] = {
        "num_tiles": at.integer_attr(tiles, I64),
        "transpose": at.integer_attr(int(transpose), I1),
    }
    return b.op1("nvgpu.ldmatrix", (base, index), vector((2 * tiles,), element), attributes, "tile")


def stmatrix(b: Builder, value: Value, base: Value, index: Value, tiles: int, *, transpose: bool) -> Operation:
    """Store a lane's part of 1, 2 or 4 `tiles` of 8 x 8 to shared memory (compute capability 9)."""
    attributes: dict[str, at.Attribute] = {
        "num_tiles": at.integer_attr(tiles, I64),
        "transpose": at.integer_attr(int(transpose), I1),
    }
    return b.create("nvgpu.stmatrix", (value, base, index), (), attributes)


def mma_sync(b: Builder, a: Value, matrix_b: Value, c: Value) -> Value:
    """a b + c for 16 x 16 and 16 x 8 fragments of f16 or bf16, and one of f32 (compute capability 8)."""
    return b.op1("nvgpu.mma.sync", (a, matrix_b, c), c.type, {"shape": at.dense_array((16, 8, 16), I64)}, "product")
