"""A map's domain while it is being worked on: bounds of variables, and constraints.

In: bounds and constraints.  Out: the same set of points, said more simply.  Differences from XLA's `indexing_map.cc`: a
constraint that no point satisfies empties the domain; what a sum may lose (`a * g + b`: b) is checked on both sides of
the interval; bounds that follow from `x mod m` use floor division on negative bounds; rounds repeat until nothing
changes, so simplifying twice gives the same as once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from warpsmith.indexing.expr import (
    Add,
    Const,
    Expr,
    FloorDiv,
    Mod,
    Mul,
    Var,
    add,
    mod,
    mul,
    split_coefficient,
)
from warpsmith.indexing.interval import INT64_MAX, INT64_MIN, Interval
from warpsmith.indexing.ranges import RangeEvaluator
from warpsmith.indexing.simplify import Simplifier, split_by_gcd

__all__ = ["Domain", "simplify_domain"]


class Domain:
    """Mutable bounds and constraints."""

    __slots__ = ("constraints", "dims", "is_empty", "symbols")

    def __init__(
        self,
        dims: Sequence[Interval],
        symbols: Sequence[Interval],
        constraints: dict[Expr, Interval] | None = None,
    ) -> None:
        self.dims = list(dims)
        self.symbols = list(symbols)
        self.constraints: dict[Expr, Interval] = {} if constraints is None else constraints
        self.is_empty = any(interval.is_empty for interval in (*self.dims, *self.symbols))

    def add_constraint(self, expr: Expr, interval: Interval) -> None:
        """Keeps the points where `expr` lies in `interval`.  On a bare variable this becomes its bound."""
        if self.is_empty:
            return
        if interval.is_empty:
            self.is_empty = True
        elif type(expr) is Const:
            self.is_empty = expr.value not in interval
        elif type(expr) is Var:
            bounds = self.symbols if expr.is_symbol else self.dims
            old = bounds[expr.id]
            if not interval.contains(old):
                bounds[expr.id] = old = old.intersect(interval)
            self.is_empty = old.is_empty
        else:
            known = self.constraints.get(expr)
            new = interval if known is None else known.intersect(interval)
            self.constraints[expr] = new
            self.is_empty = new.is_empty

    def bounds_of(self, variable: Var) -> Interval:
        """The values that a dim or symbol may have."""
        return (self.symbols if variable.is_symbol else self.dims)[variable.id]


def simplify_domain(domain: Domain) -> None:
    """Drops constraints that always hold, rewrites the others, and moves what it can into bounds."""
    changed = bool(domain.constraints)
    while changed and not domain.is_empty:
        simplifier = Simplifier(RangeEvaluator(domain.dims, domain.symbols))
        changed = _simplify_expressions(domain, simplifier)
        if domain.is_empty:
            return
        changed |= _simplify_intervals(domain, RangeEvaluator(domain.dims, domain.symbols))
        if not changed and not domain.is_empty:
            changed = _merge_mods(domain)


def _simplify_expressions(domain: Domain, simplifier: Simplifier) -> bool:
    """Simplifies each constraint's expression; drops those that always hold."""
    changed = False
    new = Domain(domain.dims, domain.symbols)
    for expr, interval in domain.constraints.items():
        simplified = simplifier.simplify(expr)
        lower, upper = simplifier.ranges.bounds_of(simplified)
        if interval.lower <= lower and upper <= interval.upper:
            changed = changed or simplified is not expr
            continue
        if upper < interval.lower or interval.upper < lower:
            new.is_empty = True
            break
        changed = changed or simplified is not expr
        new.add_constraint(simplified, interval)
    domain.dims, domain.symbols, domain.constraints = new.dims, new.symbols, new.constraints
    domain.is_empty = new.is_empty
    return changed


