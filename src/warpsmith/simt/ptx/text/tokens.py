"""PTX text in, tokens out: words (names, opcodes, directives), literals, punctuation, each with its line and column."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import NoReturn

from warpsmith.errors import PtxSyntaxError, Span
from warpsmith.simt.ptx.text.module import Immediate

__all__ = ["END", "Tokens", "immediate", "tokenize"]

END = "end of text"

_TOKEN = re.compile(
    r"(?P<space>[ \t\r\f]+|//[^\n]*)"
    r"|(?P<newline>\n)"
    r"|(?P<comment>/\*.*?\*/)"
    r"|(?P<word>[.%$_A-Za-z](?:[\w$%.]|::(?=\w))*)"
    r"|(?P<number>0[fF][0-9a-fA-F]{8}\b|0[dD][0-9a-fA-F]{16}\b|0[xX][0-9a-fA-F]+U?\b|0[bB][01]+U?\b"
    r"|\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+U?\b)"
    r'|(?P<string>"[^"\n]*")'
    r"|(?P<punct>[{}\[\]()<>,;:@!+\-|=*])",
    re.DOTALL,
)


@dataclass(slots=True)
class Tokens:
    """Parallel lists, closed by an END token.  `kinds` are "word", "number", "string", "punct", "end"."""

    file: str
    lines: list[str]
    kinds: list[str]
    texts: list[str]
    rows: list[int]
    columns: list[int]

    def fail(self, position: int, cause: str, help: str | None = None) -> NoReturn:
        """Raise PtxSyntaxError that points at a token."""
        row = self.rows[position]
        text = self.lines[row - 1] if row <= len(self.lines) else ""
        width = len(self.texts[position]) if self.kinds[position] != "end" else 1
        raise PtxSyntaxError(cause, span=Span(self.file, row, self.columns[position], text, width), help=help)


def tokenize(text: str, file: str) -> Tokens:
    """All tokens.  PtxSyntaxError for a character that starts none."""
    lines = text.split("\n")
    tokens = Tokens(file, lines, [], [], [], [])
    row, start, position = 1, 0, 0
    match = _TOKEN.match
    while position < len(text):
        found = match(text, position)
        if found is None:
            tokens.kinds.append("punct")
            tokens.texts.append(text[position])
            tokens.rows.append(row)
            tokens.columns.append(position - start + 1)
            tokens.fail(len(tokens.texts) - 1, f"{text[position]!r} starts no token of PTX")
        kind, end = found.lastgroup, found.end()
        if kind == "newline":
            row += 1
            start = end
        elif kind == "comment":
            row += text.count("\n", position, end)
            start = text.rfind("\n", 0, end) + 1
        elif kind != "space":
            tokens.kinds.append(kind or "")
            tokens.texts.append(text[position:end])
            tokens.rows.append(row)
            tokens.columns.append(position - start + 1)
        position = end
    tokens.kinds.append("end")
    tokens.texts.append(END)
    tokens.rows.append(row)
    tokens.columns.append(position - start + 1)
    return tokens


def immediate(text: str, negative: bool) -> Immediate:
    """The value of a number token."""
    head = text[:2].lower()
    if head == "0f":
        return Immediate("f32", int(text[2:], 16) ^ (1 << 31 if negative else 0))
    if head == "0d":
        return Immediate("f64", int(text[2:], 16) ^ (1 << 63 if negative else 0))
    if not head.startswith("0x") and any(c in text for c in ".eE"):
        value = -float(text) if negative else float(text)
        return Immediate("decimal", int.from_bytes(struct.pack("<d", value), "little"))
    digits = text.rstrip("U")
    if head == "0x":
        number = int(digits, 16)
    elif head == "0b":
        number = int(digits[2:], 2)
    elif len(digits) > 1 and digits[0] == "0":
        number = int(digits, 8)
    else:
        number = int(digits)
    return Immediate("int", -number if negative else number)
