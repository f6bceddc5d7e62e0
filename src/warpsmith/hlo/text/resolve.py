"""From records to objects: names are looked up, computations built callees first.

In: the records of one text.  Out: `HloComputation`s in text order and the entry.  Says where a name is unknown, used
before it is defined, defined twice, or where computations call each other in a circle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from warpsmith.errors import DuplicateName, HloSyntaxError, InvalidHlo, UnknownName, WarpsmithError, did_you_mean
from warpsmith.hlo.module import HloComputation, HloInstruction, Origin, frozen
from warpsmith.hlo.opcodes import lookup
from warpsmith.hlo.shapes import AnyShape, Layout, Shape, TupleShape, same_type
from warpsmith.hlo.text.attribute_readers import Reference
from warpsmith.hlo.text.attribute_table import ATTRIBUTES
from warpsmith.hlo.text.lexer import Scanner, Source
from warpsmith.hlo.text.records import UNNAMED, ComputationRecord, InstructionRecord
from warpsmith.hlo.text.shapes import ShapeReader
from warpsmith.hlo.verifier import STATED, infer_shape

__all__ = ["resolve_computations"]


def resolve_computations(
    source: Source, records: list[ComputationRecord]
) -> tuple[tuple[HloComputation, ...], HloComputation, bool]:
    """All computations in text order, the entry, and whether the entry is bare (no computation is marked ENTRY)."""
    by_name: dict[str, ComputationRecord] = {}
    for record in records:
        if record.name in by_name:
            raise _duplicate(source, "computation", record.name, record.start, by_name[record.name].start)
        by_name[record.name] = record
    built: dict[str, HloComputation] = {}
    for record in _callees_first(source, records, by_name):
        built[record.name] = _Builder(source, record, built).build()
    entries = [record for record in records if record.is_entry]
    if len(entries) > 1:
        raise InvalidHlo(
            f"'{entries[0].name}' and '{entries[1].name}' are both marked ENTRY",
            span=source.span(entries[1].start, len(entries[1].name)),
            help="a module has one entry",
        )
    computations = tuple(built[record.name] for record in records)
    if entries:
        return computations, built[entries[0].name], False
    called = {callee for each in computations for instruction in each for callee in instruction.called_computations}
    free = [each for each in computations if each not in called]
    return computations, free[-1], True


def _duplicate(source: Source, what: str, name: str, start: int, first: int) -> DuplicateName:
    return DuplicateName(
        f"{what} '{name}' is defined twice",
        span=source.span(start, len(name)),
        help=f"it is first defined on line {source.span(first).line}; rename one of them",
    )


def _references(record: ComputationRecord) -> Iterator[Reference]:
    for instruction in record.instructions:
        if not instruction.has_references:
            continue
        for name, value in instruction.attributes.items():
            if ATTRIBUTES[name].refers == "computation":
                yield from _each_reference(value)


def _each_reference(value: object) -> Iterator[Reference]:
    if isinstance(value, Reference):
        yield value
    elif isinstance(value, tuple):
        for item in cast("tuple[object, ...]", value):
            if isinstance(item, Reference):
                yield item


def _callees_first(
    source: Source, records: list[ComputationRecord], by_name: Mapping[str, ComputationRecord]
) -> list[ComputationRecord]:
    """Records ordered so that a computation comes after all that it calls."""
    order: list[ComputationRecord] = []
    state: dict[str, int] = {}  # 1: being visited, 2: done
    for first in records:
        if first.name in state:
            continue
        state[first.name] = 1
        stack: list[tuple[ComputationRecord, Iterator[Reference]]] = [(first, _references(first))]
        while stack:
            record, references = stack[-1]
            reference = next(references, None)
            if reference is None:
                stack.pop()
                state[record.name] = 2
                order.append(record)
                continue
            callee = by_name.get(reference.name)
            if callee is None:
                raise UnknownName(
                    f"unknown computation '{reference.name}'",
                    span=source.span(reference.start, len(reference.name)),
                    help=did_you_mean(reference.name, by_name),
                )
            if state.get(callee.name) == 1:
                raise InvalidHlo(
                    f"computation '{callee.name}' calls itself"
                    + ("" if callee is record else f" through '{record.name}'"),
                    span=source.span(reference.start, len(reference.name)),
                    help="HLO has no recursion; use while for loops",
                )
            if callee.name not in state:
                state[callee.name] = 1
                stack.append((callee, _references(callee)))
    return order


class _Builder:
    """Builds one computation whose callees are built."""

    def __init__(self, source: Source, record: ComputationRecord, callees: Mapping[str, HloComputation]) -> None:
        self.source = source
        self.record = record
        self.callees = callees
        self.named: dict[str, HloInstruction] = {}
        self.names = {each.name for each in record.instructions}

    def build(self) -> HloComputation:
        record, source, named = self.record, self.source, self.named
        instructions: list[HloInstruction] = []
        for each in record.instructions:
            if each.name in named:
                first = next(other.start for other in record.instructions if other.name == each.name)
                raise _duplicate(source, "instruction", each.name, each.start, first)
            try:
                operands = tuple([named[name] for name in each.operands])
            except KeyError as error:
                raise self._unknown_operand(each, str(error.args[0])) from None
            if each.operand_shapes is not None:
                self._check_operand_shapes(each, operands)
            attributes = frozen(self._resolved(each) if each.has_references else each.attributes)
            shape = each.shape
            if shape is None:
                shape = self._inferred(each, operands, attributes)
            instruction = HloInstruction(
                self._unnamed(each) if UNNAMED in each.name else each.name,
                each.opcode,
                shape,
                operands,
                attributes,
                each.literal,
                each.parameter_number,
                Origin(source, each.start, len(each.name)),
            )
            if each.opcode == "broadcast" and "dimensions" not in attributes:
                instruction = self._broadcast_of_scalar(each, instruction)
            named[each.name] = instruction
            instructions.append(instruction)
        origin = Origin(source, record.start, len(record.name))
        computation = HloComputation(
            record.name, tuple(instructions), instructions[record.root], frozen(record.attributes), origin
        )
        self._check_signature(computation)
        return computation

    def _unnamed(self, each: InstructionRecord) -> str:
        """A name, as XLA gives it, for an instruction that is written in an operand's place."""
        stem = name = f"{each.opcode}.anon"
        number = 0
        while name in self.names:
            number += 1
            name = f"{stem}.{number}"
        self.names.add(name)
        return name

    def _inferred(
        self, each: InstructionRecord, operands: tuple[HloInstruction, ...], attributes: Mapping[str, object]
    ) -> AnyShape:
        """The result's shape where the text leaves it out.  Of products the operands' element type, as XLA has it."""
        name = each.name.partition(UNNAMED)[0]
        origin = Origin(self.source, each.opcode_start, len(each.opcode))
        stated: AnyShape | None = TupleShape()
        if each.opcode in STATED:
            stated = _stated(HloInstruction(name, each.opcode, TupleShape(), operands, attributes))
        if stated is None:
            raise HloSyntaxError(
                f"'{name}' has no result shape, and its operands don't decide what {each.opcode} makes",
                span=origin.span,
                help=f"write the shape before the opcode: {name} = f32[...] {each.opcode}(",
            )
        made = infer_shape(HloInstruction(name, each.opcode, stated, operands, attributes, origin=origin))
        return _laid_out(each.opcode, made, operands, attributes)

    def _broadcast_of_scalar(self, each: InstructionRecord, made: HloInstruction) -> HloInstruction:
        """A broadcast of a scalar may leave `dimensions={}` out."""
        operand = made.operands[0].shape
        if not isinstance(operand, Shape) or operand.dims:
            raise InvalidHlo(
                f"broadcast '{each.name}' of {operand} needs the attribute 'dimensions'",
                span=self.source.span(each.opcode_start, len(each.opcode)),
                help="dimensions={...} says which result dimension each operand dimension becomes",
            )
        attributes = frozen({"dimensions": (), **made.attributes})
        return HloInstruction(made.name, made.opcode, made.shape, made.operands, attributes, origin=made.origin)

    def _operand_start(self, each: InstructionRecord, index: int) -> int:
        """Where operand `index` is written."""
        if each.operand_shapes is not None:
            return each.operand_shapes[index][1]
        scanner = Scanner(self.source, each.operands_start)
        for _ in range(index):
            scanner.name("an operand's name")
            scanner.expect(",", "after an operand")
        return scanner.skip()

    def _unknown_operand(self, each: InstructionRecord, name: str) -> WarpsmithError:
        start = self._operand_start(each, each.operands.index(name))
        if each.operand_shapes is not None and each.operand_shapes[each.operands.index(name)][0] is not None:
            scanner = Scanner(self.source, start)
            ShapeReader().shape(scanner)
            start = scanner.skip()
        percent = 1 if self.source.text.startswith("%", start) else 0
        span = self.source.span(start, len(name) + percent)
        for other in self.record.instructions:
            if other.name == name:
                line = self.source.span(other.start).line
                if other is each:
                    return InvalidHlo(f"'{name}' uses itself", span=span)
                return InvalidHlo(
                    f"'{name}' is used before it is defined (line {line})",
                    span=span,
                    help="put each instruction after its operands",
                )
        return UnknownName(f"unknown operand '{name}'", span=span, help=did_you_mean(name, self.named))

    def _check_operand_shapes(self, each: InstructionRecord, operands: tuple[HloInstruction, ...]) -> None:
        for (shape, start), operand in zip(each.operand_shapes or (), operands, strict=True):
            if shape is not None and not same_type(shape, operand.shape):
                raise InvalidHlo(
                    f"operand '{operand.name}' is written as {shape} but is {operand.shape}",
                    span=self.source.span(start),
                )

    def _resolved(self, each: InstructionRecord) -> dict[str, object]:
        """The attributes with references replaced by what they name."""
        resolved: dict[str, object] = {}
        for name, value in each.attributes.items():
            refers = ATTRIBUTES[name].refers
            if refers == "computation":
                found = [self.callees[reference.name] for reference in _each_reference(value)]
                resolved[name] = found[0] if isinstance(value, Reference) else tuple(found)
            elif refers == "instruction":
                resolved[name] = tuple(self._predecessor(reference) for reference in _each_reference(value))
            else:
                resolved[name] = value
        return resolved

    def _predecessor(self, reference: Reference) -> HloInstruction:
        found = self.named.get(reference.name)
        if found is None:
            raise UnknownName(
                f"no instruction '{reference.name}' is defined before this one",
                span=self.source.span(reference.start, len(reference.name)),
                help=did_you_mean(reference.name, self.named),
            )
        return found

    def _check_signature(self, computation: HloComputation) -> None:
        signature = self.record.signature
        if signature is None:
            return
        if not same_type(signature.result, computation.root.shape):
            raise InvalidHlo(
                f"the signature of '{computation.name}' ends in {signature.result}, "
                f"its root '{computation.root.name}' is {computation.root.shape}",
                span=self.source.span(signature.result_start),
            )


