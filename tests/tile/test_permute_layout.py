"""permute_layout: a tile of shared memory into another layout, without bank conflicts, in place too."""

from __future__ import annotations

import numpy as np
import pytest

from tests.tile.helpers import body, read
from tests.tile.matrix_programs import relayout
from warpsmith.compiler.tile.programs import explain_tile, run_tile, tile_text
from warpsmith.errors import DispatchFailed, InvalidTileProgram

TILE = """
M = T.alloc_shared({size}, "{type}")
X = M.view({rows}, {columns}, layout={before}); Y = M.view({rows}, {columns}, layout={after})
Tx.warp.copy(X, A[0:{rows}, 0:{columns}]); T.cuda.warp_sync()
Tx.{scope}.permute_layout(Y, X)
Tx.warp.copy(B[0:{rows}, 0:{columns}], Y)"""


def program(
    before: str, after: str, rows: int = 32, columns: int = 32, type: str = "float32", scope: str = "warp"
) -> str:
    parameters = "; ".join(f'{name} = T.match_buffer({name}_ptr, (64, 128), "{type}")' for name in "AB")
    names = {"before": before, "after": after, "rows": rows, "columns": columns, "type": type, "scope": scope}
    return body(TILE.format(size=rows * columns * 5 // 4, **names), parameters=parameters)


ROWS, COLUMNS = "TileLayout(S[(32, 32)])", "TileLayout(S[(32, 32) : (1, 32)])"


@pytest.mark.parametrize(
    ("before", "after", "type", "partition"),
    [
        (ROWS, COLUMNS, "float32", "32 x 32 lanes x 1 element, xor"),
        (COLUMNS, ROWS, "int32", "32 x 32 lanes x 1 element, xor"),
        (ROWS, "TileLayout(S[(32, 32) : (33, 1)])", "float32", "32 x 32 lanes x 1 element, along dst"),
        (ROWS, "TileLayout(S[(32, 32) : (36, 1)])", "float32", "8 x 32 lanes x 4 elements, along dst"),
        (
            ROWS,
            "ComposeLayout(2, 3, 3, tile=TileLayout(S[(32, 32)]))",
            "float32",
            "8 x 32 lanes x 4 elements, along dst",
        ),
        ("TileLayout(S[(32, 4, 8) : (8, 256, 1)])", ROWS, "float16", "4 x 32 lanes x 8 elements, xor"),
    ],
)
def test_every_turn_is_free_of_bank_conflicts(before: str, after: str, type: str, partition: str) -> None:
    kernel = read(program(before, after, type=type))
    (chosen,) = [each for each in explain_tile(kernel) if each.primitive == "permute_layout"]
    assert (chosen.variant, chosen.partition) == ("warp_xor_swizzle", partition)
    result = run_tile(kernel)
    assert result.ok, (dict(result.mismatches), [str(each) for each in result.findings])
    assert result.counters is not None
    line = chosen.location.line
    moves = [each for each in result.counters.accesses if each.buffer == "M" and f":{line}" in str(each.site)]
    assert {each.kind for each in moves} == {"load", "store"}
    assert [each.conflicts for each in moves] == [0] * len(moves)


def test_a_transpose_in_place() -> None:
    a = np.arange(64 * 128, dtype=np.float32).reshape(64, 128)
    kernel = read(program(ROWS, COLUMNS))
    text = tile_text(kernel, "dispatched")
    assert "staged[f] = M[tid * 32 + (tid ^ f)]" in text
    assert "M[(tid ^ f) * 32 + tid] = staged[f]" in text
    assert text.count("T.cuda.warp_sync()") == 3  # the author's, between reads and writes, and after
    assert ".local" not in tile_text(kernel, "ptx")
    np.testing.assert_array_equal(run_tile(kernel, {"A_ptr": a}).outputs["B_ptr"][:32, :32], a[:32, :32])


def reason(source: str) -> str:
    with pytest.raises(DispatchFailed) as caught:
        explain_tile(read(source))
    return str(caught.value).splitlines()[3].removeprefix("  warp_xor_swizzle (20)  ")


def test_what_it_refuses() -> None:
    assert reason(program(ROWS, COLUMNS, scope="cta")) == "the scope is a warp: it is called at cta scope"
    wide = reason(program("TileLayout(S[(64, 128)])", "TileLayout(S[(64, 128) : (1, 64)])", 64, 128))
    assert wide == ("the tile takes 1024 bytes of a lane's registers, more than 512: call it for a part at a time")
    small = reason(program("TileLayout(S[(4, 6)])", "TileLayout(S[(4, 6) : (1, 4)])", 4, 6))
    assert small == "24 elements can't be shared out evenly among 32 lanes"
    outside = 's = T.alloc_shared((64, 64), "float32")\nTx.warp.permute_layout(s, A)'
    assert reason(body(outside)) == "both sides are in shared memory: src A is in global memory"
    part = "if tid < 8:\n    Tx.warp.permute_layout(Y, X)"
    narrowed = program(ROWS, COLUMNS).replace("Tx.warp.permute_layout(Y, X)", part.replace("\n", "\n    "))
    assert "[0, 8) of 32 threads are active in group 0" in reason(narrowed)


def test_both_sides_have_one_shape_and_type() -> None:
    with pytest.raises(InvalidTileProgram, match=r"permute_layout: dst region shape \[64, 64\] != src region shape"):
        read(body('s = T.alloc_shared((64, 64), "float32")\nTx.warp.permute_layout(s, A[0:32, 0:64])'))


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_layouts(first: int) -> None:
    for seed in range(first, first + 20):
        result = run_tile(read(relayout(seed)), seed=seed)
        assert result.ok, (seed, relayout(seed), dict(result.mismatches), [str(f) for f in result.findings])
