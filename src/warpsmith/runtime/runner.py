"""Runs plans.

In: a `Plan`, arrays of its parameters in memory order.  Out: arrays of its outputs, in memory order, and for each
whether the caller owns it alone.  Arrays pass into loops and branches and back by reference: state that a body hands on
untouched is the same array in every round.  A plan lets go of memory after its last use, so that the pool hands it out
again.

Owned memory is what a step of a plan made and handed to nobody else.  A dynamic-update-slice writes into its operand
where that is owned and dies; otherwise it copies first.  What a caller owns and doesn't need after a step goes to the
plan inside as owned, and so a loop's first round may write in place too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import Kind, pack, unpack
from warpsmith.runtime.buffers import ALIGNED_FROM, default_pool, pointer
from warpsmith.runtime.copies import copied
from warpsmith.runtime.plan import (
    AnyStep,
    BranchStep,
    BufferSpec,
    CopyStep,
    HostStep,
    KernelStep,
    LaunchStep,
    Plan,
    RunStep,
    UpdateStep,
    WhileStep,
)

__all__ = ["Clock", "Maker", "Runner", "maker_of"]

Maker: TypeAlias = tuple[Callable[[tuple[int, ...], "np.dtype[Any]"], Array], tuple[int, ...], "np.dtype[Any]"]


def maker_of(spec: BufferSpec) -> Maker:
    """What makes an array for a result, and its arguments."""
    make = default_pool().empty if spec.byte_size >= ALIGNED_FROM else np.empty
    return make, spec.physical_dims, spec.dtype.numpy


class Clock:
    """Seconds in kernels and on the host, and how often each ran, over all loops and branches."""

    __slots__ = ("host_seconds", "host_steps", "kernel_seconds", "kernels")

    def __init__(self) -> None:
        self.kernel_seconds = self.host_seconds = 0.0
        self.kernels = self.host_steps = 0


class _Frame:
    """One run of a plan: what each storage holds, and whether the plan owns it."""

    __slots__ = ("clock", "memory", "owned", "plan")

    def __init__(self, plan: Plan, memory: list[Array | None], clock: Clock | None) -> None:
        self.plan = plan
        self.memory = memory
        self.owned = bytearray(len(memory))
        self.clock = clock

    def stored(self, buffer: int) -> Array:
        """A buffer's memory: its storage's, unless one of them takes a byte for an element of 2 or 4 bits."""
        plan = self.plan
        storage = plan.storage[buffer]
        found = self.memory[storage]
        assert found is not None, "a buffer is read after its last use"
        if storage == buffer or not plan.is_repacked(buffer):
            return found
        source, target = plan.buffers[storage].dtype, plan.buffers[buffer].dtype
        codes = found.reshape(-1).view(np.uint8)
        packed = codes if source.bits >= 8 else pack(codes, source.bits)
        return packed if target.bits >= 8 else unpack(packed, target.bits, packed.size * 8 // target.bits)

    def physical(self, buffer: int) -> Array:
        """The array of a buffer in memory order; a view of its storage's."""
        found = self.stored(buffer)
        if self.plan.storage[buffer] == buffer:
            return found
        spec = self.plan.buffers[buffer]
        return found.reshape(-1).view(spec.dtype.numpy).reshape(spec.physical_dims)

    def logical(self, buffer: int) -> Array:
        """The array of a buffer in HLO's dims; a view of its storage's."""
        return self.plan.buffers[buffer].logical(self.physical(buffer))

    def put(self, buffer: int, array: Array, owned: bool) -> None:
        self.memory[buffer] = array
        self.owned[buffer] = owned

    def take(self, buffers: Sequence[int], frees: Sequence[int]) -> tuple[list[Array | None], list[bool]]:
        """Arrays for a plan inside, and which of them become its own: owned here, needed no more, given once."""
        plan = self.plan
        arrays: list[Array | None] = [self.physical(b) for b in buffers]
        storages = [plan.storage[b] for b in buffers]
        given = [
            bool(self.owned[s]) and s in frees and storages.count(s) == 1 and not plan.is_repacked(b)
            for b, s in zip(buffers, storages, strict=True)
        ]
        for storage, gone in zip(storages, given, strict=True):
            if gone:
                self.memory[storage] = None
        return arrays, given


Action: TypeAlias = Callable[[_Frame], None]


