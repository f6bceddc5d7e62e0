"""Complex ops in complex128; the caller rounds each part once.

In: complex128 arrays.  Out: complex128 arrays (float64 for abs, real, imag).  Products and quotients of c64 can't
overflow on the way.  Divide follows C99 Annex G, which XLA's lowering does too: a zero or infinite operand gives the
infinity or zero of the right sign instead of NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from warpsmith.arrays import Array
from warpsmith.numerics.functions.table import BY_OPCODE, implemented

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
    """1 / (1 + e^-a) or, where that is the smaller power, e^a / (1 + e^a).

    1 + E e^ib is (1 - E) + 2 E cos^2(b/2) + i E sin b, which keeps its digits near the poles.
    """
    x, y = np.real(a), np.imag(a)
    right = x >= 0
    size, angle = np.exp(-np.abs(x)), np.where(right, -y, y)
    sine = np.where(y == 0, angle, np.sin(angle))
    power = np.exp(join(-np.abs(x), angle))
    bottom = join(-np.expm1(-np.abs(x)) + 2.0 * size * np.cos(angle / 2.0) ** 2, size * sine)
    bottom = np.where(np.isinf(x), 1.0, bottom)
    return _divide(np.where(right, 1.0, power), bottom)


def _expm1(a: Array) -> Array:
    """numpy's, but real where `a` is: there it multiplies an infinite size by a zero sine; -1 where e^a is nothing."""
    result = np.expm1(a)
    gone = np.real(a) == -np.inf
    imaginary = np.where(np.imag(a) == 0, np.imag(a), np.imag(result))
    imaginary = np.where(gone & np.isnan(imaginary), 0.0, imaginary)
    return join(np.where(gone, -1.0, np.real(result)), imaginary)


def _log_plus_one(a: Array) -> Array:
    """log(1 + a), with the real part accurate near 0."""
    x, y = np.real(a), np.imag(a)
    near = 0.5 * np.log1p(x * (2.0 + x) + y * y)
    return join(
        np.where(np.maximum(np.abs(x), np.abs(y)) < 0.5, near, np.real(np.log(join(1.0 + x, y)))), np.arctan2(y, 1 + x)
    )


def _rsqrt(a: Array) -> Array:
    return _divide(np.ones_like(a), np.sqrt(a))


def _cbrt(a: Array) -> Array:
    third = np.rint(_scale(a) / 3.0).astype(np.int64)
    inner = join(np.ldexp(np.real(a), 3 * third), np.ldexp(np.imag(a), 3 * third))
    size, angle = np.ldexp(np.cbrt(np.abs(inner)), -third), np.arctan2(np.imag(a), np.real(a)) / 3.0
    return join(size * np.cos(angle), np.where(angle == 0, angle, size * np.sin(angle)))


def _atan2(y: Array, x: Array) -> Array:
    """-i log((x + iy) / sqrt(x^2 + y^2)); NaN where a part isn't finite.

    Its parts are half the angle of (x + iy) conj(x - iy), up to half a turn, and half the log of |x - iy| / |x + iy|.
    """
    # On the root's cut the sign of the sum's imaginary part, though it be zero, says on which side.
    side = np.copysign(np.pi / 2, np.real(x) * np.imag(x) + np.real(y) * np.imag(y))
    down = np.minimum(_scale(x), _scale(y)) + 1
    (a, b), (c, d) = ((np.ldexp(np.real(z), down), np.ldexp(np.imag(z), down)) for z in (y, x))
    plus, minus = join(c - b, d + a), join(c + b, d - a)
    ratio = 4.0 * (c * b - d * a) / np.abs(plus) ** 2
    near = np.abs(ratio) < 0.5  # far from the poles, where x + iy or x - iy is zero
    turned = _multiply(plus, np.conj(minus))
    half = 0.5 * np.arctan2(np.where(near, 2.0 * (c * a + d * b), np.imag(turned)), np.real(turned))
    angle, other = np.angle(plus), np.angle(minus)
    root = (angle + other) / 2.0
    root = np.where(np.abs(root) > np.pi / 2, root - np.copysign(np.pi, root), root)
    rough = angle - np.where(np.abs(np.abs(root) - np.pi / 2) < 1e-15, side, root)
    half_turn = np.abs(np.rint((rough - half) / np.pi)) == 1.0
    real = np.where(half_turn, half - np.copysign(np.pi, half), half)
    imaginary = np.where(near, 0.25 * np.log1p(ratio), 0.5 * np.log(np.abs(minus) / np.abs(plus)))
    finite = np.isfinite(y) & np.isfinite(x)
    return join(np.where(finite, real, np.nan), np.where(finite, imaginary, np.nan))


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


_OWN: dict[str, Callable[..., Array]] = {
    "atan2": _atan2,
    "cbrt": _cbrt,
    "exponential-minus-one": _expm1,
    "log-plus-one": _log_plus_one,
    "logistic": _logistic,
    "power": _power,
    "rsqrt": _rsqrt,
}
"""Functions that numpy hasn't for complex numbers, or not as HLO has them."""


def _functions(arity: int) -> dict[str, Callable[..., Array]]:
    rows = [row for row in BY_OPCODE.values() if row.arity == arity and row.complex]
    known: dict[str, Callable[..., Array]] = {row.opcode: row.numpy for row in rows if row.numpy is not None} | _OWN
    return implemented("hlo/evaluator/arithmetic/complexes.py", known, [row.opcode for row in rows])


UNARY: Mapping[str, Unary] = {"negate": np.negative, "sign": _sign, **_functions(1)}

TO_REAL: Mapping[str, Unary] = {"abs": np.abs, "real": np.real, "imag": np.imag}

BINARY: Mapping[str, Binary] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": _multiply,
    "divide": _divide,
    **_functions(2),
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
