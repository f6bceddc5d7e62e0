"""Running a plan: kernels and host steps over numbered buffers.

In: a `Plan` from the compiler.  `Executable.__call__` takes one array a parameter leaf and gives one array an output
leaf, in HLO's dtypes and logical shapes.  Arrays pass through without a copy when they are contiguous in their HLO
layout.  Results come from a recycled pool, so that a repeated call touches no fresh pages; `out=` writes into the
caller's arrays instead.

A plan of one kernel, the usual case for a fusion, takes a short way: validate, allocate, one native call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from warpsmith.dtypes import DType
from warpsmith.errors import ArgumentMismatch, UsageError, did_you_mean
from warpsmith.runtime.buffers import as_array, default_pool, pointer
from warpsmith.runtime.cpu_executable import CpuKernel

__all__ = ["BufferSpec", "Executable", "HostStep", "KernelInfo", "KernelStep", "Plan"]

Array = np.ndarray[Any, np.dtype[Any]]

STREAM_ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class BufferSpec:
    """One buffer: the logical shape, the element type, and the order of dims in memory, minor first."""

    dims: tuple[int, ...]
    dtype: DType
    minor_to_major: tuple[int, ...]

    @property
    def is_row_major(self) -> bool:
        return self.minor_to_major == tuple(range(len(self.dims) - 1, -1, -1))

    @property
    def byte_size(self) -> int:
        count = 1
        for dim in self.dims:
            count *= dim
        return self.dtype.byte_size(count)

    def describe(self) -> str:
        """As HLO writes it: `f32[4,8]{0,1}`."""
        layout = "" if self.is_row_major else f"{{{','.join(map(str, self.minor_to_major))}}}"
        return f"{self.dtype}[{','.join(map(str, self.dims))}]{layout}"


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """What a user may ask of a kernel."""

    fusion: str
    emitter: str
    variant: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    host: bool = False
    bytes: int = 0  # inputs and outputs, each counted once


@dataclass(frozen=True, slots=True)
class KernelStep:
    """A kernel over buffers: inputs in order, then outputs."""

    kernel: CpuKernel
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    name: str


@dataclass(frozen=True, slots=True)
class HostStep:
    """A function of arrays that runs on the host, for ops without an emitter."""

    function: Callable[[Sequence[Array]], Sequence[Array]]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    name: str


@dataclass(slots=True)
class Plan:
    """Steps in order over numbered buffers.

    `storage[b]` is the buffer whose memory b shares: itself, unless b is a view of another (a bitcast).  `constants` hold
    their arrays; `outputs` may repeat, or name parameters and constants.
    """

    buffers: list[BufferSpec]
    storage: list[int]
    parameters: list[int]
    outputs: list[int]
    steps: list[KernelStep | HostStep]
    constants: dict[int, Array] = field(default_factory=dict[int, Array])
    parameter_names: list[str] = field(default_factory=list[str])


class Executable:
    """A compiled module.  Immutable after construction; any number of threads may call it.

    `kernels` lists what was compiled; `artifact(stage)` gives the text of a stage; `trace` the IR after each pass
    (when compiled with trace=True); `timings` what each part of the compilation took, in seconds.
    """

    def __init__(
        self,
        plan: Plan,
        kernels: Sequence[KernelInfo],
        artifacts: Mapping[str, Callable[[], str]],
        *,
        target: str,
        numerics: str,
        timings: Mapping[str, float],
        trace: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.plan = plan
        self.kernels = tuple(kernels)
        self.target = target
        self.numerics = numerics
        self.timings = dict(timings)
        self.trace = list(trace)
        self._artifacts = artifacts
        self._parameters = [_Parameter(plan.buffers[b], i, plan) for i, b in enumerate(plan.parameters)]
        self._only = self._single_kernel()
        self._last_use = _last_uses(plan)
        storages = [plan.storage[b] for b in plan.outputs]
        repeated = {b for b in storages if storages.count(b) > 1}
        self._shared = repeated.union(plan.parameters, plan.constants)

    def artifact(self, stage: str) -> str:
        """The text of `stage` ("hlo", "emitted", "lowered", "llvm", "llvm-opt", "ptx", "asm"...).

        Raises UsageError for a stage that this target doesn't have.
        """
        make = self._artifacts.get(stage)
        if make is None:
            known = ", ".join(self._artifacts)
            raise UsageError(
                f"target {self.target} has no stage '{stage}'",
                help=did_you_mean(stage, self._artifacts) or f"its stages: {known}",
            )
        return make()

    def __call__(self, *arrays: Any, out: Sequence[Array] | Array | None = None) -> list[Array]:
        """Run on host arrays; a list of results, one an output leaf.

        Raises ArgumentMismatch when count, shape or dtype is wrong, or an `out` array can't take its result.
        """
        if len(arrays) != len(self._parameters):
            raise ArgumentMismatch(f"this module takes {len(self._parameters)} arrays, not {len(arrays)}")
        inputs = [p.admit(a) for p, a in zip(self._parameters, arrays, strict=True)]
        only = self._only
        if out is None:
            return self._run(inputs) if only is None else only.run(inputs)
        targets = _checked_out(out, [self.plan.buffers[b] for b in self.plan.outputs])
        if only is not None and only.can_write(targets, inputs):
            only.launch(inputs, targets)
            return targets
        for target, result in zip(targets, self._run(inputs), strict=True):
            np.copyto(target, result)
        return targets

    def timed(self, *arrays: Any) -> tuple[list[Array], float, float]:
        """Results, seconds in kernels, seconds in host steps."""
        inputs = [p.admit(a) for p, a in zip(self._parameters, arrays, strict=True)]
        seconds = [0.0, 0.0]
        results = self._run(inputs, seconds)
        return results, seconds[0], seconds[1]

    @property
    def bytes_moved(self) -> int:
        """Bytes of each kernel's inputs and outputs, each counted once."""
        return sum(k.bytes for k in self.kernels)

    # -- the general way
    def _run(self, inputs: Sequence[Array], seconds: list[float] | None = None) -> list[Array]:
        """`memory` holds what each storage was filled with, in memory order."""
        plan = self.plan
        memory: dict[int, Array] = dict(plan.constants)
        memory.update(zip(plan.parameters, inputs, strict=True))
        for number, step in enumerate(plan.steps):
            start = perf_counter() if seconds is not None else 0.0
            if isinstance(step, KernelStep):
                outputs = [_allocate(plan.buffers[b]) for b in step.outputs]
                sources = [pointer(memory[plan.storage[b]]) for b in step.inputs]
                step.kernel.launch([*sources, *map(pointer, outputs)])
                memory.update(zip(step.outputs, outputs, strict=True))
            else:
                produced = step.function([self._value(memory, b) for b in step.inputs])
                for b, array in zip(step.outputs, produced, strict=True):
                    memory[b] = _physical(array, plan.buffers[b])
            if seconds is not None:
                seconds[0 if isinstance(step, KernelStep) else 1] += perf_counter() - start
            for storage in self._last_use.get(number, ()):
                del memory[storage]
        return [self._result(memory, b) for b in plan.outputs]

    def _value(self, memory: Mapping[int, Array], buffer: int) -> Array:
        """The array of a buffer, in HLO's dims; a view of its storage."""
        spec, found = self.plan.buffers[buffer], memory[self.plan.storage[buffer]]
        if self.plan.storage[buffer] != buffer:
            found = found.reshape(-1).view(spec.dtype.numpy).reshape(_physical_dims(spec))
        return _logical(found, spec)

    def _result(self, memory: Mapping[int, Array], buffer: int) -> Array:
        """A result never shares memory with a parameter, a constant of the plan, or another result."""
        array = self._value(memory, buffer)
        return array.copy() if self.plan.storage[buffer] in self._shared else array

    def _single_kernel(self) -> _OneKernel | None:
        plan = self.plan
        if len(plan.steps) != 1 or not isinstance(plan.steps[0], KernelStep):
            return None
        step = plan.steps[0]
        if list(step.outputs) != plan.outputs or any(b in plan.constants for b in step.inputs):
            return None
        position = {b: i for i, b in enumerate(plan.parameters)}
        return _OneKernel(step, [position[b] for b in step.inputs], [plan.buffers[b] for b in step.outputs])


