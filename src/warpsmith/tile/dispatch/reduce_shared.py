"""`smem`: a reduction of shared memory: the outputs are shared out over the scope's threads; a barrier follows.

Reference: tile.md 8.
"""

from __future__ import annotations

import math

from warpsmith.indexing import add, mul
from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.elementwise_shared import barrier
from warpsmith.tile.dispatch.emission import Term, address, counted, digit_sum, loop, when
from warpsmith.tile.dispatch.predicates import ALL_ACTIVE, LAYOUTS, NO_OVERLAP, SCOPE, all_in
from warpsmith.tile.dispatch.reduction import REDUCTIONS, finish, partial, reduction
from warpsmith.tile.dispatch.registry import Variant

__all__ = ["VARIANTS"]


def emit(call: CallContext) -> str:
    """Build the loop over outputs and the barrier; the partition in words."""
    found = reduction(call)
    b, outputs = call.b, math.prod(d.extent for d in found.kept)
    turns = -(-outputs // call.threads)
    with loop(b, turns) as turn:
        term = Term(b)
        number = mul(term.var(turn), call.threads)
        if call.scope != "thread":
            number = add(number, term.var(call.thread()))
        guard = counted(b, term.emit(number), outputs) if outputs % call.threads else None
        with when(b, guard):
            total = partial(call, found, digit_sum(number, found.kept, 0), term, found.reduced)
            finish(call, found, total, address(term, found.dst, digit_sum(number, found.kept, 1)))
    barrier(call)
    threads = "this thread" if call.scope == "thread" else f"{call.threads} threads"
    return f"{turns} x {threads} x 1 output of {math.prod(d.extent for d in found.reduced)} elements"


VARIANTS = [
    Variant(
        REDUCTIONS,
        "smem",
        10,
        "shared memory: an output a thread; a barrier follows",
        (SCOPE, ALL_ACTIVE, LAYOUTS, NO_OVERLAP, all_in("shared", "both operands are in shared memory")),
        emit,
    )
]
