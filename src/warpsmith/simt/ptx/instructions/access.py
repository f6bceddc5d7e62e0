"""Loads, stores, atomics and address conversions to steps of the machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from warpsmith.arrays import Array
from warpsmith.simt.core.reach import Reach
from warpsmith.simt.ptx.instructions.atomics import Atomic, atomic_of
from warpsmith.simt.ptx.machine import Frame, Mask, Step
from warpsmith.simt.ptx.memory import LOCAL_WINDOW, SHARED_WINDOW, MemoryFault, Place
from warpsmith.simt.ptx.operands import Context, Fetch
from warpsmith.simt.ptx.spec import Form
from warpsmith.simt.ptx.text.module import TYPE_BITS, Operand, Register, Sink, Symbol, Vector
from warpsmith.simt.ptx.text.module import Address as AddressOperand
from warpsmith.simt.ptx.uses import WORD, parts_of
from warpsmith.simt.ptx.values import UNSIGNED, resize

__all__ = ["ACCESS", "space_of", "vector_of", "window_of"]

_SPACES = ("global", "shared", "local", "const", "param")
_VECTORS = {"v2": 2, "v4": 4, "v8": 8, "x1": 2, "x2": 4, "x4": 8}  # a tile gives each lane two elements


def space_of(form: Form) -> str:
    """The state space that an opcode names; "" for generic addresses."""
    for part in form.parts:
        name = part.split("::")[0]
        if name in _SPACES:
            return name
    return ""


def vector_of(form: Form) -> int:
    """How many elements a vector access has."""
    return next((count for flag, count in _VECTORS.items() if flag in form.flags), 1)


def _elements(context: Context, operand: Operand, count: int) -> Sequence[Operand]:
    elements = operand.elements if isinstance(operand, Vector) else (operand,)
    if len(elements) != count:
        context.fail(f"'{context.instruction.opcode}' moves {count} elements, {len(elements)} are named")
    return elements


def window_of(space: str) -> str:
    """Spaces that share the flat addresses are one to the memory."""
    return space if space in ("shared", "local") else ""


# --------------------------------------------------------------------------------------------------------------- loads
def _load(context: Context) -> Step:
    form, instruction = context.form, context.instruction
    width, count = TYPE_BITS[form.type] // 8, vector_of(form)
    targets = _elements(context, context.operands[0], count)
    signed = form.type[0] == "s"
    slots = [(t.slot, TYPE_BITS[t.type]) if isinstance(t, Register) else None for t in targets]
    space = space_of(form)
    if space == "param":
        return _load_parameter(context, slots, width, signed)
    named, address = context.address(context.operands[1])
    place_space = window_of(named or space)
    if width not in (1, 2, 4, 8) or width * count > 32:
        context.unknown()
    reach = _reach(context, targets, width, signed)

    def step(frame: Frame, mask: Mask) -> None:
        memory = frame.batch.memory
        try:
            places = memory.places(place_space, address(frame), width * count, mask, tail=True)
            for place in places:
                values = memory.load(place, width, count)
                frame.batch.saw(instruction, "load", place, width * count, mask, reach=reach)
                for slot, value in zip(slots, values, strict=True):
                    if slot is not None:
                        _put(frame, slot[0], resize(value, slot[1], signed), place, mask)
        except MemoryFault as fault:
            frame.batch.fault(instruction, fault)

    return step


def _reach(context: Context, targets: Sequence[Operand], width: int, signed: bool) -> Reach | None:
    """Which bytes of a load count; None for all (also where none does: a load of nothing is no widened one)."""
    first = width == WORD and len(targets) == 1 and context.operands[1] in context.exchanged
    parts = parts_of(targets, width, signed, context.demanded)
    whole = ((0, width * len(targets)),)
    return None if parts in ((), whole) and not first else Reach(parts or whole, spares=first)


def _put(frame: Frame, slot: int, value: Array, place: Place, mask: Mask) -> None:
    if place.lanes is None:
        frame.write(slot, value, mask)
    else:
        frame.write_lanes(slot, value, place.lanes)


def _parameter_place(context: Context, operand: Operand) -> tuple[str, int]:
    if not isinstance(operand, AddressOperand) or not isinstance(operand.base, Symbol):
        context.fail("a parameter is read by its name")
    return operand.base.name, operand.base.offset + operand.offset


def _load_parameter(context: Context, slots: Sequence[tuple[int, int] | None], width: int, signed: bool) -> Step:
    name, offset = _parameter_place(context, context.operands[1])
    instruction = context.instruction

    def step(frame: Frame, mask: Mask) -> None:
        data = frame.params.get(name)
        if data is None or offset + width * len(slots) > data.shape[1]:
            frame.batch.fail(instruction, f"parameter '{name}' has no {width * len(slots)} bytes at byte {offset}")
        for i, slot in enumerate(slots):
            if slot is None:
                continue
            first = offset + i * width
            part = np.ascontiguousarray(data[:, first : first + width]).view(UNSIGNED[width * 8]).reshape(-1)
            frame.write(slot[0], resize(part, slot[1], signed), mask)

    return step


# -------------------------------------------------------------------------------------------------------------- stores
def _store(context: Context) -> Step:
    form, instruction = context.form, context.instruction
    bits, count = TYPE_BITS[form.type], vector_of(form)
    width = bits // 8
    sources = [context.raw(o, form.type) for o in _elements(context, context.operands[1], count)]
    space = space_of(form)
    if space == "param":
        return _store_parameter(context, sources, bits)
    named, address = context.address(context.operands[0])
    place_space = window_of(named or space)
    if width not in (1, 2, 4, 8) or width * count > 32:
        context.unknown()

    def step(frame: Frame, mask: Mask) -> None:
        memory = frame.batch.memory
        try:
            places = memory.places(place_space, address(frame), width * count, mask)
            values = [resize(source(frame), bits) for source in sources]
            for place in places:
                chosen = [_chosen(value, place, mask) for value in values]
                frame.batch.saw(instruction, "store", place, width * count, mask, _bytes_of(values, place, mask))
                memory.store(place, chosen, width)
        except MemoryFault as fault:
            frame.batch.fault(instruction, fault)

    return step


def _chosen(value: Array, place: Place, mask: Mask) -> Array:
    """One item a position; where all lanes share one position, the last active lane's."""
    if value.shape[0] == 1:
        return value
    if place.lanes is not None:
        return value[place.lanes]
    if place.positions.shape[0] == 1 and value.shape[0] > 1:
        last = value.shape[0] - 1 if mask is None else int(np.flatnonzero(mask)[-1])
        return value[last : last + 1]
    return value


