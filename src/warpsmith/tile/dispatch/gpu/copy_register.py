"""`reg`: a copy between registers and memory.  The register layout says which thread moves what.

    R = S[(32, 8):(1@laneid, 1)], src row-major   ->   lane t: 8 elements from t * 8 on, in two moves of 16 bytes

A tile that not every thread has a part of is moved by those that have one; of several copies each is loaded, and the
first is stored.
"""

from __future__ import annotations

import math

from warpsmith.indexing import Expr, add, dim, mul, substitute
from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.decline import Decline
from warpsmith.tile.dispatch.digits import Digit, farthest, merged
from warpsmith.tile.dispatch.emission import Distance, Term, digit_sum, distance_of, loop, when
from warpsmith.tile.dispatch.moves import read, write
from warpsmith.tile.dispatch.predicates import ALL_ACTIVE, LAYOUTS, NO_OVERLAP, SCOPE, pair
from warpsmith.tile.dispatch.registry import Variant
from warpsmith.tile.dispatch.threads import Owners, owners
from warpsmith.tile.dispatch.widths import divisor, elements, in_vectors, widest

__all__ = ["VARIANTS", "split_threads"]


def split_threads(
    call: CallContext, role: str, digits: list[Digit], operand: int
) -> tuple[list[Digit], list[Digit], Owners]:
    """(the digits that a register tile spreads over threads, the others, who holds what)."""
    place = call.place(role, anyhow=True)
    spread = [d for d in digits if d.steps[operand].is_thread]
    private = [d for d in digits if not d.steps[operand].is_thread]
    if call.scope == "thread":
        return [], private, owners((), (), 0, 1, place.buffer.name)
    copies = [(extent, step.stride) for extent, step in place.replicas if step.is_thread]
    parts = [(d.extent, d.steps[operand].stride) for d in spread]
    return spread, private, owners(parts, copies, place.thread, call.threads, place.buffer.name)


def emit(call: CallContext) -> str:
    """Build the copy; the partition in words."""
    digits = call.refined(["dst", "src"])
    dst, src = call.place("dst", anyhow=True), call.place("src", anyhow=True)
    reg_role, mem = ("dst", 1) if dst.buffer.scope == "local" else ("src", 0)
    reg = 1 - mem
    register, memory_side = (dst, src) if mem == 1 else (src, dst)
    if call.scope != "thread" and not register.buffer.is_distributed:
        raise Decline(
            f"{register.buffer.name} isn't spread over threads: a copy at {call.scope} scope takes the "
            f"{call.scope}'s tile, "
            "not one thread's registers"
        )
    if memory_side.buffer.is_distributed:
        raise Decline(f"{memory_side.buffer.name} is in memory, but its layout spreads it over threads")
    spread, private, holders = split_threads(call, reg_role, digits, reg)
    private = merged(sorted(private, key=lambda d: (*farthest(d.steps[mem]), -d.steps[reg].stride)))
    width = widest(private, [dst, src], call.device)
    if width > 1 and not _threads_allow(spread, mem, width):
        width = next((w for w in (8, 4, 2) if w < width and _threads_allow(spread, mem, w)), 1)
    rest = in_vectors(private, width)
    turns = math.prod(d.extent for d in rest)
    b = call.b
    thread = None if call.scope == "thread" else call.thread()
    guard = holders.holds(b, thread, one_copy=mem == 0) if thread is not None else None
    with when(b, guard), loop(b, turns, unroll=True) as turn:
        term = Term(b)
        number = term.var(turn)
        in_memory = distance_of(number, rest, mem)
        if thread is not None:
            in_memory = _with_thread(in_memory, holders, spread, mem, term.var(thread))
        in_register = digit_sum(number, rest, reg)
        source, target = (in_memory, in_register) if mem == 1 else (in_register, in_memory)
        write(call, "dst", term, target, read(call, "src", term, source, width), width)
    who = "each thread" if guard is None else "each thread that holds a part"
    return f"{who}: {turns} x {elements(width)}"


def _with_thread(distance: Distance, holders: Owners, spread: list[Digit], mem: int, thread: Expr) -> Distance:
    """The distance in memory to a thread's part."""
    known, scaled = distance.known, list(distance.scaled)
    for number, d in enumerate(spread):
        step = d.steps[mem]
        count = mul(substitute(holders.digit(number), {dim(0): thread}), step.stride)
        if step.by is None:
            known = add(known, count)
        else:
            scaled.append((count, step.by))
    return Distance(known, tuple(scaled))


def _threads_allow(spread: list[Digit], mem: int, width: int) -> bool:
    return all(divisor(d.steps[mem]) % width == 0 for d in spread)


VARIANTS = [
    Variant(
        ("copy",),
        "reg",
        10,
        "registers <-> memory, each thread moves what its registers hold",
        (
            SCOPE,
            ALL_ACTIVE,
            LAYOUTS,
            NO_OVERLAP,
            pair(
                "one side is in registers, the other in memory", lambda dst, src: (dst == "local") != (src == "local")
            ),
        ),
        emit,
    )
]
