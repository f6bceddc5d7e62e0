"""Random reductions: layouts x scopes x dtypes x shapes x axes, for `bench/random_tiles.py`."""

from __future__ import annotations

import random

from tests.tile.helpers import body

DTYPES = ("float32", "float16", "bfloat16", "int32")


def reduction_program(seed: int) -> str:
    """A kernel that copies A in, reduces it over one axis or both, and copies the result to B."""
    r = random.Random(seed)
    dtype, name, accum = r.choice(DTYPES), r.choice(("sum", "max", "min")), r.random() < 0.5
    axes = r.choice(([0], [1], [-1], [0, 1]))
    reduced = {axis % 2 for axis in axes}
    if r.random() < 0.5:
        scope, block, where = "warp", 32, "local"
        lanes = r.choice((1, 2, 4, 8, 16, 32))
        outer, k = 32 // lanes, r.choice((1, 2, 3, 4, 8))
        rows, columns = outer, lanes * k
        source = f"TileLayout(S[({outer}, {lanes}, {k}) : ({lanes} @ laneid, 1 @ laneid, 1)])"
        if reduced == {1}:
            target = f"TileLayout(S[({outer}, 1) : ({lanes} @ laneid, 1)] + R[{lanes} : 1 @ laneid])"
        elif reduced == {0}:
            target = f"TileLayout(S[(1, {lanes}, {k}) : (1, 1 @ laneid, 1)] + R[{outer} : {lanes} @ laneid])"
        else:
            target = "TileLayout(S[(1, 1) : (1, 1)] + R[32 : 1 @ laneid])"
    else:
        scope, block = r.choice((("warp", 32), ("cta", 64), ("cta", 128), ("warpgroup", 128)))
        rows, columns, where = r.choice((4, 7, 16, 33)), r.choice((8, 12, 32)), "shared"
        pad = r.choice((0, 1, 4))
        source = r.choice(
            (
                f"TileLayout(S[({rows}, {columns}) : ({columns + pad}, 1)])",
                f"TileLayout(S[({rows}, {columns}) : (1, {rows + pad})])",
                f"ComposeLayout(2, 1, 3, tile=TileLayout(S[({rows}, {columns})]))",
            )
        )
        target = ""
    out = (1 if 0 in reduced else rows, 1 if 1 in reduced else columns)
    target = target or f"TileLayout(S[{out}])"
    head = f'A = T.match_buffer(A_ptr, ({rows}, {columns}), "{dtype}"); B = T.match_buffer(B_ptr, {out}, "{dtype}")'
    lines = [
        f'X = T.alloc_buffer(({rows}, {columns}), "{dtype}", scope="{where}", layout={source})',
        f'Y = T.alloc_buffer({out}, "{dtype}", scope="{where}", layout={target})',
        f"Tx.{scope}.copy(X, A)",
        f"Tx.{scope}.fill(Y, 3.0)",
        "T.cuda.cta_sync()",
        f"Tx.{scope}.{name}(Y, X, axes={axes}, accum={accum})",
        "T.cuda.cta_sync()",
        f"Tx.{scope}.copy(B, Y)",
    ]
    return body("\n".join(lines), parameters=head, block=block)
