"""`smem`: an elementwise primitive whose operands are all in shared memory, shared out over the scope's threads.

Neighbouring elements of the destination go to neighbouring threads.  A barrier of the scope follows: the results are
there for all of its threads.  Before it the author must have placed one if other threads made the sources.  Addresses
are computed element by element, from each layout (tile.md 6.5; B4 and B8 come of not doing so).
"""

from __future__ import annotations

import math

from warpsmith.indexing import add, mul
from warpsmith.ir.dialects import arith, memory, nvgpu
from warpsmith.ir.types import I32
from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.digits import merged, refine
from warpsmith.tile.dispatch.elementwise import ELEMENTWISE, compute, source_roles
from warpsmith.tile.dispatch.emission import Term, address, counted, digit_sum, loop, when
from warpsmith.tile.dispatch.predicates import ALL_ACTIVE, LAYOUTS, NO_OVERLAP, SCOPE, all_in
from warpsmith.tile.dispatch.registry import Variant
from warpsmith.tile.frontend.scalars import Operand
from warpsmith.tile.frontend.values import Scalar

__all__ = ["VARIANTS", "barrier"]


def emit(call: CallContext) -> str:
    """Build the loop and the barrier; the partition in words."""
    roles = ["dst", *source_roles(call)]
    placements = [call.place(role) for role in roles]
    digits = merged(sorted(refine(placements), key=lambda d: -d.steps[0].stride))
    total = math.prod(d.extent for d in digits)
    turns = -(-total // call.threads)
    b = call.b
    with loop(b, turns) as turn:
        term = Term(b)
        number = mul(term.var(turn), call.threads)
        if call.scope != "thread":
            number = add(number, term.var(call.thread()))
        guard = counted(b, term.emit(number), total) if total % call.threads else None
        with when(b, guard):
            values: dict[str, Operand] = {}
            for i, role in enumerate(roles[1:], start=1):
                place = address(term, placements[i], digit_sum(number, digits, i))
                values[role] = Scalar(memory.load(b, call.memory(role), place), placements[i].buffer.type)
            target = address(term, placements[0], digit_sum(number, digits, 0))
            memory.store(b, compute(call, values), call.memory("dst"), target)
    barrier(call)
    threads = "this thread" if call.scope == "thread" else f"{call.threads} threads"
    return f"{turns} x {threads} x 1 element"


def barrier(call: CallContext) -> None:
    """Wait for the scope's threads: the block's barrier, a named one for each warpgroup, the warp's, or none."""
    b = call.b
    if call.scope == "cta":
        b.create("gpu.barrier")
    elif call.scope == "warp":
        nvgpu.warp_sync(b)
    elif call.scope == "warpgroup":
        from warpsmith.indexing import const, dim, floordiv
        from warpsmith.tile.scopes import WARPGROUP

        ids = call.storage.ids
        number = ids.derived("warpgroup_barrier", add(floordiv(dim(0), WARPGROUP), const(1)), "barrier")
        id = arith.cast(b, "index_cast", number, I32)
        b.create("nvvm.barrier", (id, arith.constant(b, WARPGROUP, I32)))


VARIANTS = [
    Variant(
        ELEMENTWISE,
        "smem",
        10,
        "all operands in shared memory, shared out over the scope's threads; a barrier follows",
        (SCOPE, ALL_ACTIVE, LAYOUTS, NO_OVERLAP, all_in("shared", "every operand is in shared memory")),
        emit,
    )
]
