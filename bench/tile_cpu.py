"""Tile programs as native code against numpy: `python bench/tile_cpu.py`.

The seed program's square roots and the softmax of `examples/tile`, on one block and on many.  Times are the least of
twenty runs, without compiling, with the copy of the output array that each run makes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.tile.helpers import read
from warpsmith.compiler.tile.launches import compile_blocks
from warpsmith.runtime.cache import Cache

ROOTS = """
layout = TileLayout(S[(32, 8) : (1 @ laneid, 1)])

@T.prim_func
def k(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (N, 8), "float32"); B = T.match_buffer(B_ptr, (N, 8), "float32")
    T.device_entry(); bx = T.cta_id([N // 32]); T.lane_id([32]); tid = T.thread_id([32])
    staged = T.alloc_shared((32, 8), "float32")
    Tx.warp.copy(staged, A[bx * 32 : bx * 32 + 32, 0:8]); T.cuda.cta_sync()
    R = T.alloc_buffer((32, 8), "float32", scope="local", layout=layout)
    Tx.warp.copy(R, staged)
    Tx.warp.sqrt(R, R)
    Tx.warp.copy(staged, R); T.cuda.cta_sync()
    Tx.warp.copy(B[bx * 32 : bx * 32 + 32, 0:8], staged)
"""
SOFTMAX = """
rows = TileLayout(S[(4, 8, 4, 8) : (1 @ warpid, 4 @ laneid, 1 @ laneid, 1)])
totals = TileLayout(S[(4, 8, 1) : (1 @ warpid, 4 @ laneid, 1)] + R[4 : 1 @ laneid])

@T.prim_func
def k(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (N, 32), "float32"); B = T.match_buffer(B_ptr, (N, 32), "float32")
    T.device_entry(); bx = T.cta_id([N // 32]); T.thread_id([128])
    x = T.alloc_buffer((32, 32), "float32", scope="local", layout=rows)
    most = T.alloc_buffer((32, 1), "float32", scope="local", layout=totals)
    total = T.alloc_buffer((32, 1), "float32", scope="local", layout=totals)
    Tx.cta.copy(x, A[bx * 32 : bx * 32 + 32, :])
    Tx.cta.max(most, x, axes=[1])
    Tx.cta.sub(x, x, most)
    Tx.cta.exp(x, x)
    Tx.cta.sum(total, x, axes=[1])
    Tx.cta.fdiv(x, x, total)
    Tx.cta.copy(B[bx * 32 : bx * 32 + 32, :], x)
"""


def softmax(a: np.ndarray) -> np.ndarray:
    powers = np.exp(a - a.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def seconds(function: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(20):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    """Print a line a program and size."""
    for name, text, columns, wanted in (("square roots", ROOTS, 8, np.sqrt), ("softmax", SOFTMAX, 32, softmax)):
        for rows in (32, 65536):
            a = np.random.default_rng(1).random((rows, columns), dtype=np.float32)
            start = time.perf_counter()
            executable = compile_blocks(read(text, N=rows), cache=Cache(None))
            compiled = time.perf_counter() - start
            np.testing.assert_allclose(executable([a])["B_ptr"], wanted(a), rtol=1e-5)
            ours, numpy = seconds(partial(executable, [a])), seconds(partial(wanted, a))
            print(
                f"{name} {rows}x{columns}: compiled in {compiled * 1e3:.0f} ms, {ours * 1e6:.0f} us; "
                f"numpy {numpy * 1e6:.0f} us ({numpy / ours:.2f} times as long)"
            )


if __name__ == "__main__":
    main()
