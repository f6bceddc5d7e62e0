"""Copies of arrays: of a buffer that a kernel may not write to, but updates.

    below 1 MiB     by this core: to call another one takes as long
    below 16 MiB    by all cores, a stretch each, through their caches: kernels share a buffer out by stretches, too
    from there on   by all cores, past the caches, which couldn't hold it

In: an array.  Out: a copy of it, in memory of the pool or in a given array.
"""

from __future__ import annotations

import functools

import numpy as np

from warpsmith.arrays import Array
from warpsmith.backends.cpu import jit as llvm_jit
from warpsmith.runtime import pool
from warpsmith.runtime.buffers import default_pool, pointer
from warpsmith.runtime.copy_kernel import GROUP_BYTES, LINE, copy_ir
from warpsmith.runtime.cpu_executable import ArgSpec, CpuKernel, load_kernels

__all__ = ["copied"]


_SMALL = 1 << 20
_LARGE = 16 << 20  # bytes from which on the caches are in the way
_CACHED_BYTES = 4 << 10  # that a workgroup copies through the caches


@functools.cache
def _code(cached: bool) -> llvm_jit.LoadedCode:
    (code,) = load_kernels([copy_ir(_group_bytes(cached), source_alignment=1, cached=cached)])
    return code


def _group_bytes(cached: bool) -> int:
    return _CACHED_BYTES if cached else GROUP_BYTES


def copied(array: Array, into: Array | None = None) -> Array:
    """A contiguous copy, in `into` where that is given: contiguous, and apart from the array."""
    made = default_pool().empty(array.shape, array.dtype) if into is None else into
    if array.nbytes < _SMALL or pointer(made) % LINE or not array.flags.c_contiguous:
        np.copyto(made, array)
        return made
    cached = array.nbytes < _LARGE
    groups = array.nbytes // _group_bytes(cached)
    kernel = CpuKernel(_code(cached), "copy", groups, [ArgSpec(), ArgSpec(LINE)])
    function, argv, total, grain = kernel.prepared([pointer(array), pointer(made)])
    pool.launch(function, argv, total, -(-total // pool.thread_count()) if cached else grain)
    done = groups * _group_bytes(cached)
    made.reshape(-1).view(np.uint8)[done:] = array.reshape(-1).view(np.uint8)[done:]
    return made
