"""What the parser reads before names are resolved: one record an instruction, one a computation."""

from __future__ import annotations

from dataclasses import dataclass, field

from warpsmith.hlo.literals import Literal
from warpsmith.hlo.shapes import AnyShape

__all__ = ["UNNAMED", "ComputationRecord", "InstructionRecord", "Signature"]

UNNAMED = "#"
"""Stands in the name of an instruction that is written in an operand's place; `resolve` gives it a name of its own."""


@dataclass(slots=True)
class InstructionRecord:
    """`name = shape opcode(operands), attributes` with names still names; `start` and `*_start` are text offsets.

    `shape` is None where the text leaves it out, to be inferred.
    """

    name: str
    start: int
    shape: AnyShape | None
    opcode: str
    opcode_start: int
    operands: list[str]
    operands_start: int
    operand_shapes: list[tuple[AnyShape | None, int]] | None
    attributes: dict[str, object]
    has_references: bool
    literal: Literal | None
    parameter_number: int | None


@dataclass(slots=True)
class Signature:
    """`(p: f32[4]) -> f32[4]` in front of a computation: the result, and where it stands."""

    result: AnyShape
    result_start: int


@dataclass(slots=True)
class ComputationRecord:
    """A computation as read; `root` is the index of the instruction marked ROOT, or the last one's."""

    name: str
    start: int
    is_entry: bool
    signature: Signature | None
    instructions: list[InstructionRecord] = field(default_factory=list[InstructionRecord])
    root: int = -1
    attributes: dict[str, object] = field(default_factory=dict[str, object])
