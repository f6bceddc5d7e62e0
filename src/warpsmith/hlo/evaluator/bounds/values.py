"""Values with error bounds: what `error_bound` computes with.

In: arrays.  Out: `Bounded`, an array and how far a correct kernel's array may be from it, element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType, by_name
from warpsmith.errors import InvalidHlo
from warpsmith.hlo.evaluator.arithmetic.formats import wide
from warpsmith.hlo.evaluator.arithmetic.integers import load
from warpsmith.hlo.evaluator.values import zero_like
from warpsmith.hlo.shapes import Shape

__all__ = [
    "Bounded",
    "BoundedDomain",
    "BoundedKernel",
    "BoundedValue",
    "UlpBound",
    "bounded_leaves",
    "errors_of",
    "grow",
    "number",
    "real_part",
    "single",
    "singles",
    "ulp",
]

UlpBound: TypeAlias = Callable[[str, DType], float]
"""(opcode, result type) to the op's documented distance, in ulp, from the correctly rounded result of its operands."""


@dataclass(slots=True)
class Bounded:
    """`error[i]` bounds |kernel - value| at i (of modulus, for complex numbers); None: equal everywhere.

    An infinite error says that nothing is known about the element.
    """

    value: Array
    error: Array | None = None


BoundedValue: TypeAlias = "Bounded | tuple[BoundedValue, ...]"
BoundedKernel: TypeAlias = Callable[[Sequence[BoundedValue]], BoundedValue]


def single(value: BoundedValue) -> Bounded:
    """The value of an array; InvalidHlo for a tuple."""
    if isinstance(value, tuple):
        raise InvalidHlo("a tuple where an array is expected")
    return value


def singles(values: Iterable[BoundedValue]) -> list[Bounded]:
    """The values of arrays; InvalidHlo if one is a tuple's."""
    return [single(value) for value in values]


def bounded_leaves(value: BoundedValue) -> list[Bounded]:
    """The arrays of a value in order, nested tuples flattened."""
    if isinstance(value, tuple):
        return [leaf for element in value for leaf in bounded_leaves(element)]
    return [value]


def errors_of(values: Sequence[Bounded]) -> list[Array]:
    """Error arrays of float64, zeros where a value is exact."""
    return [zero_like(each.value) if each.error is None else each.error for each in values]


def number(array: Array, dtype: DType) -> Array:
    """The elements as float64 (pred as 0 and 1), or complex128."""
    if dtype.is_float:
        return wide(array, dtype)
    if dtype.is_complex:
        return array.astype(np.complex128)
    return load(array, dtype).astype(np.float64) if dtype.is_integer else array.astype(np.float64)


def real_part(dtype: DType) -> DType:
    """The type of a complex type's parts; a float type itself."""
    return by_name("f64" if dtype.bits == 128 else "f32") if dtype.is_complex else dtype


def ulp(size: Array, dtype: DType) -> Array:
    """The distance between neighbours of `dtype` at each non-negative float64 in `size` (0 for inf and NaN)."""
    if dtype.bits == 64:
        return np.where(np.isfinite(size), np.spacing(size), 0.0)
    exponents = np.maximum(size.view(np.int64) >> 52, dtype.format.least_exponent + 1023)
    steps = ((exponents - dtype.mantissa) << 52).view(np.float64)
    finite = np.isfinite(size)
    return steps if finite.all() else np.where(finite, steps, 0.0)


def grow(size: Array, error: Array) -> Array:
    """|size| * error, 0 where the error is 0 even if the size is infinite."""
    return np.where(error == 0, 0.0, np.abs(size) * error)


class BoundedDomain:
    """Cutting and joining of bounded arrays, for the machine's groups."""

    def cut(self, value: BoundedValue, index: tuple[slice, ...]) -> BoundedValue:
        """A block of an array (of a scalar, all of it)."""
        whole = single(value)
        if not whole.value.ndim:
            return whole
        return Bounded(whole.value[index], None if whole.error is None else whole.error[index])

    def allocate(self, shape: Shape) -> BoundedValue:
        """An array of a shape, not filled in yet."""
        return Bounded(np.empty(shape.dims, shape.dtype.numpy))

    def store(self, target: BoundedValue, index: tuple[slice, ...], piece: BoundedValue) -> None:
        """Put a block in its place."""
        into, part = single(target), single(piece)
        into.value[index] = part.value
        if part.error is not None:
            if into.error is None:
                into.error = np.zeros(into.value.shape, np.float64)
            into.error[index] = part.error

    def repeats(self, value: BoundedValue, rank: int) -> list[bool]:
        """Along which axes all elements are the same, in memory."""
        whole = single(value)
        if not whole.value.ndim:
            return [True] * rank
        arrays = [whole.value] if whole.error is None else [whole.value, whole.error]
        return [all(a.strides[axis] == 0 and a.shape[axis] > 1 for a in arrays) for axis in range(rank)]

    def spread(self, value: BoundedValue, dims: Sequence[int]) -> BoundedValue:
        """A scalar, or array with axes of size 1, seen as one of these dims."""
        whole = single(value)
        error = None if whole.error is None else np.broadcast_to(whole.error, dims)
        return Bounded(np.broadcast_to(whole.value, dims), error)
