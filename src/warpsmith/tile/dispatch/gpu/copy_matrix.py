"""`ldstmatrix`: a copy between shared memory and registers by ldmatrix and stmatrix: 8 x 8 tiles of 16-bit elements.

A lane of a tile holds two neighbours of one row:    row = lane / 4, columns 2 (lane mod 4) and the one after

    shared row-major, R = S[(2, 8, 2, 4, 2):(2, 4@laneid, 4, 1@laneid, 1)] over 16 x 16   ->   one ldmatrix.x4
    shared column-major                                                                   ->   one ldmatrix.x4.trans

Eight elements of a row (of a column, with .trans) must lie together, at multiples of 16 bytes, which a swizzle of such
chunks keeps.  Where the rows are is free, for each lane gives the place of one; so is which registers a lane holds them
in.  Up to four tiles go at once.  Elements of other sizes are left to `reg`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.indexing import Expr, add, const, dim, floordiv, mod, mul, substitute
from warpsmith.ir.dialects import nvgpu
from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.decline import Decline
from warpsmith.tile.dispatch.digits import Digit, Placement, merged, refine
from warpsmith.tile.dispatch.emission import Term, address, digit_sum, loop, when
from warpsmith.tile.dispatch.fragments import (
    WHOLE_WARPS,
    halves,
    read_registers,
    take,
    write_registers,
)
from warpsmith.tile.dispatch.gpu.copy_register import split_threads
from warpsmith.tile.dispatch.predicates import ALL_ACTIVE, LAYOUTS, NO_OVERLAP, SAME_ELEMENTS, SCOPE, lacks, pair
from warpsmith.tile.dispatch.registry import Predicate, Variant
from warpsmith.tile.dispatch.widths import base_alignment
from warpsmith.tile.model.scopes import WARP

__all__ = ["VARIANTS"]

ROW = 8  # elements: 16 bytes
_REG, _MEM = 0, 1  # the operands of a digit here


def _stores(call: CallContext) -> bool:
    return call.region("src").buffer.scope == "local"


def _instruction(call: CallContext) -> str:
    return "stmatrix" if _stores(call) else "ldmatrix"


def _capability(call: CallContext) -> str | None:
    return lacks(call, f"nvgpu.{_instruction(call)}", _instruction(call))


def _sixteen_bits(call: CallContext) -> str | None:
    type = call.region("dst").buffer.type
    return None if type.bits == 16 else f"{type} has {type.bits} bits"


@dataclass(frozen=True, slots=True)
class _Tiles:
    """The digits of a copy by tiles: `rows` of 8 bits of a row's number, `pair` the two neighbours of a lane, `tiles`
    those of a tile's number among those moved at once (all outermost first), `rest` the turns."""

    transposed: bool
    rows: Sequence[Digit]
    pair: Digit
    tiles: Sequence[Digit]
    rest: Sequence[Digit]

    @property
    def count(self) -> int:
        return 1 << len(self.tiles)

    def offsets(self) -> list[int]:
        """Where a lane's elements are in its registers, tile by tile."""
        numbered = [*self.tiles, self.pair]
        return [
            sum((number >> bit & 1) * d.steps[_REG].stride for bit, d in enumerate(reversed(numbered)))
            for number in range(2 * self.count)
        ]


def _tiles(name: str, lanes: dict[int, Digit], private: Sequence[Digit]) -> _Tiles:
    """Match bits of lanes and registers to tiles.  Decline where eight elements of a row don't lie together."""

    def strides(numbers: Sequence[int]) -> list[int]:
        return [lanes[number].steps[_MEM].stride for number in numbers]

    left = [d for d in private if d.extent == 2]
    if strides((1, 2)) == [2, 4]:
        pairs = [d for d in left if d.steps[_MEM].stride == 1]
        rows, transposed = [lanes[16], lanes[8], lanes[4]], False
    elif strides((4, 8, 16)) == [1, 2, 4]:
        pairs = sorted(left, key=lambda d: d.steps[_REG].stride)
        rows, transposed = [lanes[2], lanes[1]], True
    else:
        raise Decline(
            f"lanes of {name} don't hold 8 x 8 tiles of its memory: neighbours there are lanes "
            f"{_by_place(lanes)} elements apart (1 and 2 must be 2 and 4 apart, or 4, 8 and 16 be 1, 2 and 4)"
        )
    if not pairs:
        raise Decline(f"a lane of {name} holds no two neighbours of a row")
    pair = pairs[0]
    if transposed:
        rows = [*rows, pair]
    rest = list(private)
    rest.remove(pair)
    tiles = list(reversed(take(rest, 2, _REG)))
    for digit in (*rows, *tiles, *rest):
        if digit.steps[_MEM].stride % ROW:
            raise Decline(f"rows of {name} begin {digit.steps[_MEM].stride} elements apart, no multiple of {ROW}")
    rest.sort(key=lambda d: -d.steps[_REG].stride)
    return _Tiles(transposed, rows, pair, tiles, merged(rest))


