"""recomputation-splitter: what a fusion would compute again for every element that asks becomes a kernel of its own.

    f = f32[R,C] fusion(x)                             f.max = f32[R] fusion(x)  { ROOT max = reduce(x) }
      { max = reduce(x)                                f.sum = f32[R] fusion(x, f.max)
        e = exp(x - broadcast(max))            ->        { ROOT sum = reduce(exp(x - broadcast(max))) }
        sum = reduce(e)                                f = f32[R,C] fusion(x, f.max, f.sum)
        ROOT e / broadcast(sum) }                        { ROOT exp(x - broadcast(max)) / broadcast(sum) }

In: a module of fusions.  Out: the module with such fusions taken apart, their values between them in memory.  An op
that reads many elements for one (a reduce, a window, a product) is such a value where it is asked for more often than
it has elements, and the work of that is more than a trip through memory.  XLA never fuses so (its cost model counts the
duplicated work), but the text of a fusion may say it.  Fusions that compute it once an element stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from warpsmith.devices import Device
from warpsmith.hlo.attributes import Window
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule
from warpsmith.hlo.shapes import Shape
from warpsmith.hlo_passes.kit import Rewriting, rewrite_steps
from warpsmith.hlo_passes.support.bodies import Body, fusion_of
from warpsmith.hlo_passes.wrap import wrap

__all__ = ["CONTRACT", "run", "split_recomputed"]

CONTRACT = "R"

_TIMES = 2
"""An op that is evaluated at most so many times an element stays: the second time is the price of one kernel less."""
_LEAST_WORK = 1 << 18
"""Repeated element operations that pay for another launch and a trip through memory (some 10 us of one core)."""


def run(module: HloModule, _: Device) -> HloModule:
    """The module with plain ops wrapped, then `split_recomputed`."""
    return split_recomputed(wrap(module))


def split_recomputed(module: HloModule) -> HloModule:
    """The module with fusions taken apart at ops that they would compute over and over; itself when there is none."""

    def rule(at: Rewriting) -> HloInstruction | None:
        return _split(at, at.old) if at.old.opcode == "fusion" else None

    return rewrite_steps(module, rule)


def _split(at: Rewriting, fusion: HloInstruction) -> HloInstruction | None:
    body = fusion.attr("calls", HloComputation)
    cuts = _recomputed(body)
    if not cuts:
        return None
    given = at.operands(fusion)
    values: dict[HloInstruction, HloInstruction] = {}
    for inner in cuts:
        name = at.fresh(f"{fusion.name}.{inner.name}")
        values[inner] = _part(at, fusion, name, given, inner, values)
    return _part(at, fusion, fusion.name, given, body.root, values)


def _part(
    at: Rewriting,
    fusion: HloInstruction,
    name: str,
    given: tuple[HloInstruction, ...],
    wanted: HloInstruction,
    values: Mapping[HloInstruction, HloInstruction],
) -> HloInstruction:
    """A fusion that computes one instruction of the body; those in `values` are there already."""
    body = Body(at, fusion.attr("calls", HloComputation), given, f"{name}.computation")
    for inner in _needed(wanted, values):
        body.inside[inner] = body.parameter(inner.shape, inner.name, values[inner])
    body.take([wanted])
    made = body.builder.build(body.inside[wanted]), body.outer
    return at.emit(fusion_of(at, fusion, name, made)[0])


def _needed(wanted: HloInstruction, values: Mapping[HloInstruction, HloInstruction]) -> list[HloInstruction]:
    """Which of the values an instruction reads, directly or through others, in their order."""
    found: set[HloInstruction] = set()
    seen: set[HloInstruction] = set()
    stack = [wanted]
    while stack:
        for operand in stack.pop().operands:
            if operand in values:
                found.add(operand)
            elif operand not in seen:
                seen.add(operand)
                stack.append(operand)
    return [each for each in values if each in found]


# ------------------------------------------------------------------------------------------------------- what to take
def _recomputed(body: HloComputation) -> list[HloInstruction]:
    """The ops that a kernel of `body` would evaluate more often than is worth it, operands first.

    Users come before operands: one that is taken out is evaluated once an element, so that what it reads is asked for
    less often.
    """
    heavy = {each: reads for each in body if (reads := _reads(each)) > 1}
    if not heavy:
        return []
    roots = set(body.root.operands if body.root.opcode == "tuple" else (body.root,))
    evaluations: dict[HloInstruction, float] = dict.fromkeys(body, 0.0)
    for root in roots:
        evaluations[root] += _elements(root)
    cuts: list[HloInstruction] = []
    for each in reversed(body.instructions):
        times, elements = evaluations[each], _elements(each)
        if each in heavy and each not in roots:
            again = (times - elements) * heavy[each]
            if times > _TIMES * elements and again >= _LEAST_WORK:
                cuts.append(each)
                times = elements
        for operand in each.operands:
            evaluations[operand] += times * _asks(each, operand)
    return cuts[::-1]


def _elements(instruction: HloInstruction) -> int:
    return max((leaf.elements for leaf in instruction.shape.leaves() if leaf.is_array), default=1)


def _reads(instruction: HloInstruction) -> int:
    """How many elements of an operand one element of the result is made of."""
    return max((math.ceil(_asks(instruction, each)) for each in instruction.operands), default=0)


def _asks(user: HloInstruction, operand: HloInstruction) -> float:
    """How many elements of an operand the user reads for one of its own."""
    if not user.shape.leaves() or not operand.shape.leaves():
        return 0
    result, shape = user.shape.leaves()[0], operand.shape.leaves()[0]
    if not shape.is_array or not shape.rank or not result.elements:
        return 1
    match user.opcode:
        case "reduce":
            return shape.elements / result.elements
        case "reduce-window" | "select-and-scatter" | "convolution":
            window = user.attributes.get("window")
            size = math.prod(each.size for each in window.dims) if isinstance(window, Window) else 1
            if user.opcode == "convolution":
                return size * max(1, _contracted(user))
            return size
        case "dot":
            return max(1, _contracted(user))
        case _:
            return 1


def _contracted(product: HloInstruction) -> int:
    """Over how many elements, beside a window's, a dot or a convolution sums."""
    lhs = product.operands[0].shape
    if not isinstance(lhs, Shape):
        return 1
    if product.opcode == "dot":
        return math.prod(lhs.dims[d] for d in product.ints("lhs_contracting_dims", ()))
    numbers = str(product.attributes.get("dim_labels", ""))
    place = numbers.partition("_")[0].find("f")
    return lhs.dims[place] if 0 <= place < lhs.rank else 1
