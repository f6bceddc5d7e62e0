"""B = the transpose of A, by 32 x 32 tiles in shared memory.

Both arrays are moved along their rows, a warp 128 neighbouring bytes at a time; the tile is where rows become columns.
In a dense tile a column lies in one bank, and 32 lanes reading it would wait for each other 32 times.  The swizzle
stores number j of row i at j xor i, so that the numbers of a column, and of a row, lie in 32 different banks.
"""

from warpsmith.tile import ComposeLayout, T, Tx

ROWS, COLUMNS, TILE = 64, 96, 32
swizzled = ComposeLayout(per_element=0, swizzle_len=5, atom_len=5)


@T.prim_func
def transpose(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (ROWS, COLUMNS), "float32")
    B = T.match_buffer(B_ptr, (COLUMNS, ROWS), "float32")
    T.device_entry()
    x, y = T.cta_id([COLUMNS // TILE, ROWS // TILE])
    T.thread_id([256])
    staged = T.alloc_shared((TILE, TILE), "float32", layout=swizzled)
    Tx.cta.copy(staged, A[y * TILE : y * TILE + TILE, x * TILE : x * TILE + TILE])
    T.cuda.cta_sync()
    Tx.cta.copy(B[x * TILE : x * TILE + TILE, y * TILE : y * TILE + TILE], staged.permute(1, 0))
