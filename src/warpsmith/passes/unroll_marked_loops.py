"""unroll-marked-loops: loops that are marked to be written out are.

    scf.for %f = %c0 to %c8 step %c1 { "g"(%R[%f]) } {tile.unroll}    ->    "g"(%R[%c0]) ; "g"(%R[%c1]) ; ...

A tile program's private arrays become registers only where every index is a number, so the loops over them are marked
by whoever makes them, however long they are.  Loops whose bounds and step are constants; others stay.
"""

from __future__ import annotations

from warpsmith.ir.core.effects import constant_of
from warpsmith.ir.core.rewriter import Rewriter
from warpsmith.ir.core.ssa import Operation
from warpsmith.passes.optimize_loops import unroll_fully

CONTRACT = "bit-exact"

MARK = "tile.unroll"
MOST_TURNS = 256


def run(module: Operation) -> None:
    """Unroll every marked loop, inner ones first."""
    constants = Rewriter()
    for op in list(module.walk_post()):
        if op.row.name == "scf.for" and MARK in op.attributes:
            lower, upper, step = (constant_of(v) for v in op.operands[:3])
            if lower is None or upper is None or step is None or step.value < 1:
                continue
            turns = range(lower.value, upper.value, step.value)
            if 1 <= len(turns) <= MOST_TURNS:
                unroll_fully(op, turns, constants)
