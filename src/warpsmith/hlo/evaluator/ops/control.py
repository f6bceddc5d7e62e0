"""Ops that hold or run computations: tuples, call, fusion, map, scan, while, conditional.

In: values, computations by reference.  Out: values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import Kind
from warpsmith.errors import InvalidHlo
from warpsmith.hlo.evaluator.arithmetic.integers import load
from warpsmith.hlo.evaluator.values import Caller, Kernel, Rule, Value, arrays_of
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.shapes import TupleShape

__all__ = ["CONTROL", "branches_of", "chosen_branch"]


def _tuple(_: Caller, instruction: HloInstruction) -> Kernel:
    return tuple


def _get_tuple_element(_: Caller, instruction: HloInstruction) -> Kernel:
    index = instruction.attr("index", int)

    def kernel(values: Sequence[Value]) -> Value:
        (whole,) = values
        if not isinstance(whole, tuple) or not 0 <= index < len(whole):
            raise InvalidHlo(
                f"'{instruction.name}' takes element {index} of no such tuple",
                span=instruction.span,
            )
        return whole[index]

    return kernel


def _running(attribute: str) -> Rule:
    """A rule for an op that runs the computation that `attribute` names on its operands."""

    def rule(caller: Caller, instruction: HloInstruction) -> Kernel:
        computation = instruction.attr(attribute, HloComputation)
        return lambda values: caller.run(computation, values)

    return rule


def _map(caller: Caller, instruction: HloInstruction) -> Kernel:
    computation = instruction.attr("to_apply", HloComputation)
    return lambda values: caller.run_lanes(computation, arrays_of(values))[0]


def _while(caller: Caller, instruction: HloInstruction) -> Kernel:
    condition = instruction.attr("condition", HloComputation)
    body = instruction.attr("body", HloComputation)

    def kernel(values: Sequence[Value]) -> Value:
        state = values[0]
        while _truth(caller.run(condition, [state])):
            state = caller.run(body, [state])
        return state

    return kernel


def _scan(caller: Caller, instruction: HloInstruction) -> Kernel:
    """A step for each slice of the inputs, in order or backwards, that gives slices of results and the new carries."""
    computation = instruction.attr("to_apply", HloComputation)
    inputs = len(instruction.operands) - instruction.attr("num_carries", int)
    (dim,) = instruction.ints("dimensions")
    backwards = instruction.attributes.get("is_reverse") is True
    shape = instruction.shape
    count = len(shape.elements) if isinstance(shape, TupleShape) else 1
    made = list(shape.leaves())[: count - len(instruction.operands) + inputs]  # rows are arrays, and come first

    def kernel(values: Sequence[Value]) -> Value:
        columns, carries = arrays_of(values[:inputs]), tuple(values[inputs:])
        rows = [np.empty(each.dims, each.dtype.numpy) for each in made]
        places = range(columns[0].shape[dim])
        for place in reversed(places) if backwards else places:
            at = (*[slice(None)] * dim, place)
            found = caller.run(computation, [*(each[at] for each in columns), *carries])
            parts = found if isinstance(found, tuple) else (found,)
            for row, part in zip(rows, arrays_of(parts[: len(rows)]), strict=True):
                row[at] = part
            carries = parts[len(rows) :]
        results = (*rows, *carries)
        return results if isinstance(shape, TupleShape) else results[0]

    return kernel


def _truth(value: Value) -> bool:
    if isinstance(value, tuple):
        raise InvalidHlo("a condition gives a tuple where a pred is expected")
    return bool(value)


def _conditional(caller: Caller, instruction: HloInstruction) -> Kernel:
    branches = branches_of(instruction)

    def kernel(values: Sequence[Value]) -> Value:
        chosen = chosen_branch(instruction, arrays_of(values[:1])[0])
        return caller.run(branches[chosen], [values[1 + chosen]])

    return kernel


def branches_of(instruction: HloInstruction) -> tuple[HloComputation, ...]:
    """A conditional's branches in the order of their operands."""
    if "branch_computations" in instruction.attributes:
        return cast("tuple[HloComputation, ...]", instruction.attr("branch_computations", tuple))
    return tuple(instruction.attr(f"{which}_computation", HloComputation) for which in ("true", "false"))


def chosen_branch(instruction: HloInstruction, selector: Array) -> int:
    """The number of the branch that `selector` chooses; an index out of range takes the last one."""
    dtype, count = instruction.operands[0].array_shape.dtype, len(instruction.operands) - 1
    if dtype.kind is Kind.PRED:
        return 0 if bool(selector) else 1
    number = int(load(selector.reshape(1), dtype)[0])
    return number if 0 <= number < count else count - 1


CONTROL: dict[str, Rule] = {
    "call": _running("to_apply"),
    "conditional": _conditional,
    "fusion": _running("calls"),
    "get-tuple-element": _get_tuple_element,
    "map": _map,
    "scan": _scan,
    "tuple": _tuple,
    "while": _while,
}
