"""Column reductions: neighbours in memory belong to different results, {major kept, reduced, minor kept}.

Column: 32 x 32 threads; a warp reads neighbouring columns, warps take different rows; the tile turns them.

    thread (t0, t1): column t1 (a vector of them), rows t0, t0 + 32, ..    its partial result to tile[t1, t0]
    -- sync -->  warp t0 reads the 32 partial results of column t0 and combines them by shuffles

With warps of 64 a block has room for 16 of them: 16 partial results a column, and a warp combines those of 4 columns.

Small column: the columns' number divides a warp's threads, so a warp reads whole rows; each thread stays within its
columns.

In: an analysis of a column reduction.  Out: its geometry.
"""

from __future__ import annotations

from warpsmith.emitters.gpu.reduction_geometry import Geometry, Shared, block_ids, symbols, vector_size
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.indexing import Expr, Interval, add, delinearize, dim, floordiv, mod, mul, symbol

__all__ = ["column", "small_column"]

SMALL_COLUMN_THREADS = 128


def _sizes(analysis: FusionAnalysis) -> tuple[int, int, int]:
    assert analysis.reduction is not None
    return analysis.reduction.sizes


def column(analysis: FusionAnalysis) -> Geometry:
    """A warp to so many vectors of columns as it has threads."""
    major, reduced, minor = _sizes(analysis)
    warp = analysis.device.warp_size
    vector = vector_size(analysis, minor, warp)
    blocks = (major, -(-minor // (warp * vector)))
    grid, (b0, b1) = block_ids(blocks, analysis.device)
    rows = min(warp, analysis.device.threads_per_block // warp)
    t0, t1 = floordiv(dim(0), warp), mod(dim(0), warp)
    of_column, of_row = floordiv(dim(0), rows), mod(dim(0), rows)  # while a column's partial results are combined
    several = vector > 1

    def lane(position: Expr, number: int) -> Expr:
        """Element `symbol(number)` of the vector at `position`."""
        return add(mul(position, vector), symbol(number)) if several else position

    def part(position: Expr) -> Expr:
        """The column of the tile: elements of a vector lie all rows apart (upstream: side by side, two to a bank)."""
        return add(position, mul(symbol(0), rows)) if several else position

    steps = -(-reduced // rows)
    row = add(t0, mul(symbol(0), rows))
    return Geometry(
        variant="column",
        input_dims=(major, reduced, minor),
        output_dims=(major, minor),
        threads=(rows, warp),
        blocks=blocks,
        grid=grid,
        vector=vector,
        vectors=several,
        loops=symbols((steps, vector)),
        read=(b0, row, lane(add(mul(b1, warp), t1), 1)),
        distance=0,
        shared=Shared(
            (warp, rows * vector + 1),
            write=(t1, part(t0)),
            read=(of_column, part(of_row)),
            writers=(),
            readers=(),
            distance=rows // 2,
        ),
        write=(b0, lane(add(mul(b1, warp), of_column), 0)),
        writers=((of_row, Interval.point(0)),),
    )


def small_column(analysis: FusionAnalysis) -> Geometry:
    """Whole rows to a warp."""
    major, reduced, minor = _sizes(analysis)
    warp = analysis.device.warp_size
    vector = vector_size(analysis, reduced * minor, warp)
    threads = SMALL_COLUMN_THREADS
    rows = vector * threads // minor
    while rows > warp and vector > 1:
        vector //= 2
        rows //= 2
    if rows > warp:
        threads //= rows // warp
        rows = warp
    grid, (block,) = block_ids((major,), analysis.device)
    several = vector > 1
    steps = -(-reduced * minor // (vector * threads))
    own = add(mul(dim(0), vector), symbol(0)) if several else dim(0)  # place among a step's elements
    element = add(mul(dim(0), vector), mul(symbol(0), vector * threads), symbol(1))
    turned = add(dim(0), mul(symbol(0), threads)) if several else dim(0)
    return Geometry(
        variant="small_column",
        input_dims=(major, reduced * minor),
        output_dims=(major, minor),
        threads=(threads,),
        blocks=(major,),
        grid=grid,
        vector=vector,
        vectors=several,
        loops=symbols((steps, vector)),
        read=(block, element),
        distance=0,
        shared=Shared(
            (rows, minor + (0 if threads == warp and vector == 1 else -(-minor // (threads * vector)))),
            write=tuple(delinearize(own, (rows, minor))),
            read=tuple(reversed(delinearize(turned, (minor, rows)))),
            writers=(),
            readers=(),
            distance=rows // 2,
        ),
        write=(block, floordiv(turned, rows)),
        writers=((mod(dim(0), rows), Interval.point(0)),),
    )
