"""Tile programs: kernels whose author says where each tile lives and how it is spread over threads.

    from warpsmith.tile import T, Tx, S, R, TileLayout, laneid

`layout` is the algebra of layouts, `frontend` reads kernels, `dispatch` chooses a lowering for each primitive,
`printers` show both forms as Python.  `T` is what a kernel is written in, `Tx` the primitives on tiles.

    import warpsmith as ws
    kernel = ws.tile.load("examples/tile/softmax.py")
    print(ws.tile.run(kernel))

`load`, `run`, `compile` and `explain` are imported when they are first used, for they need the rest of the package.
"""

from __future__ import annotations

import importlib
from typing import Any

from warpsmith.tile.files import load_kernel as load
from warpsmith.tile.frontend.namespaces import language as T
from warpsmith.tile.frontend.namespaces.primitives import Tx
from warpsmith.tile.layout import (
    AXES,
    ComposeLayout,
    R,
    S,
    TileLayout,
    laneid,
    mma_a,
    mma_b,
    mma_c,
    tid_in_wg,
    tx,
    warpid,
    wgid,
    wid_in_wg,
)
from warpsmith.tile.layout import axis_of as axis
from warpsmith.tile.program import JitKernel, Kernel

bx, by, bz, cbx, cby, cbz = (AXES[name] for name in ("bx", "by", "bz", "cbx", "cby", "cbz"))
Bank, TLane, TCol = AXES["Bank"], AXES["TLane"], AXES["TCol"]

__all__ = [
    "Bank",
    "ComposeLayout",
    "JitKernel",
    "Kernel",
    "R",
    "S",
    "T",
    "TCol",
    "TLane",
    "TileLayout",
    "Tx",
    "axis",
    "bx",
    "by",
    "bz",
    "cbx",
    "cby",
    "cbz",
    "laneid",
    "load",
    "mma_a",
    "mma_b",
    "mma_c",
    "tid_in_wg",
    "tx",
    "warpid",
    "wgid",
    "wid_in_wg",
]

_ABOVE = ("compile", "explain", "run")  # in report, which knows the compiler
_HOME = "warpsmith.report.tile"


def __getattr__(name: str) -> Any:
    if name not in _ABOVE:
        raise AttributeError(f"module 'warpsmith.tile' has no attribute '{name}'")
    value = globals()[name] = getattr(importlib.import_module(_HOME), name)
    return value


def __dir__() -> list[str]:
    return sorted((*__all__, *_ABOVE))
