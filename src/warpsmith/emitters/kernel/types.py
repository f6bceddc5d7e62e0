"""HLO shapes as IR types.

In: HLO element types and shapes.  Out: the scalars that an element is in a function, and the tensor type of a buffer.
pred is i8; integers are signless; a complex element is two floats side by side, its tensor has one more, minor
dimension of size 2.  XLA keeps complex as a type (`xla/codegen/emitters/type_util.cc`).
"""

from __future__ import annotations

from functools import cache

from warpsmith.dtypes import DType, Kind, by_name
from warpsmith.errors import UnsupportedFusion
from warpsmith.hlo.shapes import AnyShape, Shape
from warpsmith.ir.core.types import TensorType, Type, float_type, integer, tensor

__all__ = ["component", "element_types", "leaf_types", "scalar_type", "tensor_type"]


@cache
def component(dtype: DType) -> DType:
    """The float type of a complex type's parts; any other type itself."""
    return {"c64": by_name("f32"), "c128": by_name("f64")}.get(dtype.name, dtype)


@cache
def scalar_type(dtype: DType) -> Type:
    """The IR type of one part of an element (the only part, unless it is complex)."""
    match dtype.kind:
        case Kind.PRED | Kind.SINT | Kind.UINT:
            return integer(dtype.bits)
        case Kind.FLOAT:
            return float_type(dtype.ir)
        case Kind.COMPLEX:
            return scalar_type(component(dtype))
        case _:
            raise UnsupportedFusion(f"a {dtype.name} has no value in a kernel")


@cache
def element_types(dtype: DType) -> tuple[Type, ...]:
    """The IR types of one element's parts."""
    return (scalar_type(dtype),) * (2 if dtype.is_complex else 1)


def leaf_types(shape: AnyShape) -> tuple[Type, ...]:
    """The IR types of one element of each leaf, in order."""
    return tuple(part for leaf in shape.leaves() for part in element_types(leaf.dtype))


def tensor_type(shape: Shape) -> TensorType:
    """The tensor type of a buffer; a layout that isn't row-major is kept as an encoding."""
    order = shape.minor_to_major
    if shape.dtype.is_complex:
        return tensor((*shape.dims, 2), scalar_type(shape.dtype), (len(shape.dims), *order))
    return tensor(shape.dims, scalar_type(shape.dtype), order)
