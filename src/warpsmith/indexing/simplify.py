"""Rewrites of expressions that need the ranges of their variables.

In: an expression and a RangeEvaluator.  Out: an expression with the same value at every point of the domain.
Differences from XLA's `indexing_map.cc`, each of them sound where the original isn't, or stronger: only one inner
division is multiplied through a division at a time; the part of a sum that can't reach the next multiple is dropped
from a division also when it lies in another multiple than the first; neighbouring digits of a number (`x mod c` and
`(x floordiv c) mod b`) are put together again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from warpsmith.indexing.expr import (
    Add,
    Binary,
    Const,
    Expr,
    FloorDiv,
    Max,
    Min,
    Mod,
    Var,
    add,
    const,
    floordiv,
    mod,
    mul,
    rebuild,
    split_coefficient,
    terms_of,
)
from warpsmith.indexing.interval import INT64_MAX, INT64_MIN
from warpsmith.indexing.ranges import RangeEvaluator

__all__ = ["Simplifier", "split_by_gcd"]


def split_by_gcd(terms: Sequence[Expr]) -> tuple[list[Expr], int, list[Expr]]:
    """Splits a sum into `(multiplied, g, rest)`: terms with coefficients, whose gcd is g, and those without.

    When no coefficient but 1 occurs, or their gcd is 1, everything is rest and g is 1.
    """
    multiplied: list[Expr] = []
    rest: list[Expr] = []
    g = 0
    for term in terms:
        coefficient = split_coefficient(term)[1]
        if coefficient == 1:
            rest.append(term)
        else:
            multiplied.append(term)
            g = math.gcd(g, coefficient)
    return (multiplied, g, rest) if g > 1 else ([], 1, list(terms))


def _divided(terms: Sequence[Expr], divisor: int) -> list[Expr]:
    parts = [split_coefficient(term) for term in terms]
    return [mul(base, coefficient // divisor) for base, coefficient in parts]


class Simplifier:
    """Simplifies expressions over one domain to a fixpoint; remembers each node's result.

    `keep_points` leaves an expression that has one value as it is (else it becomes that constant).
    """

    __slots__ = ("_done", "_keep_points", "_open", "ranges")

    def __init__(self, ranges: RangeEvaluator, keep_points: bool = False) -> None:
        self.ranges = ranges
        self._keep_points = keep_points
        self._done: dict[Expr, Expr] = {}
        self._open: dict[Expr, Expr] = {}  # expression -> what it was rewritten to, while that is being simplified

    def simplify(self, expr: Expr) -> Expr:
        """The simplest form that the rules lead to."""
        done, rewritten = self._done, self._open
        if expr in done:
            return done[expr]
        stack = [expr]
        while stack:
            current = stack[-1]
            if current in done:
                stack.pop()
                continue
            new = rewritten.get(current)
            if new is None:
                waiting = [child for child in current.children if child not in done]
                if waiting:
                    stack += waiting
                    continue
                new = self._step(current)
            if new is current:
                done[current] = current
            elif new in done:
                done[current] = done[new]
            elif new in rewritten:
                done[current] = new  # two rules undo each other: either form is right, stop at this one
            else:
                rewritten[current] = new
                stack.append(new)
                continue
            rewritten.pop(current, None)
            stack.pop()
        return done[expr]

    def _step(self, expr: Expr) -> Expr:
        """One rewrite of an expression whose operands are simplified already."""
        if type(expr) is Const:
            return expr
        if not self._keep_points:
            value = self.ranges.point(expr)
            if value is not None:
                return const(value)
        if type(expr) is Var:
            return expr
        children = expr.children
        new = [self._done[child] for child in children]
        if any(a is not b for a, b in zip(new, children, strict=True)):
            return rebuild(expr, new)
        rule = _RULES.get(type(expr))
        return expr if rule is None else rule(self, expr)


def _simplify_sum(simplifier: Simplifier, expr: Expr) -> Expr:
    mods: list[Mod] = []
    divs: dict[Expr, int] = {}
    for term in terms_of(expr):
        base, coefficient = split_coefficient(term)
        if type(base) is Mod and type(base.rhs) is Const:
            mods.append(base)
        elif type(base) is FloorDiv:
            divs[base] = coefficient
    if mods and len(mods) + len(divs) > 1:
        merged = _merge_pairs(simplifier, expr, mods, divs)
        if merged is not None:
            return merged
    return _remainders(expr, divs) if divs else expr


def _merge_pairs(simplifier: Simplifier, expr: Expr, mods: Sequence[Mod], divs: dict[Expr, int]) -> Expr | None:
    # With q = x floordiv c:  (x mod c) * k + q * (c * k) == x * k
    #                         (x mod c) * k + (q mod b) * (c * k) == (x mod (b * c)) * k
    coefficients = dict(split_coefficient(term) for term in terms_of(expr))
    by_dividend = {remainder.lhs: remainder for remainder in mods}
    for remainder in mods:
        k, c = coefficients[remainder], _constant(remainder.rhs)
        whole = simplifier.simplify(floordiv(remainder.lhs, c))
        quotient, scale = split_coefficient(whole)
        if quotient in divs and divs[quotient] == scale * c * k:
            drop = add(mul(remainder, -k), mul(quotient, -scale * c * k))
            return add(expr, drop, mul(remainder.lhs, k))
        higher = by_dividend.get(whole)
        if higher is not None and coefficients[higher] == c * k:
            drop = add(mul(remainder, -k), mul(higher, -c * k))
            return add(expr, drop, mul(mod(remainder.lhs, c * _constant(higher.rhs)), k))
    return None


def _constant(expr: Expr) -> int:
    assert isinstance(expr, Const)
    return expr.value


def _simplify_mod(simplifier: Simplifier, expr: Expr) -> Expr:
    assert isinstance(expr, Mod)
    if type(expr.rhs) is not Const:
        return expr
    x, m = expr.lhs, expr.rhs.value
    lower, upper = simplifier.ranges.bounds_of(x)
    if INT64_MIN < lower <= upper < INT64_MAX and lower // m == upper // m:
        return add(x, -(lower // m) * m)
    if type(x) is not Add:
        return expr
    multiplied, g, rest = split_by_gcd(x.terms)
    g = math.gcd(g, m)
    if g == 1 or not rest:
        return expr
    # b stays below the step g of everything else, so it never carries
    b = add(*rest)
    lower, upper = simplifier.ranges.bounds_of(b)
    if lower < 0 or upper >= g:
        return expr
    return add(mod(add(*multiplied), m), b)


def _simplify_floordiv(simplifier: Simplifier, expr: Expr) -> Expr:
    assert isinstance(expr, FloorDiv)
    if type(expr.rhs) is not Const or type(expr.lhs) is not Add:
        return expr
    d, terms = expr.rhs.value, expr.lhs.terms
    multiplied, g, rest = split_by_gcd(terms)
    h = math.gcd(d, g)
    if h > 1:
        # g*a + b with b inside one block of h: floor((g*a + b) / d) == floor((g/h*a + b//h) / (d/h))
        lower, upper = simplifier.ranges.bounds_of(add(*rest)) if rest else (0, 0)
        if INT64_MIN < lower <= upper < INT64_MAX and lower // h == upper // h:
            return floordiv(add(*_divided(multiplied, h), lower // h), d // h)
    inner = [term for term in terms if type(term) is FloorDiv and type(term.rhs) is Const]
    if len(inner) == 1:
        # floor((floor(x / c) + r) / d) == floor((x + r*c) / (c*d)); of two such terms each would round on its own
        c = inner[0].rhs
        assert isinstance(c, Const)
        others = add(*[term for term in terms if term is not inner[0]])
        return floordiv(add(inner[0].lhs, mul(others, c)), c.value * d)
    return expr


def _simplify_extremum(simplifier: Simplifier, expr: Expr) -> Expr:
    assert isinstance(expr, Binary)
    small, great = (expr.lhs, expr.rhs) if type(expr) is Min else (expr.rhs, expr.lhs)
    # lhs is the answer when small <= great everywhere
    if simplifier.ranges.bounds_of(small)[1] <= simplifier.ranges.bounds_of(great)[0]:
        return expr.lhs
    if simplifier.ranges.bounds_of(great)[1] <= simplifier.ranges.bounds_of(small)[0]:
        return expr.rhs
    return expr


def _remainders(expr: Expr, divs: dict[Expr, int]) -> Expr:
    """Rewrites `-(x floordiv c) * (c * k)` to `(x mod c) * k - x * k`."""
    extra: list[Expr] = []
    for quotient, coefficient in divs.items():
        assert isinstance(quotient, FloorDiv)
        if coefficient > 0 or type(quotient.rhs) is not Const or coefficient % quotient.rhs.value:
            continue
        k = -coefficient // quotient.rhs.value
        extra.append(mul(quotient, -coefficient))
        extra.append(mul(quotient.lhs, -k))
        extra.append(mul(mod(quotient.lhs, quotient.rhs), k))
    return add(expr, *extra) if extra else expr


_RULES: Final[dict[type[Expr], Callable[[Simplifier, Expr], Expr]]] = {
    Add: _simplify_sum,
    Mod: _simplify_mod,
    FloorDiv: _simplify_floordiv,
    Max: _simplify_extremum,
    Min: _simplify_extremum,
}
