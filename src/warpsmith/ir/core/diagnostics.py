"""How an InvalidIr about one op reads, and what the rules of ops share: needs that raise it, and reading attributes.

In: the op, and the cause or what it needs.  Out: the error (the op's place, its name and HLO names, its text if short),
or nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.errors import InvalidIr, Span
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core import types as ty
from warpsmith.ir.core.ssa import Block, Operation, Region, Value
from warpsmith.ir.core.types import Type

__all__ = [
    "entry",
    "int_attr",
    "ints",
    "invalid",
    "need",
    "need_index",
    "need_types",
    "need_yield",
    "types_of",
    "types_text",
]

_LONGEST = 300


def invalid(op: Operation, cause: str, help: str | None = None) -> InvalidIr:
    """The error to raise about `op`; `cause` completes the sentence "OP: ..."."""
    location = op.location
    names = f" (from {', '.join(location.names)})" if location.names else ""
    text = "" if op.regions else str(op)
    shown = f", in '{text}'" if text and len(text) <= _LONGEST else ""
    span = Span(location.file, location.line, location.column) if location.line else None
    return InvalidIr(f"{op.row.name}{names}: {cause}{shown}", span=span, help=help)


def types_of(values: Sequence[Value]) -> list[Type]:
    """The types of values."""
    return [v.type for v in values]


def types_text(types: Sequence[Type]) -> str:
    """Types as a message names them: `(i32, f32)`."""
    return f"({', '.join(map(str, types))})"


def need_types(op: Operation, given: Sequence[Type], wanted: Sequence[Type], what: str) -> None:
    """InvalidIr unless types are these; `what` names them (plural)."""
    if len(given) != len(wanted) or any(g is not w for g, w in zip(given, wanted, strict=True)):
        raise invalid(op, f"{what} are {types_text(given)}, but {types_text(wanted)} is needed")


def need(op: Operation, value: Value, wanted: bool, what: str) -> None:
    """InvalidIr for an operand that isn't `wanted`; `what` says what is."""
    if not wanted:
        raise invalid(op, f"an operand of type {value.type} where {what} is needed")


def need_index(op: Operation, values: Sequence[Value]) -> None:
    """InvalidIr unless all are of index type."""
    for value in values:
        need(op, value, value.type is ty.INDEX, "an index")


def int_attr(op: Operation, name: str) -> int:
    """The number of an integer attribute; InvalidIr if it's another."""
    found = op.attributes[name]
    if not isinstance(found, at.IntegerAttr):
        raise invalid(op, f"attribute '{name}' is no integer")
    return found.value


def ints(op: Operation, name: str) -> tuple[int, ...]:
    """The numbers of a dense array, or of an array of integers."""
    found = op.attributes[name]
    if isinstance(found, at.DenseArrayAttr):
        return found.values
    if isinstance(found, at.ArrayAttr):
        values = [i.value for i in found.items if isinstance(i, at.IntegerAttr)]
        if len(values) == len(found.items):
            return tuple(values)
    raise invalid(op, f"attribute '{name}' is no list of integers")


def entry(op: Operation, region: Region) -> Block:
    """A region's first block; InvalidIr if it has none."""
    if not region.blocks:
        raise invalid(op, "an empty region", "its region has a block")
    return region.blocks[0]


def need_yield(op: Operation, region: Region, name: str, wanted: Sequence[Type]) -> None:
    """The region ends in `name`, which gives `wanted`."""
    last = entry(op, region).last
    if last is None or last.row.name != name:
        raise invalid(
            op, f"its region ends in {last.row.name if last is not None else 'nothing'}", f"it ends in {name}"
        )
    need_types(last, types_of(last.operands), wanted, "the values given")
