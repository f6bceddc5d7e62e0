"""What scalar ops compute, as numpy functions shared by the folder and the simulator.

Each takes the op (for its attributes) and arrays of one shape, and gives an array.  Integers are signless in IR and
signed arrays here (bool for i1); unsigned ops look at the same bits unsigned.  Integer arithmetic wraps; what MLIR
calls poison (division by zero, shifts past the width, casts out of range) gives some value and never raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warpsmith.ir.core import Operation
from warpsmith.ir.types import bit_width, element_type, numpy_dtype

Array = np.ndarray[Any, np.dtype[Any]]
Function = Callable[..., Array]


def quiet(function: Function) -> Function:
    """Run with numpy's floating-point warnings off: IEEE results are what we want, not warnings."""

    def wrapped(op: Operation, *arrays: Array) -> Array:
        with np.errstate(all="ignore"):
            return function(op, *arrays)

    return wrapped


# ------------------------------------------------------------------------------------------------- views of integers
def as_unsigned(a: Array) -> Array:
    """The same bits as an unsigned array at least as wide."""
    if a.dtype == np.bool_:
        return a.astype(np.uint8)
    if a.dtype.kind == "i":
        return a.view(f"u{a.dtype.itemsize}")
    width = 4 if "4" in a.dtype.name else 2  # ml_dtypes int4, int2
    return a.astype(np.int8).view(np.uint8) & np.uint8((1 << width) - 1)


def from_unsigned(u: Array, dtype: np.dtype[Any]) -> Array:
    """Bits back to the signed array type `dtype`, wrapping."""
    if dtype == np.bool_:
        return (u & np.asarray(1, u.dtype)).astype(np.bool_)
    if dtype.kind == "i":
        return u.astype(f"u{dtype.itemsize}").view(dtype)
    width = 4 if "4" in dtype.name else 2
    low = (u & np.asarray((1 << width) - 1, u.dtype)).astype(np.int16)
    return np.where(low >= 1 << (width - 1), low - (1 << width), low).astype(dtype)


def binary(function: Callable[[Array, Array], Array]) -> Function:
    """An op that needs no attributes."""

    def apply(_op: Operation, a: Array, b: Array) -> Array:
        return np.asarray(function(a, b)).astype(a.dtype, copy=False)  # numpy widens ml_dtypes' narrow integers

    return quiet(apply)


def unsigned(function: Callable[[Array, Array], Array]) -> Function:
    """An op on the unsigned values of its operands."""

    def apply(_op: Operation, a: Array, b: Array) -> Array:
        return from_unsigned(np.asarray(function(as_unsigned(a), as_unsigned(b))), a.dtype)

    return quiet(apply)


def wrapping(function: Callable[[Array, Array], Array]) -> Function:
    """An op whose low bits don't depend on signedness (add, sub, mul)."""

    def apply(_op: Operation, a: Array, b: Array) -> Array:
        if a.dtype.kind == "i":
            return function(a, b)
        return from_unsigned(np.asarray(function(as_unsigned(a), as_unsigned(b))), a.dtype)

    return quiet(apply)


def bitwise(function: Callable[[Array, Array], Array]) -> Function:
    def apply(_op: Operation, a: Array, b: Array) -> Array:
        if a.dtype.kind in "ib":
            return function(a, b)
        return from_unsigned(np.asarray(function(as_unsigned(a), as_unsigned(b))), a.dtype)

    return quiet(apply)


def floats(function: Callable[..., Array]) -> Function:
    """A float op in the operands' own format."""

    def apply(_op: Operation, *arrays: Array) -> Array:
        return np.asarray(function(*arrays)).astype(arrays[0].dtype, copy=False)

    return quiet(apply)


def through_f64(function: Callable[..., Array]) -> Function:
    """A function evaluated in double and rounded once to the operand's format: near-exact for f32 and below."""

    def apply(_op: Operation, *arrays: Array) -> Array:
        return np.asarray(function(*(a.astype(np.float64) for a in arrays))).astype(arrays[0].dtype)

    return quiet(apply)


# ----------------------------------------------------------------------------------------------------------- integers
def _wide(a: Array) -> Array:
    return a if a.dtype.kind == "i" else a.astype(np.int8)


