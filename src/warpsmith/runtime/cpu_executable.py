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

from warpsmith.backends.base import Lowered
from warpsmith.backends.cpu import jit as llvm_jit
from warpsmith.backends.cpu.backend import alignments
from warpsmith.backends.cpu.loader import KernelLoader
from warpsmith.errors import RuntimeFailure
from warpsmith.runtime import pool
from warpsmith.runtime.buffers import pointer
from warpsmith.runtime.cache import Cache, default_cache

__all__ = ["ArgSpec", "CpuKernel", "cpu_kernel", "load_kernels", "run_on_all_cores"]

_PIECES_PER_THREAD = 4
_TABLE_ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class ArgSpec:
    """What the code assumes of one pointer: the alignment in bytes (a power of two) that its accesses claim."""

    alignment: int = 1
    name: str = "an argument"


def load_kernels(texts: Sequence[str], *, cache: Cache | None = None, opt: int = 2) -> list[llvm_jit.LoadedCode]:
    """Code for each module of LLVM IR, in order, from a cache (the user's by default) or the compiler.

    Raises `LoweringError` when LLVM can't compile a module.  A cached object that can't be loaded is made anew.
    """
    loader = KernelLoader(len(texts), store=default_cache() if cache is None else cache, opt=opt)
    for text in texts:
        loader.add(text)
    return loader.results()


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
        self._grain = _grain(workgroups, pool.thread_count() if threads is None else threads)
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


def run_on_all_cores(function: int, arguments: bytes, workgroups: int) -> None:
    """Run a kernel's function, by its address, in pieces that are handed out to the cores."""
    pool.launch(function, arguments, workgroups, _grain(workgroups, pool.thread_count()))


def _grain(workgroups: int, threads: int) -> int:
    """How many work groups a piece is."""
    pieces = threads * _PIECES_PER_THREAD
    return workgroups if pieces <= _PIECES_PER_THREAD else max(1, -(-workgroups // pieces))


def cpu_kernel(lowered: Lowered[object], code: llvm_jit.LoadedCode) -> CpuKernel:
    """A kernel that was lowered for this computer, and its code, ready to run; numbers of elements come last."""
    kernel = lowered.kernel
    specs = [
        ArgSpec(alignment, each.name) for alignment, each in zip(alignments(lowered), kernel.arguments, strict=True)
    ]
    specs += [ArgSpec(8)] * len(lowered.sizes)
    groups = kernel.launch.workgroups
    return CpuKernel(code, kernel.name, groups, specs, table_bytes=lowered.table_bytes, aliases=kernel.aliases)
