"""What accesses cost on the hardware, and races in shared memory: counted by hand for small patterns."""

from __future__ import annotations

import pytest
from simt.ptx_runner import run_body

from warpsmith.simt.core.checks import Checks
from warpsmith.simt.ptx.launch import PtxStats

THREADS = list(range(64))
TILE = ".shared .align 16 .b8 tile[8448];"


def _cost(stats: PtxStats, kind: str, space: str) -> tuple[int, int, int]:
    assert stats.counters is not None
    rows = stats.counters.accesses
    (row,) = [a for a in rows if (a.kind, a.space) == (kind, space) and "[%rd9" in a.site.text]
    if space == "global":
        return row.warps, row.sectors, row.ideal_sectors
    return row.warps, row.wavefronts, row.ideal_wavefronts


GLOBAL = {
    "contiguous": ("mov.b64 %rd9, %from; ld.global.b32 %r0, [%rd9];", (2, 8, 8)),
    "one off": ("setp.lt.u32 %p0, %i, 63; mov.b64 %rd9, %from;\n@%p0 ld.global.b32 %r0, [%rd9+4];", (2, 9, 8)),
    "every other": ("and.b32 %r1, %i, 31; mad.wide.u32 %rd9, %r1, 8, %in; ld.global.b32 %r0, [%rd9];", (2, 16, 8)),
    "one for all": ("mov.b64 %rd9, %in; ld.global.b32 %r0, [%rd9];", (2, 2, 2)),
    "four a thread": (
        "and.b32 %r1, %i, 15; mad.wide.u32 %rd9, %r1, 16, %in; ld.global.v4.b32 {%r0,_,_,_}, [%rd9];",
        (2, 16, 16),
    ),
}


@pytest.mark.parametrize("pattern", GLOBAL)
def test_sectors_of_global_memory(pattern: str) -> None:
    """Requests of two warps, sectors of 32 bytes that they touch, and the least for as many different bytes."""
    body, expected = GLOBAL[pattern]
    _, stats = run_body(body, THREADS, checks=Checks())
    assert _cost(stats, "load", "global") == expected


SHARED = {
    "a row": ("4", "b32 [%rd9], %x;", (2, 2, 2)),
    "a column of 32": ("128", "b32 [%rd9], %x;", (2, 64, 2)),
    "a column of 33": ("132", "b32 [%rd9], %x;", (2, 2, 2)),
    "every other word": ("8", "b32 [%rd9], %x;", (2, 4, 2)),
    "bytes of one word": ("1", "b8 [%rd9], %r5;", (2, 2, 2)),
    "two words": ("8", "v2.b32 [%rd9], {%x, %x};", (2, 4, 4)),
    "four words": ("16", "v4.b32 [%rd9], {%x, %x, %x, %x};", (2, 8, 8)),
    "two words, padded": ("16", "v2.b32 [%rd9], {%x, %x};", (2, 8, 4)),
}


@pytest.mark.parametrize("pattern", SHARED)
def test_banks_of_shared_memory(pattern: str) -> None:
    """Turns that two warps' stores take when thread i writes at i times a stride."""
    stride, store, expected = SHARED[pattern]
    body = f"mov.b32 %r5, 1; mov.b64 %rd0, tile; mad.wide.u32 %rd9, %i, {stride}, %rd0; st.shared.{store}"
    _, stats = run_body(body, THREADS, registers=TILE, checks=Checks())
    assert _cost(stats, "store", "shared") == expected


WRITE = "mov.b64 %rd0, tile; mad.wide.u32 %rd9, %i, 4, %rd0; st.shared.b32 [%rd9], %x;"
READ = "xor.b32 %r0, %i, {other}; mad.wide.u32 %rd8, %r0, 4, %rd0; ld.shared.b32 %y, [%rd8];"
CASES = {
    "read without a barrier": (WRITE + "\n" + READ.format(other=1), 1),
    "read after a barrier": (WRITE + "\nbar.sync 0;\n" + READ.format(other=1), 0),
    "own element": (WRITE + "\n" + READ.format(other=0), 0),
    "same warp, after the warp's barrier": (WRITE + "\nbar.warp.sync -1;\n" + READ.format(other=1), 0),
    "other warp, after the warp's barrier": (WRITE + "\nbar.warp.sync -1;\n" + READ.format(other=32), 1),
    "written again after being read": (
        WRITE + "\nbar.sync 0;\n" + READ.format(other=1) + "\nst.shared.b32 [%rd9], 0;",
        1,
    ),
    "barrier before writing again": (
        WRITE + "\nbar.sync 0;\n" + READ.format(other=1) + "\nbar.sync 0;\nst.shared.b32 [%rd9], 0;",
        0,
    ),
    "atomics": ("mov.b64 %rd0, tile;\nred.shared.add.u32 [%rd0], 1;\nred.shared.max.u32 [%rd0], 1;", 0),
    "an atomic and a read": ("mov.b64 %rd0, tile;\nred.shared.add.u32 [%rd0], 1;\nld.shared.b32 %y, [%rd0];", 1),
    "all read one byte": ("mov.b64 %rd0, tile;\nld.shared.b32 %r0, [%rd0];\nld.shared.b32 %y, [%rd0];", 0),
    "all read, then one writes": (
        "mov.b64 %rd0, tile;\nld.shared.b32 %r0, [%rd0];\nsetp.eq.u32 %p0, %i, 0;\n@%p0 st.shared.b32 [%rd0], 5;",
        1,
    ),
    "one writes, all read after a barrier, one writes after another": (
        "mov.b64 %rd0, tile; setp.eq.u32 %p0, %i, 0;\n@%p0 st.shared.b32 [%rd0], 5;\nbar.sync 0;\n"
        "ld.shared.b32 %y, [%rd0];\nbar.sync 0;\n@%p0 st.shared.b32 [%rd0], 6;",
        0,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_races(case: str) -> None:
    """A race is one whatever order the threads happen to run in; a barrier between the accesses ends it."""
    body, races = CASES[case]
    _, stats = run_body(body, THREADS, registers=TILE, checks=Checks())
    found = [f.code for f in stats.findings if f.code != "uninitialised-read"]  # some cases read before any write
    assert found == ["race"] * races


def test_a_race_names_both_places_and_threads() -> None:
    body, _ = CASES["read without a barrier"]
    _, stats = run_body(body, THREADS, registers=TILE, checks=Checks())
    (found,) = stats.findings
    assert found.site is not None
    assert found.other is not None
    assert (found.site.line, found.site.op, found.block, found.thread) == (21, "ld.shared.b32", (0, 0, 0), (0, 0, 0))
    assert (found.other.site.line, found.other.kind, found.other.thread) == (20, "store", (1, 0, 0))
    assert (found.space, found.byte, found.count) == ("shared", 4, 64)


def test_blocks_do_not_race_with_one_another_in_shared_memory() -> None:
    """Each has its own shared memory, and its own barriers."""
    body = WRITE.replace("%i", "%r9") + "\nbar.sync 0;\n" + READ.format(other=1).replace("%i", "%r9")
    out, stats = run_body("mov.u32 %r9, %tid.x;\n" + body, THREADS, block=16, registers=TILE, checks=Checks())
    assert stats.findings == []
    assert out == [i ^ 1 for i in THREADS]