class _OneKernel:
    """The short way through a plan of one kernel."""

    __slots__ = ("kernel", "order", "outputs")

    def __init__(self, step: KernelStep, order: list[int], outputs: list[BufferSpec]) -> None:
        self.kernel = step.kernel
        self.order = order if order != list(range(len(order))) else None
        self.outputs = [(_physical_dims(s), s.dtype.numpy, s if not s.is_row_major else None) for s in outputs]

    def run(self, inputs: list[Array]) -> list[Array]:
        empty = default_pool().empty
        outputs = [empty(dims, dtype) for dims, dtype, _ in self.outputs]
        self.launch(inputs, outputs)
        return [o if spec is None else _logical(o, spec) for o, (_, _, spec) in zip(outputs, self.outputs, strict=True)]

    def launch(self, inputs: list[Array], outputs: list[Array]) -> None:
        ordered = inputs if self.order is None else [inputs[i] for i in self.order]
        self.kernel.launch([pointer(a) for a in ordered] + [pointer(o) for o in outputs])

    def can_write(self, targets: list[Array], inputs: list[Array]) -> bool:
        """Whether the kernel may write straight into `targets`: in its layout, aligned, apart from the inputs."""
        return all(
            spec is None
            and target.flags.c_contiguous
            and pointer(target) % STREAM_ALIGNMENT == 0
            and not any(np.may_share_memory(target, each) for each in (*inputs, *targets) if each is not target)
            for target, (_, _, spec) in zip(targets, self.outputs, strict=True)
        )


