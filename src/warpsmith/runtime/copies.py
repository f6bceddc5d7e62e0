"""Copies of large arrays by all cores, past the caches: of a buffer that a kernel may not write to, but updates.

In: an array.  Out: a copy of it in memory of the pool.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from warpsmith.runtime.buffers import default_pool, pointer
from warpsmith.runtime.copy_kernel import GROUP_BYTES, LINE, copy_ir
from warpsmith.runtime.cpu_executable import ArgSpec, CpuKernel, load_kernels
from warpsmith.targets import llvm_jit

__all__ = ["copied"]

Array = np.ndarray[Any, np.dtype[Any]]

_LARGE = 16 << 20  # bytes from which on one core, through the caches, is slower


@functools.cache
def _code() -> llvm_jit.LoadedCode:
    (code,) = load_kernels([copy_ir(GROUP_BYTES, source_alignment=1)])
    return code


def copied(array: Array) -> Array:
    """A contiguous copy."""
    made = default_pool().empty(array.shape, array.dtype)
    groups = array.nbytes // GROUP_BYTES
    if array.nbytes < _LARGE or pointer(made) % LINE or not array.flags.c_contiguous:
        np.copyto(made, array)
        return made
    kernel = CpuKernel(_code(), "copy", groups, [ArgSpec(), ArgSpec(LINE)])
    kernel.launch([pointer(array), pointer(made)])
    done = groups * GROUP_BYTES
    made.reshape(-1).view(np.uint8)[done:] = array.reshape(-1).view(np.uint8)[done:]
    return made
