"""licm: loop-invariant code motion.

    scf.for %i = ... {                      %c = arith.cmpi slt, %x, %y : index
      %c = arith.cmpi slt, %x, %y : index   scf.for %i = ... {
      "use"(%i, %c)                    ->     "use"(%i, %c)
    }                                       }

Ops that sit directly in a loop's body, have no effects, and use only values from outside go before the loop, inner
loops first.  As MLIR's `loop-invariant-code-motion`, except: an op that touches memory or may trap (`is_speculatable`)
moves only out of a loop that is known to run, so nothing is read that the program would not have read.
"""

from __future__ import annotations

from warpsmith.ir.core.effects import constant_of, is_pure, is_speculatable
from warpsmith.ir.core.ssa import Block, Operation, Trait

CONTRACT = "bit-exact"


def run(module: Operation) -> None:
    """Hoist out of all loops in `module`."""
    for op in module.walk_post():
        if op.row.traits & Trait.LOOP:
            hoist(op)


def hoist(loop: Operation) -> None:
    """Move what is invariant out of one loop."""
    runs = _runs(loop)
    for number, region in enumerate(loop.regions):
        if len(region.blocks) != 1:
            continue
        block = region.blocks[0]
        certain = runs or (loop.row.name == "scf.while" and number == 0)
        for op in block:
            if op.row.traits & Trait.TERMINATOR:
                continue
            if _invariant(op, block) and is_pure(op) and (certain or is_speculatable(op)):
                op.move_before(loop)


def _runs(loop: Operation) -> bool:
    """Whether the body runs at least once for sure."""
    if loop.row.name != "scf.for":
        return False
    lower, upper = constant_of(loop.operands[0]), constant_of(loop.operands[1])
    return lower is not None and upper is not None and lower.value < upper.value


def _invariant(op: Operation, body: Block) -> bool:
    for value in op.operands:
        if value.parent_block is body:
            return False
    return not op.regions or not any(
        value.parent_block is body for inner in op.walk() if inner is not op for value in inner.operands
    )
