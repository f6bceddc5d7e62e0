"""Which single ops become kernels, which run on the host, and which are steps of control flow.

In: an instruction.  Out: yes or no, and why not, in words.  Ops that the elemental emitter takes become kernels; a
matrix product or convolution that a plain loop would be slow at is left to the host's library.
"""

from __future__ import annotations

import math

from warpsmith.fusion.traversal import reachable
from warpsmith.hlo.control_flow import RUNS
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.opcodes import OPCODES
from warpsmith.hlo.shapes import TupleShape

__all__ = [
    "IN_PLACE",
    "KERNEL_OPS",
    "MOST_BUFFERS",
    "has_many_buffers",
    "has_odd_computation",
    "host_reason",
    "is_large_product",
    "is_view",
    "may_update_in_place",
    "odd_ops",
]

_MOVES = (
    *("bitcast-convert", "broadcast", "concatenate", "dynamic-slice", "dynamic-update-slice", "gather", "iota", "pad"),
    *("reduce", "reduce-window", "reshape", "reverse", "slice", "transpose"),
)
_PRODUCTS = ("dot", "convolution")
_NOT_ELEMENTAL = frozenset(("stochastic-convert",))
KERNEL_OPS: frozenset[str] = frozenset(
    {name for name, row in OPCODES.items() if row.elementwise} - _NOT_ELEMENTAL | {*_MOVES, *_PRODUCTS}
)
_APPLIES = frozenset(("map", "reduce", "reduce-window", "scatter", "select-and-scatter"))
_SCALAR_OPS = frozenset(name for name, row in OPCODES.items() if row.elementwise) - _NOT_ELEMENTAL | {
    "parameter",
    "constant",
    "tuple",
    "get-tuple-element",
    "bitcast",
    "reshape",
    "broadcast",
    "copy",
    "transpose",
}
"""What `emitters/elemental/calls.py` emits inside of a called computation."""
LARGE_PRODUCT = 1 << 18
"""Multiply-adds up to which a product is a kernel: beyond, calling the library costs less than it saves."""

MOST_BUFFERS = 4095
"""Of a GPU's kernel: its parameters take 32,764 bytes at most, a pointer eight."""

IN_PLACE = "it writes into its operand, which nobody needs any more"
"""The reason of a dynamic-update-slice on the host."""

_UPDATE_FRACTION = 4
_VIEWS = frozenset(("tuple", "get-tuple-element", "bitcast", "opt-barrier", "domain", "add-dependency", "after-all"))


def is_view(instruction: HloInstruction) -> bool:
    """Ops that only give other names to buffers."""
    return instruction.opcode in _VIEWS


def host_reason(instruction: HloInstruction) -> str | None:
    """Why a single op runs on the host; None when it becomes a kernel."""
    return _large_product(instruction) if instruction.opcode in _PRODUCTS else _odd_reason(instruction)


def odd_ops(body: HloComputation) -> list[HloInstruction]:
    """The ops of a fusion's body that no emitter takes there, whatever the device."""
    alive = reachable((body.root,))
    return [each for each in body if each in alive and _is_odd(each, body.root)]


def _is_odd(inner: HloInstruction, root: HloInstruction) -> bool:
    match inner.opcode:
        case "parameter":
            return False
        case "constant":
            return isinstance(inner.shape, TupleShape)
        case "tuple" | "get-tuple-element" | "bitcast":
            return False
        case "scatter" if inner is root:
            return has_odd_computation(inner)
        case _:
            return _odd_reason(inner) is not None


def _odd_reason(instruction: HloInstruction) -> str | None:
    """Why no emitter takes an op."""
    opcode = instruction.opcode
    if opcode in RUNS:
        return f"'{opcode}' is control flow"
    if opcode not in KERNEL_OPS:
        return f"no emitter takes '{opcode}'"
    shapes = [each.shape for each in (instruction, *instruction.operands)]
    if any(isinstance(shape, TupleShape) for shape in shapes[1:]):
        return "an operand is a tuple"
    if any(any(leaf.dynamic) for shape in shapes for leaf in shape.leaves()):
        return "a dimension is dynamic"
    if has_odd_computation(instruction):
        return f"no emitter takes a '{opcode}' whose computation isn't arithmetic on scalars"
    if opcode == "bitcast-convert" and any(leaf.dtype.is_complex for shape in shapes for leaf in shape.leaves()):
        return "no emitter takes a bitcast-convert of complex numbers" if _changes_width(instruction) else None
    return None


def has_odd_computation(instruction: HloInstruction) -> bool:
    """Whether the function that a reduce, a map or a scatter applies is more than arithmetic on scalars."""
    called = instruction.attributes.get("to_apply")
    return isinstance(called, HloComputation) and instruction.opcode in _APPLIES and not _is_scalar(called)


def has_many_buffers(instruction: HloInstruction) -> bool:
    """Whether a kernel of the instruction has more buffers than a GPU's kernel takes."""
    return len(instruction.operands) + len(instruction.shape.leaves()) > MOST_BUFFERS


def _is_scalar(computation: HloComputation) -> bool:
    for each in computation:
        if any(leaf.is_array and leaf.elements != 1 for leaf in each.shape.leaves()):
            return False
        if each.opcode in ("map", "call"):
            if not _is_scalar(each.attr("to_apply", HloComputation)):
                return False
        elif each.opcode not in _SCALAR_OPS or (each.opcode == "bitcast" and _changes_type(each)):
            return False
    return True


def _changes_type(instruction: HloInstruction) -> bool:
    return instruction.operands[0].array_shape.dtype is not instruction.array_shape.dtype


def _changes_width(instruction: HloInstruction) -> bool:
    return instruction.operands[0].array_shape.dtype.bits != instruction.array_shape.dtype.bits


def is_large_product(instruction: HloInstruction) -> bool:
    """A dot or convolution that is left to a library."""
    return instruction.opcode in _PRODUCTS and _large_product(instruction) is not None


def may_update_in_place(
    computation: HloComputation,
    op: HloInstruction,
    buffer: HloInstruction,
    user: HloInstruction | None = None,
    *,
    is_entry: bool,
) -> bool:
    """Whether `op` is a dynamic-update-slice of a small part of `buffer`, whose last user it (or `user`, the fusion
    that holds it) is.  A run makes sure; where it finds otherwise the buffer is copied first.  An entry's parameters
    are the caller's."""
    if op.opcode != "dynamic-update-slice":
        return False
    if op.operands[1].array_shape.elements * _UPDATE_FRACTION > op.array_shape.elements:
        return False
    if buffer.opcode == "constant" or (is_entry and buffer.opcode == "parameter") or buffer is computation.root:
        return False
    users = computation.users(buffer)
    return bool(users) and users[-1] is (user or op)


def _large_product(instruction: HloInstruction) -> str | None:
    source = instruction.operands[1 if instruction.opcode == "convolution" else 0].array_shape
    output = max(1, instruction.array_shape.elements)
    if instruction.opcode == "dot":
        depth = math.prod(source.dims[d] for d in instruction.ints("lhs_contracting_dims", ()))
    else:
        depth = source.elements  # an upper bound: each kernel element meets each output element at most once
    if output * depth > LARGE_PRODUCT:
        return f"a {instruction.opcode} of {output * depth} multiply-adds is left to a library"
    return None
