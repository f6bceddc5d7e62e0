"""The range of an expression, from the bounds of its variables.

In: bounds of dimensions and symbols, and optionally constraints (expression -> interval) that hold on the domain.
Out: intervals that hold every value the expression takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from warpsmith.errors import IndexingError
from warpsmith.indexing.expr import Add, Binary, CeilDiv, Const, Expr, FloorDiv, Max, Min, Mod, Mul, Var
from warpsmith.indexing.interval import (
    INT64_MAX,
    INT64_MIN,
    Bounds,
    Interval,
    add_bounds,
    floordiv_bounds,
    mod_bounds,
    mul_bounds,
)
from warpsmith.indexing.nodes import pending

__all__ = ["RangeEvaluator"]


def _ceildiv_bounds(a: Bounds, b: Bounds) -> Bounds:
    return mul_bounds(floordiv_bounds(mul_bounds(a, (-1, -1)), b), (-1, -1))


_BINARY: Final[dict[type[Expr], Callable[[Bounds, Bounds], Bounds]]] = {
    Mul: mul_bounds,
    Mod: mod_bounds,
    FloorDiv: floordiv_bounds,
    CeilDiv: _ceildiv_bounds,
    Max: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    Min: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
}


class RangeEvaluator:
    """Computes ranges; remembers each node's.  The bounds given must not change during its life."""

    __slots__ = ("_constraints", "_dims", "_memo", "_symbols")

    def __init__(
        self,
        dims: Sequence[Interval],
        symbols: Sequence[Interval] = (),
        constraints: Mapping[Expr, Interval] | None = None,
    ) -> None:
        self._dims = [interval.bounds for interval in dims]
        self._symbols = [interval.bounds for interval in symbols]
        self._constraints = constraints or {}
        self._memo: dict[Expr, Bounds] = {}

    def range_of(self, expr: Expr) -> Interval:
        """An interval that holds every value of the expression.  A variable without bounds is an IndexingError."""
        return Interval(*self.bounds_of(expr))

    def bounds_of(self, expr: Expr) -> Bounds:
        """As `range_of`, as a bare pair."""
        memo = self._memo
        known = memo.get(expr)
        if known is not None:
            return known
        if all(child in memo for child in expr.children):
            memo[expr] = bounds = self._compute(expr)
            return bounds
        for node in pending((expr,), memo):
            memo[node] = self._compute(node)
        return memo[expr]

    def point(self, expr: Expr) -> int | None:
        """The only value that the expression takes, if that is known."""
        lower, upper = self.bounds_of(expr)
        return lower if lower == upper and INT64_MIN < lower < INT64_MAX else None

    def _compute(self, node: Expr) -> Bounds:
        memo = self._memo
        if type(node) is Const:
            return node.value, node.value
        if type(node) is Var:
            source = self._symbols if node.is_symbol else self._dims
            if node.id >= len(source):
                raise IndexingError(f"no bounds for {'symbol' if node.is_symbol else 'dimension'} {node.id}")
            return source[node.id]
        if type(node) is Add:
            bounds = memo[node.terms[0]]
            for term in node.terms[1:]:
                bounds = add_bounds(bounds, memo[term])
        else:
            assert isinstance(node, Binary)
            bounds = _BINARY[type(node)](memo[node.lhs], memo[node.rhs])
        constraint = self._constraints.get(node)
        if constraint is not None:
            bounds = max(bounds[0], constraint.lower), min(bounds[1], constraint.upper)
        return bounds
