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

__all__ = ["HANDLERS"]

HANDLERS: Mapping[str, Handler] = {**CONTROL, **ACCESSES, **ATOMICS, **VECTORS, **WARPS, **LLVM, **NVGPU}
