"""Canonical forms of scf: loops that run never or once, values that no iteration changes, decided conditions.

    %r = scf.if %true -> (f32) { scf.yield %a : f32 } else { scf.yield %b : f32 }   ->   uses of %r use %a

As MLIR's, except: results that two branches yield from outside become a select only for
scalars and vectors (a tensor stands for a buffer and can't be selected).
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.ir.core.attributes import DenseArrayAttr, boolean
from warpsmith.ir.core.effects import constant_of, is_pure
from warpsmith.ir.core.rewriter import Pattern, Rewriter
from warpsmith.ir.core.ssa import Block, Operation, Region, Trait, Value, row
from warpsmith.ir.core.types import I1, MemRefType, TensorType

__all__ = ["PATTERNS", "keep_results", "trip_count"]

_MAX_USERS = 64  # of a condition, when looking for uses inside its own branches


def trip_count(loop: Operation) -> int | None:
    """How often an scf.for with constant bounds and step runs."""
    lower, upper, step = (constant_of(v) for v in loop.operands[:3])
    if lower is None or upper is None or step is None or step.value < 1:
        return None
    return max(0, -((lower.value - upper.value) // step.value))


# ------------------------------------------------------------------------------------------------------------ scf.for
def for_trips(op: Operation, rewriter: Rewriter) -> bool:
    """A loop that never runs gives its inits; one that runs once is its body."""
    trips = trip_count(op)
    if trips is None or trips > 1:
        if op.operands[0] is not op.operands[1]:
            return False
        trips = 0
    if trips == 0:
        rewriter.replace(op, op.operands[3:])
        return True
    values = rewriter.inline_before(op.body, op, [op.operands[0], *op.operands[3:]])
    rewriter.replace(op, values)
    return True


def for_iter_args(op: Operation, rewriter: Rewriter) -> bool:
    """Drops iter args that no iteration changes, or that nobody reads."""
    body = op.body
    keep = [True] * len(op.results)
    for i, result in enumerate(op.results):
        yielded = body.terminator.operands
        arg, init, value = body.args[i + 1], op.operands[i + 3], yielded[i]
        if value is arg or (value is init and value is not arg):
            rewriter.replace_value(result, init)
            if value is arg:
                # The yield's own operand goes when the arg is dropped; another one yields the init from now on.
                _replace_except(arg, init, body.terminator, rewriter)
                rewriter.set_operands(
                    body.terminator, [init if v is arg and j != i else v for j, v in enumerate(yielded)]
                )
            else:
                rewriter.replace_value(arg, init)
            keep[i] = False
        elif not result.users and not arg.users:
            keep[i] = False
    if all(keep):
        return False
    _keep_iter_args(op, keep, rewriter)
    return True


def _replace_except(old: Value, new: Value, except_op: Operation, rewriter: Rewriter) -> None:
    for user in list(old.users):
        if user is not except_op:
            user.replace_uses(old, new)
            rewriter.changed(user)


def _keep_iter_args(op: Operation, keep: Sequence[bool], rewriter: Rewriter) -> None:
    """Rebuild the loop with some of its iter args; the others have no uses but their own yield."""
    body, terminator = op.body, op.body.terminator
    rewriter.set_operands(terminator, [v for v, k in zip(terminator.operands, keep, strict=True) if k])
    for i in range(len(keep) - 1, -1, -1):
        if not keep[i]:
            body.erase_arg(i + 1)
    region = op.regions.pop()
    operands = [*op.operands[:3], *(v for v, k in zip(op.operands[3:], keep, strict=True) if k)]
    types = [r.type for r, k in zip(op.results, keep, strict=True) if k]
    new = rewriter.builder(op).create("scf.for", operands, types, op.attributes, (region,))
    kept = iter(new.results)
    for result, k in zip(op.results, keep, strict=True):
        if k:
            value = next(kept)
            value.name = result.name
            rewriter.replace_value(result, value)
    rewriter.erase(op)


def for_invariant_results(op: Operation, rewriter: Rewriter) -> bool:
    """A loop that runs and yields a value from outside has that value as its result."""
    body = op.body
    changed = False
    for result, value in zip(op.results, body.terminator.operands, strict=True):
        if result.users and value.parent_block is not body:
            if not trip_count(op):
                return changed
            rewriter.replace_value(result, value)
            changed = True
    return changed


# ------------------------------------------------------------------------------------------------------------- scf.if
def if_constant(op: Operation, rewriter: Rewriter) -> bool:
    """A known condition leaves one branch."""
    condition = constant_of(op.operands[0])
    if condition is None:
        return False
    region = op.regions[0 if condition.value else 1]
    values = rewriter.inline_before(region.blocks[0], op, ()) if region.blocks else []
    rewriter.replace(op, values)
    return True


def keep_results(op: Operation, keep: Sequence[bool], rewriter: Rewriter) -> Operation:
    """The scf.if (or index_switch) with some of its results; the others have no users."""
    for block in [b for r in op.regions for b in r.blocks]:
        rewriter.set_operands(block.terminator, [v for v, k in zip(block.terminator.operands, keep, strict=True) if k])
    regions, op.regions = op.regions, []
    types = [r.type for r, k in zip(op.results, keep, strict=True) if k]
    new = rewriter.builder(op).create(op.row.name, op.operands, types, op.attributes, regions)
    kept = iter(new.results)
    for result, k in zip(op.results, keep, strict=True):
        if k:
            value = next(kept)
            value.name = result.name
            rewriter.replace_value(result, value)
    rewriter.erase(op)
    return new


def if_results(op: Operation, rewriter: Rewriter) -> bool:
    """Results that nobody uses go; ones that both branches yield alike, or as outer scalars, don't need the if."""
    if not op.results or len(op.regions[1].blocks) != 1:
        return False
    then, otherwise = (region.blocks[0] for region in op.regions)
    for result, a, b in zip(op.results, then.terminator.operands, otherwise.terminator.operands, strict=True):
        if not result.users:
            continue
        if a is b:
            rewriter.replace_value(result, a)
        elif a.parent_block is not then and b.parent_block is not otherwise:
            if isinstance(result.type, (TensorType, MemRefType)):
                continue
            select = rewriter.builder(op).op1("arith.select", (op.operands[0], a, b), result.type)
            rewriter.replace_value(result, select)
    keep = [bool(r.users) for r in op.results]
    if all(keep):
        return False
    keep_results(op, keep, rewriter)
    return True


