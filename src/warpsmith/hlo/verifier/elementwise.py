"""Rules of elementwise ops: element types that an op is defined for, equal sizes, the type that it makes.

In: an instruction.  Out: the shape of its result.  `ELEMENTWISE` is the table; the semantics are those of XLA's
"Operation Semantics".
"""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.dtypes import BY_NAME, DType, Kind
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.opcodes import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY
from warpsmith.hlo.shapes import AnyShape, Shape
from warpsmith.hlo.verifier.common import Rule, agree, array_operand, array_result, brief, compatible, fail

__all__ = ["ELEMENTWISE"]

_PRED = BY_NAME["pred"]
_PART = {"c64": BY_NAME["f32"], "c128": BY_NAME["f64"]}
_WHOLE = {"f32": BY_NAME["c64"], "f64": BY_NAME["c128"]}
_INTEGERS = frozenset({Kind.SINT, Kind.UINT})

_ACCEPTS: dict[str, tuple[frozenset[Kind], str]] = {
    "any": (frozenset({Kind.PRED, *_INTEGERS, Kind.FLOAT, Kind.COMPLEX}), "any type"),
    "number": (frozenset({*_INTEGERS, Kind.FLOAT, Kind.COMPLEX}), "numbers"),
    "signed": (frozenset({Kind.SINT, Kind.FLOAT, Kind.COMPLEX}), "signed integers, floats or complex numbers"),
    "real": (frozenset({*_INTEGERS, Kind.FLOAT}), "integers or floats"),
    "integer": (_INTEGERS, "integers"),
    "float": (frozenset({Kind.FLOAT}), "floats"),
    "float or complex": (frozenset({Kind.FLOAT, Kind.COMPLEX}), "floats or complex numbers"),
    "logical": (frozenset({*_INTEGERS, Kind.PRED}), "integers or pred"),
}

_OPERANDS: dict[str, str] = {
    **dict.fromkeys(("convert", "compare", "add", "multiply", "maximum", "minimum"), "any"),
    **dict.fromkeys(("negate", "subtract", "divide", "power"), "number"),
    **dict.fromkeys(("abs", "sign"), "signed"),
    "remainder": "real",
    **dict.fromkeys(("not", "and", "or", "xor"), "logical"),
    **dict.fromkeys(("count-leading-zeros", "popcnt", "mulhi"), "integer"),
    **dict.fromkeys(("shift-left", "shift-right-arithmetic", "shift-right-logical"), "integer"),
    **dict.fromkeys(("ceil", "floor", "round-nearest-afz", "round-nearest-even", "is-finite"), "float"),
    **dict.fromkeys(("reduce-precision", "erf", "complex"), "float"),
}

_MAKES: dict[str, Callable[[DType], DType]] = {
    "compare": lambda dtype: _PRED,
    "is-finite": lambda dtype: _PRED,
    **dict.fromkeys(("abs", "real", "imag"), lambda dtype: _PART.get(dtype.name, dtype)),
    "complex": lambda dtype: _WHOLE[dtype.name],
}


def _check_sizes(instruction: HloInstruction, shape: Shape, first: Shape) -> None:
    if not agree(shape.dims, first.dims):
        raise fail(
            instruction,
            "operand.sizes",
            f"the operands of {instruction.opcode} are {brief(first)} and {brief(shape)}; it needs the same sizes",
        )


def _operands(instruction: HloInstruction, kind: str) -> Shape:
    """The first operand's shape; all have its type, which `kind` accepts, and its sizes."""
    accepts, words = _ACCEPTS[kind]
    first = array_operand(instruction, 0)
    if first.dtype.kind not in accepts:
        raise fail(
            instruction,
            "operand.type",
            f"{instruction.opcode} takes {words}, operand '{instruction.operands[0].name}' is {first.dtype}",
        )
    for index in range(1, len(instruction.operands)):
        shape = array_operand(instruction, index)
        if shape is first:
            continue
        if shape.dtype is not first.dtype:
            raise fail(
                instruction,
                "operand.same-type",
                f"the operands of {instruction.opcode} have different types, {first.dtype} and {shape.dtype}",
            )
        _check_sizes(instruction, shape, first)
    return first


