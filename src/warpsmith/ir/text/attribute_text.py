"""The MLIR spelling of attributes, and the pieces of it that the parser needs back (floats, strings, dense data).

In: attributes.  Out: text.  Floats are printed so that their bits come back.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import numpy as np

from warpsmith.dtypes import BY_NAME
from warpsmith.errors import InternalError
from warpsmith.indexing import IndexingMap, print_map
from warpsmith.indexing.map_printer import variable_names
from warpsmith.ir.core.attributes import (
    ArrayAttr,
    Attribute,
    DenseArrayAttr,
    DenseAttr,
    DictAttr,
    FloatAttr,
    IndexingMapAttr,
    IntegerAttr,
    OpaqueAttr,
    StringAttr,
    SymbolRefAttr,
    TypeAttr,
    UnitAttr,
    float_attr,
    scalar_attr,
)
from warpsmith.ir.core.types import I1, ComplexType, FloatType, Type, bit_width

__all__ = [
    "MAP_PREFIX",
    "attribute_name",
    "attribute_text",
    "float_text",
    "map_text",
    "quote",
    "symbol_text",
    "unquote",
]

MAP_PREFIX = "#xla_gpu.indexing_map<"

_PLAIN_NAME = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)
_PLAIN_SYMBOL = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)
_UNSAFE = re.compile(rb"[^ !#-\[\]-~]")
_ESCAPE = re.compile(r'\\(?:([nt"\\])|([0-9A-Fa-f]{2})|(.?))')
_LONG_LINE = 100
_SIGNIFICAND = {dtype.ir: dtype.mantissa + 1 for dtype in BY_NAME.values() if dtype.is_float}
_PADDING = 3  # zeros that a number without exponent may begin or end with
_HEX_FROM = 64  # elements; a longer dense list is printed as the bytes of its elements


# -------------------------------------------------------------------------------------------------------------- strings
def quote(text: str) -> str:
    """`text` as an MLIR string: bytes outside printable ASCII as two hexadecimal digits."""
    raw = text.encode("utf-8", "surrogateescape")
    escaped = _UNSAFE.sub(lambda m: b"\\\\" if m[0] == b"\\" else b"\\%02X" % m[0][0], raw)
    return f'"{escaped.decode("ascii")}"'


def unquote(token: str) -> str:
    """The text of a string token (with its quotes); ValueError for a bad escape."""
    body = token[1:-1]
    if "\\" not in body:
        return body
    raw = bytearray()
    last = 0
    for found in _ESCAPE.finditer(body):
        raw += body[last : found.start()].encode("utf-8", "surrogateescape")
        if found[1] is not None:
            raw += {"n": b"\n", "t": b"\t"}.get(found[1], found[1].encode())
        elif found[2] is not None:
            raw.append(int(found[2], 16))
        else:
            raise ValueError(f"unknown escape '\\{found[3]}' in a string")
        last = found.end()
    raw += body[last:].encode("utf-8", "surrogateescape")
    return raw.decode("utf-8", "surrogateescape")


def attribute_name(name: str) -> str:
    """An attribute's name as text: quoted unless it's a plain word."""
    return name if _PLAIN_NAME.fullmatch(name) else quote(name)


def symbol_text(name: str) -> str:
    """A symbol as text: `@name`, quoted if it must be."""
    return f"@{name}" if _PLAIN_SYMBOL.fullmatch(name) else f"@{quote(name)}"


# -------------------------------------------------------------------------------------------------------------- numbers
def float_text(attribute: FloatAttr) -> str:
    """The digits of a float, without its type, as MLIR picks them.

    Six significant digits in scientific notation if they give the bits back; else as many as the format needs; else
    (and for NaN and infinities) the bits in hexadecimal.
    """
    type = attribute.type
    assert isinstance(type, FloatType)
    value = attribute.value
    if value - value == 0:  # finite
        with np.errstate(over="ignore", under="ignore"):
            short = _scientific(value)
            if float_attr(float(short), type) is attribute:
                return short
            exact = _natural(value, type)
            if "." in exact and float_attr(float(exact), type) is attribute:
                return exact
    return f"0x{attribute.bits:0{(type.width + 3) // 4}X}"


def _digits(value: float, precision: int) -> tuple[str, int]:
    """At most `precision` significant digits of |value|, and the power of ten of the last one.

    LLVM's rounding, which isn't quite to nearest: the exact decimal is cut to about the digits needed, then rounded by
    the next digit where one is left.
    """
    numerator, denominator = abs(value).as_integer_ratio()
    power = -(denominator.bit_length() - 1)
    number = numerator * 5**-power
    spare = (number.bit_length() - (precision * 196 + 58) // 59) * 59 // 196
    if spare > 0:
        number //= 10**spare
        power += spare
    text = str(number)
    if len(text) > precision:
        dropped = len(text) - precision
        text = str(int(text[:precision]) + (text[precision] >= "5"))
        power += dropped
    digits = text.rstrip("0") or "0"
    return digits, power + len(text) - len(digits) if number else 0


def _sign(value: float) -> str:
    return "-" if math.copysign(1.0, value) < 0 else ""


def _scientific(value: float) -> str:
    digits, power = _digits(value, 6)
    return f"{_sign(value)}{digits[0]}.{digits[1:]:0<6}e{power + len(digits) - 1:+03d}"


def _natural(value: float, type: FloatType) -> str:
    """LLVM's default text of a float: no exponent where few zeros do without one."""
    precision = 2 + _SIGNIFICAND[type.text] * 59 // 196
    digits, power = _digits(value, precision)
    first = power + len(digits) - 1  # the power of ten of the first digit
    if power >= 0:
        if power <= _PADDING and len(digits) + power <= precision:
            return _sign(value) + digits + "0" * power
    elif first >= 0:
        return f"{_sign(value)}{digits[: first + 1]}.{digits[first + 1 :]}"
    elif -first <= _PADDING:
        return f"{_sign(value)}0.{'0' * (-first - 1)}{digits}"
    return f"{_sign(value)}{digits[0]}.{digits[1:] or '0'}E{first:+d}"


