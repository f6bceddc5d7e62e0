"""Copies of large arrays by all cores, past the caches: of a buffer that a kernel may not write to, but updates.

In: an array.  Out: a copy of it in memory of the pool.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from warpsmith.runtime.buffers import default_pool, pointer
from warpsmith.runtime.cpu_executable import ArgSpec, CpuKernel, load_kernels
from warpsmith.targets import llvm_jit

__all__ = ["copied"]

Array = np.ndarray[Any, np.dtype[Any]]

_LINE = 64
_GROUP_BYTES = 256 << 10
_LARGE = 16 << 20  # bytes from which on one core, through the caches, is slower

_IR = f"""
define void @copy(ptr %argv, i64 %begin, i64 %end) {{
entry:
  %q = getelementptr ptr, ptr %argv, i64 1
  %in = load ptr, ptr %argv
  %out = load ptr, ptr %q
  %lo = mul i64 %begin, {_GROUP_BYTES}
  %hi = mul i64 %end, {_GROUP_BYTES}
  br label %loop
loop:
  %i = phi i64 [%lo, %entry], [%next, %loop]
  %a = getelementptr i8, ptr %in, i64 %i
  %b = getelementptr i8, ptr %out, i64 %i
  %x = load <16 x i32>, ptr %a, align 1
  store <16 x i32> %x, ptr %b, align {_LINE}, !nontemporal !0
  %next = add i64 %i, {_LINE}
  %more = icmp slt i64 %next, %hi
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}
!0 = !{{i32 1}}
"""


@functools.cache
def _code() -> llvm_jit.LoadedCode:
    (code,) = load_kernels([_IR])
    return code


def copied(array: Array) -> Array:
    """A contiguous copy."""
    made = default_pool().empty(array.shape, array.dtype)
    groups = array.nbytes // _GROUP_BYTES
    if array.nbytes < _LARGE or pointer(made) % _LINE or not array.flags.c_contiguous:
        np.copyto(made, array)
        return made
    kernel = CpuKernel(_code(), "copy", groups, [ArgSpec(), ArgSpec(_LINE)])
    kernel.launch([pointer(array), pointer(made)])
    done = groups * _GROUP_BYTES
    made.reshape(-1).view(np.uint8)[done:] = array.reshape(-1).view(np.uint8)[done:]
    return made