def _rule_of(opcode: str) -> Rule:
    """The rule of an op that needs no check of its own."""
    kind, makes = _OPERANDS.get(opcode, "float or complex"), _MAKES.get(opcode)

    def rule(instruction: HloInstruction) -> AnyShape:
        first = _operands(instruction, kind)
        return first if makes is None else first.with_dtype(makes(first.dtype))

    return rule


def _copy(instruction: HloInstruction) -> AnyShape:
    return instruction.operands[0].shape


def _convert(instruction: HloInstruction) -> AnyShape:
    return _operands(instruction, "any").with_dtype(array_result(instruction).dtype)


def _compare(instruction: HloInstruction) -> AnyShape:
    first = _operands(instruction, "any")
    stated = instruction.attributes.get("type")
    if stated is not None:
        kind = first.dtype.kind
        fitting = ("UNSIGNED",)
        if kind in (Kind.FLOAT, Kind.COMPLEX):
            fitting = ("FLOAT", "TOTALORDER") if kind is Kind.FLOAT else ("FLOAT",)
        elif kind is Kind.SINT:
            fitting = ("SIGNED",)
        if stated not in fitting:
            raise fail(
                instruction,
                "compare.type",
                f"type={stated} doesn't fit operands of {first.dtype}",
                help=f"write type={' or type='.join(fitting)}, or leave it out",
            )
    return first.with_dtype(_PRED)


def _complex(instruction: HloInstruction) -> AnyShape:
    first = _operands(instruction, "float")
    if first.dtype.name not in _WHOLE:
        raise fail(instruction, "complex.parts", f"complex takes f32 or f64, not {first.dtype}")
    return first.with_dtype(_WHOLE[first.dtype.name])


def _stochastic_convert(instruction: HloInstruction) -> AnyShape:
    operand, random, result = array_operand(instruction, 0), array_operand(instruction, 1), array_result(instruction)
    if not operand.dtype.is_float:
        raise fail(instruction, "operand.type", f"stochastic-convert takes floats, not {operand.dtype}")
    if random.dtype.kind is not Kind.UINT or random.dtype.bits != operand.dtype.bits:
        raise fail(
            instruction, "stochastic-convert.bits", f"the random numbers are {random.dtype}, the floats {operand.dtype}"
        )
    _check_sizes(instruction, random, operand)
    return operand.with_dtype(result.dtype)


def _reduce_precision(instruction: HloInstruction) -> AnyShape:
    first = _operands(instruction, "float")
    exponent, mantissa = instruction.attr("exponent_bits", int), instruction.attr("mantissa_bits", int)
    if exponent < 1 or mantissa < 0:
        raise fail(
            instruction, "reduce-precision.bits", f"{exponent} exponent bits and {mantissa} mantissa bits are no format"
        )
    return first


def _select(instruction: HloInstruction) -> AnyShape:
    predicate, on_true, on_false = (array_operand(instruction, index) for index in range(3))
    if predicate.dtype is not _PRED:
        raise fail(instruction, "select.predicate", f"select's first operand is {brief(predicate)}, not pred")
    if not compatible(on_true, on_false):
        raise fail(
            instruction,
            "operand.same-type" if on_true.dtype is not on_false.dtype else "operand.sizes",
            f"select chooses between {brief(on_true)} and {brief(on_false)}",
        )
    if predicate.dims and not agree(predicate.dims, on_true.dims):
        raise fail(
            instruction, "select.predicate", f"select's predicate is {brief(predicate)}, its values {brief(on_true)}"
        )
    return on_true


def _clamp(instruction: HloInstruction) -> AnyShape:
    low, value, high = (array_operand(instruction, index) for index in range(3))
    for name, bound in (("lower", low), ("upper", high)):
        if bound.dtype is not value.dtype or not (bound.dims == () or agree(bound.dims, value.dims)):
            raise fail(instruction, "clamp.bounds", f"clamp's {name} bound is {brief(bound)}, its value {brief(value)}")
    return value


ELEMENTWISE: dict[str, Rule] = {
    **{opcode: _rule_of(opcode) for opcode in (*ELEMENTWISE_UNARY, *ELEMENTWISE_BINARY)},
    "copy": _copy,
    "convert": _convert,
    "compare": _compare,
    "complex": _complex,
    "stochastic-convert": _stochastic_convert,
    "reduce-precision": _reduce_precision,
    "select": _select,
    "clamp": _clamp,
}
"""The rule of each elementwise op but map."""
