"""Seeded inputs that find bugs: a mixture that reaches every binade, the edge values and the neighbourhood of zero.

In: a dtype, a shape, a seed and the parameter's number, which fix the array.  Out: a numpy array.  `Profile.MIXTURE`
is half normal, a quarter log-uniform in magnitude over the whole type, an eighth edge values, an eighth small.  Sums of
that are inf or NaN, which proves nothing: inputs of reductions take `Profile.TAME`, and narrower ones where that
still overflows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from warpsmith.arrays import Array
from warpsmith.dtypes import DType, Kind, by_name
from warpsmith.errors import ArgumentMismatch

__all__ = ["Profile", "edge_values", "indices", "random_array", "subnormals"]

_ML_DTYPES: Any = ml_dtypes  # its stubs know only some of the types

# A large array draws from a pool of mixed values: a draw costs a tenth of a normal variate and a rounding.
_POOL_BITS = {8: 12, 16: 16, 32: 18, 64: 18}
_CHUNK = 1 << 16


class Profile(Enum):
    """Which values to make."""

    MIXTURE = "mixture"  # everything, inf, NaN and the largest values among it
    FINITE = "finite"  # the mixture without inf and NaN
    TAME = "tame"  # what can be added up: normal, small, and magnitudes of 2**-6 to 2**6
    NARROW = "narrow"  # what exp keeps finite: between -1 and 1
    NEAR_ONE = "near one"  # what can be multiplied up: within an eighth of 1
    SMALL = "small"  # within 2**-6 of 0


def random_array(
    dtype: DType, shape: Sequence[int], *, seed: int = 0, parameter: int = 0, profile: Profile = Profile.MIXTURE
) -> Array:
    """An array of `dtype` and `shape`, the same for the same arguments.  ArgumentMismatch for token and opaque."""
    count = prod(shape)
    rng = np.random.default_rng([seed & 0xFFFFFFFFFFFFFFFF, parameter])
    if dtype.kind is Kind.COMPLEX:
        part = by_name("f32" if dtype.bits == 64 else "f64")
        return _drawn(rng, part, 2 * count, profile).view(dtype.numpy).reshape(shape)
    if not dtype.is_array_element:
        raise ArgumentMismatch(f"no random values of {dtype}")
    return _drawn(rng, dtype, count, profile).reshape(shape)


def indices(
    shape: Sequence[int],
    dtype: DType,
    limit: int,
    *,
    seed: int = 0,
    parameter: int = 0,
    in_range: bool = False,
    ordered: bool = False,
    unique: bool = False,
) -> Array:
    """Indices into an extent of `limit`: mostly within [0, limit), an eighth just outside unless `in_range`.

    `unique` keeps all distinct (while the dtype has enough values), `ordered` sorts them, both along the first axis,
    as flat indices.  A `limit` of 0 leaves only indices outside.
    """
    rng = np.random.default_rng([seed & 0xFFFFFFFFFFFFFFFF, parameter, 1])
    count = prod(shape)
    info = _iinfo(dtype)
    low, high = max(int(info.min), 0), min(int(info.max), max(limit - 1, 0))
    if unique:
        margin = 0 if in_range else max(2, count // 8)
        first, last = max(int(info.min), low - margin), min(int(info.max), max(high, low + count - 1) + margin)
        values = first + _distinct(rng, last - first + 1, count)
    else:
        values = rng.integers(low, high, count, endpoint=True, dtype=np.int64)
        if not in_range:
            outside = np.array([-1, -2, limit, limit + 1, int(info.min), int(info.max) & (2**63 - 1)], np.int64)
            outside = outside[(outside >= int(info.min)) & (outside <= int(info.max))]
            where = rng.random(count) < (0.125 if limit > 0 else 1.0)
            values[where] = rng.choice(outside, int(where.sum()))
    if ordered:
        values = np.sort(values)
    return values.astype(dtype.numpy).reshape(shape)


def subnormals(dtype: DType, count: int, *, seed: int = 0, parameter: int = 0) -> Array:
    """Numbers of either sign below the least normal one of a float type, so small that some add up to another.

    Zeros in a type without any.
    """
    rng = np.random.default_rng([seed & 0xFFFFFFFFFFFFFFFF, parameter, 2])
    most = max(1, (1 << dtype.mantissa) // 16) if dtype.format.least < dtype.format.least_normal else 0
    return (rng.integers(-most, most, count, endpoint=True) * dtype.format.least).astype(dtype.numpy)


def _distinct(rng: np.random.Generator, span: int, count: int) -> NDArray[np.int64]:
    """`count` numbers below `span`, distinct while span allows."""
    if span >= count:
        return rng.choice(span, count, replace=False, shuffle=True).astype(np.int64)
    return rng.permutation(np.arange(count, dtype=np.int64) % span)


def _drawn(rng: np.random.Generator, dtype: DType, count: int, profile: Profile) -> Array:
    make = _MAKERS[dtype.kind]
    bits = _POOL_BITS[8 * dtype.numpy.itemsize]
    if count <= 1 << bits:
        return make(rng, dtype, count, profile)
    pool = make(rng, dtype, 1 << bits, profile)
    values = np.empty(count, dtype.numpy)
    word: Any = np.uint16 if bits <= 16 else np.uint32
    for start in range(0, count, _CHUNK):  # indices stay in the cache
        part = values[start : start + _CHUNK]
        draws = rng.bit_generator.random_raw(_CHUNK * np.dtype(word).itemsize // 8).view(word)[: part.size]
        pool.take(draws & word((1 << bits) - 1), out=part, mode="clip")
    return values


def _mixed(rng: np.random.Generator, count: int, parts: Sequence[Callable[[int], Array]]) -> Array:
    """Half of the first, a quarter of the second, an eighth of each other, well stirred."""
    sizes = [count - count // 4 - 2 * (count // 8), count // 4, count // 8, count // 8]
    return rng.permutation(np.concatenate([part(size) for part, size in zip(parts, sizes, strict=True)]))


def _iinfo(dtype: DType) -> Any:
    return _ML_DTYPES.iinfo(dtype.numpy)


# ------------------------------------------------------------------------------------------------------------- floats
def edge_values(dtype: DType) -> Array:
    """The values of a float or integer type at which something changes: extremes, zeros, ones and their neighbours."""
    if dtype.is_float:
        return _float_edges(dtype)
    info = _iinfo(dtype)
    least, most = int(info.min), int(info.max)
    near = [least, least + 1, -2, -1, 0, 1, 2, most // 2, most - 1, most]
    return np.array(sorted({v for v in near if least <= v <= most}), np.object_).astype(dtype.numpy)


def _float_edges(dtype: DType) -> Array:
    form = dtype.format
    bottom = form.least if form.unsigned else -form.most
    named = (0.0, form.least, form.least_normal, form.most, bottom, 1.0, -1.0, 0.5, 1.5, 2.0, np.inf, np.nan)
    positive = np.stack([np.array(value, dtype.numpy) for value in named])
    unsigned = np.dtype(f"u{dtype.numpy.itemsize}")
    bits = positive.view(unsigned)
    top = unsigned.type((1 << dtype.bits) - 1)
    one = unsigned.type(1)
    # Neighbours of 1 and of the least normal value; then all with the sign turned.  In types without a sign, infinity
    # or NaN these are other values of the type, as good as any.
    near = np.concatenate([bits, bits[5:6] + one, bits[5:6] - one, bits[2:3] - one, bits[2:3] + one])
    turned = near ^ unsigned.type(1 << (dtype.bits - 1))
    return np.unique(np.concatenate([near, turned]) & top).view(dtype.numpy)


def _cast(values: NDArray[np.float64], dtype: DType) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float32).astype(dtype.numpy) if dtype.bits < 32 else values.astype(dtype.numpy)


_RANGES = {Profile.NARROW: (-1.0, 1.0), Profile.NEAR_ONE: (0.875, 1.125), Profile.SMALL: (-(2.0**-6), 2.0**-6)}


def _floats(rng: np.random.Generator, dtype: DType, count: int, profile: Profile) -> Array:
    if profile in _RANGES:
        near = _cast(rng.uniform(*_RANGES[profile], count), dtype)
        near[~np.isfinite(near)] = np.array(1.0, dtype.numpy)  # a negative number in a type without a sign
        return near
    low, high = float(np.log2(dtype.format.least)), float(np.log2(dtype.format.most))
    if profile is Profile.TAME:
        low, high = max(low, -6.0), min(high, 6.0)

    def log_uniform(n: int) -> Array:
        return _cast(rng.choice([-1.0, 1.0], n) * np.exp2(rng.uniform(low, high, n)), dtype)

    def normal(n: int) -> Array:
        return _cast(rng.standard_normal(n), dtype)

    def small(n: int) -> Array:
        return _cast(rng.standard_normal(n) * max(2.0**-8, dtype.format.least), dtype)

    edges = edge_values(dtype)
    if profile is not Profile.MIXTURE:
        edges = edges[np.isfinite(edges)]

    def edge(n: int) -> Array:
        return normal(n) if profile is Profile.TAME else edges[rng.integers(0, len(edges), n)]

    values = _mixed(rng, count, [normal, log_uniform, edge, small])
    if profile is not Profile.MIXTURE:  # a rounding may have reached inf or NaN
        values[~np.isfinite(values)] = np.array(1.0, dtype.numpy)
    return values


# ----------------------------------------------------------------------------------------------------------- integers
_WHOLE_RANGES = {Profile.NARROW: (-3, 3), Profile.NEAR_ONE: (1, 2), Profile.SMALL: (0, 1)}


def _integers(rng: np.random.Generator, dtype: DType, count: int, profile: Profile) -> Array:
    info = _iinfo(dtype)
    least, most = int(info.min), int(info.max)

    def within(low: int, high: int) -> Callable[[int], Array]:
        low, high = max(low, least), min(high, most)
        wide = np.dtype(np.uint64 if least == 0 else np.int64)

        def draw(n: int) -> Array:
            return np.asarray(rng.integers(low, high, n, endpoint=True, dtype=wide)).astype(dtype.numpy)

        return draw

    def log_uniform(n: int) -> Array:
        shift = rng.integers(0, dtype.bits, n).astype(np.uint64)
        raw = rng.integers(0, 2**64 - 1, n, endpoint=True, dtype=np.uint64) >> np.uint64(64 - dtype.bits)
        magnitude = raw >> shift
        if least == 0:
            return magnitude.astype(dtype.numpy)
        # Half of them with the bits turned: magnitudes of either sign.
        turned = np.where(rng.random(n) < 0.5, ~magnitude, magnitude).astype(np.int64)
        half = np.int64(1 << (dtype.bits - 1)) if dtype.bits < 64 else None
        return (turned if half is None else (turned + half & 2 * half - 1) - half).astype(dtype.numpy)

    if profile in _WHOLE_RANGES:
        return within(*_WHOLE_RANGES[profile])(count)
    edges = edge_values(dtype)
    tame = profile is Profile.TAME
    edge: Callable[[int], Array] = within(-2, 2) if tame else lambda n: edges[rng.integers(0, len(edges), n)]
    return _mixed(rng, count, [within(-100, 100), within(-1000, 1000) if tame else log_uniform, edge, within(-8, 8)])


def _booleans(rng: np.random.Generator, dtype: DType, count: int, profile: Profile) -> Array:
    return rng.integers(0, 2, count, dtype=np.uint8).view(np.bool_)


_MAKERS: dict[Kind, Callable[[np.random.Generator, DType, int, Profile], Array]] = {
    Kind.PRED: _booleans,
    Kind.SINT: _integers,
    Kind.UINT: _integers,
    Kind.FLOAT: _floats,
}
