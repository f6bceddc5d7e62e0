"""From the schedule to the runtime's plan: steps get what runs them.

In: a schedule, the kernel of each fusion.  Out: `runtime.plan.Plan`, and the list of kernels and host steps that a
user sees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import numpy as np

from warpsmith.arrays import Array
from warpsmith.compiler.lowering import LoweredKernel
from warpsmith.hlo.attributes import Alias, Donor
from warpsmith.hlo.literals import Literal
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule
from warpsmith.hlo.shapes import AnyShape, TupleShape
from warpsmith.library.dot_and_convolution import HostFunction
from warpsmith.library.host import host_function, independent_function, update_function
from warpsmith.runtime.cpu_executable import CpuKernel
from warpsmith.runtime.plan import (
    AnyStep,
    BranchStep,
    BufferSpec,
    CopyStep,
    HostStep,
    KernelInfo,
    KernelStep,
    LaunchStep,
    Plan,
    RunStep,
    UpdateStep,
    WhileStep,
)
from warpsmith.schedule.schedule import Schedule, Step, array_leaves

__all__ = ["KernelOf", "kernel_infos", "runtime_plan"]

KernelOf = Callable[[HloInstruction], CpuKernel | HostFunction]
"""What runs a fusion: its kernel, or a function that launches it elsewhere."""


HostOf = Callable[[HloInstruction], HostFunction]


def runtime_plan(
    schedule: Schedule, kernel_of: KernelOf, module: HloModule, *, host_of: HostOf = host_function
) -> Plan:
    """The schedule with what runs each step.  The header of `module` says which parameters are given away.

    Raises UnsupportedHlo for a host step that nothing computes, of whatever computation.
    """
    made: dict[int, Plan] = {}
    stack: list[tuple[Schedule, bool]] = [(schedule, False)]
    while stack:
        top, ready = stack.pop()
        if id(top) in made:
            continue
        if ready:
            made[id(top)] = _plan(top, kernel_of, host_of, made)
            continue
        stack.append((top, True))
        stack.extend((inner, False) for step in top.steps for inner in step.inner)
    whole = made[id(schedule)]
    whole.donors = _donors(module)
    return whole


def _plan(schedule: Schedule, kernel_of: KernelOf, host_of: HostOf, made: Mapping[int, Plan]) -> Plan:
    specs = [BufferSpec(s.dims, s.dtype, tuple(s.minor_to_major)) for s in schedule.buffers]
    return Plan(
        buffers=specs,
        storage=list(schedule.storage),
        parameters=list(schedule.parameters),
        outputs=list(schedule.results),
        steps=[_step(step, kernel_of, host_of, made) for step in schedule.steps],
        constants={b: _memory(literal, specs[b]) for b, literal in schedule.constants.items()},
        parameter_names=[schedule.names[b] for b in schedule.parameters],
    )


def _step(step: Step, kernel_of: KernelOf, host_of: HostOf, made: Mapping[int, Plan]) -> AnyStep:
    inputs, outputs, frees = step.inputs, step.outputs, step.frees
    instruction, name = step.instruction, step.instruction.name
    plans = tuple(made[id(inner)] for inner in step.inner)
    match step.kind:
        case "kernel":
            kernel = kernel_of(instruction)
            if isinstance(kernel, CpuKernel):
                return KernelStep(kernel, inputs, outputs, name, frees, kernel.aliases)
            return LaunchStep(kernel, inputs, outputs, name, frees)
        case "while":
            condition, body = plans
            return WhileStep(condition, body, inputs, outputs, step.carried, name, frees)
        case "conditional":
            return BranchStep(plans, inputs, outputs, name, frees)
        case "call":
            return RunStep(plans[0], inputs, outputs, name, frees)
        case "copy":
            return CopyStep(inputs, outputs, name, frees)
        case _:
            if step.in_place:
                return UpdateStep(update_function(instruction), inputs, outputs, name, frees)
            return HostStep(host_of(instruction), inputs, outputs, name, frees)


def _memory(literal: Literal, spec: BufferSpec) -> Array:
    """A constant's elements in memory order."""
    array = np.asarray(literal.array).astype(spec.dtype.numpy, copy=False)
    return spec.physical(np.broadcast_to(array, spec.dims))


def _donors(module: HloModule) -> tuple[int, ...]:
    """The parameter leaves whose memory the header's input_output_alias and buffer_donor give away."""
    aliases = cast("tuple[object, ...]", module.attributes.get("input_output_alias", ()))
    donors = cast("tuple[object, ...]", module.attributes.get("buffer_donor", ()))
    starts = [0]
    for parameter in module.entry.parameters:
        starts.append(starts[-1] + len(array_leaves(parameter.shape)))
    found: set[int] = set()
    for each in (*aliases, *donors):
        if isinstance(each, Alias | Donor) and 0 <= each.number < len(module.entry.parameters):
            start, shape = starts[each.number], module.entry.parameters[each.number].shape
            first, count = _leaves_at(shape, each.index)
            found.update(range(start + first, start + first + count))
    return tuple(sorted(found))


def _leaves_at(shape: AnyShape, index: tuple[int, ...]) -> tuple[int, int]:
    """Where the leaves of a shape's part begin, and how many they are."""
    first = 0
    for place in index:
        if not isinstance(shape, TupleShape):
            break
        first += sum(len(array_leaves(each)) for each in shape.elements[:place])
        shape = shape.elements[place]
    return first, len(array_leaves(shape))


def kernel_infos(schedule: Schedule, lowered: Mapping[HloInstruction, LoweredKernel]) -> list[KernelInfo]:
    """A row for each kernel and host step of a module, loops and branches included; a plan's rows come once."""
    entry = schedule.computation
    rows: list[KernelInfo] = []
    for computation, step in _placed(schedule):
        where = "" if computation is entry else computation.name
        name = step.instruction.name
        if step.kind == "kernel":
            k = lowered[step.instruction].kernel
            moved = sum(each.byte_size for each in k.arguments)
            rows.append(
                KernelInfo(
                    *(name, k.origin.emitter, k.origin.variant, k.launch.grid, k.launch.block, k.launch.shared_bytes),
                    bytes=moved,
                    computation=where,
                )
            )
        elif step.kind in ("host", "copy"):
            opcode = step.instruction.opcode if step.kind == "host" else "copy"
            own = step.kind == "copy" or step.in_place or independent_function(step.instruction) is not None
            rows.append(
                KernelInfo(
                    *(name, "", "", (0, 0, 0), (0, 0, 0), 0),
                    host=True,
                    computation=where,
                    opcode=opcode,
                    reason=step.reason,
                    unchecked=not own,
                )
            )
    return rows


def _placed(schedule: Schedule) -> list[tuple[HloComputation, Step]]:
    """Every step with the computation that it stands in, those of schedules inside a step after it."""
    found: list[tuple[HloComputation, Step]] = []
    seen: set[int] = set()
    stack: list[tuple[Schedule, int]] = [(schedule, 0)]
    while stack:
        plan, place = stack.pop()
        if place == len(plan.steps):
            continue
        stack.append((plan, place + 1))
        step = plan.steps[place]
        found.append((plan.computation, step))
        for inner in reversed(step.inner):
            if id(inner) not in seen:
                seen.add(id(inner))
                stack.append((inner, 0))
    return found
