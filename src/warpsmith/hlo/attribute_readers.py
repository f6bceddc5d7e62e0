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
    Alias,
    ConvDimNumbers,
    Donor,
    EntryLayout,
    FrontendAttributes,
    IotaGroups,
    OpMetadata,
    PaddingConfig,
    PaddingDim,
    RawText,
    SliceDim,
    Window,
    WindowDim,
)
from warpsmith.hlo.lexer import MAX_DEPTH, Scanner, checked_int
from warpsmith.hlo.literal_text import read_shaped_literal
from warpsmith.hlo.shape_text import ShapeReader
from warpsmith.hlo.shapes import AnyShape


@dataclass(frozen=True, slots=True)
class Reference:
    """A name that stands for a computation or an instruction, not resolved yet."""

    name: str
    start: int


Read = Callable[[Scanner, ShapeReader], object]

_WORD = re.compile(r"[A-Za-z_][\w.\-]*")
_INT_LIST = re.compile(r"\{\s*((?:-?[0-9]+\s*(?:,\s*-?[0-9]+\s*)*)?)\}")
_FLOAT = re.compile(r"-?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|inf|nan)")
_SLICE = re.compile(r"\[\s*(-?[0-9]+)\s*:\s*(-?[0-9]+)\s*(?::\s*(-?[0-9]+)\s*)?\]")
_PADDING = re.compile(r"-?[0-9]+_-?[0-9]+(?:_-?[0-9]+)?(?:x-?[0-9]+_-?[0-9]+(?:_-?[0-9]+)?)*")
_DIM_LABELS = re.compile(r"([0-9bf?]*)_([0-9io?]*)->([0-9bf?]*)")
_SIZES = re.compile(r"[0-9]+(?:x[0-9]+)*")
_PADS = re.compile(r"-?[0-9]+_-?[0-9]+(?:x-?[0-9]+_-?[0-9]+)*")
_IOTA = re.compile(r"\[([0-9,\s]+)\]\s*<=\s*\[([0-9,\s]+)\]\s*(?:T\(([0-9,\s]+)\))?")
_FIELD_NAME = re.compile(r"([\w.\-]+)\s*=\s*")


def _bad(scanner: Scanner, what: str, help: str | None = None) -> BadAttribute:
    word, length = scanner.found()
    return BadAttribute(f"expected {what}, found {word}", span=scanner.span(scanner.pos, length), help=help)


def read_int(scanner: Scanner, shapes: ShapeReader) -> object:
    return scanner.integer("an integer")


def read_float(scanner: Scanner, shapes: ShapeReader) -> object:
    match = scanner.match(_FLOAT)
    if match is None:
        raise _bad(scanner, "a number")
    return float(match.group())


def read_bool(scanner: Scanner, shapes: ShapeReader) -> object:
    match = scanner.match(_WORD)
    if match is None or match.group() not in ("true", "false"):
        if match is not None:
            scanner.pos = match.start()
        raise _bad(scanner, "true or false")
    return match.group() == "true"


def read_word(scanner: Scanner, shapes: ShapeReader) -> object:
    match = scanner.match(_WORD)
    if match is None:
        raise _bad(scanner, "a word")
    return match.group()


def word_of(*words: str) -> Read:
    """A reader of one of `words`."""

    def read(scanner: Scanner, shapes: ShapeReader) -> object:
        match = scanner.match(_WORD)
        if match is None or match.group() not in words:
            if match is not None:
                scanner.pos = match.start()
            near = did_you_mean(match.group(), words) if match is not None else None
            raise _bad(scanner, f"one of {', '.join(words)}", near)
        return match.group()

    return read


def read_string(scanner: Scanner, shapes: ShapeReader) -> object:
    return scanner.string("a quoted string")


def read_string_or_json(scanner: Scanner, shapes: ShapeReader) -> object:
    return RawText(scanner.balanced()) if scanner.peek() == "{" else scanner.string("a quoted string or {...}")


def _list(scanner: Scanner, item: Callable[[], object], what: str, depth: int = 0) -> tuple[object, ...]:
    """`{item, item}`."""
    if not scanner.accept("{"):
        raise _bad(scanner, f"'{{' before {what}")
    items: list[object] = []
    if scanner.accept("}"):
        return ()
    while True:
        items.append(item())
        if scanner.accept("}"):
            return tuple(items)
        if not scanner.accept(","):
            raise _bad(scanner, f"',' or '}}' in {what}")


