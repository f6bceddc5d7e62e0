"""`reg`: an elementwise primitive whose operands are all in registers: each thread does its own share.

    dst S[(32, 8):(1@laneid, 1)]   ->   for f in 0..8:  R[f] = sqrt(R[f])

The destination's layout says who holds what; every source must lie on the same threads, or be there in copies.
"""

from __future__ import annotations

import math

from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.decline import Decline
from warpsmith.tile.dispatch.digits import Digit, Placement, merged, refine
from warpsmith.tile.dispatch.elementwise import ELEMENTWISE, compute, source_roles
from warpsmith.tile.dispatch.emission import Term, digit_sum, loop
from warpsmith.tile.dispatch.gpu.copy_register import split_threads
from warpsmith.tile.dispatch.moves import read, write
from warpsmith.tile.dispatch.predicates import ALL_ACTIVE, LAYOUTS, NO_OVERLAP, ROUNDING, SCOPE, all_in
from warpsmith.tile.dispatch.registry import Predicate, Variant
from warpsmith.tile.frontend.scalars import Operand
from warpsmith.tile.frontend.values import Scalar

__all__ = ["VARIANTS", "covers"]


def _anchor(call: CallContext) -> str | None:
    """The destination's threads are all of the scope's, each with its own part."""
    if call.scope == "thread":
        return None
    dst = call.region("dst").buffer
    if not dst.is_distributed:
        whole = f"pass the {call.scope}-level tile, not its .local()"
        return f"{dst.name} isn't spread over threads (a thread-local view?): {whole}"
    try:
        placement = call.place("dst")
        digits = refine([placement])
        _, _, holders = split_threads(call, "dst", digits, 0)
    except Decline as reason:
        return str(reason)
    gaps = holders.gaps()
    return f"{dst.name}: {gaps}" if gaps else None


ANCHOR = Predicate("dst is spread over all threads of the scope", _anchor)


def emit(call: CallContext) -> str:
    """Build the loop over a thread's registers; the partition in words."""
    roles = ["dst", *source_roles(call)]
    placements = [call.place(role) for role in roles]
    digits = refine(placements)
    private: list[Digit] = []
    for digit in digits:
        if not digit.steps[0].is_thread:
            private.append(digit)
        for number, role in enumerate(roles):
            _check_thread(digit, number, role, placements)
    for role, placement in zip(roles[1:], placements[1:], strict=True):
        _check_copies(role, placement, placements[0])
    private = merged(sorted(private, key=lambda d: -d.steps[0].stride))
    turns = math.prod(d.extent for d in private)
    b = call.b
    with loop(b, turns, unroll=True) as turn:
        term = Term(b)
        number = term.var(turn)
        values: dict[str, Operand] = {}
        for i, role in enumerate(roles[1:], start=1):
            found = read(call, role, term, digit_sum(number, private, i))
            values[role] = Scalar(found, placements[i].buffer.type)
        write(call, "dst", term, digit_sum(number, private, 0), compute(call, values))
    count = "register" if turns == 1 else f"{turns} registers"
    return f"each thread: its {count} of {placements[0].buffer.name}"


def _check_thread(digit: Digit, number: int, role: str, placements: list[Placement]) -> None:
    """A source lies where the destination does, or is copied there."""
    anchor, own = digit.steps[0], digit.steps[number]
    if not anchor.is_thread and not own.is_thread:
        return
    if anchor == own:
        return
    name = placements[number].buffer.name
    if anchor.is_thread and own.stride == 0 and not own.is_thread:
        copies = [(extent, step.stride) for extent, step in placements[number].replicas if step.is_thread]
        if covers(copies, digit.extent, anchor.stride):
            return
        raise Decline(f"{role} {name} isn't copied to the threads among which dst is spread")
    raise Decline(f"{role} {name} is spread over threads otherwise than dst {placements[0].buffer.name}")


def _check_copies(role: str, placement: Placement, anchor: Placement) -> None:
    """A source is there on the threads that hold the destination's copies, and begins at its thread."""
    name = placement.buffer.name
    own = [(extent, step.stride) for extent, step in placement.replicas if step.is_thread]
    for extent, step in anchor.replicas:
        if step.is_thread and extent > 1 and not covers(own, extent, step.stride):
            raise Decline(f"{role} {name} isn't copied to the threads that hold copies of dst {anchor.buffer.name}")
    if placement.thread != anchor.thread:
        raise Decline(f"{role} {name} begins at thread {placement.thread}, dst {anchor.buffer.name} at {anchor.thread}")


def covers(copies: list[tuple[int, int]], extent: int, stride: int) -> bool:
    """Whether copies lie on every thread that a digit steps to."""
    chain = sorted(copies, key=lambda each: each[1])
    reach: dict[int, int] = {}
    for size, step in chain:
        start = next((s for s, e in reach.items() if s * e == step), step)
        reach[start] = reach.get(start, 1) * size
    return any(stride % start == 0 and total % ((stride // start) * extent) == 0 for start, total in reach.items())


VARIANTS = [
    Variant(
        ELEMENTWISE,
        "reg",
        10,
        "all operands in registers: each thread does its own",
        (SCOPE, ALL_ACTIVE, LAYOUTS, NO_OVERLAP, ROUNDING, all_in("local", "every operand is in registers"), ANCHOR),
        emit,
    ),
    Variant(
        ("copy",),
        "reg_reg",
        10,
        "registers to registers of the same threads",
        (SCOPE, ALL_ACTIVE, LAYOUTS, NO_OVERLAP, all_in("local", "both sides are in registers"), ANCHOR),
        emit,
    ),
]
