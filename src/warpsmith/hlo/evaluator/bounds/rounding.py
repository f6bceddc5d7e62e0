"""How far an op's own rounding may take a kernel's result from the interpreter's.

In: results as float64 (or complex128) numbers, the error that their operands' errors cause, and by how many ulp the op
may be off by itself.  Out: the error of the results.
"""

from __future__ import annotations

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType, Kind
from warpsmith.hlo.evaluator.arithmetic import floats
from warpsmith.hlo.evaluator.bounds.values import real_part, ulp

__all__ = ["near_overflow", "rounded"]


def rounded(found: Array, propagated: Array, dtype: DType, own: float, slack: float) -> Array:
    """The error of a result: what its operands cause, and its own rounding."""
    if dtype.is_complex:
        return _complex(found, propagated, dtype, own, slack)
    if dtype.is_float:
        size = np.abs(found)
        ulps = own + slack * (propagated > 0) if slack else own
        error = propagated + ulps * _steps(size, propagated, dtype, own)
        return _overflowing(size, error, dtype)
    if dtype.kind is Kind.PRED:
        return propagated
    top = float(2 ** (dtype.bits - 1 if dtype.is_signed else dtype.bits) - 1)
    wraps = (found + propagated > top) | (found - propagated < (-top - 1 if dtype.is_signed else 0))
    return np.where((propagated > 0) & wraps, np.inf, propagated)


def _steps(size: Array, propagated: Array, part: DType, own: float) -> Array:
    """An ulp of numbers of a size that may be larger by what is propagated, and by `own` ulp."""
    reach = size + propagated
    reach = np.where(np.isinf(reach), size, reach)
    if own > 1.0:
        reach = reach + own * ulp(reach, part)  # steps grow where a power of two is passed
    return ulp(reach, part)


def _overflowing(size: Array, error: Array, part: DType) -> Array:
    """The error, infinite where a finite number may be an infinity in a kernel."""
    most = part.format.most
    if np.fmax.reduce(size + error, axis=None, initial=0.0) < most / 2:
        return error
    return np.where(np.isfinite(size) & (size + error > most) & (error > 0), np.inf, error)


def _complex(found: Array, propagated: Array, dtype: DType, own: float, slack: float) -> Array:
    """The same for both parts together.  A modulus too large for float64 counts by its half.

    Where one part of a c128 is finite and the other isn't, nothing bounds the finite one: it may be what is left of
    terms as large as the other's.  (c64 is computed in f64, by kernels as by the interpreter.)
    """
    part = real_part(dtype)
    real: Array = np.abs(np.real(found))
    imag: Array = np.abs(np.imag(found))
    mixed = np.isfinite(real) != np.isfinite(imag)
    size: Array = np.hypot(real, imag)
    unit = np.where(np.isinf(size) & np.isfinite(real) & np.isfinite(imag), 2.0, 1.0)
    size = np.where(unit > 1.0, np.hypot(real / 2, imag / 2), size)
    ulps = np.sqrt(2.0) * (own + slack * (propagated > 0) if slack else own)
    error = propagated + ulps * unit * _steps(size, propagated / unit, part, own)
    if dtype.bits == 128:
        error = np.where(mixed & ((propagated > 0) | (own > 0)), np.inf, error)
    return _overflowing(np.maximum(real, imag), error, part)


def near_overflow(opcode: str, operand: Array, found: Array, error: Array, dtype: DType, own: float) -> Array:
    """Infinite results that a kernel within its ulp bound may have as the largest finite number."""
    doubtful = np.isinf(found) & np.isfinite(operand)
    if not doubtful.any():
        return error
    exact = np.abs(floats.WIDE_UNARY[opcode](operand))
    near = doubtful & (exact <= dtype.format.most * (1 + (own + 1) * 2.0**-dtype.mantissa))
    return np.where(near, np.inf, error)
