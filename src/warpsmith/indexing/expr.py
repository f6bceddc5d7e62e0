"""Integer expressions over dimensions and symbols: the constructors, which give canonical form.

In: integers, variables, other expressions.  Out: expressions in canonical form, so that two expressions that
are built alike are one object and compare by identity.  The rules here hold for all values of the variables; those that
need ranges are in `simplify`.

Canonical form: a sum is one node with its terms sorted and its constant last, equal terms collected, and
`(x floordiv c) * (c * k) + (x mod c) * k` merged to `x * k`; a product has its constant on the right and is
spread over sums; divisors and moduli are positive.  The order of terms is the order of the node kinds
(sum, product, mod, floordiv, ceildiv, max, min, variable, constant), then that of the parts; it is what decides
how maps print.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from typing import Final

from warpsmith.errors import IndexingError
from warpsmith.indexing.nodes import (
    BUILDERS,
    Add,
    Binary,
    CeilDiv,
    Const,
    Expr,
    FloorDiv,
    Max,
    Min,
    Mod,
    Mul,
    OrderKey,
    Var,
    const,
    dim,
    make_binary,
    make_sum,
    split_coefficient,
    symbol,
    terms_of,
)

__all__ = [
    "BUILDERS",
    "Add",
    "Binary",
    "CeilDiv",
    "Const",
    "Expr",
    "FloorDiv",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "Var",
    "add",
    "ceildiv",
    "const",
    "dim",
    "floordiv",
    "maximum",
    "minimum",
    "mod",
    "mul",
    "rebuild",
    "split_coefficient",
    "symbol",
    "terms_of",
]

_LONG: Final = 32  # terms of a sum from which adding one term is done by insertion


def _as_expr(value: Expr | int) -> Expr:
    return const(value) if isinstance(value, int) else value


def _scaled(base: Expr, coefficient: int) -> Expr:
    """A term of a sum: base is no sum, no constant, and has no coefficient of its own."""
    return base if coefficient == 1 else make_binary(Mul, base, const(coefficient))


def add(*operands: Expr | int) -> Expr:
    """The sum of any number of operands."""
    if len(operands) == 1:
        return _as_expr(operands[0])
    if len(operands) == 2:
        longer = _appended(operands[0], operands[1])
        if longer is not None:
            return longer
    constant = 0
    coefficients: dict[Expr, int] = {}
    has_mod = has_div = False
    for operand in operands:
        if isinstance(operand, int):
            constant += operand
            continue
        for term in operand.terms if type(operand) is Add else (operand,):
            if type(term) is Const:
                constant += term.value
                continue
            base, coefficient = term, 1
            if type(term) is Mul and type(term.rhs) is Const:
                base, coefficient = term.lhs, term.rhs.value
            coefficients[base] = coefficients.get(base, 0) + coefficient
            has_mod = has_mod or type(base) is Mod
            has_div = has_div or type(base) is FloorDiv
    if has_mod and has_div:
        constant += _merge_quotients_and_remainders(coefficients)
    terms = [_scaled(base, coefficient) for base, coefficient in coefficients.items() if coefficient]
    if not terms:
        return const(constant)
    if len(terms) > 1:
        terms.sort(key=_order_of)
    if constant:
        terms.append(const(constant))
    return terms[0] if len(terms) == 1 else make_sum(tuple(terms))


def _order_of(expr: Expr) -> OrderKey:
    return expr.order


def _appended(total: Expr | int, term: Expr | int) -> Expr | None:
    """A long sum plus one plain term, by insertion: adding up one by one mustn't look at all terms each time."""
    if type(total) is not Add or len(total.terms) < _LONG or not isinstance(term, Expr):
        return None
    base = split_coefficient(term)[0]
    if type(base) in (Const, Add, Mod, FloorDiv):
        return None  # may merge with another term
    for order in (base.order, (Mul.rank, base.order)):
        at = bisect.bisect_left(total.terms, order, key=_order_of)
        if at < len(total.terms) and split_coefficient(total.terms[at])[0] is base:
            return None
    at = bisect.bisect_left(total.terms, term.order, key=_order_of)
    masks = total.dim_mask | term.dim_mask, total.symbol_mask | term.symbol_mask, max(total.depth, term.depth + 1)
    return make_sum((*total.terms[:at], term, *total.terms[at:]), masks)