def _bytes_of(values: Sequence[Array], place: Place, mask: Mask) -> Callable[[], Array]:
    """What a store writes, a row of bytes an active lane; only looked at when two threads write to one place."""

    def rows() -> Array:
        if place.lanes is not None:
            lanes = place.lanes
        else:
            lanes = None if mask is None else np.flatnonzero(mask)
        whole = np.broadcast_arrays(*(v if lanes is None or v.shape[0] == 1 else v[lanes] for v in values))
        columns = [np.ascontiguousarray(v).reshape(-1, 1).view(np.uint8) for v in whole]
        return np.concatenate(columns, axis=1)

    return rows


def _store_parameter(context: Context, sources: Sequence[Fetch], bits: int) -> Step:
    name, offset = _parameter_place(context, context.operands[0])
    sizes = {v.name: v.size for v in (*context.function.variables, *context.function.results)}
    if name not in sizes:
        context.fail(f"no parameter '{name}' to store to")
    width = bits // 8

    def step(frame: Frame, _mask: Mask) -> None:
        data = frame.params.get(name)
        if data is None or data.shape[0] == 1:
            data = np.zeros((frame.batch.threads, sizes[name]), np.uint8)
        for i, source in enumerate(sources):
            value = np.ascontiguousarray(np.broadcast_to(resize(source(frame), bits), (frame.batch.threads,)))
            first = offset + i * width
            data[:, first : first + width] = value.view(np.uint8).reshape(-1, width)
        frame.params[name] = data

    return step


