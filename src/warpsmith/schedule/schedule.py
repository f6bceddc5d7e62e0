"""The plan of a module: buffers, and the steps that fill them in order.

In: a module (wrapped or not).  Out: `Plan`: each fusion is a kernel step, each other op that computes a host step with
its reason; a while, a conditional, or a call that wasn't spliced in is a step with plans of its own.  Parameters,
constants, tuples, get-tuple-element and bitcasts are names of buffers and take no step; tokens hold nothing and have
no buffer.  State that a loop hands on untouched is one buffer before, in and after it.  Each step says which buffers
nobody needs after it.
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

__all__ = ["Plan", "Step", "array_leaves", "plan"]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do.

    `kind`: "kernel", "host", "while", "conditional", "call", or "copy" (to the layout that the instruction's callee
    wants).  `inputs` are the buffers of the operands' leaves, in order; `outputs` those of the result's.  `frees`:
    storages (see `Plan.storage`) whose last use this is.  `reason` says why a host step is none of a kernel's.  `plans`
    are those of a while's condition and body, of a conditional's branches, of a call's callee.  A while's condition and
    body take `inputs`, of which `carried` are the places that the body gives anew and `outputs` stand for.  A step
    that is `in_place` writes into its first input's memory where that is free.
    """

    kind: str
    instruction: HloInstruction
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    frees: tuple[str, ...] = ()
    reason: str = ""
    plans: tuple[Plan, ...] = ()
    carried: tuple[int, ...] = ()
    in_place: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What it takes to run a computation.

    `buffers` gives each buffer's shape; `storage` the buffer whose memory it shares (itself, unless it is a view made
    by a bitcast).  `parameters` lists the leaves of the computation's parameters, `results` those of its root.
    """

    computation: HloComputation
    buffers: Mapping[str, Shape]
    storage: Mapping[str, str]
    parameters: tuple[str, ...]
    constants: Mapping[str, Literal]
    steps: tuple[Step, ...]
    results: tuple[str, ...]

    def all_steps(self) -> Iterator[Step]:
        """The steps, those of plans inside them after each; a plan that several steps run comes once."""
        seen: set[int] = set()
        stack: list[Iterator[Step]] = [iter(self.steps)]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
                continue
            yield step
            for inner in reversed(step.plans):
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


def plan(module: HloModule) -> Plan:
    """The plan of `module`'s entry, in the order of its text (operands come first there)."""
    plans: dict[HloComputation, Plan] = {}
    for computation in step_computations(module):
        plans[computation] = _Planner(computation, plans).plan()
    return plans[module.entry]


