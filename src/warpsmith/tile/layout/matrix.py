"""The register layouts of matrix products: fragments of mma.m16n8k16 over larger tiles, and over a block's warps.

In: a tile's rows and columns.  Out: its layout.  With g = lane / 4 and q = lane mod 4, and registers that follow one
another in the order in which the instruction takes them:

    mma_a(16, 16)   [m, k]   (g + 8 i, 2 q + e + 8 j) in register e + 2 i + 4 j     S[(2, 8, 2, 4, 2) : ...]
    mma_b(16, 8)    [k, n]   (2 q + e + 8 j, g)       in register e + 2 j
    mma_c(16, 8)    [m, n]   (g + 8 i, 2 q + e)       in register e + 2 i

Reference: PTX ISA, "Matrix fragments for mma.m16n8k16".
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.errors import InvalidLayout
from warpsmith.tile.layout.axes import AXES
from warpsmith.tile.layout.iters import Iter
from warpsmith.tile.layout.tile_layout import TileLayout

__all__ = ["mma_a", "mma_b", "mma_c"]

_M, _N, _K = 16, 8, 16
_LANE, _WARP, _REGISTER = AXES["laneid"], AXES["warpid"], AXES["m"]


def mma_a(m: int, k: int, *, transposed: bool = False, warps: tuple[int, int] = (1, 1)) -> TileLayout:
    """The layout of a product's first factor: m x k, or k x m with `transposed`.

    `warps` = (rows, columns): so many warps share out the product's rows and columns (`mma_c`), row by row; each holds
    the whole of k, and the warps of one row hold the same.  InvalidLayout where m isn't a multiple of 16 a warp, or k
    of 16.
    """
    down, across = _shared(warps)
    rows, columns = _per_warp("m", m, _M, down), _per_warp("k", k, _K, 1)
    fragments_k = columns // _K
    m_iters = [
        *_warps(down, across),
        *_registers((rows // _M, 8 * fragments_k), (2, 2)),
        Iter(8, 4, _LANE),
    ]
    k_iters = [*_registers((fragments_k, 8), (2, 4)), Iter(4, 1, _LANE), *_registers((2, 1))]
    return _layout(m_iters, k_iters, transposed, _warps(across, 1))


def mma_b(k: int, n: int, *, transposed: bool = False, warps: tuple[int, int] = (1, 1)) -> TileLayout:
    """The layout of a product's second factor: k x n, or n x k with `transposed`; `warps` as for `mma_a`.

    InvalidLayout where k isn't a multiple of 16, or n of 8 a warp.
    """
    down, across = _shared(warps)
    rows, columns = _per_warp("k", k, _K, 1), _per_warp("n", n, _N, across)
    fragments_k = rows // _K
    k_iters = [*_registers((fragments_k, 4), (2, 2)), Iter(4, 1, _LANE), *_registers((2, 1))]
    n_iters = [*_warps(across, 1), *_registers((columns // _N, 4 * fragments_k)), Iter(8, 4, _LANE)]
    return _layout(k_iters, n_iters, transposed, _warps(down, across))


def mma_c(m: int, n: int, *, warps: tuple[int, int] = (1, 1)) -> TileLayout:
    """The layout of a product and of what is added to it, m x n; `warps` share out its rows and columns.

    InvalidLayout where m isn't a multiple of 16 a warp, or n of 8.
    """
    down, across = _shared(warps)
    rows, columns = _per_warp("m", m, _M, down), _per_warp("n", n, _N, across)
    fragments_n = columns // _N
    m_iters = [
        *_warps(down, across),
        *_registers((rows // _M, 4 * fragments_n), (2, 2)),
        Iter(8, 4, _LANE),
    ]
    n_iters = [
        *_warps(across, 1),
        *_registers((fragments_n, 4)),
        Iter(4, 1, _LANE),
        *_registers((2, 1)),
    ]
    return _layout(m_iters, n_iters, False, [])


def _shared(warps: object) -> tuple[int, int]:
    """How many warps share out the rows of a product, and how many its columns."""
    match warps:
        case (int(down), int(across)):
            return down, across
        case _:
            raise InvalidLayout(f"warps = {warps!r}", help="warps=(r, c): r share out a product's rows, c its columns")


def _per_warp(name: str, extent: object, unit: int, warps: int) -> int:
    """The part of an extent that one warp has."""
    if not isinstance(extent, int):
        raise InvalidLayout(f"{name} = {extent!r} is no integer")
    if warps < 1 or extent < 1 or extent % (unit * warps):
        shared = f" for {warps} warps" if warps != 1 else ""
        raise InvalidLayout(
            f"{name} = {extent}{shared}: fragments of mma.m16n8k16 have {unit}",
            help=f"a multiple of {unit * max(warps, 1)}",
        )
    return extent // warps


def _warps(count: int, stride: int) -> list[Iter]:
    return [Iter(count, stride, _WARP)] if count > 1 else []


def _registers(*iters: tuple[int, int]) -> list[Iter]:
    return [Iter(extent, stride, _REGISTER) for extent, stride in iters if extent > 1]


def _layout(rows: Sequence[Iter], columns: Sequence[Iter], transposed: bool, replica: Sequence[Iter]) -> TileLayout:
    shard = [*columns, *rows] if transposed else [*rows, *columns]
    return TileLayout(shard=shard, replica=replica)
