"""Reading words, numbers, types and locations from tokens.

In: a token stream.  Out: names, interned types, locations.  Aliases (`!t = ...`, `#loc1 = loc(...)`, `#map = ...`) may
be defined anywhere at the top level: the first use jumps to the definition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from warpsmith.errors import IrSyntaxError, did_you_mean
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.location import UNKNOWN, Location, fuse_locations
from warpsmith.ir.core.types import Type
from warpsmith.ir.text.attribute_text import unquote
from warpsmith.ir.text.lexer import TokenStream
from warpsmith.ir.text.type_text import KNOWN, parse_type_text

__all__ = ["DEEPEST", "BaseParser", "is_number", "is_whole"]

DEEPEST = 80
"""Brackets, regions or aliases nested deeper than this are refused, well within Python's recursion limit."""

_DIGITS = frozenset("0123456789")

_T = TypeVar("_T")


class BaseParser(TokenStream):
    """A token stream that reads words, types and locations."""

    __slots__ = ("_aliases", "_depth", "_resolved")

    def __init__(self, text: str, file: str, line_offset: int = 0) -> None:
        super().__init__(text, file, line_offset)
        self._depth = 0
        self._aliases: dict[str, int] | None = None  # alias -> the token after its `=`
        self._resolved: dict[str, object] = {}

    # -- words and numbers
    def word(self, what: str) -> str:
        """The next token, which must be a keyword or a name."""
        token = self.tokens[self.i]
        if not (token[:1].isalpha() or token[:1] == "_") or token[-1] == ">":
            raise self.error(f"expected {what}, found {self.shown()}")
        self.i += 1
        return token

    def integer(self, what: str = "an integer") -> int:
        """A whole number, decimal or hexadecimal; IrSyntaxError names `what` was expected."""
        token = self.tokens[self.i]
        if not is_number(token) or not is_whole(token):
            raise self.error(f"expected {what}, found {self.shown()}")
        self.i += 1
        return self._whole(token)

    def _whole(self, token: str) -> int:
        """The value of an integer token; the one just passed."""
        if len(token) > 40:
            raise self.error("an integer of more than 128 bits", self.i - 1)
        return int(token, 16 if "x" in token else 10)

    def string(self, what: str = "a string") -> str:
        """A quoted string, unescaped; IrSyntaxError names `what` was expected."""
        token = self.tokens[self.i]
        if token[:1] != '"' or len(token) < 2:
            raise self.error(f"expected {what}, found {self.shown()}")
        self.i += 1
        return self._unquoted(token)

    def _unquoted(self, token: str) -> str:
        try:
            return unquote(token)
        except ValueError as bad:
            raise self.error(str(bad), self.i - 1) from None

    def symbol_name(self) -> str:
        """The name of `@name` or `@"name"`."""
        token = self.tokens[self.i]
        if token[:1] != "@" or len(token) < 2 or token == '@"':
            raise self.error(f"expected a symbol such as @name, found {self.shown()}")
        self.i += 1
        if self.tokens[self.i] == "::":
            raise self.error("a nested symbol reference", help="modules aren't nested here: a symbol is one name")
        return self._unquoted(token[1:]) if token[1] == '"' else token[1:]

    # -- nesting and aliases
    def enter(self) -> None:
        """One level deeper; `leave` undoes it."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise self.error(f"nested more than {DEEPEST} levels deep")

    def leave(self) -> None:
        """One nesting less; the counterpart of `enter`."""
        self._depth -= 1

    def comma_separated(self, close: str, parse: Callable[[], _T]) -> list[_T]:
        """Items up to `close`, which is passed as well."""
        items: list[_T] = []
        if self.accept(close):
            return items
        while True:
            items.append(parse())
            if self.accept(close):
                return items
            self.expect(",", f"or '{close}'")

    def _alias(self, token: str, kind: str, parse: Callable[[], object]) -> object:
        """What an alias stands for; the cursor is just after the use."""
        found = self._resolved.get(token)
        if found is not None:
            return found
        if self._aliases is None:
            tokens = self.tokens
            self._aliases = {
                tokens[i - 1]: i + 1 for i, t in enumerate(tokens) if t == "=" and tokens[i - 1][:1] in "#!" and i
            }
        target = self._aliases.get(token)
        if target is None:
            raise self.error(f"undefined {kind} alias '{token}'", self.i - 1, did_you_mean(token, self._aliases))
        here, self.i = self.i, target
        self.enter()
        result = self._resolved[token] = parse()
        self.leave()
        self.i = here
        return result

    # -- types
    def type(self) -> Type:
        """One type."""
        token = self.tokens[self.i]
        found = KNOWN.get(token)
        if found is not None:
            self.i += 1
            return found
        if token == "(":
            return self.function_type()
        if token[:1] == "!" and "." not in token:
            self.i += 1
            result = self._alias(token, "type", self.type)
            assert isinstance(result, Type)
            return result
        if not (token[:1].isalpha() or token[:1] == "!"):
            raise self.error(f"expected a type, found {self.shown()}")
        if self.tokens[self.i + 1] == "<" and token in ("tensor", "vector", "memref", "complex"):
            raise self.error(f"'{token}<' isn't closed, or has a space before '<'")
        try:
            found = parse_type_text(token)
        except IrSyntaxError as bad:
            raise self.error(bad.cause, help=bad.help) from None
        self.i += 1
        return found

    def type_list(self) -> list[Type]:
        """`()`, `(T, U)`, or one bare type."""
        return self.comma_separated(")", self.type) if self.accept("(") else [self.type()]

    def function_type(self) -> ty.FunctionType:
        """`(T, U) -> V` or `(T) -> (V, W)`."""
        self.enter()
        self.expect("(", "of a function type")
        inputs = self.comma_separated(")", self.type)
        self.expect("->", "of a function type")
        results = self.type_list()
        self.leave()
        return ty.function(inputs, results)

    # -- locations
    def location(self) -> Location:
        """`loc(...)`; the cursor is at `loc`."""
        self.expect("loc")
        self.expect("(", "after 'loc'")
        self.enter()
        found = self._location_body()
        self.leave()
        self.expect(")", "after a location")
        return found

    def _location_body(self) -> Location:
        token = self.tokens[self.i]
        if token[:1] == '"':
            name = self.string()
            if self.accept(":"):
                return self._place(name)
            if not self.accept("("):
                return Location((name,))
            inner = self._nested_location()
            self.expect(")", "after a named location's place")
            return Location((name, *inner.names), inner.file, inner.line, inner.column)
        self.i += 1
        if token == "unknown":
            return UNKNOWN
        if token[:1] == "#":
            found = self._alias(token, "location", self.location)
            assert isinstance(found, Location)
            return found
        if token == "fused":
            return self._fused()
        if token == "callsite":
            self.expect("(")
            inner = self._nested_location()
            self.expect("at")
            outer = self._nested_location()
            self.expect(")")
            return fuse_locations(inner, outer)
        raise self.error(f"expected a location, found {self.shown(self.i - 1)}", self.i - 1)

    def _nested_location(self) -> Location:
        self.enter()
        found = self._location_body()
        self.leave()
        return found

    def _place(self, file: str) -> Location:
        line = self.integer("a line number")
        self.expect(":", "and a column number")
        column = self.integer("a column number")
        if self.accept("to"):  # a range; its end isn't kept
            if not self.accept(":"):
                self.integer("a line number")
                self.expect(":", "and a column number")
            self.integer("a column number")
        return Location((), file, line, column)

    def _fused(self) -> Location:
        if self.accept("<"):  # metadata, which means nothing to us
            self.metadata()
            self.expect(">", "after a fused location's metadata")
        self.expect("[", "of a fused location")
        found = UNKNOWN
        for part in self.comma_separated("]", self._nested_location):
            found = fuse_locations(found, part)
        return found

    def metadata(self) -> None:
        """Skip a fused location's metadata: one string, alias or word."""
        self.i += 1


def is_number(token: str) -> bool:
    """Whether a token is a number."""
    return token[:1] in _DIGITS if token[:1] != "-" else token[1:2] in _DIGITS


def is_whole(token: str) -> bool:
    """Whether a number's token is one of an integer."""
    return token.lstrip("-").isdigit() or "x" in token
