"""Takes ops out of a fusion that something else does better: the parts before and after stay fusions.

In: a fusion, ops of its body.  Out: instructions for the caller:

    f = f32[M,N] fusion(x, w, b)                       f.lhs = f32[M,K] fusion(x)        what the op needs
      { ROOT add(dot(tanh(x), w), b) }      ->         d = f32[M,N] dot(f.lhs, w)        the op
                                                       f = f32[M,N] fusion(d, b)         what needs it

Large products go to a library, dynamic-update-slices of buffers that nobody needs any more write in place.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.hlo.builder import ComputationBuilder
from warpsmith.hlo.module import HloComputation, HloInstruction, frozen
from warpsmith.hlo.shapes import TupleShape
from warpsmith.hlo_passes.kit import Rewriting, with_operands
from warpsmith.hlo_passes.support.tuples import element

__all__ = ["split_out"]


def split_out(at: Rewriting, fusion: HloInstruction, ops: Sequence[HloInstruction]) -> HloInstruction:
    """Emit `fusion` without `ops` (of its body, in order), and them by themselves; what stands for the fusion."""
    body = fusion.attr("calls", HloComputation)
    split = _Split(at, fusion, body)
    for op in ops:
        operands = [split.value(operand) for operand in op.operands]
        name = fusion.name if op is body.root else at.fresh(f"{fusion.name}.{op.name}")
        made = HloInstruction(name, op.opcode, op.shape, tuple(operands), op.attributes, op.literal, origin=op.origin)
        split.outside[op] = at.emit(made)
        split.take_apart(op)
    return split.result()


class _Split:
    """What of a fusion's body has a value outside already."""

    def __init__(self, at: Rewriting, fusion: HloInstruction, body: HloComputation) -> None:
        self.at, self.fusion, self.body = at, fusion, body
        self.outside: dict[HloInstruction, HloInstruction] = {
            parameter: at.new[operand] for parameter, operand in zip(body.parameters, fusion.operands, strict=True)
        }

    def take_apart(self, whole: HloInstruction) -> None:
        """The parts of a tuple that is outside are outside."""
        if not isinstance(whole.shape, TupleShape):
            return
        for user in self.body.users(whole):
            if user.opcode == "get-tuple-element":
                part = element(self.at, self.at.emit, self.outside[whole], user.attr("index", int))
                self.outside[user] = part
                self.take_apart(user)

    def value(self, inner: HloInstruction) -> HloInstruction:
        """The value of an instruction of the body, outside: a view or constant, or a fusion that computes it."""
        found = self.outside.get(inner)
        if found is not None:
            return found
        name = self.at.fresh(f"{self.fusion.name}.{inner.name}")
        if inner.opcode == "constant":
            made = HloInstruction(name, "constant", inner.shape, literal=inner.literal, origin=inner.origin)
        elif inner.opcode == "bitcast" and inner.operands[0] in self.outside:
            made = HloInstruction(name, "bitcast", inner.shape, (self.outside[inner.operands[0]],), origin=inner.origin)
        elif inner.opcode == "tuple":
            parts = tuple(self.value(each) for each in inner.operands)
            made = HloInstruction(name, "tuple", inner.shape, parts, origin=inner.origin)
        else:
            made = self._fusion(name, [inner])
        self.outside[inner] = self.at.emit(made)
        return made

    def result(self) -> HloInstruction:
        """What the fusion gives, computed by fusions of what is left of it."""
        root = self.body.root
        if root.opcode != "tuple":
            return self._named(root, self.fusion.name)
        rest = list(dict.fromkeys(each for each in root.operands if each not in self.outside))
        if len(rest) > 1:
            together = self.at.emit(self._fusion(self.at.fresh(f"{self.fusion.name}.rest"), rest))
            for index, each in enumerate(rest):
                name = self.at.fresh(f"{self.fusion.name}.{each.name}")
                part = HloInstruction(name, "get-tuple-element", each.shape, (together,), frozen({"index": index}))
                self.outside[each] = self.at.emit(part)
        values = tuple(self.value(each) for each in root.operands)
        return self.at.emit(HloInstruction(self.fusion.name, "tuple", self.fusion.shape, values))

    def _named(self, root: HloInstruction, name: str) -> HloInstruction:
        """The root's value under the fusion's own name."""
        found = self.outside.get(root)
        if found is not None:
            return found
        if root.opcode == "bitcast" and root.operands[0] in self.outside:
            return self.at.emit(HloInstruction(name, "bitcast", root.shape, (self.outside[root.operands[0]],)))
        return self.at.emit(self._fusion(name, [root]))

    def _fusion(self, name: str, roots: Sequence[HloInstruction]) -> HloInstruction:
        """A fusion of `roots` (a tuple of them, if several), which reads what is outside already."""
        needed: set[HloInstruction] = set()
        stack = list(roots)
        while stack:
            inner = stack.pop()
            if inner in needed:
                continue
            needed.add(inner)
            if inner not in self.outside or inner in roots:
                stack.extend(inner.operands)
        builder = ComputationBuilder(self.at.fresh(f"{name}.body"))
        inside: dict[HloInstruction, HloInstruction] = {}
        operands: list[HloInstruction] = []
        for inner in self.body:
            if inner not in needed:
                continue
            given = self.outside.get(inner) if inner not in roots else None
            if given is not None and inner.opcode != "constant":
                inside[inner] = builder.parameter(len(operands), inner.shape, f"param_{len(operands)}")
                operands.append(given)
            else:
                inside[inner] = builder.append(with_operands(inner, [inside[each] for each in inner.operands]))
        if len(roots) > 1:
            builder.tuple([inside[each] for each in roots], "parts")
        root = None if len(roots) > 1 else inside[roots[0]]
        computation = builder.build(root)
        self.at.bodies.append(computation)
        shape = roots[0].shape if len(roots) == 1 else TupleShape(tuple(each.shape for each in roots))
        attributes: dict[str, object] = {"kind": "kLoop", "calls": computation}
        if self.fusion.metadata is not None:
            attributes["metadata"] = self.fusion.metadata
        return HloInstruction(name, "fusion", shape, tuple(operands), frozen(attributes), origin=self.fusion.origin)