def _merge_quotients_and_remainders(coefficients: dict[Expr, int]) -> int:
    """Merges `(x mod c) * k + (x floordiv c) * (c * k)` to `x * k`, in place.  Returns the constant that came out."""
    constant = 0
    work = [base for base in coefficients if type(base) is Mod]
    while work:
        remainder = work.pop()
        k = coefficients.get(remainder, 0)
        if not k or type(remainder.rhs) is not Const:
            continue
        quotient, scale = split_coefficient(floordiv(remainder.lhs, remainder.rhs))
        if type(quotient) is not FloorDiv or coefficients.get(quotient) != scale * remainder.rhs.value * k:
            continue
        del coefficients[quotient], coefficients[remainder]
        for term in terms_of(remainder.lhs):
            if type(term) is Const:
                constant += term.value * k
                continue
            base, coefficient = split_coefficient(term)
            coefficients[base] = coefficients.get(base, 0) + coefficient * k
            if type(base) is Mod:
                work.append(base)
            elif type(base) is FloorDiv:
                work += [other for other in coefficients if type(other) is Mod]
    return constant


def mul(lhs: Expr | int, rhs: Expr | int) -> Expr:
    """The product."""
    a, b = _as_expr(lhs), _as_expr(rhs)
    if type(a) is Const:
        a, b = b, a
    if type(b) is Const:
        factor = b.value
        if type(a) is Const:
            return const(a.value * factor)
        if factor == 0:
            return b
        if factor == 1:
            return a
        if type(a) is Add:
            return add(*[mul(term, b) for term in a.terms])
        base, coefficient = split_coefficient(a)
        return _scaled(base, coefficient * factor)
    if type(a) is Add:
        return add(*[mul(term, b) for term in a.terms])
    if type(b) is Add:
        return add(*[mul(a, term) for term in b.terms])
    a, p = split_coefficient(a)
    b, q = split_coefficient(b)
    factors = sorted((*_factors(a), *_factors(b)), key=_order_of)
    product = factors[0]
    for factor_expr in factors[1:]:
        product = make_binary(Mul, product, factor_expr)
    return _scaled(product, p * q)


def _factors(expr: Expr) -> list[Expr]:
    found: list[Expr] = []
    while type(expr) is Mul:
        found.append(expr.rhs)
        expr = expr.lhs
    found.append(expr)
    return found


