"""Walking the body of a fusion: roots, and ops that a walk from a root may pass through.

In: one HLO computation.  Out: its roots, and facts on single instructions.  XLA: `xla/hlo/utils/hlo_traversal.cc`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from warpsmith.hlo.attributes import SliceDim
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.opcodes import OPCODES
from warpsmith.hlo.shapes import AnyShape, Shape, TupleShape
from warpsmith.indexing import bitcast_map, reshape_map

__all__ = [
    "is_elementwise",
    "is_intermediate",
    "is_parameter",
    "reachable",
    "reshape_is_bitcast",
    "roots_of",
    "shape_bits",
    "slice_dims",
    "transpose_is_bitcast",
]


def roots_of(computation: HloComputation) -> tuple[HloInstruction, ...]:
    """The operands of the root tuple, or the root; an operand listed twice counts once."""
    root = computation.root
    return tuple(dict.fromkeys(root.operands)) if root.opcode == "tuple" else (root,)


def is_parameter(instruction: HloInstruction) -> bool:
    """Parameters are the border of a fusion: what feeds them lies outside."""
    return instruction.opcode == "parameter"


def is_elementwise(instruction: HloInstruction) -> bool:
    """Each result element depends on the operands' elements at its own index (a copy to another layout counts not)."""
    if instruction.opcode == "copy":
        return _same_layout(instruction.shape, instruction.operands[0].shape)
    row = OPCODES.get(instruction.opcode)
    return row is not None and row.elementwise


def _same_layout(a: AnyShape, b: AnyShape) -> bool:
    if isinstance(a, TupleShape) or isinstance(b, TupleShape):
        return a == b
    return a.dims == b.dims and a.minor_to_major == b.minor_to_major


def is_intermediate(instruction: HloInstruction, operands: int) -> bool:
    """Whether a hero search may walk through: 1 to `operands` operands, and elementwise or a bitcast in effect."""
    if not 1 <= len(instruction.operands) <= operands:
        return False
    if is_elementwise(instruction) or instruction.opcode == "bitcast":
        return True
    shape, source = instruction.shape, instruction.operands[0].shape
    if isinstance(shape, TupleShape) or isinstance(source, TupleShape):
        return False
    if instruction.opcode == "reshape":
        return reshape_is_bitcast(source, shape)
    return instruction.opcode == "transpose" and transpose_is_bitcast(source, shape, instruction.ints("dimensions"))


def reshape_is_bitcast(source: Shape, target: Shape) -> bool:
    """Whether reshaping moves no element in memory."""
    if source.elements != target.elements:
        return False
    if source.is_row_major and target.is_row_major:
        return True
    moved = bitcast_map(source.dims, source.minor_to_major, target.dims, target.minor_to_major)
    return moved == reshape_map(source.dims, target.dims)


def transpose_is_bitcast(source: Shape, target: Shape, permutation: tuple[int, ...]) -> bool:
    """Whether transposing (target dimension i is source dimension permutation[i]) moves no element in memory."""
    before = [d for d in source.minor_to_major if source.dims[d] != 1]
    after = [permutation[d] for d in target.minor_to_major if target.dims[d] != 1]
    return before == after


def shape_bits(shape: AnyShape) -> int | None:
    """Bits of an array's element (8 for pred); None for a tuple."""
    return None if isinstance(shape, TupleShape) else shape.dtype.bits


def slice_dims(instruction: HloInstruction) -> list[SliceDim]:
    """Start, limit and stride of a slice, by dimension."""
    parts = cast("tuple[object, ...]", instruction.attr("slice", tuple))
    return [part for part in parts if isinstance(part, SliceDim)]


def reachable(roots: tuple[HloInstruction, ...]) -> set[HloInstruction]:
    """All that the roots depend on, themselves included."""
    return set(_walk(roots))


def _walk(roots: tuple[HloInstruction, ...]) -> Iterator[HloInstruction]:
    seen: set[HloInstruction] = set(roots)
    stack = list(roots)
    while stack:
        instruction = stack.pop()
        yield instruction
        for operand in instruction.operands:
            if operand not in seen:
                seen.add(operand)
                stack.append(operand)