def _by_place(lanes: dict[int, Digit]) -> str:
    return ", ".join(f"{number}: {lanes[number].steps[_MEM].stride}" for number in sorted(lanes))


def _check_places(memory: Placement, warps: Sequence[Digit]) -> None:
    """Decline where a row may begin elsewhere than at a multiple of 16 bytes, or be torn by a swizzle."""
    name = memory.buffer.name
    if any(d.steps[_MEM].stride % ROW for d in warps) or memory.offset_divisor() % ROW:
        raise Decline(f"a row of {name} may begin at another place than a multiple of {ROW} elements")
    if base_alignment(memory.buffer) % 16:
        raise Decline(f"{name} is aligned to {base_alignment(memory.buffer)} bytes, not to 16")
    swizzle = memory.swizzle
    if swizzle is not None and swizzle.swizzle_len and 1 << swizzle.per_element < ROW:
        raise Decline(f"the swizzle of {name} tears rows of {ROW} elements: it moves {1 << swizzle.per_element}")


def emit(call: CallContext) -> str:
    """Build the copy; the partition in words."""
    stores = _stores(call)
    reg_role, mem_role = ("src", "dst") if stores else ("dst", "src")
    register, memory = call.place(reg_role), call.place(mem_role)
    if not register.buffer.is_distributed or memory.buffer.is_distributed:
        raise Decline("one side is spread over threads, in registers, and the other isn't")
    bits = halves(refine([register, memory]))
    spread, private, holders = split_threads(call, reg_role, bits, _REG)
    numbered = {d.steps[_REG].stride: d for d in spread if d.steps[_REG].stride < WARP}
    missing = [lane for lane in (1, 2, 4, 8, 16) if numbered.get(lane) is None or numbered[lane].extent != 2]
    if missing or register.thread % WARP:
        raise Decline(f"{register.buffer.name} isn't spread over all lanes of its warps, each with its own elements")
    found = _tiles(register.buffer.name, numbered, private)
    warps = [d for d in spread if d.steps[_REG].stride >= WARP]
    _check_places(memory, warps)
    b, turns = call.b, math.prod(d.extent for d in found.rest)
    lane, thread = call.storage.ids.in_scope("warp"), call.thread()
    with when(b, holders.holds(b, thread, one_copy=stores)), loop(b, turns, unroll=True) as turn:
        term = Term(b)
        number, at_lane, at_thread = term.var(turn), term.var(lane), term.var(thread)
        place: Expr = const(0)
        for index, digit in enumerate(spread):
            if digit in warps:
                value = substitute(holders.digit(index), {dim(0): at_thread})
                place = add(place, mul(value, digit.steps[_MEM].stride))
        place = add(place, digit_sum(mod(at_lane, ROW), found.rows, _MEM))
        place = add(place, digit_sum(mod(floordiv(at_lane, ROW), found.count), found.tiles, _MEM))
        row = address(term, memory, add(place, digit_sum(number, found.rest, _MEM)), hint="row")
        start = digit_sum(number, found.rest, _REG)
        steps = [d.steps[_REG].stride for d in found.rest]
        if stores:
            value = read_registers(call, reg_role, term, start, found.offsets(), steps)
            nvgpu.stmatrix(b, value, call.memory(mem_role), row, found.count, transpose=found.transposed)
        else:
            element = memory.buffer.type.ir
            value = nvgpu.ldmatrix(b, call.memory(mem_role), row, element, found.count, transpose=found.transposed)
            write_registers(call, value, reg_role, term, start, found.offsets(), steps)
    name = f"{_instruction(call)}.x{found.count}{'.trans' if found.transposed else ''}"
    return f"{turns} x {name}"


VARIANTS = [
    Variant(
        ("copy",),
        "ldstmatrix",
        20,
        "shared <-> registers, 8 x 8 tiles of 16-bit elements, up to four at once",
        (
            SCOPE,
            WHOLE_WARPS,
            ALL_ACTIVE,
            LAYOUTS,
            NO_OVERLAP,
            pair(
                "one side is in registers, the other in shared memory",
                lambda dst, src: {dst, src} == {"local", "shared"},
            ),
            Predicate("elements have 16 bits", _sixteen_bits),
            SAME_ELEMENTS,
            Predicate("compute capability 7.5, or 9.0 to store", _capability),
        ),
        emit,
    )
]
