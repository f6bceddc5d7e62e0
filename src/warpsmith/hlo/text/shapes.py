"""Reading shapes and layouts: `(f32[2,<=3]{1,0:T(8,128)S(1)}, /*index=1*/ token[])`.

In: a `Scanner` before a shape.  Out: `Shape` or `TupleShape`.  Array shapes are kept by their text, so that each
distinct one of a module is read once.
"""

from __future__ import annotations

import re
from typing import Any

from warpsmith.dtypes import BY_NAME, DType
from warpsmith.errors import InvalidHlo, UnknownDType, WarpsmithError, did_you_mean
from warpsmith.hlo.shapes import COMBINE, UNBOUNDED, AnyShape, Layout, Shape, SplitConfig, TupleShape
from warpsmith.hlo.text.lexer import MAX_DEPTH, Scanner, checked_int

__all__ = ["ARRAY_SHAPE", "ShapeReader"]

# An array shape as XLA prints one, with an optional layout.  A brace is a layout only if a digit or a colon follows:
# `-> f32[4] {` opens a computation.
ARRAY_SHAPE = re.compile(r"([A-Za-z][A-Za-z0-9]*)\[([0-9,<=?\s]*)\](?:\s*(\{\s*[0-9:](?:[^{}]|\{[^{}]*\})*\})|\{\})?")
_DIM = re.compile(r"\s*(?:(<=)?\s*([0-9]+)|(\?))\s*")
_DTYPE = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_ORDER = re.compile(r"[0-9,\s]*")
_LEVEL = re.compile(r"[DCSH]\+?~?")
_FIELD = re.compile(r"(SC|[DTLESPM#*])\s*(?=\()")


