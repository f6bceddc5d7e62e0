"""IR types: interned, so two equal types are one object and `is` compares them.

Spelling is MLIR's.  `str(type)` is computed once, when the type is made.  Types are made by calling the factories
below (`vector((4,), F32)`), never by their classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import ml_dtypes
import numpy as np

from warpsmith.dtypes import BY_IR
from warpsmith.errors import InternalError

__all__ = [
    "BF16",
    "F16",
    "F32",
    "F64",
    "I1",
    "I8",
    "I16",
    "I32",
    "I64",
    "INDEX",
    "NONE",
    "ComplexType",
    "FloatType",
    "FunctionType",
    "IndexType",
    "IntegerType",
    "MemRefType",
    "NoneType",
    "PointerType",
    "ShapedType",
    "TensorType",
    "Type",
    "VectorType",
    "bit_width",
    "complex_of",
    "element_type",
    "float_type",
    "function",
    "integer",
    "is_float",
    "is_integer",
    "memref",
    "numpy_dtype",
    "pointer",
    "tensor",
    "vector",
    "with_element",
]


class Type:
    """Base of all types.  `text` is the MLIR spelling."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


class IntegerType(Type):
    """A signless integer `iN`."""

    __slots__ = ("width",)

    def __init__(self, width: int) -> None:
        super().__init__(f"i{width}")
        self.width = width


class IndexType(Type):
    """`index`: as wide as the kernel's index width says."""

    __slots__ = ()


class NoneType(Type):
    """`none`: of what has no value."""

    __slots__ = ()


class FloatType(Type):
    """A float format, named as in MLIR (`bf16`, `f8E4M3FN`)."""

    __slots__ = ("width",)

    def __init__(self, name: str, width: int) -> None:
        super().__init__(name)
        self.width = width


class ComplexType(Type):
    """`complex<element>`."""

    __slots__ = ("element",)

    def __init__(self, element: Type) -> None:
        super().__init__(f"complex<{element}>")
        self.element = element


class ShapedType(Type):
    """A type with static dims and an element type."""

    __slots__ = ("element", "shape")

    def __init__(self, text: str, shape: tuple[int, ...], element: Type) -> None:
        super().__init__(text)
        self.shape = shape
        self.element = element

    @property
    def rank(self) -> int:
        """The number of dims."""
        return len(self.shape)

    @property
    def elements(self) -> int:
        """The number of elements."""
        count = 1
        for dim in self.shape:
            count *= dim
        return count


class VectorType(ShapedType):
    """A vector that registers hold, `vector<4xf32>`."""

    __slots__ = ()


class TensorType(ShapedType):
    """A tensor; `minor_to_major` is the layout encoding, None for the default (row-major)."""

    __slots__ = ("minor_to_major",)

    def __init__(
        self, text: str, shape: tuple[int, ...], element: Type, minor_to_major: tuple[int, ...] | None
    ) -> None:
        super().__init__(text, shape, element)
        self.minor_to_major = minor_to_major


class MemRefType(ShapedType):
    """A buffer; `space` is the GPU address space (0 generic, 1 global, 3 shared, 5 private)."""

    __slots__ = ("space",)

    def __init__(self, text: str, shape: tuple[int, ...], element: Type, space: int) -> None:
        super().__init__(text, shape, element)
        self.space = space


class FunctionType(Type):
    """`(inputs) -> results`."""

    __slots__ = ("inputs", "results")

    def __init__(self, inputs: tuple[Type, ...], results: tuple[Type, ...]) -> None:
        outs = ", ".join(map(str, results))
        if len(results) != 1 or isinstance(results[0], FunctionType):
            outs = f"({outs})"
        super().__init__(f"({', '.join(map(str, inputs))}) -> {outs}")
        self.inputs = inputs
        self.results = results


class PointerType(Type):
    """`!llvm.ptr`, opaque, in an address space."""

    __slots__ = ("space",)

    def __init__(self, space: int) -> None:
        super().__init__("!llvm.ptr" if space == 0 else f"!llvm.ptr<{space}>")
        self.space = space


@cache
def integer(width: int) -> IntegerType:
    """The one signless integer type of a width."""
    return IntegerType(width)


@cache
def float_type(name: str) -> FloatType:
    """The float type spelled `name`; KeyError for another name."""
    return FloatType(name, BY_IR[name].bits)


def is_float_name(name: str) -> bool:
    """Whether a word names a float type, as MLIR writes it."""
    return name in BY_IR


I1, I8, I16, I32, I64 = (integer(w) for w in (1, 8, 16, 32, 64))
INDEX = IndexType("index")
NONE = NoneType("none")
F16, BF16, F32, F64 = (float_type(n) for n in ("f16", "bf16", "f32", "f64"))


