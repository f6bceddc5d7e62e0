"""Canonical forms of tensor ops and casts: elements of constants, of from_elements, of what was just inserted.

%t = tensor.from_elements %a, %b : tensor<2xf32>
%x = tensor.extract %t[%c1] : tensor<2xf32>        ->   uses of %x use %b
"""

from __future__ import annotations

from warpsmith.ir.core.attributes import DenseAttr, scalar_attr
from warpsmith.ir.core.effects import constant_of
from warpsmith.ir.core.folding import constant_attribute
from warpsmith.ir.core.rewriter import Pattern, Rewriter
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import TensorType

__all__ = ["PATTERNS"]


def _position(op: Operation) -> tuple[int, ...] | None:
    """The constant indices of an extract, when they are in bounds."""
    found: list[int] = []
    type = op.operands[0].type
    if not isinstance(type, TensorType):
        return None
    for value, size in zip(op.operands[1:], type.shape, strict=True):
        constant = constant_of(value)
        if constant is None or not 0 <= constant.value < size:
            return None
        found.append(constant.value)
    return tuple(found)


def extract(op: Operation, rewriter: Rewriter) -> bool:
    """An element of a constant, of from_elements, or of an insert at the same index."""
    source = op.operands[0].defining_op
    if source is None:
        return False
    if source.row.name == "tensor.insert" and source.operands[2:] == op.operands[1:]:
        rewriter.replace(op, [source.operands[0]])
        return True
    attribute = constant_attribute(op.operands[0])
    if attribute is None and source.row.name != "tensor.from_elements":
        return False
    if isinstance(attribute, DenseAttr) and attribute.splat is not None:
        rewriter.replace(op, [rewriter.constant(op, attribute.splat, op.results[0].type)])
        return True
    position = _position(op)
    if position is None:
        return False
    if isinstance(attribute, DenseAttr):
        element = scalar_attr(attribute.array[position], op.results[0].type)
        rewriter.replace(op, [rewriter.constant(op, element, op.results[0].type)])
        return True
    type = op.operands[0].type
    assert isinstance(type, TensorType)
    flat = 0
    for index, size in zip(position, type.shape, strict=True):
        flat = flat * size + index
    rewriter.replace(op, [source.operands[flat]])
    return True


def cancel_casts(op: Operation, rewriter: Rewriter) -> bool:
    """A conversion cast to its own types, or one that undoes another."""
    values: list[Value] = op.operands
    if [v.type for v in values] == [r.type for r in op.results]:
        rewriter.replace(op, values)
        return True
    source = values[0].defining_op if values else None
    if source is None or source.row.name != op.row.name or list(source.results) != values:
        return False
    if [v.type for v in source.operands] != [r.type for r in op.results]:
        return False
    rewriter.replace(op, source.operands)
    return True


PATTERNS: dict[str, tuple[Pattern, ...]] = {
    "tensor.extract": (extract,),
    "builtin.unrealized_conversion_cast": (cancel_casts,),
}
