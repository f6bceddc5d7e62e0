"""What goes wrong in the peer, a test or more for each defect that `docs/tile-defects.md` lists.

Here the result is right (what the simulator computes is what the primitives mean, with every access watched), or the
refusal names the reason and the line.

The last test compares that page with this file.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tile.helpers import SEED, body, read
from warpsmith.backends.nvptx.cuda_files import HELP, find
from warpsmith.compiler.tile.programs import TileRun, explain_tile, run_tile, tile_text
from warpsmith.errors import DispatchFailed, InvalidTileProgram, WarpsmithError
from warpsmith.tile import S, TileLayout, laneid, wgid, wid_in_wg
from warpsmith.tile.layout import is_injective

A = (np.random.default_rng(5).random((64, 64)) * 3 + 0.5).astype(np.float32)
NVCC = find("bin/nvcc", "WARPSMITH_NVCC")
PAGE = Path(__file__).parents[2] / "docs" / "tile-defects.md"
SYNC = "T.cuda.cta_sync()"


def tile(name: str, shape: str, layout: str, dtype: str = "float32", scope: str = "local") -> str:
    return f'{name} = T.alloc_buffer({shape}, "{dtype}", scope="{scope}", layout={layout})\n'


ROWS = tile("F", "(32, 8)", "TileLayout(S[(32, 8) : (1 @ laneid, 1)])")
SHARED = 's = T.alloc_shared((32, 8), "float32")\n'


def right(text: str, arrays: dict[str, Any] | None = None, **options: Any) -> TileRun:
    """Run a kernel's statements; nothing found, and the same as its primitives mean."""
    result = run_tile(read(body(text, **options)), arrays or {"A_ptr": A})
    assert result.ok, (dict(result.mismatches), [str(f) for f in result.findings])
    return result


def variants(text: str, **options: Any) -> list[str]:
    return [choice.variant for choice in explain_tile(read(body(text, **options)))]


def refused(text: str, words: str, line: str, kind: type[WarpsmithError] = DispatchFailed, **options: Any) -> None:
    """The kernel is refused, for this reason, at this line of its text."""
    with pytest.raises(kind, match=words) as caught:
        tile_text(read(body(text, **options)), "dispatched")
    assert caught.value.span is not None
    assert line in caught.value.span.text
    assert "^" in str(caught.value)


def back(first: str, second: str, sync: str = SYNC) -> str:
    """A[0:32, 0:8] into `first`, and out of `second` into B."""
    return f"{first}\n{sync}\n{second}"


# ----------------------------------------------------------------------------------------------------------------- B1
COPY = "Tx.warp.copy(F, A[0:32, 0:8])"
FILL = "Tx.warp.copy(s, A[0:32, 0:8])"
PARTIAL = [
    ("if lane < 16:\n    {}", r"\[0, 16\) of 32 threads are active"),
    ("if lane < 16:\n    B[0, 0] = 1.0\nelse:\n    {}", r"\[16, 32\) of 32 threads are active"),
    ("if lane < 4 or lane > 30:\n    {}", r"\[0, 4\), \[31, 32\) of 32 threads"),
    ("if lane != 3:\n    {}", r"\[0, 3\), \[4, 32\) of 32 threads"),
    ("if tid % 2 == 0:\n    {}", r"\[0, 1\), \[2, 3\), \[4, 5\) and more"),
    ("if (tid & 1) == 0:\n    {}", r"\[0, 1\), \[2, 3\), \[4, 5\) and more"),
    ("if not lane < 8:\n    {}", r"\[8, 32\) of 32 threads"),
    ("if 4 <= tid < 16:\n    {}", r"\[4, 16\) of 32 threads"),
    ("if tid < 16:\n    if tid < 8:\n        {}", r"\[0, 8\) of 32 threads"),
    ("if tid < 16:\n    return\n{}", r"\[16, 32\) of 32 threads"),
    ("if tid < 16:\n    pass\nelse:\n    return\n{}", r"\[0, 16\) of 32 threads"),
    ("x = 1 if tid < 7 else 0\nif x == 1:\n    {}", r"\[0, 7\) of 32 threads"),
    ("if T.min(tid, 16) == 16:\n    {}", r"\[16, 32\) of 32 threads"),
    ("if T.filter(lane, lane < 16):\n    {}", r"\[0, 16\) of 32 threads"),
    ("if A[0, tid] > 0.0:\n    {}", "each thread reads its own element of 'A'"),
    ("if tid < 16 and A[0, tid] > 0.0:\n    {}", "each thread reads its own element of 'A'"),
    ("B[0, tid] = 1.0\nif B[0, 0] > 0.0:\n    {}", "it is read from 'B', which threads may see differently"),
    ("if T.cuda.elect_sync():\n    {}", "which lane elect_sync picks isn't said"),
    ("y = T.tvm_warp_shuffle_xor(0xFFFFFFFF, tid, 1)\nif y == 1:\n    {}", "it is exchanged between lanes"),
    ("i = 0 + tid\nwhile i < 40:\n    {}\n    i += 32", "'i' is assigned values that differ"),
    ("for i in range(tid):\n    {}", "threads make different numbers of turns|bounds differ"),
    ("x = 0\nfor i in range(4):\n    x += tid\nif x == 0:\n    {}", "'x' is assigned values that differ"),
    ("for i in range(4):\n    if tid == i:\n        break\n    {}", "only some threads leave"),
    ("for i in range(4):\n    if tid == i:\n        continue\n    {}", "only some threads leave"),
]


