"""How fast this computer copies memory: the roof for memory-bound kernels in reports and benchmarks.

Measured, once a process: our own copy kernel over arrays larger than the last-level cache, on all cores, with
non-temporal stores of full lines, so that `bytes` are what the memory moves (one read and one write an element).
"""

from __future__ import annotations

import functools
import time

import numpy as np

from warpsmith.runtime.buffers import BufferPool, pointer
from warpsmith.runtime.cpu_executable import ArgSpec, CpuKernel, load_kernels

__all__ = ["copy_bandwidth", "copy_ir"]

_BYTES = 128 << 20
_GROUP_BYTES = 256 << 10
_REPEATS = 5


def copy_ir(group_bytes: int) -> str:
    """A kernel `copy` whose workgroup moves `group_bytes` (a multiple of 128) between 64-byte-aligned arrays."""
    return f"""
define void @copy(ptr %argv, i64 %begin, i64 %end) {{
entry:
  %q = getelementptr ptr, ptr %argv, i64 1
  %in = load ptr, ptr %argv
  %out = load ptr, ptr %q
  %lo = mul i64 %begin, {group_bytes}
  %hi = mul i64 %end, {group_bytes}
  %any = icmp slt i64 %lo, %hi
  br i1 %any, label %loop, label %exit
loop:
  %i = phi i64 [%lo, %entry], [%next, %loop]
  %j = add i64 %i, 64
  %a = getelementptr i8, ptr %in, i64 %i
  %b = getelementptr i8, ptr %in, i64 %j
  %c = getelementptr i8, ptr %out, i64 %i
  %d = getelementptr i8, ptr %out, i64 %j
  %x = load <16 x i32>, ptr %a, align 64
  %y = load <16 x i32>, ptr %b, align 64
  store <16 x i32> %x, ptr %c, align 64, !nontemporal !0
  store <16 x i32> %y, ptr %d, align 64, !nontemporal !0
  %next = add i64 %i, 128
  %more = icmp slt i64 %next, %hi
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}
!0 = !{{i32 1}}
"""


@functools.cache
def copy_bandwidth() -> float:
    """Bytes a second (read and written together) of the best of a few copies."""
    pool = BufferPool(limit=0)
    source, target = (pool.empty((_BYTES,), np.dtype(np.uint8)) for _ in range(2))
    source[:] = 1
    target[:] = 0
    code = load_kernels([copy_ir(_GROUP_BYTES)])[0]
    spec = ArgSpec(alignment=64)
    kernel = CpuKernel(code, "copy", _BYTES // _GROUP_BYTES, [spec, spec])
    times: list[float] = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        kernel.launch([pointer(source), pointer(target)])
        times.append(time.perf_counter() - start)
    return 2 * _BYTES / min(times)
