"""The elementary functions keep their bounds and hold at every edge.

Expected values are numpy's double precision (or math.erf), rounded to the type under test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import ml_dtypes
import numpy as np
import pytest
from oracle.edges import EDGES, cases
from oracle.measured import F32 as MEASURED
from oracle.numpy_backend import NumpyBackend

from warpsmith.arrays import Array
from warpsmith.dtypes import by_name
from warpsmith.numerics.expr import Precision
from warpsmith.numerics.functions import FUNCTIONS, expand
from warpsmith.numerics.functions.table import BY_OPCODE
from warpsmith.numerics.ulp import UNCOMPARABLE, ulp_distance, ulp_size

PRECISION = {"f16": Precision.F16, "bf16": Precision.BF16, "f32": Precision.F32}


def logistic(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1.0) / (1.0 + e)


def erf(x: Array) -> Array:
    return np.array([math.erf(v) for v in x.ravel()], np.float64).reshape(x.shape)


EXACT: dict[str, Callable[..., Array]] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atan2": np.arctan2, "atanh": np.arctanh, "cbrt": np.cbrt, "cos": np.cos, "cosh": np.cosh, "erf": erf,
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log10": np.log10, "log1p": np.log1p,
    "log2": np.log2, "logistic": logistic, "powf": np.power, "rsqrt": lambda x: 1.0 / np.sqrt(x), "sin": np.sin,
    "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh,
}  # fmt: skip
UNARY = [name for name, row in FUNCTIONS.items() if row.arity == 1]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def sample(seed: int, count: int = 60_000) -> Array:
    """Every binade, the middle of the range densely, and neighbours of the places where programs switch."""
    rng = np.random.default_rng(seed)
    special = np.array(
        [0, np.inf, np.nan, 1, 0.5, 2, 1 / 3, 2 / 3, 4 / 3, 0.75, 1.2247449, 1.7320508, 4.02751, 8.84668, 88.0296919,
         88.7228394, 89.4159851, 87.3365479, 103.972084, 128, 126, 149, 150, 4096, 1e10, np.pi, np.pi / 2, np.pi / 4,
         1.17549435e-38, 1e-45, 3.4028235e38, 16777216, 2147483648.0],
        np.float32,
    )  # fmt: skip
    near = np.concatenate([special.view(np.int32) + step for step in range(-3, 4)]).view(np.float32)
    pi_multiples = (np.arange(1, 3000) * (np.pi / 2)).astype(np.float32)
    pi_multiples = np.concatenate([pi_multiples.view(np.int32) + step for step in (-1, 0, 1)]).view(np.float32)
    parts = [
        rng.integers(0, 1 << 32, count, dtype=np.uint32).view(np.float32),
        (rng.random(count) * 220 - 110).astype(np.float32),
        (rng.random(count) * 8 - 4).astype(np.float32),
        near, -near, pi_multiples, special, -special,
    ]  # fmt: skip
    return np.concatenate(parts)


def evaluate(name: str, *operands: Array, precision: Precision = Precision.F32, fuse: bool = False) -> Array:
    return np.asarray(expand(name, NumpyBackend(fuse=fuse), *operands, precision=precision), np.float32)


def wrong(got: Array, expected: Array, bound: int) -> Array:
    """Indices where a result is too far off, or a zero has the wrong sign."""
    far = ulp_distance(got, expected) > bound
    sign = (got == 0) & (expected == 0) & (np.signbit(got) != np.signbit(expected))
    return np.flatnonzero(far | sign)


@pytest.mark.parametrize("fuse", [False, True], ids=["two-roundings", "fma"])
@pytest.mark.parametrize("name", UNARY)
def test_f32_function_stays_within_its_bound(name: str, fuse: bool) -> None:
    """A coefficient or a special case that went wrong would show here."""
    x = sample(1)
    expected = EXACT[name](x.astype(np.float64)).astype(np.float32)
    got = evaluate(name, x, fuse=fuse)
    bad = wrong(got, expected, FUNCTIONS[name].max_ulp)
    assert bad.size == 0, (x[bad[:4]], got[bad[:4]], expected[bad[:4]])


@pytest.mark.parametrize("fuse", [False, True], ids=["two-roundings", "fma"])
def test_power_stays_within_its_bound_over_its_whole_range(fuse: bool) -> None:
    """y log2 x near 128 would lose digits if the logarithm had one word only."""
    rng = np.random.default_rng(2)
    x = np.exp(rng.random(100_000) * 170 - 85).astype(np.float32)
    x[:40_000] = (1 + rng.standard_normal(40_000) * 0.2).astype(np.float32)
    with np.errstate(all="ignore"):
        y = ((rng.random(x.size) * 2 - 1) * 152 / np.log2(np.abs(x.astype(np.float64)))).astype(np.float32)
    y[::5] = rng.integers(-9, 10, y[::5].size)
    expected = np.power(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
    bad = wrong(evaluate("powf", x, y, fuse=fuse), expected, FUNCTIONS["powf"].max_ulp)
    assert bad.size == 0, (x[bad[:4]], y[bad[:4]])


@pytest.mark.parametrize("name", ["atan2", "powf"])
def test_function_of_two_arguments_holds_for_every_pair_of_special_values(name: str) -> None:
    """Infinities, zeros of either sign, NaN, odd and even integers in each place."""
    values = np.array(
        [
            0,
            1,
            0.5,
            2,
            3,
            1e-45,
            1.1754944e-38,
            3.4028235e38,
            np.inf,
            16777215,
            16777216,
            2147483648.0,
            0.99999994,
            1.5,
        ],
        np.float32,
    )
    values = np.concatenate([values, -values, [np.float32(np.nan)]])
    x, y = (part.ravel() for part in np.meshgrid(values, values))
    expected = EXACT[name](x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
    got = evaluate(name, x, y)
    bad = wrong(got, expected, FUNCTIONS[name].max_ulp)
    assert bad.size == 0, (x[bad[:4]], y[bad[:4]], got[bad[:4]], expected[bad[:4]])


def test_atan2_stays_within_its_bound() -> None:
    """All quadrants, all ratios."""
    y, x = sample(3), np.random.default_rng(4).permutation(sample(4))
    expected = np.arctan2(y.astype(np.float64), x.astype(np.float64)).astype(np.float32)
    assert wrong(evaluate("atan2", y, x), expected, FUNCTIONS["atan2"].max_ulp).size == 0


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("name", UNARY)
def test_16_bit_function_is_right_for_every_argument(name: str, dtype: str) -> None:
    """Within one ulp for all 65,536 arguments, and correctly rounded for 99.8 in 100."""
    numpy_type = np.dtype(np.float16) if dtype == "f16" else np.dtype(ml_dtypes.bfloat16)
    x = np.arange(65536, dtype=np.uint16).view(numpy_type).astype(np.float32)
    got = evaluate(name, x, precision=PRECISION[dtype]).astype(numpy_type)
    expected = EXACT[name](x.astype(np.float64)).astype(np.float32).astype(numpy_type)
    distance = ulp_distance(got, expected, signed_zero=False)
    assert distance.max() <= 1
    assert (distance > 0).mean() <= 0.002
    assert wrong(got, expected, 1).size == 0


EDGE_CASES = [
    (opcode, dtype)
    for opcode in {row.opcode: 0 for row in EDGES}
    if opcode in BY_OPCODE and opcode != "sqrt"
    for dtype in PRECISION
]


@pytest.mark.parametrize(("opcode", "dtype"), EDGE_CASES)
def test_function_agrees_with_the_edge_table(opcode: str, dtype: str) -> None:
    """The table is what the other executors are held to; the programs must obey it first."""
    operands, expected = cases(opcode, by_name(dtype))
    wide = [operand.astype(np.float32) for operand in operands]
    got = evaluate(BY_OPCODE[opcode].name, *wide, precision=PRECISION[dtype]).astype(expected.dtype)
    bad = wrong(got, expected, 1 if opcode == "erf" else 0)  # erf(sub) is 1.128 sub
    assert bad.size == 0, ([operand[bad] for operand in operands], got[bad], expected[bad])


@pytest.mark.parametrize(
    "opcode", sorted({row.opcode for row in EDGES} & {"exponential", "log", "tanh", "power", "sine", "atan2"})
)
def test_edge_table_agrees_with_double_precision(opcode: str) -> None:
    """The table itself against libm's doubles, which define C's special cases."""
    operands, expected = cases(opcode, by_name("f64"))
    got = EXACT[BY_OPCODE[opcode].name](*operands)
    assert wrong(got, expected, 0).size == 0


@pytest.mark.parametrize(("name", "most"), [("tanh", 23), ("logistic", 32), ("exp", 30), ("erf", 27), ("log", 40)])
def test_op_count_stays_small(name: str, most: int) -> None:
    """These run at full vector width in memory-bound kernels; a longer program would show in the bandwidth."""
    backend = NumpyBackend()
    expand(name, backend, np.float32([0.5]))
    assert backend.total <= most


def test_huge_arguments_alone_pay_for_their_reduction() -> None:
    """`rare` is skipped when no lane needs it."""
    backend = NumpyBackend()
    expand("sin", backend, np.float32([1.0, 4096.0]))
    assert backend.counts["rare"] == 0
    expand("sin", backend, np.float32([1.0, 4097.0]))
    assert backend.counts["rare"] > 0


@pytest.mark.parametrize("fuse", [False, True], ids=["two-roundings", "fma"])
@pytest.mark.parametrize(("name", "first", "last"), [("tanh", 8.0, 10.0), ("erf", 3.5, 4.5)])
def test_saturating_function_reaches_one_and_never_more(name: str, first: float, last: float, fuse: bool) -> None:
    """1 - tanh(x)**2 must not turn negative."""
    ends = np.float32([first, last]).view(np.int32)
    x = np.arange(ends[0], ends[1], dtype=np.int32).view(np.float32)
    got = evaluate(name, x, fuse=fuse)
    assert got.max() == 1.0
    assert got[-1] == 1.0


@pytest.mark.parametrize("precision", list(Precision))
@pytest.mark.parametrize("name", [row.name for row in FUNCTIONS.values() if np.isfinite(row.exact_from)])
def test_flat_ends_are_exact(name: str, precision: Precision) -> None:
    """If this failed, `run` would call a kernel wrong, or right, by a bound of 0 that it doesn't keep."""
    first, last = np.float32([FUNCTIONS[name].exact_from, np.inf]).view(np.int32).tolist()
    x = np.concatenate([np.arange(first, last, 1009, dtype=np.int32), [last]]).astype(np.int32).view(np.float32)
    dtype = {Precision.F32: np.float32, Precision.F16: np.float16, Precision.BF16: ml_dtypes.bfloat16}[precision]
    for fuse in (False, True):
        for sign in (1, -1):
            got = evaluate(name, np.float32(sign) * x, fuse=fuse, precision=precision).astype(dtype)
            assert (got == sign).all()
    if name in dir(np):  # f64 is libm's
        assert (getattr(np, name)(np.geomspace(FUNCTIONS[name].exact_from, 1e308, 1000)) == 1.0).all()


def test_nan_against_number_is_never_within_a_bound() -> None:
    """`wrong` would be blind to NaN if this distance were small."""
    one, nan = np.float32([1.0]), np.float32([np.nan])
    assert ulp_distance(one, nan)[0] == UNCOMPARABLE


@pytest.mark.parametrize("name", UNARY)
def test_the_measured_worst_argument_has_its_measured_error(name: str) -> None:
    """A program that changed without `bench/accuracy_f32.py` being run again shows here."""
    row = MEASURED[name]
    x = np.array([row.worst], np.uint32).view(np.float32)
    exact = EXACT[name](x.astype(np.float64))
    # exp2, log2 and log10 were measured as programs, without FMA; the others as kernels.
    got = evaluate(name, x, fuse=name not in ("exp2", "log2", "log10")).astype(np.float64)
    error = np.abs(got - exact) / ulp_size(np.abs(exact), by_name("f32"))
    assert abs(float(error[0]) - row.error) < 0.001
    assert row.distance <= FUNCTIONS[name].max_ulp


def test_every_function_of_one_argument_was_measured() -> None:
    assert set(MEASURED) == set(UNARY)
