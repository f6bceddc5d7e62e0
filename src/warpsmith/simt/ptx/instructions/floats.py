"""Floating-point instructions: IEEE ones exactly, in all four directions; `fma` with one rounding.

f16 and bf16 come as f32 and are rounded once more when written; that is right for sums, products, quotients and roots
because f32 has more than twice their bits.  Their `fma` is rounded to odd first.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from warpsmith.arrays import Array
from warpsmith.numerics.rounding import FORMATS, exact_fma, fma_f64, fused, in_fractions, odd_sum, round_to
from warpsmith.simt.ptx.instructions import approx as ptx_approx
from warpsmith.simt.ptx.spec import Compute, Form, Spec, binary, ternary, unary
from warpsmith.simt.ptx.values import flush

__all__ = ["FLOAT", "float_spec"]

_ARITY = {"add": 2, "sub": 2, "mul": 2, "div": 2, "min": 2, "max": 2, "copysign": 2, "fma": 3, "mad": 3}
_UNARY = ("neg", "abs", "sqrt", "rcp", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh")
FLOAT = frozenset([*_ARITY, *_UNARY])
_FLOAT_TYPES = frozenset({"f16", "bf16", "f32", "f64"})


def float_spec(form: Form, operands: int) -> Spec | None:
    """What a floating-point instruction does; None when it isn't one, or is none that exists."""
    if form.base not in FLOAT or form.type not in _FLOAT_TYPES:
        return None
    type = form.types[0]
    compute, error = _function(form, type)
    if compute is None:
        return None
    arity = max(_ARITY.get(form.base, 1), operands if form.base in ("min", "max") else 0)
    # add.f32.bf16 and fma.f32.bf16: the narrow type is that of all operands but the addend
    inputs = (form.types[1],) * (arity - 1) + (type,) if len(form.types) == 2 else (type,) * arity
    return Spec(inputs, type, _modified(compute, form, type), error)


def _modified(compute: Compute, form: Form, type: str) -> Compute:
    """With .ftz, .sat and .relu."""
    sat, relu = "sat" in form.flags, "relu" in form.flags
    if not (form.ftz or sat or relu):
        return compute

    def apply(*arrays: Array) -> Array:
        if form.ftz:
            arrays = tuple(flush(a, type) for a in arrays)
        result = compute(*arrays)
        if sat:
            result = np.where(np.isnan(result), result.dtype.type(0), np.clip(result, 0, 1))
        if relu:
            result = np.where(result < 0, result.dtype.type(0), result)
        return flush(result, type) if form.ftz else result

    return apply


def _function(form: Form, type: str) -> tuple[Compute | None, str]:
    base = form.base
    if base in ("min", "max"):
        return _extremum(base, form.flags), ""
    if base in _SIGNS:
        return _SIGNS[base], ""
    if "approx" in form.flags or "full" in form.flags:
        return ptx_approx.function(form, type)
    mode = form.rounding or "rn"
    if base in ("fma", "mad"):
        return _fused(type, mode), ""
    plain = _PLAIN.get(base)
    if plain is None:
        return None, ""
    if mode == "rn":
        return plain, ""
    return (_directed_f64(base, mode) if type == "f64" else _directed_f32(base, mode)), ""


def _reciprocal(x: Array) -> Array:
    return x.dtype.type(1) / x


_PLAIN: dict[str, Compute] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "rcp": _reciprocal,
    "sqrt": np.sqrt,
}
_SIGNS: dict[str, Compute] = {"neg": np.negative, "abs": np.abs, "copysign": binary(lambda a, b: np.copysign(b, a))}


# ------------------------------------------------------------------------------------------------------------ extremes
def _extremum(base: str, flags: frozenset[str]) -> Compute:
    """-0 < +0; without .NaN a NaN loses against a number."""
    largest = base == "max"
    if "NaN" in flags:
        choose = np.maximum if largest else np.minimum
    else:
        choose = np.fmax if largest else np.fmin

    def two(a: Array, b: Array) -> Array:
        result = choose(a, b)
        zeros = (a == 0) & (b == 0)
        if zeros.any():
            result = np.where(zeros, a + b if largest else -((-a) - b), result)
        return result

    def apply(*arrays: Array) -> Array:
        values = [np.abs(a) for a in arrays] if "abs" in flags else list(arrays)
        result = values[0]
        for value in values[1:]:
            result = two(result, value)
        if "xorsign" in flags:
            negative = np.signbit(arrays[0]) ^ np.signbit(arrays[1])
            result = np.where(negative, -np.abs(result), np.abs(result))
        return result

    return apply


# ----------------------------------------------------------------------------------------------------- multiply and add
def _fused(type: str, mode: str) -> Compute:
    if type == "f64":
        if mode == "rn":
            return fma_f64
        return _directed_f64("fma", mode)
    if type == "bf16":
        return _fused_bf16
    if mode == "rn":
        narrow = type == "f32"
        return ternary(lambda a, b, c: fused(a, b, c).astype(np.float32) if narrow else fused(a, b, c))

    def directed(a: Array, b: Array, c: Array) -> Array:
        total = fused(a, b, c)
        return _narrow(total, mode, a * b, c)

    return directed


