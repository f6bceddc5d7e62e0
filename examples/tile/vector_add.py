"""C = A + B for vectors of any length, on a fixed number of blocks.

Blocks take tiles of 1,024 numbers in turn: every thread moves four neighbouring numbers in one 16-byte access, which
dispatch may choose because each tile begins at a multiple of 16 bytes however large `n` is.  What is left after the
last whole tile is added number by number.
"""

from warpsmith.tile import S, T, TileLayout, Tx, tx

BLOCKS, THREADS = 4, 256
TILE = 4 * THREADS
four_each = TileLayout(S[(THREADS, 4) : (1 @ tx, 1)])


@T.prim_func
def vector_add(A_ptr: T.handle, B_ptr: T.handle, C_ptr: T.handle):
    n = T.int64()
    A = T.match_buffer(A_ptr, (n,), "float32")
    B = T.match_buffer(B_ptr, (n,), "float32")
    C = T.match_buffer(C_ptr, (n,), "float32")
    T.device_entry()
    block = T.cta_id([BLOCKS])
    thread = T.thread_id([THREADS])
    a = T.alloc_local((TILE,), "float32", layout=four_each)
    b = T.alloc_local((TILE,), "float32", layout=four_each)
    tiles = n // TILE
    for tile in range(block, tiles, BLOCKS):
        Tx.cta.copy(a, A[tile * TILE : tile * TILE + TILE])
        Tx.cta.copy(b, B[tile * TILE : tile * TILE + TILE])
        Tx.cta.add(a, a, b)
        Tx.cta.copy(C[tile * TILE : tile * TILE + TILE], a)
    for i in range(tiles * TILE + block * THREADS + thread, n, BLOCKS * THREADS):
        C[i] = A[i] + B[i]
