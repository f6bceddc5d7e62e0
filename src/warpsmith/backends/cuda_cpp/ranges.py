"""Which indices are known not to be negative: divided and shifted they need no cast."""

from __future__ import annotations

from warpsmith.ir.analysis.ranges import range_of
from warpsmith.ir.core.ssa import Value

__all__ = ["Ranges"]

_ALWAYS = frozenset(
    (
        "gpu.thread_id",
        "gpu.block_id",
        "gpu.block_dim",
        "gpu.grid_dim",
        "gpu.lane_id",
        "arith.index_castui",
        "arith.extui",
    )
)
_ALL = frozenset(
    f"arith.{n}" for n in ("addi", "muli", "divui", "divsi", "remui", "minsi", "ori", "shli", "shrui", "shrsi")
)
_ANY = frozenset(("arith.andi", "arith.maxsi", "arith.remui"))
"""Ops whose results aren't negative if all (or any) operands aren't; indices don't overflow."""


class Ranges:
    """Remembers what it has found."""

    def __init__(self) -> None:
        self._known: dict[Value, bool] = {}

    def is_nonnegative(self, value: Value) -> bool:
        """Whether an integer is known not to be negative."""
        found = self._known.get(value)
        if found is None:
            self._known[value] = False  # what depends on itself isn't known
            found = self._known[value] = self._find(value)
        return found

    def _find(self, value: Value) -> bool:
        known = range_of(value)
        if known is not None and known.lower >= 0:
            return True
        op = value.defining_op
        if op is None:
            parent = value.parent_block.parent_op if value.parent_block is not None else None
            is_counter = parent is not None and parent.name == "scf.for" and value is parent.body.args[0]
            return is_counter and parent is not None and self.is_nonnegative(parent.operands[0])
        if op.name in _ALWAYS:
            return True
        if op.name == "arith.select":
            return all(map(self.is_nonnegative, op.operands[1:]))
        if op.name in _ANY and any(map(self.is_nonnegative, op.operands)):
            return True
        return op.name in _ALL and all(map(self.is_nonnegative, op.operands))
