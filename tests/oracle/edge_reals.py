"""Real functions on exact numbers: what the correctly rounded result of an op on floats is made of.

In: `Exact` operands.  Out: an `Exact` result, before it is rounded: exact for arithmetic, with more than 40 correct
digits for elementary functions (`edge_series`).  Special operands follow IEEE 754-2019.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Context, localcontext
from fractions import Fraction
from math import floor

from oracle.edge_exact import Exact, Special, is_nan, is_negative, magnitude, negated
from oracle.edge_series import (
    DIGITS,
    HUGE,
    NOTHING,
    TINY,
    arctangent,
    cube_root,
    decimal,
    erf,
    exp,
    log,
    pi,
    root,
    sine_cosine,
)

__all__ = ["BINARY", "UNARY", "add", "multiply"]

NAN, INF, NEG_INF, NEG_ZERO = Special.NAN, Special.INF, Special.NEG_INF, Special.NEG_ZERO
ZERO, ONE = Fraction(0), Fraction(1)


def _signed(value: Exact, negative: bool) -> Exact:
    return negated(value) if negative else value


def _number(value: Exact) -> Fraction:
    """The rational; -0 as 0."""
    return value if isinstance(value, Fraction) else ZERO


def _is_infinite(value: Exact) -> bool:
    return value in (INF, NEG_INF)


def _is_zero(value: Exact) -> bool:
    return value == 0 or value is NEG_ZERO


# --------------------------------------------------------------------------------------------------------- arithmetic
def add(a: Exact, b: Exact) -> Exact:
    """The exact sum; NaN for infinities of unlike sign."""
    if is_nan(a) or is_nan(b) or (_is_infinite(a) and _is_infinite(b) and a is not b):
        return NAN
    if _is_infinite(a) or _is_infinite(b):
        return a if _is_infinite(a) else b
    total = _number(a) + _number(b)
    return NEG_ZERO if a is NEG_ZERO and b is NEG_ZERO else total


def _subtract(a: Exact, b: Exact) -> Exact:
    return add(a, negated(b))


def multiply(a: Exact, b: Exact) -> Exact:
    """The exact product; NaN for 0 times infinity."""
    if is_nan(a) or is_nan(b):
        return NAN
    negative = is_negative(a) != is_negative(b)
    if _is_infinite(a) or _is_infinite(b):
        return NAN if _is_zero(a) or _is_zero(b) else _signed(INF, negative)
    return _signed(abs(_number(a) * _number(b)), negative)


def _divide(a: Exact, b: Exact) -> Exact:
    if is_nan(a) or is_nan(b) or (_is_infinite(a) and _is_infinite(b)) or (_is_zero(a) and _is_zero(b)):
        return NAN
    negative = is_negative(a) != is_negative(b)
    if _is_infinite(a) or _is_zero(b):
        return _signed(INF, negative)
    return _signed(ZERO if _is_infinite(b) else abs(_number(a) / _number(b)), negative)


def _remainder(a: Exact, b: Exact) -> Exact:
    """C's fmod: the sign of the dividend."""
    if is_nan(a) or is_nan(b) or _is_infinite(a) or _is_zero(b):
        return NAN
    if _is_infinite(b):
        return a
    return _signed(abs(_number(a)) % abs(_number(b)), is_negative(a))


def _order(value: Exact) -> tuple[Fraction, int]:
    """A key: -inf below everything, -0 below +0."""
    if value is NEG_INF or value is INF:
        return (HUGE if value is INF else -HUGE), 0
    return _number(value), -1 if value is NEG_ZERO else 0


def _maximum(a: Exact, b: Exact) -> Exact:
    return NAN if is_nan(a) or is_nan(b) else max(a, b, key=_order)


def _minimum(a: Exact, b: Exact) -> Exact:
    return NAN if is_nan(a) or is_nan(b) else min(a, b, key=_order)


