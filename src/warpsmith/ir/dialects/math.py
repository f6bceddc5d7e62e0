"""The math dialect: elementary functions on float (and a few on integer) scalars and vectors.

Transcendental rows are INEXACT: their numpy function is near-exact, the code that runs is `passes/expand_math.py`'s
expansion, so constants are never folded through them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import OpRow, Trait, Value
from warpsmith.ir.dialects import integer_semantics as ints
from warpsmith.ir.dialects import semantics as sem

_TRAITS = Trait.ELEMENTWISE | Trait.SAME_TYPE


def _exact(name: str, numpy: Callable[..., Any], llvm: str | None, operands: tuple[str, ...] = ("operand",)) -> OpRow:
    return OpRow(
        f"math.{name}", operands, optional=("fastmath",), traits=_TRAITS, numpy=numpy, llvm=llvm, syntax="same"
    )


def _inexact(name: str, function: Callable[..., Any], operands: tuple[str, ...] = ("operand",)) -> OpRow:
    return OpRow(
        f"math.{name}",
        operands,
        optional=("fastmath",),
        traits=_TRAITS | Trait.INEXACT,
        numpy=sem.through_f64(function),
        syntax="same",
    )


def _rsqrt(x: sem.Array) -> sem.Array:
    return 1.0 / np.sqrt(x)


_ERF = np.frompyfunc(math.erf, 1, 1)


def _erf(x: sem.Array) -> sem.Array:
    """erf in double, by the C library: numpy has none."""
    return np.asarray(_ERF(x), np.float64)


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
        syntax="same",
    ),
    OpRow(
        "math.ctpop",
        ("operand",),
        traits=_TRAITS,
        numpy=sem.quiet(ints.count_ones),
        llvm="llvm.intr.ctpop",
        syntax="same",
    ),
    OpRow(
        "math.ctlz",
        ("operand",),
        traits=_TRAITS,
        numpy=sem.quiet(ints.count_leading_zeros),
        llvm="llvm.intr.ctlz",
        syntax="same",
    ),
    OpRow(
        "math.cttz",
        ("operand",),
        traits=_TRAITS,
        numpy=sem.quiet(ints.count_trailing_zeros),
        llvm="llvm.intr.cttz",
        syntax="same",
    ),
    _inexact("acos", np.arccos),
    _inexact("acosh", np.arccosh),
    _inexact("asin", np.arcsin),
    _inexact("asinh", np.arcsinh),
    _inexact("atan", np.arctan),
    _inexact("atan2", np.arctan2, ("lhs", "rhs")),
    _inexact("atanh", np.arctanh),
    _inexact("cbrt", np.cbrt),
    _inexact("cos", np.cos),
    _inexact("cosh", np.cosh),
    _inexact("erf", _erf),
    _inexact("exp", np.exp),
    _inexact("exp2", np.exp2),
    _inexact("expm1", np.expm1),
    _inexact("log", np.log),
    _inexact("log10", np.log10),
    _inexact("log1p", np.log1p),
    _inexact("log2", np.log2),
    _inexact("powf", np.power, ("lhs", "rhs")),
    _inexact("rsqrt", _rsqrt),
    _inexact("sin", np.sin),
    _inexact("sinh", np.sinh),
    _inexact("tan", np.tan),
    _inexact("tanh", np.tanh),
]


def unary(b: Builder, name: str, value: Value) -> Value:
    """`math.NAME` of one value."""
    return b.op1(f"math.{name}", (value,), value.type)


def binary(b: Builder, name: str, lhs: Value, rhs: Value) -> Value:
    """`math.name` of two values of a type."""
    return b.op1(f"math.{name}", (lhs, rhs), lhs.type)
