"""Floating-point instructions are IEEE's, in every format and direction.

The expected values come from exact fractions: the two neighbours of the exact result in the format are found by
bisection over bit patterns, and the direction picks one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simt.ptx_runner import apply

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
INFINITY = {"f16": 0x7C00, "bf16": 0x7F80, "f32": 0x7F800000, "f64": 0x7FF0000000000000}
NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "f64": 0x7FFFFFFFFFFFFFFF}


def value(bits: int, type: str) -> float:
    """The number that bits stand for."""
    return float(np.array([bits], f"u{BITS[type] // 8}").view(DTYPES[type])[0])


def nearest(exact: Fraction, type: str, mode: str = "rn") -> int:
    """Bits of an exact nonzero value in a format; past the largest finite number, infinity or that number."""
    sign = 1 << (BITS[type] - 1) if exact < 0 else 0
    size = abs(exact)
    low, high = 0, INFINITY[type]  # positive patterns are ordered as their values
    while high - low > 1:
        middle = (low + high) // 2
        if Fraction(value(middle, type)) <= size:
            low = middle
        else:
            high = middle
    below = Fraction(value(low, type))
    if below == size:
        return low | sign
    # the step up from the largest finite number is as large as the one below it
    step = below - Fraction(value(low - 1, type)) if high == INFINITY[type] else Fraction(value(high, type)) - below
    up = {"rz": False, "rp": exact > 0, "rm": exact < 0}.get(mode)
    if up is None:
        twice = 2 * (size - below)
        up = twice > step or (twice == step and low & 1 == 1)
    return (high if up else low) | sign


EXACT: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "fma": lambda a, b, c: a * b + c,
    "rcp": lambda a: 1 / a,
}
ARITY = {"add": 2, "sub": 2, "mul": 2, "div": 2, "fma": 3, "rcp": 1}
FORMS = [(op, "f32", mode) for op in ARITY for mode in ("rn", "rz", "rm", "rp")]
FORMS += [(op, "f64", mode) for op in ARITY for mode in ("rn", "rz", "rm", "rp")]
FORMS += [(op, type, "rn") for op in ("add", "sub", "mul", "fma") for type in ("f16", "bf16")]


def _patterns(type: str) -> st.SearchStrategy[int]:
    """Finite, nonzero bit patterns; many of them near one another, near the ends of the range, or simple."""
    sign, infinity = 1 << (BITS[type] - 1), INFINITY[type]
    one = {"f16": 0x3C00, "bf16": 0x3F80, "f32": 0x3F800000, "f64": 0x3FF0000000000000}[type]
    size = st.one_of(
        st.integers(1, infinity - 1),
        st.integers(1, 20),
        st.integers(infinity - 9, infinity - 1),
        st.integers(one - 9, one + 9),
    )
    return st.tuples(size, st.booleans()).map(lambda pair: pair[0] | (sign if pair[1] else 0))


@pytest.mark.parametrize(("op", "type", "mode"), FORMS, ids=lambda each: each)
@settings(max_examples=12)
@given(data=st.data())
def test_arithmetic_is_the_exact_result_rounded_once(op: str, type: str, mode: str, data: st.DataObject) -> None:
    """Every finite operand, every direction; a sum that cancels is left to the test below."""
    row = st.tuples(*[_patterns(type)] * ARITY[op])
    rows = data.draw(st.lists(row, min_size=8, max_size=24))
    exact = [EXACT[op](*(Fraction(value(bits, type)) for bits in each)) for each in rows]
    rows = [each for each, result in zip(rows, exact, strict=True) if result != 0] or [
        (INFINITY[type] - 1,) * ARITY[op]
    ]
    exact = [EXACT[op](*(Fraction(value(bits, type)) for bits in each)) for each in rows]
    kept = [(each, result) for each, result in zip(rows, exact, strict=True) if result != 0]
    if not kept:
        return
    operands = [(f"b{BITS[type]}", list(column)) for column in zip(*(each for each, _ in kept), strict=True)]
    names = ", ".join("%abc"[0] + "abc"[i] for i in range(ARITY[op]))
    found = apply(f"{op}.{mode}.{type} %d, {names};", operands, f"b{BITS[type]}")
    assert found == [nearest(result, type, mode) for _, result in kept]


@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@settings(max_examples=12)
@given(data=st.data())
def test_square_roots_lie_on_the_right_side(mode: str, type: str, data: st.DataObject) -> None:
    """The root r of x is the nearest number, or the next one below or above: r*r against x, exactly."""
    patterns = data.draw(st.lists(st.integers(1, INFINITY[type] - 1), min_size=4, max_size=16))
    found = apply(f"sqrt.{mode}.{type} %d, %a;", [(f"b{BITS[type]}", patterns)], f"b{BITS[type]}")
    for bits, root in zip(patterns, found, strict=True):
        x, r = Fraction(value(bits, type)), Fraction(value(root, type))
        below, above = Fraction(value(root - 1, type)), Fraction(value(root + 1, type))
        if mode in ("rz", "rm"):
            assert r * r <= x < above * above
        elif mode == "rp":
            assert below * below < x <= r * r
        else:
            assert ((below + r) / 2) ** 2 <= x <= ((above + r) / 2) ** 2


F = {
    "one": 0x3F800000,
    "two": 0x40000000,
    "inf": 0x7F800000,
    "nan": 0x7FC00001,
    "zero": 0,
    "small": 1,
    "-zero": 1 << 31,
}
EDGES: list[tuple[str, list[int], list[int], list[int]]] = [
    (
        "add.rn.f32 %d, %a, %b;",
        [F["one"], F["inf"], F["-zero"]],
        [0xBF800000, 0xFF800000, F["-zero"]],
        [0, NAN["f32"], F["-zero"]],
    ),
    (
        "add.rm.f32 %d, %a, %b;",
        [F["one"], F["zero"], F["zero"]],
        [0xBF800000, F["zero"], F["-zero"]],
        [F["-zero"], 0, F["-zero"]],
    ),
    ("mul.rn.f32 %d, %a, %b;", [F["zero"], F["nan"]], [F["inf"], F["one"]], [NAN["f32"], NAN["f32"]]),
    ("div.rn.f32 %d, %a, %b;", [F["one"], F["zero"]], [F["-zero"], F["zero"]], [0xFF800000, NAN["f32"]]),
    ("add.ftz.f32 %d, %a, %b;", [F["small"], 0x80000001], [F["zero"], F["-zero"]], [0, F["-zero"]]),
    ("add.rn.f32 %d, %a, %b;", [F["small"]], [F["small"]], [2]),
    (
        "add.sat.f32 %d, %a, %b;",
        [F["one"], F["-zero"], F["nan"], 0xBF800000],
        [F["one"], F["zero"], 0, 0],
        [F["one"], 0, 0, 0],
    ),
    (
        "max.f32 %d, %a, %b;",
        [F["nan"], F["-zero"], F["nan"]],
        [F["one"], F["zero"], F["nan"]],
        [F["one"], 0, NAN["f32"]],
    ),
    ("min.f32 %d, %a, %b;", [F["zero"], F["two"]], [F["-zero"], F["nan"]], [F["-zero"], F["two"]]),
    ("max.NaN.f32 %d, %a, %b;", [F["nan"], F["one"]], [F["one"], F["two"]], [NAN["f32"], F["two"]]),
    ("min.xorsign.abs.f32 %d, %a, %b;", [0xC0000000], [F["one"]], [0xBF800000]),
    ("copysign.f32 %d, %a, %b;", [F["-zero"], F["one"]], [F["two"], 0xFF800000], [0xC0000000, F["inf"]]),
    (
        "setp.lt.f32 %q, %a, %b; selp.b32 %d, 1, 0, %q;",
        [F["nan"], F["-zero"], F["one"]],
        [F["one"], 0, F["two"]],
        [0, 0, 1],
    ),
    ("setp.neu.f32 %q, %a, %b; selp.b32 %d, 1, 0, %q;", [F["nan"], F["-zero"]], [F["nan"], 0], [1, 0]),
    ("setp.ne.f32 %q, %a, %b; selp.b32 %d, 1, 0, %q;", [F["nan"], F["one"]], [F["nan"], F["two"]], [0, 1]),
    ("setp.equ.f32 %q, %a, %b; selp.b32 %d, 1, 0, %q;", [F["nan"], F["one"]], [F["one"], F["two"]], [1, 0]),
    ("setp.num.f32 %q, %a, %b; selp.b32 %d, 1, 0, %q;", [F["nan"], F["one"]], [F["one"], F["two"]], [0, 1]),
    ("setp.eq.ftz.f32 %q, %a, %b; selp.b32 %d, 1, 0, %q;", [F["small"]], [0], [1]),
    ("testp.subnormal.f32 %q, %a; selp.b32 %d, 1, 0, %q;", [F["small"], F["one"]], [0, 0], [1, 0]),
    ("testp.infinite.f32 %q, %a; selp.b32 %d, 1, 0, %q;", [0xFF800000, F["nan"]], [0, 0], [1, 0]),
    ("fma.rn.relu.f16x2 %d, %a, %b, %b;", [0x3C00BC00], [0x3C003C00], [0x40000000]),
    ("neg.bf16x2 %d, %a;", [0x3F80BF80], [0], [0xBF803F80]),
    ("setp.lt.f16x2 %q|_, %a, %b; selp.b32 %d, 1, 0, %q;", [0x40003C00], [0x3C004000], [1]),
    ("abs.f32 %d, %a;", [0xC0000000], [0], [F["two"]]),
    ("selp.f32 %d, 0f41000000, %a, %q;", [F["nan"]], [0], [F["nan"]]),
]


@pytest.mark.parametrize(("instruction", "a", "b", "expected"), EDGES, ids=[row[0] for row in EDGES])
def test_edge_values(instruction: str, a: list[int], b: list[int], expected: list[int]) -> None:
    """Signed zeros, infinities, NaNs (the hardware's own bits), subnormals, and the modifiers that change them."""
    assert apply("mov.pred %q, 0;" + instruction, [("b32", a), ("b32", b)]) == expected


def test_narrow_operands_of_a_wide_sum() -> None:
    """add.f32.bf16 and fma.f32.f16 read narrow factors and keep the f32 addend whole."""
    assert apply("add.rn.f32.bf16 %d, %a, %b;", [("b16", [0x3F80]), ("b32", [0x33800000])]) == [0x3F800000]
    assert apply("fma.rn.f32.f16 %d, %a, %b, %c;", [("b16", [0x4000]), ("b16", [0x4200]), ("b32", [0x3F800001])]) == [
        0x40E00000
    ]


# --------------------------------------------------------------------------------------------------------- conversions
@settings(max_examples=30)
@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=60))
def test_narrowing_agrees_with_numpy_and_ml_dtypes(patterns: list[int]) -> None:
    """To nearest even, for any f32, to f16, bf16 and both 8-bit floats."""
    source = np.array(patterns, np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        half, brain = source.astype(np.float16), source.astype(ml_dtypes.bfloat16)
    nan = np.isnan(source)
    for name, want in (("f16", half), ("bf16", brain)):
        found = np.array(apply(f"cvt.rn.{name}.f32 %d, %a;", [("b32", patterns)], "b16"), np.uint16)
        assert (found[~nan] == want.view(np.uint16)[~nan]).all()
        assert (found[nan] == 0x7FFF).all()
    for name, dtype, largest in (("e4m3", ml_dtypes.float8_e4m3fn, 448.0), ("e5m2", ml_dtypes.float8_e5m2, 57344.0)):
        packed = np.array(apply(f"cvt.rn.satfinite.{name}x2.f32 %d, %a, %a;", [("b32", patterns)], "b16"), np.uint16)
        with np.errstate(all="ignore"):
            want8 = np.clip(source, -largest, largest).astype(dtype).view(np.uint8)
        assert (packed >> 8 == packed & 255).all()
        assert ((packed & 255)[~nan] == want8[~nan]).all()
        assert ((packed & 255)[nan] == 0x7F).all()


CONVERSIONS: list[tuple[str, str, list[int], str, list[int]]] = [
    (
        "cvt.rzi.s32.f32",
        "b32",
        [0xBFC00000, 0x4F800000, 0xFF800000, F["nan"]],
        "b32",
        [2**32 - 1, 0x7FFFFFFF, 1 << 31, 0],
    ),
    ("cvt.rzi.u32.f32", "b32", [0xBFC00000, 0x4F7FFFFF, F["inf"]], "b32", [0, 0xFFFFFF00, 2**32 - 1]),
    ("cvt.rzi.s64.f32", "b32", [0x5F000000, F["nan"]], "b64", [2**63 - 1, 1 << 63]),
    ("cvt.rzi.u64.f64", "b64", [0x43E0000000000000, 0x43F0000000000000], "b64", [1 << 63, 2**64 - 1]),
    ("cvt.rzi.s32.f64", "b64", [0x7FF8000000000000], "b32", [1 << 31]),
    ("cvt.rzi.s16.f16", "b16", [0x7C00, 0xC100], "b16", [0x7FFF, 0xFFFE]),
    ("cvt.rni.s32.f32", "b32", [0x3F000000, 0x3FC00000, 0x40200000], "b32", [0, 2, 2]),
    ("cvt.rmi.s32.f32", "b32", [0xBF000000], "b32", [2**32 - 1]),
    ("cvt.rpi.s32.f32", "b32", [0x3F000000], "b32", [1]),
    ("cvt.rmi.f32.f32", "b32", [0xBF000000, F["-zero"]], "b32", [0xBF800000, F["-zero"]]),
    ("cvt.rni.f64.f64", "b64", [0x4004000000000000], "b64", [0x4000000000000000]),
    ("cvt.sat.f32.f32", "b32", [0x40000000, 0xBF800000, F["nan"]], "b32", [F["one"], 0, 0]),
    ("cvt.ftz.f32.f32", "b32", [1, F["one"]], "b32", [0, F["one"]]),
    ("cvt.f32.f16", "b16", [0x3C00, 0x0001, 0x7E01], "b32", [F["one"], 0x33800000, NAN["f32"]]),
    ("cvt.f32.bf16", "b16", [0x3F80, 0x0001], "b32", [F["one"], 0x00010000]),
    ("cvt.f64.f32", "b32", [F["one"]], "b64", [0x3FF0000000000000]),
    ("cvt.rn.f32.f64", "b64", [0x3FF0000010000000, 0x3FF0000030000000], "b32", [F["one"], 0x3F800002]),
    ("cvt.rz.f32.f64", "b64", [0x3FF000003FFFFFFF, 0x7FEFFFFFFFFFFFFF], "b32", [0x3F800001, 0x7F7FFFFF]),
    ("cvt.rp.f32.f64", "b64", [0x3FF0000000000001], "b32", [0x3F800001]),
    ("cvt.rn.bf16.f64", "b64", [0x3FF0100000000001], "b16", [0x3F81]),
    ("cvt.rn.f16.f64", "b64", [0x3FF0020000000001], "b16", [0x3C01]),
    ("cvt.rz.bf16.f32", "b32", [0x3F80FFFF], "b16", [0x3F80]),
    ("cvt.rn.relu.bf16.f32", "b32", [0xBF800000, F["two"]], "b16", [0, 0x4000]),
    ("cvt.rn.f32.s32", "b32", [0x7FFFFFFF, -1], "b32", [0x4F000000, 0xBF800000]),
    ("cvt.rn.f32.u64", "b64", [2**64 - 1, (1 << 63) + 1], "b32", [0x5F800000, 0x5F000000]),
    ("cvt.rz.f32.u64", "b64", [2**64 - 1], "b32", [0x5F7FFFFF]),
    ("cvt.rn.f64.s64", "b64", [2**53 + 1, -(2**63)], "b64", [0x4340000000000000, 0xC3E0000000000000]),
    ("cvt.rp.f64.s64", "b64", [2**53 + 1], "b64", [0x4340000000000001]),
    ("cvt.rn.bf16.s64", "b64", [0x101000000000001], "b16", [0x5B81]),
    ("cvt.rn.f16.u32", "b32", [2049, 70000], "b16", [0x6800, 0x7C00]),
    ("cvt.rna.tf32.f32", "b32", [0x3F801000], "b32", [0x3F802000]),
    ("cvt.rn.f16x2.e4m3x2", "b16", [0x7E38], "b32", [0x5F003C00]),
    ("cvt.rn.f16x2.e5m2x2", "b16", [0x7C3C], "b32", [0x7C003C00]),
    ("cvt.rn.satfinite.e4m3x2.f16x2", "b32", [0x7C003C00], "b16", [0x7E38]),
]


@pytest.mark.parametrize(("name", "source", "values", "target", "expected"), CONVERSIONS)
def test_conversions(name: str, source: str, values: list[int], target: str, expected: list[int]) -> None:
    """Rounding modes, clamping, NaNs: worked out by hand from the formats."""
    assert apply(f"{name} %d, %a;", [(source, values)], target) == expected


def test_pairs_put_the_first_operand_high() -> None:
    operands = [("b32", [F["one"]]), ("b32", [F["two"]])]
    assert apply("cvt.rn.bf16x2.f32 %d, %a, %b;", operands) == [0x3F804000]
    assert apply("cvt.rn.f16x2.f32 %d, %a, %b;", operands) == [0x3C004000]


# ------------------------------------------------------------------------------------------------------- approximation
APPROXIMATE: dict[str, tuple[Callable[[float], float], float]] = {
    "ex2.approx.f32": (lambda x: 2.0**x, 2.0**-22),
    "lg2.approx.f32": (math.log2, 2.0**-22),
    "rsqrt.approx.f32": (lambda x: x**-0.5, 2.0**-22.9),
    "rcp.approx.f32": (lambda x: 1 / x, 2.0**-23),
    "sqrt.approx.f32": (math.sqrt, 2.0**-23),
    "tanh.approx.f32": (math.tanh, 2.0**-11),
}


@pytest.mark.parametrize("name", APPROXIMATE)
def test_approximations_keep_their_documented_error_and_use_it_up_when_asked(name: str) -> None:
    """Exact to half an ulp by default; with `worst`, wrong by more than that and within the documented bound."""
    function, bound = APPROXIMATE[name]
    x = np.linspace(1.1, 9.0, 200, dtype=np.float32)
    exact = np.array([function(float(v)) for v in x])
    operands = [("b32", x.view(np.uint32).tolist())]
    best, worst = (
        np.array(apply(f"{name} %d, %a;", operands, worst=w), np.uint32).view(np.float32).astype(np.float64)
        for w in (False, True)
    )
    half_ulp = 2.0**-24 * 1.0001
    assert np.max(np.abs(best - exact) / np.abs(exact)) <= half_ulp
    errors = np.abs(worst - exact) / np.maximum(np.abs(exact), 1.0 if name.startswith("lg2") else 0.0)
    assert np.max(errors) <= bound + half_ulp
    assert np.max(errors) > 0.9 * bound


def test_approximate_division_gives_up_on_huge_divisors() -> None:
    """div.approx gives 0 past 2^126, div.full doesn't."""
    operands = [("b32", [0x7F000000, F["inf"]]), ("b32", [0x7F000000, 0x7F000000])]
    assert apply("div.full.f32 %d, %a, %b;", operands) == [F["one"], F["inf"]]
    operands = [("b32", [0x7E800000, F["inf"]]), ("b32", [0x7F000000, 0x7F000000])]
    assert apply("div.approx.f32 %d, %a, %b;", operands) == [0, NAN["f32"]]
