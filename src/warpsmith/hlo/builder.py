"""Building HLO in code; shapes of results are stated or inferred.

In: names, opcodes, shapes, operands.  Out: instructions, computations and modules of `module`.  Names are made unique
in XLA's way (`add`, `add.1`, ...).  Used by fusion rewrites and tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warpsmith.arrays import Array
from warpsmith.errors import InvalidHlo, UnknownOpcode, did_you_mean
from warpsmith.hlo.literals import Literal
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule, frozen
from warpsmith.hlo.opcodes import OPCODES, lookup
from warpsmith.hlo.shapes import AnyShape, Shape, TupleShape
from warpsmith.hlo.traversal import callees_first
from warpsmith.hlo.verifier import STATED, infer_shape

__all__ = ["ComputationBuilder", "build_module", "reducer", "wrap_in_entry"]


class ComputationBuilder:
    """Collects instructions of one computation; `build` freezes it."""

    __slots__ = ("_instructions", "_names", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._instructions: list[HloInstruction] = []
        self._names: dict[str, int] = {}

    def _unique(self, name: str) -> str:
        count = self._names.get(name)
        if count is None:
            self._names[name] = 1
            return name
        while f"{name}.{count}" in self._names:
            count += 1
        self._names[name] = count + 1
        self._names[f"{name}.{count}"] = 1
        return f"{name}.{count}"

    def add(
        self,
        opcode: str,
        shape: AnyShape | None,
        operands: Sequence[HloInstruction] = (),
        attributes: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        literal: Literal | None = None,
        parameter_number: int | None = None,
    ) -> HloInstruction:
        """Append `shape opcode(operands), attributes`; the shape is inferred where none is given.

        UnknownOpcode when there is no such opcode, InvalidHlo when the shape can't be inferred.
        """
        if lookup(opcode) is None:
            raise UnknownOpcode(f"unknown opcode '{opcode}'", help=did_you_mean(opcode, OPCODES))
        taken, given = tuple(operands), frozen(attributes or {})
        if shape is None:
            if opcode in STATED:
                raise InvalidHlo(f"operands and attributes of {opcode} don't decide its shape", help="state the shape")
            shape = infer_shape(HloInstruction(name or opcode, opcode, TupleShape(), taken, given)).without_layout()
        instruction = HloInstruction(
            self._unique(name or opcode), opcode, shape, taken, given, literal, parameter_number
        )
        self._instructions.append(instruction)
        return instruction

    def append(self, instruction: HloInstruction) -> HloInstruction:
        """Append an instruction made elsewhere, under its own name."""
        if instruction.name in self._names:
            raise InvalidHlo(f"'{self.name}' already has an instruction '{instruction.name}'")
        self._names[instruction.name] = 1
        self._instructions.append(instruction)
        return instruction

    def parameter(self, number: int, shape: AnyShape, name: str | None = None) -> HloInstruction:
        """Parameter `number`, named `p<number>` unless a name is given."""
        return self.add("parameter", shape, name=name or f"p{number}", parameter_number=number)

    def constant(self, value: Array | Literal, name: str | None = None) -> HloInstruction:
        """A constant of an array's elements, or of a literal."""
        literal = value if isinstance(value, Literal) else Literal.of(value)
        return self.add("constant", literal.shape, name=name, literal=literal)

    def tuple(self, operands: Sequence[HloInstruction], name: str | None = None) -> HloInstruction:
        """A tuple of values."""
        return self.add("tuple", TupleShape(tuple(operand.shape for operand in operands)), operands, name=name)

    def get_tuple_element(self, operand: HloInstruction, index: int, name: str | None = None) -> HloInstruction:
        """Element `index` of a tuple; InvalidHlo if there is none."""
        shape = operand.shape
        if not isinstance(shape, TupleShape) or not 0 <= index < len(shape.elements):
            raise InvalidHlo(f"'{operand.name}' of {shape} has no element {index}")
        return self.add("get-tuple-element", shape.elements[index], [operand], {"index": index}, name=name)

    def build(self, root: HloInstruction | None = None) -> HloComputation:
        """The computation; the last instruction is the root unless one is given."""
        if not self._instructions:
            raise InvalidHlo(f"computation '{self.name}' has no instruction")
        return HloComputation(self.name, tuple(self._instructions), root or self._instructions[-1])


def reducer(name: str, opcode: str, shape: Shape) -> HloComputation:
    """A computation of two scalars of `shape` that applies one binary op."""
    builder = ComputationBuilder(name)
    lhs, rhs = builder.parameter(0, shape, "lhs"), builder.parameter(1, shape, "rhs")
    builder.add(opcode, shape, [lhs, rhs])
    return builder.build()


def build_module(name: str, entry: HloComputation, attributes: Mapping[str, object] | None = None) -> HloModule:
    """A module of `entry` and every computation that it reaches, callees first."""
    return HloModule(name, tuple(callees_first([entry])), entry, frozen(attributes or {}))


def wrap_in_entry(body: HloComputation, name: str = "entry", kind: str = "kLoop") -> HloComputation:
    """An entry that passes its parameters to one fusion of `body` and returns what it returns."""
    builder = ComputationBuilder(name)
    parameters = [builder.parameter(i, each.shape, each.name) for i, each in enumerate(body.parameters)]
    builder.add("fusion", body.root.shape, parameters, {"kind": kind, "calls": body}, name="fusion")
    return builder.build()
