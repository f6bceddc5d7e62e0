"""`smem`: an elementwise primitive whose operands are all in shared memory, shared out over the scope's threads.

Neighbouring elements of the destination go to neighbouring threads.  A barrier of the scope follows: the results are
there for all of its threads.  Before it the author must have placed one if other threads made the sources.  Addresses
are computed element by element, from each layout.
"""

from __future__ import annotations

import math

from warpsmith.indexing import add, const, dim, floordiv
from warpsmith.ir.core.types import I32
from warpsmith.ir.dialects import arith, nvgpu
from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.digits import merged
from warpsmith.tile.dispatch.elementwise import ELEMENTWISE, compute, source_roles
from warpsmith.tile.dispatch.emission import digit_sum
from warpsmith.tile.dispatch.moves import read, write
from warpsmith.tile.dispatch.predicates import ALL_ACTIVE, LAYOUTS, NO_OVERLAP, ROUNDING, SCOPE, all_in
from warpsmith.tile.dispatch.registry import Variant
from warpsmith.tile.dispatch.work_sharing import shared_out, turns_in_words
from warpsmith.tile.frontend.scalars import Operand
from warpsmith.tile.frontend.values import Scalar
from warpsmith.tile.model.scopes import WARPGROUP

__all__ = ["VARIANTS", "barrier"]


def emit(call: CallContext) -> str:
    """Build the loop and the barrier; the partition in words."""
    roles = ["dst", *source_roles(call)]
    digits = merged(sorted(call.refined(roles), key=lambda d: -d.steps[0].stride))
    total = math.prod(d.extent for d in digits)
    with shared_out(call, total) as (term, number):
        values: dict[str, Operand] = {}
        for i, role in enumerate(roles[1:], start=1):
            found = read(call, role, term, digit_sum(number, digits, i))
            values[role] = Scalar(found, call.region(role).buffer.type)
        write(call, "dst", term, digit_sum(number, digits, 0), compute(call, values))
    barrier(call)
    return f"{turns_in_words(call, total)} x 1 element"


def barrier(call: CallContext) -> None:
    """Wait for the scope's threads: the block's barrier, a named one for each warpgroup, the warp's, or none."""
    b = call.b
    if call.scope == "cta":
        b.create("gpu.barrier")
    elif call.scope == "warp":
        nvgpu.warp_sync(b)
    elif call.scope == "warpgroup":
        ids = call.storage.ids
        number = ids.derived("warpgroup_barrier", add(floordiv(dim(0), WARPGROUP), const(1)), "barrier")
        id = arith.cast(b, "index_cast", number, I32)
        id.name = "barrier"
        nvgpu.named_barrier(b, id, WARPGROUP)


VARIANTS = [
    Variant(
        ELEMENTWISE,
        "smem",
        10,
        "all operands in shared memory, shared out over the scope's threads; a barrier follows",
        (SCOPE, ALL_ACTIVE, LAYOUTS, NO_OVERLAP, ROUNDING, all_in("shared", "every operand is in shared memory")),
        emit,
    )
]