def _power(a: Exact, b: Exact) -> Exact:
    """IEEE 754's pow."""
    if _is_zero(b) or a == ONE:
        return ONE
    if is_nan(a) or is_nan(b):
        return NAN
    whole = isinstance(b, Fraction) and b.denominator == 1
    odd = whole and _number(b).numerator % 2 == 1
    if _is_infinite(b):
        size = magnitude(a)
        if size == ONE:
            return ONE
        above = size is INF or _number(size) > 1
        return INF if above == (b is INF) else ZERO
    grows = not is_negative(b)
    if _is_zero(a) or _is_infinite(a):
        result: Exact = INF if _is_infinite(a) == grows else ZERO
        return _signed(result, is_negative(a) and odd)
    base, exponent = _number(a), _number(b)
    if base < 0 and not whole:
        return NAN
    return _signed(_positive_power(abs(base), exponent), base < 0 and odd)


def _positive_power(base: Fraction, exponent: Fraction) -> Fraction:
    if base == 1:
        return ONE
    if exponent.denominator == 1 and abs(exponent) <= 64:
        return base ** int(exponent)
    with localcontext(Context(prec=DIGITS)):
        return exp(Fraction(decimal(exponent) * decimal(log(base))))


def _atan2(y: Exact, x: Exact) -> Exact:
    if is_nan(x) or is_nan(y):
        return NAN
    backward, up = is_negative(x), is_negative(y)
    if _is_infinite(y):
        quarter = {INF: Fraction(1, 4), NEG_INF: Fraction(3, 4)}
        part = quarter[x] if isinstance(x, Special) and x in quarter else Fraction(1, 2)
        return _signed(pi() * part, up)
    if _is_zero(y) or _is_infinite(x):
        return _signed(pi() if backward else ZERO, up)
    if _is_zero(x):
        return _signed(pi() / 2, up)
    angle = arctangent(abs(_number(y) / _number(x)))
    return _signed(pi() - angle if backward else angle, up)


BINARY: Mapping[str, Callable[[Exact, Exact], Exact]] = {
    "add": add,
    "subtract": _subtract,
    "multiply": multiply,
    "divide": _divide,
    "remainder": _remainder,
    "maximum": _maximum,
    "minimum": _minimum,
    "power": _power,
    "atan2": _atan2,
}


# -------------------------------------------------------------------------------------------------------------- unary
Positive = Callable[[Fraction], Exact]


def _odd(at_infinity: Exact, of_positive: Positive) -> Callable[[Exact], Exact]:
    """f(-x) = -f(x), f(0) = 0."""

    def function(x: Exact) -> Exact:
        if is_nan(x) or _is_zero(x):
            return x
        size = magnitude(x)
        result = at_infinity if isinstance(size, Special) else of_positive(size)
        return _signed(result, is_negative(x))

    return function


def _even(at_infinity: Exact, of_positive: Positive) -> Callable[[Exact], Exact]:
    """f(-x) = f(x), f(0) = 1."""

    def function(x: Exact) -> Exact:
        if is_nan(x):
            return x
        size = magnitude(x)
        if _is_zero(size):
            return ONE
        return at_infinity if isinstance(size, Special) else of_positive(size)

    return function


def _general(at_zero: Exact | None, at_infinity: Exact, at_minus: Exact, of: Positive) -> Callable[[Exact], Exact]:
    """Limits at both ends; at zeros `at_zero`, or the zero itself for None."""

    def function(x: Exact) -> Exact:
        if is_nan(x):
            return x
        if _is_zero(x):
            return x if at_zero is None else at_zero
        if isinstance(x, Special):
            return at_infinity if x is INF else at_minus
        return of(x)

    return function


def _rounding(of_positive: Callable[[Fraction, bool], int]) -> Callable[[Exact], Exact]:
    """To an integer, zeros keeping the sign."""

    def function(x: Exact) -> Exact:
        if isinstance(x, Special) or x == 0:
            return x
        return _signed(Fraction(of_positive(abs(x), x < 0)), x < 0)

    return function


def _expm1(x: Fraction) -> Exact:
    return x + x * x / 2 + x**3 / 6 if abs(x) < TINY else exp(x) - 1


def _log1p(x: Fraction) -> Exact:
    if x <= -1:
        return NEG_INF if x == -1 else NAN
    return x - x * x / 2 + x**3 / 3 if abs(x) < TINY else log(1 + x)


