"""Verifier rules of parameters, constants, tuples, and ops that call computations: signatures must agree.

In: an instruction.  Out: nothing, or InvalidHlo.  `CALL_RULES` is the table.
"""

from __future__ import annotations

from warpsmith.dtypes import Kind
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.rules import Rule, check, fail
from warpsmith.hlo.shapes import AnyShape, Shape, TupleShape, same_type

__all__ = ["CALL_RULES"]


def _parameter(instruction: HloInstruction) -> None:
    check(instruction.parameter_number is not None, instruction, "a parameter has no number")


def _constant(instruction: HloInstruction) -> None:
    literal = instruction.literal
    if literal is None:
        raise fail(instruction, "a constant has no value")
    check(
        same_type(literal.shape, instruction.shape),
        instruction,
        f"a constant of {instruction.shape} holds a value of {literal.shape}",
    )


def _tuple(instruction: HloInstruction) -> None:
    expected = TupleShape(tuple(operand.shape for operand in instruction.operands))
    check(same_type(expected, instruction.shape), instruction, f"tuple makes {expected} here, not {instruction.shape}")


def _get_tuple_element(instruction: HloInstruction) -> None:
    operand, index = instruction.operands[0], instruction.attr("index", int)
    shape = operand.shape
    if not isinstance(shape, TupleShape):
        raise fail(instruction, f"'{operand.name}' is {shape}, not a tuple")
    check(
        0 <= index < len(shape.elements),
        instruction,
        f"'{operand.name}' has {len(shape.elements)} elements, index is {index}",
    )
    check(
        same_type(shape.elements[index], instruction.shape),
        instruction,
        f"element {index} of '{operand.name}' is {shape.elements[index]}, not {instruction.shape}",
    )


def _check_call(instruction: HloInstruction, called: HloComputation, given: tuple[HloInstruction, ...]) -> None:
    """`called` takes what is given."""
    check(
        len(called.parameters) == len(given),
        instruction,
        f"'{called.name}' has {len(called.parameters)} parameters, {len(given)} operands are given",
    )
    for index, (parameter, operand) in enumerate(zip(called.parameters, given, strict=True)):
        check(
            same_type(parameter.shape, operand.shape),
            instruction,
            f"parameter {index} of '{called.name}' is {parameter.shape}, operand '{operand.name}' is {operand.shape}",
        )


def _check_returns(instruction: HloInstruction, called: HloComputation, expected: AnyShape) -> None:
    check(
        same_type(called.root.shape, expected),
        instruction,
        f"'{called.name}' returns {called.root.shape}, {instruction.opcode} needs {expected}",
    )


def _call(instruction: HloInstruction) -> None:
    for called in instruction.called_computations[:1]:
        _check_call(instruction, called, instruction.operands)
        _check_returns(instruction, called, instruction.shape)


def _while(instruction: HloInstruction) -> None:
    condition, body = instruction.attr("condition", HloComputation), instruction.attr("body", HloComputation)
    _check_call(instruction, condition, instruction.operands)
    _check_call(instruction, body, instruction.operands)
    _check_returns(instruction, body, instruction.operands[0].shape)
    _check_returns(instruction, body, instruction.shape)
    returned = condition.root.shape
    check(
        isinstance(returned, Shape) and returned.dtype.kind is Kind.PRED and not returned.dims,
        instruction,
        f"the condition '{condition.name}' returns {returned}, not pred[]",
    )


def _conditional(instruction: HloInstruction) -> None:
    chosen = instruction.operands[0].shape
    if not isinstance(chosen, Shape) or chosen.dims or chosen.dtype.name not in ("pred", "s32"):
        raise fail(instruction, f"conditional chooses by pred[] or s32[], not {chosen}")
    branches = instruction.called_computations
    expected = len(instruction.operands) - 1
    check(
        len(branches) == expected and (chosen.dtype.name == "s32" or expected == 2),
        instruction,
        f"conditional has {len(branches)} branches and {expected} operands for them",
        help="give true_computation and false_computation for pred, branch_computations for s32",
    )
    for branch, operand in zip(branches, instruction.operands[1:], strict=True):
        _check_call(instruction, branch, (operand,))
        _check_returns(instruction, branch, instruction.shape)


CALL_RULES: dict[str, Rule] = {
    "parameter": _parameter,
    "constant": _constant,
    "tuple": _tuple,
    "get-tuple-element": _get_tuple_element,
    "fusion": _call,
    "call": _call,
    "while": _while,
    "conditional": _conditional,
}
"""The rule of each op that this module knows."""
