"""Which op the simulator has a function for: one, and of each op or a reason."""

from __future__ import annotations

from collections import Counter

import warpsmith.ir.dialects
from warpsmith.ir.core.ssa import REGISTRY, Trait
from warpsmith.simt.ir.accesses import ACCESSES
from warpsmith.simt.ir.atomics import ATOMICS
from warpsmith.simt.ir.control import CONTROL
from warpsmith.simt.ir.handlers import HANDLERS, UNSIMULATED
from warpsmith.simt.ir.llvm import LLVM
from warpsmith.simt.ir.nvgpu import NVGPU
from warpsmith.simt.ir.vectors import VECTORS
from warpsmith.simt.ir.warps import WARPS

assert warpsmith.ir.dialects.__name__  # rows are registered by importing it


def test_every_row_runs_or_says_why_not() -> None:
    """Wrong: an op is added that the simulator meets only when a user does; or a reason outlives its op."""
    missing = {
        name
        for name, row in REGISTRY.items()
        if row.numpy is None and not row.traits & Trait.TERMINATOR and row.dialect != "tile" and name not in HANDLERS
    }
    assert missing == set(UNSIMULATED)


def test_an_op_is_registered_once() -> None:
    """Wrong: one table hides another's function, or a function hides the row's numpy."""
    tables = (CONTROL, ACCESSES, ATOMICS, VECTORS, WARPS, LLVM, NVGPU)
    assert [name for name, count in Counter(name for table in tables for name in table).items() if count > 1] == []
    assert [name for name in HANDLERS if name not in REGISTRY or REGISTRY[name].numpy is not None] == []