@cache
def complex_of(element: Type) -> ComplexType:
    """The one complex type of an element type."""
    return ComplexType(element)


def _dims(shape: tuple[int, ...]) -> str:
    return "".join(f"{d}x" for d in shape)


@cache
def _vector(shape: tuple[int, ...], element: Type) -> VectorType:
    return VectorType(f"vector<{_dims(shape)}{element}>", shape, element)


def vector(shape: Sequence[int], element: Type) -> VectorType:
    """The one vector type of a shape and an element type."""
    return _vector(tuple(shape), element)


@cache
def _tensor(shape: tuple[int, ...], element: Type, minor_to_major: tuple[int, ...] | None) -> TensorType:
    # XLA prints a layout as a dense minor-to-major list in the encoding's place.
    extra = (
        "" if minor_to_major is None else f", dense<[{', '.join(map(str, minor_to_major))}]> : tensor<{len(shape)}xi64>"
    )
    return TensorType(f"tensor<{_dims(shape)}{element}{extra}>", shape, element, minor_to_major)


def tensor(shape: Sequence[int], element: Type, minor_to_major: Sequence[int] | None = None) -> TensorType:
    """A tensor type; a descending layout is the default and leaves no encoding."""
    shape = tuple(shape)
    if minor_to_major is not None:
        minor_to_major = tuple(minor_to_major)
        if minor_to_major == tuple(range(len(shape) - 1, -1, -1)):
            minor_to_major = None
    return _tensor(shape, element, minor_to_major)


@cache
def _memref(shape: tuple[int, ...], element: Type, space: int) -> MemRefType:
    extra = f", {space}" if space else ""
    return MemRefType(f"memref<{_dims(shape)}{element}{extra}>", shape, element, space)


def memref(shape: Sequence[int], element: Type, space: int = 0) -> MemRefType:
    """The one memref type; `space` is 0, or 3 for a block's shared memory."""
    return _memref(tuple(shape), element, space)


@cache
def _function(inputs: tuple[Type, ...], results: tuple[Type, ...]) -> FunctionType:
    return FunctionType(inputs, results)


def function(inputs: Sequence[Type], results: Sequence[Type]) -> FunctionType:
    """The one function type."""
    return _function(tuple(inputs), tuple(results))


@cache
def pointer(space: int = 0) -> PointerType:
    """The one `!llvm.ptr` of an address space."""
    return PointerType(space)


def element_type(type: Type) -> Type:
    """The element of a vector, tensor or memref; the type itself otherwise."""
    return type.element if isinstance(type, ShapedType) else type


def with_element(type: Type, element: Type) -> Type:
    """`type` with its scalar replaced: vector<4xf32> and i32 give vector<4xi32>; f32 and i32 give i32."""
    if isinstance(type, VectorType):
        return _vector(type.shape, element)
    if isinstance(type, TensorType):
        return _tensor(type.shape, element, type.minor_to_major)
    if isinstance(type, MemRefType):
        return _memref(type.shape, element, type.space)
    return element


def is_float(type: Type) -> bool:
    """Whether `type` is a float or a vector/tensor of floats."""
    return isinstance(element_type(type), FloatType)


def is_integer(type: Type) -> bool:
    """Whether `type` is iN or index, or a vector/tensor of such."""
    return isinstance(element_type(type), (IntegerType, IndexType))


def bit_width(type: Type) -> int:
    """Bits of one scalar; for a vector, bits of all its elements.  `index` counts as 64."""
    match type:
        case IntegerType() | FloatType():
            return type.width
        case IndexType():
            return 64
        case ComplexType():
            return 2 * bit_width(type.element)
        case ShapedType():
            return type.elements * bit_width(type.element)
        case PointerType():
            return 64
        case _:
            raise InternalError(f"type {type} has no bit width")


_NUMPY_INTS: dict[int, np.dtype] = {
    1: np.dtype(np.bool_),
    2: np.dtype(ml_dtypes.int2),
    4: np.dtype(ml_dtypes.int4),
    8: np.dtype(np.int8),
    16: np.dtype(np.int16),
    32: np.dtype(np.int32),
    64: np.dtype(np.int64),
}


def numpy_dtype(type: Type) -> np.dtype:
    """The numpy dtype of one element: signed ints (values are signless), bool for i1, int64 for index."""
    element = element_type(type)
    match element:
        case FloatType():
            return BY_IR[element.text].numpy
        case IntegerType() if element.width in _NUMPY_INTS:
            return _NUMPY_INTS[element.width]
        case IndexType():
            return _NUMPY_INTS[64]
        case ComplexType():
            return np.dtype(np.complex64 if element.element is F32 else np.complex128)
        case _:
            raise InternalError(f"type {type} has no numpy dtype")
