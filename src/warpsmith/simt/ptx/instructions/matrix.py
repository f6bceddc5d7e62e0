"""ldmatrix, stmatrix and mma.sync, to steps: a warp's tiles of 8 x 8 in shared memory, products of its fragments."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np

from warpsmith.arrays import Array
from warpsmith.simt.core.matrix import (
    FLOPS,
    ROW,
    by_thread,
    by_warp,
    gather_tiles,
    multiply,
    providers,
    scatter_tiles,
)
from warpsmith.simt.ptx.instructions.access import space_of, window_of
from warpsmith.simt.ptx.machine import Frame, Mask, Step
from warpsmith.simt.ptx.memory import MemoryFault, Place
from warpsmith.simt.ptx.operands import Context, Fetch
from warpsmith.simt.ptx.text.module import Instruction, Operand, Vector

__all__ = ["MATRIX"]

_TILES = {"x1": 1, "x2": 2, "x4": 4}
_FACTORS = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}


def _whole_warps(frame: Frame, instruction: Instruction, mask: Mask) -> None:
    """All 32 lanes of a warp must take part, or none."""
    watch = frame.batch.run.watch
    short = None if watch is None else watch.short_warp(mask)
    if short is not None:
        cause = f"{instruction.opcode} is run by a part of a warp; it takes all 32 lanes"
        frame.batch.find("matrix-divergence", instruction, cause, *short)


def _elements(operand: Operand) -> Sequence[Operand]:
    return operand.elements if isinstance(operand, Vector) else (operand,)


def _tiles(context: Context) -> int:
    """How many tiles; only those of 8 x 8 elements of 16 bits are known."""
    form = context.form
    tiles = next((count for flag, count in _TILES.items() if flag in form.flags), 0)
    if not tiles or form.type != "b16" or "m8n8" not in form.flags:
        context.unknown()
    return tiles


def _rows(context: Context, operand: Operand, tiles: int) -> Callable[[Frame, Mask], tuple[Place, Array]]:
    """Finds the rows of tiles: where they are, of the lanes that give a place, and the lanes.  CheckFailed for others
    than whole aligned rows of shared memory.
    """
    named, address = context.address(operand)
    space = window_of(named or space_of(context.form))
    instruction = context.instruction

    def find(frame: Frame, mask: Mask) -> tuple[Place, Array]:
        batch = frame.batch
        _whole_warps(frame, instruction, mask)
        giving = providers(batch.warps.lane, tiles)
        giving = giving if mask is None else giving & mask
        where = np.broadcast_to(address(frame), (batch.threads,))
        try:
            places = batch.memory.places(space, where, ROW, giving)
        except MemoryFault as fault:
            batch.fault(instruction, fault)
        if len(places) != 1 or places[0].region is not batch.memory.shared:
            batch.fail(instruction, f"{instruction.opcode} is of shared memory", int(giving.argmax()))
        return places[0], np.flatnonzero(giving)

    return find


def _load(context: Context) -> Step:
    tiles, instruction = _tiles(context), context.instruction
    targets = [context.register(each).slot for each in _elements(context.operands[0])]
    transpose = "trans" in context.form.flags
    if len(targets) != tiles:
        context.fail(f"'{instruction.opcode}' loads {tiles} registers, {len(targets)} are named")
    find = _rows(context, context.operands[1], tiles)

    def step(frame: Frame, mask: Mask) -> None:
        batch = frame.batch
        place, lanes = find(frame, mask)
        batch.saw(instruction, "load", place, ROW, mask, whole=True)
        rows = np.zeros((batch.threads, ROW), np.uint8)
        rows[lanes] = place.region.data[(place.positions * ROW)[:, None] + np.arange(ROW)]
        held = gather_tiles(by_warp(rows.view(np.uint16), batch.per_block), tiles, transpose=transpose)
        words = by_thread(held, batch.per_block).view(np.uint32)
        for i, slot in enumerate(targets):
            frame.write(slot, np.ascontiguousarray(words[:, i]), mask)

    return step


def _words(frame: Frame, fetches: Sequence[Fetch]) -> Array:
    """Registers of 32 bits, a row a thread."""
    threads = frame.batch.threads
    return np.stack([np.broadcast_to(fetch(frame).view(np.uint32), (threads,)) for fetch in fetches], axis=1)


def _store(context: Context) -> Step:
    tiles, instruction = _tiles(context), context.instruction
    sources = [context.raw(each, "b32") for each in _elements(context.operands[1])]
    transpose = "trans" in context.form.flags
    if len(sources) != tiles:
        context.fail(f"'{instruction.opcode}' stores {tiles} registers, {len(sources)} are named")
    find = _rows(context, context.operands[0], tiles)

    def step(frame: Frame, mask: Mask) -> None:
        batch = frame.batch
        place, lanes = find(frame, mask)
        held = by_warp(_words(frame, sources).view(np.uint16), batch.per_block)
        rows = by_thread(scatter_tiles(held, tiles, transpose=transpose), batch.per_block)[lanes].view(np.uint8)
        batch.saw(instruction, "store", place, ROW, mask, lambda: rows, whole=True)
        place.region.data[(place.positions * ROW)[:, None] + np.arange(ROW)] = rows

    return step


def _multiply(context: Context) -> Step:
    """mma.sync.aligned.m16n8k16.row.col.f32.{f16, bf16}: d = a b + c."""
    form, instruction = context.form, context.instruction
    types = form.types
    if not {"sync", "m16n8k16", "row", "col"} <= form.flags or len(types) != 4 or types[1] not in _FACTORS:
        context.unknown()
    if types != ("f32", types[1], types[1], "f32"):
        context.unknown()
    d, *given = (_elements(operand) for operand in context.operands)
    if [len(d), *map(len, given)] != [4, 4, 2, 4]:
        context.fail(f"'{instruction.opcode}' takes 4, 4, 2 and 4 registers")
    targets = [context.register(each).slot for each in d]
    a, b, c = ([context.raw(each, "b32") for each in part] for part in given)
    factor = _FACTORS[types[1]]

    def step(frame: Frame, mask: Mask) -> None:
        batch, per_block = frame.batch, frame.batch.per_block
        _whole_warps(frame, instruction, mask)
        if batch.run.watch is not None:
            batch.run.watch.multiplied(mask, FLOPS)
        left, right = (by_warp(_words(frame, part).view(factor), per_block) for part in (a, b))
        product = multiply(left, right, by_warp(_words(frame, c).view(np.float32), per_block))
        words = by_thread(product, per_block).view(np.uint32)
        for i, slot in enumerate(targets):
            frame.write(slot, np.ascontiguousarray(words[:, i]), mask)

    return step


MATRIX: dict[str, Callable[[Context], Step]] = {"ldmatrix": _load, "stmatrix": _store, "mma": _multiply}
"""How instructions on tiles and fragments become steps."""
