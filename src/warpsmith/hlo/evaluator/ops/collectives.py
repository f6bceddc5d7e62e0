"""Ops about devices, tokens and time, on one device: communication among one is no communication.

In: values.  Out: the same values.  A collective whose groups hold several devices, and ops that talk to the outside
(infeed, outfeed, send, recv), are refused by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from warpsmith.errors import UnsupportedHlo
from warpsmith.hlo.attributes import IotaGroups, MeshGroups
from warpsmith.hlo.evaluator.values import TOKEN, Caller, Kernel, Rule, Value, constant_kernel
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.shapes import AnyShape, TupleShape

__all__ = ["DEVICES", "PASSING"]


def _first(_: Caller, instruction: HloInstruction) -> Kernel:
    return lambda values: values[0]


def _token(_: Caller, instruction: HloInstruction) -> Kernel:
    return constant_kernel(TOKEN)


def _number(_: Caller, instruction: HloInstruction) -> Kernel:
    return constant_kernel(np.zeros((), np.uint32))


def _group_size(instruction: HloInstruction) -> int:
    groups = instruction.attributes.get("replica_groups", ())
    if isinstance(groups, IotaGroups):
        return groups.dims[-1]
    if isinstance(groups, MeshGroups):
        groups = groups.groups()
    rows = cast("tuple[object, ...]", groups)
    return max((len(cast("tuple[int, ...]", row)) for row in rows if isinstance(row, tuple)), default=1)


def _alone(instruction: HloInstruction) -> None:
    """UnsupportedHlo unless the collective is among one device."""
    size = _group_size(instruction)
    if size > 1:
        raise UnsupportedHlo(
            f"{instruction.opcode} '{instruction.name}' is among {size} devices; there is one here",
            span=instruction.span,
            help="give each device's group one member, or lower the module for one device",
        )


def _collective(_: Caller, instruction: HloInstruction) -> Kernel:
    _alone(instruction)
    if isinstance(instruction.shape, TupleShape):
        return tuple
    return lambda values: values[0]


def _permute(_: Caller, instruction: HloInstruction) -> Kernel:
    pairs = instruction.attributes.get("source_target_pairs", ())
    if pairs == ((0, 0),):
        return _collective(_, instruction)
    if pairs == ():
        return constant_kernel(_zeros(instruction.shape))
    raise UnsupportedHlo(
        f"{instruction.opcode} '{instruction.name}' sends to other devices; there is one here", span=instruction.span
    )


def _zeros(shape: AnyShape) -> Value:
    if isinstance(shape, TupleShape):
        return tuple(_zeros(each) for each in shape.elements)
    return TOKEN if shape.dtype.bits == 0 else np.zeros(shape.dims, shape.dtype.numpy)


def _started(result_of: Rule) -> Rule:
    """The `-start` of an op whose value is (operands, result, contexts...)."""

    def rule(caller: Caller, instruction: HloInstruction) -> Kernel:
        shape = cast("TupleShape", instruction.shape)
        packed = isinstance(shape.elements[0], TupleShape)
        made = HloInstruction(
            instruction.name,
            instruction.opcode.removesuffix("-start"),
            shape.elements[1],
            instruction.operands,
            instruction.attributes,
            origin=instruction.origin,
        )
        inner = result_of(caller, made)
        contexts = tuple(_zeros(each) for each in shape.elements[2:])

        def kernel(values: Sequence[Value]) -> Value:
            return (tuple(values) if packed else values[0], inner(values), *contexts)

        return kernel

    return rule


def _called(caller: Caller, instruction: HloInstruction) -> Kernel:
    computation = instruction.attr("calls", HloComputation)
    return lambda values: caller.run(computation, values)


def _second(_: Caller, instruction: HloInstruction) -> Kernel:
    return lambda values: cast("tuple[Value, ...]", values[0])[1]


def _copy_started(_: Caller, instruction: HloInstruction) -> Kernel:
    return lambda values: (values[0], values[0], np.zeros((), np.uint32))


def _copied(_: Caller, instruction: HloInstruction) -> Kernel:
    return lambda values: cast("tuple[Value, ...]", values[0])[0]


def _size(_: Caller, instruction: HloInstruction) -> Kernel:
    (dimension,) = instruction.ints("dimensions")
    operand = instruction.operands[0].array_shape
    if operand.dynamic[dimension]:
        raise _dynamic(instruction)
    return constant_kernel(np.array(operand.dims[dimension], np.int32))


def _sized(_: Caller, instruction: HloInstruction) -> Kernel:
    (dimension,) = instruction.ints("dimensions")
    full = instruction.operands[0].array_shape.dims[dimension]

    def kernel(values: Sequence[Value]) -> Value:
        if int(cast("np.ndarray[tuple[()], np.dtype[np.int32]]", values[1])) != full:
            raise _dynamic(instruction)
        return values[0]

    return kernel


def _dynamic(instruction: HloInstruction) -> UnsupportedHlo:
    return UnsupportedHlo(
        f"{instruction.opcode} '{instruction.name}' works with a dynamic size; here dimensions have their full size",
        span=instruction.span,
        help="write f32[8] for f32[<=8], and mask the elements from the dynamic size on",
    )


def _refuse(_: Caller, instruction: HloInstruction) -> Kernel:
    raise UnsupportedHlo(
        f"{instruction.opcode} '{instruction.name}' talks to the outside of the module: nobody answers here",
        span=instruction.span,
    )


_COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-broadcast")

PASSING = frozenset(("opt-barrier", "add-dependency", "domain", *_COLLECTIVES, "all-reduce-start", "all-reduce-done"))
"""Ops whose results are their operands, untouched."""

DEVICES: dict[str, Rule] = {
    **dict.fromkeys(("opt-barrier", "add-dependency", "domain", "all-reduce-done", "async-update"), _first),
    **dict.fromkeys(_COLLECTIVES, _collective),
    **dict.fromkeys(("infeed", "outfeed", "send", "send-done", "recv", "recv-done"), _refuse),
    **dict.fromkeys(("all-gather-done", "collective-permute-done", "async-done"), _second),
    "after-all": _token,
    "partition-id": _number,
    "replica-id": _number,
    "all-reduce-start": _collective,
    "all-gather-start": _started(_collective),
    "collective-permute": _permute,
    "collective-permute-start": _started(_permute),
    "async-start": _started(_called),
    "copy-start": _copy_started,
    "copy-done": _copied,
    "get-dimension-size": _size,
    "set-dimension-size": _sized,
}
