"""The part of the PTX parser below functions: a cursor over tokens, and declarations of variables with their values."""

from __future__ import annotations

import struct
from typing import NoReturn

from warpsmith.errors import did_you_mean
from warpsmith.simt.ptx.text.module import TYPE_BITS, Immediate, Symbol, Variable
from warpsmith.simt.ptx.text.tokens import Tokens, immediate

__all__ = ["DeclarationParser"]


class DeclarationParser:
    """A position in the tokens."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.texts = tokens.texts
        self.kinds = tokens.kinds
        self.at: int = 0

    # -- cursor
    def fail(self, cause: str, help: str | None = None, at: int | None = None) -> NoReturn:
        """Raise PtxSyntaxError at the current token, or at another."""
        self.tokens.fail(self.at if at is None else at, cause, help)

    def peek(self, text: str) -> bool:
        """Whether this token comes next."""
        return self.texts[self.at] == text

    def take(self, text: str) -> bool:
        """Go past a token if it comes next; whether it does."""
        if self.texts[self.at] == text:
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        """Go past a token; PtxSyntaxError if another comes next."""
        if not self.take(text):
            self.fail(f"'{text}' expected, found '{self.texts[self.at]}'")

    def word(self, what: str) -> str:
        """The next token, a word; PtxSyntaxError names `what` was expected."""
        if self.kinds[self.at] != "word":
            self.fail(f"{what} expected, found '{self.texts[self.at]}'")
        self.at += 1
        return self.texts[self.at - 1]

    def integer(self, what: str) -> int:
        """The next number, perhaps negative; PtxSyntaxError names `what` was expected."""
        negative = self.take("-")
        if self.kinds[self.at] != "number":
            self.fail(f"{what} expected, found '{self.texts[self.at]}'")
        value = immediate(self.texts[self.at], negative)
        if value.kind != "int":
            self.fail(f"{what} must be an integer")
        self.at += 1
        return value.value

    def rest_of_line(self) -> list[str]:
        """The tokens up to the end of the line."""
        row, first = self.tokens.rows[self.at - 1], self.at
        while self.tokens.rows[self.at] == row and self.kinds[self.at] != "end":
            self.at += 1
        return self.texts[first : self.at]

    def skip_statement(self) -> None:
        """Go past the next semicolon."""
        while not self.take(";"):
            if self.kinds[self.at] == "end":
                self.fail("';' expected, found the end of the text")
            self.at += 1

    # -- variables
    def variables(self, space: str, external: bool = False) -> list[Variable]:
        """The declarators after a state space, up to the semicolon."""
        found: list[Variable] = []
        type, align, width, _ = self.declared_type()
        while True:
            found.append(self.declarator(space, type, align, width, external))
            if not self.take(","):
                break
        self.expect(";")
        return found

    def declared_type(self) -> tuple[str, int, int, bool]:
        """Type, alignment (0 if none is given), elements of a vector, and whether it's a pointer."""
        align, width, pointer, type = 0, 1, False, ""
        while self.kinds[self.at] == "word" and self.texts[self.at].startswith("."):
            word = self.texts[self.at][1:]
            self.at += 1
            if word == "align":
                align = self.integer("an alignment")
            elif word in ("v2", "v4", "v8"):
                width = int(word[1:])
            elif word in ("ptr", "global", "shared", "const", "local"):
                pointer = True
            elif word in TYPE_BITS:
                type = word
            else:
                self.fail(f"unknown type '.{word}'", did_you_mean(word, TYPE_BITS), at=self.at - 1)
        if not type:
            self.fail(f"a type expected, found '{self.texts[self.at]}'")
        return type, align, width, pointer

    def declarator(
        self, space: str, type: str, align: int, width: int, external: bool, pointer: bool = False
    ) -> Variable:
        """A variable's name, dims and initial value; `element` sizes come from its type and vector width."""
        name = self.word("a name")
        element = max(1, TYPE_BITS[type] // 8)
        count: int | None = None
        while self.take("["):
            if self.take("]"):
                count = 0
                continue
            count = (1 if count is None else count) * self.integer("a number of elements")
            self.expect("]")
        size = element * width * (1 if count is None else count)
        variable = Variable(name, space, type, size, max(align, element * width, 1), external=external, pointer=pointer)
        if align:
            variable.align = align
        if self.take("="):
            self.initializer(variable, element)
        return variable

    def initializer(self, variable: Variable, element: int) -> None:
        """The initial value of a variable whose elements have `element` bytes."""
        data = bytearray()
        addresses: list[tuple[int, Symbol]] = []
        depth = 0
        while True:
            if self.take("{"):
                depth += 1
                continue
            if self.kinds[self.at] == "word":
                addresses.append((len(data), self.symbol_value()))
                data += bytes(element)
            elif not self.peek("}"):
                negative = self.take("-")
                if self.kinds[self.at] != "number":
                    self.fail(f"a value expected, found '{self.texts[self.at]}'")
                value = immediate(self.texts[self.at], negative)
                self.at += 1
                data += _element_bytes(value, variable.type, element)
            while depth and self.take("}"):
                depth -= 1
            if depth == 0:
                break
            self.expect(",")
        if variable.size == 0:
            variable.size = len(data)
        if len(data) > variable.size:
            self.fail(f"{len(data)} bytes of values for '{variable.name}', which has {variable.size}")
        variable.initial = bytes(data)
        variable.addresses = tuple(addresses)

    def symbol_value(self) -> Symbol:
        """The address of another variable, with an offset, as an initial value."""
        name = self.word("a symbol")
        if name == "generic":
            self.expect("(")
            inner = self.symbol_value()
            self.expect(")")
            return Symbol(inner.name, inner.offset + (self.integer("an offset") if self.take("+") else 0))
        return Symbol(name, self.integer("an offset") if self.take("+") else 0)


def _element_bytes(value: Immediate, type: str, size: int) -> bytes:
    if value.kind == "decimal":
        number = struct.unpack("<d", value.value.to_bytes(8, "little"))[0]
        if type == "f32":
            return struct.pack("<f", number)
        return struct.pack("<d", number)
    return (value.value & ((1 << (8 * size)) - 1)).to_bytes(size, "little")
