"""Reading attribute values: one function a kind of value.

In: a `Scanner` after `name=`.  Out: the typed value.  Computations and instructions are read as `Reference`s, which
`resolve` replaces when all of them are known.  `attribute_table` says which attribute has which kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from warpsmith.errors import BadAttribute, did_you_mean
from warpsmith.hlo.attributes import (
    EntryLayout,
    FrontendAttributes,
    OpMetadata,
    RawText,
)
from warpsmith.hlo.shapes import AnyShape
from warpsmith.hlo.text.lexer import MAX_DEPTH, Scanner, checked_int
from warpsmith.hlo.text.literals import read_shaped_literal
from warpsmith.hlo.text.shapes import ShapeReader


@dataclass(frozen=True, slots=True)
class Reference:
    """A name that stands for a computation or an instruction, not resolved yet."""

    name: str
    start: int


Read = Callable[[Scanner, ShapeReader], object]

_WORD = re.compile(r"[A-Za-z_][\w.\-]*")
_INT_LIST = re.compile(r"\{\s*((?:-?[0-9]+\s*(?:,\s*-?[0-9]+\s*)*)?)\}")
_FLOAT = re.compile(r"-?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|inf|nan)")
FIELD_NAME = re.compile(r"([\w.\-]+)\s*=\s*")
"""`name=` in a value that has fields."""


def bad_value(scanner: Scanner, what: str, help: str | None = None) -> BadAttribute:
    """The error to raise where `what` was expected and something else stands."""
    word, length = scanner.found()
    return BadAttribute(f"expected {what}, found {word}", span=scanner.span(scanner.pos, length), help=help)


def read_int(scanner: Scanner, shapes: ShapeReader) -> object:
    """`-3`.  A reader takes an attribute's value at the scanner's place; HloSyntaxError for anything else."""
    return scanner.integer("an integer")


def read_float(scanner: Scanner, shapes: ShapeReader) -> object:
    """`0.5`, `1e-3`, `inf`, `nan`, as a Python float."""
    match = scanner.match(_FLOAT)
    if match is None:
        raise bad_value(scanner, "a number")
    return float(match.group())


def read_bool(scanner: Scanner, shapes: ShapeReader) -> object:
    """`true` or `false`."""
    match = scanner.match(_WORD)
    if match is None or match.group() not in ("true", "false"):
        if match is not None:
            scanner.pos = match.start()
        raise bad_value(scanner, "true or false")
    return match.group() == "true"


def read_word(scanner: Scanner, shapes: ShapeReader) -> object:
    """A bare word, such as `LT` or `OUTPUT_OPERAND`."""
    match = scanner.match(_WORD)
    if match is None:
        raise bad_value(scanner, "a word")
    return match.group()


def word_of(*words: str) -> Read:
    """A reader of one of `words`."""

    def read(scanner: Scanner, shapes: ShapeReader) -> object:
        match = scanner.match(_WORD)
        if match is None or match.group() not in words:
            if match is not None:
                scanner.pos = match.start()
            near = did_you_mean(match.group(), words) if match is not None else None
            raise bad_value(scanner, f"one of {', '.join(words)}", near)
        return match.group()

    return read


def read_string(scanner: Scanner, shapes: ShapeReader) -> object:
    """A quoted string, unescaped."""
    return scanner.string("a quoted string")


def read_string_or_json(scanner: Scanner, shapes: ShapeReader) -> object:
    """A quoted string, or {...} as it is written (RawText)."""
    return RawText(scanner.balanced()) if scanner.peek() == "{" else scanner.string("a quoted string or {...}")


def list_of(scanner: Scanner, item: Callable[[], object], what: str, depth: int = 0) -> tuple[object, ...]:
    """`{item, item}`."""
    if not scanner.accept("{"):
        raise bad_value(scanner, f"'{{' before {what}")
    items: list[object] = []
    if scanner.accept("}"):
        return ()
    while True:
        items.append(item())
        if scanner.accept("}"):
            return tuple(items)
        if not scanner.accept(","):
            raise bad_value(scanner, f"',' or '}}' in {what}")


def read_ints(scanner: Scanner, shapes: ShapeReader) -> object:
    """`{1,2}`, or lists of such lists (`{{0,1},{2,3}}`)."""
    match = scanner.match(_INT_LIST)
    if match is not None:
        text = match.group(1)
        if len(text) < 19:
            return tuple(map(int, text.split(","))) if text.strip() else ()
        return tuple(checked_int(scanner, part.strip(), match.start(1)) for part in text.split(","))
    if scanner.peek() != "{":
        raise bad_value(scanner, "a list of integers in braces")
    return _int_lists(scanner, 0)


def _int_lists(scanner: Scanner, depth: int) -> tuple[object, ...]:
    if depth >= MAX_DEPTH:
        raise scanner.error(f"lists are nested more than {MAX_DEPTH} deep")

    def item() -> object:
        return _int_lists(scanner, depth + 1) if scanner.peek() == "{" else scanner.integer("an integer")

    return list_of(scanner, item, "a list of integers")


def read_bools(scanner: Scanner, shapes: ShapeReader) -> object:
    """`{true, false}`, or one of them by itself, which is read as a bool."""
    if scanner.peek() != "{":
        return read_bool(scanner, shapes)
    return list_of(scanner, lambda: read_bool(scanner, shapes), "a list of true and false")


def read_precisions(scanner: Scanner, shapes: ShapeReader) -> object:
    """`{highest,default}`, in letters of either case, as a tuple of words."""
    return list_of(scanner, lambda: str(read_word(scanner, shapes)).lower(), "a list of precisions")


def read_reference(scanner: Scanner, shapes: ShapeReader) -> object:
    """The name of a computation, to be resolved when all are read."""
    return Reference(*scanner.name("a computation's name"))


def read_references(scanner: Scanner, shapes: ShapeReader) -> object:
    """`{%a, %b}` as a tuple of names, to be resolved when all are read."""
    return list_of(scanner, lambda: Reference(*scanner.name("a name")), "a list of names")


def read_shape(scanner: Scanner, shapes: ShapeReader) -> object:
    """One shape, such as `f32[2,3]{1,0}`."""
    return shapes.shape(scanner)


def read_shapes(scanner: Scanner, shapes: ShapeReader) -> object:
    """`{f32[2], s32[]}` as a tuple of shapes."""
    return list_of(scanner, lambda: shapes.shape(scanner), "a list of shapes")


def read_entry_layout(scanner: Scanner, shapes: ShapeReader) -> object:
    """`{(f32[2]{0})->f32[2]{0}}`: the shapes of the entry's parameters and result."""
    scanner.expect("{", "before the entry's layout")
    scanner.expect("(", "before the parameters' shapes")
    parameters: list[AnyShape] = []
    while not scanner.accept(")"):
        parameters.append(shapes.shape(scanner))
        if not scanner.accept(",") and scanner.peek() != ")":
            raise bad_value(scanner, "',' or ')' after a parameter's shape")
    scanner.expect("->", "before the result's shape")
    result = shapes.shape(scanner)
    scanner.expect("}", "after the entry's layout")
    return EntryLayout(tuple(parameters), result)


