"""Checking that HLO means something: one rule an opcode, in a table.

In: a module.  Out: nothing, or InvalidHlo at the first instruction that breaks a rule, with what was expected.  Rules
compare sizes and element types; layouts don't matter.  An op that has an unbounded dimension is checked for its
operand types alone.  `shape_rules` holds the rules of ops that move or reduce elements; elementwise ones are here.
"""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.dtypes import BY_NAME, DType, Kind
from warpsmith.errors import InvalidHlo
from warpsmith.hlo.call_rules import CALL_RULES
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule
from warpsmith.hlo.opcodes import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY
from warpsmith.hlo.rules import Rule, array_operand, array_result, check, fail
from warpsmith.hlo.shape_rules import SHAPE_RULES
from warpsmith.hlo.shapes import UNBOUNDED, Shape
from warpsmith.hlo.traversal import callees_first

__all__ = ["RULES", "verify_computation", "verify_module"]

_REAL_PART = {"c64": "f32", "c128": "f64"}


def verify_module(module: HloModule) -> None:
    """Check every instruction; InvalidHlo for the first that breaks a rule."""
    known = set(module.computations)
    names: set[str] = set()
    for computation in module.computations:
        if computation.name in names:
            raise InvalidHlo(f"two computations are called '{computation.name}'", span=computation.span)
        names.add(computation.name)
    for computation in callees_first(module.computations):
        if computation not in known:
            raise InvalidHlo(f"'{computation.name}' is called but isn't in module '{module.name}'")
    for computation in module.computations:
        verify_computation(computation)


def verify_computation(computation: HloComputation) -> None:
    """Check every instruction of one computation."""
    names: set[str] = set()
    for instruction in computation.instructions:
        if instruction.name in names:
            raise fail(instruction, f"'{computation.name}' has two instructions called '{instruction.name}'")
        names.add(instruction.name)
        rule = RULES.get(instruction.opcode)
        if rule is not None:
            rule(instruction)


def _arrays(instruction: HloInstruction) -> list[Shape]:
    return [array_operand(instruction, index) for index in range(len(instruction.operands))]


def _same_dims(instruction: HloInstruction, shapes: list[Shape], result: Shape) -> None:
    for operand, shape in zip(instruction.operands, shapes, strict=True):
        if UNBOUNDED in shape.dims or UNBOUNDED in result.dims:
            continue
        check(
            shape.dims == result.dims,
            instruction,
            f"operand '{operand.name}' is {shape.text(layout=False)}, the result {result.text(layout=False)}; "
            f"{instruction.opcode} needs the same sizes",
            help="broadcast the smaller one first" if len(shape.dims) < len(result.dims) else None,
        )


Accepts = Callable[[DType], bool]


def _real(dtype: DType) -> bool:
    return not dtype.is_complex and dtype.kind is not Kind.PRED


_ACCEPTS: dict[str, tuple[Accepts, str]] = {
    "any": (lambda dtype: True, "any type"),
    "number": (lambda dtype: dtype.kind is not Kind.PRED, "numbers"),
    "real": (_real, "integers or floats"),
    "ordered": (lambda dtype: not dtype.is_complex, "anything but complex numbers"),
    "integer": (lambda dtype: dtype.is_integer, "integers"),
    "float": (lambda dtype: dtype.is_float, "floats"),
    "float or complex": (lambda dtype: dtype.is_float or dtype.is_complex, "floats or complex numbers"),
    "logical": (lambda dtype: dtype.is_integer or dtype.kind is Kind.PRED, "integers or pred"),
}

_OPERAND_TYPES: dict[str, str] = {
    **dict.fromkeys(("copy", "convert", "real", "imag", "compare", "add", "multiply"), "any"),
    **dict.fromkeys(("abs", "negate", "sign", "subtract", "divide", "power"), "number"),
    **dict.fromkeys(("maximum", "minimum"), "ordered"),
    "remainder": "real",
    **dict.fromkeys(("not", "and", "or", "xor"), "logical"),
    **dict.fromkeys(("count-leading-zeros", "popcnt", "mulhi"), "integer"),
    **dict.fromkeys(("shift-left", "shift-right-arithmetic", "shift-right-logical"), "integer"),
    **dict.fromkeys(("ceil", "floor", "round-nearest-afz", "round-nearest-even", "is-finite"), "float"),
    **dict.fromkeys(("reduce-precision", "erf", "complex"), "float"),
}


