"""Complex ops in complex128; the caller rounds each part once.

In: complex128 arrays.  Out: complex128 arrays (float64 for abs, real, imag).  Products and quotients of c64 can't
overflow on the way.  Divide follows C99 Annex G, which XLA's lowering does too: a zero or infinite operand gives the
infinity or zero of the right sign instead of NaN.  Reference: emitters.md 9.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from warpsmith.hlo.evaluator.values import Array

__all__ = ["BINARY", "COMPARE", "TO_REAL", "UNARY", "join"]

Unary: TypeAlias = Callable[[Array], Array]
Binary: TypeAlias = Callable[[Array, Array], Array]


def join(real: Array, imag: Array) -> Array:
    """real + i*imag without arithmetic, so that infinities and signed zeros stay as they are."""
    result = np.empty(np.broadcast_shapes(real.shape, imag.shape), np.complex128)
    result.real = real
    result.imag = imag
    return result


def _multiply(a: Array, b: Array) -> Array:
    return join(np.real(a) * np.real(b) - np.imag(a) * np.imag(b), np.real(a) * np.imag(b) + np.imag(a) * np.real(b))


def _divide(a: Array, b: Array) -> Array:
    # Scale both by powers of two so that no product overflows and the divisor's square doesn't vanish.
    exponent, above = _scale(b), _scale(a)
    c, d = np.ldexp(np.real(b), exponent), np.ldexp(np.imag(b), exponent)
    x, y = np.ldexp(np.real(a), above), np.ldexp(np.imag(a), above)
    norm = c * c + d * d
    back = exponent - above
    real = np.ldexp((x * c + y * d) / norm, back)
    imag = np.ldexp((y * c - x * d) / norm, back)
    lost = np.isnan(real) & np.isnan(imag)
    if not lost.any():
        return join(real, imag)
    finite_a = np.isfinite(np.real(a)) & np.isfinite(np.imag(a))
    finite_b = np.isfinite(np.real(b)) & np.isfinite(np.imag(b))
    known_a = ~(np.isnan(np.real(a)) & np.isnan(np.imag(a)))
    zero = lost & (b == 0) & known_a
    toward = np.copysign(np.inf, np.real(b))
    real, imag = (
        np.where(zero, toward * np.real(a), real),
        np.where(zero, toward * np.imag(a), imag),
    )
    big = lost & ~zero & (np.isinf(np.real(a)) | np.isinf(np.imag(a))) & finite_b
    x, y = _unit(np.real(a)), _unit(np.imag(a))
    real = np.where(big, np.inf * (x * np.real(b) + y * np.imag(b)), real)
    imag = np.where(big, np.inf * (y * np.real(b) - x * np.imag(b)), imag)
    tiny = lost & ~zero & ~big & (np.isinf(np.real(b)) | np.isinf(np.imag(b))) & finite_a
    x, y = _unit(np.real(b)), _unit(np.imag(b))
    real = np.where(tiny, 0.0 * (np.real(a) * x + np.imag(a) * y), real)
    imag = np.where(tiny, 0.0 * (np.imag(a) * x - np.real(a) * y), imag)
    return join(real, imag)


def _scale(a: Array) -> Array:
    """The power of two that brings the larger part near 1."""
    return -np.frexp(np.maximum(np.abs(np.real(a)), np.abs(np.imag(a))))[1]


def _unit(x: Array) -> Array:
    """Infinities to +-1, everything else to a zero of its sign."""
    return np.copysign(np.where(np.isinf(x), 1.0, 0.0), x)


def _power(a: Array, b: Array) -> Array:
    result = np.exp(b * np.log(a))
    result = np.where((a == 0) & (np.real(b) > 0), 0.0, result)
    return np.where(b == 0, 1.0, result)


def _sign(a: Array) -> Array:
    size = np.abs(a)
    scale = np.where(size == 0, 1.0, size)
    result = join(np.real(a) / scale, np.imag(a) / scale)
    return np.where(size == 0, 0.0, result)


def _logistic(a: Array) -> Array:
    return _divide(np.ones_like(a), 1.0 + np.exp(-a))


def _expm1(a: Array) -> Array:
    """numpy's, but real where `a` is: there it multiplies an infinite size by a zero sine."""
    result = np.expm1(a)
    return join(np.real(result), np.where(np.imag(a) == 0, np.imag(a), np.imag(result)))


def _log_plus_one(a: Array) -> Array:
    """log(1 + a), with the real part accurate near 0."""
    x, y = np.real(a), np.imag(a)
    near = 0.5 * np.log1p(x * (2.0 + x) + y * y)
    return join(
        np.where(np.maximum(np.abs(x), np.abs(y)) < 0.5, near, np.log(np.hypot(1.0 + x, y))), np.arctan2(y, 1 + x)
    )


def _rsqrt(a: Array) -> Array:
    return _divide(np.ones_like(a), np.sqrt(a))


def _cbrt(a: Array) -> Array:
    size, angle = np.cbrt(np.abs(a)), np.arctan2(np.imag(a), np.real(a)) / 3.0
    return join(size * np.cos(angle), np.where(angle == 0, angle, size * np.sin(angle)))


def _before(strict: bool, less: bool) -> Binary:
    """An order by (real, imag)."""

    def op(a: Array, b: Array) -> Array:
        first, second = (a, b) if less else (b, a)
        tie = np.imag(first) < np.imag(second) if strict else np.imag(first) <= np.imag(second)
        return (np.real(first) < np.real(second)) | ((np.real(first) == np.real(second)) & tie)

    return op


def _maximum(a: Array, b: Array) -> Array:
    return np.where(_before(False, False)(a, b), a, b)


def _minimum(a: Array, b: Array) -> Array:
    return np.where(_before(False, True)(a, b), a, b)


UNARY: Mapping[str, Unary] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atanh": np.arctanh,
    "cbrt": _cbrt,
    "cosine": np.cos,
    "cosh": np.cosh,
    "exponential": np.exp,
    "exponential-minus-one": _expm1,
    "log": np.log,
    "log-plus-one": _log_plus_one,
    "logistic": _logistic,
    "negate": np.negative,
    "rsqrt": _rsqrt,
    "sign": _sign,
    "sine": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}

TO_REAL: Mapping[str, Unary] = {"abs": np.abs, "real": np.real, "imag": np.imag}

BINARY: Mapping[str, Binary] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": _multiply,
    "divide": _divide,
    "power": _power,
    "maximum": _maximum,
    "minimum": _minimum,
}

COMPARE: Mapping[str, Binary] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": _before(True, True),
    "LE": _before(False, True),
    "GT": _before(True, False),
    "GE": _before(False, False),
}
