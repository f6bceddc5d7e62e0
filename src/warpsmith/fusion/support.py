"""Which single ops of an entry become kernels, and which run on the host.

In: an instruction.  Out: yes or no, and why not, in words.  Ops that the elemental emitter takes become kernels; a
matrix product or convolution that a plain loop would be slow at is left to the host's library.
"""

from __future__ import annotations

import math

from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.opcodes import OPCODES
from warpsmith.hlo.shapes import TupleShape

__all__ = ["host_reason", "is_view"]

_MOVES = (
    *("bitcast-convert", "broadcast", "concatenate", "dynamic-slice", "dynamic-update-slice", "gather", "iota", "pad"),
    *("reduce", "reduce-window", "reshape", "reverse", "slice", "transpose"),
)
_PRODUCTS = ("dot", "convolution")
_NOT_ELEMENTAL = frozenset(("stochastic-convert",))
KERNEL_OPS: frozenset[str] = frozenset(
    {name for name, row in OPCODES.items() if row.elementwise} - _NOT_ELEMENTAL | {*_MOVES, *_PRODUCTS}
)
LARGE_PRODUCT = 1 << 22  # multiply-adds


def is_view(instruction: HloInstruction) -> bool:
    """Ops that only give other names to buffers."""
    return instruction.opcode in ("tuple", "get-tuple-element", "bitcast", "optimization-barrier")


def host_reason(instruction: HloInstruction) -> str | None:
    """Why a single op runs on the host; None when it becomes a kernel."""
    opcode = instruction.opcode
    if opcode not in KERNEL_OPS:
        return f"no emitter takes '{opcode}'"
    shapes = [each.shape for each in (instruction, *instruction.operands)]
    if opcode in _PRODUCTS:
        return _large_product(instruction)
    if any(isinstance(shape, TupleShape) for shape in shapes[1:]):
        return "an operand is a tuple"
    if any(any(leaf.dynamic) for shape in shapes for leaf in shape.leaves()):
        return "a dimension is dynamic"
    return None


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
