"""Elementary functions as kernels: f32 in PTX bit for bit the measured program, f64 within its bound of mpmath."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from oracle.numpy_backend import NumpyBackend

from warpsmith.arrays import Array
from warpsmith.backends.nvptx import libdevice
from warpsmith.compiler import compile
from warpsmith.dtypes import by_name
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.numerics.bounds import bound
from warpsmith.numerics.functions import expand
from warpsmith.numerics.functions.table import BY_OPCODE
from warpsmith.runtime.executable import Executable
from warpsmith.simt.ptx.launch import PtxLaunch, run_ptx

UNARY = sorted(row.opcode for row in BY_OPCODE.values() if row.arity == 1 and row.max_ulp)
COUNT = 2048


def _kernel(opcode: str, dtype: str, target: str) -> Executable:
    shape = f"{dtype}[{COUNT}]"
    text = f"HloModule m\nf {{ x = {shape} parameter(0) ROOT r = {shape} {opcode}(x) }}"
    return compile(parse_hlo(text), target, cache=False)


def _by_ptx(opcode: str, x: Array) -> Array:
    exe = _kernel(opcode, x.dtype.name.replace("float", "f"), "sm_90")
    (kernel,) = exe.kernels
    result = np.zeros_like(x)
    run_ptx(exe.artifact("ptx"), [x, result], PtxLaunch(kernel.grid, kernel.block))
    return result


def _sample(dtype: Any) -> Array:
    """All bit patterns alike, ordinary numbers, multiples of pi/2 and their neighbours, and numbers near +-1."""
    rng = np.random.default_rng(11)
    quarter = COUNT // 4
    bits = rng.integers(0, 1 << 32, quarter, dtype=np.uint64) << np.uint64(32 if dtype is np.float64 else 0)
    wild = (bits if dtype is np.float64 else bits.astype(np.uint32)).view(dtype)
    turns = (np.arange(1, quarter + 1) * (np.pi / 2)).astype(dtype)
    turns = np.nextafter(turns, rng.choice([-1e30, 1e30, 0], quarter).astype(dtype), dtype=dtype)
    near = rng.choice([-1, 1], quarter) * (1 + np.exp2(-rng.random(quarter) * 30) * rng.choice([-1, 1], quarter))
    return np.concatenate([wild, (rng.standard_normal(quarter) * 5).astype(dtype), turns, near.astype(dtype)])


@pytest.mark.parametrize("opcode", UNARY)
def test_f32_in_ptx_is_the_measured_program(opcode: str) -> None:
    """The program is within its bound (test_numerics_functions, bench/accuracy_f32.py): PTX must be no other."""
    x = _sample(np.float32)
    with np.errstate(all="ignore"):
        expected = np.asarray(expand(BY_OPCODE[opcode].name, NumpyBackend(), x), np.float32)
    got = _by_ptx(opcode, x)
    different = (got.view(np.uint32) != expected.view(np.uint32)) & ~(np.isnan(got) & np.isnan(expected))
    assert not different.any(), (x[different][:4], got[different][:4], expected[different][:4])


def _logistic(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


_MPMATH = {
    "exponential": mpmath.exp, "exponential-minus-one": mpmath.expm1, "log": mpmath.log, "log-plus-one": mpmath.log1p,
    "sine": mpmath.sin, "cosine": mpmath.cos, "logistic": _logistic, "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "cbrt": lambda x: mpmath.sign(x) * mpmath.root(abs(x), 3),
}  # fmt: skip


def _worst_f64(opcode: str, x: Array, got: Array) -> tuple[float, float]:
    """The largest error in ulp where the exact result is real, finite and normal; and its argument."""
    exact = _MPMATH.get(opcode) or getattr(mpmath, opcode)
    worst, where = 0.0, 0.0
    for argument, result in zip(x.tolist(), got.tolist(), strict=True):
        if not abs(argument) < 1e15 or (argument == 0 and opcode in ("log", "rsqrt")) or abs(argument) < 1e-290:
            continue
        if abs(argument) > 705 and opcode in ("exponential", "exponential-minus-one", "sinh", "cosh", "logistic"):
            continue
        if abs(argument) == 1 and opcode in ("atanh", "log-plus-one", "log", "acos", "acosh"):
            continue
        value = exact(mpmath.mpf(argument))
        if isinstance(value, mpmath.mpc):
            assert np.isnan(result), argument
            continue
        error = float(abs(mpmath.mpf(result) - value) / mpmath.mpf(float(np.spacing(abs(float(value))))))
        if error > worst:
            worst, where = error, argument
    return worst, where


@pytest.mark.parametrize("opcode", UNARY)
def test_f64_on_a_cpu_is_within_its_bound(opcode: str) -> None:
    x = _sample(np.float64)
    got = _kernel(opcode, "f64", "cpu")(x)[0]
    with mpmath.workdps(50):
        worst, where = _worst_f64(opcode, x[::7], got[::7])
    assert worst <= bound(opcode, by_name("f64")), where


@pytest.mark.skipif(libdevice.find_libdevice() is None, reason="no libdevice here")
@pytest.mark.parametrize("opcode", UNARY)
def test_f64_through_libdevice_is_within_its_bound(opcode: str) -> None:
    x = _sample(np.float64)
    got = _by_ptx(opcode, x)
    with mpmath.workdps(50):
        worst, where = _worst_f64(opcode, x[::7], got[::7])
    assert worst <= bound(opcode, by_name("f64")), where
