"""Reading and printing the values of constants: `{ { 1, 2 }, { nan, -inf } }`.

In: a `Scanner` before a value and the shape it must have, or a `Literal`.  Out: a `Literal`, or XLA's text, which reads
back bit for bit.
"""

from __future__ import annotations

import math
import re

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import BY_NAME
from warpsmith.errors import BadLiteral, Span
from warpsmith.hlo.literals import Literal
from warpsmith.hlo.shapes import AnyShape, Shape, TupleShape
from warpsmith.hlo.text.lexer import MAX_DEPTH, Scanner
from warpsmith.hlo.text.numbers import NumberError, element_texts, numbers
from warpsmith.hlo.text.shapes import ShapeReader

__all__ = ["as_broadcast", "literal_text", "read_literal", "read_shaped_literal"]

_PLAIN = re.compile(r'[^()/"]*')
_ELEMENT = re.compile(r'[+-]?nan\(0x[0-9a-fA-F]+\)|[^\s(){},/"]+')
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_BRACES = str.maketrans("", "", "{}")
_ELIDED = re.compile(r"\{\s*(?:[^\s(){},]+\s*,\s*)*\.\.\.\s*\}")
_NOT_STRUCTURE = re.compile(r"[^{},]+")

SPLAT_LIMIT = 1 << 20
"""The most elements of a constant whose text says less than its elements: see `as_broadcast` and `_first_alone`."""

MAX_RANK = 32
"""The most dimensions that a constant may have: what every numpy holds."""


def read_literal(scanner: Scanner, shape: AnyShape, depth: int = 0) -> Literal:
    """The value that stands next, of `shape`; a bare number is an array's first element, the others are 0, as for XLA.

    `{...}` gives a literal without values.  BadLiteral where braces or counts don't fit the shape or a number doesn't
    fit the type.
    """
    if isinstance(shape, TupleShape):
        return _read_tuple(scanner, shape, depth)
    start = scanner.skip()
    if not shape.is_array or any(shape.dynamic):
        raise BadLiteral(f"a constant can't be of type {shape}", span=scanner.span(start))
    if shape.rank > MAX_RANK or math.prod(size or 1 for size in shape.dims) * shape.dtype.numpy.itemsize >= 1 << 60:
        raise BadLiteral(f"a constant of {shape} is too large", span=scanner.span(start))
    fast = _read_plain(scanner, shape)
    if fast is not None:
        return fast
    scanner.pos = start
    return _Reader(scanner, shape).read()


def read_shaped_literal(scanner: Scanner, shapes: ShapeReader, depth: int = 0) -> Literal:
    """A value with its shape in front, as attributes write it: `f32[2] {1, 2}`."""
    if scanner.peek() != "(":
        shape = shapes.shape(scanner)
        return read_literal(scanner, shape)
    if depth >= MAX_DEPTH:
        raise scanner.error(f"tuples are nested more than {MAX_DEPTH} deep")
    scanner.pos += 1
    elements: list[Literal] = []
    while not scanner.accept(")"):
        elements.append(read_shaped_literal(scanner, shapes, depth + 1))
        if not scanner.accept(",") and scanner.peek() != ")":
            raise scanner.expected("',' or ')' in a tuple of values")
    return Literal.tuple_of(elements)


def _read_tuple(scanner: Scanner, shape: TupleShape, depth: int) -> Literal:
    start = scanner.skip()
    if scanner.match(_ELIDED) is not None:  # XLA prints no tuple's values unless it prints all large constants
        return _elided(shape, scanner.span(start, 5))
    if not scanner.accept("("):
        raise _bad(scanner, f"a value of tuple shape {shape} starts with '('")
    elements: list[Literal] = []
    for index, element in enumerate(shape.elements):
        if index and not scanner.accept(","):
            raise _bad(scanner, f"{shape} needs {len(shape.elements)} elements, {index} are given")
        elements.append(read_literal(scanner, element, depth + 1))
    if not scanner.accept(")"):
        raise _bad(scanner, f"expected ')' after the {len(shape.elements)} elements of {shape}")
    return Literal(shape, None, tuple(elements), False)


def _elided(shape: AnyShape, place: Span) -> Literal:
    """A value all of whose arrays were left out of the text, at `place`."""
    if isinstance(shape, TupleShape):
        return Literal.tuple_of([_elided(each, place) for each in shape.elements]).with_shape(shape)
    return Literal.elided(shape, place)


