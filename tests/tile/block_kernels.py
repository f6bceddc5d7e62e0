"""Kernels of one block of threads in IR, run by the simulator as they are and on the CPU as loops over threads."""

from __future__ import annotations

import numpy as np

from warpsmith.arrays import Array
from warpsmith.backends.cpu.backend import Cpu
from warpsmith.backends.cpu.pipeline import BLOCKS
from warpsmith.devices import device
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.types import MemRefType, numpy_dtype
from warpsmith.ir.dialects import func
from warpsmith.ir.text.parser import parse_module
from warpsmith.passes.manager import run_pipeline
from warpsmith.runtime.buffers import pointer
from warpsmith.runtime.cpu_executable import ArgSpec, CpuKernel, load_kernels
from warpsmith.simt import watch_kernel

__all__ = ["block_kernel", "native", "simulated"]


NUMBERS = (0, 1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 63, 64, 96, 128)


def block_kernel(
    body: str,
    *,
    threads: int | tuple[int, int, int] = 64,
    grid: tuple[int, int, int] = (1, 1, 1),
    element: str = "f32",
    out: str = "",
    size: int = 1024,
    shared: int = 1024,
) -> str:
    """%in and %out of `size` elements, %tile shared, %t, %lane, %warp, %g (the thread's number in the grid)."""
    block = threads if isinstance(threads, tuple) else (threads, 1, 1)
    constants = "\n".join(f"%c{i} = arith.constant {i} : index" for i in NUMBERS)
    numbers = "\n".join(f"%i{i} = arith.constant {i} : i32" for i in NUMBERS)
    extents = [", ".join(map(str, each)) for each in (grid, block)]
    return f"""
memref.global "private" @tile : memref<{shared}x{element}, 3> = uninitialized {{alignment = 128 : i64}}
func.func @main(%in: memref<{size}x{element}>, %out: memref<{size}x{out or element}>) attributes {{
    xla.entry, warpsmith.grid = array<i64: {extents[0]}>, warpsmith.block = array<i64: {extents[1]}>}} {{
  {constants}
  {numbers}
  %t = gpu.thread_id x {{xla.range = [0 : index, {block[0] - 1} : index]}}
  %b = gpu.block_id x {{xla.range = [0 : index, {grid[0] - 1} : index]}}
  %lane = arith.remui %t, %c32 : index
  %warp = arith.divui %t, %c32 : index
  %width = arith.constant {block[0]} : index
  %first = arith.muli %b, %width : index
  %g = arith.addi %first, %t : index
  %tile = memref.get_global @tile : memref<{shared}x{element}, 3>
  {body}
  return
}}
"""


def simulated(text: str, *inputs: Array, findings: bool = False, loops: bool = False) -> Array:
    """The output, which starts as zeros, and no finding.

    With `loops`, of what threads-to-loops makes of it: each work group a block of one thread, whose every access is
    watched, those of memories that the pass has made too.
    """
    module = parse_module(text)
    entry = func.entry(module)
    out = _zeros(entry.body.args[-1].type)
    aliased = text.replace("xla.entry,", f"xla.entry, warpsmith.aliases = array<i64: 0, {len(inputs)}>,")
    aliased = aliased.replace("%out: ", f"%before: {entry.body.args[-1].type}, %out: ")
    module = parse_module(aliased)
    if loops:
        entry = func.entry(module)
        groups = _work_groups(entry)
        run_pipeline(module, ("threads-to-loops", "canonicalize"))
        entry.attributes["warpsmith.grid"] = at.dense_array((groups, 1, 1))
        entry.attributes["warpsmith.block"] = at.dense_array((1, 1, 1))
    (found,), result = watch_kernel(module, [*inputs, out], 1)
    assert findings or not result.findings, [str(f) for f in result.findings]
    return found


def native(text: str, *inputs: Array) -> Array:
    """The same on this computer."""
    module = parse_module(text)
    entry = func.entry(module)
    out = _zeros(entry.body.args[-1].type)
    groups = _work_groups(entry)
    run_pipeline(module, BLOCKS)
    (code,) = load_kernels([Cpu(device("cpu")).code(module)])
    kernel = CpuKernel(code, "main", groups, [ArgSpec()] * (len(inputs) + 1))
    kernel.launch([pointer(array) for array in (*inputs, out)])
    return out


def _work_groups(entry: Operation) -> int:
    grid = entry.attributes["warpsmith.grid"]
    assert isinstance(grid, at.DenseArrayAttr)
    return int(np.prod(grid.values))


def _zeros(type: object) -> Array:
    assert isinstance(type, MemRefType)
    return np.zeros(type.elements, numpy_dtype(type))