def floordiv(lhs: Expr | int, rhs: Expr | int) -> Expr:
    """The quotient, rounded towards minus infinity.  A literal divisor 0 is an IndexingError."""
    a, b = _as_expr(lhs), _as_expr(rhs)
    if type(b) is not Const:
        return a if a is const(0) else make_binary(FloorDiv, a, b)
    d = b.value
    if d == 0:
        raise IndexingError("division by zero in an index expression")
    if d < 0:
        return floordiv(mul(a, -1), -d)
    if d == 1:
        return a
    kind = type(a)
    if type(a) is Const:
        return const(a.value // d)
    if kind is Add:
        return _floordiv_sum(terms_of(a), d)
    if type(a) is Mul:
        base, coefficient = split_coefficient(a)
        g = math.gcd(coefficient, d)
        if g > 1:
            return floordiv(mul(base, coefficient // g), d // g)
    elif type(a) is FloorDiv and type(a.rhs) is Const:
        return floordiv(a.lhs, a.rhs.value * d)
    elif type(a) is Mod and type(a.rhs) is Const and a.rhs.value % d == 0:
        return mod(floordiv(a.lhs, d), a.rhs.value // d)
    return make_binary(FloorDiv, a, b)


def _floordiv_sum(terms: Sequence[Expr], d: int) -> Expr:
    outside: list[Expr] = []  # quotients of the terms that d divides
    inside: list[Expr] = []
    constant, common = 0, d
    for term in terms:
        if type(term) is Const:
            outside.append(const(term.value // d))
            constant = term.value % d
            continue
        base, coefficient = split_coefficient(term)
        if coefficient % d == 0:
            outside.append(mul(base, coefficient // d))
        else:
            inside.append(term)
            common = math.gcd(common, coefficient)
    if not inside:
        return add(*outside, 0)
    if common > 1:
        # floor((g * x + r) / (g * d')) == floor((x + floor(r / g)) / d')
        inside = [_divided(term, common) for term in inside]
        constant //= common
        d //= common
    dividend = add(*inside, constant)
    if len(outside) == 0 and common == 1:
        return make_binary(FloorDiv, dividend, const(d))
    quotient = make_binary(FloorDiv, dividend, const(d)) if type(dividend) is Add and d > 1 else floordiv(dividend, d)
    return add(*outside, quotient)


def _divided(term: Expr, divisor: int) -> Expr:
    base, coefficient = split_coefficient(term)
    return _scaled(base, coefficient // divisor)


def mod(lhs: Expr | int, rhs: Expr | int) -> Expr:
    """The remainder of floor division.  A literal modulus below 1 is an IndexingError."""
    a, b = _as_expr(lhs), _as_expr(rhs)
    if type(b) is not Const:
        return a if a is const(0) else make_binary(Mod, a, b)
    m = b.value
    if m < 1:
        raise IndexingError(f"the modulus of an index expression must be positive, not {m}")
    if type(a) is Const:
        return const(a.value % m)
    if m == 1:
        return const(0)
    if type(a) is Add:
        return _mod_sum(a, m)
    if type(a) is Mul:
        base, coefficient = split_coefficient(a)
        g = math.gcd(coefficient, m)
        if g > 1:
            return mul(mod(mul(base, coefficient // g), m // g), g)
    elif type(a) is Mod and type(a.rhs) is Const and a.rhs.value % m == 0:
        return mod(a.lhs, m)
    return make_binary(Mod, a, b)


def _mod_sum(a: Add, m: int) -> Expr:
    kept: list[Expr] = []
    constant, common = 0, m
    for term in a.terms:
        if type(term) is Const:
            constant = term.value % m
            continue
        coefficient = split_coefficient(term)[1]
        if coefficient % m:
            kept.append(term)
            common = math.gcd(common, coefficient)
    if not kept:
        return const(constant)
    common = math.gcd(common, constant)
    if common > 1:
        return mul(mod(add(*[_divided(term, common) for term in kept], constant // common), m // common), common)
    dividend = add(*kept, constant)
    return make_binary(Mod, dividend, const(m)) if type(dividend) is Add else mod(dividend, m)


def ceildiv(lhs: Expr | int, rhs: Expr | int) -> Expr:
    """The quotient, rounded towards plus infinity.  A literal divisor 0 is an IndexingError."""
    a, b = _as_expr(lhs), _as_expr(rhs)
    if type(b) is not Const:
        return a if a is const(0) else make_binary(CeilDiv, a, b)
    if b.value < 0:
        return mul(floordiv(a, -b.value), -1)
    return floordiv(add(a, b.value - 1), b)


def minimum(lhs: Expr | int, rhs: Expr | int) -> Expr:
    """The lesser of two."""
    a, b = _as_expr(lhs), _as_expr(rhs)
    difference = a - b
    if type(difference) is Const:
        return a if difference.value <= 0 else b
    return make_binary(Min, b, a) if b.order < a.order else make_binary(Min, a, b)


def maximum(lhs: Expr | int, rhs: Expr | int) -> Expr:
    """The greater of two."""
    a, b = _as_expr(lhs), _as_expr(rhs)
    difference = a - b
    if type(difference) is Const:
        return a if difference.value >= 0 else b
    return make_binary(Max, b, a) if b.order < a.order else make_binary(Max, a, b)


BUILDERS.update({Add: add, Mul: mul, Mod: mod, FloorDiv: floordiv, CeilDiv: ceildiv, Max: maximum, Min: minimum})


def rebuild(expr: Expr, children: Sequence[Expr]) -> Expr:
    """The same operator on other operands, in canonical form."""
    return BUILDERS[type(expr)](*children)
