"""Kernels on the CPU: LLVM IR text to loaded code, and loaded code to a finished run.

`load_kernels` takes modules through the disk cache and, for what isn't there, through the compiler (in several
processes when there is much).  A `CpuKernel` is one function of such a module:

    void NAME(void **argv, int64_t begin, int64_t end)     run workgroups begin .. end-1
    void NAME_setup(void **tables, int64_t begin, int64_t end)    fill the tables, once, if the kernel has any

The range is never empty (a setup's is 0, 1).  `argv` holds the addresses of the inputs in order, then of the outputs,
then of the tables.
A workgroup is a piece of work for one core; pieces of several workgroups are handed out to the cores as these become
free.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warpsmith.backends.cpu import jit as llvm_jit
from warpsmith.backends.llvm import isolate as llvm_isolate
from warpsmith.errors import RuntimeFailure
from warpsmith.runtime import pool
from warpsmith.runtime.buffers import pointer
from warpsmith.runtime.cache import Cache, cache_key, default_cache

__all__ = ["ArgSpec", "CpuKernel", "KernelLoader", "load_kernels"]

_PIECES_PER_THREAD = 4
_TABLE_ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class ArgSpec:
    """What the code assumes of one pointer: the alignment in bytes (a power of two) that its accesses claim."""

    alignment: int = 1
    name: str = "an argument"


class KernelLoader:
    """Code for modules of LLVM IR, from a cache or the compiler, while the caller still makes more of them.

    `expected` is how many there will be; `cache` defaults to the user's (`Cache(None)` holds nothing).
    """

    def __init__(self, expected: int, *, cache: Cache | None = None, opt: int = 2) -> None:
        self._store = default_cache() if cache is None else cache
        self._batch = llvm_isolate.object_batch(expected, opt=opt)
        self._kind = f"object{opt}"
        self._numbers: dict[str, int] = {}  # equal modules are compiled once
        self._order: list[int] = []
        self._loaded: list[llvm_jit.LoadedCode | None] = []
        self._missing: list[tuple[int, str]] = []

    def add(self, text: str) -> None:
        """Start to compile a kernel's LLVM IR; equal texts are compiled once."""
        number = self._numbers.setdefault(text, len(self._loaded))
        self._order.append(number)
        if number < len(self._loaded):
            return
        key = cache_key(self._kind, text) if self._store.directory is not None else ""
        code = _load_cached(self._store, key)
        if code is None:
            self._missing.append((number, key))
            self._batch.add(text)
        self._loaded.append(code)

    def results(self) -> list[llvm_jit.LoadedCode]:
        """Code for each module in the order of `add`.  `LoweringError` when LLVM can't compile one."""
        for (index, key), data in zip(self._missing, self._batch.results(), strict=True):
            self._loaded[index] = llvm_jit.load_object(data)
            self._store.put(key, data)
        self._missing = []
        codes = [code for code in self._loaded if code is not None]
        return [codes[number] for number in self._order]


def load_kernels(texts: Sequence[str], *, cache: Cache | None = None, opt: int = 2) -> list[llvm_jit.LoadedCode]:
    """Code for each module of LLVM IR, in order, as `KernelLoader` makes it.

    Raises `LoweringError` when LLVM can't compile a module.  A cached object that can't be loaded is made anew.
    """
    loader = KernelLoader(len(texts), cache=cache, opt=opt)
    for text in texts:
        loader.add(text)
    return loader.results()


def _load_cached(store: Cache, key: str) -> llvm_jit.LoadedCode | None:
    data = store.get(key)
    if data is None:
        return None
    try:
        return llvm_jit.load_object(data)
    except llvm_jit.LoweringError:
        return None


class _Fill:
    """The lock under which tables are filled; a forked child gets one of its own, since a lost thread may hold it."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.lock = threading.Lock()


_fill = _Fill()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fill.renew)


class CpuKernel:
    """One kernel, ready to run.  Immutable after construction, so any number of threads may launch it."""

    __slots__ = (
        "_checks",
        "_function",
        "_grain",
        "_pack",
        "_table_bytes",
        "_tables",
        "aliases",
        "alignments",
        "code",
        "name",
        "workgroups",
    )

    def __init__(
        self,
        code: llvm_jit.LoadedCode,
        name: str,
        workgroups: int,
        arguments: Sequence[ArgSpec],
        *,
        table_bytes: Sequence[int] = (),
        aliases: Sequence[tuple[int, int]] = (),
        threads: int | None = None,
    ) -> None:
        """`arguments` has one entry a pointer, inputs before outputs; the tables, if any, aren't among them.

        `aliases` are (output, input) pairs that are one buffer, by position among outputs and inputs.
        `threads` limits the cores that the kernel is worth (1: it runs on the caller's thread).  Raises
        `LoweringError` when the code has no such function.
        """
        self.code, self.name, self.workgroups = code, name, workgroups
        self._function = code.address(name)
        pieces = (pool.thread_count() if threads is None else threads) * _PIECES_PER_THREAD
        self._grain = workgroups if pieces <= _PIECES_PER_THREAD else max(1, -(-workgroups // pieces))
        count = len(arguments) + len(table_bytes)
        self._pack = struct.Struct(f"={count}Q").pack
        self.aliases = tuple(aliases)
        self.alignments = tuple(spec.alignment for spec in arguments)
        self._checks = tuple(
            (i, spec.alignment - 1, spec.name) for i, spec in enumerate(arguments) if spec.alignment > 1
        )
        self._tables: list[np.ndarray[tuple[int], np.dtype[np.uint8]]] | None = None
        self._table_bytes = tuple(table_bytes)

    def launch(self, pointers: Sequence[int]) -> None:
        """Run the whole kernel; back when it is done.

        Raises `RuntimeFailure` for a pointer that isn't aligned as the code assumes.
        """
        pool.launch(*self.prepared(pointers))

    def prepared(self, pointers: Sequence[int]) -> pool.Launch:
        """The launch as data, for `pool.launch`.  The tables are filled here, when they haven't been."""
        for index, mask, name in self._checks:
            if pointers[index] & mask:
                raise RuntimeFailure(
                    f"{name} of kernel '{self.name}' is at {pointers[index]:#x}, which isn't a multiple of {mask + 1}",
                    help="copy the array, or let the executable make its own results",
                )
        if not self._table_bytes:
            return self._function, self._pack(*pointers), self.workgroups, self._grain
        tables = self._tables
        if tables is None:
            tables = self._filled_tables()
        return self._function, self._pack(*pointers, *map(pointer, tables)), self.workgroups, self._grain

    def _filled_tables(self) -> list[np.ndarray[tuple[int], np.dtype[np.uint8]]]:
        with _fill.lock:
            if self._tables is None:
                tables = [_aligned(size) for size in self._table_bytes]
                addresses = struct.pack(f"={len(tables)}Q", *map(pointer, tables))
                pool.launch(self.code.address(f"{self.name}_setup"), addresses, 1, 1)
                self._tables = tables
            return self._tables


def _aligned(size: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    room = np.empty(size + _TABLE_ALIGNMENT, np.uint8)
    start = -pointer(room) % _TABLE_ALIGNMENT
    return room[start : start + size]
