"""A block sums each of 32 rows of 32 numbers.

Four lanes share a row.  They load it side by side, four numbers each, twice, so that each load of the row is 64 bytes
without a gap.  Each adds up its eight registers, and two shuffles add up the four.  All four then hold the sum, as the
result's layout says with its copies on four lanes; the first of them stores it.
"""

from warpsmith.tile import R, S, T, TileLayout, Tx, laneid, warpid

ROWS, COLUMNS = 32, 32
rows = TileLayout(S[(4, 8, 2, 4, 4) : (1 @ warpid, 4 @ laneid, 4, 1 @ laneid, 1)])
number_a_row = TileLayout(S[(4, 8, 1) : (1 @ warpid, 4 @ laneid, 1)] + R[4 : 1 @ laneid])


@T.prim_func
def row_sum(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (ROWS, COLUMNS), "float32")
    B = T.match_buffer(B_ptr, (ROWS, 1), "float32")
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    x = T.alloc_local((ROWS, COLUMNS), "float32", layout=rows)
    total = T.alloc_local((ROWS, 1), "float32", layout=number_a_row)
    Tx.cta.copy(x, A)
    Tx.cta.sum(total, x, axes=[1])
    Tx.cta.copy(B, total)
