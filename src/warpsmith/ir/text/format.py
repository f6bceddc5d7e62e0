"""One-line descriptions of an op's pretty form, turned into a printer and a parser.

    tensor.insert   "$scalar into $dest[$indices*]{} : type(dest)"   "scalar=elem(dest) indices=index result=dest"

In: a form's text and its type rules.  Out: a `Form`.  The text is literal but for:

    $name  $name*  $*     an operand; a group of operands, separated by commas; all operands
    type(name)            the type of an operand or result; of each value of a group, separated by commas
    %fn                   the function type of all operands and results
    <kind:attribute>      an attribute, by a kind of `KINDS`;  <kind:attribute?> prints nothing when it is absent
    {}                    the attributes that nothing else prints, in braces

Operands and results may be named by place too: 0, 1... and r0, r1...  A rule `name=...` gives the type that the text
leaves out: `index`, `i1`, `i32`, a value's name (the same type), `elem(name)` (its element), `mask(name)` (i1 in its
shape).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warpsmith.errors import InternalError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.attributes import Attribute
from warpsmith.ir.core.operands import SEGMENTS, group_names, has_segments, operand_groups, split
from warpsmith.ir.core.ssa import Operation, OpRow, Value
from warpsmith.ir.core.types import Type
from warpsmith.ir.text.format_kinds import KINDS, Kind
from warpsmith.ir.text.lexer import END, TokenStream

if TYPE_CHECKING:
    from warpsmith.ir.text.parser import Parser
    from warpsmith.ir.text.printer import Printer

__all__ = ["Form", "Unprintable", "described"]


class Unprintable(Exception):
    """The pretty form can't say what an op holds; the printer falls back on the generic form."""


@dataclass(frozen=True, slots=True)
class Form:
    """How an op's pretty text is written (after its name) and read (after its name).

    `check` says in words which of the types that the text leaves out isn't what the form makes of it, or gives None.
    """

    print: Callable[[Printer, Operation], None]
    parse: Callable[[Parser, OpRow], Operation]
    check: Callable[[Operation], str | None] | None = None


# --------------------------------------------------------------------------------------------------------- descriptions
_PIECE = re.compile(r"\$(\w*)(\*?)|type\((\w+)\)|(%fn)|<(\w+):([\w.]+)(\??)>|(\{\})")
_RULE = re.compile(r"(\w+)=(?:(elem|mask)\()?(\w+)\)?")
_FIXED: dict[str, Type] = {t.text: t for t in (ty.INDEX, ty.I1, ty.I32)}


@dataclass(slots=True)
class _Reading:
    """What the parser has met of one op."""

    operands: list[list[int]]
    types: dict[int, list[Type]] = field(default_factory=dict[int, list[Type]])
    attributes: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    everything: list[int] | None = None
    function: ty.FunctionType | None = None


_Print = Callable[["Printer", Operation, "list[list[Value]]"], None]
_Parse = Callable[["Parser", _Reading], None]


