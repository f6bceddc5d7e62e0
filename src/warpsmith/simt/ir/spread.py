"""Loop iterations as threads: when they don't depend on each other, all run at once.

In: a loop and what it carries.  Out: whether it may be spread, and by what iterations must differ for that.
It may when it carries nothing but buffers, nothing in it concerns other threads, and a buffer that it both reads and
writes is accessed at one index, which differs from iteration to iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

from warpsmith.ir.core.effects import constant_of
from warpsmith.ir.core.ssa import Operation, Trait, Value
from warpsmith.ir.core.types import VectorType
from warpsmith.simt.ir.interpreter import Frame, Machine
from warpsmith.simt.ir.memory import Buffer, Datum

__all__ = ["Independence", "factor_of", "independence"]

MAX_LANES = 1 << 20  # threads times unrolled iterations

_CROSS_THREAD = frozenset(
    (
        "gpu.barrier",
        "gpu.shuffle",
        "xla_gpu.sync_threads",
        "xla_gpu.shuffle_reduce",
        "xla_gpu.atomic_rmw",
        "xla_gpu.compare_exchange",
        "memref.atomic_rmw",
        "xla_gpu.allocate_shared",
        "memref.alloca",
    )
)
_WRITTEN = {
    "tensor.insert": 1,
    "vector.transfer_write": 1,
    "xla_gpu.predicated_insert": 1,
    "memref.store": 1,
    "vector.store": 1,
    "vector.maskedstore": 0,
}
"""Which operand an op writes to; every other buffer among operands is read."""

_PLAIN = {
    "tensor.extract": (0, None),
    "memref.load": (0, None),
    "tensor.insert": (1, None),
    "memref.store": (1, None),
    "vector.load": (0, None),
    "vector.store": (1, None),
    "vector.transfer_read": (0, -1),
    "vector.transfer_write": (1, None),
}
"""Ops whose indices follow the buffer operand: its position, and where the indices end."""


@dataclass(slots=True)
class Independence:
    """What iterations must differ in to be independent: each index (its parts, and how many elements from there) at
    which buffers are read and written.  None: they are independent anyhow.
    """

    indices: set[tuple[tuple[Value, ...], int]] = field(default_factory=set[tuple[tuple[Value, ...], int]])


def independence(
    machine: Machine, frame: Frame, op: Operation, carried: Sequence[Datum], trips: int
) -> Independence | None:
    """When the loop's iterations are independent; None if they aren't, or are too few or too many."""
    if trips < 2 or trips * frame.threads > MAX_LANES or any(not isinstance(d, Buffer) for d in carried):
        return None
    read: set[Buffer] = set()
    written: set[Buffer] = {d for d in carried if isinstance(d, Buffer)}
    places: dict[Buffer, set[tuple[tuple[Value, ...], int]]] = {}
    elsewhere: set[Buffer] = set()
    inside = _handed_on(frame, op)
    stack, called = [op], {""}
    while stack:
        for nested in stack.pop().walk():
            if nested.name in _CROSS_THREAD or nested.row.dialect in ("tile", "nvgpu", "nvvm"):
                return None
            if nested is op or nested.row.traits & Trait.TERMINATOR:
                continue
            target = _WRITTEN.get(nested.name)
            loops = bool(nested.regions)  # what an inner loop carries is what it writes
            for i, operand in enumerate(nested.operands):
                found = inside.get(operand) or frame.known(operand)
                if not isinstance(found, Buffer):
                    continue
                (written if loops or i == target else read).add(found)
                place = _place(nested, i)
                if place is not None:
                    places.setdefault(found, set()).add(place)
                elif not loops:
                    elsewhere.add(found)
            callee = nested.str_attr("callee") if "callee" in nested.attributes else ""
            if callee not in called:
                called.add(callee)
                stack.append(machine.function(callee))
    both = read & written
    if both & elsewhere or any(len(places.get(buffer, ())) != 1 for buffer in both):
        return None
    return Independence({place for buffer in both for place in places[buffer]})


def _place(op: Operation, position: int) -> tuple[tuple[Value, ...], int] | None:
    """The index at which an op accesses its operand number `position`, and of how many elements; None if unknown."""
    base, end = _PLAIN.get(op.name, (-1, None))
    if position != base:
        return None
    type = op.results[0].type if base == 0 else op.operands[0].type
    return tuple(op.operands[base + 1 : end]), type.elements if isinstance(type, VectorType) else 1


def factor_of(value: Value, loop: Operation) -> int | None:
    """What an scf.for's variable is multiplied by in a value that is else the same each time; None if unknown."""
    inside: set[Value] = {argument for block in loop.regions[0].blocks for argument in block.args}
    for op in loop.walk():
        if op is not loop:
            inside.update(op.results)
            inside.update(argument for region in op.regions for block in region.blocks for argument in block.args)
    return _factor(value, loop.body.args[0], inside)


def _factor(value: Value, variable: Value, inside: set[Value]) -> int | None:
    if value is variable:
        return 1
    op = value.defining_op
    if value not in inside or (op is not None and op.name == "arith.constant"):
        return 0
    if op is None or op.name not in ("arith.addi", "arith.subi", "arith.muli", "arith.index_cast"):
        return None
    parts = [_factor(each, variable, inside) for each in op.operands]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if op.name == "arith.muli":
        for part, other in ((known[0], op.operands[1]), (known[1], op.operands[0])):
            constant = constant_of(other)
            if constant is not None:
                return part * constant.value
        return None if any(known) else 0
    return known[0] - known[1] if op.name == "arith.subi" else sum(known)


def _handed_on(frame: Frame, loop: Operation) -> dict[Value, Buffer]:
    """The buffers that values in a loop stand for: what is carried into bodies, results of writes and inner loops."""
    found: dict[Value, Buffer] = {}

    def buffer_of(value: Value) -> Buffer | None:
        known = found.get(value) or frame.known(value)
        return known if isinstance(known, Buffer) else None

    # What a branch gives is known after what is inside, and what comes after it only then.
    branches = sum(op.name == "scf.if" and bool(op.results) for op in loop.walk())
    for op in chain.from_iterable(loop.walk() for _ in range(1 + branches)):
        count = len(op.results)
        if op.name == "scf.if":
            carried = op.body.terminator.operands if count else ()
        else:
            carried = op.operands[-count:] if op.regions and count else ()
        pairs: list[tuple[Value, Value]] = list(zip(op.results, carried, strict=False)) if op is not loop else []
        if carried and op.regions[0].blocks and op.name != "scf.if":
            pairs += zip(op.regions[0].blocks[0].args[-count:], carried, strict=False)
        target = _WRITTEN.get(op.name)
        if target is not None:
            pairs += [(result, op.operands[target]) for result in op.results]
        for value, source in pairs:
            buffer = buffer_of(source)
            if buffer is not None:
                found[value] = buffer
    return found
