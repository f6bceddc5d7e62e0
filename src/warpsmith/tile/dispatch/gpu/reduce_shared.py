"""`smem`: a reduction of shared memory: each output by a few neighbouring lanes of a warp; a barrier follows.

    32 x 64, rows, 128 threads   ->   4 lanes an output: each adds up 16 elements, two shuffles add up the lanes

How many lanes is what takes the fewest turns, those that bank conflicts cost included.
"""

from __future__ import annotations

import math
from collections import Counter

from warpsmith.indexing import add, const, floordiv, minimum, mod, mul
from warpsmith.ir.core.types import I32
from warpsmith.ir.dialects import arith
from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.decline import Decline
from warpsmith.tile.dispatch.digits import distance_to
from warpsmith.tile.dispatch.emission import Term, conjunction, counted, digit_sum, loop, when
from warpsmith.tile.dispatch.gpu.elementwise_shared import barrier
from warpsmith.tile.dispatch.predicates import ALL_ACTIVE, LAYOUTS, NO_OVERLAP, SCOPE, all_in
from warpsmith.tile.dispatch.reduction import REDUCTIONS, Reduction, combine, finish, partial, reduction
from warpsmith.tile.dispatch.registry import Variant
from warpsmith.tile.frontend.values import Scalar
from warpsmith.tile.layout.banks import BANK_BYTES, BANKS
from warpsmith.tile.model.scopes import WARP
from warpsmith.tile.model.shuffles import shuffle

__all__ = ["VARIANTS"]


def emit(call: CallContext) -> str:
    """Build the loop over outputs and the barrier; the partition in words."""
    found = reduction(call)
    if found.slots:
        raise Decline(f"dst {found.dst.region} keeps part of a reduced dim, which only registers can")
    b, outputs = call.b, math.prod(d.extent for d in found.kept)
    length = math.prod(d.extent for d in found.reduced)
    lanes = _lanes(call, found, outputs, length)
    groups = call.threads // lanes
    turns = -(-outputs // groups)
    term = Term(b)
    lane = term.emit(mod(term.var(call.thread()), lanes), "part") if lanes > 1 else None
    with loop(b, turns) as turn:
        term = Term(b)
        number = mul(term.var(turn), groups)
        if call.scope != "thread":
            number = add(number, floordiv(term.var(call.thread()), lanes))
        whole = _rounded(call, outputs, lanes)
        there = counted(b, term.emit(number), outputs) if outputs % groups else None
        with when(b, there if whole == outputs else counted(b, term.emit(number), whole)):
            kept = number if whole == outputs else minimum(number, const(outputs - 1))
            total = partial(call, found, digit_sum(kept, found.kept, 0), term, found.reduced, lanes, lane)
            for mask in _masks(lanes):
                moved = shuffle(b, "xor", total.value, arith.constant(b, mask, I32))
                total = combine(call, total, Scalar(moved, total.type))
            writes = [] if lane is None else [arith.cmpi(b, "eq", lane, arith.index(b, 0))]
            if whole != outputs and there is not None:
                writes.append(there)
            with when(b, conjunction(b, writes)):
                finish(call, found, total, term, digit_sum(kept, found.kept, 1))
    barrier(call)
    if call.scope == "thread":
        return f"{turns} x 1 output of {length} elements"
    return f"{turns} x {groups} outputs of {length} elements, by {lanes} {'lane' if lanes == 1 else 'lanes'} each"


def _masks(lanes: int) -> list[int]:
    """The xor distances of a butterfly over so many lanes."""
    return [lanes >> i for i in range(1, lanes.bit_length())]


def _rounded(call: CallContext, outputs: int, lanes: int) -> int:
    """So many outputs that each warp either has one for all of its lanes, or for none: lanes shuffle with all others.

    Those after the last are the last one again, and aren't written.
    """
    if lanes == 1:
        return outputs
    groups = call.threads // lanes
    together = WARP // lanes if call.threads % WARP == 0 else groups
    return -(-outputs // together) * together


def _lanes(call: CallContext, found: Reduction, outputs: int, length: int) -> int:
    """How many lanes share an output: a power of two, at most a warp, with an element for each."""
    if call.scope == "thread":
        return 1
    most = min(WARP, length, call.threads)
    fitting = [1 << i for i in range(most.bit_length()) if call.threads % (1 << i) == 0]

    def turns(lanes: int) -> int:
        loads = -(-length // lanes) * _conflicts(found, lanes, call.threads)
        return -(-outputs // (call.threads // lanes)) * (loads + len(_masks(lanes)))

    return min(fitting, key=turns)


def _conflicts(found: Reduction, lanes: int, threads: int) -> int:
    """How often a warp's first load is served: the most words that it wants of one bank."""
    swizzle, bytes_ = found.src.swizzle, found.src.buffer.type.bytes
    words: set[int] = set()
    for thread in range(min(WARP, threads)):
        place = distance_to(thread // lanes, found.kept, 0) + distance_to(thread % lanes, found.reduced, 0)
        words.add((place if swizzle is None else swizzle.address(place)) * bytes_ // BANK_BYTES)
    return max(Counter(word % BANKS for word in words).values())


VARIANTS = [
    Variant(
        REDUCTIONS,
        "smem",
        10,
        "shared memory: an output by a few lanes of a warp, which shuffle; a barrier follows",
        (SCOPE, ALL_ACTIVE, LAYOUTS, NO_OVERLAP, all_in("shared", "both operands are in shared memory")),
        emit,
    )
]
