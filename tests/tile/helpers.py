"""Kernels from text, and the seed program."""

from __future__ import annotations

import itertools
import linecache
from typing import Any

IMPORTS = (
    "from warpsmith.tile import T, Tx, S, R, TileLayout, ComposeLayout, laneid, warpid, tx, wid_in_wg, tid_in_wg\n"
)

SEED = """
r_layout = TileLayout(S[(32, 8) : (1 @ laneid, 1)]); fs = (slice(0, 32), slice(0, 8))

@T.prim_func
def k(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (32, 8), "float32"); B = T.match_buffer(B_ptr, (32, 8), "float32")
    T.device_entry(); T.cta_id([1]); T.lane_id([32]); tid = T.thread_id([32])
    A_smem = T.alloc_buffer((32, 8), "float32", scope="shared", layout=TileLayout(S[(32, 8)]))
    Tx.warp.copy(A_smem[fs], A[fs]); T.cuda.cta_sync()
    R = T.alloc_buffer((32, 8), "float32", scope="local", layout=r_layout)
    Tx.warp.copy(R[fs], A_smem[fs])
    Tx.warp.sqrt(R[fs], R[fs])          # elementwise reg dispatch
    Tx.warp.copy(A_smem[fs], R[fs]); T.cuda.cta_sync()
    Tx.warp.copy(B[fs], A_smem[fs])
"""

_numbers = itertools.count(1)


def read(text: str, name: str = "k", **names: Any) -> Any:
    """The kernel `name` of a program text, behind the imports; `names` are its globals."""
    file = f"<kernel {next(_numbers)}>"
    source = IMPORTS + text
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"__name__": "kernels", **names}
    exec(compile(source, file, "exec"), scope)
    return scope[name]


def body(statements: str, *, parameters: str = "", block: int = 32, grid: int = 1) -> str:
    """A kernel with parameters A and B (64x64 f32 unless told otherwise) around some device statements."""
    lines = "\n".join("    " + line for line in statements.strip("\n").split("\n"))
    head = parameters or (
        'A = T.match_buffer(A_ptr, (64, 64), "float32"); B = T.match_buffer(B_ptr, (64, 64), "float32")'
    )
    return (
        f"@T.prim_func\ndef k(A_ptr: T.handle, B_ptr: T.handle):\n    {head}\n    T.device_entry()\n"
        f"    bx = T.cta_id([{grid}]); tid = T.thread_id([{block}])\n{lines}\n"
    )
