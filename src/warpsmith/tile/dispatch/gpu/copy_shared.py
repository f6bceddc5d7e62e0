"""`gmem_smem`: a copy between global and shared memory (or within one of them), shared out over the scope's threads.

    turn f, thread t:  vector number f * threads + t  of the region, in the order in which global memory is contiguous

Neither side says which thread moves what, so neighbours in global memory go to neighbouring threads, in the widest
vectors that both layouts allow.
"""

from __future__ import annotations

import math

from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.digits import farthest, merged
from warpsmith.tile.dispatch.emission import distance_of
from warpsmith.tile.dispatch.moves import read, write
from warpsmith.tile.dispatch.predicates import ALL_ACTIVE, LAYOUTS, NO_OVERLAP, SCOPE, pair
from warpsmith.tile.dispatch.registry import Predicate, Variant
from warpsmith.tile.dispatch.widths import elements, in_vectors, widest
from warpsmith.tile.dispatch.work_sharing import shared_out, turns_in_words

__all__ = ["NOT_DISTRIBUTED", "VARIANTS"]


def _not_distributed(call: CallContext) -> str | None:
    for role in ("dst", "src"):
        buffer = call.region(role).buffer
        if buffer.is_distributed:
            return f"{role} {buffer.name} is spread over threads"
    return None


NOT_DISTRIBUTED = Predicate("neither side is spread over threads", _not_distributed)


def emit(call: CallContext) -> str:
    """Build the copy; the partition in words."""
    digits = call.refined(["dst", "src"])
    dst, src = call.place("dst", anyhow=True), call.place("src", anyhow=True)
    guide = 1 if src.buffer.scope == "global" else 0
    digits = merged(sorted(digits, key=lambda d: (*farthest(d.steps[guide]), -d.extent)))
    width = widest(digits, [dst, src], call.device)
    rest = in_vectors(digits, width)
    vectors = math.prod(d.extent for d in rest)
    with shared_out(call, vectors) as (term, number):
        value = read(call, "src", term, distance_of(number, rest, 1), width)
        write(call, "dst", term, distance_of(number, rest, 0), value, width)
    return f"{turns_in_words(call, vectors)} x {elements(width)}"


VARIANTS = [
    Variant(
        ("copy",),
        "gmem_smem",
        10,
        "global <-> shared, vectors shared out over the scope's threads",
        (
            SCOPE,
            ALL_ACTIVE,
            LAYOUTS,
            NO_OVERLAP,
            pair("neither side is in registers", lambda dst, src: "local" not in (dst, src)),
            NOT_DISTRIBUTED,
        ),
        emit,
    )
]