def if_condition_inside(op: Operation, rewriter: Rewriter) -> bool:
    """Inside its branches, the condition is known."""
    condition = op.operands[0]
    if len(condition.users) < 2 or len(condition.users) > _MAX_USERS:
        return False
    changed = False
    for user in list(condition.users):
        if user is op:
            continue
        inside: Operation | None = user
        while inside is not None and inside.parent is not op:
            inside = inside.parent
        if inside is None or inside.block is None:
            continue
        truth = inside.block.region is op.regions[0]
        user.replace_uses(condition, rewriter.constant(user, boolean(truth), I1))
        rewriter.changed(user)
        changed = True
    return changed


def _is_empty(block: Block) -> bool:
    return block.first is block.last


def if_empty_else(op: Operation, rewriter: Rewriter) -> bool:
    """An else without ops and results isn't there."""
    region = op.regions[1]
    if op.results or not region.blocks or not _is_empty(region.blocks[0]):
        return False
    region.blocks[0].terminator.erase()
    region.blocks.clear()
    rewriter.changed(op)
    return True


def if_nested(op: Operation, rewriter: Rewriter) -> bool:
    """An if that holds nothing but an if, both without else and results, is one if."""
    inner = op.body.first
    if (
        op.results
        or op.regions[1].blocks
        or inner is None
        or inner.row.name != "scf.if"
        or inner.next is not op.body.last
    ):
        return False
    if inner.results or inner.regions[1].blocks or inner.operands[0].parent_block is op.body:
        return False
    both = rewriter.builder(op).op1("arith.andi", (op.operands[0], inner.operands[0]), I1)
    _move_comment(inner, op)
    rewriter.inline_before(inner.body, inner, ())
    rewriter.erase(inner)
    rewriter.set_operand(op, 0, both)
    return True


