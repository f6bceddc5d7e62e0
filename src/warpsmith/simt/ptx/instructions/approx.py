"""Approximate instructions.  The hardware's bits aren't documented; its errors are.

By default the result is the exact one, rounded once: what an ideal unit would give.  With `worst`, each result is moved
by the documented error, up or down by a hash of its bits, so that code which needs a better unit shows itself.
Ranges that the documentation treats apart (the quotient of a huge divisor is 0) are kept in both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpsmith.arrays import Array
from warpsmith.numerics.rounding import FORMATS
from warpsmith.simt.ptx.spec import Compute, Form, binary, unary

__all__ = ["function"]


@dataclass(frozen=True, slots=True)
class _Row:
    """An exact function of doubles, and the error: relative, absolute, or both in the ranges where each holds."""

    exact: Compute
    relative: float
    absolute: float
    error: str


_F32: dict[str, _Row] = {
    "ex2": _Row(np.exp2, 2.0**-22, 0.0, "relative 2^-22"),
    "lg2": _Row(np.log2, 2.0**-22, 2.0**-22, "absolute 2^-22 in (0.5, 2), relative 2^-22 outside"),
    "sin": _Row(np.sin, 0.0, 2.0**-20.5, "absolute 2^-20.5 in [-2 pi, 2 pi]"),
    "cos": _Row(np.cos, 0.0, 2.0**-20.5, "absolute 2^-20.5 in [-2 pi, 2 pi]"),
    "rsqrt": _Row(unary(lambda x: 1.0 / np.sqrt(x)), 2.0**-22.9, 0.0, "relative 2^-22.9"),
    "sqrt": _Row(np.sqrt, 2.0**-23, 0.0, "relative 2^-23"),
    "rcp": _Row(unary(lambda x: 1.0 / x), 2.0**-23, 0.0, "1 ulp"),
    "tanh": _Row(np.tanh, 2.0**-11, 0.0, "relative 2^-11"),
    "div": _Row(binary(lambda a, b: a / b), 2.0**-22, 0.0, "2 ulp"),
}
_F16: dict[str, _Row] = {
    "ex2": _Row(np.exp2, 2.0**-9.9, 0.0, "relative 2^-9.9"),
    "tanh": _Row(np.tanh, 0.0, 2.0**-10.987, "absolute 2^-10.987"),
}
_BF16: dict[str, _Row] = {
    "ex2": _Row(np.exp2, 2.0**-7, 0.0, "relative 2^-7"),
    "tanh": _Row(np.tanh, 0.0, 2.0**-8, "absolute 2^-8"),
}
_F64: dict[str, _Row] = {
    "rcp": _Row(unary(lambda x: 1.0 / x), 2.0**-20, 0.0, "20 bits"),
    "rsqrt": _Row(unary(lambda x: 1.0 / np.sqrt(x)), 2.0**-20, 0.0, "20 bits"),
}
_TABLES = {"f32": _F32, "f16": _F16, "bf16": _BF16, "f64": _F64}
_DIVISOR_LIMIT = 2.0**126


def function(form: Form, type: str) -> tuple[Compute | None, str]:
    """The function of an approximate instruction and its documented error; None for one that doesn't exist."""
    row = _TABLES[type].get(form.base)
    if row is None:
        return None, ""
    compute = _double(row, form.worst) if type == "f64" else _narrow(row, type, form.worst)
    if form.base == "div" and "approx" in form.flags:
        compute = _limited(compute)
    return compute, row.error


def _shift(exact: Array, row: _Row) -> Array:
    """The exact result moved by the documented error; results that are exact in any unit stay."""
    bits = exact.view(np.uint64)
    sign = np.where(((bits ^ (bits >> np.uint64(7)) ^ (bits >> np.uint64(29))) & np.uint64(1)) == 0, 1.0, -1.0)
    size = np.abs(exact) * row.relative
    if row.absolute:
        near = np.abs(exact) < 1 if row.relative else np.full(exact.shape, True)
        size = np.where(near, row.absolute, size)
    return np.where(np.isfinite(exact) & (exact != 0), exact + sign * size, exact)


def _narrow(row: _Row, type: str, worst: bool) -> Compute:
    def apply(*arrays: Array) -> Array:
        exact = np.asarray(row.exact(*(a.astype(np.float64) for a in arrays)))
        if worst:
            exact = _shift(exact, row)
        return exact.astype(np.float32) if type == "f32" else exact

    return apply


def _double(row: _Row, worst: bool) -> Compute:
    """The f64 forms read and give the upper 32 bits only."""
    high = np.uint64(0xFFFFFFFF00000000)

    def apply(a: Array) -> Array:
        exact = np.asarray(row.exact((a.view(np.uint64) & high).view(np.float64)))
        if worst:
            exact = _shift(exact, row)
        least = FORMATS["f64"].least_normal
        exact = np.where(np.abs(exact) < least, np.copysign(0.0, exact), exact)
        return (exact.view(np.uint64) & high).view(np.float64)

    return apply


def _limited(divide: Compute) -> Compute:
    """div.approx: a divisor past 2^126 gives 0, or NaN under an infinity."""

    def apply(a: Array, b: Array) -> Array:
        result = divide(a, b)
        beyond = (np.abs(b) > np.float32(_DIVISOR_LIMIT)) & np.isfinite(b) & ~np.isnan(a)
        if beyond.any():
            odd = np.where(np.isinf(a), np.float32(np.nan), np.copysign(np.float32(0), a) * np.sign(b))
            result = np.where(beyond, odd, result)
        return result

    return apply
