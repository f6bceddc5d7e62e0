"""HLO element types and what each is elsewhere: numpy/ml_dtypes, IR, LLVM; widths and packing.

One row a type.  HLO names are XLA's (`f32`, `bf16`, `s4`, `f8e4m3fn`, `pred`...); IR names are MLIR's.  `pred` is
`i8` in tensors and memory (reference emitters.md 6.1).  Integers are signless in IR: signedness is a property of the
HLO op alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np

from warpsmith.errors import UnknownDType, did_you_mean

__all__ = ["BY_NAME", "DType", "Kind", "by_name", "from_numpy", "pack", "unpack"]

_Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class Kind(Enum):
    """What an element is."""

    PRED = "pred"
    SINT = "signed"
    UINT = "unsigned"
    FLOAT = "float"
    COMPLEX = "complex"
    TOKEN = "token"
    OPAQUE = "opaque"


@dataclass(frozen=True, eq=False)
class DType:
    """One HLO element type.  Instances are unique, so `is` and `==` agree.

    `bits` is the logical width (8 for pred); `exponent`/`mantissa` are the explicit field widths of a float.
    """

    name: str
    kind: Kind
    bits: int
    numpy_name: str | None
    ir: str
    exponent: int = 0
    mantissa: int = 0

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return (by_name, (self.name,))

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The numpy dtype that holds one element an item (sub-byte types take a byte each)."""
        if self.numpy_name is None:
            raise UnknownDType(f"{self.name} has no array form")
        scalar = getattr(ml_dtypes, self.numpy_name, None)
        return np.dtype(scalar if scalar is not None else self.numpy_name)

    @property
    def is_float(self) -> bool:
        """Whether it is a real floating point type, of whatever width."""
        return self.kind is Kind.FLOAT

    @property
    def is_complex(self) -> bool:
        """Whether it is c64 or c128."""
        return self.kind is Kind.COMPLEX

    @property
    def is_integer(self) -> bool:
        """Signed or unsigned; pred isn't an integer."""
        return self.kind is Kind.SINT or self.kind is Kind.UINT

    @property
    def is_signed(self) -> bool:
        """Whether it is a signed integer type."""
        return self.kind is Kind.SINT

    @property
    def is_array_element(self) -> bool:
        """Whether arrays can have it (a token or a tuple's place-holder can't)."""
        return self.numpy_name is not None

    def byte_size(self, elements: int) -> int:
        """Bytes that `elements` packed elements take in memory (sub-byte types pack low bits first)."""
        return (elements * self.bits + 7) // 8


def _f(name: str, bits: int, numpy: str, ir: str, exponent: int, mantissa: int) -> DType:
    return DType(name, Kind.FLOAT, bits, numpy, ir, exponent, mantissa)


_ROWS = [
    DType("pred", Kind.PRED, 8, "bool", "i8"),
    DType("s2", Kind.SINT, 2, "int2", "i2"),
    DType("s4", Kind.SINT, 4, "int4", "i4"),
    DType("s8", Kind.SINT, 8, "int8", "i8"),
    DType("s16", Kind.SINT, 16, "int16", "i16"),
    DType("s32", Kind.SINT, 32, "int32", "i32"),
    DType("s64", Kind.SINT, 64, "int64", "i64"),
    DType("u2", Kind.UINT, 2, "uint2", "i2"),
    DType("u4", Kind.UINT, 4, "uint4", "i4"),
    DType("u8", Kind.UINT, 8, "uint8", "i8"),
    DType("u16", Kind.UINT, 16, "uint16", "i16"),
    DType("u32", Kind.UINT, 32, "uint32", "i32"),
    DType("u64", Kind.UINT, 64, "uint64", "i64"),
    _f("f4e2m1fn", 4, "float4_e2m1fn", "f4E2M1FN", 2, 1),
    _f("f8e8m0fnu", 8, "float8_e8m0fnu", "f8E8M0FNU", 8, 0),
    _f("f8e3m4", 8, "float8_e3m4", "f8E3M4", 3, 4),
    _f("f8e4m3", 8, "float8_e4m3", "f8E4M3", 4, 3),
    _f("f8e4m3fn", 8, "float8_e4m3fn", "f8E4M3FN", 4, 3),
    _f("f8e4m3b11fnuz", 8, "float8_e4m3b11fnuz", "f8E4M3B11FNUZ", 4, 3),
    _f("f8e4m3fnuz", 8, "float8_e4m3fnuz", "f8E4M3FNUZ", 4, 3),
    _f("f8e5m2", 8, "float8_e5m2", "f8E5M2", 5, 2),
    _f("f8e5m2fnuz", 8, "float8_e5m2fnuz", "f8E5M2FNUZ", 5, 2),
    _f("f16", 16, "float16", "f16", 5, 10),
    _f("bf16", 16, "bfloat16", "bf16", 8, 7),
    _f("f32", 32, "float32", "f32", 8, 23),
    _f("f64", 64, "float64", "f64", 11, 52),
    DType("c64", Kind.COMPLEX, 64, "complex64", "complex<f32>"),
    DType("c128", Kind.COMPLEX, 128, "complex128", "complex<f64>"),
    DType("token", Kind.TOKEN, 0, None, "none"),
    DType("opaque", Kind.OPAQUE, 0, None, "none"),
]

BY_NAME: dict[str, DType] = {row.name: row for row in _ROWS}
_BY_NUMPY: dict[np.dtype[Any], DType] = {row.numpy: row for row in _ROWS if row.is_array_element}


def by_name(name: str) -> DType:
    """The element type with HLO's name `name`; UnknownDType with the nearest name otherwise."""
    found = BY_NAME.get(name)
    if found is None:
        raise UnknownDType(f"unknown element type '{name}'", help=did_you_mean(name, BY_NAME))
    return found


def from_numpy(dtype: np.dtype[Any]) -> DType:
    """The element type whose arrays have numpy dtype `dtype` (byte order native)."""
    found = _BY_NUMPY.get(np.dtype(dtype))
    if found is None:
        raise UnknownDType(f"no HLO element type for numpy dtype '{dtype}'")
    return found


def pack(codes: _Bytes, bits: int) -> _Bytes:
    """Flat bytes that hold an element each (in their low 4 or 2 bits) as packed bytes, element 0 lowest.

    Bits beyond the last element are zero.
    """
    per_byte = 8 // bits
    packed = np.zeros(-(-codes.size // per_byte), np.uint8)
    for part in range(per_byte):
        chosen = codes[part::per_byte] & np.uint8((1 << bits) - 1)
        packed[: chosen.size] |= chosen << np.uint8(part * bits)
    return packed


def unpack(packed: _Bytes, bits: int, elements: int) -> _Bytes:
    """The inverse of `pack`: a byte for each of the first `elements`, upper bits zero."""
    per_byte = 8 // bits
    codes = np.empty((packed.size, per_byte), np.uint8)
    for part in range(per_byte):
        codes[:, part] = (packed >> np.uint8(part * bits)) & np.uint8((1 << bits) - 1)
    return codes.reshape(-1)[:elements]
