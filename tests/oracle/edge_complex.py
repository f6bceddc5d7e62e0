"""Complex ops at zeros, infinities and NaN.

In: an opcode, parts as `Exact` values.  Out: parts of the result, before rounding.  Divide and the functions of
`FUNCTIONS` follow C99's Annex G; a part written `?x` may have either sign.  A choice, and not Annex G: multiply is
(ac - bd, ad + bc), as XLA and NumPy have it, so that an infinity times a complex number may be NaN.  Its parts are
exact and rounded once, so that no product overflows on the way; the reference interpreter takes c64 products in float64
for that.  c128's may overflow, and are left out where they would.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from oracle.edge_exact import Exact, Special, is_nan, is_negative, magnitude, negated
from oracle.edge_reals import BINARY, UNARY, add, multiply
from oracle.edge_series import root

__all__ = ["FUNCTIONS", "POWERS", "Complex", "FunctionRow", "divide", "modulus", "named", "product"]

Complex = tuple[Exact, Exact]
NAN, INF, NEG_INF = Special.NAN, Special.INF, Special.NEG_INF
ZERO = Fraction(0)


def product(a: Complex, b: Complex) -> Complex:
    """(a + bi)(c + di) of exact parts, where infinities and NaN go by each part's own arithmetic."""
    real = add(multiply(a[0], b[0]), negated(multiply(a[1], b[1])))
    return real, add(multiply(a[0], b[1]), multiply(a[1], b[0]))


def modulus(a: Complex) -> Exact:
    """Infinite when either part is, NaN or not."""
    parts = [magnitude(part) for part in a]
    if INF in parts:
        return INF
    x, y = parts
    if isinstance(x, Special) or isinstance(y, Special):
        return NAN
    return root(x * x + y * y)


def _is_infinite(a: Complex) -> bool:
    return INF in (magnitude(a[0]), magnitude(a[1]))


def _is_finite(a: Complex) -> bool:
    return not _is_infinite(a) and not any(map(is_nan, a))


def _unit(part: Exact) -> Exact:
    """1 for an infinity, 0 for the rest, signs kept."""
    size = Fraction(1) if magnitude(part) is INF else ZERO
    return negated(size) if is_negative(part) else size


def _copysign(size: Exact, sign: Exact) -> Exact:
    return negated(size) if is_negative(sign) else size


def divide(a: Complex, b: Complex) -> Complex:
    """The quotient; with Annex G's infinities and zeros (G.5.1, example 2) where plain arithmetic gives (NaN, NaN)."""
    conjugate = b[0], negated(b[1])
    above = product(a, conjugate)
    below = add(multiply(b[0], b[0]), multiply(b[1], b[1]))
    quotient = BINARY["divide"](above[0], below), BINARY["divide"](above[1], below)
    if not (is_nan(quotient[0]) and is_nan(quotient[1])):
        return quotient
    if magnitude(b[0]) in (ZERO, Special.NEG_ZERO) and below == 0 and not (is_nan(a[0]) and is_nan(a[1])):
        toward = _copysign(INF, b[0])
        return multiply(toward, a[0]), multiply(toward, a[1])
    if _is_infinite(a) and _is_finite(b):
        numerator = product((_unit(a[0]), _unit(a[1])), conjugate)
        return multiply(INF, numerator[0]), multiply(INF, numerator[1])
    if _is_infinite(b) and _is_finite(a):
        numerator = product(a, (_unit(b[0]), negated(_unit(b[1]))))
        return multiply(ZERO, numerator[0]), multiply(ZERO, numerator[1])
    return quotient


_NAMES: Mapping[str, Exact] = {
    "nan": NAN,
    "inf": INF,
    "-inf": NEG_INF,
    "-0": Special.NEG_ZERO,
    "pi": UNARY["acos"](Fraction(-1)),
    "pi/2": UNARY["acos"](ZERO),
    "pi/4": BINARY["atan2"](Fraction(1), Fraction(1)),
    "3pi/4": BINARY["atan2"](Fraction(1), Fraction(-1)),
}


def named(text: str) -> Exact:
    """The number that a name in a table means."""
    return _NAMES[text] if text in _NAMES else Fraction(text)


@dataclass(frozen=True, slots=True)
class FunctionRow:
    """`opcode` of `operand` is `result`; a part written `?x` may have either sign."""

    opcode: str
    operand: tuple[str, str]
    result: tuple[str, str]


# "real,imag=real,imag ...": C99 G.6.3.1 (exp), G.6.3.2 (log), G.6.4.2 (sqrt), G.6.2.6 (tanh).  A conjugate operand has
# the conjugate result.
_TABLE = {
    "exponential": (
        "0,0=1,0 -0,0=1,0 1,inf=nan,nan 1,nan=nan,nan inf,0=inf,0 -inf,1=0,0 inf,1=inf,inf -inf,inf=?0,?0 "
        "inf,inf=?inf,nan -inf,nan=?0,?0 inf,nan=?inf,nan nan,0=nan,0 nan,1=nan,nan nan,nan=nan,nan"
    ),
    "log": (
        "-0,0=-inf,pi 0,0=-inf,0 1,inf=inf,pi/2 1,nan=nan,nan -inf,1=inf,pi inf,1=inf,0 -inf,inf=inf,3pi/4 "
        "inf,inf=inf,pi/4 inf,nan=inf,nan -inf,nan=inf,nan nan,1=nan,nan nan,inf=inf,nan nan,nan=nan,nan "
        "1,0=0,0 -1,0=0,pi"
    ),
    "sqrt": (
        "0,0=0,0 -0,0=0,0 1,inf=inf,inf nan,inf=inf,inf -inf,inf=inf,inf 1,nan=nan,nan -inf,1=0,inf inf,1=inf,0 "
        "-inf,nan=nan,?inf inf,nan=inf,nan nan,1=nan,nan nan,nan=nan,nan 4,0=2,0 -4,0=0,2"
    ),
    "tanh": (
        "0,0=0,0 1,inf=nan,nan 1,nan=nan,nan inf,1=1,0 inf,inf=1,?0 inf,nan=1,?0 nan,0=nan,0 nan,1=nan,nan "
        "nan,nan=nan,nan"
    ),
}


def _conjugated(text: str) -> str:
    if text in ("nan",) or text.startswith("?"):
        return text
    return text[1:] if text.startswith("-") else f"-{text}"


def _rows() -> list[FunctionRow]:
    rows: list[FunctionRow] = []
    for opcode, text in _TABLE.items():
        for item in text.split():
            operand, _, result = item.partition("=")
            (a, b), (c, d) = operand.split(","), result.split(",")
            rows.append(FunctionRow(opcode, (a, b), (c, d)))
            if b != "nan" and "pi" not in d:
                rows.append(FunctionRow(opcode, (a, _conjugated(b)), (c, _conjugated(d))))
    return rows


FUNCTIONS: tuple[FunctionRow, ...] = tuple(_rows())

POWERS: tuple[tuple[Complex, Complex, Complex], ...] = tuple(
    ((named(a), named(b)), (named(c), named(d)), (named(e), named(f)))
    for (a, b), (c, d), (e, f) in (
        (("0", "0"), ("0", "0"), ("1", "0")),
        (("1", "1"), ("0", "0"), ("1", "0")),
        (("nan", "0"), ("0", "0"), ("1", "0")),
        (("0", "0"), ("2", "0"), ("0", "0")),
        (("0", "0"), ("0.5", "1"), ("0", "0")),
    )
)
"""Base, exponent, power.  Annex G leaves cpow open; chosen: anything to the 0 is 1, 0 to a positive power is 0."""