# ------------------------------------------------------------------------------------------------------------- atomics
def _atomic(context: Context) -> Step:
    form, instruction, operands = context.form, context.instruction, list(context.operands)
    target = operands.pop(0) if form.base == "atom" else Sink()
    named, address = context.address(operands[0])
    space = named or space_of(form)
    atomic = atomic_of(form, space)
    if atomic is None:
        context.unknown()
    count, width = vector_of(form), atomic.bits // 8
    slots = [t.slot if isinstance(t, Register) else None for t in _targets(context, target, count)]
    wanted = any(slot in context.wanted for slot in slots if slot is not None)
    values = [context.raw(o, form.type) for o in _elements(context, operands[1], count)]
    swap = context.raw(operands[2], form.type) if atomic.name == "cas" else None
    place_space, kind = window_of(space), "cas" if atomic.name == "cas" else "atomic"

    def step(frame: Frame, mask: Mask) -> None:
        memory, threads = frame.batch.memory, frame.batch.threads
        whole = np.broadcast_to(address(frame), (threads,))
        try:
            for place in memory.places(place_space, whole, width * count, mask, tail=kind == "cas" and width == WORD):
                frame.batch.saw(instruction, kind, place, width * count, mask)
                for i, (slot, value) in enumerate(zip(slots, values, strict=True)):
                    old = _exchange(frame, atomic, place, i, count, value, swap, wanted)
                    if slot is not None:
                        register = frame.code.function.registers[slot]
                        _put(frame, slot, resize(old, TYPE_BITS[register.type]), place, mask)
        except MemoryFault as fault:
            frame.batch.fault(instruction, fault)

    return step


def _targets(context: Context, target: Operand, count: int) -> Sequence[Operand]:
    return [Sink()] * count if isinstance(target, Sink) else _elements(context, target, count)


def _exchange(
    frame: Frame, atomic: Atomic, place: Place, item: int, count: int, value: Fetch, swap: Fetch | None, wanted: bool
) -> Array:
    def of_lanes(fetch: Fetch) -> Array:
        whole = np.broadcast_to(resize(fetch(frame), atomic.bits), (frame.batch.threads,))
        return np.ascontiguousarray(whole if place.lanes is None else whole[place.lanes])

    view = place.region.view(atomic.bits // 8)
    positions = place.positions * count + item
    return atomic.apply(view, positions, of_lanes(value), None if swap is None else of_lanes(swap), wanted)


# ----------------------------------------------------------------------------------------------------------- addresses
_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}


def _convert_address(context: Context) -> Step:
    """cvta: shared and local addresses have a window among the generic ones; the others are generic already."""
    form = context.form
    window = _WINDOWS.get(space_of(form), 0)
    delta = np.uint64((-window if "to" in form.flags else window) & (2**64 - 1))
    target = context.register(context.operands[0])
    source = context.raw(context.operands[1], "b64")

    def step(frame: Frame, mask: Mask) -> None:
        value = source(frame)
        frame.write(target.slot, value + delta if window else value, mask)

    return step


def _is_space(context: Context) -> Step:
    form = context.form
    space = space_of(form)
    target = context.register(context.operands[0])
    source = context.raw(context.operands[1], "b64")
    key = {"shared": 1, "local": 2}.get(space, 0)

    def step(frame: Frame, mask: Mask) -> None:
        window = source(frame) >> np.uint64(32)
        frame.write(target.slot, window == key if key else window > 2, mask)

    return step


ACCESS: dict[str, Callable[[Context], Step]] = {
    "ld": _load,
    "ldu": _load,
    "st": _store,
    "atom": _atomic,
    "red": _atomic,
    "cvta": _convert_address,
    "isspacep": _is_space,
}
"""How instructions that touch memory or addresses become steps."""
