"""Rounding and exact float arithmetic of the reference interpreter, held to rational numbers."""

from __future__ import annotations

import bisect
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsmith.dtypes import BY_NAME, DType, by_name
from warpsmith.hlo.evaluator import evaluate
from warpsmith.hlo.evaluator.arithmetic.formats import round_once, wide
from warpsmith.hlo.evaluator.arithmetic.special import erf, logistic
from warpsmith.hlo.text.parser import parse_hlo


def _round(numbers: list[float], dtype: DType) -> list[float]:
    with np.errstate(all="ignore"):
        return wide(round_once(np.array(numbers), dtype), dtype).tolist()


def _mpmath() -> Any:
    return pytest.importorskip("mpmath", reason="mpmath isn't installed: no exact functions to compare with")


NARROW = [row for row in BY_NAME.values() if row.is_float and row.bits <= 16 and row.name != "f8e8m0fnu"]
SATURATES = {"f4e2m1fn"}
NAN_ON_OVERFLOW = {"f8e4m3fn", "f8e4m3b11fnuz", "f8e4m3fnuz", "f8e5m2fnuz"}
NO_NEGATIVE_ZERO = {"f8e4m3b11fnuz", "f8e4m3fnuz", "f8e5m2fnuz"}


def _finite_numbers(dtype: DType) -> tuple[list[Fraction], list[int]]:
    """The finite non-negative numbers of a type in order with their codes, as ml_dtypes decodes them."""
    codes = np.arange(1 << (dtype.bits - 1), dtype=np.uint8 if dtype.bits <= 8 else np.uint16)
    with np.errstate(all="ignore"):
        numbers = codes.view(dtype.numpy).astype(np.float64)
    kept = [int(code) for code in codes if math.isfinite(numbers[code])]
    return [Fraction(float(numbers[code])) for code in kept], kept


def _rounded(x: float, dtype: DType, table: tuple[list[Fraction], list[int]]) -> float:
    """`x` to nearest, ties to the even code, by exact comparison with every number of the type."""
    numbers, codes = table
    if math.isnan(x):
        return -0.0 if dtype.name in SATURATES else math.nan
    sign = math.copysign(1.0, x)
    largest = numbers[-1]
    step = largest - numbers[-2]
    size = Fraction(abs(x)) if math.isfinite(x) else None
    # Past the largest number by half a step or more the next number, if there were one, would be as near; its code is
    # even where the largest one's is odd, and then takes the tie.
    limit = largest + step / 2
    over = size is None or size > limit or (size == limit and codes[-1] % 2 == 1)
    if over and dtype.name in SATURATES:
        return sign * float(largest)
    if over:
        return math.nan if dtype.name in NAN_ON_OVERFLOW else sign * math.inf
    assert size is not None
    low, high = 0, len(numbers) - 1
    while low < high:  # the last number not above size
        middle = (low + high + 1) // 2
        low, high = (middle, high) if numbers[middle] <= size else (low, middle - 1)
    if low + 1 < len(numbers):
        below, above = size - numbers[low], numbers[low + 1] - size
        if above < below or (above == below and codes[low] % 2 == 1):
            low += 1
    result = sign * float(numbers[low])
    return 0.0 if result == 0 and dtype.name in NO_NEGATIVE_ZERO else result


def _same(a: float, b: float) -> bool:
    return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))


