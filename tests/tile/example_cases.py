"""The kernels of examples/tile: what they take, what they compute in double precision, how exactly, at what price."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpsmith.arrays import Array
from warpsmith.tile.files import load_kernel

EXAMPLES = Path(__file__).parents[2] / "examples" / "tile"
TARGETS = ("sm_80", "sm_90", "sm_100")

Arrays = Mapping[str, Array]


def rows_softmax(a: Array) -> Array:
    powers = np.exp(a - a.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def gelu(x: Array) -> Array:
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def normal(x: Array) -> Array:
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)


def root_mean_square(a: Array) -> Array:
    return a / np.sqrt((a**2).mean(axis=1, keepdims=True) + 1e-5)


@dataclass(frozen=True)
class Example:
    """A kernel's inputs, what it computes of them in double precision, how exactly, and its price.

    `variants`: of each primitive in order.  `waits`: barriers of the block times its warps and blocks.
    """

    inputs: Mapping[str, tuple[int, ...]]
    result: Callable[..., Array]
    variants: tuple[str, ...]
    dtype: str = "float32"
    relative: float = 0.0
    absolute: float = 0.0
    least: float = -2.0
    waits: int = 0


REGISTERS = ("copy reg", "copy reg")
STAGED = ("copy gmem_smem", "copy reg", "copy reg", "copy gmem_smem")
SAMPLES: dict[str, Example] = {
    "vector_add": Example(
        {"A_ptr": (5000,), "B_ptr": (5000,)}, np.add, ("copy reg", "copy reg", "add reg", "copy reg"), relative=2**-23
    ),
    "square_root": Example(
        {"A_ptr": (4, 32, 8)}, np.sqrt, (*STAGED[:2], "sqrt reg", *STAGED[2:]), relative=2**-23, least=0.0
    ),
    "scale_bias_gelu": Example(
        {"X_ptr": (32, 256), "Scale_ptr": (1, 256), "Bias_ptr": (1, 256)},
        lambda x, scale, bias: gelu(x * scale + bias),
        (*("copy reg",) * 3, "fma reg", "mul reg", "erf reg", "fma reg", "mul reg", "cast reg", "copy reg"),
        dtype="float16",
        relative=2**-10,
        absolute=1e-6,
    ),
    "transpose": Example({"A_ptr": (64, 96)}, np.transpose, ("copy gmem_smem", "copy gmem_smem"), waits=48),
    "transpose_half": Example(
        {"A_ptr": (128, 192)}, np.transpose, ("copy gmem_smem", "copy reg", "copy reg"), dtype="float16", waits=48
    ),
    "gemm": Example(
        {"A_ptr": (256, 128), "B_ptr": (128, 128)},
        np.matmul,
        (
            *("zero reg", *("copy_async ldgsts",) * 4, "copy ldstmatrix", "copy ldstmatrix", "gemm mma_m16n8k16"),
            "copy reg",
        ),
        dtype="float16",
        relative=1e-5,
        absolute=1e-4,
        waits=64,
    ),
    "row_sum": Example(
        {"A_ptr": (32, 32)},
        lambda a: a.sum(axis=1, keepdims=True),
        ("copy reg", "sum reg", "copy reg"),
        relative=1e-6,
        absolute=1e-5,
    ),
    "column_sum": Example(
        {"A_ptr": (32, 32)},
        lambda a: a.sum(axis=0, keepdims=True),
        ("copy gmem_smem", "sum smem", "copy gmem_smem"),
        relative=1e-6,
        absolute=1e-5,
        waits=8,
    ),
    "softmax": Example(
        {"A_ptr": (32, 32)},
        rows_softmax,
        ("copy reg", "max reg", "sub reg", "exp reg", "sum reg", "fdiv reg", "copy reg"),
        relative=2e-6,
    ),
    "layer_norm": Example(
        {"X_ptr": (32, 256), "Weight_ptr": (1, 256), "Bias_ptr": (1, 256)},
        lambda x, weight, bias: normal(x) * weight + bias,
        (
            *("copy reg",) * 3,
            *("sum reg", "mul reg", "sub reg", "square reg", "sum reg", "fma reg", "rsqrt reg", "mul reg", "fma reg"),
            "copy reg",
        ),
        relative=1e-5,
        absolute=1e-5,
    ),
    "root_mean_square": Example(
        {"A_ptr": (128, 16)}, root_mean_square, (*STAGED[:2], "mul reg", *STAGED[2:]), relative=1e-6, waits=8
    ),
}
every_example = pytest.mark.parametrize("name", sorted(SAMPLES))


@cache
def kernel(name: str) -> Any:
    return load_kernel(str(EXAMPLES / f"{name}.py"))


def inputs_of(example: Example, seed: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {
        name: rng.uniform(example.least, 2.0, shape).astype(example.dtype) for name, shape in example.inputs.items()
    }


def compare(name: str, inputs: Arrays, found: Array) -> None:
    """With double precision."""
    example = SAMPLES[name]
    wanted = example.result(*(a.astype(np.float64) for a in inputs.values()))
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=example.relative, atol=example.absolute)
