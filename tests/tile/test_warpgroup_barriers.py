"""`T.cuda.warpgroup_sync`: each warpgroup waits at a barrier of its own, and one that they share is found."""

from __future__ import annotations

import re

import pytest

from tests.tile.helpers import body, read
from warpsmith.compiler.tile.programs import run_tile, tile_text
from warpsmith.errors import InvalidTileProgram

EXCHANGE = """
wg = T.warpgroup_id([2])
s = T.alloc_shared((2, 32, 64), "float32", layout=TileLayout(S[(2, 32, 64) : (32 * 65, 65, 1)]))
Tx.wg.copy(s[wg], A[wg * 32 : wg * 32 + 32, 0:64])
{wait}
for i in range(16):
    B[wg * 32 + tid % 32, tid % 128 // 32 * 16 + i] = s[wg, tid % 32, tid % 128 // 32 * 16 + i] * 2.0
"""


def findings(wait: str) -> list[str]:
    result = run_tile(read(body(EXCHANGE.format(wait=wait), block=256)))
    assert not result.mismatches
    return [each.code for each in result.findings]


def test_each_warpgroup_waits_at_its_own_barrier() -> None:
    assert findings("T.cuda.warpgroup_sync(wg + 1)") == []
    assert findings("T.cuda.warpgroup_sync(15 - wg)") == []


def test_the_number_is_in_every_text() -> None:
    kernel = read(body(EXCHANGE.format(wait="T.cuda.warpgroup_sync(wg + 1)"), block=256))
    text = tile_text(kernel, "tirx")
    assert "    T.cuda.warpgroup_sync(wg + 1)" in text.splitlines()
    assert tile_text(read(text), "tirx") == text
    assert "named_barrier(wg + 1, 128);" in tile_text(kernel, "cuda")
    assert re.search(r"bar\.sync\s+%r\d+, 128;", tile_text(kernel, "ptx"))


@pytest.mark.parametrize(
    ("wait", "found"),
    [
        ("pass", "race"),
        ("T.cuda.warpgroup_sync(1)", "barrier-members"),  # 256 threads come
        ("if wg == 0:\n    T.cuda.warpgroup_sync(1)\nelse:\n    T.cuda.warpgroup_sync(1)", "barrier-members"),
        ("T.cuda.warpgroup_sync(wg + 15)", "barrier-members"),  # a block has none of number 16
    ],
)
def test_barriers_that_warpgroups_share_are_found(wait: str, found: str) -> None:
    assert found in findings(wait)


@pytest.mark.parametrize(
    ("barrier", "given"),
    [("0", "0"), ("16", "16"), ("1.5", "1.5"), ("True", "True"), ('"a"', "'a'"), ("T.float32(1)", "a float32")],
)
def test_a_barrier_has_a_number(barrier: str, given: str) -> None:
    with pytest.raises(InvalidTileProgram, match=f"a named barrier has a number from 1 to 15, not {given}"):
        read(body(f"T.cuda.warpgroup_sync({barrier})", block=128))
