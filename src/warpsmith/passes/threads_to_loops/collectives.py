"""Ops by which the lanes of a warp exchange what they hold, a lane at a time.

In: an op, what each lane of the block brought (in slots), a thread.  Out: what the thread gets.  All lanes have written
their slots before the first one reads.  `ir/dialects/nvgpu.py` says which lane holds which element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from warpsmith.errors import LoweringError
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import F32, INDEX, MemRefType, bit_width
from warpsmith.ir.dialects import arith, gpu, memory
from warpsmith.ir.dialects import vector as vec
from warpsmith.passes.threads_to_loops.memories import Memories, Slot

__all__ = ["COLLECTIVES", "SHUFFLE", "Collective", "Lane", "copy_at_once", "lane_of"]

SHUFFLE = "gpu.shuffle"
_TILE, _ROW_LANES = 8, 4  # an 8 x 8 tile: lanes 4 r to 4 r + 3 hold its row r, two elements each
_MMA = (16, 8, 16)


@dataclass(frozen=True, slots=True)
class Lane:
    """One thread at a collective: where to build, its number, its own values, and every lane's by operand."""

    b: Builder
    thread: Value
    own: Callable[[Value], Value]
    slots: Sequence[Slot | None]
    memories: Memories

    def number(self) -> Value:
        """Its number in its warp."""
        return lane_of(self.b, self.thread, self.memories.warp_size)

    def other(self, lane: Value) -> Value:
        """The thread that is `lane` of the same warp."""
        first = arith.binary(self.b, "subi", self.thread, self.number())
        return arith.binary(self.b, "addi", first, lane)

    def read(self, operand: int, thread: Value) -> Value:
        """What a thread brought."""
        slot = self.slots[operand]
        assert slot is not None
        return self.memories.kept(self.b, slot, thread)

    def element(self, operand: int, i: int, thread: Value) -> Value:
        """Element i of the vector that a thread brought."""
        slot = self.slots[operand]
        assert slot is not None
        return self.memories.element(self.b, slot, i, thread)


@dataclass(frozen=True, slots=True)
class Collective:
    """`brought`: the operands that other lanes read.  `alone`: it also touches memory or writes what others read, so
    that all lanes are through with it before any goes on.  `emit` gives a lane's results."""

    brought: tuple[int, ...]
    alone: bool
    emit: Callable[[Operation, Lane], list[Value]]


def lane_of(b: Builder, thread: Value, warp_size: int) -> Value:
    """A thread's number in its warp."""
    return arith.binary(b, "remui", thread, arith.index(b, warp_size))


def _index(b: Builder, name: str, value: Value, constant: int) -> Value:
    return arith.binary(b, name, value, arith.index(b, constant))


# -------------------------------------------------------------------------------------------------------------- shuffle
def _shuffle(op: Operation, lane: Lane) -> list[Value]:
    """Lanes outside the warp, or the block, give a thread its own value."""
    b = lane.b
    kind = gpu.shuffle_mode(op)
    if kind not in _SOURCES:
        raise LoweringError(f"{op.name} of mode '{kind}' has no form on a CPU")
    offset = lane.own(op.operands[1])
    if offset.type is not INDEX:
        offset = arith.cast(b, "index_cast", offset, INDEX)
    source = _SOURCES[kind](b, lane.number(), offset)
    inside = arith.cmpi(b, "ult", source, arith.index(b, lane.memories.warp_size))
    other = lane.other(source)
    if lane.memories.threads % lane.memories.warp_size:
        within = arith.cmpi(b, "ult", other, arith.index(b, lane.memories.threads))
        inside = arith.binary(b, "andi", inside, within)
    return [lane.read(0, arith.select(b, inside, other, lane.thread)), inside]


_SOURCES: dict[str, Callable[[Builder, Value, Value], Value]] = {
    "xor": lambda b, lane, offset: arith.binary(b, "xori", lane, offset),
    "up": lambda b, lane, offset: arith.binary(b, "subi", lane, offset),
    "down": lambda b, lane, offset: arith.binary(b, "addi", lane, offset),
    "idx": lambda b, lane, offset: offset,
}