@pytest.mark.parametrize(("statements", "words"), PARTIAL, ids=[p[0][:34] for p in PARTIAL])
@pytest.mark.parametrize("call", [COPY, FILL], ids=["registers", "shared"])
def test_b1_a_call_by_part_of_a_warp_is_refused(statements: str, words: str, call: str) -> None:
    refused(ROWS + SHARED + "lane = T.lane_id()\n" + statements.format(call), words, call)


@pytest.mark.parametrize("call", ["Tx.warp.sqrt(F, F)", "Tx.warp.sqrt(s, s)", "Tx.warp.sum(s[0:32, 0:1], s, axes=1)"])
def test_b1_other_primitives_by_part_of_a_warp_are_refused(call: str) -> None:
    refused(ROWS + SHARED + f"if tid < 16:\n    pass\nelse:\n    {call}", r"\[16, 32\) of 32 threads", call)


@pytest.mark.parametrize(
    ("scope", "condition", "words"),
    [
        ("cta", "tid >= 32", r"\[32, 128\) of 128 threads"),
        ("cta", "warp == 1", r"\[32, 64\) of 128 threads"),
        ("wg", "warp != 1", r"\[0, 32\), \[64, 128\) of 128 threads"),
    ],
)
def test_b1_wider_scopes_need_all_their_threads(scope: str, condition: str, words: str) -> None:
    call = f"Tx.{scope}.copy(s, A[0:32, 0:8])"
    refused(SHARED + f"warp = T.warp_id()\nif {condition}:\n    {call}", words, call, block=128)


WHOLE = [
    f"if warp == 1:\n    {COPY}",
    f"if warp < 1 or warp == 3:\n    {COPY}",
    f"if tid >= 64:\n    {COPY}\nelse:\n    {COPY}",
    f"if bx == 0:\n    {COPY}",
    f"if A[0, 0] > 1.0:\n    {COPY}",
    f"x = 0\nfor i in range(4):\n    x += i\nif x == 6:\n    {COPY}",
    f"for i in range(4):\n    if i == 2:\n        break\n    {COPY}",
    f"i = 0\nwhile i < 3:\n    {COPY}\n    i += 1",
    f"if tid < 96 and bx >= 0:\n    {COPY}",
    f"if warp % 2 == 0:\n    {COPY}",
    f"if tid <= 31:\n    if lane >= 0:\n        {COPY}",
]


@pytest.mark.parametrize("statements", WHOLE)
def test_b1_whole_warps_and_uniform_conditions_are_taken(statements: str) -> None:
    ids = "warp = T.warp_id()\nlane = T.lane_id()\nTx.warp.zero(F)\n"
    right(ROWS + ids + statements + "\nif tid < 32:\n    Tx.warp.copy(B[0:32, 0:8], F)", block=128)


GROUPED = [
    "for i in range(warp, 8, 4):\n    Tx.warp.copy(F, A[0:32, i * 8 : i * 8 + 8])\n"
    "    Tx.warp.copy(B[0:32, i * 8 : i * 8 + 8], F)",
    "i = 0 + warp\nwhile i < 8:\n    j = i * 8\n    Tx.warp.copy(F, A[0:32, j : j + 8])\n"
    "    Tx.warp.copy(B[0:32, j : j + 8], F)\n    i += 4",
    "if A[warp, 0] > 1.0:\n    Tx.warp.copy(F, A[0:32, 0:8])\n    Tx.warp.copy(B[0:32, warp * 8 : warp * 8 + 8], F)",
]


@pytest.mark.parametrize("statements", GROUPED, ids=["for", "while", "if"])
def test_b1_each_warp_may_go_its_own_way(statements: str) -> None:
    right(ROWS + "warp = T.warp_id()\n" + statements, block=128)
    wider = statements.replace("Tx.warp.copy(F,", "Tx.cta.copy(s,")
    refused(ROWS + SHARED + "warp = T.warp_id()\n" + wider, "which threads get here can't be told", "Tx.cta", block=128)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("Tx.warp.copy(s, A[tid : tid + 32, 0:8])", r"src A\[tid : tid \+ 32, 0:8\] begins elsewhere in each thread"),
        ("Tx.cta.copy(s, A[warp : warp + 32, 0:8])", "begins elsewhere in each thread"),
        ("Tx.warp.fill(s, T.float32(tid))", "value differs between threads"),
    ],
)
def test_b1_what_each_thread_has_otherwise_is_refused(call: str, words: str) -> None:
    refused(SHARED + "warp = T.warp_id()\n" + call, words, call, InvalidTileProgram, block=64)


def test_b1_an_early_return_leaves_the_rest_to_the_others() -> None:
    result = right("if tid >= 24:\n    return\nif A[0, tid] > 2.0:\n    return\nB[0, tid] = A[0, tid] * 2.0")
    stays = (A[0, :24] <= 2).nonzero()[0]
    np.testing.assert_array_equal(result.outputs["B_ptr"][0, stays], A[0, stays] * 2)


# ----------------------------------------------------------------------------------------------------------------- B2
@pytest.mark.parametrize("block", [1, 16, 32, 48, 64, 96, 100, 128, 256])
def test_b2_every_thread_count_moves_every_element_once(block: int) -> None:
    text = tile("s", "(16, 24)", "TileLayout(S[(16, 24) : (28, 1)])", scope="shared")
    text += "Tx.cta.copy(s, A[0:16, 0:24])\nT.cuda.cta_sync()\nTx.cta.sqrt(s, s)\nTx.cta.copy(B[0:16, 0:24], s)"
    right(text, block=block)
    assert variants(text, block=block) == ["gmem_smem", "smem", "gmem_smem"]


