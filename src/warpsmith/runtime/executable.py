"""Calling a compiled module: arguments are checked, a plan is run, results are handed out.

In: a `Plan` from the compiler.  `Executable.__call__` takes one array a parameter leaf and gives one array an output
leaf, in HLO's dtypes and logical shapes.  Arrays pass through without a copy when they are contiguous in their HLO
layout.  Results come from a recycled pool, so that a repeated call touches no fresh pages; `out=` writes into the
caller's arrays instead.  `donate=` gives arguments away: their memory may be written to and become a result.

A plan of one kernel, the usual case for a fusion, takes a short way: validate, allocate, one native call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.errors import ArgumentMismatch, UsageError, did_you_mean, require
from warpsmith.runtime.buffers import as_array, pointer
from warpsmith.runtime.frame import Clock, maker_of
from warpsmith.runtime.plan import BufferSpec, KernelInfo, KernelStep, Plan
from warpsmith.runtime.runner import Runner

__all__ = ["BufferSpec", "Executable", "KernelInfo", "Plan"]


class Executable:
    """A compiled module.  Immutable after construction; any number of threads may call it.

    `kernels` lists what was compiled; `artifact(stage)` gives the text of a stage; `trace` the IR after each pass
    (when compiled with trace=True); `timings` what each part of the compilation took, in seconds; `temporary_bytes` the
    most memory that results and intermediate values take at any time.
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
        temporary_bytes: int = 0,
    ) -> None:
        self.plan = plan
        self.kernels = tuple(kernels)
        self.target = target
        self.numerics = numerics
        self.timings = dict(timings)
        self.trace = list(trace)
        self.temporary_bytes = temporary_bytes
        self._artifacts = artifacts
        self._parameters = [_Parameter(plan.buffers[b], i, plan) for i, b in enumerate(plan.parameters)]
        self._only = _single_kernel(plan)
        self._runner = Runner(plan)

    def __repr__(self) -> str:
        return f"<executable for {self.target}: {', '.join(each.fusion for each in self.kernels) or 'no kernels'}>"

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

    def __call__(
        self, *arrays: Any, out: Sequence[Array] | Array | None = None, donate: Sequence[int] | bool = ()
    ) -> list[Array]:
        """Run on host arrays; a list of results, one an output leaf.

        `arrays`: one for each array leaf of the entry's parameters, in order, of exactly its dtype (numpy's, or
        ml_dtypes' for bf16, f8 and 4-bit types) and logical dims; any strides, anything with `__dlpack__`.  Results are
        new arrays in HLO's dtype and logical dims, strided where HLO's layout is not row-major.  `out`: an array an
        output to write to instead, of its dtype and dims, writable, apart from the others; they are returned.

        `donate` names arguments whose memory the call may write to and hand out as results (True: those that the
        module's header says so of); what they hold afterwards is open.  Raises ArgumentMismatch when count, shape or
        dtype is wrong, or an `out` array can't take its result.
        """
        inputs = self._admitted(arrays)
        if donate and donate is not True:
            require(donate, (list, tuple, range, set, frozenset), "`donate` is True, or numbers of arguments")
            for i in donate:
                require(i, int, "`donate` holds numbers of arguments")
                if not 0 <= i < len(inputs):
                    raise ArgumentMismatch(f"argument {i} can't be donated: there are {len(inputs)}")
        only = self._only
        if out is None:
            if only is not None:
                return only.run(inputs)
            return self._run(inputs, self._given(inputs, donate))
        targets = _checked_out(out, [self.plan.buffers[b] for b in self.plan.outputs])
        if only is not None and only.can_write(targets, inputs):
            only.launch(inputs, targets)
            return targets
        specs = (self.plan.buffers[b] for b in self.plan.outputs)
        homes = [_home(target, spec, inputs) for target, spec in zip(targets, specs, strict=True)]
        _deliver(self._run(inputs, self._given(inputs, donate, targets), homes=homes), targets)
        return targets

    def timed(self, *arrays: Any) -> tuple[list[Array], float, float]:
        """Results, seconds in kernels, seconds in host steps.  Raises ArgumentMismatch as a call does."""
        results, clock = self.profiled(*arrays)
        return results, clock.kernel_seconds, clock.host_seconds

    def profiled(self, *arrays: Any) -> tuple[list[Array], Clock]:
        """Results; seconds in kernels and host steps, and how many ran.  Raises ArgumentMismatch as a call does."""
        clock = Clock()
        inputs = self._admitted(arrays)
        return self._run(inputs, [False] * len(inputs), clock), clock

    @property
    def bytes_moved(self) -> int:
        """Bytes of each kernel's inputs and outputs, each counted once."""
        return sum(k.bytes for k in self.kernels)

    def _admitted(self, arrays: Sequence[Any]) -> list[Array]:
        if len(arrays) != len(self._parameters):
            raise ArgumentMismatch(f"this module takes {len(self._parameters)} arrays, not {len(arrays)}")
        return list(map(_Parameter.admit, self._parameters, arrays))

    def _given(
        self, inputs: Sequence[Array], donate: Sequence[int] | bool, targets: Sequence[Array] = ()
    ) -> list[bool]:
        """Which inputs the run may write to: those that were donated, and those that are results' `targets` anyway."""
        named = {*(self.plan.donors if donate is True else donate or ())}
        named |= {i for i, array in enumerate(inputs) if any(_is_same_memory(array, each) for each in targets)}
        if not named:
            return [False] * len(inputs)
        given = [i in named and array.flags.writeable for i, array in enumerate(inputs)]
        for i, array in enumerate(inputs):
            if given[i] and any(np.may_share_memory(array, other) for j, other in enumerate(inputs) if j != i):
                given[i] = False
        return given

    def _run(
        self,
        inputs: Sequence[Array],
        given: Sequence[bool],
        clock: Clock | None = None,
        homes: Sequence[Array | None] = (),
    ) -> list[Array]:
        """A result never shares memory with a parameter that wasn't given, a constant, or another result."""
        results, owned = self._runner.run([*inputs], given, clock, homes)
        specs = (self.plan.buffers[b] for b in self.plan.outputs)
        return [
            spec.logical(array if mine else array.copy())
            for array, mine, spec in zip(results, owned, specs, strict=True)
        ]


