"""expand-remainder gives C's fmod, bit for bit: any exponents, subnormal numbers, infinities, zeros."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import warpsmith.ir.dialects
from warpsmith.arrays import Array
from warpsmith.ir.core.verifier import verify
from warpsmith.ir.text.parser import parse_module
from warpsmith.passes.manager import run_pipeline
from warpsmith.simt import run_kernel

assert warpsmith.ir.dialects.arith


def remainder(x: Array, y: Array, type: str) -> Array:
    count = x.size
    module = parse_module(
        f"""
func.func @main(%a: memref<{count}x{type}>, %b: memref<{count}x{type}>, %out: memref<{count}x{type}>)
    attributes {{xla.entry, warpsmith.grid = array<i64: 1, 1, 1>, warpsmith.block = array<i64: {count}, 1, 1>}} {{
  %i = gpu.thread_id x {{xla.range = [0 : index, {count - 1} : index]}}
  %x = memref.load %a[%i] : memref<{count}x{type}>
  %y = memref.load %b[%i] : memref<{count}x{type}>
  %r = arith.remf %x, %y : {type}
  memref.store %r, %out[%i] : memref<{count}x{type}>
  return
}}"""
    )
    run_pipeline(module, "expand-remainder")
    verify(module)
    assert not any(op.name == "arith.remf" for op in module.walk())
    return run_kernel(module, [x, y])[0]


def numbers(dtype: type[np.floating[Any]], count: int) -> Array:
    """All exponents, edge values, and small integers, whose remainders are often zero."""
    rng = np.random.default_rng(11)
    info = np.finfo(dtype)
    bits = rng.integers(0, 256, (count, np.dtype(dtype).itemsize), np.uint8).view(dtype).reshape(-1)
    edges = np.array([0, info.smallest_subnormal, info.tiny, info.max, 1, np.inf, np.nan, 1.5, 3], dtype)
    near = np.concatenate([edges, np.negative(edges), np.nextafter(edges, dtype(1))])
    return np.concatenate([bits, rng.choice(near, count), rng.integers(-9, 9, count).astype(dtype)])


@pytest.mark.parametrize(("type", "dtype"), [("f32", np.float32), ("f64", np.float64)])
def test_it_is_fmod(type: str, dtype: type[np.floating[Any]]) -> None:
    values = numbers(dtype, 2000)
    x, y = np.random.default_rng(1).permutation(values), np.random.default_rng(2).permutation(values)
    found = remainder(x, y, type)
    # C's fmod is exact, and what is exact in double is so in f32.
    finite = np.isfinite(x) & ~np.isnan(y) & (y != 0)
    wanted = np.array([math.fmod(float(a), float(b)) if ok else np.nan for a, b, ok in zip(x, y, finite, strict=True)])
    nan = np.isnan(wanted)
    assert (np.isnan(found) == nan).all()
    assert (found[~nan] == wanted[~nan]).all()
    assert (np.signbit(found[~nan]) == np.signbit(wanted[~nan])).all()


@pytest.mark.parametrize(("type", "dtype"), [("f32", np.float32), ("f64", np.float64)])
def test_the_longest_division(type: str, dtype: type[np.floating[Any]]) -> None:
    info = np.finfo(dtype)
    x = np.array([info.max, -info.max, info.max], dtype)
    y = np.array([info.smallest_subnormal * 3, info.tiny * dtype(1.25), info.smallest_subnormal * 7], dtype)
    wanted = [math.fmod(float(a), float(b)) for a, b in zip(x, y, strict=True)]
    assert remainder(x, y, type).tolist() == wanted
