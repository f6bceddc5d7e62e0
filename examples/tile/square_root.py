"""Each of four warps takes the square root of its own 32 x 8 tile: a row in the registers of each lane.

A row is 32 bytes, so lanes that read their rows straight from global memory would each touch another part of it.  The
tile goes through shared memory instead: in by neighbouring lanes, out by rows.  The 32-byte swizzle swaps the halves of
every other four rows, so that eight lanes reading 16 bytes each meet all banks once.
"""

from warpsmith.tile import S, T, TileLayout, Tx, laneid
from warpsmith.tile.layout import swizzle_for

WARPS, ROWS, COLUMNS = 4, 32, 8
row_a_lane = TileLayout(S[(ROWS, COLUMNS) : (1 @ laneid, 1)])
swizzled = swizzle_for(32, 32)


@T.prim_func
def square_root(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (WARPS, ROWS, COLUMNS), "float32")
    B = T.match_buffer(B_ptr, (WARPS, ROWS, COLUMNS), "float32")
    T.device_entry()
    T.cta_id([1])
    warp = T.warp_id([WARPS])
    staged = T.alloc_shared((WARPS, ROWS, COLUMNS), "float32", layout=swizzled)
    rows = T.alloc_local((ROWS, COLUMNS), "float32", layout=row_a_lane)
    Tx.warp.copy(staged[warp], A[warp])
    T.cuda.warp_sync()
    Tx.warp.copy(rows, staged[warp])
    Tx.warp.sqrt(rows, rows)
    Tx.warp.copy(staged[warp], rows)
    T.cuda.warp_sync()
    Tx.warp.copy(B[warp], staged[warp])
