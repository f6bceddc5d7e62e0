"""Rewriting one instruction at a time, in every computation of a module.

In: a module, and a rule that makes an instruction's replacement out of its new operands.  Out: a module.  What no rule
touches is shared with the old one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from warpsmith.hlo.builder import ComputationBuilder
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule, frozen
from warpsmith.hlo.shapes import Shape
from warpsmith.hlo.traversal import callees_first

__all__ = ["Rule", "Site", "of_dims", "rewrite", "rewrite_computation"]


class Site:
    """Where one instruction is being replaced: `operands` are its operands' new versions; `add` appends an instruction.

    Added instructions are called after the one that they replace.
    """

    def __init__(self, builder: ComputationBuilder, old: HloInstruction, operands: Sequence[HloInstruction]) -> None:
        self.builder = builder
        self.old = old
        self.operands = tuple(operands)

    def add(
        self,
        opcode: str,
        shape: Shape,
        operands: Sequence[HloInstruction],
        attributes: Mapping[str, object] | None = None,
    ) -> HloInstruction:
        """An instruction in front of the one that is replaced, named after it."""
        return self.builder.add(opcode, shape, operands, attributes, name=f"{self.old.name}.{opcode}")

    def reshape(self, value: HloInstruction, dims: Sequence[int]) -> HloInstruction:
        """`value` with other dims; itself where it has them."""
        if value.array_shape.dims == tuple(dims):
            return value
        return self.add("reshape", of_dims(value, dims), [value])

    def transpose(self, value: HloInstruction, order: Sequence[int]) -> HloInstruction:
        """`value` with its dims in another order; itself where the order is theirs."""
        if list(order) == list(range(len(order))):
            return value
        dims = [value.array_shape.dims[d] for d in order]
        return self.add("transpose", of_dims(value, dims), [value], {"dimensions": tuple(order)})


Rule = Callable[[Site], HloInstruction | None]
"""The replacement of `site.old`, of the same shape; None to leave it."""


def of_dims(like: HloInstruction, dims: Sequence[int]) -> Shape:
    """A shape of the element type of `like`, in the default layout."""
    return Shape(like.array_shape.dtype, tuple(dims))


def rewrite(module: HloModule, rule: Rule) -> HloModule:
    """`module` with the rule applied to every instruction, callees first; itself where nothing changes."""
    computations: dict[HloComputation, HloComputation] = {}
    for computation in callees_first(module.computations):
        computations[computation] = rewrite_computation(computation, rule, computations)
    if all(old is new for old, new in computations.items()):
        return module
    entry = computations[module.entry]
    kept = [computations[each] for each in module.computations]
    return HloModule(module.name, tuple(kept), entry, module.attributes, module.style)


def rewrite_computation(
    computation: HloComputation, rule: Rule, callees: Mapping[HloComputation, HloComputation]
) -> HloComputation:
    """`computation` with the rule applied to every instruction, and the new versions of `callees`; itself where nothing
    changes."""
    builder = ComputationBuilder(computation.name)
    made: dict[HloInstruction, HloInstruction] = {}
    changed = False
    for old in computation:
        operands = [made[operand] for operand in old.operands]
        new = rule(Site(builder, old, operands))
        if new is None:
            new = _kept(old, operands, callees)
            builder.append(new)
        changed |= new is not old
        made[old] = new
    if not changed:
        return computation
    built = builder.build(made[computation.root])
    return HloComputation(built.name, built.instructions, built.root, computation.attributes, computation.origin)


def _kept(
    old: HloInstruction, operands: Sequence[HloInstruction], callees: Mapping[HloComputation, HloComputation]
) -> HloInstruction:
    same = all(a is b for a, b in zip(operands, old.operands, strict=True))
    if same and all(callees.get(each, each) is each for each in old.called_computations):
        return old

    def value(attribute: object) -> object:
        if isinstance(attribute, HloComputation):
            return callees.get(attribute, attribute)
        if isinstance(attribute, tuple):
            return tuple(value(item) for item in cast("tuple[object, ...]", attribute))
        return attribute

    attributes = frozen((key, value(attribute)) for key, attribute in old.attributes.items())
    return HloInstruction(
        *(old.name, old.opcode, old.shape, tuple(operands), attributes),
        *(old.literal, old.parameter_number, old.origin),
    )
