"""computation-flattener: what fusions and reducers call is written out, and what no kernel does leaves its fusion.

    sum { ROOT f = fusion(a, b), calls=added }         sum { ROOT f = f32[] add(a, b) }
    f = f32[8] fusion(x)  { s = sort(x)          ->    f.s = f32[8] sort(x)
                            ROOT negate(s) }           f = f32[8] fusion(f.s)  { ROOT negate(f.s) }

In: a module.  Out: a module in which no computation that is a part of an op (a fusion's body, a reducer, a comparator)
calls another or takes a tuple apart that it has put together; and no fusion takes tuples, gives tuples in tuples, or
holds an op that no emitter takes inside a fusion: such an op is a step of its own, the parts before and after it stay
fusions.  XLA's own fusions need the former (reducers of bf16 are fusions in what XLA:GPU prints), one odd fusion would
lose the whole module without the latter.
"""

from __future__ import annotations

from warpsmith.devices import Device
from warpsmith.fusion.support import odd_ops
from warpsmith.hlo.control_flow import step_computations
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule
from warpsmith.hlo_passes.inline_calls import spliced
from warpsmith.hlo_passes.kit import Rewriting, Rule, rewrite, rewrite_steps
from warpsmith.hlo_passes.support.split import split_out
from warpsmith.hlo_passes.support.tuples import of_arrays

__all__ = ["CONTRACT", "flatten", "run"]

CONTRACT = "E"

_ROUNDED_ONCE = frozenset(("add", "subtract", "multiply", "divide", "maximum", "minimum"))


def run(module: HloModule, _: Device) -> HloModule:
    """`flatten` as a pass."""
    return flatten(module)


def flatten(module: HloModule) -> HloModule:
    """The module with inner calls written out and odd ops out of fusions; itself where there is neither."""
    return rewrite_steps(_inside(_inside(rewrite_steps(module, _arrays), _written_out), _parts), _apart)


def _inside(module: HloModule, rule: Rule) -> HloModule:
    """The module with a rule applied in computations that are part of an op, whose instructions are no steps."""
    steps = set(step_computations(module))
    return rewrite(module, lambda at: None if at.computation in steps else rule(at))


def _arrays(at: Rewriting) -> HloInstruction | None:
    return of_arrays(at, at.old) if at.old.opcode == "fusion" else None


def _written_out(at: Rewriting) -> HloInstruction | None:
    old = at.old
    if old.opcode in ("call", "fusion"):
        named = old.attr("to_apply" if old.opcode == "call" else "calls", HloComputation)
        return spliced(at, old, at.computations.get(named, named))
    return _in_own_type(at) if old.opcode == "convert" else None


def _parts(at: Rewriting) -> HloInstruction | None:
    if at.old.opcode != "get-tuple-element":
        return None
    whole = at.new[at.old.operands[0]]
    return whole.operands[at.old.attr("index", int)] if whole.opcode == "tuple" else None


def _apart(at: Rewriting) -> HloInstruction | None:
    odd = odd_ops(at.old.attr("calls", HloComputation)) if at.old.opcode == "fusion" else []
    return split_out(at, at.old, odd) if odd else None


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
