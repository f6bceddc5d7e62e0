"""An op's operands (or results) by the groups that its row names.

In: an op.  Out: one list of values a name of `row.operands`, in order.  Rows with more than one group of variable size
need the attribute `operandSegmentSizes`.  InvalidIr when the counts don't fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from warpsmith.errors import InvalidIr
from warpsmith.ir.core.attributes import DenseArrayAttr
from warpsmith.ir.core.ssa import Operation, OpRow, Value

__all__ = ["SEGMENTS", "group_names", "has_segments", "operand_groups", "split"]

SEGMENTS = "operandSegmentSizes"

_T = TypeVar("_T")


def group_names(names: Sequence[str]) -> list[str]:
    """The names without their `*` and `?`."""
    return [n.rstrip("*?") for n in names]


def has_segments(row: OpRow) -> bool:
    """Whether ops of this row carry `operandSegmentSizes`."""
    return SEGMENTS in row.attributes or SEGMENTS in row.optional


def split(names: Sequence[str], values: Sequence[_T]) -> list[list[_T]] | None:
    """`values` by group, where at most one group varies in size; None when the count doesn't fit."""
    varying = [i for i, n in enumerate(names) if n[-1] in "*?"]
    spare = len(values) - len(names)
    if not varying:
        return [[v] for v in values] if spare == 0 else None
    at = varying[0]
    size = spare + 1
    if size < 0 or (size > 1 and names[at].endswith("?")):
        return None
    return [[v] for v in values[:at]] + [list(values[at : at + size])] + [[v] for v in values[at + size :]]


def operand_groups(op: Operation) -> list[list[Value]]:
    """One list of values an entry of `op.row.operands`."""
    names = op.row.operands
    sizes = op.attributes.get(SEGMENTS)
    if isinstance(sizes, DenseArrayAttr) and has_segments(op.row):
        return _by_sizes(op, names, sizes.values)
    if sum(n[-1] in "*?" for n in names) > 1:
        raise InvalidIr(
            f"{op.name} lacks {SEGMENTS}",
            help=f"it has {len(names)} groups of operands, several of them of variable size",
        )
    found = split(names, op.operands)
    if found is None:
        raise InvalidIr(f"{op.name} has {len(op.operands)} operands", help=f"it takes: {', '.join(names) or 'none'}")
    return found


def _by_sizes(op: Operation, names: Sequence[str], sizes: Sequence[int]) -> list[list[Value]]:
    if len(sizes) != len(names) or sum(sizes) != len(op.operands) or min(sizes, default=0) < 0:
        raise InvalidIr(
            f"{SEGMENTS} of {op.name} is {list(sizes)} for {len(op.operands)} operands",
            help=f"one size for each of: {', '.join(names)}; their sum is the number of operands",
        )
    groups: list[list[Value]] = []
    at = 0
    for name, size in zip(names, sizes, strict=True):
        if size != 1 and name[-1] not in "*?":
            raise InvalidIr(f"{SEGMENTS} of {op.name} gives {size} values to '{name}', which is one value")
        groups.append(op.operands[at : at + size])
        at += size
    return groups
