"""Elementary functions of rationals, to more than 40 digits: Python's `decimal`, and series.

In: a rational.  Out: a rational next to the function's value.  Sizes no type has (`HUGE`, `NOTHING`) stand for what is
larger or smaller than any.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cache
from math import isqrt

from oracle.edge_exact import two_to

__all__ = [
    "DIGITS",
    "HUGE",
    "NOTHING",
    "TINY",
    "arctangent",
    "cube_root",
    "decimal",
    "erf",
    "exp",
    "log",
    "pi",
    "root",
    "sine_cosine",
]

ONE = Fraction(1)

DIGITS = 90
TINY = Fraction(1, 10**30)
"""Below it three terms of a power series have 60 digits, and closed forms would cancel."""
HUGE, NOTHING = two_to(5000), two_to(-5000)
"""More, and less, than any type holds."""
STEEP = 20000
"""Where an exponential is out of every type's range."""


def decimal(value: Fraction) -> Decimal:
    """A fraction as a decimal number, to the context's digits."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def root(value: Fraction) -> Fraction:
    """The square root of a rational, to more than 100 digits: never on the wrong side of a tie, since a root of a
    number of few bits that isn't itself one of few bits isn't that near one."""
    scale = 1 << 800
    return Fraction(isqrt(value.numerator * value.denominator * scale * scale), value.denominator * scale)


def cube_root(value: Fraction) -> Fraction:
    """The cube root of a non-negative number, to within 2^-400."""
    number = value.numerator * value.denominator**2
    scale = 1 << 400
    target = number * scale**3
    guess = 1 << -(-target.bit_length() // 3)
    while True:  # Newton's method falls to the floor of the root
        following = (2 * guess + target // (guess * guess)) // 3
        if following >= guess:
            break
        guess = following
    return Fraction(guess, value.denominator * scale)


@cache
def exp(x: Fraction) -> Fraction:
    """e^x to `DIGITS` digits; `HUGE` or `NOTHING` where it is far past every float type's range."""
    if abs(x) > STEEP:
        return HUGE if x > 0 else NOTHING
    with localcontext(Context(prec=DIGITS)):
        return Fraction(decimal(x).exp())


@cache
def log(x: Fraction) -> Fraction:
    """The natural logarithm of a positive number, to `DIGITS` digits."""
    with localcontext(Context(prec=DIGITS)):
        return Fraction(decimal(x).ln())


@cache
def _pi_digits(digits: int) -> Fraction:
    """Machin's formula in integers."""
    unit = 10 ** (digits + 10)

    def arctangent_of_inverse(n: int) -> int:
        power = total = unit // n
        divisor, sign = 1, 1
        while power:
            power //= n * n
            divisor, sign = divisor + 2, -sign
            total += sign * (power // divisor)
        return total

    return Fraction(4 * (4 * arctangent_of_inverse(5) - arctangent_of_inverse(239)), unit)


def pi() -> Fraction:
    """Pi to 500 digits."""
    return _pi_digits(500)


def _summed(first: Decimal, ratio: Callable[[int], Decimal]) -> Decimal:
    """A series from its first term and the ratio of term n to the one before, to the last digit."""
    total, term, n = first, first, 0
    while True:
        n += 1
        term *= ratio(n)
        following = total + term
        if following == total:
            return total
        total = following


@cache
def sine_cosine(x: Fraction) -> tuple[Fraction, Fraction]:
    """Of a number below 2^1024: the rest by multiples of pi/2, then Taylor's series."""
    if abs(x) < TINY:
        return x - x**3 / 6, 1 - x * x / 2
    turns = round(x / (pi() / 2))
    with localcontext(Context(prec=DIGITS)):
        rest = decimal(x - turns * pi() / 2)
        square = -rest * rest
        sine = Fraction(_summed(rest, lambda n: square / (2 * n * (2 * n + 1))))
        cosine = Fraction(_summed(Decimal(1), lambda n: square / (2 * n * (2 * n - 1))))
    return [(sine, cosine), (cosine, -sine), (-sine, -cosine), (-cosine, sine)][turns % 4]


def arctangent(x: Fraction) -> Fraction:
    """Of a positive number: halved angles until the series is quick."""
    if x < TINY:
        return x - x**3 / 3
    if x > 1:
        return pi() / 2 - arctangent(1 / x)
    with localcontext(Context(prec=DIGITS)):
        small, halvings = decimal(x), 0
        while small > Decimal("0.01"):
            small = small / (1 + (1 + small * small).sqrt())
            halvings += 1
        square = -small * small
        return Fraction(_summed(small, lambda n: square * (2 * n - 1) / (2 * n + 1))) * (1 << halvings)


def erf(x: Fraction) -> Fraction:
    """Of a positive number."""
    if x < TINY:
        return 2 / root(pi()) * (x - x**3 / 3)
    if x > 30:
        return ONE - NOTHING
    with localcontext(Context(prec=DIGITS)):  # exp(-x^2) * sum of 2^n x^(2n+1) / (2n+1)!!: all of one sign
        number = decimal(x)
        square = 2 * number * number
        total = _summed(number, lambda n: square / (2 * n + 1))
        return Fraction(2 / decimal(pi()).sqrt() * (-number * number).exp() * total)
