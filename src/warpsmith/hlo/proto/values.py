"""Shapes and literals of serialised HLO.

In: `Shape` and `Literal` messages.  Out: shapes, and literals whose elements are in logical order whatever the layout.
"""

from __future__ import annotations

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import BY_NAME, unpack
from warpsmith.errors import BadProto
from warpsmith.hlo.literals import Literal
from warpsmith.hlo.proto.wire import Message
from warpsmith.hlo.shapes import UNBOUNDED, AnyShape, Layout, Shape, SplitConfig, TupleShape

__all__ = ["literal", "shape"]

_UNBOUNDED_SIZE = -(1 << 63)
_MOST_ELEMENTS = 1 << 34


def shape(message: Message) -> AnyShape:
    """The shape of a `Shape` message.  BadProto for an element type that this version doesn't know."""
    name = message["element_type"]
    if name == "tuple":
        return TupleShape(tuple(shape(each) for each in message["tuple_shapes"]))
    if name == "buffer":
        inner = shape(message["tuple_shapes"][0]) if message["tuple_shapes"] else None
        if not isinstance(inner, Shape):
            raise BadProto("a buffer's shape holds no array")
        return Shape(inner.dtype, inner.dims, inner.layout, inner.dynamic, True)
    dtype = BY_NAME.get(name)
    if dtype is None:
        raise BadProto(f"element type {name or 0} isn't known here", help="it may be newer than this version")
    dims = tuple(UNBOUNDED if size == _UNBOUNDED_SIZE else size for size in message["dimensions"])
    if any(size < 0 and size != UNBOUNDED for size in dims):
        raise BadProto(f"a dimension has size {min(dims)}")
    layout = _layout(message["layout"]) if "layout" in message and dtype.is_array_element else None
    return Shape(dtype, dims, layout, tuple(message["is_dynamic_dimension"]))


def _layout(message: Message) -> Layout:
    levels = message["dim_level_types"]
    unique = message["dim_unique"] or [True] * len(levels)
    ordered = message["dim_ordered"] or [True] * len(levels)
    words = [
        level + ("" if one else "+") + ("" if sorted else "~")
        for level, one, sorted in zip(levels, unique, ordered, strict=True)
    ]
    tiles = tuple(tuple(tile["dimensions"]) for tile in message["tiles"])
    splits = tuple(SplitConfig(each["dimension"], tuple(each["split_indices"])) for each in message["split_configs"])
    return Layout(
        tuple(message["minor_to_major"]),
        tuple(words) if any(level != "D" for level in levels) else (),
        tiles,
        message["tail_padding_alignment_in_elements"] or 1,
        message["index_primitive_type"],
        message["pointer_primitive_type"],
        message["element_size_in_bits"],
        message["memory_space"],
        splits,
        shape(message["physical_shape"]) if "physical_shape" in message else None,
        message["dynamic_shape_metadata_prefix_bytes"],
    )


def literal(message: Message) -> Literal:
    """The value of a `Literal` message.  BadProto where its elements don't fill its shape."""
    kind = shape(message["shape"])
    if isinstance(kind, TupleShape):
        elements = [literal(each) for each in message["tuple_literals"]]
        if len(elements) != len(kind.elements):
            raise BadProto(f"a value of {kind} has {len(elements)} elements")
        return Literal.tuple_of(elements).with_shape(kind)
    if not kind.is_array or kind.elements > _MOST_ELEMENTS:
        raise BadProto(f"a value can't be of type {kind}")
    flat = _elements(message, kind)
    if flat.size != kind.elements:
        raise BadProto(f"a value of {kind} has {flat.size} elements")
    majors = tuple(reversed(kind.minor_to_major))
    array = flat.reshape([kind.dims[dim] for dim in majors]).transpose(np.argsort(majors)) if kind.dims else flat
    return Literal.of(np.ascontiguousarray(array).reshape(kind.dims), kind)


def _elements(message: Message, kind: Shape) -> Array:
    """The elements in memory order."""
    dtype = kind.dtype
    given = message[dtype.name]
    if not isinstance(given, bytes):
        if dtype.is_complex:
            part = np.float32 if dtype.name == "c64" else np.float64
            return np.array(given, part).view(dtype.numpy)
        return np.array(given, dtype.numpy)
    raw = np.frombuffer(given, np.uint8)
    if dtype.bits < 8:
        if raw.size != kind.elements:  # packed, several elements a byte
            raw = unpack(raw, dtype.bits, kind.elements)
        return _from_codes(raw, kind)
    return np.frombuffer(given, np.dtype(f"<u{dtype.bits // 8}")).astype(f"u{dtype.bits // 8}").view(dtype.numpy)


def _from_codes(codes: Array, kind: Shape) -> Array:
    """Bytes with an element in their low bits each; a signed one's sign is spread over the byte."""
    if kind.dtype.numpy.kind == "i" or kind.dtype.name in ("s4", "s2", "s1"):
        sign = np.uint8(1 << (kind.dtype.bits - 1))
        codes = (codes ^ sign) - sign
        return codes.view(np.int8).astype(kind.dtype.numpy)
    return codes.view(kind.dtype.numpy) if kind.dtype.is_float else codes.astype(kind.dtype.numpy)
