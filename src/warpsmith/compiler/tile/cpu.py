"""A tile program as native code of this computer: each block of threads a piece of work for one core.

In: a kernel.  Out: a `TileExecutable`, to be called with arrays as often as wanted.  The passes are those of
`backends/cpu/lowering.py: lower_blocks`; LLVM's own pipeline makes vectors of the loops over threads.

Native code checks nothing.  An index that memory decides is clamped (`passes/clamp_indices.py`); one that follows from
ids and arguments, and lies outside of its buffer, reads or writes whatever is there.  `run_tile` therefore runs the
meaning of the primitives first, which checks every index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.backends.cpu import lowering as cpu
from warpsmith.compiler.tile.arguments import Bound, bind_arguments
from warpsmith.devices import device
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.types import INDEX, MemRefType, Type, numpy_dtype
from warpsmith.ir.dialects import func
from warpsmith.passes.clamp_indices import SIZES
from warpsmith.reference.memory import array_of, memory_of
from warpsmith.runtime.buffers import pointer
from warpsmith.runtime.cache import Cache
from warpsmith.runtime.cpu_executable import ArgSpec, CpuKernel, load_kernels
from warpsmith.tile.dispatch import dispatch
from warpsmith.tile.program import Kernel

__all__ = ["TileExecutable", "compile_blocks"]


_OPT = 3  # with LLVM's vectorisers (llvm_jit.run_passes)
_VECTOR = 16  # elements of the widest access


class TileExecutable:
    """A compiled kernel.  Immutable, so any number of threads may call it."""

    def __init__(self, kernel: Kernel, module: Operation, *, cache: Cache | None = None) -> None:
        """`module` is the dispatched kernel, which is rewritten.  LoweringError: see `targets.cpu.lower_blocks`."""
        self.kernel = kernel
        self._types: list[Type] = [argument.type for argument in func.entry(module).body.args]
        self._signature = _signature(module)
        name = func.entry(module).str_attr("sym_name")
        cpu.lower_blocks(module)
        self._sized = _sized(module, name)
        (code,) = load_kernels([cpu.llvm_ir(module)], cache=cache, opt=_OPT)
        specs = [ArgSpec(_alignment(type), p.name) for type, p in zip(self._types, kernel.parameters, strict=True)]
        specs += [ArgSpec(_alignment(INDEX))] * len(self._sized)
        self._kernel = CpuKernel(code, name, int(np.prod(kernel.launch.grid)), specs)

    def __call__(self, arrays: Mapping[str, Any] | Sequence[Any] | None = None, *, seed: int = 0) -> dict[str, Array]:
        """The buffers that the kernel writes, by parameter, from arrays by parameter or in order.

        A buffer that it writes starts as zeros where none is given; any other is random, as `run_tile` has it.
        """
        bound = bind_arguments(self.kernel, self._signature, self._with_outputs(arrays), seed)
        found = self.run(bound)
        return {name: found[name] for name in bound.written}

    def _with_outputs(
        self, arrays: Mapping[str, Any] | Sequence[Any] | None
    ) -> Mapping[str, Any] | Sequence[Any] | None:
        """The arguments, and zeros for what the kernel writes, where its size is known."""
        attributes = func.arg_attributes(func.entry(self._signature))
        buffers = [
            (p.name, p.shape, p.type.numpy, "xla.invariant" in known)
            for p, known in zip(self.kernel.parameters, attributes, strict=True)
            if p.shape is not None
        ]
        if isinstance(arrays, Mapping):
            given = dict(arrays)
        elif len(arrays or ()) > len(buffers):
            return arrays
        else:
            given = {name: array for (name, *_), array in zip(buffers, arrays or (), strict=False)}
        for name, shape, dtype, only_read in buffers:
            extents = [extent for extent in shape if isinstance(extent, int)]
            if not only_read and len(extents) == len(shape) and not {name, name.removesuffix("_ptr")} & given.keys():
                given[name] = np.zeros(extents, dtype)
        return given

    def run(self, bound: Bound) -> dict[str, Array]:
        """All buffers after the kernel; those that it writes are copies."""
        memory: list[Array] = []
        for parameter, type in zip(self.kernel.parameters, self._types, strict=True):
            if isinstance(type, MemRefType):
                given = bound.buffers[parameter.name]
                memory.append(memory_of(parameter, given, type, copied=parameter.name in bound.written))
            else:
                memory.append(np.array([bound.scalars[parameter.name]]).astype(numpy_dtype(type)))
        sizes = [np.array([memory[number].size], np.int64) for number in self._sized]
        memory = [_roomy(each) for each in memory]
        self._kernel.launch([pointer(each) for each in (*memory, *sizes)])
        result: dict[str, Array] = {}
        for parameter, flat in zip(self.kernel.parameters, memory, strict=True):
            if parameter.name in bound.buffers:
                given = bound.buffers[parameter.name]
                result[parameter.name] = array_of(parameter, flat, given)
        return result


def compile_blocks(kernel: Kernel, target: str = "sm_90", *, cache: Cache | None = None) -> TileExecutable:
    """Compile a kernel, dispatched as for the GPU `target`, for this computer's CPU.

    Raises DispatchFailed and LoweringError.
    """
    return TileExecutable(kernel, dispatch(kernel, device(target)).module, cache=cache)


def _signature(module: Operation) -> Operation:
    """What `bind_arguments` reads of a module: its entry without the ops in it."""
    copy, entry = func.module(), func.entry(module)
    name, inputs, known = entry.str_attr("sym_name"), func.function_type(entry).inputs, func.arg_attributes(entry)
    b = Builder.at_end(copy.body)
    made = func.build(b, name, inputs, (), arg_attributes=known, attributes=entry.attributes)
    func.ret(Builder.at_end(made.body), ())
    return copy


def _sized(module: Operation, name: str) -> tuple[int, ...]:
    """The parameters whose numbers of elements are more arguments (clamp_indices.py)."""
    lowered = next(op for op in module.body if op.attributes.get("sym_name") == at.string(name))
    found = lowered.attributes.get(SIZES)
    return tuple(found.values) if isinstance(found, at.DenseArrayAttr) else ()


def _roomy(memory: Array) -> Array:
    """Memory that an access of a vector fits into, whatever its place."""
    if memory.size >= _VECTOR:
        return memory
    return np.concatenate([memory, np.zeros(_VECTOR - memory.size, memory.dtype)])


def _alignment(type: Type) -> int:
    return numpy_dtype(type).itemsize
