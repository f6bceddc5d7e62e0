"""The largest error of each f32 function of one argument over all 2**32 arguments, on a CPU with FMA.

Data, by `python bench/accuracy_f32.py`, whose output it is.  The documentation prints it; a test computes the worst
argument of each row again.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["F32", "Measured"]


@dataclass(frozen=True, slots=True)
class Measured:
    """Largest distance from the correctly rounded result, largest real error, both in ulp, and that argument's bits."""

    distance: int
    error: float
    worst: int


F32: dict[str, Measured] = {
    "acos": Measured(1, 1.117, 0x3F0AB5D9),
    "acosh": Measured(2, 2.150, 0x3F83B9E7),
    "asin": Measured(2, 2.350, 0x3F001053),
    "asinh": Measured(2, 2.034, 0x3E95D861),
    "atan": Measured(1, 1.381, 0x3F812017),
    "atanh": Measured(2, 2.216, 0x3E137CA6),
    "cbrt": Measured(1, 0.964, 0x01821859),
    "cos": Measured(2, 2.321, 0x450B4E5C),
    "cosh": Measured(2, 1.746, 0x40C762C4),
    "erf": Measured(3, 3.253, 0x4015FB94),
    "exp": Measured(2, 1.611, 0xC1265B63),
    "exp2": Measured(2, 1.589, 0x3F80B2D0),
    "expm1": Measured(2, 1.594, 0x413BBAC8),
    "log": Measured(1, 0.937, 0x3FAAB205),
    "log10": Measured(3, 3.153, 0x3FAAAEBB),
    "log1p": Measured(2, 1.687, 0x3EAAC813),
    "log2": Measured(2, 2.396, 0x3FAAAD5E),
    "logistic": Measured(3, 3.447, 0xC05BE211),
    "rsqrt": Measured(1, 1.490, 0x0080CAB3),
    "sin": Measured(2, 2.311, 0x4506E563),
    "sinh": Measured(3, 2.643, 0x40052ABE),
    "sqrt": Measured(0, 0.500, 0x017FFFFF),
    "tan": Measured(4, 3.782, 0x44BF72E2),
    "tanh": Measured(4, 4.072, 0x3E829B55),
}
