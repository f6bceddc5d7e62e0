"""Extents that are expressions of symbols: `n * 4`, `n // 2`, `m + n`.

In: the value that an author gave as an extent.  Out: `Extent`, which the arguments' checks evaluate for known symbols,
and solve for one that isn't known yet where the expression is linear in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from warpsmith.arrays import Array
from warpsmith.errors import InvalidTileProgram
from warpsmith.ir.core.attributes import IntegerAttr
from warpsmith.ir.core.ssa import BlockArgument, Value
from warpsmith.ir.core.types import numpy_dtype
from warpsmith.tile.model import affine

__all__ = ["Extent", "extent_of"]


@dataclass(frozen=True, eq=False, slots=True)
class Extent:
    """An extent that is computed from `symbols`; `text` as a reader would write it."""

    text: str
    value: Value
    symbols: tuple[str, ...]

    def __str__(self) -> str:
        return self.text

    def evaluate(self, known: Mapping[str, int]) -> int:
        """The extent, all of whose symbols are known."""
        return int(_evaluated(self.value, known).reshape(-1)[0])

    def solve(self, extent: int, known: Mapping[str, int]) -> tuple[str, int] | None:
        """The one symbol that isn't known, where the extent says what it is; None where it doesn't."""
        sum_ = affine.linear(self.value)
        rest, unknown = extent - sum_.constant, list[tuple[str, int]]()
        for key, factor in sum_.terms.items():
            atom = sum_.values[key]
            if not isinstance(atom, BlockArgument):
                return None
            if atom.name in known:
                rest -= factor * known[atom.name]
            else:
                unknown.append((atom.name, factor))
        if len(unknown) != 1:
            return None
        name, factor = unknown[0]
        return (name, rest // factor) if rest % factor == 0 else None


def extent_of(value: Value) -> str | Extent:
    """A symbolic extent: the symbol's name, or an expression of symbols.  InvalidTileProgram for another value."""
    whole = value
    while (op := whole.defining_op) is not None and op.name == "arith.index_cast":
        whole = op.operands[0]
    if isinstance(whole, BlockArgument):
        return whole.name
    from warpsmith.tile.printers.expressions import value_text

    symbols: list[str] = []
    stack = [value]
    while stack:
        each = stack.pop()
        if isinstance(each, BlockArgument):
            symbols += [] if each.name in symbols else [each.name]
            continue
        op = each.defining_op
        if op is None or (op.row.numpy is None and not op.name.endswith(".constant")):
            raise InvalidTileProgram(
                "an extent is computed from symbols and numbers alone", help="n = T.int32() makes a symbol"
            )
        stack.extend(reversed(op.operands))
    return Extent(value_text(value), value, tuple(symbols))


def _evaluated(value: Value, known: Mapping[str, int]) -> Array:
    if isinstance(value, BlockArgument):
        return np.array([known[value.name]]).astype(numpy_dtype(value.type))
    op = value.defining_op
    assert op is not None
    constant = op.attributes.get("value")
    if isinstance(constant, IntegerAttr):
        return np.array([constant.value]).astype(numpy_dtype(value.type))
    compute = op.row.numpy
    assert compute is not None
    return np.asarray(compute(op, *(_evaluated(each, known) for each in op.operands)))
