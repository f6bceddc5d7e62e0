"""HLO element types and what each is elsewhere: numpy/ml_dtypes, IR, LLVM; widths, float formats and packing.

One row a type.  HLO names are XLA's (`f32`, `bf16`, `s4`, `f8e4m3fn`, `pred`...); IR names are MLIR's.  `pred` is
`i8` in tensors and memory.  Integers are signless in IR: signedness is a property of the HLO op alone.  All that is
known of how a float type's bits are read stands in its `FloatFormat`, and nowhere else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np

from warpsmith.errors import InternalError, UnknownDType, did_you_mean

__all__ = ["BY_IR", "BY_NAME", "TF32", "DType", "FloatFormat", "Kind", "by_name", "from_numpy", "pack", "unpack"]

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


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """How the bits of a float are read: from the left a sign bit, `exponent` bits and `mantissa` bits.

    `largest`, `overflow` and `nan` are codes without the sign bit: of the largest finite number, of what a larger one
    rounds to, and of the quiet NaN.  Without `signed_zero` the code of -0 is the one NaN.  An `unsigned` format has no
    sign, no zero and no subnormal numbers.
    """

    exponent: int
    mantissa: int
    bias: int
    largest: int
    overflow: int
    nan: int
    signed_zero: bool = True
    unsigned: bool = False

    @property
    def bits(self) -> int:
        """The width of an element."""
        return self.exponent + self.mantissa + (not self.unsigned)

    @property
    def sign(self) -> int:
        """The code of the sign bit alone."""
        return 1 << (self.exponent + self.mantissa)

    @property
    def has_infinity(self) -> bool:
        """Whether larger numbers than the largest become infinity, not NaN nor the largest."""
        return self.overflow not in (self.largest, self.nan)

    @property
    def least_exponent(self) -> int:
        """The exponent of the least normal number."""
        return -self.bias if self.unsigned else 1 - self.bias

    @property
    def least_normal(self) -> float:
        """The least positive number that isn't subnormal."""
        return 2.0**self.least_exponent

    @property
    def least(self) -> float:
        """The least positive number."""
        return math.ldexp(1.0, self.least_exponent - self.mantissa)

    @property
    def most(self) -> float:
        """The largest finite number."""
        exponent, fraction = divmod(self.largest, 1 << self.mantissa)
        return (1 + fraction * self.epsilon) * 2.0 ** (exponent - self.bias)

    @property
    def epsilon(self) -> float:
        """The distance from 1 to the next number."""
        return 2.0**-self.mantissa

    @property
    def digits(self) -> int:
        """Decimal digits that tell any two numbers apart (C's max_digits10)."""
        return 1 + math.ceil((self.mantissa + 1) * math.log10(2.0))


def _ieee(exponent: int, mantissa: int) -> FloatFormat:
    """A format with infinities and NaNs under the largest exponent."""
    infinity = ((1 << exponent) - 1) << mantissa
    bias = (1 << (exponent - 1)) - 1
    return FloatFormat(exponent, mantissa, bias, infinity - 1, infinity, infinity | 1 << (mantissa - 1))


def _fnuz(exponent: int, mantissa: int, bias: int) -> FloatFormat:
    """A format whose one NaN has the code of -0: finite numbers alone, and one zero."""
    return FloatFormat(exponent, mantissa, bias, 0x7F, 0x80, 0x80, signed_zero=False)


TF32 = _ieee(8, 10)
"""What tensor cores keep of an f32 operand; no element type of its own."""


@dataclass(frozen=True, eq=False)
class DType:
    """One HLO element type.  Instances are unique, so `is` and `==` agree.  `bits` is the width (8 for pred)."""

    name: str
    kind: Kind
    bits: int
    numpy_name: str | None
    ir: str
    _format: FloatFormat | None = None

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
    def format(self) -> FloatFormat:
        """How the bits of a float type are read; InternalError for another type."""
        if self._format is None:
            raise InternalError(f"{self.name} is no float type")
        return self._format

    @property
    def exponent(self) -> int:
        """Bits of a float's exponent."""
        return self.format.exponent

    @property
    def mantissa(self) -> int:
        """Bits of a float's mantissa, the leading one left out."""
        return self.format.mantissa

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


def _f(name: str, numpy: str, ir: str, format: FloatFormat) -> DType:
    return DType(name, Kind.FLOAT, format.bits, numpy, ir, format)


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
    # Too large a number saturates, and there is no NaN: one becomes -0.
    _f("f4e2m1fn", "float4_e2m1fn", "f4E2M1FN", FloatFormat(2, 1, 1, largest=0x7, overflow=0x7, nan=0x8)),
    # Powers of two alone.
    _f(
        "f8e8m0fnu",
        "float8_e8m0fnu",
        "f8E8M0FNU",
        FloatFormat(8, 0, 127, largest=0xFE, overflow=0xFF, nan=0xFF, signed_zero=False, unsigned=True),
    ),
    _f("f8e3m4", "float8_e3m4", "f8E3M4", _ieee(3, 4)),
    _f("f8e4m3", "float8_e4m3", "f8E4M3", _ieee(4, 3)),
    _f("f8e4m3fn", "float8_e4m3fn", "f8E4M3FN", FloatFormat(4, 3, 7, largest=0x7E, overflow=0x7F, nan=0x7F)),
    _f("f8e4m3b11fnuz", "float8_e4m3b11fnuz", "f8E4M3B11FNUZ", _fnuz(4, 3, 11)),
    _f("f8e4m3fnuz", "float8_e4m3fnuz", "f8E4M3FNUZ", _fnuz(4, 3, 8)),
    _f("f8e5m2", "float8_e5m2", "f8E5M2", _ieee(5, 2)),
    _f("f8e5m2fnuz", "float8_e5m2fnuz", "f8E5M2FNUZ", _fnuz(5, 2, 16)),
    _f("f16", "float16", "f16", _ieee(5, 10)),
    _f("bf16", "bfloat16", "bf16", _ieee(8, 7)),
    _f("f32", "float32", "f32", _ieee(8, 23)),
    _f("f64", "float64", "f64", _ieee(11, 52)),
    DType("c64", Kind.COMPLEX, 64, "complex64", "complex<f32>"),
    DType("c128", Kind.COMPLEX, 128, "complex128", "complex<f64>"),
    DType("token", Kind.TOKEN, 0, None, "none"),
    DType("opaque", Kind.OPAQUE, 0, None, "none"),
]

BY_NAME: dict[str, DType] = {row.name: row for row in _ROWS}
BY_IR: dict[str, DType] = {row.ir: row for row in _ROWS if row.is_float}
"""Float types by their names in the IR."""
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
