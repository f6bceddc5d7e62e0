"""The numerics modes, `strict` and `xla`, and each point in which they differ.

Data only: the compiler reads the mode, the documentation page prints `DIFFERENCES`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from warpsmith.errors import UsageError, did_you_mean

__all__ = ["DIFFERENCES", "Difference", "Mode", "mode"]


class Mode(Enum):
    """What arithmetic a compiled module promises.

    `STRICT` (the default): no contraction to FMA, no excess precision, no fold that changes a value, IEEE division and
    square root, subnormals kept, integers that wrap, elementary functions within `bounds.py`.  `XLA`: what XLA:GPU
    0.10.2 does, which is `STRICT` but for the rows of `DIFFERENCES`.

    In both, a float reduce, reduce-window or dot whose combiner is one add or multiply keeps its partial results in
    f32 or wider and rounds once, in an order that is fixed for a shape and a target.
    """

    STRICT = "strict"
    XLA = "xla"


@dataclass(frozen=True, slots=True)
class Difference:
    """One point in which the modes differ: where, and what each does."""

    name: str
    where: str
    strict: str
    xla: str


DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        "f32-division",
        "divide f32 on a GPU",
        "div.rn.f32: correctly rounded",
        "div.full.f32: within 2 ulp",
    ),
    Difference(
        "exp-log-16-bit",
        "exponential and log of f16 and bf16 on a GPU",
        "an expansion in f32, rounded once",
        "ex2.approx and lg2.approx in f32, rounded once",
    ),
    Difference(
        "logistic",
        "logistic",
        "from e**-|x|: small results keep their digits, subnormal results too",
        "1 / (1 + e**-x): 0 where e**-x overflows",
    ),
    Difference(
        "tanh-f32",
        "tanh f32",
        "within the bound of bounds.py everywhere",
        "a rational function of degree 13 over 6 with FMA; x itself where |x| < 0.0004",
    ),
    Difference(
        "erf-f32",
        "erf f32",
        "within the bound of bounds.py everywhere",
        "a rational function in x**2 with FMA; 1 from |x| = 3.7439 on",
    ),
    Difference(
        "excess-precision",
        "chains of f16 and bf16 ops inside one fusion",
        "each op rounds to its own dtype",
        "convert pairs may be removed, so that a chain stays in f32",
    ),
    Difference(
        "dot-f16",
        "dot of f16 inside a fusion",
        "f32 partial sums, rounded once",
        "product and sum in f16",
    ),
    Difference(
        "dot-f8",
        "dot of 8-bit floats inside a fusion",
        "product and sum in f32",
        "product in the 8-bit type",
    ),
    Difference(
        "compare-total-order",
        "compare with type=TOTALORDER inside a fusion",
        "total order, -NaN < -inf < ... < inf < NaN",
        "the type is ignored: an ordinary compare",
    ),
    Difference(
        "reduce-add-zero",
        "sum of floats",
        "-0 + the initial +0 is +0",
        "the addition of the initial 0 is folded (nsz), which may leave -0",
    ),
)


def mode(name: str) -> Mode:
    """The mode called `name`; UsageError otherwise."""
    for one in Mode:
        if one.value == name:
            return one
    names = [one.value for one in Mode]
    raise UsageError(
        f"no numerics mode is called '{name}'", help=did_you_mean(name, names) or f"one of {', '.join(names)}"
    )