def launched(text: str, *block: int) -> str:
    dims = ", ".join(map(str, block))
    return body(text).replace("T.thread_id([32])", f"T.thread_id([{dims}])")


@pytest.mark.parametrize("block", [(16, 8), (32, 4), (10, 10), (8, 4, 2), (1, 48)])
@pytest.mark.parametrize("dispatch", ["gmem_smem", "fallback"])
def test_b2_blocks_of_two_and_three_dims(block: tuple[int, ...], dispatch: str) -> None:
    text = tile("s", "(16, 24)", "TileLayout(S[(16, 24) : (25, 1)])", scope="shared")
    text += f'Tx.cta.copy(s, A[0:16, 0:24], dispatch="{dispatch}")\nT.cuda.cta_sync()\nTx.cta.copy(B[0:16, 0:24], s)'
    result = run_tile(read(launched(text, *block)), {"A_ptr": A})
    assert result.ok, [str(f) for f in result.findings]
    np.testing.assert_array_equal(result.outputs["B_ptr"][:16, :24], A[:16, :24])


@pytest.mark.parametrize(("block", "warp"), [((16, 4), 1), ((8, 4, 2), 0)])
def test_b2_lanes_of_a_block_of_two_dims_count_along_x_first(block: tuple[int, ...], warp: int) -> None:
    text = ROWS + f"if T.warp_id() == {warp}:\n    {COPY}\n    Tx.warp.copy(B[0:32, 0:8], F)"
    assert run_tile(read(launched(text, *block)), {"A_ptr": A}).ok


@pytest.mark.parametrize("block", [1, 16, 48, 100])
@pytest.mark.parametrize("call", [FILL, COPY, "Tx.warp.sqrt(s, s)"])
def test_b2_a_call_of_a_warp_needs_whole_warps(block: int, call: str) -> None:
    refused(ROWS + SHARED + call, f"a block of {block} threads isn't a whole number of groups of 32", call, block=block)


# ----------------------------------------------------------------------------------------------------------------- B3
SPANS = [
    ("TileLayout(S[(32, 64) : (68, 1)])", 31 * 68 + 64),
    ("TileLayout(S[(32, 64) : (65, 1)])", 31 * 65 + 64),
    ("TileLayout(S[(32, 64) : (64, 1)] + 7)", 2048 + 7),
    ("TileLayout(S[(32, 8, 8) : (256, 16, 1)])", 31 * 256 + 7 * 16 + 8),
    ("TileLayout(S[(32, 64) : (1, 33)])", 63 * 33 + 32),
    ("TileLayout(S[(32, 64) : (-64, 1)] + 1984)", 2048),
    ("TileLayout(S[(32, 64) : (64, 1)] + R[2 : 2100])", 2048 + 2100),
    ("ComposeLayout(2, 3, 3, tile=TileLayout(S[(32, 64) : (68, 1)]))", 2304),  # whole periods of 256
]


@pytest.mark.parametrize(("layout", "elements"), SPANS)
def test_b3_shared_memory_reaches_as_far_as_the_layout(layout: str, elements: int) -> None:
    text = tile("s", "(32, 64)", layout, scope="shared")
    text += "Tx.cta.copy(s, A[0:32, 0:64])\nT.cuda.cta_sync()\nTx.cta.copy(B[0:32, 0:64], s)"
    np.testing.assert_array_equal(right(text, block=128).outputs["B_ptr"][:32], A[:32])
    assert f"s[{elements}];" in tile_text(read(body(text, block=128)), "cuda")


@pytest.mark.parametrize(
    ("layout", "registers"),
    [
        ("S[(32, 8) : (1 @ laneid, 3)]", 22),
        ("S[(32, 8) : (1 @ laneid, 1)] + 5", 13),
        ("S[(32, 2, 4) : (1 @ laneid, 8, 1)]", 12),
        ("S[(32, 8) : (1 @ laneid, -1)] + 7", 8),
        ("S[(32, 8) : (1 @ laneid, 1)] + R[2 : 10]", 18),
    ],
)
def test_b3_registers_reach_as_far_as_the_layout(layout: str, registers: int) -> None:
    text = tile("F", "(32, 8)", f"TileLayout({layout})") + f"{COPY}\nTx.warp.copy(B[0:32, 0:8], F)"
    np.testing.assert_array_equal(right(text).outputs["B_ptr"][:32, :8], A[:32, :8])
    assert f"F[{registers}];" in tile_text(read(body(text)), "cuda")


@pytest.mark.parametrize(
    "layout",
    [
        "TileLayout(S[(64, 64) : (68, 1)])",
        "TileLayout(S[(64, 64) : (1, 65)])",
        "TileLayout(S[(64, 64) : (64, 1)] + 3)",
        "TileLayout(S[(8, 8, 64) : (1024, 65, 1)])",
        "ComposeLayout(2, 3, 3, tile=TileLayout(S[(64, 64) : (72, 1)]))",
    ],
)
def test_b3_parameters_reach_as_far_as_the_layout(layout: str) -> None:
    head = "; ".join(f'{x} = T.match_buffer({x}_ptr, (64, 64), "float32", layout={layout})' for x in "AB")
    text = "s = T.alloc_shared((64, 64))\nTx.cta.copy(s, A)\nT.cuda.cta_sync()\nTx.cta.copy(B, s)"
    np.testing.assert_array_equal(right(text, parameters=head, block=128).outputs["B_ptr"], A)


def test_b3_a_layout_that_begins_before_its_buffer_is_refused() -> None:
    text = tile("s", "(32, 8)", "TileLayout(S[(32, 8) : (-8, 1)])", scope="shared")
    refused(text, "places an element at -248, before its buffer begins", "alloc_buffer", InvalidTileProgram)