class ShapeReader:
    """Reads shapes of one module."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, Shape] = {}

    def shape(self, scanner: Scanner, depth: int = 0) -> AnyShape:
        """The shape that stands next; errors point at the part that is wrong."""
        match = ARRAY_SHAPE.match(scanner.text, scanner.skip())
        if match is not None:
            known = self._known.get(match.group())
            if known is None:
                known = self._array(scanner, match)
                self._known[match.group()] = known
            scanner.pos = match.end()
            return known
        char = scanner.peek()
        if char == "(":
            return self._tuple(scanner, depth)
        if scanner.text.startswith("b(", scanner.pos):
            return self._buffer(scanner, depth)
        raise self._bad_shape(scanner)

    def _tuple(self, scanner: Scanner, depth: int) -> TupleShape:
        if depth >= MAX_DEPTH:
            raise scanner.error(f"tuples are nested more than {MAX_DEPTH} deep")
        scanner.expect("(", "before the shapes of a tuple")
        elements: list[AnyShape] = []
        if not scanner.accept(")"):
            while True:
                elements.append(self.shape(scanner, depth + 1))
                if scanner.accept(")"):
                    break
                if not scanner.accept(","):
                    raise scanner.expected("',' or ')' after a shape in a tuple")
        return TupleShape(tuple(elements))

    def _buffer(self, scanner: Scanner, depth: int) -> Shape:
        start = scanner.pos
        if depth >= MAX_DEPTH:
            raise scanner.error(f"shapes are nested more than {MAX_DEPTH} deep")
        scanner.pos += 1
        scanner.expect("(", "after 'b'")
        inner = self.shape(scanner, depth + 1)
        scanner.expect(")", "after the shape of a buffer")
        if isinstance(inner, TupleShape) or inner.buffer or not inner.is_array:
            raise scanner.error("a buffer holds one array", start)
        return Shape(inner.dtype, inner.dims, inner.layout, inner.dynamic, True)

    def _array(self, scanner: Scanner, match: re.Match[str]) -> Shape:
        dtype = self._dtype(scanner, match.group(1), match.start(1))
        dims, dynamic = _dims(scanner, match)
        if dims and not dtype.is_array_element:
            raise scanner.error(f"{dtype} has no dimensions", match.start(2), len(match.group(2)))
        layout = None
        if match.group(3) is not None:
            inner = Scanner(scanner.source, match.start(3))
            layout = self.layout(inner, len(dims))
            if inner.pos != match.end(3):
                raise inner.expected("the end of the layout")
        return Shape(dtype, dims, layout, dynamic)

    def _dtype(self, scanner: Scanner, name: str, start: int) -> DType:
        found = BY_NAME.get(name)
        if found is None:
            raise _unknown_dtype(scanner, name, start)
        return found

    def _bad_shape(self, scanner: Scanner) -> WarpsmithError:
        match = _DTYPE.match(scanner.text, scanner.pos)
        if match is None:
            return scanner.expected("a shape", help="write a shape such as f32[2,3] or (f32[2], s32[])")
        if match.group() not in BY_NAME:
            return _unknown_dtype(scanner, match.group(), match.start())
        scanner.pos = match.end()
        if not scanner.text.startswith("[", scanner.pos):
            return scanner.expected(f"'[' after element type '{match.group()}'")
        scanner.pos += 1
        while (dim := _DIM.match(scanner.text, scanner.pos)) is not None:
            scanner.pos = dim.end()
            if not scanner.text.startswith(",", scanner.pos):
                break
            scanner.pos += 1
        if scanner.text.startswith(("/*", "//"), scanner.pos):
            return scanner.error(
                "a comment can't stand among a shape's dimensions", scanner.pos, 2, help="move it before the shape"
            )
        if scanner.peek() == "-":
            return scanner.error("a dimension can't be negative", help="dimensions are 0 or more, <=N, or ?")
        if scanner.peek() == "]":
            return scanner.error("a shape's layout isn't closed", scanner.text.find("{", scanner.pos))
        return scanner.expected("a dimension, ',' or ']'")

    def layout(self, scanner: Scanner, rank: int) -> Layout:
        """A layout in braces for an array of `rank` dimensions."""
        start = scanner.skip()
        scanner.expect("{", "before a layout")
        match = scanner.match(_ORDER)
        if scanner.text.startswith(("/*", "//"), scanner.pos):
            raise scanner.error("a comment can't stand in a layout", scanner.pos, 2, help="move it before the shape")
        order: list[int] = []
        if match is not None and match.group().strip():
            for part in match.group().split(","):
                if not part.strip():
                    raise scanner.error("a dimension number is missing", match.start(), len(match.group()))
                order.append(checked_int(scanner, part.strip(), match.start()))
        fields: dict[str, object] = {}
        if scanner.accept(":"):
            while (field := scanner.match(_FIELD)) is not None:
                name = field.group(1)
                if name in fields:
                    raise scanner.error(f"layout field '{name}' is given twice", field.start(), len(name))
                fields[name] = _READ_FIELD[name](self, scanner)
        if not scanner.accept("}"):
            raise scanner.expected("a layout field or '}'", help="layout fields are D, T, L, #, *, E, S, SC, P, M")
        length = scanner.pos - start
        if sorted(order) != list(range(rank)):
            raise InvalidHlo(
                f"layout {{{','.join(map(str, order))}}} isn't a permutation of the {rank} dimensions",
                span=scanner.span(start, length),
                help="list every dimension once, the fastest first"
                + (f", such as {{{','.join(map(str, range(rank - 1, -1, -1)))}}}" if rank else ""),
            )
        return _make_layout(tuple(order), fields)


def _unknown_dtype(scanner: Scanner, name: str, start: int) -> UnknownDType:
    return UnknownDType(
        f"unknown element type '{name}'",
        span=scanner.span(start, len(name)),
        help=did_you_mean(name, BY_NAME) or "element types are " + ", ".join(BY_NAME),
    )


def _dims(scanner: Scanner, match: re.Match[str]) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    text = match.group(2)
    if not text.strip():
        return (), ()
    dims: list[int] = []
    dynamic: list[bool] = []
    pos = match.start(2)
    while True:
        dim = _DIM.match(scanner.text, pos, match.end(2))
        if dim is None:
            scanner.pos = pos
            raise scanner.expected("a dimension", help="dimensions are 0 or more, <=N, or ?")
        if dim.group(3) is not None:
            dims.append(UNBOUNDED)
            dynamic.append(True)
        else:
            size = checked_int(scanner, dim.group(2), dim.start(2))
            if size >= 1 << 63:
                raise scanner.error(f"a dimension of {size} is too large", dim.start(2), len(dim.group(2)))
            dims.append(size)
            dynamic.append(dim.group(1) is not None)
        pos = dim.end()
        if pos == match.end(2):
            return tuple(dims), tuple(dynamic)
        if scanner.text[pos] != ",":
            scanner.pos = pos
            raise scanner.expected("',' or ']' after a dimension")
        pos += 1


def _ints(scanner: Scanner, what: str, *, star: bool = False) -> tuple[int, ...]:
    """`(1,2,*)`."""
    scanner.expect("(", f"before {what}")
    values: list[int] = []
    if not scanner.accept(")"):
        while True:
            values.append(COMBINE if star and scanner.accept("*") else scanner.integer(what))
            if scanner.accept(")"):
                break
            if not scanner.accept(","):
                raise scanner.expected(f"',' or ')' in {what}")
    return tuple(values)


def _tiles(reader: ShapeReader, scanner: Scanner) -> object:
    tiles: list[tuple[int, ...]] = []
    while scanner.peek() == "(":
        tiles.append(_ints(scanner, "a tile size", star=True))
    return tuple(tiles)


def _levels(reader: ShapeReader, scanner: Scanner) -> object:
    scanner.expect("(", "before dimension levels")
    levels: list[str] = []
    while True:
        match = scanner.match(_LEVEL)
        if match is None:
            raise scanner.expected("a dimension level (D, C, S or H)")
        levels.append(match.group())
        if scanner.accept(")"):
            return tuple(levels)
        if not scanner.accept(","):
            raise scanner.expected("',' or ')' after a dimension level")


def _one(reader: ShapeReader, scanner: Scanner) -> object:
    start = scanner.pos
    values = _ints(scanner, "an integer")
    if len(values) != 1:
        raise scanner.error("one integer is expected here", start, scanner.pos - start)
    return values[0]


def _type(reader: ShapeReader, scanner: Scanner) -> object:
    scanner.expect("(", "before an integer type")
    match = scanner.match(_DTYPE)
    if match is None or match.group() not in BY_NAME:
        raise scanner.expected("an unsigned integer type")
    scanner.expect(")", "after an integer type")
    return match.group()


def _splits(reader: ShapeReader, scanner: Scanner) -> object:
    splits: list[SplitConfig] = []
    while scanner.accept("("):
        dimension = scanner.integer("a dimension number")
        scanner.expect(":", "after the dimension that is split")
        indices: list[int] = []
        while not scanner.accept(")"):
            indices.append(scanner.integer("a split index"))
            scanner.accept(",")
        splits.append(SplitConfig(dimension, tuple(indices)))
    return tuple(splits)


def _physical(reader: ShapeReader, scanner: Scanner) -> object:
    scanner.expect("(", "before a physical shape")
    shape = reader.shape(scanner)
    scanner.expect(")", "after a physical shape")
    return shape


_READ_FIELD = {
    "D": _levels,
    "T": _tiles,
    "L": _one,
    "#": _type,
    "*": _type,
    "E": _one,
    "S": _one,
    "SC": _splits,
    "P": _physical,
    "M": _one,
}


_FIELD_NAMES = {
    "D": "dim_levels",
    "T": "tiles",
    "L": "tail_padding",
    "#": "index_type",
    "*": "pointer_type",
    "E": "element_bits",
    "S": "memory_space",
    "SC": "splits",
    "P": "physical_shape",
    "M": "metadata_bytes",
}


def _make_layout(order: tuple[int, ...], fields: dict[str, object]) -> Layout:
    named: dict[str, Any] = {_FIELD_NAMES[name]: value for name, value in fields.items()}
    return Layout(order, **named)