class Runner:
    """A plan, ready to run.  Immutable: any number of threads may run it."""

    __slots__ = ("_actions", "_initial", "_single", "plan")

    def __init__(self, plan: Plan, made: dict[int, Runner] | None = None) -> None:
        """`made` holds the runners of plans that other steps run too."""
        self.plan = plan
        known: dict[int, Runner] = {} if made is None else made
        self._initial: list[Array | None] = [plan.constants.get(b) for b in range(len(plan.buffers))]
        storages = [plan.storage[b] for b in plan.outputs]
        self._single = [storages.count(s) == 1 for s in storages]
        self._actions: list[tuple[Action, bool | None, tuple[int, ...]]] = [
            (_action(plan, step, known), _is_kernel(step), step.frees) for step in plan.steps
        ]

    def run(
        self, inputs: list[Array | None], given: Sequence[bool], clock: Clock | None = None
    ) -> tuple[list[Array], list[bool]]:
        """(outputs, which of them are the caller's alone).  `inputs` is emptied, so that nothing holds on to them."""
        plan = self.plan
        frame = _Frame(plan, self._initial.copy(), clock)
        memory = frame.memory
        for i, b in enumerate(plan.parameters):
            memory[b] = inputs[i]
            frame.owned[b] = given[i]
            inputs[i] = None
        for action, is_kernel, frees in self._actions:
            if clock is None or is_kernel is None:
                action(frame)
            else:
                start = perf_counter()
                action(frame)
                _record(clock, is_kernel, perf_counter() - start)
            for storage in frees:
                memory[storage] = None
        outputs = [frame.physical(b) for b in plan.outputs]
        owned = [
            (bool(frame.owned[plan.storage[b]]) and single) or plan.is_repacked(b)
            for b, single in zip(plan.outputs, self._single, strict=True)
        ]
        return outputs, owned


def _record(clock: Clock, is_kernel: bool, seconds: float) -> None:
    if is_kernel:
        clock.kernel_seconds += seconds
        clock.kernels += 1
    else:
        clock.host_seconds += seconds
        clock.host_steps += 1


def _is_kernel(step: AnyStep) -> bool | None:
    """None for steps whose time is that of the steps inside."""
    if isinstance(step, KernelStep | LaunchStep):
        return True
    return False if isinstance(step, HostStep | UpdateStep | CopyStep) else None


def _runner(plan: Plan, made: dict[int, Runner]) -> Runner:
    found = made.get(id(plan))
    if found is None:
        found = made[id(plan)] = Runner(plan, made)
    return found


def _action(plan: Plan, step: AnyStep, made: dict[int, Runner]) -> Action:
    match step:
        case KernelStep():
            return _kernel(plan, step)
        case LaunchStep():
            return _function(plan, step, step.launch)
        case HostStep():
            return _function(plan, step, step.function)
        case UpdateStep():
            return _update(plan, step)
        case CopyStep():
            return _copy(plan, step)
        case WhileStep():
            return _while(step, made)
        case BranchStep():
            return _branch(plan, step, made)
        case RunStep():
            return _run(step, made)


def _kernel(plan: Plan, step: KernelStep) -> Action:
    makers = [maker_of(plan.buffers[b]) for b in step.outputs]
    launch, outputs = step.kernel.launch, step.outputs
    if step.aliases:
        return _updating_kernel(plan, step)
    sources = [plan.storage[b] for b in step.inputs]
    if any(plan.is_repacked(b) for b in step.inputs):

        def run_repacked(frame: _Frame) -> None:
            arrays = [frame.stored(b) for b in step.inputs]
            made = [make(dims, dtype) for make, dims, dtype in makers]
            launch([*map(pointer, arrays), *map(pointer, made)])
            for b, array in zip(outputs, made, strict=True):
                frame.put(b, array, True)

        return run_repacked

    def run(frame: _Frame) -> None:
        memory = frame.memory
        made = [make(dims, dtype) for make, dims, dtype in makers]
        arrays = [memory[s] for s in sources]
        launch([*map(_address, arrays), *map(pointer, made)])
        for b, array in zip(outputs, made, strict=True):
            memory[b] = array
            frame.owned[b] = True

    return run


def _updating_kernel(plan: Plan, step: KernelStep) -> Action:
    """A kernel whose outputs begin as inputs: in their memory, where that is free and as the kernel wants it."""
    source_of = dict(step.aliases)
    makers = [maker_of(plan.buffers[b]) for b in step.outputs]
    sources = [plan.storage[b] for b in step.inputs]
    alignments = step.kernel.alignments[len(step.inputs) :]
    free = {
        i: sources[i] in step.frees and sources.count(sources[i]) == 1 and not plan.is_repacked(step.inputs[i])
        for i in source_of.values()
    }

    def run(frame: _Frame) -> None:
        arrays = [frame.stored(b) for b in step.inputs]
        made: list[Array] = []
        for number, (make, dims, dtype) in enumerate(makers):
            source = source_of.get(number)
            if source is None:
                made.append(make(dims, dtype))
                continue
            array = arrays[source]
            if not (free[source] and frame.owned[sources[source]]) or pointer(array) % alignments[number]:
                array = copied(array)
            arrays[source] = array
            made.append(array.reshape(-1).view(dtype).reshape(dims))
        step.kernel.launch([*map(pointer, arrays), *map(pointer, made)])
        for b, array in zip(step.outputs, made, strict=True):
            frame.put(b, array, True)

    return run


