"""Test values for the evaluator: for each element type its edges and a spread of random ones."""

from __future__ import annotations

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType, by_name


def values_of(dtype: DType, count: int, seed: int = 0) -> Array:
    """Every element of a type of at most 16 bits; edges, random bits and normal numbers of a larger one."""
    rng = np.random.default_rng(seed)
    if dtype.name == "pred":
        return np.array([False, True] * 8)
    if dtype.is_complex:
        part = values_of(by_name("f32" if dtype.bits == 64 else "f64"), count, seed)
        finite = part[np.isfinite(part) & (np.abs(part) < 1e18) & ((np.abs(part) > 1e-18) | (part == 0))]
        return (rng.permutation(finite) + 1j * rng.permutation(finite)).astype(dtype.numpy)
    code = np.dtype(f"u{dtype.numpy.itemsize}")
    if dtype.is_float:
        if dtype.bits <= 16:
            return np.arange(1 << dtype.bits, dtype=code).view(dtype.numpy)
        limits = np.finfo(dtype.numpy)
        edges = [0.0, 1, 0.5, 1.5, 2.5, 3, np.inf, np.nan, limits.max, limits.tiny, limits.smallest_subnormal, 1e-3]
        edges += [88, 89, 104, 709, 710, 1e10, np.pi, 100, 1e5, 0.49999997, 8388607.5, 2147483648.0, 3e9, 1.8446744e19]
        some = np.array([*edges, *[-edge for edge in edges]], dtype.numpy)
        bits = rng.integers(0, 1 << 64, count, dtype=np.uint64).astype(code).view(dtype.numpy)
        near = rng.standard_normal(count).astype(dtype.numpy)
        return np.concatenate([some, bits, near, near * dtype.numpy.type(20)])
    span = 1 << dtype.bits
    least, most = (-span // 2, span // 2 - 1) if dtype.is_signed else (0, span - 1)
    if dtype.bits <= 8:
        return np.arange(least, most + 1).astype(dtype.numpy)
    edges_ = [least, least + 1, most, most - 1, 0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65]
    edges_ += [-1, -2, -3, -32] if dtype.is_signed else []
    wild = rng.integers(least, most, count, dtype=dtype.numpy, endpoint=True)
    return np.concatenate([np.array(edges_, dtype.numpy), wild, rng.integers(0, 100, count).astype(dtype.numpy)])


def pairs_of(dtype: DType, count: int) -> tuple[Array, Array]:
    """Operands for a binary op: every pair of a type of at most 4 bits, edge pairs and random ones else."""
    if dtype.bits <= 4 or dtype.name == "pred":
        one = values_of(dtype, count)
        left, right = np.meshgrid(one, one)
        return left.reshape(-1).copy(), right.reshape(-1).copy()
    rng = np.random.default_rng(1)
    one = values_of(dtype, count)
    if dtype.bits > 8:
        edges = one[:40]
        left, right = np.meshgrid(edges, edges)
        return (
            np.concatenate([left.reshape(-1), rng.permutation(one)[:count]]),
            np.concatenate([right.reshape(-1), rng.permutation(one)[:count]]),
        )
    return one[rng.integers(0, len(one), 4 * count)], one[rng.integers(0, len(one), 4 * count)]