def read_literal(scanner: Scanner, shapes: ShapeReader) -> object:
    """A literal with its shape in front, as a constant's."""
    return read_shaped_literal(scanner, shapes)


def _fields(scanner: Scanner, what: str) -> list[tuple[str, object]]:
    """`{name=value name=value}`, with or without commas."""
    if not scanner.accept("{"):
        raise bad_value(scanner, f"'{{' before {what}")
    fields: list[tuple[str, object]] = []
    while not scanner.accept("}"):
        match = scanner.match(FIELD_NAME)
        if match is None:
            raise bad_value(scanner, f"a field of {what} (name=value) or '}}'")
        char = scanner.peek()
        if char == '"':
            value: object = scanner.string("a string")
        elif char == "{":
            value = RawText(scanner.balanced())
        elif char == "-" or char.isdigit():
            value = scanner.integer("an integer")
        else:
            value = RawText(str(read_word(scanner, _NO_SHAPES)))
        fields.append((match.group(1), value))
        scanner.accept(",")
    return fields


_NO_SHAPES = ShapeReader()


# What XLA prints for nearly every instruction: strings without escapes, and integers, one space apart.
_PLAIN_METADATA = re.compile(r'\{(?:\w+=(?:"[ !#-&(-\[\]-~]*"|0|-?[1-9][0-9]{0,17})(?: (?=\w)|(?=\})))*\}')


def read_metadata(scanner: Scanner, shapes: ShapeReader) -> object:
    """`{op_type="..." op_name="..." ...}`: where an instruction comes from."""
    plain = _PLAIN_METADATA.match(scanner.text, scanner.pos)
    if plain is not None:
        scanner.pos = plain.end()
        return OpMetadata.of_plain_text(plain.group())
    return OpMetadata(tuple(_fields(scanner, "metadata")))


def read_frontend(scanner: Scanner, shapes: ShapeReader) -> object:
    """`{name="value", ...}`: what the frontend wanted kept, as strings."""
    start = scanner.skip()
    fields = _fields(scanner, "frontend attributes")
    for name, value in fields:
        if not isinstance(value, str):
            raise BadAttribute(f"frontend attribute '{name}' isn't a string", span=scanner.span(start))
    return FrontendAttributes(cast("tuple[tuple[str, str], ...]", tuple(fields)))


_RAW_PART = re.compile(r'[^\s,(){}\[\]"]+')


def read_raw(scanner: Scanner, shapes: ShapeReader) -> object:
    """Verbatim text up to the comma or space that ends the value; brackets and strings stay whole."""
    start = scanner.skip()
    text = scanner.text
    while scanner.pos < len(text):
        char = text[scanner.pos]
        if char in "{[(":
            scanner.balanced()
        elif char == '"':
            scanner.string("a string")
        else:
            match = _RAW_PART.match(text, scanner.pos)
            if match is None:
                break
            scanner.pos = match.end()
    if scanner.pos == start:
        raise bad_value(scanner, "a value")
    return RawText(text[start : scanner.pos])
