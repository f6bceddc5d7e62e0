"""Tile programs: kernels whose author says where each tile lives and how it is spread over threads.

    from warpsmith.tile import T, Tx, S, R, TileLayout, laneid

`layout` is the algebra of layouts, `frontend` reads kernels, `dispatch` chooses a lowering for each primitive,
`printers` show both forms as Python.  `T` is what a kernel is written in, `Tx` the primitives on tiles.
"""

from __future__ import annotations

from warpsmith.tile import layout as _layout
from warpsmith.tile.frontend.namespaces import language as T
from warpsmith.tile.frontend.namespaces.primitives import Tx
from warpsmith.tile.program import JitKernel, Kernel

S, R, TileLayout, ComposeLayout = _layout.S, _layout.R, _layout.TileLayout, _layout.ComposeLayout
laneid, warpid, wgid, tid_in_wg, wid_in_wg, tx, m = (
    _layout.laneid,
    _layout.warpid,
    _layout.wgid,
    _layout.tid_in_wg,
    _layout.wid_in_wg,
    _layout.tx,
    _layout.m,
)
bx, by, bz, cbx, cby, cbz = (_layout.AXES[name] for name in ("bx", "by", "bz", "cbx", "cby", "cbz"))
P, F, Bank, TLane, TCol = (_layout.AXES[name] for name in ("P", "F", "Bank", "TLane", "TCol"))
mma_a, mma_b, mma_c = _layout.mma_a, _layout.mma_b, _layout.mma_c

__all__ = [
    "Bank",
    "ComposeLayout",
    "F",
    "JitKernel",
    "Kernel",
    "P",
    "R",
    "S",
    "T",
    "TCol",
    "TLane",
    "TileLayout",
    "Tx",
    "bx",
    "by",
    "bz",
    "cbx",
    "cby",
    "cbz",
    "laneid",
    "m",
    "mma_a",
    "mma_b",
    "mma_c",
    "tid_in_wg",
    "tx",
    "warpid",
    "wgid",
    "wid_in_wg",
]
