"""`ldgsts`: a copy from global to shared memory that goes on by itself (cp.async), 4, 8 or 16 bytes at a time.

Shared out over the scope's threads as `gmem_smem` does.  Nothing waits: the author closes a group of copies with
T.ptx.cp_async.commit_group(), waits for it with T.ptx.cp_async.wait_group(n), and then for the other threads with a
barrier.  Reference: PTX ISA, "cp.async".
"""

from __future__ import annotations

import math

from warpsmith.ir.dialects import nvgpu
from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.decline import Decline
from warpsmith.tile.dispatch.digits import farthest, merged, refine
from warpsmith.tile.dispatch.emission import address, distance_of
from warpsmith.tile.dispatch.gpu.copy_shared import NOT_DISTRIBUTED
from warpsmith.tile.dispatch.predicates import ALL_ACTIVE, LAYOUTS, NO_OVERLAP, SAME_ELEMENTS, SCOPE, capability, pair
from warpsmith.tile.dispatch.registry import Predicate, Variant
from warpsmith.tile.dispatch.widths import elements, in_vectors, widest
from warpsmith.tile.dispatch.work_sharing import shared_out, turns_in_words

__all__ = ["VARIANTS"]

_LEAST = 4  # bytes


def _no_mbarrier(call: CallContext) -> str | None:
    if "mbar" not in call.config:
        return None
    return "the call names mbar; cp.async is awaited by T.ptx.cp_async.wait_group(n)"


def emit(call: CallContext) -> str:
    """Build the copy; the partition in words."""
    dst, src = call.place("dst"), call.place("src")
    digits = merged(sorted(refine([dst, src]), key=lambda d: (*farthest(d.steps[1]), -d.extent)))
    width, bytes_ = widest(digits, [dst, src], call.device), dst.buffer.type.bytes
    if width * bytes_ < _LEAST:
        raise Decline(
            f"cp.async moves 4, 8 or 16 bytes at a time, but layouts, beginnings and alignment of {src.region} and "
            f"{dst.region} leave {width * bytes_}"
        )
    rest = in_vectors(digits, width)
    vectors = math.prod(d.extent for d in rest)
    with shared_out(call, vectors) as (term, number):
        source = address(term, src, distance_of(number, rest, 1))
        target = address(term, dst, distance_of(number, rest, 0))
        nvgpu.async_copy(call.b, call.memory("dst"), target, call.memory("src"), source, width * bytes_)
    return f"{turns_in_words(call, vectors)} x {elements(width)}, not awaited"


VARIANTS = [
    Variant(
        ("copy_async",),
        "ldgsts",
        20,
        "global -> shared by cp.async, vectors shared out over the scope's threads; the author commits and waits",
        (
            SCOPE,
            ALL_ACTIVE,
            LAYOUTS,
            NO_OVERLAP,
            pair("from global to shared memory", lambda dst, src: (dst, src) == ("shared", "global")),
            NOT_DISTRIBUTED,
            SAME_ELEMENTS,
            Predicate("no mbarrier is named", _no_mbarrier),
            capability("nvgpu.device_async_copy", "cp.async"),
        ),
        emit,
    )
]