def _stated(instruction: HloInstruction) -> AnyShape | None:
    """What a result's shape says beyond operands and attributes, where there is one thing to say; else None."""
    if instruction.opcode in ("call", "fusion", "conditional") and instruction.called_computations:
        return instruction.called_computations[0].root.shape
    types = {leaf.dtype for operand in instruction.operands for leaf in operand.shape.leaves()}
    if instruction.opcode in ("dot", "convolution") and len(types) == 1:
        return instruction.operands[0].shape
    return None


_KEEPS_LAYOUT = frozenset(
    {
        *("copy", "reverse", "sort", "tuple", "get-tuple-element", "while", "call", "conditional", "fusion", "select"),
        *("clamp", "add-dependency", "set-dimension-size", "optimization-barrier", "domain"),
    }
)


def _laid_out(
    opcode: str, made: AnyShape, operands: tuple[HloInstruction, ...], attributes: Mapping[str, object]
) -> AnyShape:
    """An inferred shape with the layout that XLA's parser infers: the operand's where elements stay in place."""
    row = lookup(opcode)
    if opcode in _KEEPS_LAYOUT or (row is not None and row.elementwise):
        return made
    if opcode == "transpose" and isinstance(made, Shape) and isinstance(operands[0].shape, Shape):
        permutation = cast("tuple[int, ...]", attributes["dimensions"])
        becomes = {dim: place for place, dim in enumerate(permutation)}
        return made.with_layout(Layout(tuple(becomes[dim] for dim in operands[0].shape.minor_to_major)))
    return made.without_layout()
