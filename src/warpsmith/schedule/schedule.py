"""The schedule of a module: numbered buffers, and the steps that fill them in order.

In: a module (wrapped or not).  Out: `Schedule`: each fusion is a kernel step, each other op that computes a host step
with its reason; a while, a conditional, or a call that wasn't spliced in is a step with schedules of its own.
Parameters, constants, tuples, get-tuple-element and bitcasts stand for buffers and take no step; tokens hold nothing
and have no buffer.  State that a loop hands on untouched is one buffer before, in and after it.  Each step says which
buffers nobody needs after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from warpsmith.dtypes import Kind
from warpsmith.errors import InvalidHlo
from warpsmith.fusion.in_place import keeps_memory_order
from warpsmith.fusion.support import IN_PLACE, host_reason, is_view
from warpsmith.hlo.control_flow import RUNS, run_by, step_computations
from warpsmith.hlo.literals import Literal
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule
from warpsmith.hlo.shapes import AnyShape, Shape, TupleShape

__all__ = ["Schedule", "Step", "array_leaves", "make_schedule"]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do.

    `kind`: "kernel", "host", "while", "conditional", "call", or "copy" (to the layout that the instruction's callee
    wants).  `inputs` are the buffers of the operands' leaves, in order; `outputs` those of the result's.  `frees`:
    storages (see `Schedule.storage`) whose last use this is.  `reason` says why a host step is none of a kernel's.
    `inner` are the schedules of a while's condition and body, of a conditional's branches, of a call's callee.  A
    while's condition and body take `inputs`, of which `carried` are the places that the body gives anew and `outputs`
    stand for.  A step that is `in_place` writes into its first input's memory where that is free.
    """

    kind: str
    instruction: HloInstruction
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    frees: tuple[int, ...] = ()
    reason: str = ""
    inner: tuple[Schedule, ...] = ()
    carried: tuple[int, ...] = ()
    in_place: bool = False


@dataclass(frozen=True, slots=True)
class Schedule:
    """What it takes to run a computation.

    `buffers` gives each buffer's shape and `names` what it is called, by number; `storage` the buffer whose memory it
    shares (itself, unless it is a view made by a bitcast).  `parameters` lists the leaves of the computation's
    parameters, `results` those of its root.
    """

    computation: HloComputation
    buffers: Sequence[Shape]
    names: Sequence[str]
    storage: Sequence[int]
    parameters: tuple[int, ...]
    constants: Mapping[int, Literal]
    steps: tuple[Step, ...]
    results: tuple[int, ...]

    def all_steps(self) -> Iterator[Step]:
        """The steps, those of schedules inside them after each; one that several steps run comes once."""
        seen: set[int] = set()
        stack: list[Iterator[Step]] = [iter(self.steps)]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
                continue
            yield step
            for inner in reversed(step.inner):
                if id(inner) not in seen:
                    seen.add(id(inner))
                    stack.append(iter(inner.steps))

    def kernel_fusions(self) -> list[HloInstruction]:
        """The fusions that run as kernels, each once."""
        return list(dict.fromkeys(step.instruction for step in self.all_steps() if step.kind == "kernel"))

    def peak_bytes(self) -> int:
        """The most memory that results and intermediate values take at any time; parameters and constants apart."""
        return _peak(self)


def array_leaves(shape: AnyShape) -> list[Shape]:
    """The arrays of a shape in order; tokens are none."""
    return [leaf for leaf in shape.leaves() if leaf.dtype.kind is not Kind.TOKEN]


def make_schedule(module: HloModule) -> Schedule:
    """The schedule of `module`'s entry, in the order of its text (operands come first there)."""
    made: dict[HloComputation, Schedule] = {}
    for computation in step_computations(module):
        made[computation] = _Scheduler(computation, made).schedule()
    return made[module.entry]


