"""`gmem_smem`: a copy between global and shared memory (or within one of them), shared out over the scope's threads.

    turn f, thread t:  vector number f * threads + t  of the region, in the order in which global memory is contiguous

Neither side says which thread moves what, so neighbours in global memory go to neighbouring threads, in the widest
vectors that both layouts allow.  Reference: tile.md 7.2.
"""

from __future__ import annotations

import math

from warpsmith.indexing import add, mul
from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.digits import Digit, merged, refine
from warpsmith.tile.dispatch.emission import Term, address, counted, digit_sum, load, loop, store, when
from warpsmith.tile.dispatch.predicates import ALL_ACTIVE, LAYOUTS, NO_OVERLAP, SCOPE, pair
from warpsmith.tile.dispatch.registry import Predicate, Variant
from warpsmith.tile.dispatch.widths import carve, widest

__all__ = ["VARIANTS"]


def _not_distributed(call: CallContext) -> str | None:
    for role in ("dst", "src"):
        buffer = call.region(role).buffer
        if buffer.is_distributed:
            return f"{role} {buffer.name} is spread over threads"
    return None


def emit(call: CallContext) -> str:
    """Build the copy; the partition in words."""
    dst, src = call.place("dst"), call.place("src")
    guide = 1 if src.buffer.scope == "global" else 0
    digits = merged(sorted(refine([dst, src]), key=lambda d: (-d.steps[guide].stride, -d.extent)))
    width = widest(digits, [dst, src], call.device)
    rest = carve(digits, width)
    vectors = math.prod(d.extent for d in rest)
    turns = -(-vectors // call.threads)
    b, bytes_ = call.b, dst.buffer.type.bytes
    with loop(b, turns) as turn:
        term = Term(b)
        number = mul(term.var(turn), call.threads)
        if call.scope != "thread":
            number = add(number, term.var(call.thread()))
        guard = None
        if vectors % call.threads:
            guard = counted(b, term.emit(number), vectors)
        with when(b, guard):
            source = address(term, src, digit_sum(number, rest, 1))
            target = address(term, dst, digit_sum(number, rest, 0))
            value = load(b, call.memory("src"), source, width, bytes_)
            store(b, value, call.memory("dst"), target, width, bytes_)
    return words(call, turns, width, rest)


def words(call: CallContext, turns: int, width: int, rest: list[Digit]) -> str:
    """The partition: turns x threads x elements."""
    threads = "this thread" if call.scope == "thread" else f"{call.threads} threads"
    return f"{turns} x {threads} x {width} elements"


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
            Predicate("neither side is spread over threads", _not_distributed),
        ),
        emit,
    )
]
