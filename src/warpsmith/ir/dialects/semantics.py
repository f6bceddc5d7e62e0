"""What scalar ops compute, as numpy functions shared by the folder and the simulator.

Each takes the op (for its attributes) and arrays of one shape, and gives an array.  Integers are signless in IR and
signed arrays here (bool for i1); unsigned ops look at the same bits unsigned.  Integer arithmetic wraps; what MLIR
calls poison (division by zero, shifts past the width, casts out of range) gives some value and never raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.types import numpy_dtype

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
    """A function of bits, also for types that numpy's bitwise functions don't take."""

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
    """`arith.cmpi`, by the op's predicate."""
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
    """`arith.cmpf`, by the op's predicate."""
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
    """`arith.minimumf`: NaN if either is; -0 is less than 0."""
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
    """`arith.extsi`, `arith.sitofp`...: the number, to a wider type (i1 is 0 or -1)."""
    source = -a.astype(np.int8) if a.dtype == np.bool_ else a
    return _round(source, _result_dtype(op))


def extend_unsigned(op: Operation, a: Array) -> Array:
    """`arith.extui`: the bits read as unsigned, to a wider type."""
    return as_unsigned(a).astype(_result_dtype(op))


def truncate(op: Operation, a: Array) -> Array:
    """`arith.trunci`: the low bits."""
    return from_unsigned(as_unsigned(a), _result_dtype(op))


def unsigned_to_float(op: Operation, a: Array) -> Array:
    """`arith.uitofp`: the bits read as unsigned, rounded once."""
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
