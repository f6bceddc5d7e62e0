"""Splitting IR text into tokens (the lexical rules of the MLIR Language Reference).

In: the text of one module.  Out: a `TokenStream`: plain token strings, and the place of any of them on demand.

A whole type such as `tensor<4xcomplex<f32>>`, and a whole dialect attribute such as `#gpu<dim x>`, is one token: equal
texts then mean equal types, and one dictionary lookup parses them.  Tokens are strings without positions (one call
of the regex engine makes them all); a position is found again, by scanning, when an error needs it.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from warpsmith.errors import IrSyntaxError, Span

__all__ = ["TokenStream", "split_input"]


def _balanced(levels: int) -> str:
    """A pattern for the text between `<` and `>`, with strings, arrows, and `levels` further levels of brackets."""
    inner = rf"|<{_balanced(levels - 1)}>" if levels else ""
    return rf'(?:[^<>"\-]++|->|-|"(?:[^"\\\n]|\\.)*+"{inner})*+'


_BODY = f"<{_balanced(6)}>"
_TOKEN = re.compile(
    r"(?:[ \t\r\n]|//[^\n]*)*+("
    r"%[\w.$-]+(?:#\d+)?"  # a value
    rf"|(?:tensor|vector|memref|complex|affine_map|affine_set){_BODY}"
    r"|[A-Za-z_][\w$.]*"  # a keyword, an op, a scalar type
    r"|->|::"
    r"|-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)"
    r'|@?"(?:[^"\\\n]|\\.)*"'
    r"|@[\w$.-]+"
    r"|\^[\w$.-]+"
    rf"|[#!][\w$.]+(?:{_BODY})?"
    r"|\{-#"  # resources, which are refused by name
    r"|[^ \t\r\n]"
    r"|\Z"  # the end, so that blanks and comments before it belong to a match
    r")"
)
_SPLIT = re.compile(r"^// -----[ \t]*\n?", re.MULTILINE)

END = ""
"""The token after the last."""


class TokenStream:
    """Tokens with a cursor.  `tokens[i]` is a string; the last one is END."""

    __slots__ = ("_lines", "_starts", "file", "i", "line_offset", "text", "tokens")

    def __init__(self, text: str, file: str, line_offset: int = 0) -> None:
        self.text = text
        self.file = file
        self.line_offset = line_offset
        self.tokens: list[str] = _TOKEN.findall(text)
        self.tokens.append(END)
        self.i: int = 0
        self._starts: list[int] = []
        self._lines: list[int] = []

    # -- moving on
    def accept(self, token: str) -> bool:
        """Step over `token` if it is next."""
        if self.tokens[self.i] == token:
            self.i += 1
            return True
        return False

    def expect(self, token: str, what: str = "") -> None:
        """Step over `token`, which must be next."""
        if self.tokens[self.i] != token:
            where = f" {what}" if what else ""
            raise self.error(f"expected '{token}'{where}, found {self.shown()}")
        self.i += 1

    def shown(self, index: int | None = None) -> str:
        """A token as an error message names it."""
        token = self.tokens[self.i if index is None else index]
        if token == END:
            return "the end of the text"
        return f"'{token}'" if len(token) <= 40 else f"'{token[:37]}...'"

    # -- places
    def _scan(self) -> None:
        if not self._starts:
            end = len(self.text.rstrip())
            self._starts = [min(m.start(1), end) for m in _TOKEN.finditer(self.text)]
            self._starts.append(end)
            self._lines = [0]
            self._lines += [m.end() for m in re.finditer("\n", self.text)]

    def place(self, index: int) -> tuple[int, int]:
        """Line and column, from 1, of token `index`."""
        if not self._starts:
            self._scan()
        start = self._starts[index]
        line = bisect_right(self._lines, start)
        return line + self.line_offset, start - self._lines[line - 1] + 1

    def span(self, index: int | None = None) -> Span:
        """The place of token `index` (the next one by default)."""
        index = self.i if index is None else index
        line, column = self.place(index)
        begin = self._lines[line - 1 - self.line_offset]
        end = self.text.find("\n", begin)
        source = self.text[begin:] if end < 0 else self.text[begin:end]
        return Span(self.file, line, column, source, max(1, len(self.tokens[index])))

    def error(self, cause: str, index: int | None = None, help: str | None = None) -> IrSyntaxError:
        """The error to raise about token `index` (the next one by default)."""
        index = self.i if index is None else index
        token = self.tokens[index]
        if token in ('"', '@"') and help is None:
            help = "the string that starts here isn't closed on its line"
        return IrSyntaxError(cause, span=self.span(index), help=help)


def split_input(text: str) -> list[tuple[str, int]]:
    """The parts of a file that `// -----` lines separate, each with the number of lines before it."""
    parts: list[tuple[str, int]] = []
    start = line = 0
    for cut in _SPLIT.finditer(text):
        parts.append((text[start : cut.start()], line))
        line += text.count("\n", start, cut.end())
        start = cut.end()
    parts.append((text[start:], line))
    return parts
