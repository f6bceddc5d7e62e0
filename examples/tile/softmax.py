"""A block takes the softmax of each of 32 rows of 32 numbers, all in registers.

Four lanes share a row.  The row's largest number is taken first and subtracted, so that no power overflows; maximum
and sum are reductions by shuffles; the results lie in copies on the four lanes, for the next step.
"""

from warpsmith.tile import R, S, T, TileLayout, Tx, laneid, warpid

ROWS, COLUMNS = 32, 32
rows = TileLayout(S[(4, 8, 2, 4, 4) : (1 @ warpid, 4 @ laneid, 4, 1 @ laneid, 1)])
number_a_row = TileLayout(S[(4, 8, 1) : (1 @ warpid, 4 @ laneid, 1)] + R[4 : 1 @ laneid])


@T.prim_func
def softmax(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (ROWS, COLUMNS), "float32")
    B = T.match_buffer(B_ptr, (ROWS, COLUMNS), "float32")
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    x = T.alloc_local((ROWS, COLUMNS), "float32", layout=rows)
    most = T.alloc_local((ROWS, 1), "float32", layout=number_a_row)
    total = T.alloc_local((ROWS, 1), "float32", layout=number_a_row)
    Tx.cta.copy(x, A)
    Tx.cta.max(most, x, axes=[1])
    Tx.cta.sub(x, x, most)
    Tx.cta.exp(x, x)
    Tx.cta.sum(total, x, axes=[1])
    Tx.cta.fdiv(x, x, total)
    Tx.cta.copy(B, x)