def div_signed(_op: Operation, a: Array, b: Array) -> Array:
    x, y = _wide(a), _wide(b)
    quotient = x // y
    remainder = x - quotient * y
    adjusted = quotient + ((remainder != 0) & ((x < 0) != (y < 0)))
    return adjusted.astype(a.dtype)


def rem_signed(op: Operation, a: Array, b: Array) -> Array:
    x, y = _wide(a), _wide(b)
    return (x - div_signed(op, x, y) * y).astype(a.dtype)


def absolute(_op: Operation, a: Array) -> Array:
    """|a|; the least integer stays as it is."""
    return np.where(a < 0, -_wide(a), a).astype(a.dtype)


def floor_div_signed(_op: Operation, a: Array, b: Array) -> Array:
    return (_wide(a) // _wide(b)).astype(a.dtype)


def _safe_divisor(b: Array) -> Array:
    return np.where(b == 0, np.ones_like(b), b)


def div_unsigned(a: Array, b: Array) -> Array:
    return a // _safe_divisor(b)


def ceil_div_unsigned(a: Array, b: Array) -> Array:
    d = _safe_divisor(b)
    return a // d + (a % d != 0).astype(a.dtype)


def rem_unsigned(a: Array, b: Array) -> Array:
    return a % _safe_divisor(b)


def _op_width(op: Operation) -> int:
    return bit_width(element_type(op.results[0].type))


def shift(kind: str) -> Function:
    """Shifts; an amount at or past the width is poison in MLIR and gives 0 (or the sign) here."""

    def apply(op: Operation, a: Array, b: Array) -> Array:
        width = _op_width(op)
        amount = as_unsigned(b).astype(np.uint64)
        over = amount >= width
        amount = np.where(over, 0, amount).astype(np.uint64)
        if kind == "right_arithmetic":
            shifted = np.right_shift(a.astype(np.int64), np.where(over, width - 1, amount).astype(np.int64))
            return from_unsigned(shifted.view(np.uint64), a.dtype)
        bits = as_unsigned(a).astype(np.uint64)
        moved = np.left_shift(bits, amount) if kind == "left" else np.right_shift(bits, amount)
        return from_unsigned(np.where(over, np.uint64(0), moved), a.dtype)

    return quiet(apply)


def multiply_high(signed: bool) -> Callable[[Operation, Array, Array], tuple[Array, Array]]:
    """The two halves (low, high) of the double-width product."""

    def halves(op: Operation, a: Array, b: Array) -> tuple[Array, Array]:
        width = _op_width(op)
        if width <= 32:
            return _halves_in_64_bits(a, b, width, signed)
        x, y = ((v if signed else as_unsigned(v)).astype(object) for v in (a, b))
        product: Array = x * y
        mask = (1 << width) - 1
        low, high = (np.asarray(part & mask).astype(np.uint64) for part in (product, product >> width))
        return from_unsigned(low, a.dtype), from_unsigned(high, a.dtype)

    return halves


def _halves_in_64_bits(a: Array, b: Array, width: int, signed: bool) -> tuple[Array, Array]:
    x, y = (v.astype(np.int64) if signed else as_unsigned(v).astype(np.uint64) for v in (a, b))
    product: Array = x * y
    high: Array = product >> product.dtype.type(width)
    return from_unsigned(product.view(np.uint64), a.dtype), from_unsigned(high.view(np.uint64), a.dtype)


def _bits_as_uint64(op: Operation, a: Array) -> tuple[Array, int]:
    return as_unsigned(a).astype(np.uint64), _op_width(op)


def count_ones(op: Operation, a: Array) -> Array:
    bits, _ = _bits_as_uint64(op, a)
    return from_unsigned(np.bitwise_count(bits).astype(np.uint64), a.dtype)


def count_leading_zeros(op: Operation, a: Array) -> Array:
    bits, width = _bits_as_uint64(op, a)
    filled = bits.copy()
    for step in (1, 2, 4, 8, 16, 32):
        filled |= filled >> np.uint64(step)
    return from_unsigned(np.uint64(width) - np.bitwise_count(filled).astype(np.uint64), a.dtype)


def count_trailing_zeros(op: Operation, a: Array) -> Array:
    bits, width = _bits_as_uint64(op, a)
    below = ~bits & (bits - np.uint64(1))
    mask = np.uint64((1 << width) - 1)
    return from_unsigned(np.bitwise_count(below & mask).astype(np.uint64), a.dtype)


# -------------------------------------------------------------------------------------------------------- comparisons
_SIGNED_COMPARE: list[Callable[[Array, Array], Array]] = [
    np.equal,
    np.not_equal,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
]


def compare_integers(op: Operation, a: Array, b: Array) -> Array:
    predicate = op.int_attr("predicate")
    if predicate < 6:
        # i1 is signed in MLIR: true is -1.
        x, y = (-a.astype(np.int8), -b.astype(np.int8)) if a.dtype == np.bool_ and predicate > 1 else (a, b)
        return _SIGNED_COMPARE[predicate](x, y)
    return _SIGNED_COMPARE[predicate - 4](as_unsigned(a), as_unsigned(b))


def _unordered(a: Array, b: Array) -> Array:
    return np.isnan(a) | np.isnan(b)


_FLOAT_COMPARE: list[Callable[[Array, Array], Array]] = [
    lambda a, b: np.zeros(np.broadcast(a, b).shape, np.bool_),
    np.equal,
    np.greater,
    np.greater_equal,
    np.less,
    np.less_equal,
    lambda a, b: (a != b) & ~_unordered(a, b),
    lambda a, b: ~_unordered(a, b),
    lambda a, b: (a == b) | _unordered(a, b),
    lambda a, b: (a > b) | _unordered(a, b),
    lambda a, b: (a >= b) | _unordered(a, b),
    lambda a, b: (a < b) | _unordered(a, b),
    lambda a, b: (a <= b) | _unordered(a, b),
    np.not_equal,
    _unordered,
    lambda a, b: np.ones(np.broadcast(a, b).shape, np.bool_),
]


def compare_floats(op: Operation, a: Array, b: Array) -> Array:
    return np.asarray(_FLOAT_COMPARE[op.int_attr("predicate")](a, b)).astype(np.bool_)


def select(_op: Operation, condition: Array, a: Array, b: Array) -> Array:
    """`condition` may lack the trailing vector axes of the values."""
    extra = max(a.ndim, b.ndim) - condition.ndim
    return np.where(condition.reshape(condition.shape + (1,) * extra) if extra > 0 else condition, a, b)


# ------------------------------------------------------------------------------------------------------------- floats
def maximum(a: Array, b: Array) -> Array:
    """IEEE-754 2019 maximum: NaN propagates, -0 < +0."""
    zeros = (a == 0) & (b == 0)
    return np.where(zeros, a + b, np.maximum(a, b))


def minimum(a: Array, b: Array) -> Array:
    zeros = (a == 0) & (b == 0)
    return np.where(zeros, -((-a) + (-b)), np.minimum(a, b))


def number_or_other(choose: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """maxnum/minnum: a NaN operand gives the other one."""
    return lambda a, b: np.where(np.isnan(a), b, np.where(np.isnan(b), a, choose(a, b)))


def remainder(a: Array, b: Array) -> Array:
    """fmod; exact in double for every format of 32 bits or fewer."""
    return np.fmod(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)


def round_away(a: Array) -> Array:
    """Half away from zero."""
    x = a.astype(np.float64)
    whole = np.trunc(x)
    return np.copysign(whole + np.copysign((np.abs(x - whole) >= 0.5).astype(np.float64), x), x).astype(a.dtype)


def via_f64_exact(function: Callable[..., Array]) -> Callable[..., Array]:
    """For functions whose result is exact in the operand's format once computed in double (floor, trunc...)."""
    return lambda *arrays: np.asarray(function(*(a.astype(np.float64) for a in arrays))).astype(arrays[0].dtype)


def fused_multiply_add(a: Array, b: Array, c: Array) -> Array:
    """fma for f32 and narrower: the product is exact in double; the sum is rounded to odd there, then once more."""
    x, y, z = a.astype(np.float64), b.astype(np.float64), c.astype(np.float64)
    product = x * y
    total = product + z
    # Knuth's two-sum gives the rounding error; a non-zero one makes the last bit sticky, so the second rounding is
    # right.
    virtual = total - product
    error = (product - (total - virtual)) + (z - virtual)
    bits = np.atleast_1d(total).view(np.int64)
    inexact = np.isfinite(total) & (error != 0) & ((bits.reshape(np.shape(total)) & 1) == 0)
    toward = np.where((error > 0) == (total > 0), 1, -1)
    sticky = (bits.reshape(np.shape(total)) + np.where(inexact, toward, 0)).astype(np.int64)
    return np.atleast_1d(sticky).view(np.float64).reshape(np.shape(total)).astype(a.dtype)


# -------------------------------------------------------------------------------------------------------------- casts
def _result_dtype(op: Operation) -> np.dtype[Any]:
    return numpy_dtype(op.results[0].type)


def _odd_f32(x: Array) -> Array:
    """Doubles as f32, rounded to odd: a second rounding to a narrower format is then right (Boldo, Melquiond 2008)."""
    near = x.astype(np.float32)
    back = near.astype(np.float64)
    bits = near.view(np.int32)
    step = np.where(np.abs(back) > np.abs(x), np.int32(-1), np.int32(1))
    inexact = np.isfinite(near) & (back != x) & ((bits & 1) == 0)
    return (bits + np.where(inexact, step, np.int32(0))).view(np.float32)


_ROUNDED_ONCE = tuple(np.dtype(name) for name in ("float16", "float32", "float64"))


def _round(a: Array, dtype: np.dtype[Any]) -> Array:
    """Numbers as the type `dtype`, rounded once; ml_dtypes' own conversions of wide numbers round twice."""
    narrows = dtype.kind not in "iub" and dtype not in _ROUNDED_ONCE
    if not narrows or a.dtype.kind not in "iuf" or a.dtype.itemsize < 4 or a.dtype == np.float32:
        return a.astype(dtype)
    exact = a
    if a.dtype.kind in "iu" and a.dtype.itemsize == 8:  # bits below a double's last are gathered in that one
        low = a & np.array(0x7FF, a.dtype)
        sticky = np.where(low != 0, np.array(0x800, a.dtype), np.array(0, a.dtype))
        near = np.abs(a.astype(np.float64))
        exact = np.where(near >= 2.0**53, (a - low) | sticky, a)
    return _odd_f32(exact.astype(np.float64)).astype(dtype)


def cast(op: Operation, a: Array) -> Array:
    """Value-preserving where the value fits (extf, extsi, sitofp), rounding or wrapping otherwise."""
    dtype = _result_dtype(op)
    result = _round(a, dtype)
    if dtype.name == "float4_e2m1fn":  # without a NaN of its own: -0, whatever the NaN's sign (ml_dtypes turns it)
        result = np.where(np.isnan(a), np.array(0x8, np.uint8).view(dtype), result)
    elif a.dtype.name.endswith("fnuz") and dtype.kind == "f":  # whose one NaN has no sign (ml_dtypes makes it negative)
        result = np.where(np.isnan(result), np.abs(result), result)
    return result


def extend_signed(op: Operation, a: Array) -> Array:
    source = -a.astype(np.int8) if a.dtype == np.bool_ else a
    return _round(source, _result_dtype(op))


def extend_unsigned(op: Operation, a: Array) -> Array:
    return as_unsigned(a).astype(_result_dtype(op))


def truncate(op: Operation, a: Array) -> Array:
    return from_unsigned(as_unsigned(a), _result_dtype(op))


def unsigned_to_float(op: Operation, a: Array) -> Array:
    return _round(as_unsigned(a), _result_dtype(op))


def float_to_integer(signed: bool) -> Function:
    """Truncation toward zero; out of range is poison in MLIR (some value here)."""

    def apply(op: Operation, a: Array) -> Array:
        dtype = _result_dtype(op)
        x = np.trunc(a.astype(np.float64))
        if signed:
            return from_unsigned(x.astype(np.int64).view(np.uint64), dtype)
        return from_unsigned(
            np.where(x >= 2.0**63, x - 2.0**63, x).astype(np.int64).view(np.uint64)
            + np.where(x >= 2.0**63, np.uint64(1 << 63), np.uint64(0)),
            dtype,
        )

    return quiet(apply)


def bitcast(op: Operation, a: Array) -> Array:
    """The same bits as another type of the same width."""
    dtype = _result_dtype(op)
    if a.dtype == dtype:
        return a
    if a.dtype == np.bool_ or dtype == np.bool_:
        return a.astype(dtype)
    return np.ascontiguousarray(a).view(dtype)