def _check_types(instruction: HloInstruction, shapes: list[Shape]) -> None:
    accepts, words = _ACCEPTS[_OPERAND_TYPES.get(instruction.opcode, "float or complex")]
    for operand, shape in zip(instruction.operands, shapes, strict=True):
        check(
            accepts(shape.dtype),
            instruction,
            f"{instruction.opcode} takes {words}, operand '{operand.name}' is {shape.dtype}",
        )
        check(
            shape.dtype is shapes[0].dtype,
            instruction,
            f"the operands of {instruction.opcode} have different types, {shapes[0].dtype} and {shape.dtype}",
            help="convert one of them",
        )


def _result_type(instruction: HloInstruction, operand: DType) -> DType | None:
    """The element type that an elementwise op makes of `operand`, or None where it is free."""
    opcode = instruction.opcode
    if opcode in ("convert", "stochastic-convert"):
        return None
    if opcode in ("compare", "is-finite"):
        return BY_NAME["pred"]
    if opcode in ("real", "imag", "abs") and operand.is_complex:
        return BY_NAME[_REAL_PART[operand.name]]
    if opcode == "complex":
        return BY_NAME["c128" if operand.name == "f64" else "c64"]
    return operand


def _elementwise(instruction: HloInstruction) -> None:
    shapes, result = _arrays(instruction), array_result(instruction)
    if instruction.opcode != "stochastic-convert":
        _check_types(instruction, shapes)
    _same_dims(instruction, shapes, result)
    if instruction.opcode == "complex":
        check(shapes[0].dtype.name in ("f32", "f64"), instruction, f"complex takes f32 or f64, not {shapes[0].dtype}")
    expected = _result_type(instruction, shapes[0].dtype)
    check(
        expected is None or result.dtype is expected,
        instruction,
        f"{instruction.opcode} of {shapes[0].dtype} makes {expected}, not {result.dtype}",
    )


def _select(instruction: HloInstruction) -> None:
    predicate, on_true, on_false = (operand.shape for operand in instruction.operands)
    check(
        isinstance(predicate, Shape) and predicate.dtype.kind is Kind.PRED,
        instruction,
        f"select's first operand is {predicate}, not pred",
    )
    for operand, shape in zip(instruction.operands[1:], (on_true, on_false), strict=True):
        check(
            shape.without_layout() == instruction.shape.without_layout(),
            instruction,
            f"select makes {instruction.shape} but its operand '{operand.name}' is {shape}",
        )
    if isinstance(predicate, Shape) and predicate.dims and isinstance(instruction.shape, Shape):
        check(
            predicate.dims == instruction.shape.dims,
            instruction,
            f"select's predicate is {predicate.text(layout=False)}, which doesn't fit {instruction.shape}",
        )


def _clamp(instruction: HloInstruction) -> None:
    low, value, high = _arrays(instruction)
    result = array_result(instruction)
    check(
        value.dtype is result.dtype and value.dims == result.dims,
        instruction,
        f"clamp makes {result.text(layout=False)} but its value is {value.text(layout=False)}",
    )
    for name, bound in (("lower", low), ("upper", high)):
        check(
            bound.dtype is value.dtype and bound.dims in ((), value.dims),
            instruction,
            f"clamp's {name} bound is {bound.text(layout=False)}, its value {value.text(layout=False)}",
            help="a bound is a scalar or has the value's sizes, and has its type",
        )


RULES: dict[str, Rule] = {
    **dict.fromkeys((*ELEMENTWISE_UNARY, *ELEMENTWISE_BINARY), _elementwise),
    "select": _select,
    "clamp": _clamp,
    **SHAPE_RULES,
    **CALL_RULES,
}
"""The rule of each opcode that has one."""
