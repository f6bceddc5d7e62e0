"""fit-loop-bounds (CPU): a bounds check inside a loop becomes the loop's bound.

    scf.for %i = 0 to 16384 { %p = addi %base, %i ; %c = cmpi sle, %p, %last ; scf.if %c { body } }
      ->  %n = minsi(16384, %last - %base + 1) ; scf.for %i = 0 to %n { body }

The loop body is then straight-line code for every iteration, which `vectorize-cpu` needs.  Only the last work group
ever sees a shorter loop.
"""

from __future__ import annotations

from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.effects import is_pure
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.dialects import arith, func
from warpsmith.passes.support.affine_lanes import Lanes

CONTRACT = "bit-exact"

# predicate -> what to add to (right - left) for the number of iterations that pass
_LIMITS = {2: 0, 3: 1}  # slt, sle


def run(module: Operation) -> None:
    """Rewrite the loops of all functions, inner ones first."""
    for function in func.functions(module):
        for op in list(function.walk_post()):
            if op.name == "scf.for" and arith.constant_int(op.operands[2]) == 1:
                while _fit(op):
                    pass


def _fit(loop: Operation) -> bool:
    """Take one check out of the loop; False if there is none of the form."""
    found = _only_if(loop)
    if found is None:
        return False
    check, condition = found
    lanes = Lanes(loop)
    limit = _limit(loop, lanes, condition)
    if limit is None:
        return False
    loop.set_operand(1, limit)
    block = check.body
    yielded = block.terminator
    for op in list(block):
        if op is not yielded:
            op.move_before(check)
    check.replace_by([yielded.operands[r.index] for r in check.results])
    return True


def _only_if(loop: Operation) -> tuple[Operation, Operation] | None:
    """The loop's one scf.if without else, after pure ops only, and the comparison that decides it."""
    check: Operation | None = None
    for op in loop.body:
        if op.name == "scf.if" and check is None:
            check = op
        elif op is not loop.body.terminator and not is_pure(op):
            return None
    if check is None or check.results or check.regions[1].blocks:
        return None
    condition = check.operands[0].defining_op
    return (check, condition) if condition is not None and condition.name == "arith.cmpi" else None


def _limit(loop: Operation, lanes: Lanes, condition: Operation) -> Value | None:
    """The new upper bound: the iteration from which the condition fails."""
    extra = _LIMITS.get(condition.int_attr("predicate"))
    left, right = condition.operands
    if extra is None or lanes[left] != 1 or not lanes.is_uniform(right):
        return None
    if not _available(loop, right):
        return None
    b = Builder.before(loop)
    base = _at_zero(b, loop, left)
    if base is None:
        return None
    count = arith.binary(b, "subi", right, base)
    if extra:
        count = arith.binary(b, "addi", count, arith.index(b, extra))
    return arith.binary(b, "minsi", loop.operands[1], count)


def _available(loop: Operation, value: Value) -> bool:
    """Whether `value` is defined outside the loop."""
    op = value.defining_op
    if op is not None:
        return not loop.is_ancestor_of(op)
    block = value.parent_block
    owner = block.parent_op if block is not None else None
    return owner is None or not loop.is_ancestor_of(owner)


def _at_zero(b: Builder, loop: Operation, value: Value) -> Value | None:
    """`value` at iteration 0, computed before the loop; None if it needs more than sums and products."""
    if value is loop.body.args[0]:
        return arith.index(b, 0)
    if _available(loop, value):
        return value
    op = value.defining_op
    if op is None or op.name not in ("arith.addi", "arith.subi", "arith.muli"):
        return None
    operands: list[Value] = []
    for operand in op.operands:
        at_zero = _at_zero(b, loop, operand)
        if at_zero is None:
            return None
        operands.append(at_zero)
    return b.op1(op.name, operands, value.type)
