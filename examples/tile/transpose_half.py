"""B = the transpose of A in float16, by 64 x 64 tiles in shared memory.

Two numbers share a word of a bank.  They are read one by one, each lane from two neighbouring rows, and leave as one
word: the tile of B is put together in registers, where each lane holds pairs of a row.  Rows come in pairs as well, so
the swizzle moves words by half the number of the row.
"""

from warpsmith.tile import ComposeLayout, S, T, TileLayout, Tx, laneid, warpid

ROWS, COLUMNS, TILE = 128, 192, 64
swizzled = ComposeLayout(per_element=1, swizzle_len=5, atom_len=6)
pairs = TileLayout(S[(8, 8, 32, 2) : (2, 1 @ warpid, 1 @ laneid, 1)])


@T.prim_func
def transpose_half(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (ROWS, COLUMNS), "float16")
    B = T.match_buffer(B_ptr, (COLUMNS, ROWS), "float16")
    T.device_entry()
    x, y = T.cta_id([COLUMNS // TILE, ROWS // TILE])
    T.thread_id([256])
    staged = T.alloc_shared((TILE, TILE), "float16", layout=swizzled)
    columns = T.alloc_local((TILE, TILE), "float16", layout=pairs)
    Tx.cta.copy(staged, A[y * TILE : y * TILE + TILE, x * TILE : x * TILE + TILE])
    T.cuda.cta_sync()
    Tx.cta.copy(columns, staged.permute(1, 0))
    Tx.cta.copy(B[x * TILE : x * TILE + TILE, y * TILE : y * TILE + TILE], columns)
