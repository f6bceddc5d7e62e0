"""Which function handles which op: the tables of the simulator's parts in one.

Elementwise ops of arith and math aren't here: they run by the numpy function of their row.
"""

from __future__ import annotations

from collections.abc import Mapping

from warpsmith.simt.ir.accesses import ACCESSES
from warpsmith.simt.ir.atomics import ATOMICS
from warpsmith.simt.ir.control import CONTROL
from warpsmith.simt.ir.interpreter import Handler
from warpsmith.simt.ir.llvm import LLVM
from warpsmith.simt.ir.nvgpu import NVGPU
from warpsmith.simt.ir.vectors import VECTORS
from warpsmith.simt.ir.warps import WARPS

__all__ = ["HANDLERS", "UNSIMULATED"]

HANDLERS: Mapping[str, Handler] = {**CONTROL, **ACCESSES, **ATOMICS, **VECTORS, **WARPS, **LLVM, **NVGPU}

UNSIMULATED: Mapping[str, str] = {
    **dict.fromkeys(("builtin.module", "func.func", "llvm.func"), "holds ops, and is entered by name"),
    **dict.fromkeys(("memref.global", "llvm.mlir.global"), "the launch makes its buffer"),
    "builtin.unrealized_conversion_cast": "stands between two passes only",
    **dict.fromkeys(("llvm.addrspacecast", "llvm.ptrtoint", "llvm.inttoptr"), "addresses here are no numbers"),
    "llvm.intr.fptosi.sat": "no pass makes one",
    "tensor.from_elements": "no pass makes one; one that is read folds away",
}
"""Ops without a function here and without numpy in their row, and why; and all of `tile`, which `reference/` runs."""