@pytest.mark.parametrize("dtype", NARROW, ids=lambda dtype: dtype.name)
def test_float64_rounds_once_to_every_narrow_format(dtype: DType) -> None:
    """Halfway points and their float64 neighbours: rounding through float32 gets the neighbours wrong."""
    table = _finite_numbers(dtype)
    numbers = [float(each) for each in table[0]]
    step = max(1, len(numbers) // 300)
    places = [*range(0, len(numbers) - 1, step), *range(min(20, len(numbers) - 1)), len(numbers) - 2]
    middles = [(numbers[i] + numbers[i + 1]) / 2 for i in places]
    middles.append(numbers[-1] + (numbers[-1] - numbers[-2]) / 2)
    probes = [0.0, math.inf, math.nan, 1e300, 5e-324, *numbers[::step]]
    for middle in middles:
        probes += [middle, math.nextafter(middle, 0.0), math.nextafter(middle, math.inf)]
    probes += [-probe for probe in probes]
    for probe, result in zip(probes, _round(probes, dtype), strict=True):
        expected = _rounded(probe, dtype, table)
        assert _same(result, expected), (dtype, probe, result, expected)


TABLES = {row.name: _finite_numbers(row) for row in NARROW if row.bits <= 8} | {"f16": _finite_numbers(by_name("f16"))}


@settings(deadline=None, max_examples=150)
@given(st.floats(), st.sampled_from(sorted(TABLES)))
def test_any_float64_rounds_to_the_nearest_number(x: float, name: str) -> None:
    """Any double, subnormal and infinite ones included."""
    dtype = by_name(name)
    assert _same(_round([x], dtype)[0], _rounded(x, dtype, TABLES[name]))


@pytest.mark.parametrize("opcode", ["add", "subtract", "multiply", "divide"])
@pytest.mark.parametrize("name", ["f8e4m3fn", "f8e5m2", "f8e3m4", "f4e2m1fn", "f8e5m2fnuz"])
def test_narrow_arithmetic_is_the_exact_result_rounded_once(name: str, opcode: str) -> None:
    """Every 7th pair of codes: the rational result, rounded."""
    dtype = by_name(name)
    size = 1 << dtype.bits
    pairs = np.arange(0, size * size, 7 if dtype.bits == 8 else 1)
    codes = [(pairs // size).astype(np.uint8), (pairs % size).astype(np.uint8)]
    left, right = (code.view(dtype.numpy) for code in codes)
    text = f"HloModule m\nENTRY e {{\n x = {name}[{len(pairs)}] parameter(0)\n y = {name}[{len(pairs)}] parameter(1)\n"
    (found,) = evaluate(parse_hlo(text + f" ROOT r = {name}[{len(pairs)}] {opcode}(x, y)\n}}"), left, right)
    exact = {"add": Fraction.__add__, "subtract": Fraction.__sub__, "multiply": Fraction.__mul__}
    numbers = [wide(each, dtype) for each in (left, right, found)]
    table = TABLES[name]
    for a, b, result in zip(*(each.tolist() for each in numbers), strict=True):
        if not (math.isfinite(a) and math.isfinite(b)) or (opcode == "divide" and b == 0):
            continue
        value = Fraction(a) / Fraction(b) if opcode == "divide" else exact[opcode](Fraction(a), Fraction(b))
        near = float(value) if Fraction(float(value)) == value else _odd(value)
        expected = _rounded(near, dtype, table)
        assert result == expected or (math.isnan(result) and math.isnan(expected)), (a, b, result, expected)


def _odd(value: Fraction) -> float:
    """A double that lies strictly on the same side of every halfway point of a narrow format as `value`."""
    near = float(value)
    if Fraction(near) == value or (math.frexp(near)[0] not in (0.5, -0.5) and _is_odd(near)):
        return near
    return math.nextafter(near, math.inf if Fraction(near) < value else -math.inf)


def _is_odd(x: float) -> bool:
    return bool(np.float64(x).view(np.uint64) & 1)


@pytest.mark.parametrize("name", ["f16", "bf16", "f8e4m3fn", "f8e5m2"])
def test_64_bit_integers_round_once(name: str) -> None:
    """Integers one off a halfway point, past what float64 holds: going through float64 first makes them ties."""
    dtype = by_name(name)
    if dtype.bits == 8:
        integers = [17, 18, 19, 100, 104, 105, 232, 464, 465, (1 << 40) + 1]
    else:
        integers = [
            side * ((1 << power) + (1 << (power - dtype.mantissa - 1)) + off)
            for power in (20, 58, 60, 61)
            for off in (-1, 0, 1)
            for side in (1, -1)
        ]
    text = f"HloModule m\nENTRY e {{\n x = s64[{len(integers)}] parameter(0)\n"
    (found,) = evaluate(
        parse_hlo(text + f" ROOT r = {name}[{len(integers)}] convert(x)\n}}"), np.array(integers, np.int64)
    )
    numbers, codes = _finite_numbers(dtype)
    for integer, result in zip(integers, wide(found, dtype).tolist(), strict=True):
        size = Fraction(abs(integer))
        limit = numbers[-1] + (numbers[-1] - numbers[-2]) / 2
        if size > limit or (size == limit and codes[-1] % 2):
            assert not math.isfinite(result)
            continue
        near = bisect.bisect(numbers, size)
        around = range(max(0, near - 2), min(len(numbers), near + 2))
        best = min(around, key=lambda i: (abs(numbers[i] - size), codes[i] % 2))
        assert result == math.copysign(float(numbers[best]), integer), (integer, result)


def test_e8m0_holds_powers_of_two() -> None:
    """Ties go up; zero, negatives, NaN and what is too large are NaN; what is too small is 2^-127."""
    dtype = by_name("f8e8m0fnu")
    given_ = [1.0, 1.49, 1.5, 3.0, 2.0**127, 1.5 * 2.0**127, 1e-300, 0.0, -1.0, math.nan, math.inf]
    expected = [1.0, 1.0, 2.0, 4.0, 2.0**127, math.nan, 2.0**-127, math.nan, math.nan, math.nan, math.nan]
    np.testing.assert_array_equal(_round(given_, dtype), expected)


def test_erf_is_within_two_ulp_of_the_exact_function() -> None:
    """The series below 1/2, the tables above, their border and the end of the tables."""
    mpmath = _mpmath()
    x = np.concatenate([np.linspace(-6.5, 6.5, 701), [0.5, 0.49999999999999994, 1e-300, 5.999, 6.0, 26.0, -0.0]])
    for each, result in zip(x.tolist(), erf(x).tolist(), strict=True):
        exact = mpmath.erf(mpmath.mpf(each))
        assert abs(mpmath.mpf(result) - exact) <= 2 * math.ulp(result), (each, result)
    assert math.copysign(1, float(erf(np.array([-0.0]))[0])) == -1
    assert np.isnan(erf(np.array([np.nan]))[0])
    assert erf(np.array([np.inf, -np.inf])).tolist() == [1.0, -1.0]


def test_logistic_keeps_its_relative_accuracy() -> None:
    """Far negative arguments give exp(x), not 0."""
    mpmath = _mpmath()
    x = np.array([-745.0, -700.0, -100.0, -1.0, 0.0, 1.0, 40.0, 800.0, -800.0])
    exact = [float(1 / (1 + mpmath.exp(-mpmath.mpf(each)))) for each in x.tolist()]
    np.testing.assert_allclose(logistic(x), exact, rtol=1e-15, atol=5e-324)


@pytest.mark.parametrize("name", ["bf16", "f16", "f32"])
def test_transcendental_results_are_correctly_rounded(name: str) -> None:
    """Against 200-bit arithmetic on 200 arguments a function."""
    mpmath = _mpmath()
    dtype = by_name(name)
    rng = np.random.default_rng(3)
    x = (rng.standard_normal(200) * 3).astype(dtype.numpy)
    functions = {
        "exponential": mpmath.exp,
        "log": mpmath.log,
        "tanh": mpmath.tanh,
        "sine": mpmath.sin,
        "erf": mpmath.erf,
        "rsqrt": lambda v: 1 / mpmath.sqrt(v),
        "exponential-minus-one": mpmath.expm1,
        "cbrt": mpmath.cbrt,
    }
    with mpmath.workprec(200):
        for opcode, function in functions.items():
            given_ = np.abs(x) if opcode in ("log", "rsqrt", "cbrt") else x
            text = f"HloModule m\nENTRY e {{\n x = {name}[200] parameter(0)\n ROOT r = {name}[200] {opcode}(x)\n}}"
            (found,) = evaluate(parse_hlo(text), given_)
            for each, result in zip(wide(given_, dtype).tolist(), wide(found, dtype).tolist(), strict=True):
                gap = abs(mpmath.mpf(result) - function(mpmath.mpf(each)))
                exponent = math.frexp(result)[1] - 1
                half = mpmath.mpf(2) ** (max(exponent, -14 if name == "f16" else -126) - dtype.mantissa - 1)
                assert gap <= half * (1 + mpmath.mpf(2) ** -20), (opcode, each, result)


def test_reduce_precision_follows_the_small_formats() -> None:
    """As e5m10 it is f16 with subnormals flushed; overflow gives infinity, NaN stays."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, 4000, dtype=np.uint64).astype(np.uint32)
    x = np.concatenate([bits.view(np.float32), rng.standard_normal(4000).astype(np.float32)])
    x = np.append(x, np.array([65519.996, 65520, -65520, 6.1035156e-05, 6.1e-05, np.nan, np.inf], np.float32))
    text = f"HloModule m\nENTRY e {{\n x = f32[{len(x)}] parameter(0)\n"
    text += f" ROOT r = f32[{len(x)}] reduce-precision(x), exponent_bits=5, mantissa_bits=10\n}}"
    (found,) = evaluate(parse_hlo(text), x)
    with np.errstate(all="ignore"):
        half = x.astype(np.float16).astype(np.float32)
    expected = np.where(np.abs(half) < 2.0**-14, np.copysign(np.float32(0), half), half)
    np.testing.assert_array_equal(found, expected)
