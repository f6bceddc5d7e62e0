"""The arith dialect: integer and float arithmetic on scalars, index, and vectors alike.  Semantics are MLIR's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.diagnostics import int_attr, invalid, need, need_types
from warpsmith.ir.core.ssa import Operation, OpRow, Trait, Value
from warpsmith.ir.core.types import I1, INDEX, Type, with_element
from warpsmith.ir.dialects import arith_folds as folds
from warpsmith.ir.dialects import forms
from warpsmith.ir.dialects import integer_semantics as ints
from warpsmith.ir.dialects import memory_rules as rules
from warpsmith.ir.dialects import semantics as sem
from warpsmith.ir.text.format import described

CMPI = {"eq": 0, "ne": 1, "slt": 2, "sle": 3, "sgt": 4, "sge": 5, "ult": 6, "ule": 7, "ugt": 8, "uge": 9}
CMPF = {
    name: i
    for i, name in enumerate(
        "false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split(),
    )
}

# --------------------------------------------------------------------------------------------------------------- rules
_Kind = Callable[[Type], bool]
_Rule = Callable[[Operation], None]


def _integers(op: Operation) -> None:
    need(op, op.operands[0], ty.is_integer(op.operands[0].type), "an integer or index")


def _floats(op: Operation) -> None:
    need(op, op.operands[0], ty.is_float(op.operands[0].type), "a float")


def _constant(op: Operation) -> None:
    value = op.attributes["value"]
    if not isinstance(value, (at.IntegerAttr, at.FloatAttr, at.DenseAttr)):
        raise invalid(op, "a value that is no constant", "a constant is an integer, a float, or dense<...>")
    if value.type is not op.results[0].type:
        raise invalid(op, f"a value of type {value.type} for a result of type {op.results[0].type}")


def _compare(of: Callable[[Type], bool], count: int, what: str) -> _Rule:
    def rule(op: Operation) -> None:
        for value in op.operands:
            need(op, value, of(value.type), what)
        if not 0 <= int_attr(op, "predicate") < count:
            raise invalid(op, f"predicate {int_attr(op, 'predicate')}", f"predicates are 0 to {count - 1}")

    return rule


def _select(op: Operation) -> None:
    condition, yes, no = op.operands
    need_types(op, [yes.type, no.type], [op.results[0].type] * 2, "the two values")
    if condition.type is not ty.I1 and condition.type is not ty.with_element(yes.type, ty.I1):
        raise invalid(
            op,
            f"a condition of type {condition.type} for values of type {yes.type}",
            "it is i1, or i1 in the values' shape",
        )


def _converts(source: _Kind, target: _Kind, change: int) -> _Rule:
    """A cast between two kinds; `change` 1 widens, -1 narrows, 0 leaves the width open."""

    def rule(op: Operation) -> None:
        a, b = (ty.element_type(v.type) for v in (op.operands[0], op.results[0]))
        if not source(a) or not target(b):
            raise invalid(op, f"a cast from {a} to {b}")
        if change and (ty.bit_width(b) - ty.bit_width(a)) * change <= 0:
            raise invalid(
                op, f"a cast from {a} to {b}", f"the result is {'wider' if change > 0 else 'narrower'} than the operand"
            )

    return rule


def _is_int(type: Type) -> bool:
    return isinstance(type, ty.IntegerType)


def _is_fp(type: Type) -> bool:
    return isinstance(type, ty.FloatType)


def _index_cast(op: Operation) -> None:
    a, b = (ty.element_type(v.type) for v in (op.operands[0], op.results[0]))
    if not (_is_int(a) and b is ty.INDEX) and not (a is ty.INDEX and _is_int(b)):
        raise invalid(op, f"a cast from {a} to {b}", "one side is index, the other an integer")


# ---------------------------------------------------------------------------------------------------------------- rows
_BINARY = Trait.ELEMENTWISE | Trait.SAME_TYPE
_COMMUTES = _BINARY | Trait.COMMUTATIVE


def _int(
    name: str, numpy: Callable[..., object], llvm: str | None, traits: int = _BINARY, fold: folds.Folder | None = None
) -> OpRow:
    flags = ("overflowFlags",) if name in ("addi", "subi", "muli", "shli") else ()
    return OpRow(
        f"arith.{name}",
        ("lhs", "rhs"),
        optional=(*flags, "xla.range"),
        traits=traits,
        verify=_integers,
        numpy=numpy,
        llvm=llvm,
        fold=fold,
        form=forms.SAME,
    )


def _float(
    name: str, numpy: Callable[..., object], llvm: str | None, traits: int = _BINARY, fold: folds.Folder | None = None
) -> OpRow:
    return OpRow(
        f"arith.{name}",
        ("lhs", "rhs"),
        optional=("fastmath",),
        traits=traits,
        verify=_floats,
        numpy=numpy,
        llvm=llvm,
        fold=fold,
        form=forms.SAME,
    )


def _cast(
    name: str, rule: _Rule, numpy: Callable[..., object], llvm: str | None, fold: folds.Folder | None = None
) -> OpRow:
    return OpRow(
        f"arith.{name}",
        ("in",),
        optional=("xla.range",),
        traits=Trait.ELEMENTWISE,
        verify=rule,
        numpy=numpy,
        llvm=llvm,
        fold=fold,
        form=forms.CAST,
    )


ROWS = [
    OpRow(
        "arith.constant",
        attributes=("value",),
        traits=Trait.CONSTANT,
        llvm="llvm.mlir.constant",
        verify=_constant,
        form=forms.CONSTANT,
        fold=lambda op, _: [op.attributes["value"]],
    ),
    # floats
    _float("addf", sem.floats(np.add), "llvm.fadd", _COMMUTES, folds.add_float),
    _float("subf", sem.floats(np.subtract), "llvm.fsub", fold=folds.sub_float),
    _float("mulf", sem.floats(np.multiply), "llvm.fmul", _COMMUTES, folds.mul_float),
    _float("divf", sem.floats(np.divide), "llvm.fdiv", fold=folds.div_float),
    _float("remf", sem.floats(sem.remainder), "llvm.frem"),
    _float("maximumf", sem.floats(sem.maximum), "llvm.intr.maximum", _COMMUTES, folds.same_operands),
    _float("minimumf", sem.floats(sem.minimum), "llvm.intr.minimum", _COMMUTES, folds.same_operands),
    _float("maxnumf", sem.floats(sem.number_or_other(sem.maximum)), "llvm.intr.maxnum", _COMMUTES, folds.same_operands),
    _float("minnumf", sem.floats(sem.number_or_other(sem.minimum)), "llvm.intr.minnum", _COMMUTES, folds.same_operands),
    OpRow(
        "arith.negf",
        ("operand",),
        optional=("fastmath",),
        traits=_BINARY,
        numpy=sem.floats(np.negative),
        llvm="llvm.fneg",
        fold=folds.double_negation,
        verify=_floats,
        form=forms.SAME,
    ),
    # integers
    _int("addi", sem.wrapping(np.add), "llvm.add", _COMMUTES, folds.add_int),
    _int("subi", sem.wrapping(np.subtract), "llvm.sub", fold=folds.sub_int),
    _int("muli", sem.wrapping(np.multiply), "llvm.mul", _COMMUTES, folds.mul_int),
    _int("divsi", sem.quiet(ints.div_signed), "llvm.sdiv", _BINARY | Trait.DIVISION, fold=folds.div_int),
    _int("divui", sem.unsigned(ints.div_unsigned), "llvm.udiv", _BINARY | Trait.DIVISION, fold=folds.div_int),
    _int("ceildivui", sem.unsigned(ints.ceil_div_unsigned), None, _BINARY | Trait.DIVISION, fold=folds.div_int),
    _int("floordivsi", sem.quiet(ints.floor_div_signed), None, _BINARY | Trait.DIVISION, fold=folds.div_int),
    _int("remsi", sem.quiet(ints.rem_signed), "llvm.srem", _BINARY | Trait.DIVISION, fold=folds.rem_int),
    _int("remui", sem.unsigned(ints.rem_unsigned), "llvm.urem", _BINARY | Trait.DIVISION, fold=folds.rem_int),
    _int("andi", sem.bitwise(np.bitwise_and), "llvm.and", _COMMUTES, folds.and_int),
    _int("ori", sem.bitwise(np.bitwise_or), "llvm.or", _COMMUTES, folds.or_int),
    _int("xori", sem.bitwise(np.bitwise_xor), "llvm.xor", _COMMUTES, folds.xor_int),
    _int("shli", ints.shift("left"), "llvm.shl", _BINARY | Trait.SHIFT, fold=folds.shift_int),
    _int("shrui", ints.shift("right_logical"), "llvm.lshr", _BINARY | Trait.SHIFT, fold=folds.shift_int),
    _int("shrsi", ints.shift("right_arithmetic"), "llvm.ashr", _BINARY | Trait.SHIFT, fold=folds.shift_int),
    _int("maxsi", sem.binary(np.maximum), "llvm.intr.smax", _COMMUTES, folds.same_operands),
    _int("minsi", sem.binary(np.minimum), "llvm.intr.smin", _COMMUTES, folds.same_operands),
    _int("maxui", sem.unsigned(np.maximum), "llvm.intr.umax", _COMMUTES, folds.same_operands),
    _int("minui", sem.unsigned(np.minimum), "llvm.intr.umin", _COMMUTES, folds.same_operands),
    OpRow(
        "arith.mulsi_extended",
        ("lhs", "rhs"),
        ("low", "high"),
        traits=Trait.ELEMENTWISE | Trait.COMMUTATIVE,
        numpy=ints.multiply_high(True),
        verify=_integers,
        form=forms.SAME,
    ),
    OpRow(
        "arith.mului_extended",
        ("lhs", "rhs"),
        ("low", "high"),
        traits=Trait.ELEMENTWISE | Trait.COMMUTATIVE,
        numpy=ints.multiply_high(False),
        verify=_integers,
        form=forms.SAME,
    ),
    # comparisons and select
    OpRow(
        "arith.cmpi",
        ("lhs", "rhs"),
        attributes=("predicate",),
        traits=Trait.ELEMENTWISE,
        numpy=sem.quiet(sem.compare_integers),
        llvm="llvm.icmp",
        fold=folds.compare_int,
        verify=_compare(ty.is_integer, 10, "an integer or index"),
        form=described(" <cmpi:predicate>, $lhs, $rhs{} : type(lhs)", "rhs=lhs result=mask(lhs)"),
    ),
    OpRow(
        "arith.cmpf",
        ("lhs", "rhs"),
        attributes=("predicate",),
        optional=("fastmath",),
        traits=Trait.ELEMENTWISE,
        numpy=sem.quiet(sem.compare_floats),
        llvm="llvm.fcmp",
        verify=_compare(ty.is_float, 16, "a float"),
        form=described(" <cmpf:predicate>, $lhs, $rhs<flags:fastmath?>{} : type(lhs)", "rhs=lhs result=mask(lhs)"),
    ),
    OpRow(
        "arith.select",
        ("condition", "true_value", "false_value"),
        optional=("xla.range",),
        numpy=sem.quiet(sem.select),
        llvm="llvm.select",
        fold=folds.select,
        verify=_select,
        form=forms.SELECT,
    ),
    # casts
    _cast("extf", _converts(_is_fp, _is_fp, 1), sem.quiet(sem.cast), "llvm.fpext"),
    _cast("truncf", _converts(_is_fp, _is_fp, -1), sem.quiet(sem.cast), "llvm.fptrunc", folds.truncate_of_extend),
    _cast("extsi", _converts(_is_int, _is_int, 1), sem.quiet(sem.extend_signed), "llvm.sext"),
    _cast("extui", _converts(_is_int, _is_int, 1), sem.quiet(sem.extend_unsigned), "llvm.zext"),
    _cast("trunci", _converts(_is_int, _is_int, -1), sem.quiet(sem.truncate), "llvm.trunc", folds.truncate_of_extend),
    _cast("sitofp", _converts(_is_int, _is_fp, 0), sem.quiet(sem.extend_signed), "llvm.sitofp"),
    _cast("uitofp", _converts(_is_int, _is_fp, 0), sem.quiet(sem.unsigned_to_float), "llvm.uitofp"),
    _cast("fptosi", _converts(_is_fp, _is_int, 0), sem.float_to_integer(True), "llvm.fptosi"),
    _cast("fptoui", _converts(_is_fp, _is_int, 0), sem.float_to_integer(False), "llvm.fptoui"),
    _cast("index_cast", _index_cast, sem.quiet(sem.extend_signed), None, folds.cast_there_and_back),
    _cast("index_castui", _index_cast, sem.quiet(sem.extend_unsigned), None, folds.cast_there_and_back),
    _cast("bitcast", rules.bitcast, sem.quiet(sem.bitcast), "llvm.bitcast", folds.cast_there_and_back),
]


# ------------------------------------------------------------------------------------------------------------ builders
def constant(
    b: Builder, value: float | int | np.generic | at.IntegerAttr | at.FloatAttr, type: Type, hint: str = ""
) -> Value:
    """A constant of a scalar or vector `type`; a scalar value fills a vector."""
    if not hint:
        hint = f"c{value}" if type is INDEX else "cst"
    return b.op1("arith.constant", (), type, {"value": at.splat_or_scalar(value, type)}, hint)


def index(b: Builder, value: int) -> Value:
    """An index constant."""
    return b.op1(
        "arith.constant",
        (),
        INDEX,
        {"value": at.integer_attr(value, INDEX)},
        f"c{value}" if value >= 0 else f"c_{-value}",
    )


def binary(b: Builder, name: str, lhs: Value, rhs: Value) -> Value:
    """`arith.NAME` of two values of one type."""
    return b.op1(f"arith.{name}", (lhs, rhs), lhs.type)


def cmpi(b: Builder, predicate: str, lhs: Value, rhs: Value) -> Value:
    """`arith.cmpi` by the predicate's name (`slt`...): an i1, or a vector of them."""
    return b.op1(
        "arith.cmpi", (lhs, rhs), with_element(lhs.type, I1), {"predicate": at.integer_attr(CMPI[predicate], at.I64)}
    )


