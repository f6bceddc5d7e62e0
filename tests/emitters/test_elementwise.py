"""Every elementwise op of every element type, edge values included, gives what the reference interpreter gives.

The kernels run as emitted, in the simulator; the interpreter shares no code with the emitters.
"""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runner import check, random_inputs, run_module

from warpsmith.arrays import Array
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.numerics.inputs import Profile

SIZE = 300
INTEGERS = ("s4", "s8", "s16", "s32", "s64", "u4", "u8", "u16", "u32", "u64")
FLOATS = ("f16", "bf16", "f32", "f64", "f8e4m3fn", "f8e5m2")
INTEGER_UNARY = ("abs", "negate", "not", "sign", "popcnt", "count-leading-zeros")
INTEGER_BINARY = (
    *("add", "subtract", "multiply", "divide", "remainder", "power", "maximum", "minimum", "and", "or", "xor"),
    *("shift-left", "shift-right-logical", "shift-right-arithmetic"),
)
FLOAT_UNARY = (
    *("abs", "acos", "acosh", "asin", "asinh", "atanh", "cbrt", "ceil", "cosine", "cosh", "erf", "exponential"),
    *("exponential-minus-one", "floor", "log", "log-plus-one", "logistic", "negate", "round-nearest-afz"),
    *("round-nearest-even", "rsqrt", "sign", "sine", "sinh", "sqrt", "tan", "tanh"),
)
FLOAT_BINARY = ("add", "subtract", "multiply", "divide", "remainder", "power", "maximum", "minimum", "atan2")
DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


def module(dtype: str, rows: list[tuple[str, str]], parameters: tuple[str, ...]) -> str:
    """One fusion with a root a row: (result type, op with operands)."""
    heads = [f"  p{i} = {each}[{SIZE}] parameter({i})" for i, each in enumerate(parameters)]
    lines = [f"  r{i} = {result}[{SIZE}] {op}" for i, (result, op) in enumerate(rows)]
    types = "(" + ", ".join(f"{result}[{SIZE}]" for result, _ in rows) + ")"
    names = ", ".join(f"r{i}" for i in range(len(rows)))
    inputs = ", ".join(f"p{i}" for i in range(len(parameters)))
    body = "\n".join([*heads, *lines, f"  ROOT t = {types} tuple({names})"])
    entry = "\n".join([*heads, f"  ROOT f = {types} fusion({inputs}), kind=kLoop, calls=f"])
    return f"HloModule m_{dtype}\nf {{\n{body}\n}}\nENTRY e {{\n{entry}\n}}"


def comparisons() -> list[tuple[str, str]]:
    return [("pred", f"compare(p0, p1), direction={direction}") for direction in DIRECTIONS]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(dtype: str) -> None:
    """Wrap-around, division by zero, MIN / -1, shifts past the width, powers."""
    signed = ("abs", "sign")  # HLO has neither for unsigned integers
    unary = [op for op in INTEGER_UNARY if op not in signed or dtype.startswith("s")]
    rows = [(dtype, f"{op}(p0)") for op in unary]
    rows += [(dtype, f"{op}(p0, p1)") for op in INTEGER_BINARY]
    rows += [*comparisons(), (dtype, "clamp(p0, p1, p2)"), (dtype, "select(p3, p0, p1)")]
    check(module(dtype, rows, (dtype, dtype, dtype, "pred")))


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats(dtype: str) -> None:
    """NaN, infinities, signed zeros, subnormals."""
    rows = [(dtype, f"{op}(p0)") for op in FLOAT_UNARY]
    rows += [(dtype, f"{op}(p0, p1)") for op in FLOAT_BINARY]
    rows += [*comparisons(), ("pred", "is-finite(p0)")]
    rows += [(dtype, "clamp(p0, p1, p2)"), (dtype, "select(p3, p0, p1)")]
    check(module(dtype, rows, (dtype, dtype, dtype, "pred")))


@pytest.mark.parametrize("dtype", FLOATS)
def test_total_order_is_the_order_of_sign_and_magnitude(dtype: str) -> None:
    """-NaN < -inf < ... < -0 < +0 < ... < inf < NaN, NaN's sign kept whatever the width."""
    text = module(dtype, [("pred", "compare(p0, p1), direction=LT, type=TOTALORDER")], (dtype, dtype))
    parsed = parse_hlo(text)
    arrays = random_inputs(parsed)
    (found,) = run_module(parsed, arrays, "sm_90")

    def key(array: Array) -> Array:
        bits = array.view(f"i{array.dtype.itemsize}").astype(np.int64)
        sign = bits < 0
        magnitude = bits & ((1 << (8 * array.dtype.itemsize - 1)) - 1)
        return np.where(sign, -magnitude - 1, magnitude)

    np.testing.assert_array_equal(found, key(arrays[0]) < key(arrays[1]))


def test_predicates() -> None:
    rows = [("pred", f"{op}(p0, p1)") for op in ("add", "multiply", "and", "or", "xor", "maximum", "minimum")]
    rows += [("pred", "not(p0)"), *comparisons()]
    check(module("pred", rows, ("pred", "pred")))


@pytest.mark.parametrize(("dtype", "part"), [("c64", "f32"), ("c128", "f64")])
def test_complex_arithmetic(dtype: str, part: str) -> None:
    rows = [(dtype, f"{op}(p0, p1)") for op in ("add", "subtract", "multiply", "divide")]
    rows += [(dtype, "negate(p0)"), (dtype, "complex(p2, p3)"), (part, "real(p0)"), (part, "imag(p0)")]
    rows += [("pred", f"compare(p0, p1), direction={direction}") for direction in ("EQ", "NE")]
    check(module(dtype, rows, (dtype, dtype, part, part)), profile=Profile.TAME)


def test_complex_functions() -> None:
    """c64 functions are computed in f64, so that the one rounding is all that is off."""
    rows = [("c64", f"{op}(p0)") for op in ("exponential", "log", "sqrt")] + [("f32", "abs(p0)")]
    check(module("c64", rows, ("c64",)))


@pytest.mark.parametrize("source", ["pred", *INTEGERS, *FLOATS, "c64"])
def test_conversions_to_every_type(source: str) -> None:
    """Saturation, NaN to 0, one rounding, sign by the source's type."""
    targets = ["pred", *INTEGERS, *FLOATS, "c64", "c128"]
    check(module(source, [(target, "convert(p0)") for target in targets], (source,)))


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
def test_reduce_precision(dtype: str) -> None:
    formats = [(e, m) for e, m in ((5, 10), (4, 3), (3, 2), (2, 0))]
    rows = [(dtype, f"reduce-precision(p0), exponent_bits={e}, mantissa_bits={m}") for e, m in formats]
    check(module(dtype, rows, (dtype,)))


def test_logistic_keeps_precision_for_very_negative_arguments() -> None:
    """1 / (1 + exp(-x)), as it stands in the definition, overflows to 0 there."""
    text = module("f32", [("f32", "logistic(p0)")], ("f32",))
    values = np.linspace(-103.0, 20.0, SIZE, dtype=np.float32)
    (found,) = check(text, [values])
    assert (found[:20] > 0).all()


def test_scalar_operand_of_a_ranked_op() -> None:
    """clamp's bounds may be scalars."""
    text = """HloModule m
ENTRY e {
  lo = f32[] parameter(0)
  x = f32[5,3] parameter(1)
  hi = f32[] parameter(2)
  ROOT r = f32[5,3] clamp(lo, x, hi)
}"""
    for target in ("sm_90", "cpu"):
        check(text, target=target)