def _fused_bf16(a: Array, b: Array, c: Array) -> Array:
    """The product of two bf16 numbers is exact in f32 unless it leaves its range; then double takes over."""
    product = a * b
    size = np.abs(product)
    risky = ((size < 2.0**-100) & (a != 0) & (b != 0)) | (size > 2.0**126)
    if risky.any():
        return round_to(fused(a, b, c), FORMATS["bf16"]).astype(np.float32)
    return odd_sum(product, c)


# ---------------------------------------------------------------------------------------------------- directed rounding
def _zero_rounded_down(a: Array, b: Array) -> Array:
    """A sum that is exactly 0, rounding down: +0 only if both terms are."""
    positive = (a == 0) & (b == 0) & ~np.signbit(a) & ~np.signbit(b)
    return np.copysign(np.zeros_like(a), np.where(positive, 1.0, -1.0)).astype(a.dtype)


def _narrow(total: Array, mode: str, a: Array, b: Array) -> Array:
    """A double that is the sum of a and b to f32 in a direction."""
    result = round_to(total, FORMATS["f32"], mode).astype(np.float32)
    zero = total == 0
    if mode == "rm" and zero.any():
        result = np.where(zero, _zero_rounded_down(a, b), result)
    return result


def _directed_f32(base: str, mode: str) -> Compute:
    def add(a: Array, b: Array) -> Array:
        total = odd_sum(a.astype(np.float64), b.astype(np.float64))
        return _narrow(total, mode, a, b)

    def multiply(a: Array, b: Array) -> Array:
        return round_to(a.astype(np.float64) * b.astype(np.float64), FORMATS["f32"], mode).astype(np.float32)

    def divide(a: Array, b: Array) -> Array:
        quotient = a / b
        # |quotient * b| against |a|: both are exact in double
        excess = np.abs(quotient.astype(np.float64) * b) - np.abs(a.astype(np.float64))
        return _step(quotient, excess, mode, np.isfinite(a) & (b != 0) & np.isfinite(b))

    def root(a: Array) -> Array:
        result = np.sqrt(a)
        return _step(result, result.astype(np.float64) ** 2 - a, mode, np.isfinite(a) & (a > 0))

    table: dict[str, Compute] = {
        "add": add,
        "sub": binary(lambda a, b: add(a, -b)),
        "mul": multiply,
        "div": divide,
        "rcp": unary(lambda a: divide(np.ones_like(a), a)),
        "sqrt": root,
    }
    return table[base]


def _step(result: Array, excess: Array, mode: str, finite: Array) -> Array:
    """Move a result that was rounded to nearest one place when it lies on the wrong side; `excess` in magnitude."""
    zero, infinity = result.dtype.type(0), result.dtype.type(np.inf)
    negative = np.signbit(result)
    up = {"rz": np.zeros_like(negative), "rm": negative, "rp": ~negative}[mode]
    size = np.abs(result)
    size = np.where(finite & ~up & (excess > 0), np.nextafter(size, zero), size)
    size = np.where(finite & up & (excess < 0), np.nextafter(size, infinity), size)
    return np.copysign(size, result)


def _exact_quotient(x: Fraction, y: Fraction) -> Fraction:
    return x / y


def _exact_reciprocal(x: Fraction) -> Fraction:
    return 1 / x


def _excess_of_square(root: Fraction, x: Fraction) -> Fraction:
    """Its sign; the number itself may be too small for a double."""
    excess = root * root - x
    return Fraction((excess > 0) - (excess < 0))


_EXACT: dict[str, Callable[..., Fraction]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": _exact_quotient,
    "rcp": _exact_reciprocal,
    "fma": exact_fma,
}


def _directed_f64(base: str, mode: str) -> Compute:
    """Exact fractions: right everywhere, and rare enough to be slow."""

    def apply(*arrays: Array) -> Array:
        operands = np.broadcast_arrays(*arrays)
        nearest = fma_f64(*operands) if base == "fma" else _PLAIN[base](*operands)
        finite = np.logical_and.reduce([np.isfinite(a) for a in operands])
        if base in ("div", "rcp"):
            finite &= operands[-1] != 0
        if base == "sqrt":
            square = in_fractions(_excess_of_square, "rn", np.zeros(1), nearest[finite], operands[0][finite])
            excess = np.zeros_like(nearest)
            excess[finite] = square
            return _step(nearest, excess, mode, finite & (operands[0] > 0))
        zeros = nearest
        if base in ("add", "sub", "fma") and mode == "rm":
            first = operands[0] * operands[1] if base == "fma" else operands[0]
            zeros = _zero_rounded_down(first, -operands[-1] if base == "sub" else operands[-1])
        result = nearest.copy()
        result[finite] = in_fractions(_EXACT[base], mode, zeros[finite], *[a[finite] for a in operands])
        return result

    return apply
