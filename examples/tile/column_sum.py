"""A block sums each of 32 columns of 32 numbers, in shared memory.

The tile is staged in shared memory, and each of 32 threads then walks down a column: neighbouring threads read
neighbouring elements, which lie in different banks, so that no row needs padding.
"""

from warpsmith.tile import T, Tx

ROWS, COLUMNS = 32, 32


@T.prim_func
def column_sum(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (ROWS, COLUMNS), "float32")
    B = T.match_buffer(B_ptr, (1, COLUMNS), "float32")
    T.device_entry()
    T.cta_id([1])
    T.thread_id([128])
    x = T.alloc_shared((ROWS, COLUMNS), "float32")
    total = T.alloc_shared((1, COLUMNS), "float32")
    Tx.cta.copy(x, A)
    T.cuda.cta_sync()
    Tx.cta.sum(total, x, axes=[0])
    Tx.cta.copy(B, total)
