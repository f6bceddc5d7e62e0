"""One element of an elementwise primitive: operands to the type it computes in, the formula, the result to dst's
type."""

from __future__ import annotations

from collections.abc import Mapping

from warpsmith.ir.core.ssa import Value
from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.frontend.scalars import Operand
from warpsmith.tile.frontend.values import Scalar
from warpsmith.tile.model.ops import TABLE, compute_type

__all__ = ["ELEMENTWISE", "compute", "source_roles"]

ELEMENTWISE: tuple[str, ...] = tuple(
    name for name, row in TABLE.items() if row.kind in ("unary", "binary", "ternary", "cast", "fill")
)


def source_roles(call: CallContext) -> list[str]:
    """The operands that are read from buffers; a unary primitive without a source reads its destination."""
    if call.row.kind == "fill":
        return []
    found = [role for role in call.regions if role != "dst"]
    return found if "src" in found or call.row.kind != "unary" else ["dst", *found]


def compute(call: CallContext, values: Mapping[str, Operand]) -> Value:
    """The element of dst from the elements of the sources (a unary one's may be called dst)."""
    scalars, row = call.scalars, call.row
    dst = call.region("dst").buffer.type
    given = {role: each for role, each in call.operands.items() if isinstance(each, Scalar)}
    operands: dict[str, Operand] = {**given, **values}
    if row.kind in ("cast", "copy"):
        return scalars.cast(operands["src"], dst).value
    if row.kind == "fill":
        return scalars.cast(row.evaluate(scalars, [operands[name] for name in row.sources]), dst).value
    if "src" in row.sources and "src" not in operands:
        operands["src"] = operands.pop("dst")
    types = [
        each.type
        for role, each in operands.items()
        if isinstance(each, Scalar) and role in values and role != "condition"
    ]
    kind = compute_type(dst, types)
    ready: list[Operand] = []
    for name in row.sources:
        if name in operands and name not in ("bias", "scale"):
            operand = operands[name]
            ready.append(scalars.condition(operand) if name == "condition" else scalars.cast(operand, kind))
    for name, operator in (("scale", "mul"), ("bias", "add")):
        if name in operands:
            ready[0] = scalars.binary(operator, ready[0], scalars.cast(operands[name], kind))
    return scalars.cast(row.evaluate(scalars, ready), dst).value
