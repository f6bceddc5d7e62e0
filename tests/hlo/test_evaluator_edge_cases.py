"""The reference interpreter against exact arithmetic: every op, type and edge value of `numerics.edge_cases`."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from oracle.edge_cases import FAMILIES, Batch
from oracle.edge_exact import Special, array_of, decode, encode
from oracle.edge_reals import UNARY

from warpsmith.dtypes import BY_NAME, DType, by_name
from warpsmith.hlo.evaluator import evaluate
from warpsmith.hlo.text.parser import parse_hlo

FLOATS = [row for row in BY_NAME.values() if row.is_float]


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_the_interpreter_has_the_exact_bits(family: str) -> None:
    batches = list(FAMILIES[family]())
    wrong: list[str] = []
    for batch in batches:
        (found,) = evaluate(parse_hlo(batch.text()), *batch.operands)
        wrong += batch.wrong(found)
    assert not wrong
    assert len(batches) >= 15
    assert len({batch.id for batch in batches}) == len(batches)


@pytest.mark.slow
def test_every_type_and_pair_of_types_is_there() -> None:
    converted = {(b.sources[0].name, b.target.name) for f in ("convert", "wrapping convert") for b in FAMILIES[f]()}
    reals = [row.name for row in BY_NAME.values() if row.is_array_element and not row.is_complex]
    assert converted >= {(a, b) for a in reals for b in reals if a != b}
    assert {b.sources[0].name for b in FAMILIES["float unary"]()} == {row.name for row in FLOATS}


def test_a_wrong_bit_is_found() -> None:
    """Of each kind of type, the sign of a zero too; but not the payload of a NaN."""
    f32, s8 = by_name("f32"), by_name("s8")
    given = np.array([0, 1, np.nan], np.float32)
    batch = Batch("abs", (f32,), (given,), f32, given)
    assert not batch.wrong(given)
    assert len(batch.wrong(np.array([-0.0, 1, np.nan], np.float32))) == 1
    assert len(batch.wrong(np.array([0, np.nextafter(np.float32(1), np.float32(2)), np.nan], np.float32))) == 1
    assert len(batch.wrong(np.array([0, 1, 2], np.float32))) == 1
    payload = (given.view(np.uint32) | np.array([0, 0, 5], np.uint32)).view(np.float32)
    assert not batch.wrong(payload)
    whole = np.array([1, 2], np.int8)
    assert len(Batch("abs", (s8,), (whole,), s8, whole).wrong(np.array([1, 3], np.int8))) == 1


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_codes_are_those_of_ml_dtypes(dtype: DType) -> None:
    """The exact decoder and encoder against a third party's types."""
    rng = np.random.default_rng(0)
    codes = list(range(1 << dtype.bits)) if dtype.bits <= 16 else [int(c) for c in rng.integers(0, 1 << 63, 3000)]
    codes = [code % (1 << dtype.bits) for code in codes]
    with np.errstate(invalid="ignore"):  # signalling NaN
        values = array_of(dtype, codes).astype(np.float64)
    for code, value in zip(codes, values, strict=True):
        exact = decode(dtype, code)
        match exact:
            case Fraction():
                assert float(exact) == value
                assert not np.signbit(value) or exact < 0
                assert encode(dtype, exact) == code
            case Special.NAN:
                assert np.isnan(value)
            case _:
                assert str(float(exact.value)) == str(value)
                assert encode(dtype, exact) == code


@pytest.mark.parametrize("dtype", [row for row in FLOATS if row.bits <= 32 and row.name != "f8e8m0fnu"], ids=str)
def test_rounding_is_that_of_ml_dtypes(dtype: DType) -> None:
    """From float32, one rounding: ties, overflow, subnormal results, NaN."""
    rng = np.random.default_rng(1)
    spread = rng.standard_normal(4000) * np.exp2(rng.uniform(-40, 40, 4000))
    halves = np.arange(-600, 600) / 64.0
    for value in np.concatenate([spread, halves]).astype(np.float32):
        mine = encode(dtype, Fraction(float(value)) if value or not np.signbit(value) else Special.NEG_ZERO)
        with np.errstate(over="ignore"):
            theirs = np.asarray(value).astype(dtype.numpy)
        if np.isnan(theirs.astype(np.float32)):
            assert decode(dtype, mine) is Special.NAN
        else:
            assert mine == int(theirs.reshape(1).view(f"u{dtype.numpy.itemsize}")[0]) & ((1 << dtype.bits) - 1)


FUNCTIONS = {
    "exponential": mpmath.exp,
    "log": mpmath.log,
    "sine": mpmath.sin,
    "cosine": mpmath.cos,
    "tan": mpmath.tan,
    "tanh": mpmath.tanh,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "asinh": mpmath.asinh,
    "acosh": mpmath.acosh,
    "atanh": mpmath.atanh,
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "erf": mpmath.erf,
    "cbrt": mpmath.cbrt,
    "sqrt": mpmath.sqrt,
    "exponential-minus-one": mpmath.expm1,
    "log-plus-one": mpmath.log1p,
}


@pytest.mark.parametrize("opcode", FUNCTIONS)
def test_elementary_functions_have_forty_digits(opcode: str) -> None:
    """Against mpmath, from the least f64 to the largest f32."""
    arguments = [Fraction(1, 96), Fraction(7, 8), Fraction(9, 4), Fraction(11, 10), Fraction(29), Fraction(6000)]
    arguments += [Fraction(1, 2**40), Fraction(1, 2**140), Fraction(1, 2**1074), Fraction(2**127)]
    checked = 0
    with mpmath.workprec(4500):
        for x in arguments:
            mine = UNARY[opcode](x)
            if isinstance(mine, Fraction) and not (x > 2000 and opcode in ("exponential", "sinh", "cosh")):
                if x > 2000 and opcode == "exponential-minus-one":
                    continue
                right = FUNCTIONS[opcode](mpmath.mpf(x.numerator) / x.denominator)
                ours = mpmath.mpf(mine.numerator) / mine.denominator
                assert abs(ours - right) <= abs(right) * mpmath.mpf(10) ** -40, (opcode, x)
                checked += 1
    assert checked >= 4
