"""log, log1p, log2 and log10 in f32.

An argument is 2**k (1 + f) with 1 + f in [2/3, 4/3); the cut at 2/3 keeps |f| <= 1/3 and k = 0 around 1, where the
result must keep its relative accuracy.
"""

from __future__ import annotations

from warpsmith.numerics.expr import Float, Int, Precision, poly

__all__ = ["log", "log1p", "log2", "log10", "log_of_split"]

_TWO_THIRDS_BITS = 0x3F2AAAAB
_ONE_BITS = 0x3F800000
_EXPONENT = -0x800000  # sign and exponent bits
_LEAST_NORMAL = 1.17549435e-38
_INF = float("inf")
_NAN = float("nan")

# ln 2 = high + low; high has 9 bits, so that k * high is exact.
_LN2_HIGH = 0.693359375
_LN2_LOW = -2.1219444005469057e-4
_LN2 = 0.69314718055994530942
_LOG10_2_HIGH = 0.30078125
_LOG10_2_LOW = 2.4874566398119521e-4
_LOG10_2 = 0.30102999566398119521

# log(1 + f) = f + f**2 (f P(f) - 1/2): relative error 2**-27.7, 2**-22.3, 2**-19.1.
_LOG_F32 = (0.33333215, -0.24999803, 0.20010448, -0.16680242, 0.14005262, -0.121875495, 0.13987204, -0.12877797)
_LOG_F16 = (0.33336565, -0.25004667, 0.19822448, -0.1646238, 0.16965356, -0.15177737)
_LOG_BF16 = (0.33335122, -0.24908046, 0.19861858, -0.1897456, 0.16719793)
# log2(1 + f) = f P(f) and log10 likewise: 2**-25, 2**-19.8.
LOG2_F32 = (
    1.442695, -0.72134686, 0.4808981, -0.36077273, 0.28865308, -0.2370451, 0.20242374, -0.22101915, 0.20047899,
)  # fmt: skip
_LOG2_HALF = (1.4426948, -0.72137946, 0.48096323, -0.3584006, 0.28566015, -0.27992487, 0.24633883)
_LOG10_F32 = (
    0.4342945, -0.21714708, 0.14476359, -0.10860123, 0.08692004, -0.071391046, 0.060690563, -0.06637862, 0.061129875,
)  # fmt: skip
_LOG10_HALF = (0.43429443, -0.21715692, 0.14478277, -0.10788762, 0.086017914, -0.08427667, 0.07403186)


def split(x: Float, precision: Precision) -> tuple[Float, Float]:
    """A positive finite x as (f, k)."""
    if precision is Precision.F16:  # never subnormal
        scaled, adjust = x, None
    else:
        small = x < _LEAST_NORMAL
        scaled, adjust = small.select(x * 8388608.0, x), small.choose(23.0, 0.0)
    shifted = (scaled.bits() - _TWO_THIRDS_BITS) & _EXPONENT
    f = (scaled.bits() - shifted).as_float() - 1.0
    k = (shifted >> 23).to_float()
    return f, k if adjust is None else k - adjust


def log_of_split(f: Float, k: Float, precision: Precision) -> Float:
    """log(2**k (1 + f))."""
    tail = (f * f) * f.muladd(poly(f, precision.pick(_LOG_F32, _LOG_F16, _LOG_BF16)), -0.5)
    if precision is Precision.F32:
        return k.muladd(_LN2_HIGH, f + k.muladd(_LN2_LOW, tail))
    return k.muladd(_LN2, f + tail)


def _with_edges(x: Float, result: Float) -> Float:
    """Puts right what a logarithm gives at inf, NaN, 0 and below."""
    result = (x < _INF).select(result, x)
    result = (x < 0.0).select(x.constant(_NAN), result)
    return x.equals(0.0).select(x.constant(-_INF), result)


def log(x: Float, precision: Precision) -> Float:
    """Natural logarithm."""
    f, k = split(x, precision)
    return _with_edges(x, log_of_split(f, k, precision))


def log2(x: Float, precision: Precision) -> Float:
    """Binary logarithm; exact for powers of two."""
    f, k = split(x, precision)
    return _with_edges(x, f.muladd(poly(f, precision.pick(LOG2_F32, _LOG2_HALF, _LOG2_HALF)), k))


def log10(x: Float, precision: Precision) -> Float:
    """Decimal logarithm."""
    f, k = split(x, precision)
    p = poly(f, precision.pick(_LOG10_F32, _LOG10_HALF, _LOG10_HALF))
    if precision is Precision.F32:
        return _with_edges(x, k.muladd(_LOG10_2_HIGH, f.muladd(p, k * _LOG10_2_LOW)))
    return _with_edges(x, k.muladd(_LOG10_2, f * p))


def log1p(x: Float, precision: Precision) -> Float:
    """log(1 + x): 1 + f is (1 + x) 2**-k, with f computed from x, so that nothing of a small x is lost."""
    shifted: Int = ((x + 1.0).bits() - _TWO_THIRDS_BITS) & _EXPONENT
    # A quarter of 2**-k: k reaches 128, and 2**-128 is subnormal; 4 * 2**-k isn't.
    quadruple = (_ONE_BITS + (2 << 23)) - shifted
    f = (x.bits() - shifted).as_float() + quadruple.as_float().muladd(0.25, -1.0)
    result = log_of_split(f, (shifted >> 23).to_float(), precision)
    result = (x < _INF).select(result, x)
    result = (x < -1.0).select(x.constant(_NAN), result)
    result = x.equals(-1.0).select(x.constant(-_INF), result)
    return x.equals(0.0).select(x, result)