class _Planner:
    """Plans one computation; the plans of those that it runs are there already."""

    def __init__(self, computation: HloComputation, plans: Mapping[HloComputation, Plan]) -> None:
        self.computation, self.plans = computation, plans
        self.buffers: dict[str, Shape] = {}
        self.storage: dict[str, str] = {}
        self.constants: dict[str, Literal] = {}
        self.leaves: dict[HloInstruction, tuple[str, ...]] = {}
        self.steps: list[Step] = []

    def plan(self) -> Plan:
        needed = _needed(self.computation)
        for instruction in self.computation:
            if instruction in needed:
                self.leaves[instruction] = self._leaves(instruction)
        parameters = tuple(name for each in self.computation.parameters for name in self.leaves[each])
        results = self.leaves[self.computation.root]
        kept = {self.storage[name] for name in (*self.constants, *results)}
        steps = _with_frees(self.steps, self.storage, kept)
        return Plan(self.computation, self.buffers, self.storage, parameters, self.constants, steps, results)

    def _leaves(self, instruction: HloInstruction) -> tuple[str, ...]:
        """Plan an instruction; the buffers of its result's leaves."""
        if is_view(instruction):
            return self._view(instruction)
        inputs = tuple(name for operand in instruction.operands for name in self.leaves[operand])
        if instruction.opcode == "while":
            return self._while(instruction, inputs)
        names = self._named(instruction)
        if instruction.opcode == "constant":
            self.constants.update(zip(names, _literal_leaves(instruction), strict=True))
        elif instruction.opcode == "fusion":
            self.steps.append(Step("kernel", instruction, inputs, names))
        elif instruction.opcode in RUNS:
            self._run(instruction, inputs, names)
        elif instruction.opcode != "parameter":
            in_place = instruction.opcode == "dynamic-update-slice" and keeps_memory_order(instruction)
            reason = IN_PLACE if in_place else "the op wasn't wrapped into a fusion"
            reason = host_reason(instruction) or reason
            self.steps.append(Step("host", instruction, inputs, names, reason=reason, in_place=in_place))
        return names

    def _named(self, instruction: HloInstruction) -> tuple[str, ...]:
        """New buffers for the leaves of a result."""
        shapes = array_leaves(instruction.shape)
        if isinstance(instruction.shape, TupleShape):
            return tuple(self._buffer(f"{instruction.name}{{{i}}}", shape) for i, shape in enumerate(shapes))
        return tuple(self._buffer(instruction.name, shape) for shape in shapes)

    def _buffer(self, name: str, shape: Shape) -> str:
        self.buffers[name] = shape
        self.storage[name] = name
        return name

    def _view(self, instruction: HloInstruction) -> tuple[str, ...]:
        match instruction.opcode:
            case "tuple":
                return tuple(name for operand in instruction.operands for name in self.leaves[operand])
            case "get-tuple-element":
                producer = instruction.operands[0]
                first, count = _element_leaves(producer.shape, instruction.attr("index", int))
                return self.leaves[producer][first : first + count]
            case "bitcast":
                (source,) = self.leaves[instruction.operands[0]]
                self.buffers[instruction.name] = instruction.array_shape
                self.storage[instruction.name] = self.storage[source]
                return (instruction.name,)
            case "after-all":
                return ()
            case _:
                return self.leaves[instruction.operands[0]]

    def _run(self, instruction: HloInstruction, inputs: tuple[str, ...], names: tuple[str, ...]) -> None:
        """A call or a conditional: the callees take the operands and give the result, each in the layout it states."""
        callees = [self.plans[each] for each in run_by(instruction)]
        wanted = [shape for each in callees for shape in (each.buffers[name] for name in each.parameters)]
        head = len(inputs) - len(wanted)  # a conditional's selector
        given = (*inputs[:head], *self._laid_out(instruction, inputs[head:], wanted))
        shapes = array_leaves(instruction.shape)
        plans = tuple(_giving(each, instruction, shapes) for each in callees)
        self.steps.append(Step(instruction.opcode, instruction, given, names, plans=plans))

    def _while(self, instruction: HloInstruction, inputs: tuple[str, ...]) -> tuple[str, ...]:
        condition, body = (self.plans[each] for each in run_by(instruction))
        shapes = [body.buffers[name] for name in body.parameters]
        state = self._laid_out(instruction, inputs, shapes)
        body = _giving(body, instruction, shapes)
        carried = tuple(i for i, (a, b) in enumerate(zip(body.parameters, body.results, strict=True)) if a != b)
        names = tuple(f"{instruction.name}{{{i}}}" if len(state) > 1 else instruction.name for i in carried)
        for name, place in zip(names, carried, strict=True):
            self._buffer(name, shapes[place])
        plans = (_taking(condition, instruction, shapes), body)
        self.steps.append(Step("while", instruction, state, names, plans=plans, carried=carried))
        after = list(state)
        for name, place in zip(names, carried, strict=True):
            after[place] = name
        return tuple(self._laid_out(instruction, after, array_leaves(instruction.shape)))

    def _laid_out(self, instruction: HloInstruction, names: Sequence[str], shapes: Sequence[Shape]) -> tuple[str, ...]:
        """The buffers, or copies of them in the layouts of `shapes` where these differ."""
        found: list[str] = []
        for name, shape in zip(names, shapes, strict=True):
            if self.buffers[name].minor_to_major == shape.minor_to_major:
                found.append(name)
                continue
            copy = self._buffer(f"{name}.for.{instruction.name}.{len(self.buffers)}", shape)
            self.steps.append(Step("copy", instruction, (name,), (copy,), reason=_LAYOUTS))
            found.append(copy)
        return tuple(found)


_LAYOUTS = "caller and callee differ in layout"