@pytest.mark.parametrize(
    "view",
    [
        "s.view(32, 8, layout=TileLayout(S[(32, 8) : (9, 1)]))",
        "s.view(4, 8, layout=TileLayout(S[(4, 8) : (8, 1)] + 225))",
        "F.local(16, layout=TileLayout(S[16 : 1]))",
        "A.view(64, 64, layout=TileLayout(S[(64, 64) : (65, 1)]))",
        "s.view(20, 8, layout=ComposeLayout(2, 3, 3, tile=TileLayout(S[(20, 8) : (14, 1)])))",
    ],
)
def test_b3_a_view_that_reaches_out_of_its_memory_is_refused(view: str) -> None:
    refused(SHARED + ROWS + f"v = {view}", "a view of layout .* reaches over", view, InvalidTileProgram)


@pytest.mark.parametrize("scope", ["local", "shared"])
def test_b3_elements_that_share_a_place_are_refused(scope: str) -> None:
    text = tile("s", "(32, 8)", "TileLayout(S[(32, 8) : (0, 1)])", scope=scope)
    call = "Tx.copy(s, A[0:32, 0:8])"
    refused(text + call, r"dst s\[0:32, 0:8\] has several elements at one place", call)


# ----------------------------------------------------------------------------------------------------------------- B4
SOURCES = [
    "TileLayout(S[(32, 64) : (1, 32)])",
    "TileLayout(S[(32, 64) : (128, 2)])",
    "TileLayout(S[(32, 8, 8) : (8, 256, 1)])",
    "TileLayout(S[(32, 64) : (65, 1)])",
    "ComposeLayout(2, 3, 3, tile=TileLayout(S[(32, 64)]))",
    "ComposeLayout(1, 2, 3, tile=TileLayout(S[(32, 64) : (72, 1)]))",
]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32", "float64"])
def test_b4_casts_read_the_next_element_not_the_next_address(source: str, dtype: str) -> None:
    text = tile("s", "(32, 64)", source, scope="shared")
    text += tile("d", "(32, 64)", "TileLayout(S[(32, 64) : (72, 1)])", dtype, "shared")
    text += "Tx.cta.copy(s, A[0:32, 0:64])\nT.cuda.cta_sync()\nTx.cta.cast(d, s)\n"
    text += "Tx.cta.zero(s)\nTx.cta.cast(s, d)\nTx.cta.copy(B[0:32, 0:64], s)"
    found = right(text, block=128).outputs["B_ptr"][:32]
    expected = A[:32].astype(np.int32) if dtype == "int32" else A[:32]
    np.testing.assert_allclose(found, expected, rtol=0.01)


# ----------------------------------------------------------------------------------------------------------- B5 and B6
MAPS = [
    ("(16, 8)", "S[(16, 8) : (1 @ laneid, 1)]", "[0:16, 0:8]"),  # half of the lanes
    ("(16, 8)", "S[(16, 8) : (2 @ laneid, 1)]", "[0:16, 0:8]"),  # every other lane
    ("(16, 8)", "S[(16, 8) : (1 @ laneid, 1)] + R[2 : 16 @ laneid]", "[0:16, 0:8]"),  # two copies
    ("(16, 8)", "S[(16, 8) : (2 @ laneid, 1)] + R[2 : 1 @ laneid]", "[0:16, 0:8]"),  # copies on neighbours
    ("(16, 8)", "S[(16, 8) : (1 @ laneid, 1)] + 16 @ laneid", "[0:16, 0:8]"),  # the upper half
    ("(8, 8)", "S[(8, 8) : (4 @ laneid, 1)] + R[4 : 1 @ laneid]", "[0:8, 0:8]"),
    ("(8, 8)", "S[(8, 8) : (1 @ laneid, 1)] + R[2 : 8 @ laneid]", "[0:8, 0:8]"),  # copies on half of the lanes
    ("(8, 8)", "S[(8, 8) : (2 @ laneid, 1)] + 3 @ laneid", "[0:8, 0:8]"),
    ("(16, 8)", "S[(2, 8, 4, 2) : (2, 4 @ laneid, 1 @ laneid, 1)]", "[16:32, 8:16]"),  # an MMA fragment
    ("(32, 8)", "S[(32, 2, 4) : (1 @ laneid, 1, 2)]", "[0:32, 0:8]"),  # registers in another order
    ("(32, 8)", "S[(32, 8) : (1 @ laneid, 2)]", "[0:32, 0:8]"),  # gaps between registers
    ("(8, 32)", "S[(8, 32) : (1, 1 @ laneid)]", "[0:8, 0:32]"),
]
SINGLE = [
    ("(32,)", "S[32 : 1 @ laneid]", "[3, 0:32]"),
    ("(32,)", "S[32 : 1 @ laneid]", "[0:32, 5]"),
    ("(32, 1)", "S[(32, 1) : (1 @ laneid, 1)]", "[0:32, 5:6]"),
    ("(1, 32)", "S[(1, 32) : (1, 1 @ laneid)]", "[4:5, 0:32]"),
    ("(4, 8)", "S[(4, 8) : (8 @ laneid, 1 @ laneid)]", "[0:4, 0:8]"),
    ("(4, 8)", "S[(4, 8) : (1 @ laneid, 4 @ laneid)]", "[0:4, 0:8]"),
    ("(16,)", "S[16 : 2 @ laneid]", "[0, 0:16]"),
]