def _bad(scanner: Scanner, cause: str, help: str | None = None) -> BadLiteral:
    word, length = scanner.found()
    return BadLiteral(f"{cause}; found {word}", span=scanner.span(scanner.pos, length), help=help)


def _skeleton(dims: tuple[int, ...]) -> str:
    """The braces and commas of a value of `dims`: `{{,,},{,,}}` for [2,3]."""
    text = ""
    for dim in reversed(dims):
        text = "{" + ",".join([text] * dim) + "}"
    return text


def _read_plain(scanner: Scanner, shape: Shape) -> Literal | None:
    """The value if it holds no complex numbers or NaN payloads and has no errors; None otherwise."""
    text, start = scanner.text, scanner.pos
    match = _PLAIN.match(text, start)
    if shape.dtype.is_complex or match is None:
        return None
    body, end = match.group(), match.end()
    if text.startswith("/*", end):
        end = text.find(")", end)
        body = _COMMENT.sub(" ", text[start:end])
    if end < 0 or not text.startswith(")", end):
        return None
    filled = "{" not in body
    if not filled:
        # Counting commas first keeps a wrong value of a huge shape from building a huge skeleton.
        if 0 in shape.dims or body.count(",") != shape.elements - 1:
            return None
        if _NOT_STRUCTURE.sub("", body) != _skeleton(shape.dims):
            return None
    try:
        values = numbers([body] if filled else body.translate(_BRACES).split(","), shape.dtype)
    except NumberError:
        return None
    scanner.pos = end
    return _first_alone(scanner, start, shape, values) if filled else Literal.of(values.reshape(shape.dims), shape)


def _first_alone(scanner: Scanner, start: int, shape: Shape, value: Array) -> Literal:
    """What XLA reads a bare number of an array as: `f32[4] constant(7)` is [7, 0, 0, 0]."""
    if shape.rank == 0 or (shape.elements == 1 and not shape.dtype.is_complex):
        return Literal.splat_of(shape, value)
    fill = f"to fill {shape.text(layout=False)} write a scalar constant and broadcast it: broadcast(c), dimensions={{}}"
    span = scanner.span(start, max(1, scanner.pos - start))
    if shape.elements == 0 or shape.dtype.is_complex:
        raise BadLiteral(f"the elements of {shape.text(layout=False)} are written in braces", span=span, help=fill)
    if not any(value.tobytes()):
        return Literal.splat_of(shape, value)
    if shape.elements > SPLAT_LIMIT:
        cause = f"one number is the first of the {shape.elements:,} elements; the others would be 0"
        raise BadLiteral(cause, span=span, help=fill)
    array = np.zeros(shape.elements, shape.dtype.numpy)
    array[:1] = value
    return Literal.of(array.reshape(shape.dims), shape)


