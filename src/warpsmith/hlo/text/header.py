"""Reading a module's header: its name, its fields, and the stack frame tables.

In: a `Scanner` at the start of a text.  Out: the name (None without a header) and the typed fields.  Both `HloModule m,
field=value` and `HloModule m:` are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from warpsmith.errors import BadAttribute, did_you_mean
from warpsmith.hlo.attributes import StackFrames
from warpsmith.hlo.text.attribute_table import HEADER
from warpsmith.hlo.text.lexer import Scanner, checked_int
from warpsmith.hlo.text.printer import STACK_FRAMES
from warpsmith.hlo.text.shapes import ShapeReader

__all__ = ["check_new", "read_header", "unknown_attribute"]

_COMMENT = r"/\*(?:[^*]|\*(?!/))*\*/"
_HEADER = re.compile(rf"HloModule(?![\w.\-])(?:[ \t]|{_COMMENT})*((?:(?!/[*/])[^\s,:{{}}()])*)")
_FIELD = re.compile(rf",(?:\s|{_COMMENT}|//[^\n]*)*([A-Za-z_][\w\-]*)\s*=\s*")
_ROW_FIELD = re.compile(r"(\w+)=(-?[0-9]+)")
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")


def read_header(scanner: Scanner, shapes: ShapeReader) -> tuple[str | None, dict[str, object]]:
    """The module's name and header fields; (None, {}) where the text starts with a computation."""
    attributes: dict[str, object] = {}
    match = scanner.match(_HEADER)
    if match is None:
        return None, attributes
    scanner.accept(":")
    while (field := scanner.match(_FIELD)) is not None:
        name = field.group(1)
        kind = HEADER.get(name)
        if kind is None:
            raise unknown_attribute(scanner, "header field", name, field.start(1), tuple(HEADER))
        check_new(scanner, attributes, "header field", name, field.start(1))
        attributes[name] = kind.read(scanner, shapes)
    if scanner.peek() == ",":
        scanner.pos += 1
        raise scanner.expected("a header field (name=value) after ','")
    if scanner.text.startswith("FileNames", scanner.skip()):
        attributes[STACK_FRAMES] = _stack_frames(scanner)
    return match.group(1), attributes


def _stack_frames(scanner: Scanner) -> StackFrames:
    names: list[list[str]] = []
    rows: list[list[tuple[tuple[str, int], ...]]] = []
    for title in _TABLES:
        scanner.expect(title, "before its table")
        if title.endswith("Names"):
            names.append([])
            while _row_number(scanner, len(names[-1]) + 1):
                names[-1].append(scanner.string("a quoted name"))
        else:
            rows.append([])
            while _row_number(scanner, len(rows[-1]) + 1):
                rows[-1].append(_table_row(scanner))
    return StackFrames(tuple(names[0]), tuple(names[1]), tuple(rows[0]), tuple(rows[1]))


def _row_number(scanner: Scanner, expected: int) -> bool:
    """Whether a table's next row stands here; its number is read."""
    if not scanner.peek().isdigit():
        return False
    start = scanner.pos
    number = scanner.integer("a row number")
    if number != expected:
        raise scanner.error(f"row {number} stands where row {expected} should", start, len(str(number)))
    return True


def _table_row(scanner: Scanner) -> tuple[tuple[str, int], ...]:
    scanner.expect("{", "before a row's fields")
    fields: list[tuple[str, int]] = []
    while not scanner.accept("}"):
        match = scanner.match(_ROW_FIELD)
        if match is None:
            raise scanner.expected("a field (name=integer) or '}'")
        fields.append((match.group(1), checked_int(scanner, match.group(2), match.start(2))))
    return tuple(fields)


def check_new(scanner: Scanner, attributes: Mapping[str, object], what: str, name: str, start: int) -> None:
    """BadAttribute if `name` has been read already."""
    if name in attributes:
        raise BadAttribute(f"{what} '{name}' is given twice", span=scanner.span(start, len(name)))


def unknown_attribute(scanner: Scanner, what: str, name: str, start: int, known: tuple[str, ...]) -> BadAttribute:
    """The error that there is no attribute `name` here."""
    return BadAttribute(
        f"unknown {what} '{name}'",
        span=scanner.span(start, len(name)),
        help=did_you_mean(name, known) or f"known here: {', '.join(known)}",
    )
