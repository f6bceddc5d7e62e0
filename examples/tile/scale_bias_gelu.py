"""Y = gelu(X * scale + bias) in float16, with a scale and a bias for each column.

A warp takes a row, a lane eight neighbouring columns: 16 bytes.  Scale and bias are loaded once; their layout says that
every warp has a copy (`R[...]`), so they meet the rows of X without another move.  What follows happens in registers
and in float32: the chain costs one read and one write of memory, however long it is.
"""

from warpsmith.tile import R, S, T, TileLayout, Tx, laneid, warpid

BLOCKS, WARPS, COLUMNS = 4, 8, 256
ROWS = BLOCKS * WARPS
row_a_warp = TileLayout(S[(WARPS, 32, 8) : (1 @ warpid, 1 @ laneid, 1)])
in_every_warp = TileLayout(S[(32, 8) : (1 @ laneid, 1)] + R[WARPS : 1 @ warpid])


@T.prim_func
def scale_bias_gelu(X_ptr: T.handle, Scale_ptr: T.handle, Bias_ptr: T.handle, Y_ptr: T.handle):
    X = T.match_buffer(X_ptr, (ROWS, COLUMNS), "float16")
    Scale = T.match_buffer(Scale_ptr, (1, COLUMNS), "float16")
    Bias = T.match_buffer(Bias_ptr, (1, COLUMNS), "float16")
    Y = T.match_buffer(Y_ptr, (ROWS, COLUMNS), "float16")
    T.device_entry()
    block = T.cta_id([BLOCKS])
    T.thread_id([WARPS * 32])
    first = block * WARPS
    x = T.alloc_local((WARPS, COLUMNS), "float16", layout=row_a_warp)
    scale = T.alloc_local((1, COLUMNS), "float16", layout=in_every_warp)
    bias = T.alloc_local((1, COLUMNS), "float16", layout=in_every_warp)
    y = T.alloc_local((WARPS, COLUMNS), "float32", layout=row_a_warp)
    share = T.alloc_local((WARPS, COLUMNS), "float32", layout=row_a_warp)
    Tx.cta.copy(x, X[first : first + WARPS, 0:COLUMNS])
    Tx.cta.copy(scale, Scale)
    Tx.cta.copy(bias, Bias)
    Tx.cta.fma(y, x, scale, bias)
    Tx.cta.mul(share, y, 0.5**0.5)
    Tx.cta.erf(share, share)
    Tx.cta.fma(share, share, 0.5, 0.5)
    Tx.cta.mul(y, y, share)
    Tx.cta.cast(x, y)
    Tx.cta.copy(Y[first : first + WARPS, 0:COLUMNS], x)
