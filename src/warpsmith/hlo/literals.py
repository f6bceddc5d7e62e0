"""Literals: the values of constants.

In: numpy arrays, Python scalars, or (through `literal_text`) HLO text.  Out: `Literal`, an immutable value of one
shape.  Elements are held in logical order whatever the layout says.  An array whose elements are all alike is held as
one element (`is_splat`), so that `f32[1000000000]` of zeros takes no memory; literals compare bit for bit, so NaNs
with equal payloads are equal and -0 differs from 0.  A literal whose values a printer left out (`{...}`) has a shape
and no values: it can be passed on and printed, and whoever asks for its elements gets ElidedConstant.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType, by_name, from_numpy
from warpsmith.errors import BadLiteral, ElidedConstant, Span
from warpsmith.hlo.shapes import AnyShape, Shape, TupleShape

__all__ = ["Literal"]


@final
class Literal:
    """A constant's value: `shape` and either `array` (numpy, read-only, `shape.dims`) or `elements` (a tuple's).

    `elided_at` is where the text says `{...}` instead of values; None for a literal that has its values.
    """

    __slots__ = ("_array", "elements", "elided_at", "is_splat", "shape")

    shape: AnyShape
    elements: tuple[Literal, ...]
    is_splat: bool
    elided_at: Span | None
    _array: Array | None

    def __init__(
        self,
        shape: AnyShape,
        array: Array | None,
        elements: tuple[Literal, ...],
        splat: bool,
        elided_at: Span | None = None,
    ) -> None:
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "elements", elements)
        object.__setattr__(self, "is_splat", splat)
        object.__setattr__(self, "elided_at", elided_at)
        object.__setattr__(self, "_array", array)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Literal can't change ('{name}')")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Literal can't change ('{name}')")

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (self.shape, self._array, self.elements, self.is_splat, self.elided_at))

    @staticmethod
    def of(array: Array, shape: Shape | None = None) -> Literal:
        """The value of a numpy array (copied), of `shape` when it says more than the array (a layout, say).

        BadLiteral when dims or dtype don't fit `shape`.
        """
        wanted = shape if shape is not None else Shape(from_numpy(array.dtype), array.shape)
        if array.shape != wanted.dims or array.dtype != wanted.dtype.numpy:
            raise BadLiteral(f"a {array.dtype} array of dims {list(array.shape)} isn't a value of {wanted}")
        if array.size == 0:
            return Literal(wanted, _locked(np.zeros(wanted.dims, wanted.dtype.numpy)), (), False)
        first = array.reshape(-1)[:1] if array.flags.c_contiguous else array[(slice(0, 1),) * array.ndim].reshape(-1)
        if array.ndim == 0 or all(
            stride == 0 for stride, dim in zip(array.strides, array.shape, strict=True) if dim > 1
        ):
            return _splat(wanted, first)
        copied = np.ascontiguousarray(array)
        if copied is array or not copied.flags.owndata:
            copied = copied.copy()
        flat = copied.reshape(-1).view(_BITS[copied.dtype.itemsize])
        if bool((flat == flat[:1]).all()):
            return _splat(wanted, first)
        return Literal(wanted, _locked(copied), (), False)

    @staticmethod
    def splat(shape: Shape, value: object) -> Literal:
        """`shape` filled with one value (a Python or numpy scalar, rounded once to the dtype)."""
        element = np.asarray([value]).astype(shape.dtype.numpy)
        if 0 in shape.dims:
            return Literal(shape, _locked(np.zeros(shape.dims, shape.dtype.numpy)), (), False)
        return _splat(shape, element)

    @staticmethod
    def splat_of(shape: Shape, element: Array) -> Literal:
        """`shape` filled with the one element of `element`, which has the dtype already."""
        if element.size != 1 or element.dtype != shape.dtype.numpy:
            raise BadLiteral(f"{element.size} elements of {element.dtype} don't fill {shape}")
        if 0 in shape.dims:
            return Literal(shape, _locked(np.zeros(shape.dims, shape.dtype.numpy)), (), False)
        return _splat(shape, element)

    @staticmethod
    def scalar(dtype: DType | str, value: object) -> Literal:
        """A rank-0 value: `Literal.scalar("f32", 0.5)`."""
        return Literal.splat(Shape(by_name(dtype) if isinstance(dtype, str) else dtype), value)

    @staticmethod
    def tuple_of(elements: Sequence[Literal]) -> Literal:
        """A tuple of literals."""
        return Literal(TupleShape(tuple(each.shape for each in elements)), None, tuple(elements), False)

    @staticmethod
    def elided(shape: Shape, place: Span) -> Literal:
        """A value that was left out of the text, at `place`."""
        return Literal(shape, None, (), False, place)

    @property
    def is_tuple(self) -> bool:
        """Whether it is a tuple's."""
        return isinstance(self.shape, TupleShape)

    @property
    def is_elided(self) -> bool:
        """Whether its values, or some of a tuple's, were left out of the text."""
        return self.elided_at is not None or any(each.is_elided for each in self.elements)

    @property
    def dtype(self) -> DType:
        """The element type; BadLiteral for a tuple."""
        return self._array_shape().dtype

    @property
    def array(self) -> Array:
        """The elements as a read-only numpy array of `shape.dims` (a splat's has zero strides: no memory).

        ElidedConstant where the text has `{...}` instead of values; BadLiteral for a tuple.
        """
        if self.elided_at is not None:
            raise ElidedConstant(
                f"the values of this {self.shape} constant were left out when the text was printed",
                span=self.elided_at,
                help="print the module with its large constants (XLA: print_large_constants, "
                "--xla_dump_large_constants), or have seeded values made up for them: --fill-elided SEED",
            )
        if self._array is None:
            raise BadLiteral(f"a literal of {self.shape} has no array form")
        return self._array

    @property
    def splat_value(self) -> Any:
        """The one element of a splat as a numpy scalar; BadLiteral for anything else."""
        if not self.is_splat or self._array is None:
            raise BadLiteral(f"a literal of {self.shape} doesn't hold one value")
        return self._array[(0,) * self._array.ndim]

    def item(self) -> Any:
        """A scalar or splat as a Python bool, int, float or complex."""
        value = self.splat_value
        dtype = self._array_shape().dtype
        if dtype.is_float:
            return float(value)
        if dtype.is_complex:
            return complex(value)
        return int(value) if dtype.is_integer else bool(value)

    def with_shape(self, shape: AnyShape) -> Literal:
        """The same values under a shape that differs in layout alone."""
        if self.shape == shape:
            return self
        if isinstance(shape, TupleShape):
            if not self.is_tuple or len(self.elements) != len(shape.elements):
                raise BadLiteral(f"a literal of {self.shape} isn't a value of {shape}")
            parts = [each.with_shape(wanted) for each, wanted in zip(self.elements, shape.elements, strict=True)]
            return Literal(shape, None, tuple(parts), False)
        own = self._array_shape()
        if own.dims != shape.dims or own.dtype is not shape.dtype:
            raise BadLiteral(f"a literal of {own} isn't a value of {shape}")
        return Literal(shape, self._array, (), self.is_splat, self.elided_at)

    def _array_shape(self) -> Shape:
        if isinstance(self.shape, TupleShape):
            raise BadLiteral(f"a literal of {self.shape} has no single element type")
        return self.shape

    def _bits(self) -> bytes:
        if self._array is None:
            return b"elided" if self.elided_at is not None else b""
        return self._array[(slice(0, 1),) * self._array.ndim].tobytes() if self.is_splat else self._array.tobytes()

    def digest(self) -> str:
        """SHA-256 of shape and bits, the same on every machine; a splat hashes its one element."""
        parts = "".join(element.digest() for element in self.elements)
        head = f"{self.shape} {'splat' if self.is_splat else 'dense'} {parts}"
        bits = self._bits() if sys.byteorder == "little" or self._array is None else self._little().tobytes()
        return hashlib.sha256(head.encode() + bits).hexdigest()

    def _little(self) -> Array:
        """The bits' bytes in little-endian order, on a machine of the other order."""
        array = self.array[(slice(0, 1),) * self.array.ndim] if self.is_splat else self.array
        return array.byteswap()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        return (
            self.shape == other.shape
            and self.is_splat == other.is_splat
            and self.elements == other.elements
            and self._bits() == other._bits()
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.is_splat, self._bits()[:64], self.elements))

    def __repr__(self) -> str:
        if self.is_tuple:
            return f"<literal ({', '.join(map(repr, self.elements))})>"
        if self.elided_at is not None:
            return f"<literal {self.shape}, values left out>"
        return f"<literal {self.shape} all {self.splat_value}>" if self.is_splat else f"<literal {self.shape}>"


_BITS: dict[int, Any] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
    16: np.dtype([("lo", np.uint64), ("hi", np.uint64)]),
}


def _rebuild(
    shape: AnyShape, array: Array | None, elements: tuple[Literal, ...], splat: bool, elided_at: Span | None
) -> Literal:
    if array is not None and splat and not isinstance(shape, TupleShape):
        return _splat(shape, np.ascontiguousarray(array[(slice(0, 1),) * array.ndim]).reshape(1))
    return Literal(shape, array, elements, splat, elided_at)


def _splat(shape: Shape, element: Array) -> Literal:
    """A literal of `shape` that holds the one element of the rank-1 array `element`."""
    one = np.array(element, copy=True).reshape(())
    return Literal(shape, np.broadcast_to(one, shape.dims), (), True)


def _locked(array: Array) -> Array:
    array.flags.writeable = False
    return array
