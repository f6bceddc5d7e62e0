"""The code that expand-math makes gives the bits of `NumpyBackend`, whose accuracy other tests hold.

Compiled for this computer's CPU by LLVM, which must neither contract, nor reorder, nor flush anything.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from oracle.numpy_backend import NumpyBackend

import warpsmith.ir.dialects  # registers the ops
from warpsmith.arrays import Array
from warpsmith.backends.cpu.jit import compile_object, load_object
from warpsmith.backends.llvm.text import llvm_text
from warpsmith.ir.text.parser import parse_module
from warpsmith.numerics.expr import Precision
from warpsmith.numerics.functions import FUNCTIONS, expand
from warpsmith.passes.manager import run_pipeline

assert warpsmith.ir.dialects.arith
LANES = 16
NAMES = [name for name in FUNCTIONS if name != "logistic"]
SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


def compiled(name: str, type: str, lanes: int, options: str) -> tuple[Any, Any]:
    """(code to keep alive, a function of pointers to x, y and the result, and a count)."""
    operands = "%x, %y" if FUNCTIONS[name].arity == 2 else "%x"
    shape = f"vector<{lanes}x{type}>" if lanes > 1 else type
    module = parse_module(
        f"func.func @one(%x: {shape}, %y: {shape}) -> {shape} {{\n"
        f"  %r = math.{name} {operands} : {shape}\n  return %r : {shape}\n}}"
    )
    run_pipeline(module, f"expand-math{options},cse,convert-scf-to-cf,convert-to-llvm")
    scalar = {"f32": "float", "f16": "half"}[type]
    value = f"<{lanes} x {scalar}>" if lanes > 1 else scalar
    align = 2 if type == "f16" else 4
    text = (
        llvm_text(module)
        + f"""
define void @loop(ptr %x, ptr %y, ptr %o, i64 %n) {{
entry:
  br label %body
body:
  %i = phi i64 [0, %entry], [%j, %body]
  %px = getelementptr {scalar}, ptr %x, i64 %i
  %py = getelementptr {scalar}, ptr %y, i64 %i
  %po = getelementptr {scalar}, ptr %o, i64 %i
  %vx = load {value}, ptr %px, align {align}
  %vy = load {value}, ptr %py, align {align}
  %r = call {value} @one({value} %vx, {value} %vy)
  store {value} %r, ptr %po, align {align}
  %j = add i64 %i, {lanes}
  %more = icmp ult i64 %j, %n
  br i1 %more, label %body, label %exit
exit:
  ret void
}}
"""
    )
    code = load_object(compile_object(text))
    return code, SIGNATURE(code.address("loop"))


def inputs(seed: int) -> Array:
    """Any bits, ordinary values, and huge ones; whole vectors of each kind, and mixed."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 1 << 32, 4096, dtype=np.uint32).view(np.float32)
    normal = rng.standard_normal(4096).astype(np.float32) * np.float32(4)
    edges = np.float32([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.4e38, 5000, -5000, 0.5, 2, 3, -2])
    return np.concatenate([normal, bits, rng.permutation(np.tile(edges, 16))])


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def differing(got: Array, expected: Array) -> Array:
    """Where bits differ; any NaN is as good as another."""
    unsigned = np.dtype(f"u{got.dtype.itemsize}")
    same = (got.view(unsigned) == expected.view(unsigned)) | (np.isnan(got) & np.isnan(expected))
    return np.flatnonzero(~same)


def check(name: str, lanes: int, fuse: bool) -> None:
    code, loop = compiled(name, "f32", lanes, "{fma=true}" if fuse else "")
    x, y = inputs(1), np.random.default_rng(2).permutation(inputs(3))
    got = np.empty_like(x)
    loop(x.ctypes.data, y.ctypes.data, got.ctypes.data, x.size)
    operands = (x, y) if FUNCTIONS[name].arity == 2 else (x,)
    expected = np.asarray(expand(name, NumpyBackend(fuse=fuse), *operands), np.float32)
    bad = differing(got, expected)
    assert bad.size == 0, (x[bad[:3]], y[bad[:3]], got[bad[:3]], expected[bad[:3]])
    assert code is not None


@pytest.mark.parametrize("name", NAMES)
def test_vector_code_gives_the_reference_bits(name: str) -> None:
    """A contraction, a flushed subnormal or a wrong predicate would change some bit."""
    check(name, LANES, fuse=False)


@pytest.mark.parametrize("name", ["tanh", "exp", "sin", "powf", "atan2"])
def test_scalar_code_gives_the_reference_bits(name: str) -> None:
    """Scalars branch where vectors select."""
    check(name, 1, fuse=False)


@pytest.mark.parametrize("name", ["tanh", "exp", "log", "cos"])
def test_fma_code_gives_the_reference_bits(name: str) -> None:
    """Polynomials alone are fused, as in the reference."""
    check(name, LANES, fuse=True)


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf"])
def test_f16_code_gives_the_reference_bits(name: str) -> None:
    """For all 65,536 values: computed in f32 with the short program, rounded once."""
    code, loop = compiled(name, "f16", LANES, "")
    x = np.arange(65536, dtype=np.uint16).view(np.float16)
    got = np.empty_like(x)
    loop(x.ctypes.data, x.ctypes.data, got.ctypes.data, x.size)
    wide = expand(name, NumpyBackend(), x.astype(np.float32), precision=Precision.F16)
    assert differing(got, np.asarray(wide, np.float32).astype(np.float16)).size == 0
    assert code is not None


@pytest.mark.parametrize(("accuracy", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_marked_op_takes_the_short_program(accuracy: str, dtype: Any) -> None:
    """`warpsmith.accuracy` names the type that the f32 value will be rounded to."""
    text = "func.func @one(%x: f32) -> f32 {\n  %r = math.tanh %x MARK : f32\n  return %r : f32\n}"
    counts: list[int] = []
    for mark in ("", f'{{warpsmith.accuracy = "{accuracy}"}}'):
        module = parse_module(text.replace("MARK", mark))
        run_pipeline(module, "expand-math")
        counts.append(sum(op.name in ("arith.mulf", "arith.addf", "arith.divf") for op in module.walk()))
    backend = NumpyBackend()
    expand("tanh", backend, np.ones(1, dtype).astype(np.float32), precision=Precision(accuracy))
    assert counts[1] == sum(backend.counts[op] for op in ("mulf", "addf", "divf"))
    assert counts[1] < counts[0]