def if_after_if(op: Operation, rewriter: Rewriter) -> bool:
    """Two ifs in a row with one condition are one if."""
    first = op.prev
    if first is None or first.row.name != "scf.if" or first.operands[0] is not op.operands[0]:
        return False
    for each in (first, op):
        _move_comment(each, next((inner for inner in each.body if not is_pure(inner)), None))
    regions: list[Region] = []
    for mine, theirs in zip(op.regions, first.regions, strict=True):
        regions.append(_joined(op, first, mine, theirs, rewriter))
    types = [r.type for r in (*first.results, *op.results)]
    new = rewriter.builder(op).create("scf.if", op.operands, types, op.attributes, regions)
    for old, value in zip((*first.results, *op.results), new.results, strict=True):
        value.name = old.name
        rewriter.replace_value(old, value)
    op.regions, first.regions = [], []
    rewriter.erase(op)
    rewriter.erase(first)
    return True


def _move_comment(old: Operation, new: Operation | None) -> None:
    """Keep the comment of an op that goes: with what it does."""
    comment = old.attributes.pop("tile.comment", None)
    if comment is not None and new is not None and not new.row.traits & Trait.TERMINATOR:
        new.attributes.setdefault("tile.comment", comment)


def _joined(op: Operation, first: Operation, second: Region, region: Region, rewriter: Rewriter) -> Region:
    """One branch of both ifs: the ops of `region`, then those of `second`."""
    if not second.blocks and not region.blocks:
        return Region()
    block = region.blocks[0] if region.blocks else Block()
    values = list(block.terminator.operands) if region.blocks else []
    if region.blocks:
        block.terminator.erase()
        inside = _inside(second)
        for result, value in zip(first.results, values, strict=True):
            for user in list(result.users):
                if user in inside:
                    user.replace_uses(result, value)
                    rewriter.changed(user)
    if second.blocks:
        values += second.blocks[0].terminator.operands
        for inner in second.blocks[0]:
            if inner.row.traits & Trait.TERMINATOR:
                inner.erase()
            else:
                inner.unlink()
                block.append(inner)
    block.append(Operation(row("scf.yield"), values))
    return Region((block,))


def _inside(region: Region) -> set[Operation]:
    return {op for block in region.blocks for outer in block for op in outer.walk()}


# ------------------------------------------------------------------------------------------------------- index_switch
def switch_constant(op: Operation, rewriter: Rewriter) -> bool:
    """A known argument leaves one case (region 0 is the default)."""
    argument, cases = constant_of(op.operands[0]), op.attributes.get("cases")
    if argument is None or not isinstance(cases, DenseArrayAttr):
        return False
    number = cases.values.index(argument.value) + 1 if argument.value in cases.values else 0
    values = rewriter.inline_before(op.regions[number].blocks[0], op, ())
    rewriter.replace(op, values)
    return True


def switch_results(op: Operation, rewriter: Rewriter) -> bool:
    """Results that nobody uses go."""
    keep = [bool(r.users) for r in op.results]
    if all(keep) or (not any(keep) and is_pure(op)):
        return False
    keep_results(op, keep, rewriter)
    return True


PATTERNS: dict[str, tuple[Pattern, ...]] = {
    "scf.for": (for_trips, for_iter_args, for_invariant_results),
    "scf.if": (if_constant, if_results, if_condition_inside, if_empty_else, if_nested, if_after_if),
    "scf.index_switch": (switch_constant, switch_results),
}