class _Scheduler:
    """Schedules one computation; the schedules of those that it runs are there already."""

    def __init__(self, computation: HloComputation, made: Mapping[HloComputation, Schedule]) -> None:
        self.computation, self.made = computation, made
        self.buffers: list[Shape] = []
        self.names: list[str] = []
        self.storage: list[int] = []
        self.constants: dict[int, Literal] = {}
        self.leaves: dict[HloInstruction, tuple[int, ...]] = {}
        self.steps: list[Step] = []

    def schedule(self) -> Schedule:
        needed = _needed(self.computation)
        for instruction in self.computation:
            if instruction in needed:
                self.leaves[instruction] = self._leaves(instruction)
        parameters = tuple(b for each in self.computation.parameters for b in self.leaves[each])
        results = self.leaves[self.computation.root]
        kept = {self.storage[b] for b in (*self.constants, *results)}
        steps = _with_frees(self.steps, self.storage, kept)
        return Schedule(
            self.computation, self.buffers, self.names, self.storage, parameters, self.constants, steps, results
        )

    def _leaves(self, instruction: HloInstruction) -> tuple[int, ...]:
        """Schedule an instruction; the buffers of its result's leaves."""
        if is_view(instruction):
            return self._view(instruction)
        inputs = tuple(b for operand in instruction.operands for b in self.leaves[operand])
        if instruction.opcode == "while":
            return self._while(instruction, inputs)
        outputs = self._new(instruction)
        if instruction.opcode == "constant":
            self.constants.update(zip(outputs, _literal_leaves(instruction), strict=True))
        elif instruction.opcode == "fusion":
            self.steps.append(Step("kernel", instruction, inputs, outputs))
        elif instruction.opcode in RUNS:
            self._run(instruction, inputs, outputs)
        elif instruction.opcode != "parameter":
            in_place = instruction.opcode == "dynamic-update-slice" and keeps_memory_order(instruction)
            reason = IN_PLACE if in_place else "the op wasn't wrapped into a fusion"
            reason = host_reason(instruction) or reason
            self.steps.append(Step("host", instruction, inputs, outputs, reason=reason, in_place=in_place))
        return outputs

    def _new(self, instruction: HloInstruction) -> tuple[int, ...]:
        """New buffers for the leaves of a result."""
        shapes = array_leaves(instruction.shape)
        if isinstance(instruction.shape, TupleShape):
            return tuple(self._buffer(f"{instruction.name}{{{i}}}", shape) for i, shape in enumerate(shapes))
        return tuple(self._buffer(instruction.name, shape) for shape in shapes)

    def _buffer(self, name: str, shape: Shape, storage: int | None = None) -> int:
        """A new buffer's number; it has memory of its own unless it is a view of `storage`."""
        number = len(self.buffers)
        self.buffers.append(shape)
        self.names.append(name)
        self.storage.append(number if storage is None else storage)
        return number

    def _view(self, instruction: HloInstruction) -> tuple[int, ...]:
        match instruction.opcode:
            case "tuple":
                return tuple(b for operand in instruction.operands for b in self.leaves[operand])
            case "get-tuple-element":
                producer = instruction.operands[0]
                first, count = _element_leaves(producer.shape, instruction.attr("index", int))
                return self.leaves[producer][first : first + count]
            case "bitcast":
                (source,) = self.leaves[instruction.operands[0]]
                return (self._buffer(instruction.name, instruction.array_shape, self.storage[source]),)
            case "after-all":
                return ()
            case _:
                return self.leaves[instruction.operands[0]]

    def _run(self, instruction: HloInstruction, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> None:
        """A call or a conditional: the callees take the operands and give the result, each in the layout it states."""
        callees = [self.made[each] for each in run_by(instruction)]
        wanted = [each.buffers[b] for each in callees for b in each.parameters]
        head = len(inputs) - len(wanted)  # a conditional's selector
        given = (*inputs[:head], *self._laid_out(instruction, inputs[head:], wanted))
        shapes = array_leaves(instruction.shape)
        inner = tuple(_giving(each, instruction, shapes) for each in callees)
        self.steps.append(Step(instruction.opcode, instruction, given, outputs, inner=inner))

    def _while(self, instruction: HloInstruction, inputs: tuple[int, ...]) -> tuple[int, ...]:
        condition, body = (self.made[each] for each in run_by(instruction))
        shapes = [body.buffers[b] for b in body.parameters]
        state = self._laid_out(instruction, inputs, shapes)
        body = _giving(body, instruction, shapes)
        carried = tuple(i for i, (a, b) in enumerate(zip(body.parameters, body.results, strict=True)) if a != b)
        outputs = tuple(
            self._buffer(f"{instruction.name}{{{i}}}" if len(state) > 1 else instruction.name, shapes[i])
            for i in carried
        )
        inner = (_taking(condition, instruction, shapes), body)
        self.steps.append(Step("while", instruction, state, outputs, inner=inner, carried=carried))
        after = list(state)
        for b, place in zip(outputs, carried, strict=True):
            after[place] = b
        return self._laid_out(instruction, after, array_leaves(instruction.shape))

    def _laid_out(self, instruction: HloInstruction, given: Sequence[int], shapes: Sequence[Shape]) -> tuple[int, ...]:
        """The buffers, or copies of them in the layouts of `shapes` where these differ."""
        found: list[int] = []
        for b, shape in zip(given, shapes, strict=True):
            if self.buffers[b].minor_to_major == shape.minor_to_major:
                found.append(b)
                continue
            copy = self._buffer(f"{self.names[b]}.for.{instruction.name}", shape)
            self.steps.append(Step("copy", instruction, (b,), (copy,), reason=_LAYOUTS))
            found.append(copy)
        return tuple(found)


_LAYOUTS = "caller and callee differ in layout"


def _giving(inner: Schedule, instruction: HloInstruction, shapes: Sequence[Shape]) -> Schedule:
    """`inner` with its results in the layouts of `shapes`."""
    return _copying(inner, instruction, shapes, inner.results, "result")


def _taking(inner: Schedule, instruction: HloInstruction, shapes: Sequence[Shape]) -> Schedule:
    """`inner` with parameters in the layouts of `shapes`."""
    return _copying(inner, instruction, shapes, inner.parameters, "given")


def _copying(
    inner: Schedule, instruction: HloInstruction, shapes: Sequence[Shape], ends: tuple[int, ...], role: str
) -> Schedule:
    """`inner` with copies between its `ends`, which are its parameters or its results, and buffers of `shapes`."""
    buffers, names, storage = list(inner.buffers), list(inner.names), list(inner.storage)
    copies: list[Step] = []
    new = list(ends)
    for i, (end, shape) in enumerate(zip(ends, shapes, strict=True)):
        if buffers[end].minor_to_major != shape.minor_to_major:
            new[i] = len(buffers)
            buffers.append(shape)
            names.append(f"{names[end]}.{role}.{i}")
            storage.append(new[i])
            source, target = (end, new[i]) if role == "result" else (new[i], end)
            copies.append(Step("copy", instruction, (source,), (target,), reason=_LAYOUTS))
    if not copies:
        return inner
    results = tuple(new) if role == "result" else inner.results
    steps = [*inner.steps, *copies] if role == "result" else [*copies, *inner.steps]
    kept = {storage[b] for b in (*inner.constants, *results)}
    return replace(
        inner,
        buffers=buffers,
        names=names,
        storage=storage,
        parameters=inner.parameters if role == "result" else tuple(new),
        steps=_with_frees(steps, storage, kept),
        results=results,
    )


def _needed(computation: HloComputation) -> set[HloInstruction]:
    """What the root depends on, all parameters, and ops that act on the world."""
    acts = (each for each in computation if each.opcode in _ACTS or _has_side_effect(each))
    stack = [computation.root, *computation.parameters, *acts]
    found = set(stack)
    while stack:
        for operand in stack.pop().operands:
            if operand not in found:
                found.add(operand)
                stack.append(operand)
    return found


_ACTS = frozenset(("outfeed", "infeed", "send", "send-done", "recv", "recv-done"))


def _has_side_effect(instruction: HloInstruction) -> bool:
    return instruction.attributes.get("custom_call_has_side_effect") is True


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


def _element_leaves(shape: AnyShape, index: int) -> tuple[int, int]:
    """Where the leaves of element `index` of a tuple shape begin, and how many they are."""
    if not isinstance(shape, TupleShape):
        raise InvalidHlo("get-tuple-element of something that is no tuple")
    counts = [len(array_leaves(element)) for element in shape.elements]
    return sum(counts[:index]), counts[index]


def _with_frees(steps: Sequence[Step], storage: Sequence[int], kept: set[int]) -> tuple[Step, ...]:
    """Each storage is given back after the last step that touches it."""
    gone = set(kept)
    found: list[Step] = []
    for step in reversed(steps):
        used = dict.fromkeys(storage[b] for b in (*step.inputs, *step.outputs))
        frees = tuple(b for b in used if b not in gone)
        gone.update(frees)
        found.append(replace(step, frees=frees))
    return tuple(reversed(found))


def _peak(whole: Schedule) -> int:
    """Schedules inside schedules add their own peak to what is live around them."""
    peaks: dict[int, int] = {}
    stack: list[tuple[Schedule, bool]] = [(whole, False)]
    while stack:
        top, done = stack.pop()
        if id(top) in peaks:
            continue
        inner = [each for step in top.steps for each in step.inner]
        if not done:
            stack.append((top, True))
            stack.extend((each, False) for each in inner)
            continue
        peaks[id(top)] = _own_peak(top, peaks)
    return peaks[id(whole)]


def _own_peak(top: Schedule, peaks: Mapping[int, int]) -> int:
    apart = {top.storage[b] for b in (*top.parameters, *top.constants)}
    live = peak = 0
    for step in top.steps:
        made = [top.storage[b] for b in step.outputs if top.storage[b] not in apart]
        if step.in_place and top.storage[step.inputs[0]] in step.frees and top.storage[step.inputs[0]] not in apart:
            live -= top.buffers[top.storage[step.inputs[0]]].byte_size  # the output takes its memory
        inside = max((peaks[id(each)] for each in step.inner), default=0)
        if step.inner:
            # The outputs are what the schedules inside made; a round of a loop has the last round's beside it, unless
            # what the loop began with made room for them.
            began = [step.inputs[place] for place in step.carried]
            inside += sum(top.buffers[b].byte_size for b in began if top.storage[b] not in step.frees)
            peak = max(peak, live + inside)
            live += sum(top.buffers[b].byte_size for b in made)
        else:
            live += sum(top.buffers[b].byte_size for b in made)
        peak = max(peak, live)
        for b in step.frees:
            reused = step.in_place and b == top.storage[step.inputs[0]]
            if b not in apart and not reused:
                live -= top.buffers[b].byte_size
    return peak
