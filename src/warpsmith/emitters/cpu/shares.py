"""How items of work are dealt out to the cores, the same way in all CPU emitters but the loop.

In: how many items there are, and how many elements one stands for.  Out: work groups, and items to each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.indexing import Expr, IndexingMap, Interval, Variable, add, delinearize, dim, mul, symbol

__all__ = ["Shares", "groups_for", "shares"]

ONE_PIECE = 1 << 14  # elements that aren't worth handing to other cores
LARGE = 1 << 16  # elements a work group takes at most, if an item has no more
GROUPS_PER_CORE = 4  # so that a slow core holds nobody up


@dataclass(frozen=True, slots=True)
class Shares:
    """Each of `workgroups` takes `each` neighbouring items of `items`, which are numbered over `sizes`, row-major."""

    sizes: tuple[int, ...]
    workgroups: int
    each: int

    @property
    def items(self) -> int:
        """How many items there are in all."""
        count = 1
        for size in self.sizes:
            count *= size
        return count

    def map(self) -> IndexingMap:
        """(workgroup_id)[item] -> the item's index over `sizes`."""
        number = add(mul(dim(0), self.each), symbol(0))
        return self.map_of(number, [Variable("item", Interval.of_size(self.each))])

    def map_of(self, number: Expr, symbols: Sequence[Variable]) -> IndexingMap:
        """The map from (workgroup; symbols) to the indices of item `number`, an expression of them."""
        return IndexingMap.make(
            [Variable("workgroup_id", Interval.of_size(self.workgroups))],
            delinearize(number, self.sizes),
            range_vars=symbols,
            constraints=[(number, Interval.of_size(self.items))],
        ).simplify()


def groups_for(elements: int, cores: int) -> int:
    """How many work groups so many elements are worth."""
    if elements <= ONE_PIECE:
        return 1
    return max(cores if elements < LARGE * cores else GROUPS_PER_CORE * cores, elements // LARGE)


def shares(sizes: Sequence[int], cost: int, cores: int) -> Shares:
    """Shares of items that stand for `cost` elements each."""
    items = 1
    for size in sizes:
        items *= size
    work = items * max(1, cost)
    if work <= ONE_PIECE or items <= 1:
        return Shares(tuple(sizes), 1, max(1, items))
    groups = min(items, groups_for(work, cores))
    each = -(-items // groups)
    return Shares(tuple(sizes), -(-items // each), each)