class _Parameter:
    """What is asked of one argument, and how it becomes memory in the parameter's layout."""

    __slots__ = ("dims", "dtype", "index", "order", "plan", "spec")

    def __init__(self, spec: BufferSpec, index: int, plan: Plan) -> None:
        self.spec = spec
        self.index = index
        self.plan = plan
        self.dims = spec.dims
        self.dtype = spec.dtype.numpy
        self.order = None if spec.is_row_major else spec.minor_to_major[::-1]

    def admit(self, value: Any) -> Array:
        """The argument as contiguous memory; ArgumentMismatch when shape or dtype is wrong."""
        array = value if type(value) is np.ndarray else as_array(value)
        if array.shape != self.dims or array.dtype != self.dtype:
            raise self._mismatch(array)
        if self.order is not None:
            array = array.transpose(self.order)
        flags = array.flags
        return array if flags.c_contiguous and flags.aligned else np.array(array, order="C")

    def _mismatch(self, array: Array) -> ArgumentMismatch:
        names = self.plan.parameter_names
        name = f" '{names[self.index]}'" if self.index < len(names) else ""
        given = f"{array.dtype}[{','.join(map(str, array.shape))}]"
        help = None
        if array.shape == self.dims:
            help = f"convert it: array.astype({self.dtype.name!r})"
        return ArgumentMismatch(f"parameter {self.index}{name} is {self.spec.describe()}, but the array is {given}", help=help)


def _physical_dims(spec: BufferSpec) -> tuple[int, ...]:
    return tuple(spec.dims[d] for d in reversed(spec.minor_to_major))


def _allocate(spec: BufferSpec) -> Array:
    return default_pool().empty(_physical_dims(spec), spec.dtype.numpy)


def _logical(physical: Array, spec: BufferSpec) -> Array:
    """The view with HLO's dims of memory in the buffer's layout."""
    if spec.is_row_major:
        return physical
    order = spec.minor_to_major[::-1]
    return physical.transpose([order.index(d) for d in range(len(order))])


def _physical(logical: Array, spec: BufferSpec) -> Array:
    """Contiguous memory in the buffer's layout."""
    array = np.asarray(logical, dtype=spec.dtype.numpy).reshape(spec.dims)
    return np.ascontiguousarray(array if spec.is_row_major else array.transpose(spec.minor_to_major[::-1]))


def _last_uses(plan: Plan) -> dict[int, list[int]]:
    """For each step, the storages that nobody needs after it: their memory goes back to the pool."""
    last: dict[int, int] = {}
    for number, step in enumerate(plan.steps):
        for b in (*step.inputs, *step.outputs):
            last[plan.storage[b]] = number
    kept = {*(plan.storage[b] for b in plan.outputs), *plan.constants, *plan.parameters}
    result: dict[int, list[int]] = {}
    for storage, number in last.items():
        if storage not in kept:
            result.setdefault(number, []).append(storage)
    return result


def _checked_out(out: Sequence[Array] | Array, specs: Sequence[BufferSpec]) -> list[Array]:
    """The arrays to write to, one an output; ArgumentMismatch when one can't take its result."""
    targets = [out] if isinstance(out, np.ndarray) else list(out)
    if len(targets) != len(specs):
        raise ArgumentMismatch(f"the module has {len(specs)} outputs, `out` holds {len(targets)} arrays")
    for i, (target, spec) in enumerate(zip(targets, specs, strict=True)):
        if target.shape != spec.dims or target.dtype != spec.dtype.numpy:
            given = f"{target.dtype}[{','.join(map(str, target.shape))}]"
            raise ArgumentMismatch(f"output {i} is {spec.describe()}, but `out` holds {given}")
        if not target.flags.writeable:
            raise ArgumentMismatch(f"`out` array {i} is read-only")
    return targets
