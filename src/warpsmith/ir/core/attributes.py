"""IR attributes: interned constants attached to ops.  Spelling is MLIR's.

Floats are held by their bits, so NaN payloads and -0.0 survive and equal attributes are one object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import numpy as np

from warpsmith.indexing import IndexingMap
from warpsmith.ir.core.types import I1, I64, INDEX, FloatType, ShapedType, Type, bit_width, element_type, numpy_dtype

__all__ = [
    "UNIT",
    "ArrayAttr",
    "Attribute",
    "DenseArrayAttr",
    "DenseAttr",
    "DictAttr",
    "FloatAttr",
    "IndexingMapAttr",
    "IntegerAttr",
    "OpaqueAttr",
    "StringAttr",
    "SymbolRefAttr",
    "TypeAttr",
    "UnitAttr",
    "array",
    "boolean",
    "dense",
    "dense_array",
    "dictionary",
    "float_attr",
    "float_bits",
    "indexing_map",
    "int_range",
    "integer_attr",
    "opaque",
    "string",
    "symbol",
    "type_attr",
]


class Attribute:
    """Base of all attributes."""

    __slots__ = ()


class UnitAttr(Attribute):
    """Present or absent; nothing more."""

    __slots__ = ()


class IntegerAttr(Attribute):
    """An integer of a type; i1 holds 0 or 1; others are kept in signed range."""

    __slots__ = ("type", "value")

    def __init__(self, value: int, type: Type) -> None:
        self.value = value
        self.type = type


class FloatAttr(Attribute):
    """A float by its bits."""

    __slots__ = ("bits", "type")

    def __init__(self, bits: int, type: Type) -> None:
        self.bits = bits
        self.type = type

    @property
    def value(self) -> float:
        """The value, exact (every format here fits a double)."""
        return float(self.scalar)

    @property
    def scalar(self) -> np.generic:
        """The value as a numpy scalar of its own format."""
        dtype = numpy_dtype(self.type)
        raw = np.array([self.bits], dtype=f"u{dtype.itemsize}")
        return raw.view(dtype)[0]


class StringAttr(Attribute):
    """`"text"`."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value


class TypeAttr(Attribute):
    """A type: that of a function, say."""

    __slots__ = ("type",)

    def __init__(self, type: Type) -> None:
        self.type = type


class SymbolRefAttr(Attribute):
    """`@name`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class ArrayAttr(Attribute):
    """`[a, b]`: attributes in order."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[Attribute, ...]) -> None:
        self.items = items


