"""`reg`: a reduction of registers: each thread over its own, then over the lanes that share a row, by shuffles.

Lanes among which a reduced dim is spread all get the result: dst must be copied to them.  Reference: tile.md 8.
"""

from __future__ import annotations

import math

from warpsmith.ir.dialects import arith
from warpsmith.ir.types import I32
from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.copy_register import split_threads
from warpsmith.tile.dispatch.digits import Digit, refine
from warpsmith.tile.dispatch.elementwise_register import covers
from warpsmith.tile.dispatch.emission import Term, address, digit_sum, loop
from warpsmith.tile.dispatch.predicates import ALL_ACTIVE, LAYOUTS, NO_OVERLAP, SCOPE, all_in
from warpsmith.tile.dispatch.reduction import REDUCTIONS, Reduction, combine, finish, partial, reduction
from warpsmith.tile.dispatch.registry import Decline, Variant
from warpsmith.tile.frontend.values import Scalar
from warpsmith.tile.scopes import WARP
from warpsmith.tile.shuffles import shuffle

__all__ = ["VARIANTS"]


def _lanes(call: CallContext, found: Reduction) -> list[int]:
    """The xor distances that combine the reduced lanes.  Decline where dst doesn't lie on src's threads."""
    if call.scope != "thread":
        if not found.src.buffer.is_distributed:
            raise Decline(f"src {found.src.buffer.name} isn't spread over the {call.scope}'s threads")
        gaps = split_threads(call, "src", refine([found.src]), 0)[2].gaps()
        if gaps:
            raise Decline(f"src {found.src.buffer.name}: {gaps}")
    if found.dst.thread != found.src.thread:
        raise Decline(f"dst {found.dst.buffer.name} begins at another thread than src")
    for digit in found.kept:
        src, dst = digit.steps[:2]
        if (src.is_thread or dst.is_thread) and src != dst:
            raise Decline(f"dst {found.dst.buffer.name} is spread over threads otherwise than src")
    copies = [(extent, step.stride) for extent, step in found.dst.replicas if step.is_thread]
    masks: list[int] = []
    for digit in found.reduced:
        step = digit.steps[0]
        if not step.is_thread:
            continue
        stride, extent = step.stride, digit.extent
        if extent & (extent - 1) or stride & (stride - 1) or stride * extent > WARP:
            raise Decline(f"a reduced dim is spread over {extent} threads {stride} apart: shuffles stay in a warp")
        if not covers(copies, extent, stride):
            raise Decline(f"dst {found.dst.buffer.name} isn't copied to the lanes among which src is reduced")
        masks += [stride << i for i in range(extent.bit_length() - 1)]
    return masks


def emit(call: CallContext) -> str:
    """Build the loop over a thread's outputs; the partition in words."""
    found = reduction(call)
    masks = _lanes(call, found)
    kept: list[Digit] = [d for d in found.kept if not d.steps[0].is_thread]
    own: list[Digit] = [d for d in found.reduced if not d.steps[0].is_thread]
    b = call.b
    outputs = math.prod(d.extent for d in kept)
    with loop(b, outputs, unroll=True) as turn:
        term = Term(b)
        number = term.var(turn)
        total = partial(call, found, digit_sum(number, kept, 0), term, own)
        for mask in masks:
            moved = shuffle(b, "xor", total.value, arith.constant(b, mask, I32))
            total = combine(call, total, Scalar(moved, total.type))
        finish(call, found, total, address(term, found.dst, digit_sum(number, kept, 1)))
    return f"each thread: {outputs} x {math.prod(d.extent for d in own)} registers, {len(masks)} shuffles"


VARIANTS = [
    Variant(
        REDUCTIONS,
        "reg",
        10,
        "registers: each thread over its own, then lanes by shuffles",
        (SCOPE, ALL_ACTIVE, LAYOUTS, NO_OVERLAP, all_in("local", "both operands are in registers")),
        emit,
    )
]
