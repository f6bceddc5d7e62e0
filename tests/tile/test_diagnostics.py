"""The mistakes of a kernel's author, as he meets them: our own error, its words, its line, and the caret.

A few of the peer's refusals are programs that mean something here; they run.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.tile.helpers import body, read
from warpsmith.compiler.tile.programs import run_tile, tile_text
from warpsmith.errors import (
    DispatchFailed,
    InvalidLayout,
    InvalidTileProgram,
    TileSyntaxError,
    WarpsmithError,
)
from warpsmith.tile import R, S, TileLayout, laneid, tx, wgid

A = (np.random.default_rng(5).random((64, 64)) * 3 + 0.5).astype(np.float32)
HEAD = "@T.prim_func\ndef k(A_ptr: T.handle):\n    A = T.match_buffer(A_ptr, (4,))\n    T.device_entry(); "
Mistake = tuple[str, type[WarpsmithError], str, str, dict[str, int]]


def tile(name: str, shape: str, layout: str) -> str:
    return f'{name} = T.alloc_buffer({shape}, "float32", scope="local", layout=TileLayout({layout}))\n'


F = tile("F", "(32, 8)", "S[(32, 8) : (1 @ laneid, 1)]")
HALF = "s = T.alloc_shared((8, 8), 'float16'); b = T.alloc_shared((8, 8))\n"


def row(statements: str, kind: type[WarpsmithError], words: str, at: str, **options: int) -> Mistake:
    """`at` is what the carets begin under."""
    return statements, kind, words, at, options


CATALOGUE: dict[str, Mistake] = {
    "unknown primitive": row("Tx.warp.sqrtt(A, A)", TileSyntaxError, "did you mean 'sqrt'", "Tx.warp.sqrtt"),
    "a primitive of other hardware": row(
        "Tx.warp.binary_chain(A, A, A, A)", DispatchFailed, "needs a Trainium core", "Tx.warp.binary_chain"
    ),
    "tensor cores of other hardware": row(
        "Tx.warp.gemm_async(A, A, A)", DispatchFailed, "needs tcgen05 matrix units", "Tx.warp.gemm_async"
    ),
    "forced variant": row(
        'Tx.warp.copy(A, B, dispatch="fallbak")', DispatchFailed, "did you mean 'fallback'", "Tx.warp.copy"
    ),
    "no variant accepts": row(F + "Tx.warp.sqrt(F, A[0:32, 0:8])", DispatchFailed, "no lowering takes", "Tx.warp.sqrt"),
    "mixed memories": row(
        F + "s = T.alloc_shared((32, 8))\nTx.warp.add(F, F, s)",
        DispatchFailed,
        "copy s into registers with the layout of F first: Tx.warp.copy(tile, s)",
        "Tx.warp.add",
    ),
    "result in global memory": row(
        F + "Tx.warp.add(B[0:32, 0:8], F, F)",
        DispatchFailed,
        "compute into registers or shared memory, and copy from there: Tx.warp.copy(B, tile)",
        "Tx.warp.add",
    ),
    "number as dst": row("Tx.sqrt(1.0, A)", InvalidTileProgram, "use T.sqrt for expressions", "Tx.sqrt"),
    "number as src": row("Tx.cast(A, 1.0)", InvalidTileProgram, "expects `src` to be a buffer", "Tx.cast"),
    "copy shapes": row(
        "Tx.copy(A[0:4, 0:4], B[0:4, 0:5])",
        InvalidTileProgram,
        "dst region shape [4, 4] != src region shape [4, 5]; both must be the same",
        "Tx.copy",
    ),
    "copy types": row(HALF + "Tx.copy(s, b)", InvalidTileProgram, "dst is float16, src is float32\n", "Tx.copy"),
    "scope too wide": row("Tx.cluster.copy(A, B)", DispatchFailed, "Tx.cta.copy", "Tx.cluster.copy"),
    "narrowed scope": row(
        F + "if tid < 16:\n    Tx.warp.sqrt(F, F)",
        DispatchFailed,
        "[0, 16) of 32 threads are active in group 0",
        "Tx.warp.sqrt",
    ),
    "thread-local view": row(
        F + "r = F.local()\nTx.warp.sqrt(r, r)",
        DispatchFailed,
        "r isn't spread over threads (a thread-local view?): pass the warp-level tile, not its .local()",
        "Tx.warp.sqrt",
    ),
    "wrong thread axis": row(
        tile("G", "(32, 8)", "S[(32, 8) : (1 @ tx, 1)]") + "Tx.warp.sqrt(G, G)",
        DispatchFailed,
        "G is spread over axis 'tx', which a call at warp scope can't use (it uses laneid)",
        "Tx.warp.sqrt",
    ),
    "threads with a gap": row(
        tile("G", "(16, 8)", "S[(16, 8) : (2 @ laneid, 1)]") + "Tx.warp.sqrt(G, G)",
        DispatchFailed,
        "its threads don't make a complete 32:1 (by stride: expected 1, got 2)",
        "Tx.warp.sqrt",
    ),
    "part of the threads": row(
        tile("G", "(16, 8)", "S[(16, 8) : (1 @ laneid, 1)]") + "Tx.warp.sqrt(G, G)",
        DispatchFailed,
        "it spans 16 threads, not all 32",
        "Tx.warp.sqrt",
    ),
    "replicas": row(
        tile("G", "(16, 8)", "S[(16, 8) : (1 @ laneid, 1)] + R[2 : 16 @ laneid]")
        + tile("H", "(16, 8)", "S[(16, 8) : (1 @ laneid, 1)]")
        + "Tx.warp.sqrt(G, H)",
        DispatchFailed,
        "src H isn't copied to the threads that hold copies of dst G",
        "Tx.warp.sqrt",
    ),
    "another thread part": row(
        F + tile("G", "(32, 8)", "S[(4, 8, 8) : (1 @ laneid, 4 @ laneid, 1)]") + "Tx.warp.sqrt(F, G)",
        DispatchFailed,
        "src G is spread over threads otherwise than dst F",
        "Tx.warp.sqrt",
    ),
    "broadcast": row(
        F + "Tx.warp.add(F, F, F[0:3, 0:8])",
        InvalidTileProgram,
        "`b` of shape [3, 8] doesn't broadcast to dst's [32, 8]: dim 0 is 3 against 32 (equal or 1)",
        "Tx.warp.add",
    ),
    "too many dims": row(
        "r = T.alloc_local((8,))\nTx.add(r, r, A[0:8, 0:8])", InvalidTileProgram, "`b` has 2 dims, dst has 1", "Tx.add"
    ),
    "two numbers": row(F + "Tx.warp.sub(F, 2.0, 1.0)", InvalidTileProgram, "all inputs are numbers", "Tx.warp.sub"),
    "type of scale": row(
        HALF + "Tx.sqrt(s, s, scale=T.float64(2.0))",
        InvalidTileProgram,
        "Tx.sqrt: scale is float64, and it computes in float16",
        "Tx.sqrt",
    ),
    "type of bias": row(
        HALF + "Tx.exp(s, s, bias=T.float32(1.0))", InvalidTileProgram, "float32, and it computes in float16", "Tx.exp"
    ),
    "wider axis than the scope": row(
        tile("G", "(32, 8)", "S[(32, 8) : (1 @ tx, 1)]") + "Tx.warp.copy(G, A[0:32, 0:8])",
        DispatchFailed,
        "spread over axis 'tx', which a call at warp scope can't use",
        "Tx.warp.copy",
    ),
    "store to a tile's element": row(F + "F[0, 0] = 1.0", InvalidTileProgram, "with .local()", "F[0, 0]"),
    "load of a tile's element": row(
        F + "B[0, 0] = F[0, 0]", InvalidTileProgram, "'F' is spread over threads", "B[0, 0] = F[0, 0]"
    ),
    "lanes of 48 threads": row(
        "T.lane_id()", InvalidTileProgram, "48 threads, which isn't a whole number of warps", "T.lane_id", block=48
    ),
    "contradiction": row("T.thread_id([64])", InvalidTileProgram, "extent 64 here and 32 elsewhere", "T.thread_id([64"),
    "indivisible": row("T.warp_id([3])", InvalidTileProgram, "64 isn't divisible by 3", "T.warp_id", block=64),
    "two dynamic allocations": row(
        's = T.alloc_buffer((4,), scope="shared.dyn")\nq = T.alloc_buffer((4,), scope="shared.dyn")',
        InvalidTileProgram,
        "allocate all of it at once, and take regions and views of it",
        "T.alloc_buffer",
    ),
    "grouping": row(
        "s = T.alloc_shared((3, 5), layout=TileLayout(S[(5, 3) : (3, 1)]))",
        InvalidLayout,
        "factors of extents (5, 3) can't be grouped by shape (3, 5)",
        "T.alloc_shared",
    ),
    "swizzle": row("l = ComposeLayout(3, 4, 3, tile=TileLayout(S[64]))", InvalidLayout, "isn't well formed", "Compose"),
    "conflicting scopes": row(
        "l = TileLayout(S[(2, 32) : (1 @ tx, 1 @ laneid)])",
        InvalidLayout,
        "conflicting scopes: threads are counted both in a cta and in a warp",
        "TileLayout",
    ),
    "disconnected scopes": row(
        "l = TileLayout(S[(2, 32) : (1 @ wgid, 1 @ laneid)])", InvalidLayout, "don't connect", "TileLayout"
    ),
    "unknown axis": row("l = TileLayout(S[32 : 1 @ lanid])", TileSyntaxError, "did you mean 'laneid'", "lanid"),
    "local shape": row(
        F + "F.local(9)", InvalidTileProgram, "9 elements, but a thread holds 8 registers of 'F'", "F.local"
    ),
    "view product": row(
        "A.view(63, 64)",
        InvalidTileProgram,
        "shape (63, 64) has 4032 elements, 'A' of shape (64, 64) has 4096",
        "A.view",
    ),
    "a buffer as condition": row("if A:\n    pass", InvalidTileProgram, "buffer 'A' where a condition is needed", "A:"),
    "a region as condition": row("if A[0, 0:4]:\n    pass", InvalidTileProgram, "a region of 'A'", "if A"),
    "loop over a buffer": row("for i in A:\n    pass", TileSyntaxError, "a loop can't run over Buffer", "for i in A"),
    "a buffer's name in a branch": row(
        "s = T.alloc_shared((4,))\nif tid < 4:\n    s = T.alloc_shared((8,))",
        TileSyntaxError,
        "'s' is a buffer of the block around",
        "s = T.alloc_shared((8,))",
    ),
    # Silent in the peer, or beyond its catalogue.
    "unknown option": row(
        's = T.alloc_shared((4,))\nTx.copy(s, A[0, 0:4], cach="nc")', InvalidTileProgram, "did you mean 'cache'", "Tx."
    ),
    "wrong option": row(
        's = T.alloc_shared((4,))\nTx.copy(s, A[0, 0:4], cache="nx")', InvalidTileProgram, "not 'nx'", "Tx.copy"
    ),
    "partial overlap": row(
        F + "Tx.warp.add(F[0:32, 0:6], F[0:32, 2:8], 1.0)",
        DispatchFailed,
        "a F[0:32, 2:8] and dst F[0:32, 0:6] may share some elements, and aren't the same",
        "Tx.warp.add",
    ),
    "static shared memory": row(
        "s = T.alloc_shared((128, 128))\ns[0, 0] = 1.0",
        InvalidTileProgram,
        'allocate it with scope="shared.dyn": up to 232448 bytes',
        "T.alloc_shared",
    ),
    "too much shared memory": row(
        's = T.alloc_buffer((256, 256), scope="shared.dyn")\ns[0, 0] = 1.0',
        InvalidTileProgram,
        "262144 bytes of shared memory; NVIDIA H100 80GB HBM3 has 232448 for a block",
        "T.alloc_buffer",
    ),
    "no layout": row(
        "s = T.alloc_shared((8, 8), layout=None)\ns[0, 0] = 1.0", InvalidTileProgram, "'s' has no layout", "s[0, 0]"
    ),
    "instructions by their text": row(
        'T.ptx["add.u32"](1)', InvalidTileProgram, "which nothing here can check or simulate", "T.ptx"
    ),
    "functions in CUDA": row(
        'T.cuda.func_call("f", source_code="...")',
        InvalidTileProgram,
        "code in another language, which nothing here can check or simulate",
        "T.cuda.func_call",
    ),
    "return in a loop": row(
        "for i in range(4):\n    if i > tid:\n        return\n    B[i, tid] = 1.0",
        TileSyntaxError,
        "put what follows under else",
        "return",
    ),
    "a macro's value under a condition": row(
        "@T.inline\ndef f(x):\n    if x > 4:\n        return 1.0\n    return 2.0\nB[0, tid] = f(tid)",
        TileSyntaxError,
        "a macro returns a value at its end",
        "return 1.0",
    ),
    "elements of half a byte": row(
        "s = T.alloc_shared((8,), 'int4')", InvalidTileProgram, "elements of int4 take 4 bits", "T.alloc_shared"
    ),
}


@pytest.mark.parametrize("mistake", CATALOGUE.values(), ids=CATALOGUE.keys())
def test_a_mistake_has_its_words_and_its_place(mistake: Mistake) -> None:
    statements, kind, words, at, options = mistake
    with pytest.raises(kind) as caught:
        tile_text(read(body(statements, **options), wgid=wgid), "dispatched")
    message = str(caught.value)
    assert words in message
    first, line, carets, *_ = message.split("\n")
    assert first.startswith("<kernel")
    assert line[carets.index("^") :].startswith(at)


WITHOUT_BODY = {
    "no threads": ("T.cta_id([1])", "doesn't say how many threads a block has"),
    "threads left open": ("T.cta_id([1]); t = T.thread_id()", "declare T.thread_id([n])"),
    "blocks left open": ("bx = T.cta_id(); T.thread_id([32])", "how many ctas are in a kernel?"),
}


@pytest.mark.parametrize(("ids", "words"), WITHOUT_BODY.values(), ids=WITHOUT_BODY.keys())
def test_ids_that_do_not_follow_are_named(ids: str, words: str) -> None:
    with pytest.raises(InvalidTileProgram) as caught:
        read(HEAD + ids)
    assert words in str(caught.value)
    assert "^" in str(caught.value)


TAKEN = {
    "a number to subtract from": F
    + "Tx.warp.copy(F, A[0:32, 0:8])\nTx.warp.sub(F, 2.0, F)\nTx.warp.copy(B[0:32, 0:8], F)",
    "a number to divide": F + "Tx.warp.copy(F, A[0:32, 0:8])\nTx.warp.fdiv(F, 2.0, F)\nTx.warp.copy(B[0:32, 0:8], F)",
    "elements that threads don't divide": (
        "s = T.alloc_shared((5, 7))\nTx.cta.copy(s, A[0:5, 0:7])\nT.cuda.cta_sync()\nTx.cta.copy(B[0:5, 0:7], s)"
    ),
    "registers from another lane on": F
    + "Tx.warp.copy(F[8:16, 0:8], A[0:8, 0:8])\nTx.warp.copy(B[0:8, 0:8], F[8:16, 0:8])",
    "ids without names": "T.warp_id_in_wg([2, 2])\nT.lane_id([4, 8])\nB[0, tid] = A[0, tid]",
    "a wider bias": (
        HALF + "Tx.cta.copy(b, A[0:8, 0:8])\nT.cuda.cta_sync()\nTx.cta.cast(s, b)\nTx.cta.sqrt(b, s, bias=b)\n"
        "Tx.cta.copy(B[0:8, 0:8], b)"
    ),
}


@pytest.mark.parametrize("statements", TAKEN.values(), ids=TAKEN.keys())
def test_what_the_peer_refuses_and_has_a_meaning_runs(statements: str) -> None:
    result = run_tile(read(body(statements, block=32 if "wg" not in statements else 64)), {"A_ptr": A})
    assert result.ok, (dict(result.mismatches), [str(f) for f in result.findings])


def test_layouts_outside_a_kernel_refuse_alike() -> None:
    with pytest.raises(InvalidLayout, match="conflicting scopes"):
        TileLayout(S[(2, 32) : (1 @ tx, 1 @ laneid)])
    with pytest.raises(InvalidLayout, match="don't connect"):
        TileLayout(S[(2, 32) : (1 @ wgid, 1 @ laneid)] + R[2:4])
