"""Which function handles which op: the tables of the simulator's parts in one.

Elementwise ops of arith and math aren't here: they run by the numpy function of their row.
"""

from __future__ import annotations

from collections.abc import Mapping

from warpsmith.simt.accesses import ACCESSES
from warpsmith.simt.atomics import ATOMICS
from warpsmith.simt.control import CONTROL
from warpsmith.simt.interpreter import Handler
from warpsmith.simt.llvm import LLVM
from warpsmith.simt.nvgpu import NVGPU
from warpsmith.simt.vectors import VECTORS
from warpsmith.simt.warps import WARPS

__all__ = ["HANDLERS"]

HANDLERS: Mapping[str, Handler] = {**CONTROL, **ACCESSES, **ATOMICS, **VECTORS, **WARPS, **LLVM, **NVGPU}