class _Bound:
    """A description bound to one row: names are places.  Values count operands first, then results."""

    def __init__(self, text: str, rules: str, row: OpRow) -> None:
        self.row = row
        names = [*group_names(row.operands), *group_names(row.results)]
        self.names = names
        self.places = {name: i for i, name in reversed(list(enumerate(names)))}
        self.operands = len(row.operands)
        self.varies = [n[-1] in "*?" for n in (*row.operands, *row.results)]
        for i in range(self.operands):
            self.places.setdefault(str(i), i)
        for i in range(len(row.results)):
            self.places[f"r{i}"] = self.operands + i
        self.direct = not any(self.varies[: self.operands])
        self.segmented = has_segments(row)
        self.hidden = {SEGMENTS} if self.segmented else set[str]()
        self.prints: list[_Print] = []
        self.parses: list[_Parse] = []
        at_char = 0
        for piece in _PIECE.finditer(text):
            self.literal(text[at_char : piece.start()])
            self.piece(piece)
            at_char = piece.end()
        self.literal(text[at_char:])
        self.rules: list[tuple[int, str, Type | int]] = []
        for rule in _RULE.finditer(rules):
            target = self.place(rule[1])
            self.rules.append((target, rule[2] or "", _FIXED[rule[3]] if rule[3] in _FIXED else self.place(rule[3])))

    def place(self, name: str) -> int:
        found = self.places.get(name)
        if found is None:
            raise InternalError(f"the form of {self.row.name} names '{name}', which the row lacks")
        return found

    # -- compiling
    def literal(self, text: str) -> None:
        if not text:
            return
        tokens = [t for t in TokenStream(text, "").tokens if t != END]

        def read(p: Parser, _: _Reading) -> None:
            for token in tokens:
                p.expect(token, f"in '{self.row.name}'")

        self.prints.append(lambda p, _op, _groups: p.write(text))
        if tokens:
            self.parses.append(read)

    def piece(self, found: re.Match[str]) -> None:
        if found[8]:
            self.prints.append(lambda p, op, _: p.attributes(op, self.hidden))
            self.parses.append(lambda p, reading: reading.attributes.update(p.optional_dict()))
        elif found[5]:
            self.attribute(KINDS[found[5]], found[6], bool(found[7]))
        elif found[4]:
            self.prints.append(lambda p, op, _: p.write(_function_text(op)))
            self.parses.append(_read_function)
        elif found[3]:
            self.type(self.place(found[3]))
        elif found[1]:
            self.operand(self.place(found[1]), bool(found[2]))
        else:
            self.prints.append(lambda p, op, _: p.write(p.operands(op.operands)))
            self.parses.append(lambda p, reading: setattr(reading, "everything", p.operand_list()))

    def operand(self, place: int, group: bool) -> None:
        self.prints.append(lambda p, _op, groups: p.write(p.operands(groups[place])))
        if group:
            self.parses.append(lambda p, reading: reading.operands[place].extend(p.operand_list()))
        else:
            self.parses.append(lambda p, reading: reading.operands[place].append(p.operand()))

    def type(self, place: int) -> None:
        if place < self.operands:
            self.prints.append(lambda p, _op, groups: p.write(", ".join([v.type.text for v in groups[place]])))
        elif self.varies[place]:
            self.prints.append(lambda p, op, _: p.write(", ".join([v.type.text for v in op.results])))
        else:
            index = place - self.operands
            self.prints.append(lambda p, op, _: p.write(op.results[index].type.text))

        def read(p: Parser, reading: _Reading) -> None:
            types = [p.type()]
            if self.varies[place] and place < self.operands:
                for _ in range(len(reading.operands[place]) - 1):
                    p.expect(",", "and a type for each operand")
                    types.append(p.type())
            elif self.varies[place]:
                while p.accept(","):
                    types.append(p.type())
            reading.types[place] = types

        self.parses.append(read)

    def attribute(self, kind: Kind, name: str, optional: bool) -> None:
        self.hidden.add(name)
        keyword = f" {name}" if kind is KINDS["unit"] else ""

        def show(p: Printer, op: Operation, _: list[list[Value]]) -> None:
            value = op.attributes.get(name)
            if value is None and optional:
                return
            text = kind.print(value, op.row) if value is not None else None
            if text is None:
                raise Unprintable
            p.write(keyword + text)

        def read(p: Parser, reading: _Reading) -> None:
            value = kind.parse(p, self.row, name)
            if value is not None:
                reading.attributes[name] = value
            elif not optional:
                raise p.error(f"expected {name}, found {p.shown()}")

        self.prints.append(show)
        self.parses.append(read)

    # -- running
    def groups(self, op: Operation) -> list[list[Value]]:
        if self.direct and len(op.operands) == self.operands:
            return [[v] for v in op.operands]
        return operand_groups(op)

    def _types(self, op: Operation, groups: list[list[Value]], place: int) -> list[Type]:
        if place < self.operands:
            return [v.type for v in groups[place]]
        if self.varies[place]:
            return [r.type for r in op.results]
        return [op.results[place - self.operands].type]

    def violation(self, op: Operation, groups: list[list[Value]]) -> str | None:
        """Which value's type breaks a rule, in words."""
        results = self.varies[self.operands :]
        if len(op.results) != len(results) and not any(results):
            return f"{len(op.results)} results, but {len(results)} are needed"
        for target, function, source in self.rules:
            wanted = [source] if isinstance(source, Type) else self._types(op, groups, source)
            given = self._types(op, groups, target)
            if function == "elem":
                wanted = [ty.element_type(t) for t in wanted]
            elif function == "mask":
                wanted = [ty.with_element(t, ty.I1) for t in wanted]
            if len(wanted) == 1 and target < self.operands:
                wanted = wanted * len(given)
            if len(given) != len(wanted):
                return f"'{self.names[target]}' has {len(given)} values, but {len(wanted)} are needed"
            for type, want in zip(given, wanted, strict=True):
                if type is not want:
                    return f"'{self.names[target]}' has type {type}, but {want} is needed"
        return None

    def print(self, p: Printer, op: Operation) -> None:
        groups = self.groups(op)
        if self.violation(op, groups) is not None:
            raise Unprintable
        for step in self.prints:
            step(p, op, groups)

    def parse(self, p: Parser) -> Operation:
        start = p.i - 1
        reading = _Reading([[] for _ in range(self.operands)])
        for step in self.parses:
            step(p, reading)
        if reading.everything is not None:
            found = split(self.row.operands, reading.everything)
            if found is None:
                raise p.error(
                    f"{len(reading.everything)} operands for {self.row.name}",
                    start,
                    f"it takes: {', '.join(self.row.operands)}",
                )
            reading.operands = found
        if reading.function is not None:
            operands, results = self.by_function(p, reading, reading.function, start)
        else:
            operands, results = self.by_rules(p, reading, start)
        if self.segmented:
            reading.attributes[SEGMENTS] = at.dense_array([len(g) for g in reading.operands], ty.I32)
        return Operation(self.row, operands, results, reading.attributes)

    def by_function(
        self, p: Parser, reading: _Reading, type: ty.FunctionType, start: int
    ) -> tuple[list[Value], list[Type]]:
        refs = [r for group in reading.operands for r in group]
        if len(refs) != len(type.inputs):
            raise p.error(f"{len(refs)} operands, but {len(type.inputs)} operand types", start)
        return [p.resolve(r, t) for r, t in zip(refs, type.inputs, strict=True)], list(type.results)

    def by_rules(self, p: Parser, reading: _Reading, start: int) -> tuple[list[Value], list[Type]]:
        types = reading.types
        for target, function, source in self.rules:
            if isinstance(source, int):
                found = types[source]
                if function == "elem":
                    found = [ty.element_type(t) for t in found]
                elif function == "mask":
                    found = [ty.with_element(t, ty.I1) for t in found]
            else:
                found = [source]
            if target < self.operands and len(found) == 1:
                found = found * len(reading.operands[target])
            types[target] = found
        operands: list[Value] = []
        for i, group in enumerate(reading.operands):
            if group:
                operands += p.resolve_all(group, types[i])
        results = [t for i in range(self.operands, len(self.varies)) for t in types.get(i, ())]
        return operands, results


def _function_text(op: Operation) -> str:
    return ty.function([v.type for v in op.operands], [r.type for r in op.results]).text


def _read_function(p: Parser, reading: _Reading) -> None:
    reading.function = p.function_type()


def described(text: str, rules: str = "") -> Form:
    """The form that a description spells, for any row whose names fit."""
    bound: dict[str, _Bound] = {}

    def of(row: OpRow) -> _Bound:
        found = bound.get(row.name)
        if found is None:
            found = bound[row.name] = _Bound(text, rules, row)
        return found

    def check(op: Operation) -> str | None:
        found = of(op.row)
        return found.violation(op, found.groups(op))

    return Form(lambda p, op: of(op.row).print(p, op), lambda p, row: of(row).parse(p), check)
