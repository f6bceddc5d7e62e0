"""How fast this computer copies memory: the roof for memory-bound kernels in reports and benchmarks.

Measured, once a process: our own copy kernel over arrays larger than the last-level cache, on all cores, with
non-temporal stores of full lines, so that `bytes` are what the memory moves (one read and one write an element).
"""

from __future__ import annotations

import functools
import time

import numpy as np

from warpsmith.runtime.buffers import BufferPool, pointer
from warpsmith.runtime.copy_kernel import GROUP_BYTES, LINE, copy_ir
from warpsmith.runtime.cpu_executable import ArgSpec, CpuKernel, load_kernels

__all__ = ["copy_bandwidth"]

_BYTES = 128 << 20
_REPEATS = 5


@functools.cache
def copy_bandwidth() -> float:
    """Bytes a second (read and written together) of the best of a few copies."""
    pool = BufferPool(limit=0)
    source, target = (pool.empty((_BYTES,), np.dtype(np.uint8)) for _ in range(2))
    source[:] = 1
    target[:] = 0
    (code,) = load_kernels([copy_ir(GROUP_BYTES)])
    spec = ArgSpec(alignment=LINE)
    kernel = CpuKernel(code, "copy", _BYTES // GROUP_BYTES, [spec, spec])
    times: list[float] = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        kernel.launch([pointer(source), pointer(target)])
        times.append(time.perf_counter() - start)
    return 2 * _BYTES / min(times)
