"""Inverse functions of complex numbers: rows of the table.

As in `complexes.py`, c64 is computed in f64 and rounded once.  asin, acos, asinh and acosh are those of Hull,
Fairgrieve and Tang (1997), "Implementing the complex arcsine and arccosine functions using exception handling": half
the sum of the distances from the branch points gives one part, and what that exceeds the operand's part by, formed
without a difference, the other.  Special values are those of C's Annex G.
"""

from __future__ import annotations

from dataclasses import dataclass

from warpsmith.emitters.elemental.complexes import log_modulus, modulus, pair, wide
from warpsmith.emitters.elemental.emitter import Values
from warpsmith.emitters.elemental.reals import Real, Truth
from warpsmith.emitters.elemental.scalars import Row, Scalar, Scalars

__all__ = ["COMPLEX_INVERSE_ROWS"]

Parts = tuple[Real, Real]

_EPSILON = 2.0**-52
_LN2 = 0.6931471805599453
_HALF_PI = 1.5707963267948966
_PI = 3.141592653589793
_LARGE = 2.0**30  # from here on asinh z is log(2 z), and no square of a c64's parts overflows
_HUGE = 2.0**400


@dataclass(frozen=True, slots=True)
class _Arc:
    """For asinh(x + iy) in the first quadrant: the real part, and the tangent's denominator whose numerator is y."""

    real: Real
    beside: Real


def _modulus(x: Real, y: Real) -> Real:
    return Real(x.s, modulus(x.s, (x.value, y.value)))


def _excess(a: Real, b: Real, h: Real) -> Real:
    """h - b where h is the hypotenuse of a and b."""
    down = h + abs(b)
    down = down.equals(0.0).select(down.number(1.0), down)
    return (b >= 0.0).select(a / down * a, h - b)


def _arc(x: Real, y: Real) -> _Arc:
    """x, y >= 0 and finite."""
    above, below = y + 1.0, y - 1.0
    r, q = _modulus(x, above), _modulus(x, below)
    a = (r + q) * 0.5
    a = (a < 1.0).select(a.number(1.0), a)
    # Where x counts for nothing beside the distance from the branch point, its square may vanish.
    narrow = x < abs(below) * _EPSILON
    product = abs(below) * above
    root = product.apply("sqrt")
    safe = root.equals(0.0).select(root.number(1.0), root)
    inside = y < 1.0
    over = _excess(x, above, r) + _excess(x, 1.0 - y, q)  # 2 (a - 1)
    usual = over * 0.5 + (over * ((a + 1.0) * 0.5)).apply("sqrt")
    argument = narrow.select(below + root, usual).apply("log1p")
    real = (narrow & inside).select(x / safe, argument)
    past = _excess(x, above, r) + _excess(x, below, q)  # 2 (a - y)
    beside = (past * ((a + y) * 0.5)).apply("sqrt")
    return _Arc(real, narrow.select(inside.select(root, x * y / safe), beside))


def _asinh(x: Real, y: Real) -> Parts:
    far = _far(x, y)
    arc = _arc(abs(x), abs(y))
    real = far.select(_log_twice(x, y), arc.real).with_sign_of(x)
    angle = abs(y).apply("atan2", far.select(abs(x), arc.beside)).with_sign_of(y)
    return real, y.equals(0.0).select(y, angle)


def _asin(x: Real, y: Real) -> Parts:
    """asin(x + iy) has the parts of asinh(y + ix), swapped."""
    real, imaginary = _asinh(y, x)
    return imaginary, real


def _acos(x: Real, y: Real) -> Parts:
    far = _far(x, y)
    arc = _arc(abs(y), abs(x))
    angle = far.select(abs(y), arc.beside).apply("atan2", x)
    angle = (x.equals(0.0) & y.is_nan()).select(x.number(_HALF_PI), angle)
    size = far.select(_log_twice(x, y), arc.real)
    return angle, y.is_negative().select(size, -size)


def _acosh(x: Real, y: Real) -> Parts:
    angle, size = _acos(x, y)
    return abs(size), angle.with_sign_of(y)


def _far(x: Real, y: Real) -> Truth:
    """Whether |x + iy| is so large that twice it is as good as z + sqrt(z**2 + 1); or isn't a number."""
    size = abs(x).max(abs(y))
    return (size > _LARGE) | size.is_nan()


def _log_twice(x: Real, y: Real) -> Real:
    return Real(x.s, log_modulus(x.s, (x.value, y.value))) + _LN2


