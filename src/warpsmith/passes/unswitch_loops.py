"""unswitch-loops: a condition that doesn't change inside a loop is tested once, around it.

    scf.for %i = ... {                       scf.if %c {
      scf.if %c { body }             ->        scf.for %i = ... { body }
    }                                        }

For a loop whose body is one scf.if and the yield; together with the canonical forms of scf,
so that a nest is unswitched from the inside out.  As XLA's pass, except: the condition must come from outside the loop.
"""

from __future__ import annotations

from warpsmith.ir.core.attributes import boolean
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.effects import constant_of
from warpsmith.ir.core.rewriter import Rewriter, rewrite
from warpsmith.ir.core.ssa import Block, Operation, Value
from warpsmith.ir.core.types import I1
from warpsmith.ir.dialects import scf
from warpsmith.passes.canonicalize import merge
from warpsmith.passes.canonicalize import scf as canonical

CONTRACT = "bit-exact"


def run(module: Operation) -> None:
    """Unswitch every loop of `module`."""
    if any(op.row.name == "scf.for" and _branch(op) is not None for op in module.walk()):
        rewrite(module, _PATTERNS)


def _branch(loop: Operation) -> Operation | None:
    """The scf.if that is the loop's whole body and tests a value from outside."""
    body = loop.body
    branch = body.first
    if branch is None or branch.row.name != "scf.if" or branch.next is not body.last:
        return None
    condition = branch.operands[0]
    return branch if condition.parent_block is not body and constant_of(condition) is None else None


def unswitch(op: Operation, rewriter: Rewriter) -> bool:
    """Pattern on scf.for."""
    branch = _branch(op)
    if branch is None:
        return False
    condition = branch.operands[0]
    new = scf.if_(rewriter.builder(op), condition, [r.type for r in op.results], with_else=True)
    then, otherwise = (Builder.at_end(region.blocks[0], op.location) for region in new.regions)
    for result, old in zip(new.results, op.results, strict=True):
        result.name = old.name
        rewriter.replace_value(old, result)
    scf.yield_(otherwise, _else_values(op, branch, otherwise, rewriter))
    op.unlink()
    then.insert(op)
    rewriter.set_operand(branch, 0, rewriter.constant(new, boolean(True), I1))
    scf.yield_(then, op.results)
    rewriter.changed(op)
    parent = new.parent
    if parent is not None:
        rewriter.push(parent)
    return True


def _else_values(op: Operation, branch: Operation, b: Builder, rewriter: Rewriter) -> list[Value]:
    """What the loop gives when the condition is false; a loop is made for it unless it just carries its inits."""
    arms = branch.regions[1].blocks
    yielded = _through(op.body, branch, arms[0] if arms else None)
    if yielded == list(op.body.args[1:]):
        return op.operands[3:]
    copy = op.clone()
    b.insert(copy)
    inner = copy.body.first
    assert inner is not None
    inner.set_operand(0, rewriter.constant(op, boolean(False), I1))
    for made in copy.walk():
        rewriter.push(made)
    return list(copy.results)


def _through(body: Block, branch: Operation, arm: Block | None) -> list[Value] | None:
    """The loop's yielded values when the branch takes `arm`; None when the arm does anything but yield."""
    if arm is not None and arm.first is not arm.last:
        return None
    values: dict[Value, Value] = {}
    if arm is not None:
        values.update(zip(branch.results, arm.terminator.operands, strict=True))
    return [values.get(v, v) for v in body.terminator.operands]


_PATTERNS = merge({"scf.for": (unswitch,)}, canonical.PATTERNS)
