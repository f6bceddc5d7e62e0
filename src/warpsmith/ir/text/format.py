"""One-line descriptions of an op's pretty form, turned into a printer and a parser.

    tensor.insert   "$scalar into $dest[$indices*]{} : type(dest)"   "scalar=elem(dest) indices=index result=dest"

In: a form's text and its type rules.  Out: a `Form`.  The text is literal but for:

    $name  $name*  $*     an operand; a group of operands, separated by commas; all operands
    $name*|i64:attribute  a list of numbers in which each gap (the least i64) is the next operand of the group
    type(name)            the type of an operand or result; of each value of a group, separated by commas
    %fn                   the function type of all operands and results
    <kind:attribute>      an attribute, by a kind of `KINDS`;  <kind:attribute?> prints nothing when it is absent
    {}                    the attributes that nothing else prints, in braces

Operands and results may be named by place too: 0, 1... and r0, r1...  A rule `name=...` gives the type that the text
leaves out: `index`, `i1`, `i32`, a value's name (the same type), or a function of `DERIVED` of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from warpsmith.errors import InternalError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core import llvm_types as lt
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.attributes import Attribute
from warpsmith.ir.core.operands import SEGMENTS, group_names, has_segments, operand_groups, split
from warpsmith.ir.core.ssa import Operation, OpRow, Value
from warpsmith.ir.core.types import Type
from warpsmith.ir.text.format_kinds import KINDS, Kind
from warpsmith.ir.text.lexer import END, TokenStream
from warpsmith.ir.text.parser import Parser
from warpsmith.ir.text.printer import Printer, Unprintable

__all__ = ["Form", "described"]


@dataclass(frozen=True, slots=True)
class Form:
    """How an op's pretty text is written (after its name) and read (after its name).

    `check` says in words which of the types that the text leaves out isn't what the form makes of it, or gives None.
    """

    print: Callable[[Printer, Operation], None]
    parse: Callable[[Parser, OpRow], Operation]
    check: Callable[[Operation], str | None] | None = None


# --------------------------------------------------------------------------------------------------------- descriptions
_PIECE = re.compile(r"\$(\w*)(\*?)(?:\|(i32|i64):(\w+))?|type\((\w+)\)|(%fn)|<(\w+):([\w.]+)(\??)>|(\{\})")
_RULE = re.compile(r"(\w+)=(?:(\w+)\()?(\w+)\)?")
_FIXED: dict[str, Type] = {t.text: t for t in (ty.INDEX, ty.I1, ty.I32)}


def _lanes(type: Type, attributes: Mapping[str, Attribute]) -> Type | None:
    mask = attributes.get("mask")
    return ty.vector((len(mask.values),), ty.element_type(type)) if isinstance(mask, at.DenseArrayAttr) else None


def _part(type: Type, attributes: Mapping[str, Attribute]) -> Type | None:
    position = attributes.get("position")
    for index in position.values if isinstance(position, at.DenseArrayAttr) else ():
        if isinstance(type, lt.LLVMStructType) and 0 <= index < len(type.fields):
            type = type.fields[index]
        elif isinstance(type, lt.LLVMArrayType) and 0 <= index < type.count:
            type = type.element
        else:
            return None
    return type


DERIVED: dict[str, Callable[[Type, Mapping[str, Attribute]], Type | None]] = {
    "": lambda type, _: type,
    "elem": lambda type, _: ty.element_type(type),
    "mask": lambda type, _: ty.with_element(type, ty.I1),
    "lanes": _lanes,
    "part": _part,
    "pair": lambda type, _: lt.llvm_struct((type, ty.I1)),
}
"""Types made of others: the element; i1 in its shape; its element, a lane for each number of the attribute `mask`; the
part of an aggregate at the attribute `position`; a struct of it and an i1.  None where there is no such type."""


@dataclass(slots=True)
class _Reading:
    """What the parser has met of one op."""

    operands: list[list[int]]
    types: dict[int, list[Type]] = field(default_factory=dict[int, list[Type]])
    attributes: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    everything: list[int] | None = None
    function: ty.FunctionType | None = None


_Print = Callable[[Printer, Operation, list[list[Value]]], None]
_Parse = Callable[[Parser, _Reading], None]


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
        name, group, mixed, numbers, type, function, kind, attribute, optional, braces = found.groups()
        if braces:
            self.prints.append(lambda p, op, _: p.attributes(op, self.hidden))
            self.parses.append(lambda p, reading: reading.attributes.update(p.optional_dict()))
        elif kind:
            self.attribute(KINDS[kind], attribute, bool(optional))
        elif function:
            self.prints.append(lambda p, op, _: p.write(_function_text(op)))
            self.parses.append(_read_function)
        elif type:
            self.type(self.place(type))
        elif mixed:
            self.mixed(self.place(name), numbers, ty.I32 if mixed == "i32" else ty.I64)
        elif name:
            self.operand(self.place(name), bool(group))
        else:
            self.prints.append(lambda p, op, _: p.write(p.operands(op.operands)))
            self.parses.append(lambda p, reading: setattr(reading, "everything", p.operand_list()))

    def operand(self, place: int, group: bool) -> None:
        self.prints.append(lambda p, _op, groups: p.write(p.operands(groups[place])))
        if group:
            self.parses.append(lambda p, reading: reading.operands[place].extend(p.operand_list()))
        else:
            self.parses.append(lambda p, reading: reading.operands[place].append(p.operand()))

    def mixed(self, place: int, name: str, element: ty.IntegerType) -> None:
        self.hidden.add(name)
        gap = -(1 << (element.width - 1))

        def show(p: Printer, op: Operation, groups: list[list[Value]]) -> None:
            numbers = op.attributes.get(name)
            if not isinstance(numbers, at.DenseArrayAttr) or numbers.element is not element:
                raise Unprintable
            if numbers.values.count(gap) != len(groups[place]):
                raise Unprintable
            values = iter(groups[place])
            p.write(", ".join([p.names[next(values)] if v == gap else str(v) for v in numbers.values]))

        def read(p: Parser, reading: _Reading) -> None:
            numbers: list[int] = []
            while p.tokens[p.i] != "]":
                if numbers:
                    p.expect(",", "or ']'")
                if p.tokens[p.i][:1] == "%":
                    reading.operands[place].append(p.operand())
                    numbers.append(gap)
                else:
                    numbers.append(p.integer("a position"))
            reading.attributes[name] = at.dense_array(numbers, element)

        self.prints.append(show)
        self.parses.append(read)

    def type(self, place: int) -> None:
        def show(p: Printer, op: Operation, groups: list[list[Value]]) -> None:
            types = self._types(op, groups, place)
            if not types:
                raise Unprintable
            p.write(", ".join([t.text for t in types]))

        self.prints.append(show)

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
            sources = [source] if isinstance(source, Type) else self._types(op, groups, source)
            given = self._types(op, groups, target)
            wanted = [DERIVED[function](t, op.attributes) for t in sources]
            if len(wanted) == 1 and target < self.operands:
                wanted = wanted * len(given)
            if len(given) != len(wanted):
                return f"'{self.names[target]}' has {len(given)} values, but {len(wanted)} are needed"
            for type, want in zip(given, wanted, strict=True):
                if want is None:
                    return f"'{self.names[target]}' is no part of type {sources[0]}"
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
            found: list[Type] = []
            for type in [source] if isinstance(source, Type) else types[source]:
                derived = DERIVED[function](type, reading.attributes)
                if derived is None:
                    raise p.error(f"{type} has no part that is the '{self.names[target]}' of {self.row.name}", start)
                found.append(derived)
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
