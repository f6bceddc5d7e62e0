"""The reference interpreter against XLA:CPU, op by op and type by type.

Each known disagreement is a row with its reason; anything else must agree exactly, or, for functions that neither
side rounds correctly, within the row's ulp.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hlo import oracle
from hlo.evaluator_values import pairs_of, values_of

from warpsmith.arrays import Array
from warpsmith.dtypes import DType, by_name
from warpsmith.hlo.evaluator import evaluate
from warpsmith.hlo.text.parser import parse_hlo

pytestmark = pytest.mark.skipif(not oracle.available(), reason=oracle.REASON)


EXACT_UNARY = "abs negate ceil floor round-nearest-afz round-nearest-even sign sqrt is-finite".split()
NEAR_UNARY = "cbrt cosine erf exponential exponential-minus-one log log-plus-one logistic rsqrt sine tan tanh".split()
FLOAT_BINARY = "add subtract multiply divide remainder maximum minimum power atan2".split()
INTEGER_UNARY = "abs negate not sign popcnt count-leading-zeros".split()
INTEGER_BINARY = "add subtract multiply divide remainder maximum minimum power and or xor".split()
SHIFTS = ["shift-left", "shift-right-logical", "shift-right-arithmetic"]
PRED_BINARY = "add multiply maximum minimum and or xor".split()
COMPLEX_UNARY = "abs real imag negate sign sqrt exponential log cosine sine tan tanh rsqrt".split()
COMPLEX_BINARY = "add subtract multiply divide".split()
DIRECTIONS = "EQ NE LT LE GT GE".split()

ULP = {  # how far XLA:CPU's own functions are from the right result, in ulp
    ("f32", "erf"): 3,
    ("f32", "exponential-minus-one"): 4,
    ("f32", "log-plus-one"): 2,
    ("f32", "logistic"): 2,
    ("f32", "tanh"): 4,
    ("f64", "cbrt"): 3,
    ("f64", "exponential-minus-one"): 4,
    ("f64", "log-plus-one"): 150,  # XLA's polynomial cancels near x = sqrt(1/2) - 1
    ("f64", "logistic"): 3,
    ("f64", "rsqrt"): 2,
    ("f64", "tanh"): 8,  # 1 - 8 ulp where the result is 1
    ("f16", "exponential-minus-one"): 2,
    ("f16", "logistic"): 255,  # computed in f16: underflows where the result is a subnormal
}
NEAR = {*NEAR_UNARY, "power", "atan2"}  # within 1 ulp where ULP has no row
SKIPPED = {
    ("s4", "popcnt"): "XLA:CPU counts the bits of the sign extension",
}
UNSIGNED_LACK = {"abs", "sign"}  # StableHLO refuses them on unsigned types

# The other float types follow the same code with other constants; test_evaluator_rounding holds all to exact numbers.
FLOATS = [by_name(name) for name in ("f8e4m3fn", "f8e5m2", "f16", "bf16", "f32", "f64")]
INTEGERS = [by_name(name) for name in ("s4", "u4", "s8", "u8", "s32", "u32", "s64", "u64")]
CONVERTED = [by_name(name) for name in "pred s4 u4 s8 u8 s32 u32 s64 u64 f8e4m3fn f8e5m2 f16 bf16 f32 f64".split()]


def _module(dtype: DType, count: int, binary: bool, results: Sequence[tuple[str, str, str]]) -> str:
    """A module of (result type, op, attributes) applied to one or two parameters."""
    operands = "x, y" if binary else "x"
    lines = [f"  x = {dtype.name}[{count}] parameter(0)"]
    lines += [f"  y = {dtype.name}[{count}] parameter(1)"] if binary else []
    lines += [f"  r{i} = {t}[{count}] {op}({operands}){more}" for i, (t, op, more) in enumerate(results)]
    types = ", ".join(f"{t}[{count}]" for t, _, _ in results)
    names = ", ".join(f"r{i}" for i in range(len(results)))
    return "HloModule m\nENTRY e {\n" + "\n".join(lines) + f"\n  ROOT t = ({types}) tuple({names})\n}}\n"


def _both(modules: Sequence[tuple[str, Sequence[Array]]]) -> list[tuple[list[Array], list[Array]]]:
    """(ours, XLA's) outputs of each module."""
    theirs = oracle.run_all(modules)
    for answer in theirs:
        assert not isinstance(answer, str), answer
    ours = [evaluate(parse_hlo(text), *arrays) for text, arrays in modules]
    return [(mine, answer) for mine, answer in zip(ours, theirs, strict=True) if not isinstance(answer, str)]


def _steps(array: Array) -> Array:
    """Each float's place among the floats of its type, both zeros at 0."""
    signed = array.view(f"i{array.dtype.itemsize}").astype(np.int64)
    lowest = np.int64(-(1 << (8 * array.dtype.itemsize - 1)))
    return np.where(signed < 0, lowest - signed, signed)


def _subnormal(array: Array, dtype: DType) -> Array:
    """Elements that XLA:CPU flushes to zero (it runs with float32 and float64 subnormals off)."""
    least = {"f32": 2.0**-126, "bf16": 2.0**-126, "f64": 2.0**-1022}.get(dtype.name, 0.0)
    with np.errstate(all="ignore"):
        size = np.abs(array.astype(np.float64))
        return (size < least) & (size > 0)


def _check_floats(dtype: DType, op: str, inputs: Sequence[Array], mine: Array, xla: Array) -> None:
    assert mine.dtype == xla.dtype
    with np.errstate(all="ignore"):
        counted = np.ones(mine.shape, np.bool_)
        for each in (mine, xla, *inputs):
            counted &= ~_subnormal(each, dtype)
        a, b = mine.astype(np.float64), xla.astype(np.float64)
        nans = np.isnan(a) & np.isnan(b)
        counted &= ~nans
        allowed = ULP.get((dtype.name, op), 1 if op in NEAR else 0)
        far = np.where(np.isnan(a) | np.isnan(b), 1 << 40, np.abs(_steps(mine) - _steps(xla)))
        signs = (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b)) & (allowed == 0)
        wrong = counted & ((far > allowed) | signs)
    first = np.flatnonzero(wrong)[:3]
    assert not wrong.any(), [(op, dtype, *[each[i] for each in inputs], "ours", mine[i], "XLA", xla[i]) for i in first]