def _logistic(x: Fraction) -> Exact:
    return 1 / (1 + exp(-x)) if x > 0 else exp(x) / (1 + exp(x))


def _sinh(x: Fraction) -> Exact:
    return x + x**3 / 6 if x < TINY else (exp(x) - exp(-x)) / 2


def _tanh(x: Fraction) -> Exact:
    if x < TINY:
        return x - x**3 / 3
    return ONE - NOTHING if x > 2000 else 1 - 2 / (exp(2 * x) + 1)


def _asinh(x: Fraction) -> Exact:
    return x - x**3 / 6 if x < TINY else log(x + root(x * x + 1))


def _acosh(x: Fraction) -> Exact:
    return NAN if x < 1 else ZERO if x == 1 else log(x + root(x * x - 1))


def _atanh(x: Fraction) -> Exact:
    if x >= 1:
        return INF if x == 1 else NAN
    return x + x**3 / 3 if x < TINY else log((1 + x) / (1 - x)) / 2


def _asin(x: Fraction) -> Exact:
    if x > 1:
        return NAN
    if x < TINY:
        return x + x**3 / 6
    return pi() / 2 if x == 1 else arctangent(x / root(1 - x * x))


def _acos(x: Fraction) -> Exact:
    if abs(x) >= 1:
        return NAN if abs(x) > 1 else ZERO if x == 1 else pi()
    if abs(x) < TINY:
        return pi() / 2 - x
    angle = arctangent(root(1 - x * x) / abs(x))
    return angle if x > 0 else pi() - angle


def _sine(x: Fraction) -> Exact:
    return sine_cosine(x)[0]


def _cosine(x: Fraction) -> Exact:
    return sine_cosine(x)[1]


def _tangent(x: Fraction) -> Exact:
    sine, cosine = sine_cosine(x)
    return sine / cosine


def _square_root(x: Fraction) -> Exact:
    return root(x) if x > 0 else NAN


def _reciprocal_root(x: Exact) -> Exact:
    if _is_zero(x):
        return _signed(INF, is_negative(x))
    if isinstance(x, Special):
        return ZERO if x is INF else NAN
    return 1 / root(x) if x > 0 else NAN


def _logarithm(x: Fraction) -> Exact:
    return NAN if x < 0 else ZERO if x == 1 else log(x)


def _unit(x: Fraction) -> Exact:
    return ONE


def _same(x: Fraction) -> Exact:
    return x


UNARY: Mapping[str, Callable[[Exact], Exact]] = {
    "abs": magnitude,
    "negate": negated,
    "sign": _odd(ONE, _unit),
    "floor": _rounding(lambda size, negative: -floor(-size) if negative else floor(size)),
    "ceil": _rounding(lambda size, negative: floor(size) if negative else -floor(-size)),
    "round-nearest-even": _rounding(lambda size, _: round(size)),
    "round-nearest-afz": _rounding(lambda size, _: floor(size + Fraction(1, 2))),
    "sqrt": _general(None, INF, NAN, _square_root),
    "rsqrt": _reciprocal_root,
    "cbrt": _odd(INF, cube_root),
    "exponential": _general(ONE, INF, ZERO, exp),
    "exponential-minus-one": _general(None, INF, -ONE, _expm1),
    "log": _general(NEG_INF, INF, NAN, _logarithm),
    "log-plus-one": _general(None, INF, NAN, _log1p),
    "logistic": _general(Fraction(1, 2), ONE, ZERO, _logistic),
    "tanh": _odd(ONE, _tanh),
    "sinh": _odd(INF, _sinh),
    "cosh": _even(INF, lambda x: (exp(x) + exp(-x)) / 2),
    "asinh": _odd(INF, _asinh),
    "acosh": _general(NAN, INF, NAN, _acosh),
    "atanh": _odd(NAN, _atanh),
    "sine": _odd(NAN, _sine),
    "cosine": _even(NAN, _cosine),
    "tan": _odd(NAN, _tangent),
    "asin": _odd(NAN, _asin),
    "acos": _general(pi() / 2, NAN, NAN, _acos),
    "erf": _odd(ONE, erf),
    "real": _general(None, INF, NEG_INF, _same),
}
"""HLO's unary ops on floats."""
