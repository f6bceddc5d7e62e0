"""One factor of a layout, and what can be said of several in a row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from warpsmith.errors import InvalidLayout
from warpsmith.indexing import Expr, floordiv, mod
from warpsmith.tile.layout.axes import AXES, Axis

__all__ = ["Amount", "Iter", "digits", "merged", "product"]

Amount = int | Expr
"""A number, or an expression of one."""


@dataclass(frozen=True, slots=True)
class Iter:
    """`extent` steps of `stride` along an axis (elements of memory, where none is named)."""

    extent: int
    stride: int
    axis: Axis = AXES["m"]

    def __post_init__(self) -> None:
        if self.extent < 1:
            raise InvalidLayout(f"an extent is at least 1, not {self.extent}")

    def along(self, stride: int, axis: Axis | None = None) -> Iter:
        """The same extent with another stride, and along another axis if one is given."""
        return Iter(self.extent, stride, axis or self.axis)


def product(iters: Iterable[Iter]) -> int:
    """The product of the extents: how many elements the iters run over."""
    return math.prod(each.extent for each in iters)


def digits(flat: Amount, extents: Sequence[int]) -> list[Amount]:
    """`flat` in mixed radix, the last digit fastest; the first takes all that is left, so that it may exceed its
    extent."""
    found: list[Amount] = []
    for extent in reversed(extents[1:]):
        found.append(_mod(flat, extent))
        flat = _div(flat, extent)
    return [flat, *reversed(found)] if extents else []


def _div(value: Amount, by: int) -> Amount:
    return value // by if isinstance(value, int) else floordiv(value, by)


def _mod(value: Amount, by: int) -> Amount:
    return value % by if isinstance(value, int) else mod(value, by)


def merged(iters: Sequence[Iter]) -> list[Iter]:
    """Neighbours that step on where the next one ends become one."""
    found: list[Iter] = []
    for each in iters:
        if found and found[-1].axis == each.axis and found[-1].stride == each.extent * each.stride:
            each = Iter(found.pop().extent * each.extent, each.stride, each.axis)
        found.append(each)
    return found