@pytest.mark.slow
def test_float_ops_agree_with_xla() -> None:
    """A wrong rounding, NaN rule or edge case of any float op would show here."""
    modules: list[tuple[str, list[Array]]] = []
    labels: list[tuple[DType, list[str]]] = []
    for dtype in FLOATS:
        one, two = values_of(dtype, 2000), pairs_of(dtype, 4000)
        unary = [*EXACT_UNARY, *NEAR_UNARY]
        rows = [("pred" if op == "is-finite" else dtype.name, op, "") for op in unary]
        modules.append((_module(dtype, len(one), False, rows), [one]))
        labels.append((dtype, unary))
        modules.append((_module(dtype, len(two[0]), True, [(dtype.name, op, "") for op in FLOAT_BINARY]), list(two)))
        labels.append((dtype, FLOAT_BINARY))
    for (mine, xla), (_, inputs), (dtype, ops) in zip(_both(modules), modules, labels, strict=True):
        for op, a, b in zip(ops, mine, xla, strict=True):
            if a.dtype == np.bool_:
                np.testing.assert_array_equal(a, b, err_msg=f"{op} {dtype}")
            else:
                _check_floats(dtype, op, inputs, a, b)


@pytest.mark.slow
def test_integer_and_pred_ops_agree_with_xla() -> None:
    """Wrap-around, division by zero, shifts of the width or more: exact on every type."""
    modules: list[tuple[str, list[Array]]] = []
    labels: list[tuple[DType, list[str]]] = []
    for dtype in [*INTEGERS, by_name("pred")]:
        integer = dtype.is_integer
        unary = [op for op in INTEGER_UNARY if dtype.is_signed or op not in UNSIGNED_LACK] if integer else ["not"]
        binary = [*INTEGER_BINARY, *SHIFTS] if integer else PRED_BINARY
        one, two = values_of(dtype, 500), pairs_of(dtype, 3000)
        modules.append((_module(dtype, len(one), False, [(dtype.name, op, "") for op in unary]), [one]))
        labels.append((dtype, unary))
        modules.append((_module(dtype, len(two[0]), True, [(dtype.name, op, "") for op in binary]), list(two)))
        labels.append((dtype, binary))
    for (mine, xla), (_, inputs), (dtype, ops) in zip(_both(modules), modules, labels, strict=True):
        for op, a, b in zip(ops, mine, xla, strict=True):
            if (dtype.name, op) in SKIPPED:
                continue
            # XLA squares six times, so that only the low six bits of an exponent count; we use them all.
            counted = inputs[1].astype(np.float64) < 64 if op == "power" else np.ones(a.shape, np.bool_)
            np.testing.assert_array_equal(a[counted], b[counted], err_msg=f"{op} {dtype}")


