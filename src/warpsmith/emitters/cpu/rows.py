"""Arrays as rows of neighbours in memory, dealt out to work groups: the loops of the emitters that copy.

    outer loop: the rows of a work group        inner loop: a row's elements, or a piece of them where rows are few

In: a shape, or dims.  Out: `Rows`, and loops over them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from warpsmith.emitters.elemental import ElementalEmitter
from warpsmith.indexing import IndexingMap, Interval, Variable, add, dim, floordiv, mod, mul, symbol
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.dialects import gpu

__all__ = ["Rows", "row_loop"]

LINE = 64  # elements: pieces of a row are multiples of it, whole lines of every type

Body = Callable[[Value, Value, Sequence[Value]], Sequence[Value]]
"""(row, element of it, carried) -> carried."""


@dataclass(frozen=True, slots=True)
class Rows:
    """`count` rows of `length` elements; each of `workgroups` takes `each` rows, or a piece of `piece` elements."""

    count: int
    length: int
    workgroups: int

    @property
    def pieces(self) -> int:
        """Into how many a row is cut."""
        return 1 if self.count >= self.workgroups else self.workgroups // max(1, self.count)

    @property
    def each(self) -> int:
        """How many rows a workgroup takes."""
        return max(1, -(-self.count // (self.workgroups // self.pieces)))

    @property
    def piece(self) -> int:
        """How many elements of a row a workgroup takes: whole cache lines, where rows are cut into pieces."""
        if self.pieces == 1:
            return max(1, self.length)
        return -(-self.length // (self.pieces * LINE)) * LINE

    def _groups(self) -> list[Variable]:
        return [Variable("workgroup_id", Interval.of_size(self.workgroups))]

    def map(self) -> IndexingMap:
        """(workgroup_id)[row, i] -> (row, element of it)."""
        row = add(mul(floordiv(dim(0), self.pieces), self.each), symbol(0))
        element = add(mul(mod(dim(0), self.pieces), self.piece), symbol(1))
        return IndexingMap.make(
            self._groups(),
            [row, element],
            range_vars=[Variable("row", Interval.of_size(self.each)), Variable("i", Interval.of_size(self.piece))],
            constraints=[(row, Interval.of_size(self.count)), (element, Interval.of_size(self.length))],
        ).simplify()

    def outer(self) -> IndexingMap:
        """(workgroup_id)[row] -> row."""
        row = add(mul(floordiv(dim(0), self.pieces), self.each), symbol(0))
        return IndexingMap.make(
            self._groups(),
            [row],
            range_vars=[Variable("row", Interval.of_size(self.each))],
            constraints=[(row, Interval.of_size(self.count))],
        ).simplify()

    def inner(self) -> IndexingMap:
        """(workgroup_id)[i] -> element of a row."""
        element = add(mul(mod(dim(0), self.pieces), self.piece), symbol(0))
        return IndexingMap.make(
            self._groups(),
            [element],
            range_vars=[Variable("i", Interval.of_size(self.piece))],
            constraints=[(element, Interval.of_size(self.length))],
        ).simplify()


def row_loop(e: ElementalEmitter, group: Value, rows: Rows, inits: Sequence[Value], body: Body) -> list[Value]:
    """`body` for each element of a work group's rows, in memory order; what it carries."""
    outer = gpu.loop(e.b, [group], rows.outer(), inits, result_names=["row"])
    with e.inside(outer.body):
        _, row, *carried = outer.body.args
        inner = gpu.loop(e.b, [group], rows.inner(), carried, result_names=["i"])
        with e.inside(inner.body):
            _, element, *now = inner.body.args
            gpu.yield_(e.b, body(row, element, now))
        gpu.yield_(e.b, inner.results)
    return list(outer.results)
