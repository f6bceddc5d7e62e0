"""Arrays in and out of executables: anything array-like in, numpy arrays and addresses out; results in recycled memory.

A fresh page costs more than the kernel that fills it: the system takes 60 ms or more to hand out 256 MiB of new 4 KiB
pages, a GELU over them 13 ms.  So `BufferPool.empty` hands out memory that an earlier result has used, which it gets
back when the last numpy array (or view, or DLPack consumer) over it goes.  Blocks are private anonymous mappings, and
huge pages are asked for from 4 MiB on.  What is kept for reuse is limited (`WARPSMITH_POOL_BYTES`; default an eighth
of the memory, 4 GiB at most).

Small arrays come from numpy itself: its allocator recycles them faster than any code here could.
"""

from __future__ import annotations

import collections
import ctypes
import functools
import math
import mmap
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.errors import ArgumentMismatch, RuntimeFailure, UsageError
from warpsmith.runtime import dlpack

__all__ = ["ALIGNED_FROM", "ALIGNMENT", "BufferPool", "as_array", "default_pool", "pointer"]


ALIGNED_FROM = 1 << 16
"""Results of at least this many bytes come from the pool and are aligned to `ALIGNMENT`; smaller ones to 16."""

ALIGNMENT = 4096

_HUGE_PAGE = 2 << 20
_HUGE_FROM = 4 << 20


def _pointer_by_interface(array: Array) -> int:
    return array.ctypes.data


def _fastest_pointer() -> Callable[[Array], int]:
    """How to read an array's address: 0.1 us from the object itself, where that is proven to work, else 1 us by numpy.

    An ndarray object holds its data pointer right after the object's head, in every numpy so far; it is tried on
    arrays of several kinds before it is relied on.
    """
    if sys.implementation.name != "cpython":
        return _pointer_by_interface
    offset, read = object.__basicsize__, ctypes.c_void_p.from_address
    samples: list[Array] = [np.empty(3, np.uint8), np.empty((2, 2), np.float64)[1:], np.empty(8, np.int32)[::2]]
    if any(read(id(array) + offset).value != array.ctypes.data for array in samples):
        return _pointer_by_interface
    return lambda array: read(id(array) + offset).value or 0


pointer: Callable[[Array], int] = _fastest_pointer()
"""The address of an array's first element."""


def as_array(value: object) -> Array:
    """A numpy array over the same memory where that is possible: numpy arrays, anything with `__dlpack__`, else numpy's
    own conversion.  `ArgumentMismatch` for what isn't an array, or isn't in host memory."""
    if isinstance(value, dlpack.SupportsDlpack) and not isinstance(value, np.ndarray):
        return dlpack.to_numpy(value)
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentMismatch("a masked array would lose its mask: HLO has none", help="fill it: array.filled(value)")
    try:
        array: Array = np.asarray(value)
    except ValueError as error:
        raise ArgumentMismatch(f"a {type(value).__name__} isn't an array: {error}") from error
    if array.dtype == object:
        raise ArgumentMismatch(f"a {type(value).__name__} isn't an array")
    return array


class _Lease:
    """Mixed into the ctypes array that a result's memory belongs to: gives the block back when the last user goes."""

    give_back: Callable[[], None]

    def __del__(self) -> None:
        self.give_back()


@functools.lru_cache(maxsize=256)
def _lease_type(size: int) -> Any:
    return type("Lease", (_Lease, ctypes.c_char * size), {})


class _Block:
    """One mapping, unmapped when nothing refers to it any more."""

    __slots__ = ("offset", "region", "size")

    def __init__(self, size: int) -> None:
        huge = size >= _HUGE_FROM
        length = size + _HUGE_PAGE if huge else size
        try:
            if os.name == "posix":
                self.region = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            else:
                self.region = mmap.mmap(-1, length)
        except OSError as error:
            raise RuntimeFailure(f"no memory for {size} bytes: {error}") from error
        self.size, self.offset = size, 0
        if huge:
            start = ctypes.addressof(ctypes.c_char.from_buffer(self.region))
            self.offset = -start % _HUGE_PAGE
            advice = getattr(mmap, "MADV_HUGEPAGE", None)
            if advice is not None:
                self.region.madvise(advice)


class BufferPool:
    """Memory for results, recycled by size.  Safe for callers in several threads, and across `fork`."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        """Bytes that wait for reuse."""
        self._free: dict[int, list[_Block]] = {}
        self._order: collections.deque[int] = collections.deque()
        self._returned: collections.deque[_Block] = collections.deque()
        self._lock = threading.Lock()

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An uninitialised row-major array.  `RuntimeFailure` when the system has no memory for it."""
        size = math.prod(shape) * dtype.itemsize
        if size < ALIGNED_FROM:
            return np.empty(shape, dtype)
        step = _HUGE_PAGE if size >= _HUGE_FROM else ALIGNED_FROM
        block = self._take((size + step - 1) // step * step)
        lease = _lease_type(block.size).from_buffer(block.region, block.offset)
        lease.give_back = functools.partial(self._give_back, block)
        return np.ndarray(shape, dtype, buffer=lease)

    def trim(self) -> None:
        """Return all memory that waits for reuse to the system."""
        with self._lock:
            self._settle()
            self._free.clear()
            self._order.clear()
            self.held = 0

    def _take(self, size: int) -> _Block:
        with self._lock:
            self._settle()
            blocks = self._free.get(size)
            if blocks:
                self._order.remove(size)
                self.held -= size
                return blocks.pop()
        return _Block(size)

    def _give_back(self, block: _Block) -> None:
        """Called by the garbage collector, at any time and in any thread: even in one that holds the lock just now."""
        self._returned.append(block)
        if self._lock.acquire(blocking=False):
            try:
                self._settle()
            finally:
                self._lock.release()

    def _settle(self) -> None:
        """Put what came back on the free lists, and let the oldest go while there is more than the limit."""
        while self._returned:
            try:
                block = self._returned.popleft()
            except IndexError:
                return
            self._free.setdefault(block.size, []).append(block)
            self._order.append(block.size)
            self.held += block.size
        while self.held > self.limit:
            size = self._order.popleft()
            self._free[size].pop(0)
            self.held -= size

    def renew_lock(self) -> None:
        """In a forked child: the lock may have been held by a thread that isn't here."""
        self._lock = threading.Lock()


def _default_limit() -> int:
    asked = os.environ.get("WARPSMITH_POOL_BYTES")
    if asked is None:
        try:
            memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, ValueError, OSError):
            memory = 8 << 30
        return min(memory // 8, 4 << 30)
    if not asked.isdecimal():
        raise UsageError(f"WARPSMITH_POOL_BYTES is '{asked}', which isn't a number")
    return int(asked)


@functools.cache
def default_pool() -> BufferPool:
    """The process's pool of result memory."""
    pool = BufferPool(_default_limit())
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=pool.renew_lock)
    return pool