def read_ints(scanner: Scanner, shapes: ShapeReader) -> object:
    """`{1,2}`, or lists of such lists (`{{0,1},{2,3}}`)."""
    match = scanner.match(_INT_LIST)
    if match is not None:
        text = match.group(1)
        if len(text) < 19:
            return tuple(map(int, text.split(","))) if text.strip() else ()
        return tuple(checked_int(scanner, part.strip(), match.start(1)) for part in text.split(","))
    if scanner.peek() != "{":
        raise _bad(scanner, "a list of integers in braces")
    return _int_lists(scanner, 0)


def _int_lists(scanner: Scanner, depth: int) -> tuple[object, ...]:
    if depth >= MAX_DEPTH:
        raise scanner.error(f"lists are nested more than {MAX_DEPTH} deep")

    def item() -> object:
        return _int_lists(scanner, depth + 1) if scanner.peek() == "{" else scanner.integer("an integer")

    return _list(scanner, item, "a list of integers")


def read_bools(scanner: Scanner, shapes: ShapeReader) -> object:
    if scanner.peek() != "{":
        return read_bool(scanner, shapes)
    return _list(scanner, lambda: read_bool(scanner, shapes), "a list of true and false")


def read_words(scanner: Scanner, shapes: ShapeReader) -> object:
    return _list(scanner, lambda: read_word(scanner, shapes), "a list of words")


def read_reference(scanner: Scanner, shapes: ShapeReader) -> object:
    return Reference(*scanner.name("a computation's name"))


def read_references(scanner: Scanner, shapes: ShapeReader) -> object:
    return _list(scanner, lambda: Reference(*scanner.name("a name")), "a list of names")


def read_slice(scanner: Scanner, shapes: ShapeReader) -> object:
    def item() -> object:
        match = scanner.match(_SLICE)
        if match is None:
            raise _bad(scanner, "[start:limit] or [start:limit:stride]")
        ints = [checked_int(scanner, part or "1", match.start()) for part in match.groups()]
        return SliceDim(ints[0], ints[1], ints[2])

    return _list(scanner, item, "a list of slices")


def read_padding(scanner: Scanner, shapes: ShapeReader) -> object:
    match = scanner.match(_PADDING)
    if match is None:
        raise _bad(scanner, "a padding such as 0_1x2_3_1", "write low_high or low_high_interior for each dimension")
    dims: list[PaddingDim] = []
    for part in match.group().split("x"):
        ints = [checked_int(scanner, text, match.start()) for text in part.split("_")]
        dims.append(PaddingDim(*ints))
    return PaddingConfig(tuple(dims))


_WINDOW_FIELDS = {
    "size": _SIZES,
    "stride": _SIZES,
    "lhs_dilate": _SIZES,
    "rhs_dilate": _SIZES,
    "rhs_reversal": _SIZES,
    "pad": _PADS,
}


def read_window(scanner: Scanner, shapes: ShapeReader) -> object:
    start = scanner.skip()
    if not scanner.accept("{"):
        raise _bad(scanner, "'{' before a window")
    fields: dict[str, list[str]] = {}
    while not scanner.accept("}"):
        match = scanner.match(_FIELD_NAME)
        if match is None or match.group(1) not in _WINDOW_FIELDS:
            if match is not None:
                scanner.pos = match.start()
            near = did_you_mean(match.group(1), _WINDOW_FIELDS) if match is not None else None
            raise _bad(scanner, f"a window field ({', '.join(_WINDOW_FIELDS)})", near)
        name = match.group(1)
        value = scanner.match(_WINDOW_FIELDS[name])
        if value is None:
            raise _bad(scanner, "low_high for each dimension" if name == "pad" else "sizes such as 3x3")
        if name in fields:
            raise BadAttribute(f"window field '{name}' is given twice", span=scanner.span(match.start(), len(name)))
        fields[name] = value.group().split("x")
    rank = len(fields.get("size", ()))
    for name, values in fields.items():
        if len(values) != rank:
            raise BadAttribute(
                f"window field '{name}' has {len(values)} dimensions, 'size' has {rank}",
                span=scanner.span(start, scanner.pos - start),
            )

    def ints(name: str, default: int) -> list[int]:
        return [checked_int(scanner, text, start) for text in fields[name]] if name in fields else [default] * rank

    pads = [tuple(checked_int(scanner, part, start) for part in text.split("_")) for text in fields.get("pad", ())]
    dims = zip(
        ints("size", 1),
        ints("stride", 1),
        pads or [(0, 0)] * rank,
        ints("lhs_dilate", 1),
        ints("rhs_dilate", 1),
        ints("rhs_reversal", 0),
        strict=True,
    )
    return Window(
        tuple(WindowDim(size, step, pad[0], pad[1], base, win, rev != 0) for size, step, pad, base, win, rev in dims)
    )