def cmpf(b: Builder, predicate: str, lhs: Value, rhs: Value) -> Value:
    """`arith.cmpf` by the predicate's name (`olt`...): an i1, or a vector of them."""
    return b.op1(
        "arith.cmpf", (lhs, rhs), with_element(lhs.type, I1), {"predicate": at.integer_attr(CMPF[predicate], at.I64)}
    )


def select(b: Builder, condition: Value, true_value: Value, false_value: Value) -> Value:
    """`arith.select`: one of two values of a type."""
    return b.op1("arith.select", (condition, true_value, false_value), true_value.type)


def cast(b: Builder, name: str, value: Value, element: Type) -> Value:
    """`arith.NAME` to the scalar type `element`, on a scalar or a vector."""
    return b.op1(f"arith.{name}", (value,), with_element(value.type, element))


def constant_value(value: Value) -> at.IntegerAttr | at.FloatAttr | None:
    """The scalar (or splat) that a constant op gives, or None."""
    op = value.defining_op
    if op is None or not op.row.has(Trait.CONSTANT):
        return None
    attribute = op.attributes["value"]
    if isinstance(attribute, at.DenseAttr):
        return attribute.splat
    return attribute if isinstance(attribute, (at.IntegerAttr, at.FloatAttr)) else None


def constant_int(value: Value) -> int | None:
    """The integer that a constant (or splat) gives, or None."""
    attribute = constant_value(value)
    return attribute.value if isinstance(attribute, at.IntegerAttr) else None


def is_elementwise(op: Operation) -> bool:
    """Whether an op does the same to each element of its operands."""
    return op.row.has(Trait.ELEMENTWISE)
