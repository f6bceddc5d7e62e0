"""What calls of AMD's intrinsics do.  In: a call of `llvm.amdgcn.NAME`.  Out: its result, for each thread."""

from __future__ import annotations

import numpy as np

from warpsmith.ir.core.ssa import Operation
from warpsmith.simt.ir.interpreter import Frame, Handler, Interpreter
from warpsmith.simt.ir.observe import barrier
from warpsmith.simt.ir.warps import exchange, lanes, thread_ids

__all__ = ["AMDGCN"]

_HALF = 32  # lanes whose bits are in one half of a wave's mask
_IDS = {"workitem": "thread_id", "workgroup": "block_id"}


def _id(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    _, _, name, _, dimension = op.str_attr("callee").split(".")
    frame[op.result] = thread_ids(interpreter, frame, f"{_IDS[name]}.{dimension}").astype(np.int32)


def _lanes_below(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    """mbcnt: of the lanes below this one, those in a half of the mask, added to a number.  All are asked for."""
    lane, before = lanes(interpreter, frame), frame.array(op.operands[1])
    low = np.minimum(lane, _HALF)
    is_low = op.str_attr("callee").endswith(".lo")
    frame[op.result] = (before + (low if is_low else lane - low)).astype(np.int32)


def _read_lane(interpreter: Interpreter, frame: Frame, op: Operation) -> None:
    """ds.bpermute: the register of the lane at an address in bytes, which wraps; 0 where no thread is."""
    address, value = (frame.array(v) for v in op.operands)
    source = address.astype(np.int64) // 4 % interpreter.machine.warp_size
    taken, valid = exchange(interpreter, frame, op, value, source, "idx")
    frame[op.result] = np.where(valid, taken, 0).astype(np.int32)


AMDGCN: dict[str, Handler] = {
    **{f"llvm.amdgcn.{name}.id.{d}": _id for name in _IDS for d in "xyz"},
    "llvm.amdgcn.mbcnt.lo": _lanes_below,
    "llvm.amdgcn.mbcnt.hi": _lanes_below,
    "llvm.amdgcn.ds.bpermute": _read_lane,
    "llvm.amdgcn.s.barrier": barrier,
}