def read_dim_labels(scanner: Scanner, shapes: ShapeReader) -> object:
    match = scanner.match(_DIM_LABELS)
    if match is None:
        raise _bad(scanner, "dimension labels such as b01f_01io->b01f")
    lhs, rhs, output = match.groups()
    for part in (lhs, rhs, output):
        known = part.replace("?", "")
        if len(set(known)) != len(known):
            raise BadAttribute(
                f"dimension labels '{part}' name one dimension twice",
                span=scanner.span(match.start(), len(match.group())),
            )
    return ConvDimNumbers(lhs, rhs, output)


def read_groups(scanner: Scanner, shapes: ShapeReader) -> object:
    if scanner.peek() == "{":
        return read_ints(scanner, shapes)
    match = scanner.match(_IOTA)
    if match is None:
        return read_raw(scanner, shapes)
    parts = [
        tuple(checked_int(scanner, text.strip(), match.start()) for text in group.split(",")) if group else ()
        for group in match.groups()
    ]
    return IotaGroups(parts[0], parts[1], parts[2])


def _index(scanner: Scanner) -> tuple[int, ...]:
    ints = _list(scanner, lambda: scanner.integer("an index"), "an index into a tuple")
    return cast("tuple[int, ...]", ints)


def read_aliases(scanner: Scanner, shapes: ShapeReader) -> object:
    def item() -> object:
        output = _index(scanner)
        scanner.expect(":", "after an output's index")
        scanner.expect("(", "before what the output shares memory with")
        number = scanner.integer("a number")
        scanner.expect(",", "after the number")
        index = _index(scanner)
        kind = ""
        if scanner.accept(","):
            kind = str(word_of("may-alias", "must-alias")(scanner, shapes))
        scanner.expect(")", "after an alias")
        return Alias(output, number, index, kind)

    return _list(scanner, item, "a list of aliases")


def read_donors(scanner: Scanner, shapes: ShapeReader) -> object:
    def item() -> object:
        scanner.expect("(", "before a donated buffer")
        number = scanner.integer("a parameter's number")
        scanner.expect(",", "after the parameter's number")
        index = _index(scanner)
        scanner.expect(")", "after a donated buffer")
        return Donor(number, index)

    return _list(scanner, item, "a list of donated buffers")


def read_shape(scanner: Scanner, shapes: ShapeReader) -> object:
    return shapes.shape(scanner)


def read_shapes(scanner: Scanner, shapes: ShapeReader) -> object:
    return _list(scanner, lambda: shapes.shape(scanner), "a list of shapes")


def read_entry_layout(scanner: Scanner, shapes: ShapeReader) -> object:
    scanner.expect("{", "before the entry's layout")
    scanner.expect("(", "before the parameters' shapes")
    parameters: list[AnyShape] = []
    while not scanner.accept(")"):
        parameters.append(shapes.shape(scanner))
        if not scanner.accept(",") and scanner.peek() != ")":
            raise _bad(scanner, "',' or ')' after a parameter's shape")
    scanner.expect("->", "before the result's shape")
    result = shapes.shape(scanner)
    scanner.expect("}", "after the entry's layout")
    return EntryLayout(tuple(parameters), result)


def read_literal(scanner: Scanner, shapes: ShapeReader) -> object:
    return read_shaped_literal(scanner, shapes)


def _fields(scanner: Scanner, what: str) -> list[tuple[str, object]]:
    """`{name=value name=value}`, with or without commas."""
    if not scanner.accept("{"):
        raise _bad(scanner, f"'{{' before {what}")
    fields: list[tuple[str, object]] = []
    while not scanner.accept("}"):
        match = scanner.match(_FIELD_NAME)
        if match is None:
            raise _bad(scanner, f"a field of {what} (name=value) or '}}'")
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
    plain = _PLAIN_METADATA.match(scanner.text, scanner.pos)
    if plain is not None:
        scanner.pos = plain.end()
        return OpMetadata.of_plain_text(plain.group())
    return OpMetadata(tuple(_fields(scanner, "metadata")))


def read_frontend(scanner: Scanner, shapes: ShapeReader) -> object:
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
        raise _bad(scanner, "a value")
    return RawText(text[start : scanner.pos])
