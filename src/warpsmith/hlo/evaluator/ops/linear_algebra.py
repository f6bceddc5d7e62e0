"""cholesky and triangular-solve: computed in float64 or complex128, rounded once.

In: arrays of matrices.  Out: arrays.  A matrix that isn't positive definite gives NaN; the triangle that isn't
computed is zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType
from warpsmith.hlo.evaluator.arithmetic.formats import round_once, wide
from warpsmith.hlo.evaluator.ops.factorisations import adjoint, cholesky, solve_triangular
from warpsmith.hlo.evaluator.values import Caller, Kernel, Rule, Value, arrays_of
from warpsmith.hlo.module import HloInstruction

__all__ = ["LINEAR_ALGEBRA", "exact", "rounded", "solved"]


def exact(array: Array, dtype: DType) -> Array:
    """The numbers in float64 or complex128."""
    return array.astype(np.complex128) if dtype.is_complex else wide(array, dtype)


def rounded(array: Array, dtype: DType) -> Array:
    """Float64 (or complex128) numbers rounded once to a type."""
    return array.astype(dtype.numpy) if dtype.is_complex else round_once(np.ascontiguousarray(array), dtype)


def _cholesky(_: Caller, instruction: HloInstruction) -> Kernel:
    dtype = instruction.array_shape.dtype
    lower = bool(instruction.attributes.get("lower", False))

    def kernel(values: Sequence[Value]) -> Value:
        (array,) = arrays_of(values)
        a = exact(array, dtype)
        factor, info = cholesky(a if lower else adjoint(a))
        factor = np.where((info != 0)[..., None, None], np.nan, factor)
        return rounded(factor if lower else adjoint(factor), dtype)

    return kernel


def solved(a: Array, b: Array, *, left: bool, lower: bool, unit: bool, transpose: str) -> Array:
    """x with op(A) x = b, or x op(A) = b where A isn't on the left."""
    if transpose != "NO_TRANSPOSE":
        a = adjoint(a) if transpose == "ADJOINT" else np.swapaxes(a, -1, -2)
        lower = not lower
    if left:
        return solve_triangular(a, b, lower=lower, unit=unit)
    flipped = solve_triangular(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2), lower=not lower, unit=unit)
    return np.swapaxes(flipped, -1, -2)


def _triangular_solve(_: Caller, instruction: HloInstruction) -> Kernel:
    dtype = instruction.array_shape.dtype
    left, lower, unit = (
        bool(instruction.attributes.get(name, False)) for name in ("left_side", "lower", "unit_diagonal")
    )
    transpose = str(instruction.attributes.get("transpose_a", "NO_TRANSPOSE"))

    def kernel(values: Sequence[Value]) -> Value:
        a, b = (exact(array, dtype) for array in arrays_of(values))
        return rounded(solved(a, b, left=left, lower=lower, unit=unit, transpose=transpose), dtype)

    return kernel


LINEAR_ALGEBRA: dict[str, Rule] = {"cholesky": _cholesky, "triangular-solve": _triangular_solve}
