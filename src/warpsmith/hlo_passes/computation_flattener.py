"""computation-flattener: what fusions and reducers call is written out, and what no kernel does leaves its fusion.

    sum { ROOT f = fusion(a, b), calls=added }         sum { ROOT f = f32[] add(a, b) }
    f = f32[8] fusion(x)  { s = sort(x)          ->    f.s = f32[8] sort(x)
                            ROOT negate(s) }           f = f32[8] fusion(f.s)  { ROOT negate(f.s) }

In: a module.  Out: a module in which no computation that is a part of an op (a fusion's body, a reducer, a comparator)
calls another or takes a tuple apart that it has put together; and no fusion takes a tuple, or holds an op that no
emitter takes inside a fusion: such an op is a step of its own, the parts before and after it stay fusions; one that
makes a tuple dissolves its fusion.  XLA's own fusions need the former (reducers of bf16 are fusions in what XLA:GPU
prints), one odd fusion would lose the whole module without the latter.
"""

from __future__ import annotations

from warpsmith.devices import Device
from warpsmith.fusion.support import KERNEL_OPS, has_odd_computation
from warpsmith.hlo.control_flow import step_computations
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule
from warpsmith.hlo.shapes import TupleShape
from warpsmith.hlo_passes.inline_calls import spliced
from warpsmith.hlo_passes.kit import Rewriting, rewrite, rewrite_steps
from warpsmith.hlo_passes.support.split import split_out

__all__ = ["CONTRACT", "flatten", "run"]

CONTRACT = "E"

_FUSIBLE = KERNEL_OPS | {"parameter", "constant", "bitcast", "get-tuple-element"}
_ROUNDED_ONCE = frozenset(("add", "subtract", "multiply", "divide", "maximum", "minimum"))
_ROOT_ALONE = frozenset(("tuple", "scatter"))
"""Ops that a fusion may hold as its root, or an element of it."""


def run(module: HloModule, _: Device) -> HloModule:
    """`flatten` as a pass."""
    return flatten(module)


def flatten(module: HloModule) -> HloModule:
    """The module with inner calls written out and odd fusions dissolved; itself where there is neither."""
    steps = set(step_computations(module))

    def inner(at: Rewriting) -> HloInstruction | None:
        old = at.old
        if at.computation in steps:
            return None
        if old.opcode in ("call", "fusion"):
            named = old.attr("to_apply" if old.opcode == "call" else "calls", HloComputation)
            return spliced(at, old, at.computations.get(named, named))
        if old.opcode == "get-tuple-element":
            whole = at.new[old.operands[0]]
            return whole.operands[old.attr("index", int)] if whole.opcode == "tuple" else None
        return _in_own_type(at) if old.opcode == "convert" else None

    def step(at: Rewriting) -> HloInstruction | None:
        old = at.old
        if old.opcode != "fusion":
            return None
        body = old.attr("calls", HloComputation)
        odd = _odd_ops(body)
        if any(isinstance(each.shape, TupleShape) for each in (*old.operands, *odd)):
            return spliced(at, old, body)
        return split_out(at, old, odd) if odd else None

    return rewrite_steps(rewrite(module, inner), step)


def _in_own_type(at: Rewriting) -> HloInstruction | None:
    """`convert(op(convert(a), convert(b)))` back to the type of a and b: `op(a, b)`, which has the same bits.

    f32 has more than twice the digits of bf16, so that rounding twice is rounding once (Figueroa, "When is double
    rounding innocuous?", 1995); XLA:GPU spells its bf16 reducers so.
    """
    old = at.old
    wide = at.new[old.operands[0]]
    if wide.opcode not in _ROUNDED_ONCE or wide.shape.leaves()[0].dtype.name != "f32":
        return None
    narrow = [each.operands[0] for each in wide.operands if each.opcode == "convert"]
    dtype = old.array_shape.dtype
    if len(narrow) != 2 or dtype.name != "bf16" or any(each.array_shape.dtype is not dtype for each in narrow):
        return None
    return at.emit(HloInstruction(old.name, wide.opcode, old.shape, tuple(narrow), origin=old.origin))


def _odd_ops(body: HloComputation) -> list[HloInstruction]:
    """The ops of a fusion's body that no emitter takes there, whatever the device."""
    roots = {body.root, *(body.root.operands if body.root.opcode == "tuple" else ())}
    found: list[HloInstruction] = []
    for each in body:
        alone = each.opcode in _ROOT_ALONE and each in roots and _is_last(body, each)
        if (each.opcode not in _FUSIBLE and not alone) or has_odd_computation(each):
            found.append(each)
    return found


def _is_last(body: HloComputation, root: HloInstruction) -> bool:
    """Whether nothing in the body but its tuple of results uses a root."""
    return all(user is body.root for user in body.users(root))
