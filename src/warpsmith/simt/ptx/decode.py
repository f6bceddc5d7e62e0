"""Instructions to steps: each function of a PTX module once, before any batch runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np

from warpsmith.arrays import Array
from warpsmith.simt.ptx.flow import basic_blocks
from warpsmith.simt.ptx.instructions.access import ACCESS, space_of, vector_of
from warpsmith.simt.ptx.instructions.async_copies import ASYNC
from warpsmith.simt.ptx.instructions.compare import BOOLEANS, choice_spec, comparison
from warpsmith.simt.ptx.instructions.convert import convert_spec
from warpsmith.simt.ptx.instructions.floats import FLOAT, float_spec
from warpsmith.simt.ptx.instructions.integers import integer_spec
from warpsmith.simt.ptx.instructions.matrix import MATRIX
from warpsmith.simt.ptx.instructions.meet import MEET
from warpsmith.simt.ptx.instructions.wide import CARRY, carry_step
from warpsmith.simt.ptx.machine import Code, DecodedBlock, Frame, Mask, Step
from warpsmith.simt.ptx.operands import Context
from warpsmith.simt.ptx.spec import Form, Spec, form_of
from warpsmith.simt.ptx.text.module import TYPE_BITS, Function, Operand, Pair, PtxModule, Register, Sink, Vector
from warpsmith.simt.ptx.uses import deaths, demanded, exchanged, uses
from warpsmith.simt.ptx.values import UNSIGNED, reader, resize, writer

__all__ = ["decode"]

_PACKED = {"f16x2": "f16", "bf16x2": "bf16", "u16x2": "u16", "s16x2": "s16", "f32x2": "f32"}
_NOTHING = frozenset({"membar", "fence", "griddepcontrol", "prefetch", "prefetchu", "nanosleep", "pmevent", "brkpt"})


# ------------------------------------------------------------------------------------------------------------- values
def _spec(context: Context) -> Spec | None:
    form, count = context.form, len(context.operands) - 1
    scalar = _PACKED.get(form.types[0]) if form.types else None
    if scalar is None or form.base in ("cvt", "selp"):
        return _plain_spec(form, count)
    narrow = Form(form.base, form.rounding, form.flags, (scalar,), form.parts, form.worst)
    inner = _plain_spec(narrow, count)
    return None if inner is None else _in_halves(inner, form.types[0], scalar)


def _plain_spec(form: Form, count: int) -> Spec | None:
    if form.base == "cvt":
        return convert_spec(form)
    return choice_spec(form) or float_spec(form, count) or integer_spec(form)


def _in_halves(inner: Spec, packed: str, scalar: str) -> Spec:
    """An instruction on pairs: on the low halves, on the high halves."""
    width = TYPE_BITS[scalar]
    read, write = reader(scalar), writer(scalar)
    half, dtype = UNSIGNED[width], UNSIGNED[2 * width]
    shift = dtype.type(width)

    def compute(*arrays: Array) -> Array:
        low = write(inner.compute(*(read(a.astype(half)) for a in arrays)))
        high = write(inner.compute(*(read((a >> shift).astype(half)) for a in arrays)))
        return low.astype(dtype) | (high.astype(dtype) << shift)

    raw = f"b{2 * width}"
    return Spec((raw,) * len(inner.inputs), raw, compute, inner.error)


def _value_step(context: Context, spec: Spec) -> Step:
    target, *sources = context.operands
    if len(sources) != len(spec.inputs):
        context.fail(f"'{context.instruction.opcode}' takes {len(spec.inputs)} operands, {len(sources)} are given")
    fetches = [context.value(o, t) for o, t in zip(sources, spec.inputs, strict=True)]
    register = context.register(target)
    write, slot, compute = writer(spec.output, TYPE_BITS[register.type]), register.slot, spec.compute
    if len(fetches) == 1:
        (one,) = fetches
        return lambda frame, mask: frame.write(slot, write(compute(one(frame))), mask)
    if len(fetches) == 2:
        first, second = fetches
        return lambda frame, mask: frame.write(slot, write(compute(first(frame), second(frame))), mask)
    return lambda frame, mask: frame.write(slot, write(compute(*[f(frame) for f in fetches])), mask)


# --------------------------------------------------------------------------------------------------------------- moves
def _move(context: Context) -> Step:
    form = context.form
    target, source = context.operands
    if isinstance(target, Vector):
        return _unpack(context, target, source)
    register = context.register(target)
    bits = TYPE_BITS[register.type]
    if isinstance(source, Vector):
        return _pack(context, register, source)
    fetch = context.raw(source, form.type or register.type)
    slot = register.slot
    return lambda frame, mask: frame.write(slot, resize(fetch(frame), bits), mask)


def _unpack(context: Context, target: Vector, source: Operand) -> Step:
    total = TYPE_BITS[context.form.type]
    width = total // len(target.elements)
    fetch = context.raw(source, context.form.type)
    slots = [
        (e.slot, UNSIGNED[TYPE_BITS[e.type]], i * width)
        for i, e in enumerate(target.elements)
        if isinstance(e, Register)
    ]

    def step(frame: Frame, mask: Mask) -> None:
        value = fetch(frame)
        for slot, dtype, shift in slots:
            frame.write(slot, (value >> value.dtype.type(shift)).astype(dtype), mask)

    return step


def _pack(context: Context, register: Register, source: Vector) -> Step:
    bits = TYPE_BITS[register.type]
    dtype, width = UNSIGNED[bits], bits // len(source.elements)
    fetches = [context.raw(e, f"b{width}") for e in source.elements]

    def step(frame: Frame, mask: Mask) -> None:
        value = fetches[0](frame).astype(dtype)
        for i, fetch in enumerate(fetches[1:], 1):
            value = value | (fetch(frame).astype(dtype) << dtype.type(i * width))
        frame.write(register.slot, value, mask)

    return step


# --------------------------------------------------------------------------------------------------------- comparisons
def _set_predicate(context: Context) -> Step:
    """setp: p = compare, q = not compare, each combined with a predicate; of pairs, p for the low half, q the high."""
    form, operands = context.form, context.operands
    packed = _PACKED.get(form.type)
    scalar = Form(form.base, form.rounding, form.flags, (packed or form.type,), form.parts)
    compare = comparison(scalar)
    combine = next((BOOLEANS[p] for p in form.parts[2:] if p in BOOLEANS), None)
    if compare is None:
        context.unknown()
    pair = operands[0] if isinstance(operands[0], Pair) else Pair(operands[0], Sink())
    slots = [each.slot if isinstance(each, Register) else None for each in (pair.first, pair.second)]
    with_predicate = context.value(operands[3], "pred") if combine is not None else None
    halves = _compare_halves(context, packed) if packed is not None else None
    a = context.value(operands[1], "b32" if packed else form.type)
    b = context.value(operands[2], "b32" if packed else form.type)

    def step(frame: Frame, mask: Mask) -> None:
        if halves is not None:
            results = [compare(*pair) for pair in halves(frame)]
        else:
            first = compare(a(frame), b(frame))
            results = [first, ~first] if slots[1] is not None else [first]
        for slot, result in zip(slots, results, strict=False):
            if slot is None:
                continue
            if combine is not None and with_predicate is not None:
                result = combine(result, with_predicate(frame))
            frame.write(slot, result, mask)

    return step


def _compare_halves(context: Context, scalar: str) -> Callable[[Frame], list[tuple[Array, Array]]]:
    read = reader(scalar)
    a, b = context.raw(context.operands[1], "b32"), context.raw(context.operands[2], "b32")

    def fetch(frame: Frame) -> list[tuple[Array, Array]]:
        x, y = a(frame), b(frame)
        return [
            (read((x >> np.uint32(s)).astype(np.uint16)), read((y >> np.uint32(s)).astype(np.uint16))) for s in (0, 16)
        ]

    return fetch


def _set(context: Context) -> Step:
    """set: a comparison as all ones or 1.0."""
    form, operands = context.form, context.operands
    compare = comparison(form)
    if compare is None or len(form.types) != 2:
        context.unknown()
    combine = next((BOOLEANS[p] for p in form.parts[2:] if p in BOOLEANS), None)
    a, b = context.value(operands[1], form.type), context.value(operands[2], form.type)
    third = context.value(operands[3], "pred") if combine is not None else None
    target = context.register(operands[0])
    bits, yes = TYPE_BITS[target.type], {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}.get(form.types[0], -1)
    one = np.array([yes & ((1 << bits) - 1)], UNSIGNED[bits])

    def step(frame: Frame, mask: Mask) -> None:
        result = compare(a(frame), b(frame))
        if combine is not None and third is not None:
            result = combine(result, third(frame))
        frame.write(target.slot, np.where(result, one, one.dtype.type(0)), mask)

    return step


def _trap(context: Context) -> Step:
    instruction = context.instruction

    def step(frame: Frame, mask: Mask) -> None:
        frame.batch.fail(instruction, "the kernel traps", 0 if mask is None else int(np.flatnonzero(mask)[0]))

    return step


_DECODERS: dict[str, Callable[[Context], Step]] = {
    **ACCESS,
    **ASYNC,
    **MATRIX,
    **MEET,
    "mov": _move,
    "setp": _set_predicate,
    "set": _set,
    "trap": _trap,
}


def _step(context: Context) -> tuple[Step | None, str]:
    """The step of an instruction (None for one that does nothing here) and its documented error."""
    base, form = context.instruction.parts[0], context.form
    if base in _NOTHING:
        return None, ""
    decoder = _DECODERS.get(base)
    if decoder is not None:
        return decoder(context), ""
    if base in CARRY and ("cc" in form.flags or base.endswith("c")):
        return carry_step(context), ""
    spec = _spec(context)
    if spec is None:
        context.unknown()
    return _value_step(context, spec), spec.error


def _guarded(step: Step, register: Register, negated: bool) -> Step:
    def guarded(frame: Frame, mask: Mask) -> None:
        holds = frame.predicate(register, negated)
        if holds.shape[0] == 1:
            if holds[0]:
                step(frame, mask)
            return
        some = holds if mask is None else holds & mask
        if some.any():
            step(frame, None if mask is None and bool(some.all()) else some)

    return guarded


# ------------------------------------------------------------------------------------------------------------ functions
def _class(form: Form) -> str:
    base = form.base
    if base in ACCESS:
        return {"ld": "load", "ldu": "load", "st": "store", "cvta": "address", "isspacep": "address"}.get(
            base, "atomic"
        )
    if base == "cp" and form.flags & {"commit_group", "wait_group", "wait_all"}:
        return "barrier"
    if base in _CLASSES:
        return _CLASSES[base]
    if base in FLOAT and form.types and form.types[0][0] in "fb" and form.types[0] not in ("b16", "b32", "b64"):
        return "approximate" if "approx" in form.flags or "full" in form.flags else "float"
    return "integer"


_CLASSES = {
    **dict.fromkeys(("bra", "brx", "ret", "exit", "call", "trap"), "control"),
    **dict.fromkeys(("bar", "barrier"), "barrier"),
    **dict.fromkeys(("shfl", "vote", "match", "redux", "activemask", "elect"), "warp"),
    **dict.fromkeys(("setp", "set", "selp", "slct", "testp"), "compare"),
    **dict.fromkeys(_NOTHING, "none"),
    "cp": "copy",
    "ldmatrix": "load",
    "stmatrix": "store",
    "mma": "matrix",
    "mov": "move",
    "cvt": "convert",
}


def decode(module: PtxModule, function: Function, symbols: dict[str, tuple[str, int]], worst: bool) -> Code:
    """Decode a function.  SimulationError, at its line, for an instruction that the simulator doesn't know."""
    blocks = basic_blocks(module, function)
    last = deaths(function, blocks)
    wanted = frozenset(slot for each in function.instructions for slot in uses(each)[0])
    bits, swapped = demanded(function), exchanged(function)
    decoded: list[DecodedBlock] = []
    for block in blocks:
        new = DecodedBlock([], block.leave, block.next, block.targets, block.join, Counter(), Counter(), {})
        for i in range(block.start, block.stop):
            instruction = function.instructions[i]
            form = form_of(instruction.parts)
            kind = _class(form)
            new.classes[kind] += 1
            if kind in ("load", "store", "atomic"):
                new.accesses[(kind, space_of(form) or "generic", TYPE_BITS.get(form.type, 0) * vector_of(form))] += 1
            if instruction is block.leave:
                continue
            step, error = _step(Context(module, function, symbols, wanted, bits, swapped, worst, instruction))
            if error:
                new.approximate[instruction.opcode] = error
            if step is not None:
                if instruction.predicate is not None:
                    step = _guarded(step, instruction.predicate, instruction.negated)
                new.steps.append((step, last.get(i, ())))
        decoded.append(new)
    return Code(function, decoded)
