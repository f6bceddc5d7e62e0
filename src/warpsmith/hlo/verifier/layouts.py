"""Rules of layouts: what only passes data on leaves it where it lies.

In: a module whose shapes fit.  Out: nothing, or InvalidHlo.  Fusions are made after layouts are decided, so their
boundaries are checked always.  Other ops are checked in a scheduled module alone: before layout assignment XLA prints
layouts that mean nothing yet, and that disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule
from warpsmith.hlo.shapes import AnyShape
from warpsmith.hlo.verifier.calls import CALLS, branches_of
from warpsmith.hlo.verifier.collectives import DEVICES
from warpsmith.hlo.verifier.common import fail, same_layout
from warpsmith.hlo.verifier.indexed import INDEXED

__all__ = ["verify_layouts"]

Pair = tuple[AnyShape, AnyShape, str]
"""Two shapes that must lie alike, and what they are."""


def _boundary(called: HloComputation, given: tuple[HloInstruction, ...], result: AnyShape) -> Iterator[Pair]:
    for parameter, operand in zip(called.parameters, given, strict=True):
        yield operand.shape, parameter.shape, f"operand '{operand.name}' and parameter of '{called.name}'"
    yield called.root.shape, result, f"what '{called.name}' returns and the result"


def _call(instruction: HloInstruction) -> Iterator[Pair]:
    for called in instruction.called_computations[:1]:
        yield from _boundary(called, instruction.operands, instruction.shape)


def _while(instruction: HloInstruction) -> Iterator[Pair]:
    yield from _boundary(instruction.attr("body", HloComputation), instruction.operands, instruction.shape)
    condition = instruction.attr("condition", HloComputation)
    yield from _boundary(condition, instruction.operands, condition.root.shape)


def _conditional(instruction: HloInstruction) -> Iterator[Pair]:
    for branch, operand in zip(branches_of(instruction), instruction.operands[1:], strict=True):
        yield from _boundary(branch, (operand,), instruction.shape)


def _inferred(instruction: HloInstruction) -> Iterator[Pair]:
    rule = CALLS.get(instruction.opcode) or DEVICES.get(instruction.opcode) or INDEXED[instruction.opcode]
    yield rule(instruction), instruction.shape, "what goes in and the result"


_PAIRS: dict[str, Callable[[HloInstruction], Iterator[Pair]]] = {
    "fusion": _call,
    "call": _call,
    "while": _while,
    "conditional": _conditional,
    **dict.fromkeys(("tuple", "get-tuple-element", "opt-barrier", "domain", "add-dependency"), _inferred),
    **dict.fromkeys(("copy-done", "async-update", "async-done", "all-gather-done"), _inferred),
    **dict.fromkeys(("collective-permute-done", "dynamic-update-slice"), _inferred),
}


def verify_layouts(module: HloModule) -> None:
    """InvalidHlo at the first instruction that passes data on under another layout."""
    scheduled = bool(module.attributes.get("is_scheduled", False))
    checked = _PAIRS if scheduled else {"fusion": _call}
    for instruction in module.instructions():
        pairs = checked.get(instruction.opcode)
        if pairs is None:
            continue
        for a, b, what in pairs(instruction):
            if a is not b and not same_layout(a, b):
                raise fail(instruction, "result.layout", f"{instruction.opcode} joins {a} and {b}: {what}")