# ------------------------------------------------------------------------------------------------ 8 x 8 tiles, matrices
def _tile_place(op: Operation, lane: Lane, operand: int, tile: int, element: int) -> Value:
    """The index of element 0 or 1 of a lane's two of a tile; the tile's rows begin where lanes 8 k to 8 k + 7 say."""
    b, number = lane.b, lane.number()
    row = _index(b, "divui", number, _ROW_LANES)
    column = _index(b, "muli", _index(b, "remui", number, _ROW_LANES), 2)
    column = _index(b, "addi", column, element) if element else column
    if op.int_attr("transpose"):
        row, column = column, row
    giver = _index(b, "addi", row, _TILE * tile) if tile else row
    return arith.binary(b, "addi", lane.read(operand, lane.other(giver)), column)


def _ldmatrix(op: Operation, lane: Lane) -> list[Value]:
    base = lane.own(op.operands[0])
    elements = [
        memory.load(lane.b, base, _tile_place(op, lane, 1, tile, element))
        for tile in range(op.int_attr("num_tiles"))
        for element in range(2)
    ]
    return [vec.from_elements(lane.b, elements)]


def _stmatrix(op: Operation, lane: Lane) -> list[Value]:
    value, base = lane.own(op.operands[0]), lane.own(op.operands[1])
    for tile in range(op.int_attr("num_tiles")):
        for element in range(2):
            part = vec.extract(lane.b, value, 2 * tile + element)
            memory.store(lane.b, part, base, _tile_place(op, lane, 2, tile, element))
    return []


def _mma(op: Operation, lane: Lane) -> list[Value]:
    """Each lane's four sums of 16 products, in f32, in the order of k."""
    shape = op.attributes["shape"]
    if not isinstance(shape, at.DenseArrayAttr) or tuple(shape.values) != _MMA or len(op.operands) != 3:
        raise LoweringError(f"{op.name} of another shape than {_MMA} has no form on a CPU")
    b, number = lane.b, lane.number()
    group, pair = _index(b, "divui", number, _ROW_LANES), _index(b, "remui", number, _ROW_LANES)
    row = _index(b, "muli", group, _ROW_LANES)
    columns = [_index(b, "muli", pair, 2 * _ROW_LANES)]
    columns.append(_index(b, "addi", columns[0], _ROW_LANES))
    sums = [vec.extract(b, lane.own(op.operands[2]), i) for i in range(4)]
    for k in range(_MMA[2]):
        half, quad, low = k // 8, k % 8 // 2, k % 2  # which registers and which lane of four hold column k
        of_row = lane.other(_index(b, "addi", row, quad))
        a = [_wide(b, lane.element(0, 4 * half + 2 * lower + low, of_row)) for lower in range(2)]
        for column in range(2):
            of_column = lane.other(_index(b, "addi", columns[column], quad))
            factor = _wide(b, lane.element(1, 2 * half + low, of_column))
            for lower in range(2):
                place = 2 * lower + column
                sums[place] = arith.binary(b, "addf", sums[place], arith.binary(b, "mulf", a[lower], factor))
    return [vec.from_elements(b, sums)]


def _wide(b: Builder, value: Value) -> Value:
    return value if value.type is F32 else arith.cast(b, "extf", value, F32)


COLLECTIVES: dict[str, Collective] = {
    SHUFFLE: Collective((0,), False, _shuffle),
    "nvgpu.ldmatrix": Collective((1,), True, _ldmatrix),
    "nvgpu.stmatrix": Collective((2,), True, _stmatrix),
    "nvgpu.mma.sync": Collective((0, 1), False, _mma),
}


# --------------------------------------------------------------------------------------------------- copies in flight
def copy_at_once(op: Operation) -> None:
    """A copy that may be awaited later is done where it starts."""
    dst, dst_index, src, src_index = op.operands[:4]
    b = Builder.before(op)
    assert isinstance(dst.type, MemRefType)
    count = op.int_attr("bytes") * 8 // bit_width(dst.type.element)
    for i in range(count):
        at_source, at_target = (_index(b, "addi", place, i) if i else place for place in (src_index, dst_index))
        memory.store(b, memory.load(b, src, at_source), dst, at_target)
    op.erase()
