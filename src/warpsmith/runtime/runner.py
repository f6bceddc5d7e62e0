"""Runs plans.

In: a `Plan`, arrays of its parameters in memory order.  Out: arrays of its outputs, in memory order, and for each
whether the caller owns it alone.  Arrays pass into loops and branches and back by reference: state that a body hands on
untouched is the same array in every round.  A plan lets go of memory after its last use, so that the pool hands it out
again.

Owned memory is what a step of a plan made and handed to nobody else.  A dynamic-update-slice writes into its operand
where that is owned and dies; otherwise it copies first.  What a caller owns and doesn't need after a step goes to the
plan inside as owned, and so a loop's first round may write in place too.

A caller may give homes for outputs: memory of its own, apart from the arguments.  What makes an output makes it there,
and a copy that an update in place needs first goes there at once; a step that can't leaves its result elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TypeAlias

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import Kind
from warpsmith.runtime.buffers import default_pool, pointer
from warpsmith.runtime.copies import copied
from warpsmith.runtime.frame import Clock, Frame, maker_of
from warpsmith.runtime.plan import (
    AnyStep,
    BranchStep,
    CopyStep,
    HostStep,
    KernelStep,
    LaunchStep,
    Plan,
    RunStep,
    UpdateStep,
    WhileStep,
)

__all__ = ["Runner"]

Action: TypeAlias = Callable[[Frame], None]


class Runner:
    """A plan, ready to run.  Immutable: any number of threads may run it."""

    __slots__ = ("_actions", "_initial", "_single", "_updated", "plan")

    def __init__(self, plan: Plan, made: dict[int, Runner] | None = None) -> None:
        """`made` holds the runners of plans that other steps run too."""
        self.plan = plan
        known: dict[int, Runner] = {} if made is None else made
        self._initial: list[Array | None] = [plan.constants.get(b) for b in range(len(plan.buffers))]
        storages = [plan.storage[b] for b in plan.outputs]
        self._updated = dict(pair for step in plan.steps for pair in _updates(plan, step))
        self._single = [storages.count(s) == 1 for s in storages]
        self._actions: list[tuple[Action, bool | None, tuple[int, ...]]] = [
            (_action(plan, step, known), _is_kernel(step), step.frees) for step in plan.steps
        ]

    def run(
        self,
        inputs: list[Array | None],
        given: Sequence[bool],
        clock: Clock | None = None,
        homes: Sequence[Array | None] = (),
    ) -> tuple[list[Array], list[bool]]:
        """(outputs, which of them are the caller's alone).  `inputs` is emptied, so that nothing holds on to them.

        `homes`: for each output contiguous memory in its memory order, apart from all inputs, to make it in; or None.
        """
        plan = self.plan
        frame = Frame(plan, self._initial.copy(), clock)
        for i, home in enumerate(homes):
            if home is not None and self._single[i] and not plan.is_repacked(plan.outputs[i]):
                storage: int | None = plan.storage[plan.outputs[i]]
                while storage is not None:
                    spec = plan.buffers[storage]
                    frame.homes[storage] = home.reshape(-1).view(spec.dtype.numpy).reshape(spec.physical_dims)
                    storage = self._updated.get(storage)
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


def _updates(plan: Plan, step: AnyStep) -> list[tuple[int, int]]:
    """(output, storage) where the step surely makes its output in the memory of what the plan made before."""
    if isinstance(step, UpdateStep):
        same = plan.buffers[step.inputs[0]].minor_to_major == plan.buffers[step.outputs[0]].minor_to_major
        aliases = ((0, 0),) if same else ()
    else:
        aliases = step.aliases if isinstance(step, KernelStep) else ()
    sources = [plan.storage[b] for b in step.inputs]
    return [
        (step.outputs[output], sources[source])
        for output, source in aliases
        if sources[source] in step.frees
        and sources.count(sources[source]) == 1
        and not plan.is_repacked(step.inputs[source])
    ]


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
    alignments = step.kernel.alignments[len(step.inputs) :]
    places = list(zip(outputs, makers, alignments, strict=True))
    if step.aliases:
        return _updating_kernel(plan, step)
    sources = [plan.storage[b] for b in step.inputs]
    if any(plan.is_repacked(b) for b in step.inputs):

        def run_repacked(frame: Frame) -> None:
            arrays = [frame.stored(b) for b in step.inputs]
            made = [frame.made(*each) for each in places]
            launch([*map(pointer, arrays), *map(pointer, made)])
            for b, array in zip(outputs, made, strict=True):
                frame.put(b, array, True)

        return run_repacked

    def run(frame: Frame) -> None:
        memory = frame.memory
        if frame.homes:
            made = [frame.made(*each) for each in places]
        else:
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

    def run(frame: Frame) -> None:
        arrays = [frame.stored(b) for b in step.inputs]
        made: list[Array] = []
        for number, (b, maker) in enumerate(zip(step.outputs, makers, strict=True)):
            source = source_of.get(number)
            if source is None:
                made.append(frame.made(b, maker, alignments[number]))
                continue
            _, dims, dtype = maker
            array = arrays[source]
            if not (free[source] and frame.owned[sources[source]]) or pointer(array) % alignments[number]:
                home = frame.homes.get(b)
                if home is None or pointer(home) % alignments[number]:
                    array = copied(array)
                else:
                    array = copied(array, home.reshape(-1).view(array.dtype).reshape(array.shape))
            arrays[source] = array
            made.append(array.reshape(-1).view(dtype).reshape(dims))
        step.kernel.launch([*map(pointer, arrays), *map(pointer, made)])
        for b, array in zip(step.outputs, made, strict=True):
            frame.put(b, array, True)

    return run


def _address(array: Array | None) -> int:
    assert array is not None, "a buffer is read after its last use"
    return pointer(array)


def _reader(plan: Plan, buffer: int) -> Callable[[Frame], Array]:
    """What gives a buffer's array in HLO's dims; the usual case, a buffer of its own in row-major order, quickly."""
    if plan.storage[buffer] != buffer or not plan.buffers[buffer].is_row_major:
        return lambda frame: frame.logical(buffer)

    def read(frame: Frame) -> Array:
        array = frame.memory[buffer]
        assert array is not None, "a buffer is read after its last use"
        return array

    return read


def _function(
    plan: Plan, step: LaunchStep | HostStep, function: Callable[[Sequence[Array]], Sequence[Array]]
) -> Action:
    specs = [plan.buffers[b] for b in step.outputs]
    readers = [_reader(plan, b) for b in step.inputs]

    def run(frame: Frame) -> None:
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

    def run(frame: Frame) -> None:
        array = frame.physical(target)
        if not (free and frame.owned[storage]) and not repacked:
            array = copied(array, frame.homes.get(output) if same_layout else None)
        whole = given.logical(array)
        step.function([whole, *[read(frame) for read in readers]])
        frame.put(output, array if same_layout else made.physical(whole), True)

    return run


def _copy(plan: Plan, step: CopyStep) -> Action:
    (source,), (target,) = step.inputs, step.outputs
    spec = plan.buffers[target]
    maker = default_pool().empty, spec.physical_dims, spec.dtype.numpy

    def run(frame: Frame) -> None:
        made = frame.made(target, maker)
        np.copyto(spec.logical(made), frame.logical(source))
        frame.put(target, made, True)

    return run


def _while(step: WhileStep, made: dict[int, Runner]) -> Action:
    condition, body = _runner(step.condition, made), _runner(step.body, made)
    nothing_given = [False] * len(step.inputs)

    def run(frame: Frame) -> None:
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

    def run(frame: Frame) -> None:
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

    def run(frame: Frame) -> None:
        arrays, given = frame.take(step.inputs, step.frees)
        results, fresh = runner.run(arrays, given, frame.clock)
        for b, array, mine in zip(step.outputs, results, fresh, strict=True):
            frame.put(b, array, mine)

    return run