def both_ways(shape: str, layout: str, region: str, memory: str) -> str:
    text = tile("F", shape, f"TileLayout({layout})")
    if memory == "global":
        return text + f"Tx.warp.copy(F, A{region})\nTx.warp.copy(B{region}, F)"
    text += 's = T.alloc_shared((64, 64), "float32")\nTx.warp.copy(s, A)\nT.cuda.cta_sync()\n'
    return text + (
        f"Tx.warp.copy(F, s{region})\nT.cuda.cta_sync()\nTx.warp.zero(s)\nTx.warp.copy(s{region}, F)\n"
        "T.cuda.cta_sync()\nTx.warp.copy(B, s)"
    )


def moved(shape: str, layout: str, region: str, memory: str) -> None:
    where = eval(f"np.s_{region}")
    found = right(both_ways(shape, layout, region, memory)).outputs["B_ptr"]
    np.testing.assert_array_equal(found[where], A[where])


@pytest.mark.parametrize("memory", ["global", "shared"])
@pytest.mark.parametrize(("shape", "layout", "region"), MAPS, ids=[m[1] for m in MAPS])
def test_b5_partial_gapped_and_copied_lane_maps(shape: str, layout: str, region: str, memory: str) -> None:
    moved(shape, layout, region, memory)


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ("S[(32, 8) : (2 @ laneid, 1)]", "F reaches thread 62, but the scope has 32 threads"),
        ("S[(16, 8) : (1 @ laneid, 1)] + R[2 : 1 @ laneid]", "F puts two parts on one thread"),
        ("S[(16, 8) : (1 @ laneid, 1)] + 20 @ laneid", "F reaches thread 35, but the scope has 32 threads"),
        ("S[(32, 8) : (-1 @ laneid, 1)] + 31 @ laneid", "F counts threads downwards"),
    ],
)
def test_b5_lane_maps_that_leave_the_warp_are_refused(layout: str, words: str) -> None:
    rows = layout[3:5]
    call = f"Tx.warp.copy(F, A[0:{rows}, 0:8])"
    refused(tile("F", f"({rows}, 8)", f"TileLayout({layout})") + call, words, call)


def test_b5_each_copy_is_filled_and_elementwise_results_reach_it() -> None:
    copied = tile("F", "(16, 8)", "TileLayout(S[(16, 8) : (1 @ laneid, 1)] + R[2 : 16 @ laneid])")
    text = copied + "Tx.warp.copy(F, A[0:16, 0:8])\nTx.warp.mul(F, F, 2.0)\nr = F.local()\n"
    found = right(text + "for i in range(8):\n    B[tid, i] = r[i]").outputs["B_ptr"]
    np.testing.assert_array_equal(found[:32, :8], np.tile(A[:16, :8] * 2, (2, 1)))
    within = tile("F", "(32, 8)", "TileLayout(S[(32, 8) : (1 @ laneid, 1)] + R[2 : 8])")
    text = within + f"{COPY}\nr = F.local()\nfor i in range(16):\n    B[tid, i] = r[i]"
    np.testing.assert_array_equal(right(text).outputs["B_ptr"][:32, :16], np.tile(A[:32, :8], (1, 2)))
    call = "Tx.warp.sqrt(F, G)"
    alone = tile("G", "(16, 8)", "TileLayout(S[(16, 8) : (1 @ laneid, 1)])")
    refused(copied + alone + call, "src G isn't copied to the threads that hold copies of dst F", call)


@pytest.mark.parametrize("memory", ["global", "shared"])
@pytest.mark.parametrize(("shape", "layout", "region"), SINGLE, ids=[m[1] + m[2] for m in SINGLE])
def test_b6_one_register_a_thread(shape: str, layout: str, region: str, memory: str) -> None:
    moved(shape, layout, region, memory)


@pytest.mark.parametrize(
    ("scope", "axis", "block"), [("warp", "laneid", 32), ("wg", "tid_in_wg", 128), ("cta", "tx", 64)]
)
def test_b6_one_register_a_thread_is_computed_on(scope: str, axis: str, block: int) -> None:
    text = tile("F", f"({block},)", f"TileLayout(S[{block} : 1 @ {axis}])")
    part = f"view(4096)[64 : {64 + block}]"
    text += f"Tx.{scope}.copy(F, A.{part})\nTx.{scope}.sqrt(F, F)\nTx.{scope}.copy(B.{part}, F)"
    found = right(text, block=block).outputs["B_ptr"].reshape(-1)[64 : 64 + block]
    np.testing.assert_array_equal(found, np.sqrt(A.reshape(-1)[64 : 64 + block]))


# ----------------------------------------------------------------------------------------------------------------- B7
@pytest.mark.parametrize("dtype", ["int8", "uint8", "float16", "bfloat16", "int16", "float32", "int32", "float64"])
def test_b7_matrix_moves_are_for_16_bits_alone(dtype: str) -> None:
    """The layouts are those of ldmatrix and stmatrix."""
    fragment = "TileLayout(S[(2, 8, 2, 4, 2) : (4, 4 @ laneid, 2, 1 @ laneid, 1)])"
    text = f's = T.alloc_shared((16, 16), "{dtype}")\n' + tile("F", "(16, 16)", fragment, dtype)
    text += tile("G", "(16, 16)", fragment) + "Tx.warp.copy(G, A[0:16, 0:16])\nTx.warp.cast(F, G)\n"
    text += "Tx.warp.copy(s, F)\nT.cuda.warp_sync()\nTx.warp.zero(F)\nTx.warp.copy(F, s)\nTx.warp.cast(G, F)\n"
    text += "Tx.warp.copy(B[0:16, 0:16], G)"
    found = right(text).outputs["B_ptr"][:16, :16]
    expected = A[:16, :16].astype(np.int32) if "int" in dtype else A[:16, :16]
    np.testing.assert_allclose(found, expected, rtol=0.01)
    chosen = variants(text)
    assert dtype in ("float16", "bfloat16", "int16") or "ldstmatrix" not in chosen