def _atanh(x: Real, y: Real) -> Parts:
    """log1p(4 |x| / ((1 - |x|)**2 + y**2)) / 4 and atan2(2 y, (1 - |x|) (1 + |x|) - y**2) / 2."""
    a, b = abs(x), abs(y)
    less = 1.0 - a
    squares = less * less + b * b
    real = (a * 4.0 / squares).apply("log1p") * 0.25
    # At the pole b**2 may vanish.
    beside = (_LN2 - b.apply("log")) * 0.5
    real = (a.equals(1.0) & (b < _EPSILON)).select(beside, real)
    angle = (b * 2.0).apply("atan2", less * (a + 1.0) - b * b) * 0.5
    larger, smaller = a.max(b), (a > b).select(b, a)
    ratio = smaller / larger
    inverse = (a > b).select(a.number(1.0), ratio) / larger / (ratio * ratio + 1.0)
    infinity = float("inf")
    infinite = a.equals(infinity) | b.equals(infinity)
    huge = (larger > _HUGE) | infinite
    real = infinite.select(a.number(0.0), huge.select(inverse, real))
    angle = (huge & (b >= 0.0)).select(angle.number(_HALF_PI), angle)
    real = x.equals(0.0).select(x, real)
    return real.with_sign_of(x), angle.with_sign_of(y)


def _atan2(y: Parts, x: Parts, side: Real) -> Parts:
    """-i log((x + iy) / sqrt(x**2 + y**2)).

    Up to half a turn its real part is half the angle of (x + iy) conj(x - iy), its imaginary part half the logarithm
    of |x - iy| / |x + iy|: neither has a difference that isn't in the operands already.  On the root's cut the sign of
    `side`, the imaginary part of the sum, decides.  NaN where a part isn't finite.
    """
    (a, b), (c, d) = y, x
    minus, plus = (c + b, d - a), (c - b, d + a)  # x - iy, x + iy
    above, below = _modulus(*minus), _modulus(*plus)
    excess = (c * b - d * a) / below * 4.0 / below
    near = abs(excess) < 0.5  # far from the poles, where one of the two is zero
    sine = near.select((c * a + d * b) * 2.0, plus[1] * minus[0] - plus[0] * minus[1])
    angle = sine.apply("atan2", plus[0] * minus[0] + plus[1] * minus[1]) * 0.5
    first, second = plus[1].apply("atan2", plus[0]), minus[1].apply("atan2", minus[0])
    turn = first + second
    on_cut = abs(abs(turn) - _PI) < 8 * _EPSILON
    turn = (turn > _PI).select(turn - 2 * _PI, turn)
    turn = (turn < -_PI).select(turn + 2 * _PI, turn)
    turn = on_cut.select(turn.number(_PI).with_sign_of(side), turn)  # the angle of x**2 + y**2
    off = first - turn * 0.5 - angle  # a multiple of pi, nearly
    half_turn = abs((off / _PI).apply("roundeven")).equals(1.0)
    angle = half_turn.select(angle - angle.number(_PI).with_sign_of(angle), angle)
    size = near.select(excess.apply("log1p") * 0.25, (above / below).apply("log") * 0.5)
    nothing = (a - a) * (b - b) * (c - c) * (d - d)
    return angle + nothing, size + nothing


_FUNCTIONS = {"acos": _acos, "acosh": _acosh, "asin": _asin, "asinh": _asinh, "atanh": _atanh}


def _row(name: str) -> Scalar:
    function = _FUNCTIONS[name]

    def emit(s: Scalars) -> Values:
        a, b = pair(s.args[0])
        real, imaginary = function(Real(s, a), Real(s, b))
        return real.value, imaginary.value

    return wide(emit)


def _atan2_row(s: Scalars) -> Values:
    """Both operands are scaled alike, which leaves the quotient as it is and keeps squares within range."""
    y, x = (tuple(Real(s, part) for part in pair(each)) for each in s.args)
    parts = [*y, *x]
    side = x[0] * x[1] + y[0] * y[1]
    size = abs(parts[0])
    for part in parts[1:]:
        size = size.max(abs(part))
    if s.dtype.bits == 128:
        one = size.number(1.0)
        factor = (size > 2.0**500).select(size.number(2.0**-530), (size < 2.0**-450).select(one * 2.0**600, one))
        parts = [part * factor for part in parts]
    real, imaginary = _atan2((parts[0], parts[1]), (parts[2], parts[3]), side)
    return real.value, imaginary.value


COMPLEX_INVERSE_ROWS: dict[str, Row] = {
    **{name: Row(complex=_row(name)) for name in _FUNCTIONS},
    "atan2": Row(complex=wide(_atan2_row)),
}
