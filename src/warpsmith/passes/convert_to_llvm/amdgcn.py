"""AMD's GPUs: who a thread is, how a block waits, how lanes exchange values.

    %t = gpu.thread_id x            ->   %t = llvm.call @llvm.amdgcn.workitem.id.x()
    gpu.barrier                     ->   llvm.fence release ; llvm.call @llvm.amdgcn.s.barrier() ; llvm.fence acquire
    %r = gpu.shuffle down %x, %d    ->   %r = llvm.call @llvm.amdgcn.ds.bpermute(4 * (lane + %d), %x)

Reference: LLVM's User Guide for AMDGPU Backend, "LLVM IR Intrinsics" and "Memory Model".
"""

from __future__ import annotations

from warpsmith.errors import LoweringError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import I1, I32, I64
from warpsmith.ir.dialects import arith, gpu
from warpsmith.ir.text.format_kinds import LLVM_ORDERINGS
from warpsmith.passes.convert_to_llvm.functions import replace_id
from warpsmith.passes.convert_to_llvm.types import Handler, Lowering, number, where
from warpsmith.passes.convert_to_llvm.vectors import each_word, shuffle_size

_IDS = {"gpu.thread_id": "workitem", "gpu.block_id": "workgroup"}
_NARROW = 32  # lanes of the smaller of the two widths of a wave


def gpu_id(low: Lowering, op: Operation) -> None:
    """A thread's or block's own number."""
    b = Builder.before(op)
    (value,) = low.call_intrinsic(b, f"llvm.amdgcn.{_IDS[op.name]}.id.{gpu.dimension(op)}", (), I32)
    replace_id(low, b, op, value)


def refused(low: Lowering, op: Operation) -> None:
    """LoweringError: the sizes of a launch are in memory that the run time fills, and none is written for here."""
    raise LoweringError(
        f"{op.name} has no form on {low.can.target}{where(op)}", help="a kernel's sizes are constants: use those"
    )


def barrier(low: Lowering, op: Operation) -> None:
    """The barrier orders threads, the fences their memory."""
    b = Builder.before(op)

    def fence(ordering: str) -> None:
        attributes = {
            "ordering": at.integer_attr(LLVM_ORDERINGS.index(ordering), I64),
            "syncscope": at.string("workgroup"),
        }
        b.create("llvm.fence", (), (), attributes)

    fence("release")
    low.call_intrinsic(b, "llvm.amdgcn.s.barrier", ())
    fence("acquire")
    op.erase()


def shuffle(low: Lowering, op: Operation) -> None:
    """Each lane reads a register of the lane that it names; one that names none inside the wave reads its own."""
    value, offset, _ = op.operands
    size, kind = shuffle_size(op)
    if size != low.can.warp_size:
        raise LoweringError(
            f"{op.name} among {size} of {low.can.warp_size} lanes has no form on {low.can.target}{where(op)}",
            help=f"shuffle among all {low.can.warp_size} lanes of a wave",
        )
    b = Builder.before(op)

    def integer(name: str, x: Value, y: Value) -> Value:
        return b.op1(f"llvm.{name}", (x, y), I32)

    lane = _lane(low, b)
    source = {
        "down": lambda: integer("add", lane, offset),
        "up": lambda: integer("sub", lane, offset),
        "xor": lambda: integer("xor", lane, offset),
        "idx": lambda: offset,
    }[kind]()
    less = {"predicate": at.integer_attr(arith.CMPI["ult"], I64)}
    inside = b.op1("llvm.icmp", (source, number(b, size, I32)), I1, less)
    address = integer("shl", b.op1("llvm.select", (inside, source, lane), I32), number(b, 2, I32))  # in bytes

    def moved(word: Value) -> Value:
        bits = word if word.type is I32 else b.op1("llvm.bitcast", (word,), I32)
        (found,) = low.call_intrinsic(b, "llvm.amdgcn.ds.bpermute", (address, bits), I32)
        return found if word.type is I32 else b.op1("llvm.bitcast", (found,), word.type)

    op.results[0].replace_by(each_word(b, value, moved))
    op.erase()


def _lane(low: Lowering, b: Builder) -> Value:
    """This thread's place in its wave: how many lanes are below it."""
    everyone, lane = number(b, -1, I32), number(b, 0, I32)
    for half in ("lo", "hi") if low.can.warp_size > _NARROW else ("lo",):
        (lane,) = low.call_intrinsic(b, f"llvm.amdgcn.mbcnt.{half}", (everyone, lane), I32)
    return lane


TABLE: dict[str, Handler] = {
    "gpu.thread_id": gpu_id,
    "gpu.block_id": gpu_id,
    "gpu.block_dim": refused,
    "gpu.grid_dim": refused,
    "gpu.barrier": barrier,
    "gpu.shuffle": shuffle,
}