class DictAttr(Attribute):
    """`{a = 1, b}`: attributes by name, sorted by it."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[tuple[str, Attribute], ...]) -> None:
        self.items = items

    def get(self, name: str) -> Attribute | None:
        """The attribute of a name; None if there is none."""
        for key, value in self.items:
            if key == name:
                return value
        return None


class DenseArrayAttr(Attribute):
    """`array<i64: 1, 2>`."""

    __slots__ = ("element", "values")

    def __init__(self, element: Type, values: tuple[int, ...]) -> None:
        self.element = element
        self.values = values


class DenseAttr(Attribute):
    """`dense<...> : vector<4xf32>`: a splat (one element's bytes) or all elements' bytes, little endian, unpacked."""

    __slots__ = ("data", "is_splat", "type")

    def __init__(self, type: ShapedType, data: bytes, is_splat: bool) -> None:
        self.type = type
        self.data = data
        self.is_splat = is_splat

    @property
    def array(self) -> np.ndarray:
        """The values in the type's shape; a splat is a broadcast view."""
        flat = np.frombuffer(self.data, dtype=numpy_dtype(self.type))
        return np.broadcast_to(flat[0], self.type.shape) if self.is_splat else flat.reshape(self.type.shape)

    @property
    def splat(self) -> IntegerAttr | FloatAttr | None:
        """The one element of a splat as a scalar attribute."""
        return (
            scalar_attr(np.frombuffer(self.data, dtype=numpy_dtype(self.type))[0], self.type.element)
            if self.is_splat
            else None
        )


class IndexingMapAttr(Attribute):
    """`#xla_gpu.indexing_map<"...">`; holds no runtime variables."""

    __slots__ = ("map",)

    def __init__(self, map: IndexingMap) -> None:
        self.map = map


class OpaqueAttr(Attribute):
    """A dialect attribute kept as text, such as `#llvm.linkage<internal>` or `#gpu<dim x>`."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


UNIT = UnitAttr()


@cache
def _integer(value: int, type: Type) -> IntegerAttr:
    return IntegerAttr(value, type)


def integer_attr(value: int, type: Type = INDEX) -> IntegerAttr:
    """An integer attribute; the value wraps to the type's width (kept signed, i1 as 0 or 1)."""
    if type is I1:
        return _integer(value & 1, I1)
    half = 1 << (bit_width(type) - 1)
    return _integer((value + half) % (2 * half) - half, type)


def boolean(value: bool) -> IntegerAttr:
    """`true` or `false`, an i1."""
    return _integer(int(value), I1)


@cache
def float_bits(bits: int, type: FloatType) -> FloatAttr:
    """A float attribute from its bit pattern."""
    return FloatAttr(bits, type)


def float_attr(value: float | np.generic, type: FloatType) -> FloatAttr:
    """A float attribute, the value rounded once to `type`."""
    dtype = numpy_dtype(type)
    scalar = np.asarray(value).astype(dtype)
    return float_bits(int(scalar.reshape(1).view(f"u{dtype.itemsize}")[0]), type)


def scalar_attr(value: np.generic, type: Type) -> IntegerAttr | FloatAttr:
    """The attribute of a numpy scalar."""
    return float_attr(value, type) if isinstance(type, FloatType) else integer_attr(int(value), type)


@cache
def string(value: str) -> StringAttr:
    """The one attribute of a text."""
    return StringAttr(value)


@cache
def type_attr(type: Type) -> TypeAttr:
    """The one attribute of a type."""
    return TypeAttr(type)


@cache
def symbol(name: str) -> SymbolRefAttr:
    """The one reference to a symbol, given without its `@`."""
    return SymbolRefAttr(name)


@cache
def opaque(text: str) -> OpaqueAttr:
    """An attribute that is kept as text."""
    return OpaqueAttr(text)


@cache
def _array(items: tuple[Attribute, ...]) -> ArrayAttr:
    return ArrayAttr(items)


def array(items: Iterable[Attribute]) -> ArrayAttr:
    """The one array of these attributes."""
    return _array(tuple(items))


@cache
def _dictionary(items: tuple[tuple[str, Attribute], ...]) -> DictAttr:
    return DictAttr(items)


def dictionary(items: Mapping[str, Attribute]) -> DictAttr:
    """The one dictionary of these attributes."""
    return _dictionary(tuple(sorted(items.items())))


@cache
def _dense_array(element: Type, values: tuple[int, ...]) -> DenseArrayAttr:
    return DenseArrayAttr(element, values)


def dense_array(values: Sequence[int], element: Type = I64) -> DenseArrayAttr:
    """`array<type: ...>` of integers, i64 unless another type is given."""
    return _dense_array(element, tuple(values))


@cache
def _dense(type: ShapedType, data: bytes, is_splat: bool) -> DenseAttr:
    return DenseAttr(type, data, is_splat)


def dense(values: np.ndarray | np.generic | float | IntegerAttr | FloatAttr, type: ShapedType) -> DenseAttr:
    """Dense elements of `type`: an array in its shape, or one scalar for a splat."""
    dtype = numpy_dtype(type)
    if isinstance(values, IntegerAttr):
        values = np.asarray(values.value).astype(dtype)
    elif isinstance(values, FloatAttr):
        values = values.scalar
    data = np.ascontiguousarray(np.asarray(values).astype(dtype))
    if data.size > 1:
        raw = data.tobytes()
        first = raw[: dtype.itemsize]
        if raw == first * data.size:
            return _dense(type, first, True)
        return _dense(type, raw, False)
    return _dense(type, data.tobytes(), True)


@cache
def _indexing_map(map: IndexingMap, names: tuple[str, ...]) -> IndexingMapAttr:
    return IndexingMapAttr(map)


def indexing_map(map: IndexingMap) -> IndexingMapAttr:
    """The attribute of a map; maps compare without their variables' names, attributes with them."""
    return _indexing_map(map, tuple(v.name for v in (*map.dim_vars, *map.range_vars)))


def int_range(lower: int, upper: int) -> ArrayAttr:
    """`[lower : index, upper : index]`, inclusive: the value of `xla.range`."""
    return _array((integer_attr(lower, INDEX), integer_attr(upper, INDEX)))


def splat_or_scalar(value: float | np.generic | IntegerAttr | FloatAttr, type: Type) -> Attribute:
    """The constant attribute of `type` whose every element is `value`."""
    if isinstance(type, ShapedType):
        return dense(value, type)
    if isinstance(value, (IntegerAttr, FloatAttr)):
        return value
    element = element_type(type)
    return float_attr(value, element) if isinstance(element, FloatType) else integer_attr(int(value), type)
