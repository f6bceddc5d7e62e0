"""Taking a fusion apart: bodies of new fusions that hold some of its instructions.

In: a fusion that is being rewritten.  Out: computations, fusions of them, and what these are passed.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.dtypes import DType
from warpsmith.hlo.builder import ComputationBuilder
from warpsmith.hlo.module import HloComputation, HloInstruction, frozen
from warpsmith.hlo.shapes import AnyShape, TupleShape
from warpsmith.hlo_passes.kit import Rewriting, with_operands

__all__ = ["Body", "Outer", "elements_of", "fusion_of"]

Outer = dict[HloInstruction, HloInstruction]
"""Parameters of a body being built -> what the caller passes."""


def fusion_of(
    at: Rewriting, fusion: HloInstruction, name: str, made: tuple[HloComputation, Outer]
) -> tuple[HloInstruction, tuple[HloInstruction, ...]]:
    """A fusion of a new body, not emitted yet, and its operands."""
    body, outer = made
    at.bodies.append(body)
    operands = tuple(outer[each] for each in body.parameters)
    attributes = frozen({**fusion.attributes, "calls": body})
    return HloInstruction(name, "fusion", body.root.shape, operands, attributes, origin=fusion.origin), operands


class Body:
    """A body under construction that takes over instructions of the fusion's body.

    `given` is what the caller passes to the fusion.  `inside` maps an instruction of the fusion's body to the one here
    that stands for it, `outer` a parameter here to what the new fusion is passed.
    """

    def __init__(self, at: Rewriting, fusion_body: HloComputation, given: Sequence[HloInstruction], name: str) -> None:
        self.builder = ComputationBuilder(at.fresh(name))
        self.old = fusion_body
        self.given = dict(zip(fusion_body.parameters, given, strict=True))
        self.inside: dict[HloInstruction, HloInstruction] = {}
        self.outer: Outer = {}

    def parameter(self, shape: AnyShape, name: str, value: HloInstruction) -> HloInstruction:
        """A new parameter that stands for `value`, an instruction outside."""
        made = self.builder.parameter(len(self.outer), shape, name)
        self.outer[made] = value
        return made

    def take(self, wanted: Sequence[HloInstruction]) -> None:
        """Copy what `wanted` depends on and isn't here yet."""
        needed: set[HloInstruction] = set()
        stack = list(wanted)
        while stack:
            inner = stack.pop()
            if inner not in needed and inner not in self.inside:
                needed.add(inner)
                stack.extend(inner.operands)
        for inner in self.old:
            if inner not in needed:
                continue
            if inner.opcode == "parameter":
                self.inside[inner] = self.parameter(inner.shape, inner.name, self.given[inner])
            else:
                operands = [self.inside[each] for each in inner.operands]
                self.inside[inner] = self.builder.append(with_operands(inner, operands))

    def convert(self, value: HloInstruction, dtype: DType, name: str) -> HloInstruction:
        """The value as another element type; itself if it has that one."""
        shape = value.array_shape
        return (
            value if shape.dtype is dtype else self.builder.add("convert", shape.with_dtype(dtype), [value], name=name)
        )


def elements_of(at: Rewriting, whole: HloInstruction, count: int) -> list[HloInstruction]:
    """The parts of an instruction that gives `count` values."""
    shape = whole.shape
    if count == 1 or not isinstance(shape, TupleShape):
        return [whole]
    found: list[HloInstruction] = []
    for index in range(count):
        name, attributes = at.fresh(f"{whole.name}.{index}"), frozen({"index": index})
        found.append(HloInstruction(name, "get-tuple-element", shape.elements[index], (whole,), attributes))
        at.emit(found[-1])
    return found
