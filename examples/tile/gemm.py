"""C = A B for float16 matrices, summed in float32 by the matrix units (ldmatrix, mma.sync), fed by cp.async.

A block of four warps makes a 128 x 128 tile of C, a warp a quarter of it, in registers.  It goes through A and B in
steps of 32: while the warps multiply what lies in one half of shared memory, cp.async fills the other half, so that the
wait for memory is spent computing.  A group of copies is closed by `commit_group`; `wait_group(1)` waits for all but
the last one.  The layouts `mma_a`, `mma_b` and `mma_c` are those in which the matrix units want their operands, and
ldmatrix gives them eight rows of 16 bytes at a time.  The swizzles put such eight rows into different banks: rows of 64
bytes of A, rows of 256 of B.
"""

from warpsmith.tile import ComposeLayout, T, Tx, mma_a, mma_b, mma_c
from warpsmith.tile.layout import swizzle_for

M, N, K = 256, 128, 128
TILE, STEP = 128, 32
WARPS = (2, 2)
swizzled_a = swizzle_for(16, 64)
swizzled_b = ComposeLayout(per_element=3, swizzle_len=3, atom_len=4)


@T.prim_func
def gemm(A_ptr: T.handle, B_ptr: T.handle, C_ptr: T.handle):
    A = T.match_buffer(A_ptr, (M, K), "float16")
    B = T.match_buffer(B_ptr, (K, N), "float16")
    C = T.match_buffer(C_ptr, (M, N), "float32")
    T.device_entry()
    x, y = T.cta_id([N // TILE, M // TILE])
    T.thread_id([128])
    column, row = x * TILE, y * TILE
    staged_a = T.alloc_shared((2, TILE, STEP), "float16", layout=swizzled_a)
    staged_b = T.alloc_shared((2, STEP, TILE), "float16", layout=swizzled_b)
    a = T.alloc_local((TILE, 16), "float16", layout=mma_a(TILE, 16, warps=WARPS))
    b = T.alloc_local((16, TILE), "float16", layout=mma_b(16, TILE, warps=WARPS))
    c = T.alloc_local((TILE, TILE), "float32", layout=mma_c(TILE, TILE, warps=WARPS))
    Tx.cta.zero(c)
    Tx.cta.copy_async(staged_a[0], A[row : row + TILE, 0:STEP])
    Tx.cta.copy_async(staged_b[0], B[0:STEP, column : column + TILE])
    T.ptx.cp_async.commit_group()
    for step in range(K // STEP):
        now, following = step % 2, (step + 1) % 2
        if step + 1 < K // STEP:
            ahead = (step + 1) * STEP
            Tx.cta.copy_async(staged_a[following], A[row : row + TILE, ahead : ahead + STEP])
            Tx.cta.copy_async(staged_b[following], B[ahead : ahead + STEP, column : column + TILE])
        T.ptx.cp_async.commit_group()
        T.ptx.cp_async.wait_group(1)
        T.cuda.cta_sync()
        for k in range(0, STEP, 16):
            Tx.cta.copy(a, staged_a[now, 0:TILE, k : k + 16])
            Tx.cta.copy(b, staged_b[now, k : k + 16, 0:TILE])
            Tx.cta.gemm(c, a, b, beta=1.0)
        T.cuda.cta_sync()
    Tx.cta.copy(C[row : row + TILE, column : column + TILE], c)
