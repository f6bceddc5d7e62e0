"""The order in which a computation is evaluated: steps, groups of elementwise steps, and what may be freed when.

In: a computation and which of its instructions run in chunks.  Out: an `EvaluationPlan`.  Instructions that the root
doesn't need are left out.  Neighbouring large elementwise instructions of the same dims form a `Group`, which the
machine runs over pieces of the arrays that fit in the cache, so that values between them are never whole in memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from warpsmith.hlo.module import HloComputation, HloInstruction

__all__ = ["CHUNK", "EvaluationPlan", "Group", "Step", "chunks", "make_plan"]

CHUNK = 1 << 16
"""Elements that a group takes at a time."""


@dataclass(slots=True)
class Step:
    """One instruction: read `sources`, write `target`, then drop `frees` (all are slots, one a live instruction)."""

    instruction: HloInstruction
    sources: tuple[int, ...]
    target: int
    frees: tuple[int, ...] = ()


@dataclass(slots=True)
class Group:
    """Elementwise steps of arrays of `dims`: `inputs` come from outside, `outputs` (slots of `members`) leave."""

    dims: tuple[int, ...]
    members: list[Step] = field(default_factory=list[Step])
    inputs: tuple[int, ...] = ()
    outputs: tuple[Step, ...] = ()
    frees: tuple[int, ...] = ()


@dataclass(slots=True)
class EvaluationPlan:
    """`items` in order; parameter i arrives in slot `parameters[i]` (-1: not needed); the result is slot `root`."""

    slots: int
    parameters: tuple[int, ...]
    root: int
    items: list[Step | Group]


def _live(computation: HloComputation) -> set[HloInstruction]:
    live = {computation.root}
    stack = [computation.root]
    while stack:
        for operand in stack.pop().operands:
            if operand not in live:
                live.add(operand)
                stack.append(operand)
    return live


def make_plan(computation: HloComputation, in_chunks: Callable[[HloInstruction], bool]) -> EvaluationPlan:
    """The plan of `computation`; `in_chunks` says which instructions may join a group."""
    live = _live(computation)
    order = [instruction for instruction in computation.instructions if instruction in live]
    slots = {instruction: slot for slot, instruction in enumerate(order)}
    items: list[Step | Group] = []
    group: Group | None = None
    inside: set[int] = set()
    for instruction in order:
        if instruction.opcode == "parameter":
            continue
        step = Step(
            instruction,
            tuple(slots[operand] for operand in instruction.operands),
            slots[instruction],
        )
        joins = in_chunks(instruction)
        needs = group is not None and not inside.isdisjoint(step.sources)
        if group is not None and joins and instruction.array_shape.dims == group.dims:
            group.members.append(step)
            inside.add(step.target)
        elif joins:
            if group is not None:
                items.append(group)
            group, inside = Group(instruction.array_shape.dims, [step]), {step.target}
        else:
            if group is not None and needs:
                items.append(group)
                group, inside = None, set()
            items.append(step)
    if group is not None:
        items.append(group)
    root = slots[computation.root]
    _set_frees(items, root)
    parameters = tuple(slots.get(parameter, -1) for parameter in computation.parameters)
    return EvaluationPlan(len(order), parameters, root, items)


def _set_frees(items: list[Step | Group], root: int) -> None:
    """Fill in groups' inputs and outputs, and each item's frees: slots that nothing after it reads."""
    needed = {root}
    for item in reversed(items):
        if isinstance(item, Step):
            item.frees = tuple(slot for slot in dict.fromkeys(item.sources) if slot not in needed)
            needed.update(item.sources)
            continue
        made = {member.target for member in item.members}
        read = dict.fromkeys(source for member in item.members for source in member.sources)
        item.inputs = tuple(slot for slot in read if slot not in made)
        item.outputs = tuple(member for member in item.members if member.target in needed)
        item.frees = tuple(slot for slot in item.inputs if slot not in needed)
        leaving = {member.target for member in item.outputs}
        needed.update(item.inputs)
        later: set[int] = set(leaving)
        for member in reversed(item.members):
            member.frees = tuple(slot for slot in dict.fromkeys(member.sources) if slot not in later)
            later.update(member.sources)


def chunks(dims: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """Indices that cut an array of `dims` into pieces of about CHUNK elements, along its leading dimensions."""
    if math.prod(dims) == 0:
        return
    axis = 0
    while axis < len(dims) - 1 and math.prod(dims[axis + 1 :]) > 2 * CHUNK:
        axis += 1
    rows = max(1, CHUNK // math.prod(dims[axis + 1 :]))
    outer = dims[:axis]
    for number in range(math.prod(outer)):
        prefix: list[slice] = []
        for dim in reversed(outer):
            number, place = divmod(number, dim)
            prefix.append(slice(place, place + 1))
        prefix.reverse()
        for start in range(0, dims[axis], rows):
            yield (*prefix, slice(start, min(start + rows, dims[axis])))
