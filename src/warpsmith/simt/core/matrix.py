"""What a warp does with tiles and fragments: the moves of ldmatrix and stmatrix, the product of mma.sync.

Both machines share this.  An array has one row a warp and one column a lane.  Where which element of a fragment lies is
in the docstring of `ir/dialects/nvgpu.py` (PTX ISA, "Warp-level matrix instructions").

PTX leaves the order and the rounding of mma's sums open.  Here products are exact, their sum is taken without loss (of
f16 always, of bf16 unless terms 2^100 apart cancel), and the result is rounded to f32 once, to nearest even: what any
order of the sum is near to.
"""

from __future__ import annotations

import numpy as np

from warpsmith.arrays import Array
from warpsmith.numerics.rounding import odd_sum, two_sum
from warpsmith.simt.core.results import WARP

__all__ = ["FLOPS", "ROW", "by_thread", "by_warp", "gather_tiles", "multiply", "providers", "scatter_tiles"]

ROW = 16
"""Bytes of a tile's row."""

FLOPS = 2 * 16 * 8 * 16
"""Of one mma.m16n8k16: a multiplication and an addition for each of its products."""

_NAN = np.array([0x7FFFFFFF], np.uint32).view(np.float32)


def by_warp(values: Array, per_block: int) -> Array:
    """One item a thread (with more axes) to one row a warp; a block's last warp is filled up with zeros."""
    if per_block % WARP:
        blocks = values.reshape(-1, per_block, *values.shape[1:])
        rows = np.zeros((blocks.shape[0], -(-per_block // WARP) * WARP, *values.shape[1:]), values.dtype)
        rows[:, :per_block] = blocks
        values = rows
    return values.reshape(-1, WARP, *values.shape[2 if per_block % WARP else 1 :])


def by_thread(rows: Array, per_block: int) -> Array:
    """The opposite of `by_warp`."""
    warps = -(-per_block // WARP)
    return rows.reshape(-1, warps * WARP, *rows.shape[2:])[:, :per_block].reshape(-1, *rows.shape[2:])


def providers(lane: Array, tiles: int) -> Array:
    """Which lanes give the place of a row: the first 8 a tile."""
    return lane < 8 * tiles


def gather_tiles(rows: Array, tiles: int, *, transpose: bool) -> Array:
    """Each lane's elements, 2 a tile, of tiles whose row r of tile k lane 8 k + r has read: (warps, 32, 8) to
    (warps, 32, 2 tiles).
    """
    whole = rows[:, : 8 * tiles].reshape(-1, tiles, 8, 8)
    if transpose:
        whole = whole.swapaxes(2, 3)
    held = whole.reshape(-1, tiles, WARP, 2).swapaxes(1, 2)
    return np.ascontiguousarray(held).reshape(-1, WARP, 2 * tiles)


def scatter_tiles(held: Array, tiles: int, *, transpose: bool) -> Array:
    """The opposite: the rows that lanes write, (warps, 32, 8); zeros in lanes that give no place."""
    whole = held.reshape(-1, WARP, tiles, 2).swapaxes(1, 2).reshape(-1, tiles, 8, 8)
    if transpose:
        whole = whole.swapaxes(2, 3)
    rows = np.zeros((whole.shape[0], WARP, 8), held.dtype)
    rows[:, : 8 * tiles] = whole.reshape(-1, 8 * tiles, 8)
    return rows


def multiply(a: Array, b: Array, c: Array) -> Array:
    """d = a b + c of fragments: a (warps, 32, 8) and b (warps, 32, 4) of f16 or bf16, c and d (warps, 32, 4) of f32."""
    count = a.shape[0]
    # Axes of a lane's elements: g, p / 2; then which half of the columns, which half of the rows, the pair.
    left = a.astype(np.float64).reshape(count, 8, 4, 2, 2, 2).transpose(0, 4, 1, 3, 2, 5).reshape(count, 16, 16)
    right = b.astype(np.float64).reshape(count, 8, 4, 2, 2).transpose(0, 3, 2, 4, 1).reshape(count, 16, 8)
    added = c.astype(np.float64).reshape(count, 8, 4, 2, 2).transpose(0, 3, 1, 2, 4).reshape(count, 16, 8)
    found = _sum_of_products(left, right, added)
    return found.reshape(count, 2, 8, 4, 2).transpose(0, 2, 3, 1, 4).reshape(count, WARP, 4)


def _sum_of_products(left: Array, right: Array, added: Array) -> Array:
    with np.errstate(all="ignore"):
        plain = high = left[:, :, 0, None] * right[:, None, 0]
        low = np.zeros_like(high)
        for k in range(1, left.shape[2]):
            product = left[:, :, k, None] * right[:, None, k]
            plain = plain + product
            high, error = two_sum(high, product)
            low = low + error
        plain = plain + added
        high, error = two_sum(high, added)
        exact = odd_sum(high, odd_sum(error, low))
        negative = (plain == 0) & np.signbit(plain)  # a sum of nothing but negative zeros
        exact = np.where(exact == 0, np.where(negative, -0.0, 0.0), exact)
        found = np.where(np.isfinite(plain), exact, plain).astype(np.float32)
    return np.where(np.isnan(found), _NAN, found)
