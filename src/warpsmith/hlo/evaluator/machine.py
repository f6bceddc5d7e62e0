"""Runs plans: the loop shared by the reference interpreter and the error bounds.

In: a computation, values of its parameters.  Out: the root's value.  `Machine` is generic in what a value is; a
`Domain` says how to cut values into chunks and put results together, a subclass which kernel an instruction has.
Values are dropped after their last use.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from warpsmith.errors import InvalidHlo, StepLimit
from warpsmith.hlo.evaluator.plan import CHUNK, EvaluationPlan, Group, Step, chunks, make_plan
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.shapes import Shape

__all__ = ["STEP_LIMIT", "Domain", "Machine"]

STEP_LIMIT = 10_000_000
"""How many instructions an evaluation may take before it is given up as endless, unless the caller says otherwise."""

V = TypeVar("V")
Index = tuple[slice, ...]


class Domain(Protocol[V]):
    """What the machine does with values when it runs a group in chunks."""

    def cut(self, value: V, index: Index) -> V:
        """A piece of an array; a scalar whole."""
        ...

    def allocate(self, shape: Shape) -> V:
        """Room for a result."""
        ...

    def store(self, target: V, index: Index, piece: V) -> None:
        """Write one piece."""
        ...

    def repeats(self, value: V, rank: int) -> list[bool]:
        """For each of `rank` dimensions, whether the array repeats itself along it (all true for a scalar)."""
        ...

    def spread(self, value: V, dims: Sequence[int]) -> V:
        """A view of `dims` that repeats the value along its dimensions of size 1."""
        ...


class Machine(ABC, Generic[V]):
    """Evaluates computations of one module; keeps their plans and kernels."""

    def __init__(
        self,
        domain: Domain[V],
        trace: Callable[[HloInstruction, V], None] | None = None,
        step_limit: int = STEP_LIMIT,
    ) -> None:
        self._domain = domain
        self._trace = trace
        self._limit = self._left = step_limit
        self._plans: dict[HloComputation, EvaluationPlan] = {}
        self._kernels: dict[HloInstruction, Callable[[Sequence[V]], V]] = {}

    @abstractmethod
    def make_kernel(self, instruction: HloInstruction) -> Callable[[Sequence[V]], V]:
        """The function of operand values that gives the instruction's value."""

    @abstractmethod
    def in_chunks(self, instruction: HloInstruction) -> bool:
        """Whether an instruction of array shape works element by element."""

    def run(self, computation: HloComputation, arguments: Sequence[V]) -> V:
        """The root's value; InvalidHlo when the number of arguments is wrong, StepLimit after too many instructions."""
        plan = self._plan(computation)
        self._left -= len(plan.items)
        if self._left < 0:
            raise StepLimit(
                f"the evaluation took more than {self._limit} instructions, the last ones in '{computation.name}'",
                span=computation.span,
                help="a while loop may never end; if it does, allow more steps: step_limit=, or --step-limit",
            )
        if len(arguments) != len(plan.parameters):
            raise InvalidHlo(
                f"'{computation.name}' has {len(plan.parameters)} parameters and was given {len(arguments)} values"
            )
        values: list[V | None] = [None] * plan.slots
        for slot, argument in zip(plan.parameters, arguments, strict=True):
            if slot >= 0:
                values[slot] = argument
        for item in plan.items:
            if isinstance(item, Step):
                result = self._kernel(item.instruction)([_held(values, slot) for slot in item.sources])
                values[item.target] = result
                if self._trace is not None:
                    self._trace(item.instruction, result)
            else:
                self._run_group(item, values)
            for slot in item.frees:
                values[slot] = None
        return _held(values, plan.root)

    def _run_group(self, group: Group, values: list[V | None]) -> None:
        domain, rank = self._domain, len(group.dims)
        inputs = {slot: _held(values, slot) for slot in group.inputs}
        repeats = [domain.repeats(value, rank) for value in inputs.values()]
        same = [all(each[axis] for each in repeats) for axis in range(rank)]
        dims = tuple(1 if once else dim for once, dim in zip(same, group.dims, strict=True))
        if any(same):
            once = tuple(slice(0, 1) if repeated else slice(None) for repeated in same)
            inputs = {slot: domain.cut(value, once) for slot, value in inputs.items()}
        results = {
            step.target: domain.allocate(Shape(step.instruction.array_shape.dtype, dims)) for step in group.outputs
        }
        kernels = [self._kernel(step.instruction) for step in group.members]
        for index in chunks(dims):
            pieces: dict[int, V] = {slot: domain.cut(value, index) for slot, value in inputs.items()}
            for step, kernel in zip(group.members, kernels, strict=True):
                pieces[step.target] = kernel([pieces[slot] for slot in step.sources])
                for slot in step.frees:
                    del pieces[slot]
            for slot, result in results.items():
                domain.store(result, index, pieces[slot])
        for slot, result in results.items():
            values[slot] = domain.spread(result, group.dims) if any(same) else result

    def _joins_group(self, instruction: HloInstruction) -> bool:
        shape = instruction.shape
        if self._trace is not None or not isinstance(shape, Shape) or not instruction.operands:
            return False
        return math.prod(shape.dims) >= 2 * CHUNK and self.in_chunks(instruction)

    def _plan(self, computation: HloComputation) -> EvaluationPlan:
        plan = self._plans.get(computation)
        if plan is None:
            plan = self._plans[computation] = make_plan(computation, self._joins_group)
        return plan

    def _kernel(self, instruction: HloInstruction) -> Callable[[Sequence[V]], V]:
        kernel = self._kernels.get(instruction)
        if kernel is None:
            kernel = self._kernels[instruction] = self.make_kernel(instruction)
        return kernel


def _held(values: Sequence[V | None], slot: int) -> V:
    value = values[slot]
    if value is None:
        raise InvalidHlo("a value is read before it is made")
    return value
