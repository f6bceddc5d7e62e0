"""Complex ops as kernels: inverse functions near their branch points, and results at infinities and past overflow.

Expected values are mpmath's, or what C's Annex G and exact arithmetic say; the reference interpreter is held to the
same ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import mpmath
import numpy as np
import pytest

from warpsmith.arrays import Array
from warpsmith.compiler import compile
from warpsmith.hlo.evaluator import evaluate
from warpsmith.hlo.text.parser import parse_hlo

INF, NAN = float("inf"), float("nan")
PART = {"c64": np.float32, "c128": np.float64}
WHOLE = {"c64": np.complex64, "c128": np.complex128}
EXACT = {
    "acos": mpmath.acos,
    "acosh": mpmath.acosh,
    "asin": mpmath.asin,
    "asinh": mpmath.asinh,
    "atanh": mpmath.atanh,
}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def both(opcode: str, dtype: str, *operands: Array) -> dict[str, Array]:
    """The result as a kernel and of the interpreter."""
    shape = f"{dtype}[{operands[0].size}]"
    names = [f"p{i}" for i in range(len(operands))]
    given = " ".join(f"{name} = {shape} parameter({i})" for i, name in enumerate(names))
    module = parse_hlo(f"HloModule m\nf {{ {given} ROOT r = {shape} {opcode}({', '.join(names)}) }}")
    return {
        "kernel": compile(module, "cpu", cache=False)(*operands)[0],
        "interpreter": evaluate(module, *operands)[0],
    }


def join(real: Any, imaginary: Any, dtype: str) -> Array:
    result = np.empty(np.size(real), WHOLE[dtype])
    result.real, result.imag = real, imaginary
    return result


def sample(dtype: str, count: int = 60) -> Array:
    """Around the branch points at +-1 and +-i, at all magnitudes, and ordinary numbers; none on a cut."""
    rng = np.random.default_rng(5)
    reach = 100 if dtype == "c64" else 300
    close = np.exp2(-rng.random((4, count)) * 50) * rng.choice([-1, 1], (4, count))
    signs = rng.choice([-1, 1], (4, count))
    return np.concatenate(
        [
            join(rng.standard_normal(count), rng.standard_normal(count), dtype),
            join(signs[0] * (1 + close[0]), close[1], dtype),
            join(close[2], signs[1] * (1 + close[3]), dtype),
            join(*(signs[2:] * np.exp2((rng.random((2, count)) * 2 - 1) * reach)), dtype),
        ]
    )


def worst_ulp(found: Array, z: Array, exact: Any) -> float:
    """Largest error in ulp of the larger part."""
    part, worst = np.finfo(found.real.dtype), 0.0
    for got, x in zip(found.tolist(), z.tolist(), strict=True):
        value = exact(mpmath.mpc(x))
        size = max(abs(value.real), abs(value.imag), mpmath.mpf(float(part.tiny)))
        error = max(abs(got.real - value.real), abs(got.imag - value.imag))
        ulp = mpmath.ldexp(1, int(mpmath.floor(mpmath.log(size, 2))) - part.nmant)
        worst = max(worst, float(error / ulp))
    return worst


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize("opcode", EXACT)
def test_an_inverse_function_is_accurate_near_its_branch_points(opcode: str, dtype: str) -> None:
    """The textbook formulas lose all digits there."""
    z = sample(dtype)
    with mpmath.workdps(230):
        for name, found in both(opcode, dtype, z).items():
            assert worst_ulp(found, z, EXACT[opcode]) < (0.51 if dtype == "c64" else 4), name


@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_atan2_is_accurate(dtype: str) -> None:
    """-i log((x + iy) / sqrt(x^2 + y^2)), near its poles y = +-ix as well, and where y is small."""
    rng = np.random.default_rng(6)
    x, y = sample(dtype, 25), sample(dtype, 25)[::-1].copy()
    near = x * (1j + np.exp2(-rng.random(x.size) * 18))
    y[::3] = near.astype(WHOLE[dtype])[::3]
    pairs = iter(y.tolist())

    def exact(value: Any) -> Any:
        other = mpmath.mpc(next(pairs))
        return -1j * mpmath.log((value + 1j * other) / mpmath.sqrt(value * value + other * other))

    with mpmath.workdps(400):
        for name, found in both("atan2", dtype, y, x).items():
            pairs = iter(y.tolist())
            assert worst_ulp(found, x, exact) < (0.51 if dtype == "c64" else 6), name


# opcode, operands' parts, result's parts.  None: any value (a sign or a phase that nothing decides).
EDGES: list[tuple[str, list[tuple[float, float]], tuple[float | None, float | None]]] = [
    ("asinh", [(INF, 1.0)], (INF, 0.0)),
    ("asinh", [(1.0, INF)], (INF, np.pi / 2)),
    ("asinh", [(INF, INF)], (INF, np.pi / 4)),
    ("asinh", [(NAN, 0.0)], (NAN, 0.0)),
    ("asinh", [(-0.0, -0.0)], (-0.0, -0.0)),
    ("acos", [(0.0, NAN)], (np.pi / 2, NAN)),
    ("acos", [(-INF, 1.0)], (np.pi, -INF)),
    ("acos", [(2.0, -0.0)], (0.0, np.arccosh(2.0))),
    ("acos", [(2.0, 0.0)], (0.0, -np.arccosh(2.0))),
    ("acosh", [(-2.0, 0.0)], (np.arccosh(2.0), np.pi)),
    ("acosh", [(-INF, 1.0)], (INF, np.pi)),
    ("atanh", [(1.0, 0.0)], (INF, 0.0)),
    ("atanh", [(2.0, -0.0)], (np.arctanh(0.5), -np.pi / 2)),
    ("atanh", [(1.0, INF)], (0.0, np.pi / 2)),
    ("atanh", [(INF, NAN)], (0.0, NAN)),
    ("exponential-minus-one", [(-INF, INF)], (-1.0, None)),
    ("exponential-minus-one", [(-INF, NAN)], (-1.0, None)),
    ("power", [(0.0, 0.0), (0.0, 0.0)], (1.0, 0.0)),
    ("power", [(NAN, INF), (0.0, 0.0)], (1.0, 0.0)),
    ("power", [(0.0, 0.0), (2.0, 1.0)], (0.0, 0.0)),
    ("power", [(0.0, 0.0), (-2.0, 1.0)], (INF, NAN)),
    ("power", [(0.0, 0.0), (NAN, 0.0)], (NAN, NAN)),
    ("power", [(-INF, 1.0), (1.0, 88.0)], (INF, NAN)),
    ("clamp", [(1.0, 0.0), (0.0, 5.0), (2.0, 0.0)], (1.0, 0.0)),
    ("clamp", [(1.0, 0.0), (1.0, 5.0), (2.0, 0.0)], (1.0, 5.0)),
    ("clamp", [(1.0, 0.0), (2.0, 5.0), (2.0, 0.0)], (2.0, 0.0)),
]


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize(("opcode", "operands", "expected"), EDGES)
def test_an_edge(
    opcode: str, operands: list[tuple[float, float]], expected: tuple[float | None, float | None], dtype: str
) -> None:
    for name, found in both(opcode, dtype, *[join(*each, dtype) for each in operands]).items():
        for got, wanted in zip((found.real[0], found.imag[0]), expected, strict=True):
            if wanted is None:
                assert not np.isnan(got), name
                continue
            np.testing.assert_allclose(got, wanted, rtol=1e-6, err_msg=name)
            assert np.isnan(wanted) or np.signbit(got) == np.signbit(wanted), name


def test_a_product_of_c64_doesnt_overflow_on_its_way() -> None:
    """2**127 (1 + i), squared, is 2**255 i: the real part's two products are infinite in f32."""
    z = join(2.0**127, 2.0**127, "c64")
    for found in both("multiply", "c64", z, z).values():
        assert (found.real[0], found.imag[0]) == (0.0, INF)


