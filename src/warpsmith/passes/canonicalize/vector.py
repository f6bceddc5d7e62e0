"""Canonical forms of vector ops: positions that are constants, elements of vectors whose makers are known.

    %v = vector.insert %x, %w [%c1] : f32 into vector<4xf32>
    %y = vector.extract %v[%c1] : f32 from vector<4xf32>       ->   uses of %y use %x

Rank-1 vectors alone.
"""

from __future__ import annotations

from warpsmith.ir.core.attributes import DenseArrayAttr, DenseAttr, dense_array, scalar_attr
from warpsmith.ir.core.effects import constant_of
from warpsmith.ir.core.folding import constant_attribute
from warpsmith.ir.core.rewriter import Pattern, Rewriter
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.types import VectorType
from warpsmith.ir.dialects.vector import DYNAMIC

__all__ = ["PATTERNS", "static_position"]


def static_position(op: Operation) -> tuple[int, ...]:
    """The static positions of vector.extract or insert; DYNAMIC where an operand says it."""
    found = op.attributes["static_position"]
    return found.values if isinstance(found, DenseArrayAttr) else ()


def constant_position(op: Operation, rewriter: Rewriter) -> bool:
    """A dynamic position that is a constant in bounds becomes static."""
    positions = static_position(op)
    fixed = 1 if op.row.name == "vector.extract" else 2
    type = op.operands[fixed - 1].type
    if len(op.operands) == fixed or not isinstance(type, VectorType):
        return False
    dynamic = iter(op.operands[fixed:])
    static: list[int] = []
    left: list[object] = []
    operands = op.operands[:fixed]
    for axis, position in enumerate(positions):
        if position == DYNAMIC:
            value = next(dynamic)
            constant = constant_of(value)
            if constant is not None and 0 <= constant.value < type.shape[axis]:
                position = constant.value
                left.append(value)
            else:
                operands.append(value)
        static.append(position)
    if not left:
        return False
    op.attributes["static_position"] = dense_array(static)
    rewriter.set_operands(op, operands)
    return True


def extract(op: Operation, rewriter: Rewriter) -> bool:
    """An element of a splat, a constant, from_elements, or a chain of inserts at constant positions."""
    type = op.operands[0].type
    positions = static_position(op)
    if not isinstance(type, VectorType) or len(type.shape) != 1 or len(positions) != 1:
        return False
    position = positions[0]
    attribute = constant_attribute(op.operands[0])
    if isinstance(attribute, DenseAttr) and (position != DYNAMIC or attribute.splat is not None):
        element = attribute.splat or scalar_attr(attribute.array[position], op.results[0].type)
        rewriter.replace(op, [rewriter.constant(op, element, op.results[0].type)])
        return True
    source = op.operands[0].defining_op
    if source is None:
        return False
    if source.row.name == "vector.broadcast" and source.operands[0].type is op.results[0].type:
        rewriter.replace(op, [source.operands[0]])
        return True
    if position == DYNAMIC:
        if source.row.name == "vector.insert" and source.operands[2:] == op.operands[1:]:
            rewriter.replace(op, [source.operands[0]])
            return True
        return False
    if source.row.name == "vector.from_elements":
        rewriter.replace(op, [source.operands[position]])
        return True
    if source.row.name != "vector.insert":
        return False
    other = static_position(source)
    if other == positions:
        rewriter.replace(op, [source.operands[0]])
        return True
    if len(other) != 1 or other[0] == DYNAMIC:
        return False
    rewriter.set_operand(op, 0, source.operands[1])
    return True


def overwritten_insert(op: Operation, rewriter: Rewriter) -> bool:
    """An insert over an insert at the same constant position needs only the vector below."""
    source = op.operands[1].defining_op
    if source is None or source.row.name != "vector.insert" or len(op.operands) != 2 or len(source.operands) != 2:
        return False
    if static_position(source) != static_position(op):
        return False
    rewriter.set_operand(op, 1, source.operands[1])
    return True


PATTERNS: dict[str, tuple[Pattern, ...]] = {
    "vector.extract": (constant_position, extract),
    "vector.insert": (constant_position, overwritten_insert),
}