def _simplify_intervals(domain: Domain, ranges: RangeEvaluator) -> bool:
    """Moves constants, factors and divisors from each constraint's expression into its interval."""
    changed = False
    new = Domain(domain.dims, domain.symbols)
    for expr, interval in domain.constraints.items():
        step = _simplify_interval(expr, interval, ranges)
        while step is not None:
            changed = True
            expr, interval = step
            step = None if interval.is_empty else _simplify_interval(expr, interval, ranges)
        new.add_constraint(expr, interval)
        if new.is_empty:
            break
    domain.dims, domain.symbols, domain.constraints = new.dims, new.symbols, new.constraints
    domain.is_empty = new.is_empty
    return changed


def _finite(bound: int) -> bool:
    return INT64_MIN < bound < INT64_MAX


def _simplify_interval(expr: Expr, interval: Interval, ranges: RangeEvaluator) -> tuple[Expr, Interval] | None:
    """One step, or None when there is nothing to do."""
    if type(expr) is Add:
        last = expr.terms[-1]
        if type(last) is Const:
            return add(expr, -last.value), interval - last.value
        return _drop_remainder(expr, interval, ranges)
    if type(expr) is Mul and type(expr.rhs) is Const:
        c = expr.rhs.value
        low, high = (interval.lower, interval.upper) if c > 0 else (interval.upper, interval.lower)
        lower = -(low // -c) if _finite(low) else INT64_MIN
        upper = high // c if _finite(high) else INT64_MAX
        return expr.lhs, Interval(lower, upper)
    if type(expr) is FloorDiv and type(expr.rhs) is Const:
        c = expr.rhs.value
        lower = interval.lower * c if _finite(interval.lower) else INT64_MIN
        upper = (interval.upper + 1) * c - 1 if _finite(interval.upper) else INT64_MAX
        return expr.lhs, Interval(max(lower, INT64_MIN), min(upper, INT64_MAX))
    return None


def _drop_remainder(expr: Add, interval: Interval, ranges: RangeEvaluator) -> tuple[Expr, Interval] | None:
    """`l <= a*g + b <= u` says `L <= a <= K` when ceil((l - b) / g) is L and floor((u - b) / g) is K for all b."""
    multiplied, g, rest = split_by_gcd(expr.terms)
    if g == 1:
        return None
    low, high = ranges.bounds_of(add(*rest)) if rest else (0, 0)
    if not (_finite(low) and _finite(high)):
        return None
    lower, upper = interval.lower, interval.upper
    if _finite(lower):
        least = -((low - lower) // g)
        if least != -((high - lower) // g):
            return None
        lower = least
    if _finite(upper):
        most = (upper - low) // g
        if most != (upper - high) // g:
            return None
        upper = most
    return add(*[mul(base, c // g) for base, c in map(split_coefficient, multiplied)]), Interval(lower, upper)


def _merge_mods(domain: Domain) -> bool:
    """Merges `x mod 2 == r` and `x mod 3 == r` to `x mod 6 == r`; narrows x to the nearest values that fit."""
    groups: dict[tuple[Expr, int], list[tuple[Expr, int]]] = {}
    for expr, interval in domain.constraints.items():
        if type(expr) is Mod and type(expr.rhs) is Const and interval.is_point:
            groups.setdefault((expr.lhs, interval.lower), []).append((expr, expr.rhs.value))
    changed = False
    for (x, remainder), members in groups.items():
        m = math.lcm(*(modulus for _, modulus in members))
        if len(members) > 1 and m <= INT64_MAX:
            for expr, _ in members:
                del domain.constraints[expr]
            domain.add_constraint(mod(x, m), Interval.point(remainder))
            changed = True
        if type(x) is Var and not domain.is_empty:
            old = domain.bounds_of(x)
            lower = old.lower + (remainder - old.lower) % m if _finite(old.lower) else old.lower
            upper = old.upper - (old.upper - remainder) % m if _finite(old.upper) else old.upper
            if (lower, upper) != old.bounds:
                domain.add_constraint(x, Interval(lower, upper))
                changed = True
    return changed
