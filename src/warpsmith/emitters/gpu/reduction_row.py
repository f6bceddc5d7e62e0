"""Row reductions: what is reduced lies together in memory, {major reduced, kept, minor reduced}.

Row: warps share a row; their lanes combine by shuffles, and warps of one row through shared memory.

    block: `rows` rows of `tr` threads     thread: elements t, t + tr, t + 2 tr .. of its row, a vector each
    shuffle within the warp  ->  lane 0 to tile[row, warp]  -- sync -->  the row's first warp reads them, shuffles

Multi-row: a row is so short that several fit into one warp; its lanes combine by shuffles alone.

In: an analysis of a row reduction.  Out: its geometry.
"""

from __future__ import annotations

from warpsmith.emitters.gpu.reduction_geometry import Geometry, Shared, block_ids, symbols, vector_size
from warpsmith.fusion.analysis import UNBOUNDED_BITS, FusionAnalysis
from warpsmith.indexing import Expr, Interval, add, dim, floordiv, mod, mul, symbol

__all__ = ["multi_row", "row"]

MAX_THREADS_PER_ROW = 1024
MAX_ELEMENTS_PER_THREAD = 16
ROW_BLOCK = 256  # threads of a block that takes several rows
MAX_LOAD_BITS = 64  # of a short row, in the narrowest type; 128 in the widest when that is 32 bits or more
MAX_WIDE_LOAD_BITS = 128


def _sizes(analysis: FusionAnalysis) -> tuple[int, int, int]:
    assert analysis.reduction is not None
    return analysis.reduction.sizes


def _rows_of_block(kept: int, threads_per_row: int) -> int:
    return kept if kept * threads_per_row <= ROW_BLOCK else ROW_BLOCK // threads_per_row


def row(analysis: FusionAnalysis) -> Geometry:
    """Warps to a row."""
    major, kept, minor = _sizes(analysis)
    warp = analysis.device.warp_size
    wanted = -(-minor // MAX_ELEMENTS_PER_THREAD)
    tr = min(MAX_THREADS_PER_ROW, -(-wanted // warp) * warp)
    tk = _rows_of_block(kept, tr) if 2 * tr <= ROW_BLOCK else 1
    vector = vector_size(analysis, minor, tr)
    vectors = minor // vector
    steps = min(MAX_ELEMENTS_PER_THREAD // vector, -(-vectors // tr))
    blocks = (-(-kept // tk), -(-vectors // (steps * tr)))
    grid, (b0, b1) = block_ids(blocks, analysis.device)
    t0, t1 = floordiv(dim(0), tr), mod(dim(0), tr)
    at = add(mul(b0, tk), t0)
    warps = tr // warp
    shared: Shared | None = None
    if warps > 1:
        lane: Expr = mod(t1, warp)
        shared = Shared(
            (tk, warps + (warps % warp == 0)),
            write=(t0, floordiv(t1, warp)),
            read=(t0, lane),
            writers=((lane, Interval.point(0)),),
            readers=((t1, Interval.of_size(warps)),),
            distance=warp // 2,
        )
    return Geometry(
        variant="row",
        input_dims=(major, kept, vectors, vector),
        output_dims=(kept,),
        threads=(tk, tr),
        blocks=blocks,
        grid=grid,
        vector=vector,
        vectors=False,
        loops=symbols((major, steps, vector)),
        read=(symbol(0), at, add(mul(b1, steps * tr), mul(symbol(1), tr), t1), symbol(2)),
        distance=warp // 2,
        shared=shared,
        write=(at,),
        writers=((t1, Interval.point(0)),),
    )


def multi_row(analysis: FusionAnalysis) -> Geometry | None:
    """Several rows to a warp; None where that doesn't fit."""
    major, kept, minor = _sizes(analysis)
    warp = analysis.device.warp_size
    vector = _multi_row_vector(analysis, minor)
    if minor & (minor - 1) or not vector or minor > warp * vector:
        return None

    def blocks_of(vector: int) -> int:
        return -(-kept // _rows_of_block(kept, minor // vector))

    while vector > 1 and blocks_of(vector) < analysis.device.core_count:
        vector //= 2
    if minor > warp * vector:
        return None
    tr = minor // vector
    tk = _rows_of_block(kept, tr)
    grid, (block,) = block_ids((blocks_of(vector),), analysis.device)
    t0, t1 = floordiv(dim(0), tr), mod(dim(0), tr)
    at = add(mul(block, tk), t0)
    return Geometry(
        variant="multi_row",
        input_dims=(major, kept, minor),
        output_dims=(kept,),
        threads=(tk, tr),
        blocks=(blocks_of(vector),),
        grid=grid,
        vector=vector,
        vectors=False,
        loops=symbols((major, vector)),
        read=(symbol(0), at, add(mul(t1, vector), symbol(1))),
        distance=tr // 2,
        shared=None,
        write=(at,),
        writers=((t1, Interval.point(0)),),
    )


def _multi_row_vector(analysis: FusionAnalysis, minor: int) -> int:
    """The longest vector that a load of a short row should have; 0 for types that are too wide, or unknown."""
    small, large = analysis.smallest_input_bits, analysis.smallest_output_bits
    vector = min(minor, MAX_LOAD_BITS // min(small, large))
    widest = max(small, large)
    if widest == UNBOUNDED_BITS:
        widest = large
    return min(MAX_WIDE_LOAD_BITS // widest, vector) if widest >= 32 else vector
