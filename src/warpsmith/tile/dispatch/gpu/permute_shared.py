"""`warp_xor_swizzle`: a tile of shared memory into another layout by one warp, in place too.

All lanes read their part into registers, wait for the warp, and write it.  Which lane moves which element is free, so
the order is chosen by counting turns of the banks for reads and writes.  Three are tried:

    along dst     neighbouring lanes take neighbours in the destination
    along src     neighbouring lanes take neighbours in the source
    xor           lane l takes neighbour l of the destination, and neighbour l ^ r of the source in turn r

A transpose has no conflicts in the third: in every turn the lanes are at different places of both.  A barrier of the
warp follows: the results are there for all lanes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.indexing import Expr, add, floordiv, mod, mul
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.core.types import memref
from warpsmith.ir.dialects import arith, memory, nvgpu, tile
from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.decline import Decline
from warpsmith.tile.dispatch.digits import Digit, Placement, distance_to, refine
from warpsmith.tile.dispatch.emission import Term, digit_sum, load, loop, store
from warpsmith.tile.dispatch.fragments import halves, take
from warpsmith.tile.dispatch.gpu.copy_shared import NOT_DISTRIBUTED
from warpsmith.tile.dispatch.moves import read, write
from warpsmith.tile.dispatch.predicates import ALL_ACTIVE, LAYOUTS, all_in
from warpsmith.tile.dispatch.registry import Predicate, Variant
from warpsmith.tile.dispatch.widths import elements, in_vectors, widest
from warpsmith.tile.layout.banks import BANK_BYTES, BANKS, turns_of
from warpsmith.tile.model.scopes import WARP

__all__ = ["VARIANTS"]

LANE_BITS = 5
MOST_BYTES = 512  # of a lane's registers: half of what it can have
_DST, _SRC = 0, 1
_COUNTED_TURNS = 32
"""How many turns of an order are counted; they come in all kinds among the first ones."""


@dataclass(frozen=True, slots=True)
class _Order:
    """Which lane takes which vector in which turn.  A lane's five bits are `lanes`; bit i of `partners` is lane bit i,
    xor bit i of the turn's number; the other bits of the turn are `rest`.  All outermost first."""

    name: str
    lanes: Sequence[Digit]
    partners: Sequence[Digit]
    rest: Sequence[Digit]

    @property
    def turns(self) -> int:
        return math.prod(d.extent for d in (*self.partners, *self.rest))

    def mixed(self) -> int:
        """How many turns there are before the xor repeats."""
        return 1 << len(self.partners)

    def distance(self, lane: int, turn: int, operand: int) -> int:
        """How far from the operand's beginning a lane is in a turn."""
        parts = (
            (lane, self.lanes),
            ((lane ^ turn) % self.mixed(), self.partners),
            (turn // self.mixed(), self.rest),
        )
        return sum(distance_to(number, digits, operand) for number, digits in parts)


def _orders(digits: Sequence[Digit], bytes: int) -> list[_Order]:
    """The orders to choose from, of vectors of so many bytes; none where 32 lanes can't share them out."""
    bits = halves(digits)
    found: list[_Order] = []
    if sum(d.extent == 2 for d in bits) < LANE_BITS:
        return found
    for name, operand in (("along dst", _DST), ("along src", _SRC)):
        rest = list(bits)
        lanes = take(rest, LANE_BITS, operand)
        found.append(_Order(name, lanes[::-1], (), rest))
    together = min(WARP, BANKS * BANK_BYTES // bytes).bit_length() - 1  # bits of the lanes that one turn serves
    near_dst, near_src = (take(list(bits), together, operand) for operand in (_DST, _SRC))
    partners = [d for d in near_src if d not in near_dst]
    lanes = [d for d in near_dst if d not in near_src] + [d for d in near_dst if d in near_src]
    rest = [d for d in bits if d not in near_dst and d not in partners]
    lanes += take(rest, LANE_BITS - together, _DST)
    if partners and len(lanes) == LANE_BITS:
        found.append(_Order("xor", lanes[::-1], partners[::-1], rest))
    return found


def _turns_of_banks(order: _Order, places: Sequence[Placement], width: int) -> float:
    """Turns of the banks that reads and writes of an order take; all as the first ones do.

    What is added to an address when the kernel runs is left out: it is the same in all lanes.
    """
    bytes_, counted = places[_DST].buffer.type.bytes, min(order.turns, _COUNTED_TURNS)
    total = 0
    for operand, place in enumerate(places):
        swizzle = place.swizzle
        for turn in range(counted):
            found = [place.offset + order.distance(lane, turn, operand) for lane in range(WARP)]
            starts = [(swizzle.address(each) if swizzle is not None else each) * bytes_ for each in found]
            total += turns_of(starts, width * bytes_)
    return total * order.turns / counted


def _warp(call: CallContext) -> str | None:
    return None if call.scope == "warp" else f"it is called at {call.scope} scope"


def _best(digits: Sequence[Digit], places: Sequence[Placement], widest_: int) -> tuple[int, _Order]:
    """The vector width and the order that take the fewest turns of the banks; of equal ones the widest."""
    candidates: list[tuple[int, _Order]] = []
    width, bytes_ = widest_, places[_DST].buffer.type.bytes
    while width:
        candidates += [(width, each) for each in _orders(in_vectors(digits, width), width * bytes_)]
        width //= 2
    if not candidates:
        raise Decline(f"{math.prod(d.extent for d in digits)} elements can't be shared out evenly among {WARP} lanes")
    return min(candidates, key=lambda each: _turns_of_banks(each[1], places, each[0]))


def _staging(call: CallContext, count: int) -> Value:
    """An array of a thread's own."""
    top = Builder.at_start(call.storage.function.body, call.op.location)
    return memory.alloca(top, memref((count,), call.region("dst").buffer.type.ir, tile.PRIVATE), 16, "staged")


def emit(call: CallContext) -> str:
    """Build reads, barrier and writes; the partition in words."""
    dst, src = call.place("dst"), call.place("src")
    places, bytes_ = (dst, src), dst.buffer.type.bytes
    digits = sorted(refine(places), key=lambda d: (-d.steps[_DST].stride, -d.steps[_SRC].stride))
    width, order = _best(digits, places, widest(digits, places, call.device))
    turns, b = order.turns, call.b
    if turns * width * bytes_ > MOST_BYTES:
        raise Decline(
            f"the tile takes {turns * width * bytes_} bytes of a lane's registers, more than {MOST_BYTES}: call it for "
            "a part at a time"
        )
    lane = call.thread()
    staged = _staging(call, turns * width)

    def distance(term: Term, turn: Value, operand: int) -> Expr:
        number, at_lane = term.var(turn), term.var(lane)
        total = digit_sum(at_lane, order.lanes, operand)
        if order.partners:
            crossed = arith.binary(b, "xori", lane, term.emit(mod(number, order.mixed())))
            if crossed.defining_op is not None:
                crossed.defining_op.attributes["xla.range"] = at.int_range(0, WARP - 1)
            total = add(total, digit_sum(mod(term.var(crossed), order.mixed()), order.partners, operand))
        return add(total, digit_sum(floordiv(number, order.mixed()), order.rest, operand))

    for operand in (_SRC, _DST):
        with loop(b, turns, unroll=True) as turn:
            term = Term(b)
            here = term.emit(mul(term.var(turn), width))
            if operand == _SRC:
                value = read(call, "src", term, distance(term, turn, operand), width)
                store(b, value, staged, here, width, bytes_)
            else:
                value = load(b, staged, here, width, bytes_)
                write(call, "dst", term, distance(term, turn, operand), value, width)
        nvgpu.warp_sync(b)
    return f"{turns} x 32 lanes x {elements(width)}, {order.name}"


VARIANTS = [
    Variant(
        ("permute_layout",),
        "warp_xor_swizzle",
        20,
        "shared memory through a warp's registers, in an order without bank conflicts; a barrier follows",
        (
            Predicate("the scope is a warp", _warp),
            ALL_ACTIVE,
            LAYOUTS,
            all_in("shared", "both sides are in shared memory"),
            NOT_DISTRIBUTED,
        ),
        emit,
    )
]