def test_functions_of_the_largest_c128_dont_overflow() -> None:
    """|z| is infinite in double precision, log and cbrt of it aren't."""
    z = join(1.7e308, 1.7e308, "c128")
    with mpmath.workdps(40):
        exact = mpmath.mpc(1.7e308, 1.7e308)
        for found in both("cbrt", "c128", z).values():
            np.testing.assert_allclose(found[0], complex(mpmath.cbrt(exact)), rtol=1e-14)
        for found in both("log-plus-one", "c128", z).values():
            np.testing.assert_allclose(found[0], complex(mpmath.log(1 + exact)), rtol=1e-14)


def test_logistic_keeps_its_digits_near_a_pole() -> None:
    """1 + e^-z all but vanishes at z = i pi."""
    z = join([0.0, 1e-9, -1e-9, -700.0], [3.1415926, 3.14159265, 3.1415927, 1.0], "c128")
    with mpmath.workdps(40):
        exact = [complex(1 / (1 + mpmath.exp(-mpmath.mpc(each)))) for each in z.tolist()]
    for found in both("logistic", "c128", z).values():
        assert (np.abs(found - exact) <= 16 * np.spacing(np.abs(exact))).all()


def test_scales_dont_vanish() -> None:
    """A product, quotient or power of positive numbers is positive: at least f8e8m0fnu's least, never NaN."""
    tiny, huge = np.array([2.0**-127], ml_dtypes.float8_e8m0fnu), np.array([2.0**127], ml_dtypes.float8_e8m0fnu)
    for opcode, x, y in (
        ("multiply", tiny, tiny),
        ("divide", tiny, huge),
        ("atan2", tiny, huge),
        ("power", tiny, huge),
    ):
        for name, found in both(opcode, "f8e8m0fnu", x, y).items():
            assert float(found[0]) == 2.0**-127, (opcode, name)