@pytest.mark.slow
def test_compare_and_select_agree_with_xla() -> None:
    """Each direction on each type, NaN and signed zeros included; TOTALORDER on floats."""
    modules: list[tuple[str, list[Array]]] = []
    for dtype in map(by_name, ("f8e4m3fn", "f16", "f32", "f64", "s4", "s8", "u8", "s32", "u64", "pred", "c64")):
        left, right = pairs_of(dtype, 1000)
        same = len(left) // 4
        right[:same] = left[:same]
        directions = DIRECTIONS[:2] if dtype.is_complex else DIRECTIONS
        rows = [("pred", "compare", f", direction={each}") for each in directions]
        if dtype.is_float and dtype.bits >= 16:
            rows += [("pred", "compare", f", direction={each}, type=TOTALORDER") for each in DIRECTIONS]
        modules.append((_module(dtype, len(left), True, rows), [left, right]))
    for (mine, xla), (text, inputs) in zip(_both(modules), modules, strict=True):
        for number, (a, b) in enumerate(zip(mine, xla, strict=True)):
            flushed = np.zeros(a.shape, np.bool_)
            dtype = by_name(text.split("= ")[1].split("[")[0])
            if dtype.is_float:
                flushed = _subnormal(inputs[0], dtype) | _subnormal(inputs[1], dtype)
            np.testing.assert_array_equal(a[~flushed], b[~flushed], err_msg=f"result {number} of\n{text}")


@pytest.mark.slow
def test_converts_agree_with_xla() -> None:
    """Every pair of real types: saturation, NaN to 0, wrap of integers, one rounding."""
    modules: list[tuple[str, list[Array]]] = []
    for source in CONVERTED:
        one = values_of(source, 3000)
        rows = [(target.name, "convert", "") for target in CONVERTED if target is not source]
        modules.append((_module(source, len(one), False, rows), [one]))
    for (mine, xla), (_, inputs), source in zip(_both(modules), modules, CONVERTED, strict=True):
        targets = [target for target in CONVERTED if target is not source]
        for target, a, b in zip(targets, mine, xla, strict=True):
            if target.is_float:
                if source.bits == 64 and target.bits <= 16:
                    twice = _rounded_twice(inputs[0], source, target)
                    a, b, given = a[~twice], b[~twice], inputs[0][~twice]
                else:
                    given = inputs[0]
                flushed = _subnormal(given, source)
                _check_floats(target, f"convert from {source}", [], a[~flushed], b[~flushed])
            else:
                counted = ~_subnormal(inputs[0], source) if source.is_float else np.ones(a.shape, np.bool_)
                np.testing.assert_array_equal(a[counted], b[counted], err_msg=f"{source} to {target}")


def _rounded_twice(array: Array, source: DType, target: DType) -> Array:
    """Elements that XLA:CPU takes through f32, which changes the result where f32 rounds to a halfway point."""
    with np.errstate(all="ignore"):
        return array.astype(np.float32).astype(np.float64) != array.astype(np.float64)


@pytest.mark.slow
def test_complex_ops_agree_with_xla() -> None:
    """Complex ops within 1e-5 of XLA's float32 results, 1e-12 of its float64 ones, relative to the modulus."""
    modules: list[tuple[str, list[Array]]] = []
    labels: list[tuple[DType, list[str]]] = []
    for dtype in (by_name("c64"), by_name("c128")):
        part = "f32" if dtype.bits == 64 else "f64"
        rng = np.random.default_rng(0)
        one = (rng.standard_normal(400) * 3 + 1j * rng.standard_normal(400) * 3).astype(dtype.numpy)
        one[:6] = [0, 1, -1, 1j, -1j, 1 + 1j]
        other = rng.permutation(one)
        rows = [(part if op in ("abs", "real", "imag") else dtype.name, op, "") for op in COMPLEX_UNARY]
        modules.append((_module(dtype, len(one), False, rows), [one]))
        labels.append((dtype, COMPLEX_UNARY))
        rows = [(dtype.name, op, "") for op in COMPLEX_BINARY]
        modules.append((_module(dtype, len(one), True, rows), [one, other]))
        labels.append((dtype, COMPLEX_BINARY))
    for (mine, xla), (dtype, ops) in zip(_both(modules), labels, strict=True):
        for op, a, b in zip(ops, mine, xla, strict=True):
            assert a.dtype == b.dtype
            close = 1e-5 if dtype.bits == 64 else 1e-12
            np.testing.assert_allclose(a, b, rtol=close, atol=close, err_msg=f"{op} {dtype}", equal_nan=True)
