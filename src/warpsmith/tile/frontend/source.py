"""A kernel's text: the syntax tree of its function, and the places of its parts.

In: a Python function.  Out: `Source`.  The text comes from the file the function was compiled from, as `linecache`
knows it; a function without text (typed into `exec`) is refused.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from warpsmith.errors import Span, TileSyntaxError
from warpsmith.ir.core.ssa import Location

__all__ = ["Source", "source_of", "span_at"]


@dataclass(frozen=True, slots=True)
class Source:
    """A function's syntax tree and the file that it stands in."""

    file: str
    node: ast.FunctionDef

    def location(self, node: ast.AST) -> Location:
        """Where a part of the function stands, for IR."""
        return Location(
            (),
            self.file,
            getattr(node, "lineno", self.node.lineno),
            getattr(node, "col_offset", self.node.col_offset) + 1,
        )

    def span(self, node: ast.AST) -> Span:
        """Where a part of the function stands, for errors."""
        line = getattr(node, "lineno", self.node.lineno)
        column = getattr(node, "col_offset", self.node.col_offset)
        text = linecache.getline(self.file, line).rstrip("\n")
        last = getattr(node, "end_lineno", line)
        end: int = getattr(node, "end_col_offset", column + 1) if last == line else len(text)
        # The tree counts bytes, a reader characters.
        start = len(text.encode()[:column].decode(errors="ignore"))
        return Span(self.file, line, start + 1, text, max(1, end - column))


def span_at(location: Location) -> Span | None:
    """The place that an op of the IR came from; None where it came from nowhere."""
    if not location.line:
        return None
    text = linecache.getline(location.file, location.line).rstrip("\n")
    return Span(location.file, location.line, max(1, location.column), text, _token_length(text, location.column - 1))


def _token_length(text: str, start: int) -> int:
    """How long the expression that begins at `start` is: to the bracket that closes its first one, or to the end."""
    depth = 0
    for i in range(start, len(text)):
        if text[i] in "([{":
            depth += 1
        elif text[i] in ")]}":
            depth -= 1
            if depth <= 0:
                return i + 1 - start if depth == 0 else max(1, i - start)
        elif text[i] in ";#" and depth == 0:
            return max(1, len(text[start:i].rstrip()))
    return max(1, len(text.rstrip()) - start)


@lru_cache(maxsize=16)
def _tree(file: str, text: str) -> ast.Module:
    try:
        return ast.parse(text, file)
    except SyntaxError as error:
        span = Span(file, error.lineno or 1, error.offset or 1, error.text or "")
        raise TileSyntaxError(f"this isn't Python: {error.msg}", span=span) from error


def source_of(function: Callable[..., Any]) -> Source:
    """The text of a function.  TileSyntaxError when there is none."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename)
    if not lines:
        raise TileSyntaxError(
            f"the text of kernel '{function.__name__}' can't be found: a kernel is read, not run",
            help="put it into a file",
        )
    for node in ast.walk(_tree(code.co_filename, "".join(lines))):
        if isinstance(node, ast.FunctionDef) and node.name == function.__name__:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if code.co_firstlineno in (first, node.lineno):
                return Source(code.co_filename, node)
    raise TileSyntaxError(
        f"{code.co_filename} no longer holds kernel '{function.__name__}' at line {code.co_firstlineno}",
        help="the file was changed after it was read: load it again",
    )
