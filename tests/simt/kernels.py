"""Kernels for the simulator's tests, and running one."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.ir.text.parser import parse_module
from warpsmith.simt import run_kernel

__all__ = ["kernel", "run"]


def kernel(body: str, out: str, source: str = "8xf32", *, threads: int = 8, blocks: int = 1, extra: str = "") -> str:
    """A kernel of `threads` by `blocks` in the buffer form, with %t, %b, and some constants."""
    constants = "\n".join(f"%c{i} = arith.constant {i} : index" for i in (0, 1, 2, 3, 4, 5, 8))
    return f"""{extra}
func.func @main(%in: memref<{source}>, %out: memref<{out}>) attributes {{
    xla.entry, warpsmith.grid = array<i64: {blocks}, 1, 1>, warpsmith.block = array<i64: {threads}, 1, 1>}} {{
  {constants}
  %t = gpu.thread_id x {{xla.range = [0 : index, {threads - 1} : index]}}
  %b = gpu.block_id x {{xla.range = [0 : index, {blocks - 1} : index]}}
  {body}
  return
}}
"""


def run(text: str, *inputs: Array) -> list[Any]:
    """The one output, as a list."""
    arrays = inputs or (np.arange(8, dtype=np.float32),)
    (result,) = run_kernel(parse_module(text), arrays, 1)
    return result.tolist()
