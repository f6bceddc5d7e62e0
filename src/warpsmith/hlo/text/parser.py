"""Reading HLO text.

In: text, as XLA prints it or a person writes it: with or without a header, `%`, operand shapes, layouts, signatures,
comments, `ENTRY`, `ROOT`.  Out: an `HloModule`.  Here every computation is read into records; `resolve` then looks up
the names and builds the immutable objects.  Every error carries file, line, column, cause, and mostly a next step.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Generator
from contextlib import contextmanager

from warpsmith.errors import BadAttribute, HloSyntaxError, UnknownOpcode, did_you_mean, require
from warpsmith.hlo.literals import Literal
from warpsmith.hlo.module import HloModule, frozen
from warpsmith.hlo.opcodes import OPCODES, Opcode, lookup
from warpsmith.hlo.shapes import AnyShape
from warpsmith.hlo.text.attribute_readers import Reference
from warpsmith.hlo.text.attribute_table import ATTRIBUTES, ValueKind
from warpsmith.hlo.text.header import check_new, read_header, unknown_attribute
from warpsmith.hlo.text.lexer import MAX_DEPTH, NAME, Scanner, Source
from warpsmith.hlo.text.literals import read_literal
from warpsmith.hlo.text.records import UNNAMED, ComputationRecord, InstructionRecord, Signature
from warpsmith.hlo.text.resolve import resolve_computations
from warpsmith.hlo.text.shapes import ARRAY_SHAPE, ShapeReader
from warpsmith.hlo.text.style import PrintStyle
from warpsmith.hlo.wrap import wrap_bare_fusion

__all__ = ["parse_hlo"]

# `ROOT %name = f32[2]{0} opcode(`: all but comments and tuple shapes, in one match.
_HEAD = re.compile(rf"\s*(ROOT\s+)?(%?)({NAME})\s*=\s*({ARRAY_SHAPE.pattern})\s*([a-z][\w\-]*)\(")
_SHAPE_GROUP, _OPCODE_GROUP = 4, 8
_OPCODE = re.compile(r"[A-Za-z_][\w\-]*")
_OPERANDS = re.compile(rf"\s*((?:%?{NAME}(?:\s*,\s*%?{NAME})*)?)\s*\)")
_OPERAND_SHAPE = re.compile(r"\(|[A-Za-z]\w*\[|b\(")
_ATTRIBUTE_NAME = re.compile(r"([A-Za-z_][\w\-]*)\s*=\s*")
_ATTRIBUTE = re.compile(r"\s*,\s*([A-Za-z_][\w\-]*)\s*=\s*")
# Values whose extent shows at a glance; instructions that write the same one share the object.
_SIMPLE_VALUE = re.compile(r'(?:\{(?:[^{}"]|"(?:[^"\\\n]|\\.)*")*\}|[\w.\-]+|"(?:[^"\\\n]|\\.)*")(?=[\s,}])')
_ROOT = re.compile(r"ROOT(?![\w.\-])\s*")
_ENTRY = re.compile(r"ENTRY(?![\w.\-])\s*")
_COMPUTATION_ATTRIBUTE = re.compile(r",\s*(\w+)\s*=\s*")


def parse_hlo(text: str, file: str = "<string>") -> HloModule:
    """The module that `text` holds.

    Without `ENTRY`, the last computation that nothing calls is taken for a fusion's body and wrapped into an entry.
    Raises subclasses of WarpsmithError of group 02 (text), InvalidHlo (numbering, order, layouts), and UsageError for
    what isn't text.
    """
    require(text, str, "parse_hlo takes HLO text", help="of a file: Path(name).read_text()")
    with _collector_paused():
        return _Parser(Source(text, file)).module()


@contextmanager
def _collector_paused() -> Generator[None, None, None]:
    """Without cyclic garbage collection: all that a parse makes stays alive, and looking through it again and again
    would take as long as the parse itself."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Parser:
    """Reads one text."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.scanner = Scanner(source)
        self.shapes = ShapeReader()
        self.records: list[ComputationRecord] = []
        self.percent = False
        self.operand_shapes = False
        self.program_shape = False
        self.operand_index = True
        self._inline: list[ComputationRecord] = []
        self._depth = 0
        self._unnamed = 0
        self._array_shapes: dict[str, AnyShape] = {}
        self._values: dict[tuple[str, str], object] = {}
        self._rows: dict[str, tuple[Opcode, frozenset[str]]] = {}

    def module(self) -> HloModule:
        scanner = self.scanner
        name, attributes = read_header(scanner, self.shapes)
        records = self.records
        while not scanner.at_end():
            records.append(self._computation())
        if not records:
            raise scanner.error("the text holds no computation", help="write `ENTRY name { ... }`")
        style = PrintStyle(
            percent=self.percent,
            operand_shapes=self.operand_shapes,
            program_shape=self.program_shape,
            operand_index=self.operand_index,
            tail=scanner.text[len(scanner.text.rstrip()) :],
        )
        computations, entry, is_bare = resolve_computations(self.source, records)
        module = HloModule(
            f"module_{entry.name}" if name is None else name, computations, entry, frozen(attributes), style
        )
        return wrap_bare_fusion(module) if is_bare else module

    def _computation(self) -> ComputationRecord:
        """`ENTRY %name (parameters) -> result { instructions }, attributes`."""
        scanner = self.scanner
        is_entry = scanner.match(_ENTRY) is not None
        self.percent |= scanner.peek() == "%"
        name, start = scanner.name("a computation's name" if is_entry else "`ENTRY` or a computation's name")
        signature = self._signature() if scanner.peek() == "(" else None
        if not scanner.accept("{"):
            raise scanner.expected(f"'{{' before the instructions of '{name}'")
        record = ComputationRecord(name, start, is_entry, signature)
        self._instructions(record)
        while (match := scanner.match(_COMPUTATION_ATTRIBUTE)) is not None:
            attribute = match.group(1)
            if attribute != "execution_thread":
                raise unknown_attribute(
                    scanner, "attribute of a computation", attribute, match.start(1), ("execution_thread",)
                )
            check_new(scanner, record.attributes, "attribute", attribute, match.start(1))
            record.attributes[attribute] = ATTRIBUTES[attribute].read(scanner, self.shapes)
        return record

    def _signature(self) -> Signature:
        """`(name: shape, ...) -> shape`.  As in XLA, the instructions say what the parameters are."""
        scanner = self.scanner
        self.program_shape = True
        scanner.expect("(", "before a computation's parameters")
        while not scanner.accept(")"):
            scanner.name("a parameter's name or ')'")
            scanner.accept(":")
            self.shapes.shape(scanner)
            if not scanner.accept(",") and scanner.peek() != ")":
                raise scanner.expected("',' or ')' after a parameter's shape")
        scanner.expect("->", "before the result's shape")
        result_start = scanner.skip()
        return Signature(self.shapes.shape(scanner), result_start)

    def _instructions(self, record: ComputationRecord) -> None:
        """Instructions up to the closing brace.  The common form takes one match; the rest go step by step."""
        scanner, text = self.scanner, self.scanner.text
        shapes = self._array_shapes
        root_start = -1
        instructions = record.instructions
        while True:
            match = _HEAD.match(text, scanner.pos)
            if match is None:
                if scanner.next_is("}"):
                    break
                match = _HEAD.match(text, scanner.pos)
            if match is not None:
                root, percent, name, shape_text = match.group(1, 2, 3, _SHAPE_GROUP)
                start, opcode, opcode_start = (match.start(3), match.group(_OPCODE_GROUP), match.start(_OPCODE_GROUP))
                is_root = root is not None
                shape = shapes.get(shape_text)
                if shape is None:
                    scanner.pos = match.start(_SHAPE_GROUP)
                    shape = shapes[shape_text] = self.shapes.shape(scanner)
                if percent:
                    self.percent = True
                scanner.pos = match.end()
            else:
                is_root, name, start, shape, opcode, opcode_start = self._head(record)
            if is_root:
                if root_start >= 0:
                    raise scanner.error(f"'{record.name}' has two ROOT instructions", start, len(name))
                root_start = start
            instructions.append(self._instruction(name, start, shape, opcode, opcode_start, instructions))
            if is_root:
                record.root = len(instructions) - 1
        scanner.pos += 1
        if not instructions:
            raise scanner.error(f"computation '{record.name}' has no instruction", record.start, len(record.name))

    def _inline_computation(self) -> Reference:
        """A computation written where its name would stand (XLA's canonical form); it is named `_.0`, `_.1`, ..."""
        scanner = self.scanner
        if self._depth >= MAX_DEPTH // 4:
            raise scanner.error("computations are nested too deep")
        record = ComputationRecord(f"_.{len(self._inline)}", scanner.skip(), False, None)
        self._inline.append(record)
        self._depth += 1
        scanner.expect("{", "before a computation's instructions")
        self._instructions(record)
        self._depth -= 1
        self.records.append(record)
        return Reference(record.name, record.start)

    def _head(self, record: ComputationRecord) -> tuple[bool, str, int, AnyShape | None, str, int]:
        """`ROOT %name = shape opcode(` piece by piece, the shape maybe left out; says which piece is wrong."""
        scanner = self.scanner
        if scanner.at_end():
            raise scanner.error(f"the text ends inside computation '{record.name}'", help="add the '}' that closes it")
        is_root = scanner.match(_ROOT) is not None
        self.percent |= scanner.peek() == "%"
        name, start = scanner.name("an instruction (name = shape opcode(...)) or '}'")
        if not scanner.accept("="):
            raise scanner.expected(f"'=' after '{name}'")
        opcode = _OPCODE.match(scanner.text, scanner.skip())
        if opcode is not None and scanner.text.startswith("(", opcode.end()) and lookup(opcode.group()) is not None:
            scanner.pos = opcode.end() + 1
            return is_root, name, start, None, opcode.group(), opcode.start()
        shape = self.shapes.shape(scanner)
        match = scanner.match(_OPCODE)
        if match is None:
            raise scanner.expected(f"an opcode after the shape of '{name}'")
        if not scanner.accept("("):
            if lookup(match.group()) is None:
                raise _unknown_opcode(scanner, match.group(), match.start())
            raise scanner.expected(f"'(' after '{match.group()}'")
        return is_root, name, start, shape, match.group(), match.start()

    def _instruction(
        self,
        name: str,
        start: int,
        shape: AnyShape | None,
        opcode: str,
        opcode_start: int,
        before: list[InstructionRecord],
        *,
        in_place: bool = False,
    ) -> InstructionRecord:
        """Everything after `opcode(`.  Operands that are written in place go to `before`.

        `in_place`: it is such an operand itself, and takes no attributes.
        """
        scanner = self.scanner
        known = self._rows.get(opcode)
        if known is None:
            row = lookup(opcode)
            if row is None:
                raise _unknown_opcode(scanner, opcode, opcode_start)
            known = self._rows[opcode] = (row, frozenset(row.attribute_names))
        row, allowed = known
        operands_start = scanner.pos
        operands: list[str] = []
        operand_shapes = None
        literal: Literal | None = None
        number: int | None = None
        if shape is None and opcode in ("constant", "parameter"):
            raise scanner.error(
                f"'{name}' has no result shape",
                opcode_start,
                len(opcode),
                help=f"write the shape before the opcode: {name} = f32[...] {opcode}(",
            )
        if opcode == "constant" and shape is not None:
            literal = read_literal(scanner, shape)
            if not scanner.accept(")"):
                raise scanner.expected("')' after a constant's value")
        elif opcode == "parameter":
            number = self._parameter_number()
        else:
            match = _OPERANDS.match(scanner.text, operands_start)
            if match is None:
                operands, operand_shapes = self._operands(before)
            else:
                scanner.pos = match.end()
                names = match.group(1)
                if names:
                    operands = names.replace("%", "").split(",") if "," in names else [names.replace("%", "")]
                    if len(operands) > 5:
                        self.operand_index = False
                    if " " in names or "\n" in names or "\t" in names:
                        operands = [each.strip() for each in operands]
        if not row.takes(len(operands)):
            raise HloSyntaxError(
                f"{opcode} takes {row.operand_words}, '{name}' has {len(operands)}",
                span=scanner.span(opcode_start, len(opcode)),
            )
        attributes: dict[str, object] = {}
        has_references = not in_place and scanner.next_is(",") and self._attributes(attributes, row, allowed)
        for required in row.required:
            if required not in attributes:
                raise BadAttribute(
                    f"{opcode} '{name}' needs the attribute '{required}'", span=scanner.span(opcode_start, len(opcode))
                )
        return InstructionRecord(
            name,
            start,
            shape,
            opcode,
            opcode_start,
            operands,
            operands_start,
            operand_shapes,
            attributes,
            has_references,
            literal,
            number,
        )

    def _parameter_number(self) -> int:
        scanner = self.scanner
        start = scanner.skip()
        number = scanner.integer("a parameter's number")
        if number < 0:
            raise scanner.error("a parameter's number can't be negative", start, scanner.pos - start)
        if not scanner.accept(")"):
            raise scanner.expected("')' after a parameter's number")
        return number

    def _operands(self, before: list[InstructionRecord]) -> tuple[list[str], list[tuple[AnyShape | None, int]]]:
        """Operands one by one, each with an optional shape or written in place; comments may stand between."""
        scanner = self.scanner
        names: list[str] = []
        shapes: list[tuple[AnyShape | None, int]] = []
        if scanner.accept(")"):
            return names, shapes
        while True:
            start = scanner.skip()
            shape: AnyShape | None = None
            if _OPERAND_SHAPE.match(scanner.text, start) is not None:
                shape = self.shapes.shape(scanner)
            name, name_start = scanner.name("an operand's name")
            if scanner.peek() == "(":
                name, shape = self._operand_in_place(shape, name, name_start, before), None
            self.operand_shapes |= shape is not None
            names.append(name)
            shapes.append((shape, start))
            if scanner.accept(")"):
                return names, shapes
            if not scanner.accept(","):
                raise scanner.expected("',' or ')' after an operand")

    def _operand_in_place(
        self, shape: AnyShape | None, opcode: str, start: int, before: list[InstructionRecord]
    ) -> str:
        """`f32[] constant(0)` where an operand's name would stand: an instruction of its own; its name."""
        scanner = self.scanner
        if self._depth >= MAX_DEPTH // 4:
            raise scanner.error("instructions are nested too deep")
        scanner.pos += 1
        self._unnamed += 1
        name = f"{opcode}{UNNAMED}{self._unnamed}"
        self._depth += 1
        before.append(self._instruction(name, start, shape, opcode, start, before, in_place=True))
        self._depth -= 1
        return name

    def _attributes(self, attributes: dict[str, object], row: Opcode, allowed: frozenset[str]) -> bool:
        """`, name=value` as often as it stands here; whether a value names computations or instructions."""
        scanner, text = self.scanner, self.scanner.text
        refers = False
        while True:
            match = _ATTRIBUTE.match(text, scanner.pos)
            if match is None:
                if not scanner.next_is(","):
                    return refers
                match = _ATTRIBUTE.match(text, scanner.pos)
            if match is None:  # comments may stand after the comma, too
                scanner.pos += 1
                match = scanner.match(_ATTRIBUTE_NAME)
                if match is None:
                    raise scanner.expected("an attribute (name=value) after ','")
            name = match.group(1)
            if name not in allowed:
                raise unknown_attribute(scanner, f"attribute of {row.name}", name, match.start(1), row.attribute_names)
            if name in attributes:
                check_new(scanner, attributes, "attribute", name, match.start(1))
            scanner.pos = match.end()
            attributes[name] = self._value(name, ATTRIBUTES[name])
            refers = refers or bool(ATTRIBUTES[name].refers)

    def _value(self, name: str, kind: ValueKind) -> object:
        scanner = self.scanner
        if kind.refers:
            inline = kind.refers == "computation" and kind.name == "computation" and scanner.next_is("{")
            return self._inline_computation() if inline else kind.read(scanner, self.shapes)
        simple = _SIMPLE_VALUE.match(scanner.text, scanner.pos)
        if simple is None:
            return kind.read(scanner, self.shapes)
        key = (name, simple.group())
        known = self._values.get(key)
        if known is None:
            known = kind.read(scanner, self.shapes)
            if scanner.pos == simple.end():
                self._values[key] = known
        else:
            scanner.pos = simple.end()
        return known


def _unknown_opcode(scanner: Scanner, name: str, start: int) -> UnknownOpcode:
    return UnknownOpcode(
        f"unknown opcode '{name}'", span=scanner.span(start, len(name)), help=did_you_mean(name, OPCODES)
    )
