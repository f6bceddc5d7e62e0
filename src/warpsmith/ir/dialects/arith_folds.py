"""Folds of arith ops beyond "all operands are constant" (that one is `ir/core/folding.py`, by numpy).

Each gives one entry a result or None.  Float folds keep every bit of the value in strict mode: `x + -0.0`, `x * 1.0`
and `x / 1.0` are x for every x; `x * 0.0` and `x + 0.0` are not folded (NaN, inf, -0.0).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.attributes import Attribute
from warpsmith.ir.core.ssa import Fold, Operation, Value
from warpsmith.ir.core.types import I1, INDEX, Type, bit_width, element_type

Folder = Callable[[Operation, Sequence[Attribute | None]], Sequence[Fold] | None]
Constants = Sequence[Attribute | None]


def _integer(attribute: Attribute | None) -> int | None:
    """The value of an integer constant or splat."""
    if isinstance(attribute, at.DenseAttr):
        attribute = attribute.splat
    return attribute.value if isinstance(attribute, at.IntegerAttr) else None


def _float(attribute: Attribute | None) -> str | None:
    """A key of a float constant or splat: repr of its value, which tells -0.0 from 0.0."""
    if isinstance(attribute, at.DenseAttr):
        attribute = attribute.splat
    return repr(attribute.value) if isinstance(attribute, at.FloatAttr) else None


def _fill(value: int, type: Type) -> Attribute:
    return at.splat_or_scalar(at.integer_attr(value, element_type(type)), type)


def same_operands(op: Operation, _: Constants) -> Sequence[Fold] | None:
    """x op x = x: minimum, maximum, and, or."""
    return [op.operands[0]] if op.operands[0] is op.operands[1] else None


# ------------------------------------------------------------------------------------------------------------- floats
def add_float(op: Operation, constants: Constants) -> Sequence[Fold] | None:
    """x + -0.0 = x (0.0 would make 0.0 of -0.0)."""
    if _float(constants[1]) == "-0.0":
        return [op.operands[0]]
    return [op.operands[1]] if _float(constants[0]) == "-0.0" else None


def sub_float(op: Operation, constants: Constants) -> Sequence[Fold] | None:
    """x - 0.0 = x."""
    return [op.operands[0]] if _float(constants[1]) == "0.0" else None


def mul_float(op: Operation, constants: Constants) -> Sequence[Fold] | None:
    """x * 1.0 = x."""
    if _float(constants[1]) == "1.0":
        return [op.operands[0]]
    return [op.operands[1]] if _float(constants[0]) == "1.0" else None


def div_float(op: Operation, constants: Constants) -> Sequence[Fold] | None:
    """x / 1.0 = x."""
    return [op.operands[0]] if _float(constants[1]) == "1.0" else None


def double_negation(op: Operation, _: Constants) -> Sequence[Fold] | None:
    """--x = x, for an op that undoes itself."""
    source = op.operands[0].defining_op
    return [source.operands[0]] if source is not None and source.row is op.row else None


# ----------------------------------------------------------------------------------------------------------- integers
def add_int(op: Operation, constants: Constants) -> Sequence[Fold] | None:
    """x + 0 = x."""
    if _integer(constants[1]) == 0:
        return [op.operands[0]]
    return [op.operands[1]] if _integer(constants[0]) == 0 else None


def sub_int(op: Operation, constants: Constants) -> Sequence[Fold] | None:
    """x - x = 0; x - 0 = x."""
    if op.operands[0] is op.operands[1]:
        return [_fill(0, op.results[0].type)]
    return [op.operands[0]] if _integer(constants[1]) == 0 else None


def mul_int(op: Operation, constants: Constants) -> Sequence[Fold] | None:
    """x * 0 = 0; x * 1 = x."""
    for constant, other in ((constants[1], op.operands[0]), (constants[0], op.operands[1])):
        value = _integer(constant)
        if value == 0:
            return [_fill(0, op.results[0].type)]
        if value == 1:
            return [other]
    return None


def div_int(op: Operation, constants: Constants) -> Sequence[Fold] | None:
    """x / 1 = x (not of i1, where 1 is -1)."""
    return [op.operands[0]] if _integer(constants[1]) == 1 and element_type(op.operands[0].type) is not I1 else None


def rem_int(op: Operation, constants: Constants) -> Sequence[Fold] | None:
    """x % 1 = 0 (not of i1, where 1 is -1)."""
    return (
        [_fill(0, op.results[0].type)]
        if _integer(constants[1]) == 1 and element_type(op.operands[0].type) is not I1
        else None
    )


def _ones(type: Type) -> int:
    return 1 if element_type(type) is I1 else -1


def and_int(op: Operation, constants: Constants) -> Sequence[Fold] | None:
    """x & 0 = 0; x & -1 = x."""
    for constant, other in ((constants[1], op.operands[0]), (constants[0], op.operands[1])):
        value = _integer(constant)
        if value == 0:
            return [_fill(0, op.results[0].type)]
        if value == _ones(other.type):
            return [other]
    return same_operands(op, constants)


def or_int(op: Operation, constants: Constants) -> Sequence[Fold] | None:
    """x | 0 = x; x | -1 = -1."""
    for constant, other in ((constants[1], op.operands[0]), (constants[0], op.operands[1])):
        value = _integer(constant)
        if value == 0:
            return [other]
        if value == _ones(other.type):
            return [_fill(-1, op.results[0].type)]
    return same_operands(op, constants)


def xor_int(op: Operation, constants: Constants) -> Sequence[Fold] | None:
    """x ^ x = 0; x ^ 0 = x."""
    if op.operands[0] is op.operands[1]:
        return [_fill(0, op.results[0].type)]
    if _integer(constants[1]) == 0:
        return [op.operands[0]]
    return [op.operands[1]] if _integer(constants[0]) == 0 else None


def shift_int(op: Operation, constants: Constants) -> Sequence[Fold] | None:
    """A shift by 0 is none."""
    return [op.operands[0]] if _integer(constants[1]) == 0 else None


_REFLEXIVE = {0: True, 1: False, 2: False, 3: True, 4: False, 5: True, 6: False, 7: True, 8: False, 9: True}


def compare_int(op: Operation, _: Constants) -> Sequence[Fold] | None:
    """x against itself: what the predicate says of equal numbers."""
    if op.operands[0] is not op.operands[1]:
        return None
    return [_fill(int(_REFLEXIVE[op.int_attr("predicate")]), op.results[0].type)]


def select(op: Operation, constants: Constants) -> Sequence[Fold] | None:
    """Of two equal values, or by a constant, it's known which."""
    if op.operands[1] is op.operands[2]:
        return [op.operands[1]]
    condition = _integer(constants[0])
    return None if condition is None else [op.operands[1] if condition else op.operands[2]]


# -------------------------------------------------------------------------------------------------------------- casts
_EXTENDS = {"arith.truncf": ("arith.extf",), "arith.trunci": ("arith.extsi", "arith.extui")}


def _source(op: Operation, names: tuple[str, ...]) -> Value | None:
    producer = op.operands[0].defining_op
    return producer.operands[0] if producer is not None and producer.name in names else None


def truncate_of_extend(op: Operation, _: Constants) -> Sequence[Fold] | None:
    """Widened and narrowed again to the type that it had."""
    source = _source(op, _EXTENDS[op.name])
    return [source] if source is not None and source.type is op.results[0].type else None


def cast_there_and_back(op: Operation, _: Constants) -> Sequence[Fold] | None:
    """A cast to its own type, or one that undoes the same cast through a type at least as wide."""
    if op.operands[0].type is op.results[0].type:
        return [op.operands[0]]
    source = _source(op, (op.name,))
    if source is None or source.type is not op.results[0].type:
        return None
    # `index` may be 32 bits wide, and counts as 64 in bit_width: only then is a trip through it lossless for i32.
    middle, outer = element_type(op.operands[0].type), element_type(source.type)
    room = 32 if middle is INDEX else bit_width(middle)
    return [source] if room >= bit_width(outer) else None