def _element(value: np.generic, type: Type) -> str:
    """One element of a dense list."""
    if isinstance(type, ComplexType):
        part = type.element
        real, imag = (scalar_attr(p, part) for p in (np.real(value), np.imag(value)))
        return f"({_element_text(real)},{_element_text(imag)})"
    return _element_text(scalar_attr(value, type))


def _element_text(scalar: IntegerAttr | FloatAttr) -> str:
    if isinstance(scalar, FloatAttr):
        return float_text(scalar)
    return ("true" if scalar.value else "false") if scalar.type is I1 else str(scalar.value)


def _nested(array: np.ndarray, type: Type) -> str:
    if array.ndim == 1:
        return f"[{', '.join(_element(v, type) for v in array)}]"
    return f"[{', '.join(_nested(part, type) for part in array)}]"


def _dense(attribute: DenseAttr) -> str:
    type = attribute.type
    element = type.element
    if type.elements == 0:
        body = ""
    elif attribute.is_splat:
        body = _element(attribute.array.reshape(-1)[0], element)
    elif type.elements > _HEX_FROM and bit_width(element) % 8 == 0:
        body = f'"0x{attribute.data.hex().upper()}"'
    else:
        body = _nested(attribute.array, element)
    return f"dense<{body}> : {type}"


# ----------------------------------------------------------------------------------------------------------- attributes
def _empty_map(map: IndexingMap) -> str:
    """A map without points, its variables kept: `print_map` says no more than KNOWN EMPTY."""
    dims, symbols = variable_names(map)
    bounds = [f"{name} in [0, -1]" for name in (*dims, *symbols)]
    tail = f"[{', '.join(symbols)}]" if symbols else ""
    return f"({', '.join(dims)}){tail} -> ({', '.join('0' for _ in map.results)}), domain: {', '.join(bounds)}"


def map_text(map: IndexingMap) -> str:
    """An indexing map as an attribute; a long one has its domain on a line of its own."""
    text = _empty_map(map) if map.known_empty else print_map(map)
    cut = text.find(" domain:")
    if cut < 0 or len(text) < _LONG_LINE:
        return f'{MAP_PREFIX}"{text}">'
    return f'{MAP_PREFIX}"{text[:cut]}"\n "{text[cut + 1 :]}">'


def dictionary_text(items: Iterable[tuple[str, Attribute]]) -> str:
    """`{a = 1 : i32, b}`."""
    parts = [
        attribute_name(k) if type(v) is UnitAttr else f"{attribute_name(k)} = {attribute_text(v)}" for k, v in items
    ]
    return f"{{{', '.join(parts)}}}"


def _integer(attribute: IntegerAttr) -> str:
    if attribute.type is I1:
        return "true" if attribute.value else "false"
    return f"{attribute.value} : {attribute.type}"


def _dense_array(attribute: DenseArrayAttr) -> str:
    if not attribute.values:
        return f"array<{attribute.element}>"
    if attribute.element is I1:
        return f"array<i1: {', '.join('true' if v else 'false' for v in attribute.values)}>"
    return f"array<{attribute.element}: {', '.join(map(str, attribute.values))}>"


def attribute_text(attribute: Attribute) -> str:
    """The MLIR spelling of an attribute."""
    match attribute:
        case IntegerAttr():
            return _integer(attribute)
        case FloatAttr():
            return f"{float_text(attribute)} : {attribute.type}"
        case StringAttr():
            return quote(attribute.value)
        case SymbolRefAttr():
            return symbol_text(attribute.name)
        case TypeAttr():
            return attribute.type.text
        case UnitAttr():
            return "unit"
        case ArrayAttr():
            return f"[{', '.join(map(attribute_text, attribute.items))}]"
        case DictAttr():
            return dictionary_text(attribute.items)
        case DenseArrayAttr():
            return _dense_array(attribute)
        case DenseAttr():
            return _dense(attribute)
        case IndexingMapAttr():
            return map_text(attribute.map)
        case OpaqueAttr():
            return attribute.text
        case _:
            raise InternalError(f"attribute {attribute!r} has no text")
