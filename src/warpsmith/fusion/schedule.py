"""The plan of a module: buffers, and the steps that fill them in order.

In: a module (wrapped or not).  Out: `Plan`: each fusion is a kernel step, each other op that computes a host step with
its reason; parameters, constants, tuples, get-tuple-element and bitcasts are names of buffers and take no step.  Each
step says which buffers nobody needs after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warpsmith.errors import InvalidHlo
from warpsmith.fusion.support import host_reason, is_view
from warpsmith.hlo.literals import Literal
from warpsmith.hlo.module import HloInstruction, HloModule
from warpsmith.hlo.shapes import AnyShape, Shape, TupleShape

__all__ = ["Plan", "Step", "plan"]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do: run `instruction` as a kernel or on the host.

    `inputs` are the buffers of the operands' leaves, in order; `outputs` those of the result's.  `frees`: storages (see
    `Plan.storage`) whose last use this is.  `reason` says why a host step is none of a kernel's.
    """

    kind: str  # "kernel" or "host"
    instruction: HloInstruction
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    frees: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What it takes to run a module.

    `buffers` gives each buffer's shape; `storage` the buffer whose memory it shares (itself, unless it is a view made
    by a bitcast).  `parameters` lists the leaves of the entry's parameters, `results` those of its root.
    """

    module: HloModule
    buffers: Mapping[str, Shape]
    storage: Mapping[str, str]
    parameters: tuple[str, ...]
    constants: Mapping[str, Literal]
    steps: tuple[Step, ...]
    results: tuple[str, ...]


def plan(module: HloModule) -> Plan:
    """The plan of `module`'s entry, in the order of its text (operands come first there)."""
    buffers: dict[str, Shape] = {}
    storage: dict[str, str] = {}
    constants: dict[str, Literal] = {}
    leaves: dict[HloInstruction, tuple[str, ...]] = {}
    steps: list[Step] = []
    needed = _needed(module)
    for instruction in module.entry:
        if instruction not in needed:
            continue
        inputs = tuple(name for operand in instruction.operands for name in leaves[operand])
        if is_view(instruction):
            leaves[instruction] = _view(instruction, leaves, buffers, storage)
            continue
        names = _leaf_names(instruction)
        leaves[instruction] = names
        for name, shape in zip(names, instruction.shape.leaves(), strict=True):
            buffers[name] = shape
            storage[name] = name
        if instruction.opcode == "constant":
            constants.update(zip(names, _literal_leaves(instruction), strict=True))
        elif instruction.opcode == "fusion":
            steps.append(Step("kernel", instruction, inputs, names))
        elif instruction.opcode != "parameter":
            reason = host_reason(instruction) or "the op wasn't wrapped into a fusion"
            steps.append(Step("host", instruction, inputs, names, reason=reason))
    parameters = tuple(name for each in module.entry.parameters for name in leaves[each])
    results = leaves[module.entry.root]
    kept = {storage[name] for name in (*parameters, *constants, *results)}
    return Plan(module, buffers, storage, parameters, constants, _with_frees(steps, storage, kept), results)


def _needed(module: HloModule) -> set[HloInstruction]:
    """What the root depends on, all parameters, and ops that act on the world."""
    entry = module.entry
    stack = [entry.root, *entry.parameters, *(each for each in entry if each.opcode in _ACTS)]
    found = set(stack)
    while stack:
        for operand in stack.pop().operands:
            if operand not in found:
                found.add(operand)
                stack.append(operand)
    return found


_ACTS = frozenset(("outfeed", "infeed", "send", "send-done", "recv", "recv-done"))


def _leaf_names(instruction: HloInstruction) -> tuple[str, ...]:
    if not isinstance(instruction.shape, TupleShape):
        return (instruction.name,)
    return tuple(f"{instruction.name}{{{i}}}" for i in range(len(instruction.shape.leaves())))


def _literal_leaves(instruction: HloInstruction) -> list[Literal]:
    if instruction.literal is None:
        raise InvalidHlo(f"constant '{instruction.name}' has no value", span=instruction.span)
    found: list[Literal] = []
    stack = [instruction.literal]
    while stack:
        top = stack.pop()
        if top.is_tuple:
            stack.extend(reversed(top.elements))
        else:
            found.append(top)
    return found


def _view(
    instruction: HloInstruction,
    leaves: dict[HloInstruction, tuple[str, ...]],
    buffers: dict[str, Shape],
    storage: dict[str, str],
) -> tuple[str, ...]:
    match instruction.opcode:
        case "tuple":
            return tuple(name for operand in instruction.operands for name in leaves[operand])
        case "get-tuple-element":
            producer = instruction.operands[0]
            first, count = _element_leaves(producer.shape, instruction.attr("index", int))
            return leaves[producer][first : first + count]
        case "bitcast":
            (source,) = leaves[instruction.operands[0]]
            buffers[instruction.name] = instruction.array_shape
            storage[instruction.name] = storage[source]
            return (instruction.name,)
        case _:
            return leaves[instruction.operands[0]]


def _element_leaves(shape: AnyShape, index: int) -> tuple[int, int]:
    """Where the leaves of element `index` of a tuple shape begin, and how many they are."""
    if not isinstance(shape, TupleShape):
        raise InvalidHlo("get-tuple-element of something that is no tuple")
    counts = [len(element.leaves()) for element in shape.elements]
    return sum(counts[:index]), counts[index]


def _with_frees(steps: list[Step], storage: Mapping[str, str], kept: set[str]) -> tuple[Step, ...]:
    """Each storage is given back after the last step that touches it."""
    gone = set(kept)
    found: list[Step] = []
    for step in reversed(steps):
        used = dict.fromkeys(storage[name] for name in (*step.inputs, *step.outputs))
        frees = tuple(name for name in used if name not in gone)
        gone.update(frees)
        found.append(Step(step.kind, step.instruction, step.inputs, step.outputs, frees, step.reason))
    return tuple(reversed(found))
