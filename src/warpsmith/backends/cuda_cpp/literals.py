"""Numbers as C++ text.

In: values of an IR type.  Out: the shortest decimal that gives the same bits when C++ reads it; bits where none does.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from warpsmith.backends.cuda_cpp.types import FLOATS, CType, Expr, Level, atom, integer_type, prefix
from warpsmith.ir.core.attributes import FloatAttr
from warpsmith.ir.core.types import BF16, F16, F32, F64, Type

__all__ = ["float_literal", "integer_literal", "integer_value", "raw_literal", "unsigned_literal"]

_SMALL = 4096
_FROM_BITS: dict[Type, str] = {
    F64: "__longlong_as_double",
    F32: "__uint_as_float",
    F16: "__ushort_as_half",
    BF16: "__ushort_as_bfloat16",
}
_QUIET_NAN: dict[Type, int] = {F64: 0x7FF8 << 48, F32: 0x7FC00000}
_NARROW: dict[Type, tuple[np.dtype[Any], str]] = {
    F16: (np.dtype(np.float16), "__float2half"),
    BF16: (np.dtype(ml_dtypes.bfloat16), "__float2bfloat16"),
}


def integer_literal(value: int, bits: int) -> Expr:
    """A constant; it takes the sign of what it is combined with."""
    if bits == 1:
        return atom("true" if value else "false", integer_type(1, False))
    type = integer_type(max(bits, 32), True)
    if value == -(1 << 63):
        return Expr("INT64_MIN", Level.ATOM, type, literal=value)
    if value == -(1 << 31):
        return Expr("INT_MIN" if bits <= 32 else str(value), Level.ATOM, type, literal=value)
    return Expr(str(value), Level.ATOM if value >= 0 else Level.PREFIX, type, literal=value)


def unsigned_literal(value: int, bits: int) -> Expr:
    """A constant without a sign; large ones are patterns of bits and stand in hexadecimal."""
    value &= (1 << bits) - 1
    type = integer_type(max(bits, 32), False)
    text = (str(value) if value <= _SMALL else hex(value)) + ("u" if bits <= 32 else "ull")
    return Expr(text, Level.ATOM, type, literal=value)


def integer_value(value: int, bits: int, *, signed: bool) -> str:
    """A number to put into a variable of so many bits."""
    value &= (1 << bits) - 1
    if signed:
        value -= (value >> (bits - 1)) << bits
        return integer_literal(value, bits).text
    return str(value) if value <= _SMALL or bits < 32 else unsigned_literal(value, bits).text


def float_literal(attribute: FloatAttr) -> Expr:
    """A float constant.  A float of 8 or 4 bits is its code."""
    type = attribute.type
    c = FLOATS.get(type)
    if c is None:
        return unsigned_literal(attribute.bits, 8)
    value = attribute.value
    sign = math.copysign(1, value) < 0
    if math.isinf(value) or attribute.bits == _QUIET_NAN.get(type):
        special = atom("NAN" if math.isnan(value) else "INFINITY", c)
        if type in (F32, F64):
            return prefix("-", special, c) if sign else special
    if not math.isfinite(value):
        return atom(f"{_FROM_BITS[type]}({hex(attribute.bits)})", c)
    if type is F64:
        return _signed(repr(value), c)
    if type is F32:
        return _signed(_positional(str(np.float32(value))) + "f", c)
    dtype, function = _NARROW[type]
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        with np.errstate(over="ignore"):
            back = float(np.float32(text).astype(dtype))
        if back == value:
            return atom(f"{function}({_positional(text)}f)", c)
    return atom(f"{_FROM_BITS[type]}({hex(attribute.bits)})", c)


def raw_literal(attribute: FloatAttr) -> str:
    """A float of 16 bits by its bits: what can be written where nothing is computed."""
    return f"{FLOATS[attribute.type].name}_raw{{{attribute.bits:#06x}}}"


def _signed(text: str, type: CType) -> Expr:
    return Expr(text, Level.PREFIX if text.startswith("-") else Level.ATOM, type)


def _positional(text: str) -> str:
    """With a point where there is neither a point nor an exponent."""
    return text if any(each in text for each in ".e") else text + ".0"