class _Reader:
    """Reads one array's value element by element, and says exactly what is wrong."""

    def __init__(self, scanner: Scanner, shape: Shape) -> None:
        self.scanner = scanner
        self.shape = shape
        self.texts: list[str] = []
        self.places: list[int] = []

    def read(self) -> Literal:
        scanner, shape = self.scanner, self.shape
        if scanner.peek() != "{":
            start = scanner.pos
            self._element()
            return _first_alone(scanner, start, shape, self._values())
        start = scanner.pos
        if scanner.match(_ELIDED) is not None:
            return Literal.elided(shape, scanner.span(start, 5))
        self._array()
        return Literal.of(self._values().reshape(shape.dims), shape)

    def _array(self) -> None:
        """The nested braces: `counts[level]` elements of each open brace have been read."""
        scanner, dims = self.scanner, self.shape.dims
        counts: list[int] = []
        while True:
            if scanner.peek() == "{" and len(counts) < len(dims):
                scanner.pos += 1
                counts.append(0)
                if dims[len(counts) - 1] and scanner.peek() != "}":
                    continue
            elif len(counts) < len(dims):
                raise _bad(scanner, f"{self.shape} needs {len(dims)} levels of braces, {len(counts)} are open")
            else:
                self._element()
                counts[-1] += 1
            while True:
                level = len(counts) - 1
                if counts[level] < dims[level]:
                    if scanner.peek() == "}":
                        raise self._count(level, counts[level])
                    scanner.accept(",")  # XLA reads rows and elements without a comma as well
                    break
                if scanner.peek() == ",":
                    raise self._count(level, counts[level] + 1)
                if not scanner.accept("}"):
                    raise _bad(scanner, f"expected '}}' after {counts[level]} elements of dimension {level}")
                counts.pop()
                if not counts:
                    return
                counts[-1] += 1

    def _count(self, level: int, given: int) -> BadLiteral:
        size = self.shape.dims[level]
        more = "at least " if given > size else ""
        return _bad(
            self.scanner,
            f"dimension {level} of {self.shape.text(layout=False)} has {size} elements, {more}{given} are given",
        )

    def _element(self) -> None:
        scanner = self.scanner
        if self.shape.dtype.is_complex:
            if not scanner.accept("("):
                raise _bad(scanner, f"an element of {self.shape.dtype} is written (real, imaginary)")
            self._number()
            if not scanner.accept(","):
                raise _bad(scanner, "expected ',' after the real part")
            self._number()
            if not scanner.accept(")"):
                raise _bad(scanner, "expected ')' after the imaginary part")
        else:
            self._number()

    def _number(self) -> None:
        match = self.scanner.match(_ELEMENT)
        if match is None:
            raise _bad(self.scanner, f"expected an element of {self.shape.dtype}")
        self.texts.append(match.group())
        self.places.append(match.start())

    def _values(self) -> Array:
        dtype = self.shape.dtype
        part = BY_NAME[{"c64": "f32", "c128": "f64"}[dtype.name]] if dtype.is_complex else dtype
        if not self.texts:
            return np.zeros(0, dtype.numpy)
        try:
            values = numbers(self.texts, part)
        except NumberError as error:
            place, length = self.places[error.index], len(self.texts[error.index])
            raise BadLiteral(error.cause, span=self.scanner.span(place, length)) from None
        return values.view(dtype.numpy) if dtype.is_complex else values


def as_broadcast(literal: Literal) -> Literal | None:
    """The scalar whose broadcast is the value, where that is the only short text of it that XLA reads alike."""
    shape = literal.shape
    if isinstance(shape, TupleShape) or math.prod(size or 1 for size in shape.dims) <= SPLAT_LIMIT:
        return None
    if shape.elements == 0 and not literal.is_elided:
        return Literal.scalar(shape.dtype, 0)
    if not literal.is_splat or _reads_as_zeros(literal):
        return None
    return Literal.splat_of(Shape(shape.dtype), np.asarray(literal.splat_value).reshape(1))


def _reads_as_zeros(literal: Literal) -> bool:
    """Whether the one element of a splat stands for all of them in text: what isn't written is 0."""
    return not literal.dtype.is_complex and not any(np.asarray(literal.splat_value).tobytes())


def literal_text(literal: Literal) -> str:
    """XLA's text of a value, on one line, without its shape."""
    if isinstance(literal.shape, TupleShape):
        return f"( {', '.join(map(literal_text, literal.elements))} )"
    shape = literal.shape
    if literal.is_elided:
        return "{...}"
    if literal.is_splat:
        text = element_texts(np.asarray(literal.splat_value).reshape(1), shape.dtype, dense=shape.rank > 0)[0]
        if shape.rank == 0 or (shape.elements > SPLAT_LIMIT and _reads_as_zeros(literal)):
            return text
        return _nested([text] * shape.elements, shape.dims)
    return _nested(element_texts(literal.array.reshape(-1), shape.dtype, dense=True), shape.dims)


def _nested(items: list[str], dims: tuple[int, ...]) -> str:
    """Items in braces, as XLA spaces them; above rank 3 every inner brace carries its index as a comment."""
    rank = len(dims)
    if rank == 1:
        return "{" + ", ".join(items) + "}"
    for level in range(rank - 1, -1, -1):
        size, count = dims[level], math.prod(dims[:level])
        groups = [items[index * size : (index + 1) * size] for index in range(count)]
        if level == rank - 1:
            gap = " " if size > 1 else ""
            items = ["{" + gap + ", ".join(group) + gap + "}" for group in groups]
        elif rank > 3 and level > 0:
            gap = " " if size > 0 else ""
            wide = dims[level - 1]
            items = [
                f"{{ /*i{level - 1}={index % wide}*/{gap}{', '.join(group)} }}" for index, group in enumerate(groups)
            ]
        else:
            items = ["{ " + ", ".join(group) + " }" for group in groups]
    return items[0] if items else "{}"
