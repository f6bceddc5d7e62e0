"""Tuples leave fusions: what a fusion takes and gives is arrays.

    t = (f32[8], f32[4]) tuple(x, y)                   f = f32[8] fusion(x, y)
    f = f32[8] fusion(t)                        ->       { t = tuple(param_0, param_1) ... }
      { t = parameter(0) ... }

In: a fusion that is being rewritten.  Out: a fusion of a body that puts the tuples together itself, and has one flat
tuple for its results; after it the caller puts together what was nested.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warpsmith.hlo.builder import ComputationBuilder
from warpsmith.hlo.module import HloComputation, HloInstruction, frozen
from warpsmith.hlo.shapes import AnyShape, TupleShape
from warpsmith.hlo_passes.kit import Rewriting, with_operands

__all__ = ["element", "of_arrays"]

_Add = Callable[[HloInstruction], HloInstruction]


def element(at: Rewriting, add: _Add, whole: HloInstruction, index: int) -> HloInstruction:
    """One part of a tuple: what it was put together of, or a get-tuple-element that `add` appends."""
    if whole.opcode == "tuple":
        return whole.operands[index]
    assert isinstance(whole.shape, TupleShape)
    name, attributes = at.fresh(f"{whole.name}.{index}"), frozen({"index": index})
    return add(HloInstruction(name, "get-tuple-element", whole.shape.elements[index], (whole,), attributes))


def of_arrays(at: Rewriting, fusion: HloInstruction) -> HloInstruction | None:
    """The fusion without tuples for operands or in its results; None where it has none."""
    operands, shape = at.operands(fusion), fusion.shape
    nested = isinstance(shape, TupleShape) and (
        not shape.elements or any(isinstance(each, TupleShape) for each in shape.elements)
    )
    if not nested and not any(isinstance(each.shape, TupleShape) for each in operands):
        return None
    body = _Flat(at, ComputationBuilder(at.fresh(f"{fusion.name}.flat")), [])
    inside: dict[HloInstruction, HloInstruction] = {}
    old = fusion.attr("calls", HloComputation)
    for each in old:
        number = each.parameter_number
        inside[each] = (
            body.builder.append(with_operands(each, [inside[operand] for operand in each.operands]))
            if number is None
            else body.parameter(operands[number])
        )
    root = inside[old.root]
    if nested:
        root = body.builder.tuple(body.leaves(root), at.fresh(f"{root.name}.leaves"))
        if not root.operands:
            return _assembled(at, fusion.name, shape, [])
    computation = body.builder.build(root)
    at.bodies.append(computation)
    name = at.fresh(f"{fusion.name}.parts") if nested else fusion.name
    kept = {key: fusion.attributes[key] for key in ("kind", "metadata") if key in fusion.attributes}
    made = at.emit(
        HloInstruction(
            name, "fusion", root.shape, tuple(body.outer), frozen({**kept, "calls": computation}), origin=fusion.origin
        )
    )
    if not nested:
        return made
    parts = [element(at, at.emit, made, index) for index in range(len(root.operands))]
    return _assembled(at, fusion.name, shape, parts)


@dataclass(frozen=True, slots=True)
class _Flat:
    """A body whose parameters are arrays, and what the caller passes for them."""

    at: Rewriting
    builder: ComputationBuilder
    outer: list[HloInstruction]

    def parameter(self, value: HloInstruction) -> HloInstruction:
        """What stands inside for a value of the caller."""
        if isinstance(value.shape, TupleShape):
            parts = [element(self.at, self.at.emit, value, index) for index in range(len(value.shape.elements))]
            return self.builder.tuple([self.parameter(each) for each in parts], self.at.fresh(f"{value.name}.whole"))
        self.outer.append(value)
        number = len(self.outer) - 1
        return self.builder.parameter(number, value.shape, self.at.fresh(f"{value.name}.param_{number}"))

    def leaves(self, value: HloInstruction) -> list[HloInstruction]:
        """The arrays in a value, in order."""
        if not isinstance(value.shape, TupleShape):
            return [value]
        parts = [element(self.at, self.builder.append, value, index) for index in range(len(value.shape.elements))]
        return [leaf for each in parts for leaf in self.leaves(each)]


def _assembled(at: Rewriting, name: str, shape: AnyShape, leaves: list[HloInstruction]) -> HloInstruction:
    """A value of `shape` of its leaves, which are taken from the front of the list."""
    if not isinstance(shape, TupleShape):
        return leaves.pop(0)
    parts = tuple(_assembled(at, at.fresh(f"{name}.{i}"), each, leaves) for i, each in enumerate(shape.elements))
    return at.emit(HloInstruction(name, "tuple", shape, parts))