def _giving(inner: Plan, instruction: HloInstruction, shapes: Sequence[Shape]) -> Plan:
    """`inner` with its results in the layouts of `shapes`."""
    given = [inner.buffers[name] for name in inner.results]
    if all(a.minor_to_major == b.minor_to_major for a, b in zip(given, shapes, strict=True)):
        return inner
    buffers, storage = dict(inner.buffers), dict(inner.storage)
    steps, results = list(inner.steps), list(inner.results)
    for i, (have, shape) in enumerate(zip(given, shapes, strict=True)):
        if have.minor_to_major != shape.minor_to_major:
            name = f"{inner.results[i]}.result.{i}"
            buffers[name], storage[name] = shape, name
            steps.append(Step("copy", instruction, (inner.results[i],), (name,), reason=_LAYOUTS))
            results[i] = name
    kept = {storage[name] for name in (*inner.constants, *results)}
    return replace(
        *(inner,),
        buffers=buffers,
        storage=storage,
        steps=_with_frees(steps, storage, kept),
        results=tuple(results),
    )


def _taking(inner: Plan, instruction: HloInstruction, shapes: Sequence[Shape]) -> Plan:
    """`inner` with parameters in the layouts of `shapes`."""
    own = [inner.buffers[name] for name in inner.parameters]
    if all(a.minor_to_major == b.minor_to_major for a, b in zip(own, shapes, strict=True)):
        return inner
    buffers, storage = dict(inner.buffers), dict(inner.storage)
    steps: list[Step] = []
    parameters = list(inner.parameters)
    for i, (want, shape) in enumerate(zip(own, shapes, strict=True)):
        if want.minor_to_major != shape.minor_to_major:
            name = f"{inner.parameters[i]}.given.{i}"
            buffers[name], storage[name] = shape, name
            steps.append(Step("copy", instruction, (name,), (inner.parameters[i],), reason=_LAYOUTS))
            parameters[i] = name
    kept = {storage[name] for name in (*inner.constants, *inner.results)}
    steps += inner.steps
    return replace(
        *(inner,),
        buffers=buffers,
        storage=storage,
        steps=_with_frees(steps, storage, kept),
        parameters=tuple(parameters),
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


def _with_frees(steps: Sequence[Step], storage: Mapping[str, str], kept: set[str]) -> tuple[Step, ...]:
    """Each storage is given back after the last step that touches it."""
    gone = set(kept)
    found: list[Step] = []
    for step in reversed(steps):
        used = dict.fromkeys(storage[name] for name in (*step.inputs, *step.outputs))
        frees = tuple(name for name in used if name not in gone)
        gone.update(frees)
        found.append(replace(step, frees=frees))
    return tuple(reversed(found))


def _peak(whole: Plan) -> int:
    """Plans inside plans add their own peak to what is live around them."""
    peaks: dict[int, int] = {}
    stack: list[tuple[Plan, bool]] = [(whole, False)]
    while stack:
        top, done = stack.pop()
        if id(top) in peaks:
            continue
        inner = [each for step in top.steps for each in step.plans]
        if not done:
            stack.append((top, True))
            stack.extend((each, False) for each in inner)
            continue
        peaks[id(top)] = _own_peak(top, peaks)
    return peaks[id(whole)]


def _own_peak(top: Plan, peaks: Mapping[int, int]) -> int:
    apart = {top.storage[name] for name in (*top.parameters, *top.constants)}
    live = peak = 0
    for step in top.steps:
        made = [top.storage[name] for name in step.outputs if top.storage[name] not in apart]
        if step.in_place and top.storage[step.inputs[0]] in step.frees and top.storage[step.inputs[0]] not in apart:
            live -= top.buffers[top.storage[step.inputs[0]]].byte_size  # the output takes its memory
        inside = max((peaks[id(each)] for each in step.plans), default=0)
        if step.plans:
            # The outputs are what the plans inside made; a round of a loop has the last round's beside it, unless
            # what the loop began with made room for them.
            began = [step.inputs[place] for place in step.carried]
            inside += sum(top.buffers[name].byte_size for name in began if top.storage[name] not in step.frees)
            peak = max(peak, live + inside)
            live += sum(top.buffers[name].byte_size for name in made)
        else:
            live += sum(top.buffers[name].byte_size for name in made)
        peak = max(peak, live)
        for name in step.frees:
            reused = step.in_place and name == top.storage[step.inputs[0]]
            if name not in apart and not reused:
                live -= top.buffers[name].byte_size
    return peak