def _single_kernel(plan: Plan) -> _OneKernel | None:
    if len(plan.steps) != 1 or not isinstance(plan.steps[0], KernelStep):
        return None
    step = plan.steps[0]
    if step.aliases:
        return None
    if list(step.outputs) != plan.outputs or any(b in plan.constants for b in step.inputs):
        return None
    position = {b: i for i, b in enumerate(plan.parameters)}
    sources = [plan.storage[b] for b in step.inputs]
    if not all(b in position for b in sources) or any(plan.is_repacked(b) for b in step.inputs):
        return None
    return _OneKernel(
        step, [position[b] for b in sources], [plan.buffers[b] for b in step.outputs], len(plan.parameters)
    )


class _OneKernel:
    """The short way through a plan of one kernel: a few microseconds, of which each line here is a tenth or more."""

    __slots__ = ("alignments", "kernel", "makers", "order", "outputs")

    def __init__(self, step: KernelStep, order: list[int], outputs: list[BufferSpec], parameters: int) -> None:
        self.kernel = step.kernel
        self.order = order if order != list(range(parameters)) else None
        self.outputs = [s if not s.is_row_major else None for s in outputs]
        self.makers = [maker_of(s) for s in outputs]
        self.alignments = step.kernel.alignments[len(step.inputs) :]

    def run(self, inputs: list[Array]) -> list[Array]:
        outputs = [make(dims, dtype) for make, dims, dtype in self.makers]
        self.launch(inputs, outputs)
        for i, spec in enumerate(self.outputs):
            if spec is not None:
                outputs[i] = spec.logical(outputs[i])
        return outputs

    def launch(self, inputs: list[Array], outputs: list[Array]) -> None:
        ordered = inputs if self.order is None else [inputs[i] for i in self.order]
        self.kernel.launch([*map(pointer, ordered), *map(pointer, outputs)])

    def can_write(self, targets: list[Array], inputs: list[Array]) -> bool:
        """Whether the kernel may write straight into `targets`: in its layout, aligned, apart from all other arrays."""
        taken = [(start, start + each.nbytes) for each, start in zip(inputs, map(pointer, inputs), strict=True)]
        for target, spec, alignment in zip(targets, self.outputs, self.alignments, strict=True):
            start = pointer(target)
            end = start + target.nbytes
            if spec is not None or start % alignment or not target.flags.c_contiguous:
                return False
            if any(start < other_end and other_start < end for other_start, other_end in taken):
                return False
            taken.append((start, end))
        return True


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
        return ArgumentMismatch(
            f"parameter {self.index}{name} is {self.spec.describe()}, but the array is {given}", help=help
        )


def _is_same_memory(array: Array, other: Array) -> bool:
    """Whether two arrays hold the same elements at the same addresses."""
    return pointer(array) == pointer(other) and (array.shape, array.strides) == (other.shape, other.strides)


def _home(target: Array, spec: BufferSpec, inputs: Sequence[Array]) -> Array | None:
    """The caller's array in memory order, if steps may make the result in it: contiguous, apart from the arguments."""
    home = target.transpose(spec.minor_to_major[::-1])
    apart = not any(np.may_share_memory(target, each) for each in inputs)
    return home if apart and home.flags.c_contiguous and home.flags.aligned else None


def _deliver(results: list[Array], targets: Sequence[Array]) -> None:
    """Results to where the caller wants them.  One that is there already stays; none is overwritten by another."""
    for i, target in enumerate(targets):
        if _is_same_memory(results[i], target):
            continue
        for j in range(i + 1, len(results)):
            if np.may_share_memory(results[j], target):
                results[j] = results[j].copy()
        np.copyto(target, results[i])


def _checked_out(out: Sequence[Array] | Array, specs: Sequence[BufferSpec]) -> list[Array]:
    """The arrays to write to, one an output; ArgumentMismatch when one can't take its result."""
    require(out, Iterable, "`out` is an array, or one an output")
    targets = [out] if isinstance(out, np.ndarray) else list(out)
    for target in targets:
        require(target, np.ndarray, "`out` holds numpy arrays")
    if len(targets) != len(specs):
        raise ArgumentMismatch(f"the module has {len(specs)} outputs, `out` holds {len(targets)} arrays")
    for i, (target, spec) in enumerate(zip(targets, specs, strict=True)):
        if target.shape != spec.dims or target.dtype != spec.dtype.numpy:
            given = f"{target.dtype}[{','.join(map(str, target.shape))}]"
            raise ArgumentMismatch(f"output {i} is {spec.describe()}, but `out` holds {given}")
        if not target.flags.writeable:
            raise ArgumentMismatch(f"`out` array {i} is read-only")
        if any(np.may_share_memory(target, earlier) for earlier in targets[:i]):
            raise ArgumentMismatch(
                f"`out` array {i} shares memory with an earlier one", help="give each output its own"
            )
    return targets
