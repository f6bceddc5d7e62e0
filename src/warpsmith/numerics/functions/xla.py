"""tanh and erf as XLA:GPU 0.10.2 computes them in f32: rational functions, for the mode `xla`.

The coefficients are those of the PTX that XLA's compiler prints.
"""

from __future__ import annotations

from warpsmith.numerics.expr import Float, Precision, poly

__all__ = ["erf", "tanh"]

_TANH_LIMIT = 7.9988117
_TANH_SMALL = 0.0004
_TANH_TOP = (
    0.0048935246, 0.00063726195, 1.48572235e-05, 5.1222973e-08,
    -8.604672e-11, 2.000188e-13, -2.7607684e-16,
)  # fmt: skip
_TANH_BOTTOM = (0.004893525, 0.0022684347, 0.00011853471, 1.1982584e-06)

_ERF_LIMIT = 3.7439213
_ERF_TOP = (1.1283791, 0.18520832, 0.050955694, 0.003408291, 0.00022905065)
_ERF_BOTTOM = (1.0, 0.49746925, 0.11098505, 0.01407047, 0.0010179626, 2.3547966e-05, -1.1791603e-07)


def tanh(x: Float, _: Precision) -> Float:
    """x P(x**2) / Q(x**2) within +-7.9988; x itself below 0.0004."""
    inside = x.at_most(_TANH_LIMIT).at_least(-_TANH_LIMIT)
    z = inside * inside
    value = (inside * poly(z, _TANH_TOP)) / poly(z, _TANH_BOTTOM)
    return (abs(x) < _TANH_SMALL).select(inside, value)


def erf(x: Float, _: Precision) -> Float:
    """x P(x**2) / Q(x**2); 1 from 3.7439 on."""
    inside = x.at_most(_ERF_LIMIT).at_least(-_ERF_LIMIT)
    z = inside * inside
    value = (inside * poly(z, _ERF_TOP)) / poly(z, _ERF_BOTTOM)
    return (abs(x) >= _ERF_LIMIT).select(x.constant(1.0).with_sign_of(x), value)
