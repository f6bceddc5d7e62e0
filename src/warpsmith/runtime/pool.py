"""Threads that run kernels: an address of machine code and its argument array in, a finished kernel out.

`launch` splits a kernel's workgroups over the cores and returns when all have run.  The pool is one for the process,
its workers start with the first kernel large enough for two cores, there is one thread a core that this process may
use (`WARPSMITH_THREADS` sets another number), and they take no processor time while nothing runs.  The mechanics are
native (`pool_code`); where there are no POSIX threads, Python's own thread pool does the same more slowly.

Safe for callers in several threads (a caller that finds the pool taken runs its kernel alone), and across `fork`: the
child has none of the parent's threads, so it forgets that pool and makes its own when it needs one.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from warpsmith.backends.cpu import jit as llvm_jit
from warpsmith.devices import core_count
from warpsmith.errors import RuntimeFailure, UsageError
from warpsmith.runtime.cache import default_cache
from warpsmith.runtime.pool_code import STATE_BYTES, pool_ir

__all__ = ["Launch", "Pool", "launch", "the_pool", "thread_count"]

Launch = tuple[int, bytes, int, int]
"""A kernel to run: its address, the packed pointers of its arguments, its workgroups, the workgroups of a piece."""


MOST_THREADS = 1024
"""More threads than any machine here has cores; a larger wish is cut to it."""


def thread_count() -> int:
    """Threads that a kernel may use: `WARPSMITH_THREADS`, else the cores that this process may run on."""
    asked = os.environ.get("WARPSMITH_THREADS")
    if asked is not None:
        if not asked.isdecimal() or int(asked) < 1:
            raise UsageError(f"WARPSMITH_THREADS is '{asked}', which isn't a positive number")
        return min(int(asked), MOST_THREADS)
    return core_count()


class Pool(Protocol):
    """What runs kernels.  `threads` counts the caller's own."""

    threads: int

    def launch(self, function: int, argv: bytes, total: int, grain: int) -> None:
        """Run `function(argv, b, e)` on pieces of [0, total) of at most `grain` workgroups; back when all have run."""
        ...

    def close(self) -> None:
        """Let the workers leave.  Afterwards kernels run on the caller's thread."""
        ...


@functools.cache
def _native_code() -> llvm_jit.LoadedCode:
    text = pool_ir(llvm_jit.host_target()[0])
    return llvm_jit.load_object(
        default_cache().object_for(text, lambda: llvm_jit.compile_object(text, check=False).data)
    )


@functools.cache
def _native(name: str, result: Any, *arguments: Any) -> Any:
    return ctypes.CFUNCTYPE(result, *arguments)(_native_code().address(name))


_I64, _POINTER = ctypes.c_int64, ctypes.c_void_p


class NativePool:
    """Workers in native code, sharing one page of state with the callers."""

    def __init__(self, threads: int) -> None:
        self._page = mmap.mmap(-1, max(STATE_BYTES, mmap.PAGESIZE), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._keep = ctypes.c_char.from_buffer(self._page)
        self._state: int | None = ctypes.addressof(self._keep)
        self._launch = _native("pool_launch", None, _POINTER, _POINTER, _POINTER, _I64, _I64)
        _native("pool_init", None, _POINTER)(self._state)
        started: int = _native("pool_start", _I64, _POINTER, _I64)(self._state, threads - 1)
        self.threads = started + 1

    def launch(self, function: int, argv: bytes, total: int, grain: int) -> None:
        """Run `function` on items 0 to `total`, at least `grain` a call, and wait for all."""
        self._launch(self._state, function, argv, total, grain)

    def close(self) -> None:
        """End the workers."""
        if self._state is not None:
            # The page stays mapped: workers may still be on their way out.
            _leaked_pages.append(self._page)
            _native("pool_stop", None, _POINTER)(self._state)
            self._state, self.threads = None, 1


_leaked_pages: list[mmap.mmap] = []


class PythonPool:
    """The same on Python's threads, for systems without POSIX threads."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._executor = ThreadPoolExecutor(threads, "warpsmith")

    def launch(self, function: int, argv: bytes, total: int, grain: int) -> None:
        """Run `function` on items 0 to `total`, at least `grain` a call, and wait for all."""
        kernel = llvm_jit.KernelFunction(function)
        if total <= 0:
            return
        if total <= grain or self.threads == 1:
            kernel(argv, 0, total)
            return
        bounds = [(begin, min(begin + grain, total)) for begin in range(0, total, grain)]
        for future in [self._executor.submit(kernel, argv, begin, end) for begin, end in bounds]:
            future.result()

    def close(self) -> None:
        """End the workers; what is launched from now on runs on the caller's thread."""
        self._executor.shutdown()
        self.threads = 1


class _Holder:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pool: Pool | None = None

    def get(self) -> Pool:
        with self.lock:
            if self.pool is None:
                threads = thread_count()
                self.pool = NativePool(threads) if os.name == "posix" else PythonPool(threads)
                if self.pool.threads < 1:
                    raise RuntimeFailure("the thread pool has no thread")
            return self.pool

    def forget(self) -> None:
        """In a forked child: the parent's workers aren't here, and its lock may be held by a thread that isn't."""
        self.lock = threading.Lock()
        self.pool = None


_holder = _Holder()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_holder.forget)


def the_pool() -> Pool:
    """This process's pool, started at the first call."""
    return _holder.pool or _holder.get()


def launch(function: int, argv: bytes, total: int, grain: int) -> None:
    """Run one kernel on the process's pool (`Pool.launch`)."""
    the_pool().launch(function, argv, total, grain)
