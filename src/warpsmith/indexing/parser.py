"""Reading expressions and maps.

In: text.  Out: expressions, maps, or an IndexingSyntaxError with the place.  Read are both spellings of floor division
(`floordiv`, `/`), `floorDiv`, `ceildiv`, `ceilDiv`, `%`, text over several lines, and a comma at the end.

    (th_x, bl_x)[vector_index]{rt0} -> (bl_x floordiv 8 + rt0, th_x * 4 + vector_index), domain: th_x in [0, 127],
    bl_x in [0, 15], vector_index in [0, 3], rt0 in [0, 5], bl_x * 4 + th_x in [0, 99]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from warpsmith.errors import IndexingError, IndexingSyntaxError, Span, did_you_mean
from warpsmith.indexing.expr import (
    Expr,
    Var,
    add,
    ceildiv,
    const,
    dim,
    floordiv,
    maximum,
    minimum,
    mod,
    mul,
    symbol,
)
from warpsmith.indexing.interval import INT64_MAX, INT64_MIN, Interval
from warpsmith.indexing.map import IndexingMap, Variable

__all__ = ["parse_expr", "parse_map"]

_TOKEN = re.compile(r"\s*(?:(?P<number>\d+)|(?P<word>[A-Za-z_][\w.$]*)|(?P<mark>->|[-+*/%()\[\]{},:])|(?P<end>\Z))")
_MAX_NESTING: Final = 100

_Operator = Callable[[Expr, Expr], Expr]
_PRODUCTS: Final[dict[str, _Operator]] = {
    "*": mul,
    "/": floordiv,
    "floordiv": floordiv,
    "floorDiv": floordiv,
    "ceildiv": ceildiv,
    "ceilDiv": ceildiv,
    "mod": mod,
    "%": mod,
}
_FUNCTIONS: Final[dict[str, _Operator]] = {"min": minimum, "max": maximum}
_RESERVED: Final = {"domain", "in", "mod", "floordiv", "floorDiv", "ceildiv", "ceilDiv"}


class _Parser:
    def __init__(self, text: str, file: str) -> None:
        self._text, self._file = text, file
        self._names: dict[str, Expr] = {}
        self._nesting = 0
        self._at = 0  # where the current token ends
        self._start = 0  # where it starts
        self.kind = self.token = ""
        self.advance()

    def error(self, cause: str, help: str | None = None) -> IndexingSyntaxError:
        line = self._text.count("\n", 0, self._start) + 1
        begin = self._text.rfind("\n", 0, self._start) + 1
        source = self._text[begin:].split("\n", 1)[0]
        column = self._start - begin + 1
        return IndexingSyntaxError(
            cause, span=Span(self._file, line, column, source, max(1, len(self.token))), help=help
        )

    def advance(self) -> str:
        """Moves to the next token; returns the one left behind."""
        left = self.token
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            self._start = self._at + len(self._text[self._at :]) - len(self._text[self._at :].lstrip())
            self.token = self._text[self._start]
            raise self.error(f"unexpected character {self.token!r} in an indexing map")
        self.kind = match.lastgroup or "end"
        self.token = match.group(self.kind)
        self._start, self._at = match.start(self.kind), match.end()
        return left

    def accept(self, token: str) -> bool:
        if self.token == token and self.kind != "end":
            self.advance()
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.accept(token):
            found = f"'{self.token}'" if self.token else "the end"
            raise self.error(f"expected '{token}' in an indexing map, found {found}")

    def expect_end(self) -> None:
        if self.kind != "end":
            raise self.error(f"unexpected '{self.token}' after an indexing map")

    def declare(self, name: str, variable: Expr) -> None:
        self._names[name] = variable

    # names ------------------------------------------------------------------------------------------------------

    def names(self, opening: str, closing: str, make: Callable[[int], Expr], first: int = 0) -> list[str]:
        """An optional list of new names in brackets."""
        found: list[str] = []
        if not self.accept(opening):
            return found
        while not self.accept(closing):
            if found:
                self.expect(",")
            if self.kind != "word" or self.token in _RESERVED:
                raise self.error(f"expected the name of a variable, found '{self.token}'")
            if self.token in self._names:
                raise self.error(f"variable '{self.token}' is declared twice")
            self.declare(self.token, make(first + len(found)))
            found.append(self.advance())
        return found

    # expressions ------------------------------------------------------------------------------------------------

    def expression(self) -> Expr:
        terms = [self.product()]
        while self.token in ("+", "-"):
            sign = self.advance()
            term = self.product()
            terms.append(-term if sign == "-" else term)
        return add(*terms)

    def product(self) -> Expr:
        result = self.atom()
        while self.token in _PRODUCTS:
            operator = _PRODUCTS[self.token]
            at, token = self._start, self.advance()
            rhs = self.atom()
            try:
                result = operator(result, rhs)
            except IndexingError as error:
                self._start, self.token = at, token
                raise self.error(error.cause) from error
        return result

    def atom(self) -> Expr:
        self._nesting += 1
        if self._nesting > _MAX_NESTING:
            raise self.error(f"an index expression is nested more than {_MAX_NESTING} levels deep")
        result = self._atom()
        self._nesting -= 1
        return result

    def _atom(self) -> Expr:
        if self.accept("-"):
            return -self.atom()
        if self.accept("("):
            result = self.expression()
            self.expect(")")
            return result
        if self.kind == "number":
            return const(self.integer())
        if self.kind != "word" or self.token in _RESERVED:
            found = f"'{self.token}'" if self.token else "the end"
            raise self.error(f"expected an index expression, found {found}")
        known = self._names.get(self.token)
        if known is not None:
            self.advance()
            return known
        function = _FUNCTIONS.get(self.token)
        if function is None:
            raise self.error(f"unknown variable '{self.token}'", did_you_mean(self.token, self._names))
        self.advance()
        self.expect("(")
        lhs = self.expression()
        self.expect(",")
        rhs = self.expression()
        self.expect(")")
        return function(lhs, rhs)

    def integer(self) -> int:
        negative = self.accept("-")
        if self.kind != "number":
            raise self.error(f"expected an integer, found '{self.token}'")
        # A longer number can't fit, and int() itself refuses numbers of thousands of digits.
        value = int(self.token) if len(self.token) < 25 else INT64_MAX + 2
        value = -value if negative else value
        if not INT64_MIN <= value <= INT64_MAX:
            raise self.error("the number doesn't fit in 64 bits")
        self.advance()
        return value

    def interval(self) -> Interval:
        self.expect("[")
        lower = self.integer()
        self.expect(",")
        upper = self.integer()
        self.expect("]")
        return Interval(lower, upper)

    # maps -------------------------------------------------------------------------------------------------------

    def map(self) -> IndexingMap | None:
        if self.accept("UNDEFINED"):
            return None
        if self.accept("KNOWN"):
            self.expect("EMPTY")
            return IndexingMap((), (), (), ()).emptied()
        if self.token != "(":
            raise self.error("an indexing map starts with its dimensions: (d0, d1) -> (...)")
        dims = self.names("(", ")", dim)
        ranges = self.names("[", "]", symbol)
        runtime = self.names("{", "}", symbol, len(ranges))
        self.expect("->")
        self.expect("(")
        results: list[Expr] = []
        while not self.accept(")"):
            if results:
                self.expect(",")
                if self.accept(")"):
                    break
            results.append(self.expression())
        bounds, constraints = self.domain()
        for name, variable in self._names.items():
            if variable not in bounds:
                raise self.error(f"variable '{name}' has no bounds", f"add '{name} in [0, ...]' to the domain")
        names = [*dims, *ranges, *runtime]
        default = _default_names(len(dims), len(ranges), len(runtime))
        made = [
            Variable("" if name == usual else name, bounds[self._names[name]])
            for name, usual in zip(names, default, strict=True)
        ]
        d, r = len(dims), len(dims) + len(ranges)
        return IndexingMap.make(made[:d], results, range_vars=made[d:r], rt_vars=made[r:], constraints=constraints)

    def domain(self) -> tuple[dict[Expr, Interval], list[tuple[Expr, Interval]]]:
        """The bounds of variables (the first each is given), and everything else as constraints."""
        bounds: dict[Expr, Interval] = {}
        constraints: list[tuple[Expr, Interval]] = []
        self.accept(",")
        if not self.accept("domain"):
            return bounds, constraints
        self.expect(":")
        while self.kind != "end" and self.token not in (")", ">", '"'):
            expr = self.expression()
            self.expect("in")
            interval = self.interval()
            if type(expr) is Var and expr not in bounds:
                bounds[expr] = interval
            else:
                constraints.append((expr, interval))
            if not self.accept(","):
                break
        return bounds, constraints


def _default_names(dims: int, ranges: int, runtime: int) -> list[str]:
    return [*(f"d{i}" for i in range(dims)), *(f"s{i}" for i in range(ranges)), *(f"rt{i}" for i in range(runtime))]


def parse_map(text: str, file: str = "<string>") -> IndexingMap | None:
    """Reads a map; `UNDEFINED` gives None.  Anything else is an IndexingSyntaxError with the place.

    Every variable needs bounds in the domain.  Expressions come out in canonical form.
    """
    parser = _Parser(text, file)
    result = parser.map()
    parser.expect_end()
    return result


def parse_expr(text: str, dims: Sequence[str] = (), symbols: Sequence[str] = (), file: str = "<string>") -> Expr:
    """Reads an expression over the named variables.  Errors as in `parse_map`."""
    parser = _Parser(text, file)
    for i, name in enumerate(dims):
        parser.declare(name, dim(i))
    for i, name in enumerate(symbols):
        parser.declare(name, symbol(i))
    result = parser.expression()
    parser.expect_end()
    return result