# ---------------------------------------------------------------------------------------------------------- B8 and B16
def accepted(text: str, tmp_path: Path) -> None:
    """nvcc compiles it, without a warning."""
    if NVCC is None:
        pytest.skip(f"nvcc isn't installed: {HELP}")
    source = tmp_path / "kernel.cu"
    source.write_text(text)
    command = [str(NVCC), "-ptx", "-arch=sm_90", "-std=c++17", "--Werror", "all-warnings", str(source)]
    done = subprocess.run([*command, "-o", str(tmp_path / "kernel.ptx")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


SWIZZLED = tile("h", "(64, 64)", "ComposeLayout(3, 3, 3, tile=TileLayout(S[(64, 64)]))", "float16", "shared")
SWIZZLED += tile("t", "(64, 64)", "TileLayout(S[(64, 64) : (1, 65)])", "float32", "shared")
SWIZZLED += "Tx.cta.copy(t, A)\nT.cuda.cta_sync()\nTx.cta.cast(h, t)\nTx.cta.exp(h, h)\nTx.cta.add(h, h, h)\n"
SWIZZLED += "Tx.cta.cast(t, h)\nTx.cta.copy(B, t)"


def test_b8_elementwise_on_a_swizzled_half_tile() -> None:
    right(SWIZZLED, block=128)


def test_b8_nvcc_takes_it(tmp_path: Path) -> None:
    accepted(tile_text(read(body(SWIZZLED, block=128)), "cuda"), tmp_path)


SUMS = "s = T.alloc_shared((32, 64)); m = T.alloc_shared((32, 1))\nTx.cta.copy(s, A[0:32, 0:64])\nT.cuda.cta_sync()\n"
PERMUTED = 's = T.alloc_shared((32, 32), "float32"); ' + tile(
    "d", "(32, 32)", "TileLayout(S[(32, 32) : (1, 32)])", scope="shared"
)
PERMUTED += "Tx.warp.copy(s, A[0:32, 0:32])\nT.cuda.warp_sync()\nTx.warp.permute_layout(d, s)\nT.cuda.warp_sync()\n"
PERMUTED += "Tx.warp.copy(B[0:32, 0:32], d)"


def reduced(scope: str, threads: int) -> str:
    call = f"if tid < {threads}:\n    Tx.{scope}.sum(m, s, axes=1)\n"
    return SUMS + call + "T.cuda.cta_sync()\nTx.cta.copy(B[0:32, 0:1], m)"


@pytest.mark.parametrize(("scope", "threads"), [("thread", 1), ("warp", 32), ("wg", 128), ("cta", 128)])
def test_b16_shared_reductions_at_every_scope(scope: str, threads: int) -> None:
    text = reduced(scope, threads)
    found = right(text, block=128).outputs["B_ptr"][:32, 0]
    np.testing.assert_allclose(found, A[:32].sum(1), rtol=1e-5)
    assert ".visible .entry k" in tile_text(read(body(text, block=128)), "ptx")


def test_b16_a_layout_is_permuted() -> None:
    np.testing.assert_array_equal(right(PERMUTED).outputs["B_ptr"][:32, :32], A[:32, :32])
    assert ".visible .entry k" in tile_text(read(body(PERMUTED)), "ptx")


def test_b16_nvcc_takes_both(tmp_path: Path) -> None:
    accepted(tile_text(read(body(reduced("cta", 128), block=128)), "cuda"), tmp_path)
    accepted(tile_text(read(body(PERMUTED)), "cuda"), tmp_path)


# ---------------------------------------------------------------------------------------------------------- B9 and B17
def test_b9_offsets_that_fuse_to_one_axis_add_up() -> None:
    layout = TileLayout(S[(8, 4) : (1 @ laneid, 1)] + 2 @ wid_in_wg + 5 @ laneid)
    assert str(layout.canonical()) == "S[(8, 4):(1@tid_in_wg, 1)] + 69@tid_in_wg"
    text = tile("F", "(8, 4)", "TileLayout(S[(8, 4) : (1 @ laneid, 1)] + 2 @ wid_in_wg + 5 @ laneid)")
    text += "Tx.wg.copy(F, A[0:8, 0:4])\nr = F.local()\nif tid >= 69 and tid < 77:\n"
    found = right(text + "    for i in range(4):\n        B[tid - 69, i] = r[i]", block=128).outputs["B_ptr"]
    np.testing.assert_array_equal(found[:8, :4], A[:8, :4])


def test_b17_warpgroups_fuse_to_warps() -> None:
    layout = TileLayout(S[(2, 4) : (1 @ wgid, 1 @ wid_in_wg)])
    assert str(layout.canonical()) == "S[8:1@warpid]"
    assert is_injective(layout)
    threads = TileLayout(S[(2, 4, 32) : (1 @ wgid, 1 @ wid_in_wg, 1 @ laneid)])
    assert str(threads.canonical()) == "S[256:1@tx]"


# ---------------------------------------------------------------------------------------------------------------- B10
@pytest.mark.parametrize("accum", [True, False])
@pytest.mark.parametrize(
    ("dst", "src", "columns"), [("m", "F[0:32, 0:4]", slice(0, 4)), ("m[0:1, 1:3]", "F[0:32, 2:4]", slice(2, 4))]
)
@pytest.mark.parametrize("primitive", ["sum", "max"])
def test_b10_lane_sums_obey_accum_and_regions(primitive: str, accum: bool, dst: str, src: str, columns: slice) -> None:
    text = ROWS + tile("m", "(1, 4)", "TileLayout(S[(1, 4) : (1, 1)] + R[32 : 1 @ laneid])")
    text += f"{COPY}\nTx.warp.fill(m, 100.0)\nTx.warp.{primitive}({dst}, {src}, axes=0, accum={accum})\n"
    found = right(text + "Tx.warp.copy(B[0:1, 0:4], m)").outputs["B_ptr"][0, :4]
    own = A[:32, columns].sum(0) if primitive == "sum" else A[:32, columns].max(0)
    old = {("sum", True): own + 100, ("max", True): np.full(own.shape, 100)}.get((primitive, accum), own)
    expected = np.full(4, 100, np.float32)
    expected[1:3] = old if len(old) == 2 else expected[1:3]
    np.testing.assert_allclose(found, old if len(old) == 4 else expected, rtol=1e-5)


# ---------------------------------------------------------------------------------------------------------------- B11
OUTSIDE = [
    ("Tx.warp.copy(s[16:48, 0:8], A[0:32, 0:8])", r"region \[16, 48\) lies outside dim 0 of 's'"),
    ("Tx.warp.copy(s, A[60:92, 0:8])", r"region \[60, 92\) lies outside dim 0 of 'A'"),
    ("Tx.warp.copy(s, A[-1:31, 0:8])", r"region \[-1, 31\) lies outside dim 0 of 'A'"),
    ("Tx.warp.copy(s, A[0:32, 57:65])", r"region \[57, 65\) lies outside dim 1 of 'A'"),
    ("Tx.warp.sqrt(s[0:33, 0:8], s[0:33, 0:8])", r"region \[0, 33\) lies outside dim 0 of 's'"),
    ("s[32, 0] = 1.0", r"lies outside dim 0 of 's'"),
    ("B[0, 0] = s[0, -1]", r"index -1 lies outside dim 1 of 's'"),
    ("B[0, 0] = s[tid + 32, 0]", r"index 32 to 63 lies outside dim 0 of 's'"),
]


@pytest.mark.parametrize(("statement", "words"), OUTSIDE)
def test_b11_regions_outside_their_buffer_are_refused(statement: str, words: str) -> None:
    refused(SHARED + statement, words, statement, InvalidTileProgram)


def test_b11_a_branch_that_no_thread_takes_reaches_nowhere() -> None:
    right("if tid >= 32:\n    B[0, tid - 32] = 1.0\nelse:\n    B[1, tid] = A[1, tid]")


REACHING = [
    ("for i in range(3):\n    Tx.warp.copy(s, A[i * 32 : i * 32 + 32, 0:8])", "reaches 95 in dim 0, which has 64"),
    ("Tx.copy(F, A[tid + 40, 0:8])", "reaches 71 in dim 0, which has 64"),
    ("s[tid + 1, 0] = 1.0", "index 32 of dim 0 of s, which has 32"),
    ("for i in range(9):\n    s[tid, i] = 1.0", "index 8 of dim 1 of s, which has 8"),
    ("B[0, tid * 3] = 1.0", "index 93 of dim 1 of B, which has 64"),
]


@pytest.mark.parametrize(("statements", "words"), REACHING)
def test_b11_what_leaves_its_dim_when_the_kernel_runs_is_found(statements: str, words: str) -> None:
    """Also where the place is still inside the memory."""
    result = run_tile(read(body("F = T.alloc_local((8,))\n" + SHARED + statements)), {"A_ptr": A})
    assert any(f.code == "out-of-bounds" and words in f.message for f in result.findings), result.findings


@pytest.mark.parametrize(("rows", "fits"), [(32, True), (31, False), (16, False)])
def test_b11_symbolic_extents_are_checked_when_the_kernel_runs(rows: int, fits: bool) -> None:
    head = 'n = T.int32(); A = T.match_buffer(A_ptr, (n, 16), "float32"); B = T.match_buffer(B_ptr, (n, 16), "float32")'
    text = "r = T.alloc_local((4,))\nTx.copy(r, A[tid, 0:4])\nTx.copy(B[tid, 0:4], r)"
    result = run_tile(read(body(text, parameters=head)), [A[:rows, :16].copy()])
    assert result.ok is fits
    assert fits or any(f"reaches 31 in dim 0, which has {rows} elements" in f.message for f in result.findings)


# ---------------------------------------------------------------------------------------------------------------- B12
@pytest.mark.parametrize("name", ["add", "sub", "mul", "fma"])
def test_b12_sm_100_rounds_like_the_others(name: str) -> None:
    """To nearest, subnormals kept, whatever the target."""
    tiny = A * np.float32(1e-39)
    operands = "F, 0.3" if name != "fma" else "F, 0.3, F"
    text = ROWS + f"{COPY}\nTx.warp.{name}(F, {operands})\nTx.warp.copy(B[0:32, 0:8], F)"
    kernel = read(body(text))
    for array in (A, tiny):
        found = [run_tile(kernel, {"A_ptr": array}, target=target) for target in ("sm_90", "sm_100")]
        assert all(each.ok for each in found)
        np.testing.assert_array_equal(*(each.outputs["B_ptr"][:32, :8] for each in found))
    ptx = tile_text(kernel, "ptx", "sm_100")
    assert ".ftz" not in ptx
    assert ".rz" not in ptx


@pytest.mark.parametrize(("option", "words"), [('rounding_mode="rz"', "rounds to nearest"), ("ftz=True", "subnormals")])
def test_b12_another_rounding_is_refused(option: str, words: str) -> None:
    refused(ROWS + f"{COPY}\nTx.warp.add(F, F, 1.0, {option})", words, option)


@pytest.mark.parametrize("option", ['rounding_mode="xx"', "ftz=3", 'rounding="rn"'])
def test_b12_an_unknown_rounding_is_refused(option: str) -> None:
    refused(ROWS + f"Tx.warp.add(F, F, 1.0, {option})", option.partition("=")[0], option, InvalidTileProgram)


# ---------------------------------------------------------------------------------------------------------------- B13
@pytest.mark.parametrize("dtype", ["int32", "int8", "uint16"])
@pytest.mark.parametrize("name", ["sqrt", "exp", "exp2", "log2", "reciprocal", "silu", "tanh", "fdiv"])
def test_b13_elementary_functions_refuse_integers(name: str, dtype: str) -> None:
    call = f"Tx.warp.{name}(s, s{', s' if name == 'fdiv' else ''})"
    words = f"Tx.{name} computes in float types, not in {dtype}"
    refused(f's = T.alloc_shared((8, 8), "{dtype}")\n' + call, words, call, InvalidTileProgram)


def test_b13_an_integer_source_is_converted_for_a_float_destination() -> None:
    text = 'i = T.alloc_shared((32, 8), "int32")\n' + SHARED + "Tx.cta.copy(s, A[0:32, 0:8])\nT.cuda.cta_sync()\n"
    text += "Tx.cta.cast(i, s)\nTx.cta.sqrt(s, i)\nTx.cta.copy(B[0:32, 0:8], s)"
    found = right(text, block=64).outputs["B_ptr"][:32, :8]
    np.testing.assert_allclose(found, np.sqrt(A[:32, :8].astype(np.int32)), rtol=1e-6)


# ---------------------------------------------------------------------------------------------------------------- B14
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("memory", ["shared", "local"])
def test_b14_rows_of_infinities_and_nan(name: str, dtype: str, memory: str) -> None:
    x = A.copy()
    x[0], x[1], x[2, 3], x[3], x[4, 5], x[5, 7] = -np.inf, np.inf, np.nan, np.nan, -np.inf, np.inf
    if memory == "shared":
        text = f's = T.alloc_shared((32, 64)); h = T.alloc_shared((32, 64), "{dtype}")\n'
        text += f'm = T.alloc_shared((32, 1), "{dtype}"); q = T.alloc_shared((32, 1))\n'
    else:
        rows = "TileLayout(S[(32, {}) : (1 @ laneid, 1)])"
        text = tile("s", "(32, 64)", rows.format(64)) + tile("h", "(32, 64)", rows.format(64), dtype)
        text += tile("m", "(32, 1)", rows.format(1), dtype) + tile("q", "(32, 1)", rows.format(1))
    text += f"Tx.warp.copy(s, A[0:32, 0:64])\nT.cuda.warp_sync()\nTx.warp.cast(h, s)\nTx.warp.{name}(m, h, axes=1)\n"
    found = right(text + "Tx.warp.cast(q, m)\nTx.warp.copy(B[0:32, 0:1], q)", {"A_ptr": x}).outputs["B_ptr"][:6, 0]
    expected = getattr(np, name)(x[:6], axis=1)
    np.testing.assert_allclose(found, expected, rtol=0.01)
    assert not np.isfinite(found[:4]).any()


# ---------------------------------------------------------------------------------------------------------------- B15
@pytest.mark.parametrize("dtype", ["float4_e2m1fn", "int4", "uint4"])
def test_b15_elements_of_four_bits_are_refused(dtype: str) -> None:
    refused(f's = T.alloc_shared((8, 8), "{dtype}")', "take 4 bits", "alloc_shared", InvalidTileProgram)


# ---------------------------------------------------------------------------------------------------------------- B18
def without_barrier(number: int) -> str:
    parts = SEED.split(SYNC)
    return SYNC.join(parts[: number + 1]) + "pass" + SYNC.join(parts[number + 1 :])


@pytest.mark.parametrize(("number", "load", "store"), [(0, 12, 10), (1, 15, 14)])
def test_b18_a_missing_barrier_is_a_race_between_two_lines(number: int, load: int, store: int) -> None:
    result = run_tile(read(without_barrier(number)))
    races = [f for f in result.findings if f.code == "race"]
    assert races
    assert {f.site.file_line for f in races if f.site is not None} == {load}
    assert {f.other.site.file_line for f in races if f.other is not None} == {store}


def test_b18_in_a_warp_lanes_race_too() -> None:
    """A warp's lanes exchange through memory only across a barrier, though they step together on some hardware."""
    text = "s = T.alloc_shared((32,))\ns[tid] = A[0, tid]\n{}B[0, tid] = s[31 - tid]"
    result = run_tile(read(body(text.format(""))), {"A_ptr": A})
    assert {f.code for f in result.findings} == {"race"}
    right(text.format("T.cuda.warp_sync()\n"))


# ----------------------------------------------------------------------------------------------------------- the page
def test_the_page_lists_every_defect_and_test() -> None:
    own = [name for name in vars(sys.modules[__name__]) if re.match(r"test_b\d", name)]
    rows = re.findall(r"^\| (B\d+) \|.*\| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [defect for defect, _ in rows] == [f"B{n}" for n in range(1, 19)]
    for defect, tests in rows:
        named = re.findall(r"`(\w+)`", tests)
        assert named == [name for name in own if name.startswith(f"test_{defect.lower()}_")], defect
