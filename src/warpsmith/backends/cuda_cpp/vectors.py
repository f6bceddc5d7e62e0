"""Vectors in registers: `Vec<T, N>`, an array of N lanes that is moved as one."""

from __future__ import annotations

from warpsmith.backends.cuda_cpp.types import Expr, atom, call
from warpsmith.backends.cuda_cpp.writer import Handler, Statement, Writer
from warpsmith.ir.core.attributes import DenseArrayAttr
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.types import VectorType
from warpsmith.ir.dialects import vector

__all__ = ["EXPRESSIONS", "STATEMENTS"]


def _position(w: Writer, op: Operation, first: int) -> str:
    static = op.attributes["static_position"]
    assert isinstance(static, DenseArrayAttr)
    if static.values[0] == vector.DYNAMIC:
        return w.value(op.operands[first]).text
    return str(static.values[0])


def _extract(w: Writer, op: Operation) -> Expr:
    name = w.named_operand(op.operands[0])
    return atom(f"{name}[{_position(w, op, 1)}]", w.type(op.result.type))


def _insert(w: Writer, op: Operation) -> None:
    """In place where the destination is a variable that nothing else reads."""
    value, dest = op.operands[0], op.operands[1]
    found = w.value(dest)
    if not (found.text in w.mutable and dest.has_one_use):
        found = w.declare(op.result, found, const=False)
    else:
        w.bind(op.result, found)
    w.line(f"{found.text}[{_position(w, op, 2)}] = {w.converted(w.value(value), value.type)};")


def _from_elements(w: Writer, op: Operation) -> Expr:
    type = w.type(op.result.type)
    lanes = ", ".join(w.converted(w.value(v), v.type, narrow=True) for v in op.operands)
    return atom(f"{type.name}{{{lanes}}}", type)


def _broadcast(w: Writer, op: Operation) -> Expr:
    type = op.result.type
    assert isinstance(type, VectorType)
    c = w.type(type)
    lane = w.converted(w.value(op.operands[0]), type.element, narrow=True)
    return atom(f"{c.name}{{{', '.join([lane] * type.elements)}}}", c)


def _shuffle(w: Writer, op: Operation) -> Expr:
    mask = op.attributes["mask"]
    assert isinstance(mask, DenseArrayAttr)
    first = op.operands[0].type
    assert isinstance(first, VectorType)
    names = [w.named_operand(v) for v in op.operands]
    type = w.type(op.result.type)
    count = first.elements
    lanes = [f"{names[0]}[{i}]" if i < count else f"{names[1]}[{i - count}]" for i in mask.values]
    return atom(f"{type.name}{{{', '.join(lanes)}}}", type)


def _bitcast(w: Writer, op: Operation) -> Expr:
    type = w.type(op.result.type)
    w.unit.need("bit_cast")
    return call(f"bit_cast<{type.name}>", (atom(w.named_operand(op.operands[0]), type),), type)


EXPRESSIONS: dict[str, Handler] = {
    "vector.extract": _extract,
    "vector.from_elements": _from_elements,
    "vector.broadcast": _broadcast,
    "vector.shuffle": _shuffle,
    "vector.bitcast": _bitcast,
}
STATEMENTS: dict[str, Statement] = {"vector.insert": _insert}
