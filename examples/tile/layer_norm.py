"""Each row of 256 numbers is brought to mean 0 and variance 1, then scaled and shifted column by column.

A warp takes a row: every lane has two groups of four neighbouring columns, so that its moves are 16 bytes wide and the
groups of neighbouring lanes lie side by side.  Mean and variance are sums over the row: first of each lane's own eight
numbers, then by five shuffles, after which every lane holds the sum.  The mean is subtracted before squares are taken:
a difference of two large sums of squares would lose what matters.
"""

from warpsmith.tile import R, S, T, TileLayout, Tx, laneid, warpid

BLOCKS, WARPS, COLUMNS = 4, 8, 256
ROWS = BLOCKS * WARPS
EPSILON = 1e-5
row_a_warp = TileLayout(S[(WARPS, 2, 32, 4) : (1 @ warpid, 4, 1 @ laneid, 1)])
number_a_warp = TileLayout(S[WARPS : 1 @ warpid] + R[32 : 1 @ laneid])
in_every_warp = TileLayout(S[(2, 32, 4) : (4, 1 @ laneid, 1)] + R[WARPS : 1 @ warpid])


@T.prim_func
def layer_norm(X_ptr: T.handle, Weight_ptr: T.handle, Bias_ptr: T.handle, Y_ptr: T.handle):
    X = T.match_buffer(X_ptr, (ROWS, COLUMNS), "float32")
    Weight = T.match_buffer(Weight_ptr, (1, COLUMNS), "float32")
    Bias = T.match_buffer(Bias_ptr, (1, COLUMNS), "float32")
    Y = T.match_buffer(Y_ptr, (ROWS, COLUMNS), "float32")
    T.device_entry()
    block = T.cta_id([BLOCKS])
    T.thread_id([WARPS * 32])
    first = block * WARPS
    x = T.alloc_local((WARPS, COLUMNS), "float32", layout=row_a_warp)
    square = T.alloc_local((WARPS, COLUMNS), "float32", layout=row_a_warp)
    mean = T.alloc_local((WARPS, 1), "float32", layout=number_a_warp)
    scale = T.alloc_local((WARPS, 1), "float32", layout=number_a_warp)
    weight = T.alloc_local((1, COLUMNS), "float32", layout=in_every_warp)
    bias = T.alloc_local((1, COLUMNS), "float32", layout=in_every_warp)
    Tx.cta.copy(x, X[first : first + WARPS, 0:COLUMNS])
    Tx.cta.copy(weight, Weight)
    Tx.cta.copy(bias, Bias)
    Tx.cta.sum(mean, x, axes=[1])
    Tx.cta.mul(mean, mean, 1 / COLUMNS)
    Tx.cta.sub(x, x, mean)
    Tx.cta.square(square, x)
    Tx.cta.sum(scale, square, axes=[1])
    Tx.cta.fma(scale, scale, 1 / COLUMNS, EPSILON)
    Tx.cta.rsqrt(scale, scale)
    Tx.cta.mul(x, x, scale)
    Tx.cta.fma(x, x, weight, bias)
    Tx.cta.copy(Y[first : first + WARPS, 0:COLUMNS], x)