def _address(array: Array | None) -> int:
    assert array is not None, "a buffer is read after its last use"
    return pointer(array)


def _reader(plan: Plan, buffer: int) -> Callable[[_Frame], Array]:
    """What gives a buffer's array in HLO's dims; the usual case, a buffer of its own in row-major order, quickly."""
    if plan.storage[buffer] != buffer or not plan.buffers[buffer].is_row_major:
        return lambda frame: frame.logical(buffer)

    def read(frame: _Frame) -> Array:
        array = frame.memory[buffer]
        assert array is not None, "a buffer is read after its last use"
        return array

    return read


def _function(
    plan: Plan, step: LaunchStep | HostStep, function: Callable[[Sequence[Array]], Sequence[Array]]
) -> Action:
    specs = [plan.buffers[b] for b in step.outputs]
    readers = [_reader(plan, b) for b in step.inputs]

    def run(frame: _Frame) -> None:
        produced = function([read(frame) for read in readers])
        arrays = [spec.physical(array) for spec, array in zip(specs, produced, strict=True)]
        for i, (b, array) in enumerate(zip(step.outputs, arrays, strict=True)):
            # A constant's array is read-only; an op may give one array twice.
            shared = any(np.may_share_memory(array, other) for other in arrays[:i])
            if not (array.flags.writeable and array.flags.aligned) or shared:
                array = np.array(array, order="C")
            frame.put(b, array, True)

    return run


def _update(plan: Plan, step: UpdateStep) -> Action:
    target, *others = step.inputs
    (output,) = step.outputs
    storage = plan.storage[target]
    free = storage in step.frees and all(plan.storage[b] != storage for b in others)
    given, made = plan.buffers[target], plan.buffers[output]
    same_layout = given.minor_to_major == made.minor_to_major
    readers = [_reader(plan, b) for b in others]
    repacked = plan.is_repacked(target)

    def run(frame: _Frame) -> None:
        array = frame.physical(target)
        if not (free and frame.owned[storage]) and not repacked:
            copied = default_pool().empty(array.shape, array.dtype)
            np.copyto(copied, array)
            array = copied
        whole = given.logical(array)
        step.function([whole, *[read(frame) for read in readers]])
        frame.put(output, array if same_layout else made.physical(whole), True)

    return run


def _copy(plan: Plan, step: CopyStep) -> Action:
    (source,), (target,) = step.inputs, step.outputs
    spec = plan.buffers[target]

    def run(frame: _Frame) -> None:
        made = default_pool().empty(spec.physical_dims, spec.dtype.numpy)
        np.copyto(spec.logical(made), frame.logical(source))
        frame.put(target, made, True)

    return run


def _while(step: WhileStep, made: dict[int, Runner]) -> Action:
    condition, body = _runner(step.condition, made), _runner(step.body, made)
    nothing_given = [False] * len(step.inputs)

    def run(frame: _Frame) -> None:
        state, given = frame.take(step.inputs, step.frees)
        mine = [False] * len(state)
        for place in step.carried:
            mine[place] = given[place]
        while True:
            (verdict,), _ = condition.run(state.copy(), nothing_given, frame.clock)
            if not verdict:
                break
            arguments = state.copy()
            for place in step.carried:
                state[place] = None
            results, fresh = body.run(arguments, mine, frame.clock)
            for place in step.carried:
                state[place], mine[place] = results[place], fresh[place]
            del results
        for b, place in zip(step.outputs, step.carried, strict=True):
            array = state[place]
            assert array is not None
            frame.put(b, array, mine[place])

    return run


def _branch(plan: Plan, step: BranchStep, made: dict[int, Runner]) -> Action:
    runners = [_runner(each, made) for each in step.branches]
    selector, *inputs = step.inputs
    by_pred = plan.buffers[selector].dtype.kind is Kind.PRED
    starts = [0]
    for each in step.branches:
        starts.append(starts[-1] + len(each.parameters))

    def run(frame: _Frame) -> None:
        chosen = int(frame.physical(selector))
        if by_pred:
            chosen = 0 if chosen else 1
        elif not 0 <= chosen < len(runners):
            chosen = len(runners) - 1
        arrays, given = frame.take(inputs[starts[chosen] : starts[chosen + 1]], step.frees)
        results, fresh = runners[chosen].run(arrays, given, frame.clock)
        for b, array, mine in zip(step.outputs, results, fresh, strict=True):
            frame.put(b, array, mine)

    return run


def _run(step: RunStep, made: dict[int, Runner]) -> Action:
    runner = _runner(step.plan, made)

    def run(frame: _Frame) -> None:
        arrays, given = frame.take(step.inputs, step.frees)
        results, fresh = runner.run(arrays, given, frame.clock)
        for b, array, mine in zip(step.outputs, results, fresh, strict=True):
            frame.put(b, array, mine)

    return run
