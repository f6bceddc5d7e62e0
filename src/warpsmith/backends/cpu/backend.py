"""This computer's processor: kernels become machine code, loaded and called.

In: kernels.  Out: LLVM IR, assembly, `LoadedCode` with one function a kernel, and the outputs of a run:

    void NAME(void **argv, int64_t begin, int64_t end)            run workgroups begin .. end-1
    void NAME_setup(void **tables, int64_t begin, int64_t end)    fill the tables, if the kernel has any

The range is never empty.  `argv` holds the addresses of the arguments in order, then of numbers of elements
(`Lowered.sizes`), then of the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.backends.base import Backend, Buffers, Launched, Lowered, Store
from warpsmith.backends.cpu import jit
from warpsmith.backends.cpu.loader import KernelLoader
from warpsmith.backends.cpu.pipeline import LINE_BYTES, output_alignment, pipeline
from warpsmith.backends.llvm.text import llvm_text
from warpsmith.devices import Device
from warpsmith.ir.core.ssa import Operation
from warpsmith.kernel import Argument, Kernel
from warpsmith.passes.manager import PassCall
from warpsmith.simt.core.checks import Checks

__all__ = ["BACKEND", "Cpu", "alignments"]

_OPT = {"tensors": 2, "buffers": 3}
"""LLVM's level: loops over threads want its vectorisers (`jit.run_passes`)."""
_VECTOR = 16  # elements of the widest access


class Cpu(Backend[jit.LoadedCode]):
    """Code runs on the caller's thread, unless `run_groups` (a function's address, `argv`, workgroups) runs it."""

    name = "cpu"
    stages = ("emitted", "lowered", "llvm", "llvm-opt", "asm")

    def __init__(self, device: Device, run_groups: Callable[[int, bytes, int], None] | None = None) -> None:
        super().__init__(device)
        self._run_groups = run_groups

    def pipeline(self, kernel: Kernel[object]) -> tuple[PassCall, ...]:
        """The passes for the widest registers that are here."""
        return pipeline(kernel)

    def code(self, module: Operation) -> str:
        """LLVM IR of a lowered module."""
        return llvm_text(module, triple=jit.host_target()[0])

    def text(self, lowered: Lowered[object], stage: str, code: jit.LoadedCode) -> str:
        """`llvm-opt` or `asm`."""
        return jit.optimize_ir(lowered.code) if stage == "llvm-opt" else jit.assembly(lowered.code)

    def load(
        self, kernels: Iterable[Lowered[object]], *, expected: int = 1, store: Store | None = None
    ) -> list[jit.LoadedCode]:
        """Machine code, out of the store where it is there; all kernels are of one form."""
        loader: KernelLoader | None = None
        for each in kernels:
            loader = loader or KernelLoader(expected, store=store, opt=_OPT[each.kernel.form])
            loader.add(each.code)
        return loader.results() if loader is not None else []

    def launch(
        self, lowered: Lowered[object], code: jit.LoadedCode, buffers: Buffers, watch: Checks | None = None
    ) -> Launched:
        """Run all work groups.  Nothing is watched."""
        kernel = lowered.kernel
        wanted = zip(kernel.arguments, buffers, alignments(lowered), strict=True)
        memory = [_memory(each, given, alignment) for each, given, alignment in wanted]
        inputs = len(kernel.inputs)
        for output, source in kernel.aliases:
            memory[inputs + output][...] = memory[source]
            memory[source] = memory[inputs + output]
        sizes = [np.array([memory[number].size], np.int64) for number in lowered.sizes]
        tables = [_aligned(size) for size in lowered.table_bytes]
        if tables:
            self._call(code.address(f"{kernel.name}_setup"), tables, 1)
        padded = [_roomy(each) if kernel.form == "buffers" else each for each in memory]
        self._call(code.address(kernel.name), [*padded, *sizes, *tables], kernel.launch.workgroups)
        written = zip(kernel.arguments, padded, memory, strict=True)
        return [whole[: given.size] for each, whole, given in written if each.is_output], None

    def _call(self, address: int, arguments: Sequence[Array], groups: int) -> None:
        pointers = np.array([each.ctypes.data for each in arguments], np.uint64)
        if self._run_groups is not None:
            self._run_groups(address, pointers.tobytes(), groups)
        else:
            jit.KernelFunction(address)(pointers.ctypes.data, 0, groups)


BACKEND = Cpu


def alignments(lowered: Lowered[object]) -> list[int]:
    """What the code assumes of each argument's address."""
    found: list[int] = []
    for each in lowered.kernel.arguments:
        # A complex number is two reals, and numpy aligns it as one of them.
        element = max(1, each.dtype.bits // (16 if each.dtype.is_complex else 8))
        is_wide = each.is_output and lowered.kernel.form == "tensors"
        found.append(output_alignment(each.byte_size, element, streams=lowered.streams) if is_wide else element)
    return found


def _memory(argument: Argument, given: Array | np.generic | None, alignment: int) -> Array:
    """What is given, or a copy on whole lines where the kernel writes to it or it lies elsewhere; or new memory."""
    if given is None:
        dtype = argument.dtype.numpy
        return _aligned(argument.elements * dtype.itemsize).view(dtype)
    array = np.ascontiguousarray(given).reshape(-1)
    if not argument.is_output and array.ctypes.data % alignment == 0:
        return array
    copy = _aligned(array.nbytes).view(array.dtype)
    copy[...] = array
    return copy


def _aligned(size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    room = np.empty(size + LINE_BYTES, np.uint8)
    start = -room.ctypes.data % LINE_BYTES
    return room[start : start + size]


def _roomy(memory: Array) -> Array:
    """Memory that an access of a vector fits into, whatever its place."""
    if memory.size >= _VECTOR:
        return memory
    return np.concatenate([memory, np.zeros(_VECTOR - memory.size, memory.dtype)])
