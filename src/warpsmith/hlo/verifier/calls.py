"""Rules of tuples and of ops that call computations: signatures agree.

In: an instruction.  Out: the shape of its result.  `CALLS` is the table; a custom call is opaque, only what it says
about layouts and shared memory is checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from warpsmith.hlo.attributes import Alias
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.shapes import AnyShape, Shape, TupleShape
from warpsmith.hlo.verifier.common import (
    PRED_SCALAR,
    TOKEN,
    Rule,
    agree,
    array_operand,
    brief,
    compatible,
    dimensions,
    fail,
    of_dims,
    same_layout,
)

__all__ = ["CALLS", "branches_of", "check_token", "part_of"]


def _tuple(instruction: HloInstruction) -> AnyShape:
    return TupleShape(tuple([operand.shape for operand in instruction.operands]))


def _get_tuple_element(instruction: HloInstruction) -> AnyShape:
    operand, index = instruction.operands[0], instruction.attr("index", int)
    shape = operand.shape
    if not isinstance(shape, TupleShape):
        raise fail(instruction, "operand.tuple", f"'{operand.name}' is {brief(shape)}, not a tuple")
    if not 0 <= index < len(shape.elements):
        raise fail(instruction, "tuple.index", f"'{operand.name}' has {len(shape.elements)} elements, index is {index}")
    return shape.elements[index]


def _check_call(instruction: HloInstruction, called: HloComputation, given: Sequence[HloInstruction]) -> None:
    """`called` takes what is given."""
    if len(called.parameters) != len(given):
        raise fail(
            instruction,
            "function.parameters",
            f"'{called.name}' has {len(called.parameters)} parameters, {len(given)} operands are given",
        )
    for index, (parameter, operand) in enumerate(zip(called.parameters, given, strict=True)):
        if parameter.shape is operand.shape:
            continue
        if not compatible(parameter.shape, operand.shape):
            raise fail(
                instruction,
                "function.parameters",
                f"parameter {index} of '{called.name}' is {brief(parameter.shape)}, "
                f"operand '{operand.name}' is {brief(operand.shape)}",
            )


def _check_returns(instruction: HloInstruction, called: HloComputation, expected: AnyShape) -> None:
    returned = called.root.shape
    if not compatible(returned, expected):
        raise fail(
            instruction,
            "function.result",
            f"'{called.name}' returns {brief(returned)}, {instruction.opcode} needs {brief(expected)}",
        )


def _call(instruction: HloInstruction) -> AnyShape:
    name = "calls" if instruction.opcode == "fusion" else "to_apply"
    called = instruction.attr(name, HloComputation)
    _check_call(instruction, called, instruction.operands)
    _check_returns(instruction, called, instruction.shape)
    _check_aliases(instruction, [operand.shape for operand in instruction.operands])
    return instruction.shape


def _while(instruction: HloInstruction) -> AnyShape:
    condition, body = instruction.attr("condition", HloComputation), instruction.attr("body", HloComputation)
    for called in (condition, body):
        _check_call(instruction, called, instruction.operands)
    carried = instruction.operands[0].shape
    _check_returns(instruction, body, carried)
    if not compatible(condition.root.shape, PRED_SCALAR):
        raise fail(
            instruction,
            "while.condition",
            f"the condition '{condition.name}' returns {brief(condition.root.shape)}, not pred[]",
        )
    return carried


def _conditional(instruction: HloInstruction) -> AnyShape:
    chosen = instruction.operands[0].shape
    if not isinstance(chosen, Shape) or chosen.dims or chosen.dtype.name not in ("pred", "s32"):
        raise fail(instruction, "conditional.index", f"conditional chooses by pred[] or s32[], not {brief(chosen)}")
    branches = branches_of(instruction)
    expected = len(instruction.operands) - 1
    if len(branches) != expected:
        raise fail(
            instruction,
            "conditional.branches",
            f"conditional has {len(branches)} branches and {expected} operands for them",
            help="give true_computation and false_computation for pred, branch_computations for s32",
        )
    if chosen.dtype.name == "pred" and expected != 2:
        raise fail(instruction, "conditional.index", f"pred[] chooses between two branches, not among {expected}")
    for branch, operand in zip(branches, instruction.operands[1:], strict=True):
        _check_call(instruction, branch, (operand,))
        _check_returns(instruction, branch, instruction.shape)
    return instruction.shape


def _scan(instruction: HloInstruction) -> AnyShape:
    """Inputs, then carries; the function takes a slice of each input and the carries, and gives slices and carries."""
    carries, count = instruction.attr("num_carries", int), len(instruction.operands)
    if not 0 <= carries < count:
        raise fail(instruction, "scan.carries", f"num_carries is {carries} of {count} operands")
    inputs = [array_operand(instruction, index) for index in range(count - carries)]
    dims = dimensions(instruction, min(each.rank for each in inputs))
    if len(dims) != 1:
        raise fail(instruction, "scan.dimension", f"scan goes along one dimension, not {len(dims)}")
    (dim,) = dims
    length = inputs[0].dims[dim]
    if any(not agree((each.dims[dim],), (length,)) for each in inputs):
        raise fail(instruction, "operand.sizes", f"the inputs have different sizes in dimension {dim}")
    called = instruction.attr("to_apply", HloComputation)
    slices = [of_dims(each.dtype, (*each.dims[:dim], *each.dims[dim + 1 :])) for each in inputs]
    states = [operand.shape for operand in instruction.operands[count - carries :]]
    given = TupleShape((*slices, *states))
    taken = TupleShape(tuple(parameter.shape for parameter in called.parameters))
    if not compatible(taken, given):
        raise fail(
            instruction, "function.parameters", f"'{called.name}' takes {brief(taken)}, scan gives it {brief(given)}"
        )
    root = called.root.shape
    parts = root.elements if isinstance(root, TupleShape) else (root,)
    made = parts[: max(0, len(parts) - carries)]
    rows = [
        of_dims(each.dtype, (*each.dims[:dim], length, *each.dims[dim:]))
        for each in made
        if isinstance(each, Shape) and each.rank >= dim
    ]
    if len(rows) != len(made) or not compatible(TupleShape(parts[len(made) :]), TupleShape(tuple(states))):
        raise fail(
            instruction,
            "function.result",
            f"'{called.name}' returns {brief(root)}; scan needs arrays of rank {dim} or more, then the carries "
            f"{brief(TupleShape(tuple(states)))}",
        )
    results = (*rows, *states)
    return TupleShape(results) if isinstance(root, TupleShape) else results[0]


def branches_of(instruction: HloInstruction) -> tuple[HloComputation, ...]:
    """The branches in the order of their operands, whatever the order of the attributes."""
    if "branch_computations" in instruction.attributes:
        return cast("tuple[HloComputation, ...]", instruction.attr("branch_computations", tuple))
    pair = [instruction.attributes.get(name) for name in ("true_computation", "false_computation")]
    return tuple(each for each in pair if isinstance(each, HloComputation))


def part_of(shape: AnyShape, index: Sequence[int]) -> AnyShape | None:
    """The part of a tuple at `index` (`{}` is the whole), or None where there is none."""
    part = shape
    for each in index:
        if not isinstance(part, TupleShape) or not 0 <= each < len(part.elements):
            return None
        part = part.elements[each]
    return part


def _check_aliases(instruction: HloInstruction, operands: Sequence[AnyShape]) -> None:
    """`output_to_operand_aliasing` pairs parts of operands and result that have one shape."""
    aliases = cast("tuple[object, ...]", instruction.attributes.get("output_to_operand_aliasing", ()))
    for alias in aliases:
        if not isinstance(alias, Alias):
            continue
        made = part_of(instruction.shape, alias.output)
        given = None
        if 0 <= alias.number < len(operands):
            given = part_of(operands[alias.number], alias.index)
        if made is None or given is None:
            raise fail(instruction, "alias.index", f"no such alias: {alias}")
        if not compatible(made, given) or not same_layout(made, given):
            raise fail(instruction, "alias.shape", f"alias {alias} joins {made} and {given}")


def _custom_call(instruction: HloInstruction) -> AnyShape:
    constraints = instruction.attributes.get("operand_layout_constraints")
    shapes = tuple([operand.shape for operand in instruction.operands])
    if constraints is not None:
        shapes = cast("tuple[AnyShape, ...]", constraints)  # the layouts that operands will have
        if len(shapes) != len(instruction.operands):
            raise fail(
                instruction,
                "custom-call.layouts",
                f"operand_layout_constraints has {len(shapes)} shapes for {len(instruction.operands)} operands",
            )
        for shape, operand in zip(shapes, instruction.operands, strict=True):
            if not compatible(shape, operand.shape):
                raise fail(
                    instruction,
                    "custom-call.layouts",
                    f"operand_layout_constraints gives '{operand.name}' {brief(shape)}, it is {brief(operand.shape)}",
                )
    _check_aliases(instruction, shapes)
    return instruction.shape


def check_token(instruction: HloInstruction, index: int) -> None:
    """Operand `index` is a token."""
    operand = instruction.operands[index]
    if not compatible(operand.shape, TOKEN):
        raise fail(
            instruction,
            "operand.token",
            f"operand '{operand.name}' of {instruction.opcode} is {brief(operand.shape)}, not a token",
        )


def _after_all(instruction: HloInstruction) -> AnyShape:
    for index in range(len(instruction.operands)):
        check_token(instruction, index)
    return TOKEN


def _add_dependency(instruction: HloInstruction) -> AnyShape:
    check_token(instruction, 1)
    return instruction.operands[0].shape


def _same(instruction: HloInstruction) -> AnyShape:
    return instruction.operands[0].shape


CALLS: dict[str, Rule] = {
    "tuple": _tuple,
    "get-tuple-element": _get_tuple_element,
    "fusion": _call,
    "call": _call,
    "while": _while,
    "conditional": _conditional,
    "scan": _scan,
    "custom-call": _custom_call,
    "opt-barrier": _same,
    "domain": _same,
    "after-all": _after_all,
    "add-dependency": _add_dependency,
}
"""The rule of each op that this module knows."""
