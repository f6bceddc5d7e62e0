"""Every elementary function: one row has all that the rest of the compiler asks about it.

In: the programs of this folder.  Out: `FUNCTIONS` by name and `BY_OPCODE` by HLO opcode.  HLO's list of ops, the
interpreter, the error bounds, the emitters, the math dialect, the passes and the printers derive their tables from
these rows.  Where a function needs code of its own (a complex formula, say), `implemented` holds that it is there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from warpsmith.errors import InternalError
from warpsmith.numerics.expr import Float
from warpsmith.numerics.functions import xla
from warpsmith.numerics.functions.error_function import erf
from warpsmith.numerics.functions.exponential import exp, exp2, expm1, logistic
from warpsmith.numerics.functions.hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh
from warpsmith.numerics.functions.inverse_trigonometric import acos, asin, atan, atan2
from warpsmith.numerics.functions.logarithm import log, log1p, log2, log10
from warpsmith.numerics.functions.power import pow
from warpsmith.numerics.functions.roots import cbrt, rsqrt, sqrt
from warpsmith.numerics.functions.trigonometric import cos, sin, tan

__all__ = ["BY_OPCODE", "FUNCTIONS", "ElementaryFunction", "implemented"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ElementaryFunction:
    """One function.  `name` is its op's in the math dialect; C's and CUDA's name is the same where `c` is empty.

    `program` computes it in f32, within `max_ulp`; `xla` and `xla_ulp` are those of the mode `xla`, where it differs.
    `numpy` gives it in f64, None where numpy has no such function.  `opcode` is HLO's, `complex` whether HLO has it
    for complex numbers.  `monotone`: on an interval it is nowhere further from its value in the middle than at an end
    (a function that never falls or never rises, or an even one that bends one way).  `math_op`: the emitters leave it
    to the math dialect.  `library`: in f64 it is a call of libm or libdevice.  From arguments of size `exact_from` on
    the result is the exact one.
    """

    name: str
    program: Callable[..., Float]
    max_ulp: int
    numpy: Callable[..., Any] | None = None
    opcode: str = ""
    arity: int = 1
    monotone: bool = True
    complex: bool = True
    c: str = ""
    math_op: bool = True
    library: bool = True
    exact_from: float = math.inf
    xla: Callable[..., Float] | None = None
    xla_ulp: int = 0

    @property
    def c_name(self) -> str:
        """The function's name in C's libm, in libdevice after `__nv_`, and in CUDA before the `f` of f32."""
        return self.c or self.name


_F = ElementaryFunction
_ROWS = (
    _F("acos", acos, 2, np.arccos, "acos"),
    _F("acosh", acosh, 2, np.arccosh, "acosh"),
    _F("asin", asin, 2, np.arcsin, "asin"),
    _F("asinh", asinh, 2, np.arcsinh, "asinh"),
    _F("atan", atan, 2, np.arctan),
    _F("atan2", atan2, 2, np.arctan2, "atan2", arity=2, monotone=False),
    _F("atanh", atanh, 2, np.arctanh, "atanh"),
    _F("cbrt", cbrt, 1, np.cbrt, "cbrt"),
    _F("cos", cos, 2, np.cos, "cosine", monotone=False),
    _F("cosh", cosh, 2, np.cosh, "cosh"),
    _F("erf", erf, 4, None, "erf", complex=False, exact_from=32.0, xla=xla.erf, xla_ulp=6),
    _F("exp", exp, 2, np.exp, "exponential"),
    _F("exp2", exp2, 2, np.exp2),
    _F("expm1", expm1, 2, np.expm1, "exponential-minus-one"),
    _F("log", log, 1, np.log, "log"),
    _F("log10", log10, 3, np.log10),
    _F("log1p", log1p, 2, np.log1p, "log-plus-one"),
    _F("log2", log2, 2, np.log2),
    _F("logistic", logistic, 3, None, "logistic", math_op=False, library=False),
    _F("powf", pow, 3, np.power, "power", arity=2, monotone=False, c="pow"),
    _F("rsqrt", rsqrt, 1, None, "rsqrt", library=False),
    _F("sin", sin, 2, np.sin, "sine", monotone=False),
    _F("sinh", sinh, 3, np.sinh, "sinh"),
    _F("sqrt", sqrt, 0, np.sqrt, "sqrt", library=False),
    _F("tan", tan, 4, np.tan, "tan", monotone=False),
    _F("tanh", tanh, 4, np.tanh, "tanh", exact_from=32.0, xla=xla.tanh, xla_ulp=8),
)

FUNCTIONS: dict[str, ElementaryFunction] = {row.name: row for row in _ROWS}
BY_OPCODE: dict[str, ElementaryFunction] = {row.opcode: row for row in _ROWS if row.opcode}


def implemented(where: str, known: Mapping[str, T], opcodes: Iterable[str]) -> dict[str, T]:
    """Of `known`, the entries of these opcodes; InternalError that names an opcode which the file `where` lacks."""
    missing = [opcode for opcode in opcodes if opcode not in known]
    if missing:
        raise InternalError(
            f"'{missing[0]}' is a row of numerics/functions/table.py, and {where} has no entry for it",
            help=f"add an entry to {where}, or say in the row what the function hasn't",
        )
    return {opcode: known[opcode] for opcode in opcodes}
