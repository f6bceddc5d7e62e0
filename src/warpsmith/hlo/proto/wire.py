"""Protocol buffers' wire format: bytes and a message's table in, its fields by name out.

In: bytes, the name of a message in `schema.MESSAGES`.  Out: a `Message`: a dict of the fields that are there; asking
for one that isn't gives its default (zero, "", an empty list).  Fields that the table doesn't know are skipped, so that
newer versions read as well.  Source: protobuf.dev, "Encoding".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from warpsmith.errors import BadProto
from warpsmith.hlo.proto.schema import ENUMS, MESSAGES, Field

__all__ = ["Message", "decode"]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DEEPEST = 100
_DEFAULTS: dict[str, Any] = {"string": "", "bytes": b"", "float": 0.0, "double": 0.0, "bool": False}
_FIXED = {"float": ("<f", _FIXED32), "double": ("<d", _FIXED64)}


class Message(dict[str, Any]):
    """The fields of one message by name."""

    __slots__ = ("kind",)

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def __missing__(self, name: str) -> Any:
        field = next(each for each in MESSAGES[self.kind].values() if each.name == name)
        if field.repeated:
            return []
        if field.kind in MESSAGES:
            return Message(field.kind)
        if field.kind in ENUMS:
            return ENUMS[field.kind].get(0, "")
        return _DEFAULTS.get(field.kind, 0)


def decode(data: bytes | memoryview, kind: str, depth: int = 0) -> Message:
    """The message of `kind` that `data` holds.  BadProto where the bytes are none."""
    if depth > _DEEPEST:
        raise BadProto(f"messages are nested more than {_DEEPEST} deep")
    message = Message(kind)
    fields = MESSAGES[kind]
    for number, wire, value in _parts(memoryview(data), kind):
        field = fields.get(number)
        if field is None:
            continue
        if field.repeated:
            message.setdefault(field.name, []).extend(_values(field, wire, value, kind, depth))
        else:
            message[field.name] = _value(field, wire, value, kind, depth)
    return message


def _parts(data: memoryview, kind: str) -> Iterator[tuple[int, int, Any]]:
    """(number, wire type, value) of each field: an integer, or the bytes."""
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at, kind)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(data, at, kind)
            yield number, wire, value
            continue
        if wire == _BYTES:
            size, at = _varint(data, at, kind)
        elif wire in (_FIXED32, _FIXED64):
            size = 4 if wire == _FIXED32 else 8
        else:
            raise _bad(kind, f"byte {at} starts a field of wire type {wire}")
        if size > end - at:
            raise _bad(kind, f"field {number} ends {size - (end - at)} bytes behind the end")
        yield number, wire, data[at : at + size]
        at += size


def _varint(data: memoryview, at: int, kind: str) -> tuple[int, int]:
    value = shift = 0
    while at < len(data):
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift > 63:
            break
    raise _bad(kind, f"byte {at} belongs to no number")


def _values(field: Field, wire: int, value: Any, kind: str, depth: int) -> list[Any]:
    """One element of a repeated field, or the many of a packed one."""
    if wire != _BYTES or field.kind in ("string", "bytes") or field.kind in MESSAGES:
        return [_value(field, wire, value, kind, depth)]
    if field.kind in _FIXED:
        code, width = _FIXED[field.kind][0][1], struct.calcsize(_FIXED[field.kind][0])
        if len(value) % width:
            raise _bad(kind, f"'{field.name}' has {len(value)} bytes, no multiple of {width}")
        return list(struct.unpack(f"<{len(value) // width}{code}", value))
    found: list[Any] = []
    at = 0
    while at < len(value):
        number, at = _varint(value, at, kind)
        found.append(_number(field, number))
    return found


def _value(field: Field, wire: int, value: Any, kind: str, depth: int) -> Any:
    expected = _BYTES if field.kind in ("string", "bytes") or field.kind in MESSAGES else _VARINT
    if field.kind in _FIXED:
        expected = _FIXED[field.kind][1]
    if wire != expected:
        raise _bad(kind, f"'{field.name}' has wire type {wire}, not {expected}")
    if field.kind in MESSAGES:
        return decode(value, field.kind, depth + 1)
    if field.kind == "string":
        return bytes(value).decode("utf-8", "surrogateescape")
    if field.kind == "bytes":
        return bytes(value)
    if field.kind in _FIXED:
        return struct.unpack(_FIXED[field.kind][0], value)[0]
    return _number(field, value)


def _number(field: Field, value: int) -> Any:
    if field.kind == "bool":
        return value != 0
    if field.kind in ENUMS:
        return ENUMS[field.kind].get(value, str(value))
    return value - (1 << 64) if field.kind == "int" and value >> 63 else value


def _bad(kind: str, cause: str) -> BadProto:
    return BadProto(f"this isn't a {kind}: {cause}", help="the file may be cut off, or hold something else")
