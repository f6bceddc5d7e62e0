"""erf in f32."""

from __future__ import annotations

from warpsmith.numerics.expr import Float, Precision, poly
from warpsmith.numerics.functions.hyperbolic import double_angle

__all__ = ["erf"]

# For f32: erf(x) = 2 t / (1 + t**2), 2 t = x P(x**2) / Q(x**2) up to where erf(x) rounds to 1.  The error of t counts
# for ever less as erf(x) comes near 1; so weighted it is 2**-25.0.  At the
# limit the program gives 1, and never more below it, with FMA or without.
_DOUBLE_ANGLE = (
    4.02751,
    (1.0, 0.14365156, 0.017759068, 0.0005729679, -6.1384426e-06),
    (0.88622695, 0.1406219, 0.03173536, 0.002032751),
)
# For 16-bit results: erf(x) = x P(x**2) / Q(x**2), relative error 2**-17.6, 2**-21.1.
_ERF_F16 = (2.8, (1.1283807, 0.15389368, 0.04156304, 0.00066340185), (1.0, 0.4697509, 0.09334208, 0.008647214))
_ERF_BF16 = (
    2.3,
    (1.6501443, 0.22016767, 0.05959763, 0.00088777405),
    (1.46240234375, 0.6825978, 0.13404182, 0.012159601),
)


def erf(x: Float, precision: Precision) -> Float:
    """Error function."""
    limit, p, q = precision.pick(_DOUBLE_ANGLE, _ERF_F16, _ERF_BF16)
    x = x.at_most(limit).at_least(-limit)
    z = x * x
    if precision is not Precision.F32:
        return (x * poly(z, p)) / poly(z, q)
    return double_angle(x + (x * z) * poly(z, p[1:]), poly(z, q))
