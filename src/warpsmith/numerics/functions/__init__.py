"""Elementary functions as branch-free programs of f32 and i32 ops.

`EXPANSIONS` has one row a function, named as the op of the math dialect; `expand` runs a row's program on a backend.
Errors stay within `max_ulp` of the row over all of f32 (see `bounds.py`), with subnormals, signed zeros, infinities
and NaN as exact arithmetic has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from warpsmith.numerics.expr import Backend, Float, Precision
from warpsmith.numerics.functions import xla
from warpsmith.numerics.functions.error_function import erf
from warpsmith.numerics.functions.exponential import exp, exp2, expm1, logistic
from warpsmith.numerics.functions.hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh
from warpsmith.numerics.functions.inverse_trigonometric import acos, asin, atan, atan2
from warpsmith.numerics.functions.logarithm import log, log1p, log2, log10
from warpsmith.numerics.functions.power import pow
from warpsmith.numerics.functions.roots import cbrt, rsqrt, sqrt
from warpsmith.numerics.functions.trigonometric import cos, sin, tan

__all__ = ["EXPANSIONS", "XLA", "Expansion", "expand"]


@dataclass(frozen=True, slots=True)
class Expansion:
    """One function: its program, number of arguments, and largest error of the f32 program in ulp."""

    name: str
    program: Callable[..., Float]
    max_ulp: int
    arity: int = 1


_ROWS = [
    Expansion("acos", acos, 2),
    Expansion("acosh", acosh, 2),
    Expansion("asin", asin, 2),
    Expansion("asinh", asinh, 2),
    Expansion("atan", atan, 2),
    Expansion("atan2", atan2, 2, arity=2),
    Expansion("atanh", atanh, 2),
    Expansion("cbrt", cbrt, 1),
    Expansion("cos", cos, 2),
    Expansion("cosh", cosh, 2),
    Expansion("erf", erf, 4),
    Expansion("exp", exp, 2),
    Expansion("exp2", exp2, 2),
    Expansion("expm1", expm1, 2),
    Expansion("log", log, 1),
    Expansion("log10", log10, 3),
    Expansion("log1p", log1p, 2),
    Expansion("log2", log2, 2),
    Expansion("logistic", logistic, 3),
    Expansion("powf", pow, 3, arity=2),
    Expansion("rsqrt", rsqrt, 1),
    Expansion("sin", sin, 2),
    Expansion("sinh", sinh, 3),
    Expansion("sqrt", sqrt, 0),
    Expansion("tan", tan, 4),
    Expansion("tanh", tanh, 4),
]

EXPANSIONS: dict[str, Expansion] = {row.name: row for row in _ROWS}


XLA: dict[str, Expansion] = {row.name: row for row in (Expansion("erf", xla.erf, 6), Expansion("tanh", xla.tanh, 8))}
"""The f32 programs of the mode `xla`, where that has its own."""


def expand(
    name: str,
    backend: Backend,
    *operands: Any,
    precision: Precision = Precision.F32,
    programs: Mapping[str, Expansion] = EXPANSIONS,
) -> Any:
    """The value of function `name` at f32 values of `backend`, as a value of `backend`."""
    values = [Float(backend, operand) for operand in operands]
    return programs[name].program(*values, precision).raw
