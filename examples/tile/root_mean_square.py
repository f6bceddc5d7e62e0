"""A block scales 128 rows of 16 numbers: each lane owns a row, in registers.

    warpsmith tile examples/tile/root_mean_square.py --run
    warpsmith tile examples/tile/root_mean_square.py --stage cuda

Rows come from global memory through a shared tile: in by neighbouring lanes, out by rows.  Of a dense tile, every other
row lies in the same banks; rows made longer than they need be would suit those who read them, but not those who write
them.  The 64-byte swizzle suits both.  The mean of squares is taken in a loop over the lane's own registers, and every
element is then multiplied by its inverse root.
"""

from warpsmith.tile import S, T, TileLayout, Tx, tx
from warpsmith.tile.layout import swizzle_for

ROWS, COLUMNS = 128, 16
row_a_thread = TileLayout(S[(ROWS, COLUMNS) : (1 @ tx, 1)])
swizzled = swizzle_for(32, 64)


@T.prim_func
def root_mean_square(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (ROWS, COLUMNS), "float32")
    B = T.match_buffer(B_ptr, (ROWS, COLUMNS), "float32")
    T.device_entry()
    T.cta_id([1])
    T.thread_id([ROWS])
    staged = T.alloc_shared((ROWS, COLUMNS), "float32", layout=swizzled)
    row = T.alloc_local((ROWS, COLUMNS), "float32", layout=row_a_thread)
    Tx.cta.copy(staged, A)
    T.cuda.cta_sync()
    Tx.cta.copy(row, staged)
    mine = row.local(COLUMNS)
    total = 0.0
    for i in range(COLUMNS):
        total += mine[i] * mine[i]
    scale = T.rsqrt(total / COLUMNS + 1e-5)
    Tx.mul(mine, mine, scale)
    Tx.cta.copy(staged, row)
    T.cuda.cta_sync()
    Tx.cta.copy(B, staged)
