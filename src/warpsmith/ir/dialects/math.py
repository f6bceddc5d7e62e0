"""The math dialect: elementary functions on float (and a few on integer) scalars and vectors.

Transcendental rows are INEXACT: their numpy function is near-exact, the code that runs is `passes/expand_math.py`'s
expansion, so constants are never folded through them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import OpRow, Trait, Value
from warpsmith.ir.dialects import forms
from warpsmith.ir.dialects import integer_semantics as ints
from warpsmith.ir.dialects import semantics as sem
from warpsmith.ir.dialects.memory_rules import need_integers
from warpsmith.numerics.functions.table import FUNCTIONS, implemented

_TRAITS = Trait.ELEMENTWISE | Trait.SAME_TYPE


def _exact(name: str, numpy: Callable[..., Any], llvm: str | None, operands: tuple[str, ...] = ("operand",)) -> OpRow:
    return OpRow(
        f"math.{name}", operands, optional=("fastmath",), traits=_TRAITS, numpy=numpy, llvm=llvm, form=forms.SAME
    )


def _inexact(name: str, function: Callable[..., Any], operands: tuple[str, ...] = ("operand",)) -> OpRow:
    return OpRow(
        f"math.{name}",
        operands,
        optional=("fastmath",),
        traits=_TRAITS | Trait.INEXACT,
        numpy=sem.through_f64(function),
        form=forms.SAME,
    )


_ERF = np.frompyfunc(math.erf, 1, 1)


def _erf(x: Array) -> Array:
    """erf in double, by the C library: numpy has none."""
    return np.asarray(_ERF(x), np.float64)


def _rsqrt(x: Array) -> Array:
    return 1.0 / np.sqrt(x)


_OWN: dict[str, Callable[..., Any]] = {"erf": _erf, "rsqrt": _rsqrt}


def _functions() -> list[OpRow]:
    """The elementary functions, but for those that are exact."""
    rows = [row for row in FUNCTIONS.values() if row.math_op and row.max_ulp]
    known = {row.name: row.numpy for row in rows if row.numpy is not None} | _OWN
    numpy = implemented("ir/dialects/math.py", known, [row.name for row in rows])
    return [_inexact(row.name, numpy[row.name], ("operand",) if row.arity == 1 else ("lhs", "rhs")) for row in rows]


ROWS = [
    _exact("absf", sem.floats(np.abs), "llvm.intr.fabs"),
    _exact("ceil", sem.floats(sem.via_f64_exact(np.ceil)), "llvm.intr.ceil"),
    _exact("floor", sem.floats(sem.via_f64_exact(np.floor)), "llvm.intr.floor"),
    _exact("trunc", sem.floats(sem.via_f64_exact(np.trunc)), "llvm.intr.trunc"),
    _exact("roundeven", sem.floats(sem.via_f64_exact(np.rint)), "llvm.intr.roundeven"),
    _exact("round", sem.floats(sem.round_away), "llvm.intr.round"),
    _exact("sqrt", sem.floats(sem.via_f64_exact(np.sqrt)), "llvm.intr.sqrt"),
    _exact("copysign", sem.floats(np.copysign), "llvm.intr.copysign", ("lhs", "rhs")),
    _exact("fma", sem.floats(sem.fused_multiply_add), "llvm.intr.fma", ("a", "b", "c")),
    OpRow(
        "math.absi",
        ("operand",),
        traits=_TRAITS,
        numpy=sem.quiet(ints.absolute),
        verify=need_integers,
        form=forms.SAME,
    ),
    OpRow(
        "math.ctpop",
        ("operand",),
        traits=_TRAITS,
        numpy=sem.quiet(ints.count_ones),
        llvm="llvm.intr.ctpop",
        verify=need_integers,
        form=forms.SAME,
    ),
    OpRow(
        "math.ctlz",
        ("operand",),
        traits=_TRAITS,
        numpy=sem.quiet(ints.count_leading_zeros),
        llvm="llvm.intr.ctlz",
        verify=need_integers,
        form=forms.SAME,
    ),
    OpRow(
        "math.cttz",
        ("operand",),
        traits=_TRAITS,
        numpy=sem.quiet(ints.count_trailing_zeros),
        llvm="llvm.intr.cttz",
        verify=need_integers,
        form=forms.SAME,
    ),
    *_functions(),
]


def unary(b: Builder, name: str, value: Value) -> Value:
    """`math.NAME` of one value."""
    return b.op1(f"math.{name}", (value,), value.type)


def binary(b: Builder, name: str, lhs: Value, rhs: Value) -> Value:
    """`math.name` of two values of a type."""
    return b.op1(f"math.{name}", (lhs, rhs), lhs.type)
