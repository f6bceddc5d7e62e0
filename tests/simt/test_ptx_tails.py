"""Accesses that begin in a buffer and go on past its end, as hardware allows, and LLVM and nvcc make them."""

from __future__ import annotations

import numpy as np
import pytest
from simt.ptx_runner import HEADER, run_body

from tests.tile.helpers import read
from warpsmith.compiler import compile
from warpsmith.compiler.tile.programs import tile_text
from warpsmith.errors import CheckFailed
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.simt.core.checks import Checks
from warpsmith.simt.ptx.launch import PtxLaunch, run_ptx, simulate_ptx

TILE = ".shared .align 16 .b8 tile[30];"
FILL = "".join(f"st.shared.b16 [tile+{i}], {i};\n" for i in range(0, 30, 2))

GAPS = """
layout = TileLayout(S[(1, 2, 4, 64) : (1024, 512, 128, 2)])

@T.prim_func
def k(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (1, 8, 64), "float16")
    B = T.match_buffer(B_ptr, (1, 8, 64), "float16")
    T.device_entry(); T.cta_id([1]); tid = T.thread_id([128])
    X1 = T.alloc_buffer((1, 8, 64), "float16", scope="local",
                        layout=TileLayout(S[(1, 8, 16, 4) : (1, 1 @ tx, 8 @ tx, 1)]))
    X0 = T.alloc_shared((1, 8, 64), "float16", layout=layout)
    Tx.cta.copy(X0[0 : 1, 0 : 8, 0 : 64], A[0 : 1, 0 : 8, 0 : 64])
    T.cuda.cta_sync()
    Tx.cta.copy(X1, X0[0 : 1, 0 : 8, 0 : 64])
    Tx.cta.copy(B[0 : 1, 0 : 8, 0 : 64], X1)
"""


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
def test_vector_loads_with_gaps_that_end_past_shared_memory(target: str) -> None:
    """Four f16 with a stride of 2 become one load of 16 bytes; the last one ends 2 bytes past a tile of 2046."""
    text = tile_text(read(GAPS), "ptx", target)
    assert "X0[2046]" in text
    assert "ld.shared.v4.b32" in text
    source = np.arange(512, dtype=np.float16)
    (found,), stats = simulate_ptx(text, [source], [(source.dtype, 512)], PtxLaunch((1,), (128,)), checks=Checks())
    assert (found == source).all()
    assert stats.findings == []


@pytest.mark.parametrize(
    ("use", "used_past_the_end"),
    [
        ("mov.b32 {%h0, _}, %r1; cvt.u32.u16 %y, %h0;", False),
        ("mov.b32 {%h0, %h1}, %r1; cvt.u32.u16 %y, %h0;", False),
        ("cvt.u16.u32 %h0, %r1; cvt.u32.u16 %y, %h0;", False),
        ("and.b32 %y, %r1, 65535;", False),
        ("shl.b32 %r2, %r1, 16; shr.u32 %y, %r2, 16;", False),
        ("prmt.b32 %y, %r1, 0, 0x4410;", False),
        ("bfe.u32 %y, %r1, 0, 16;", False),
        ("cvt.u16.u32 %h0, %r1; st.global.b16 [%at], %h0; bra $end;", False),
        ("mov.b32 {_, %h0}, %r1; cvt.u32.u16 %y, %h0;", True),
        ("shr.u32 %y, %r1, 16;", True),
        ("prmt.b32 %y, %r1, 0, 0x4432;", True),
        ("and.b32 %y, %r1, -65536;", True),
        ("cvt.s64.s32 %rd0, %r1; shr.u64 %rd0, %rd0, 40; cvt.u32.u64 %y, %rd0;", True),
        ("add.u32 %y, %r1, 0;", True),
    ],
)
def test_what_a_load_brings_from_past_the_end_must_not_be_used(use: str, used_past_the_end: bool) -> None:
    """The last two of eight bytes are past the end: they hold nothing, and whoever uses them is told."""
    body = FILL + "ld.shared.v2.b32 {%r0, %r1}, [tile+24];\n" + use
    out, stats = run_body(body, [1], registers=TILE + ".reg .b16 %h<2>;", checks=Checks())
    found = [(f.code, f.byte, f.buffer) for f in stats.findings]
    assert found == ([("uninitialised-read", 30, "shared memory")] if used_past_the_end else [])
    if not used_past_the_end:
        assert out == [28]


def test_bytes_between_that_nobody_uses_are_not_read() -> None:
    """Of a load over a gap that nobody wrote, and one that another thread writes meanwhile."""
    body = """
        setp.eq.u32 %p0, %i, 1;
        @%p0 st.shared.b16 [tile+2], 7;
        @%p0 bra $done;
        st.shared.b16 [tile], 5;
        st.shared.b16 [tile+4], 6;
        ld.shared.v2.b32 {%r0, %r1}, [tile];
        mov.b32 {%h0, _}, %r0; mov.b32 {%h1, _}, %r1;
        cvt.u32.u16 %r2, %h0; cvt.u32.u16 %r3, %h1; mad.lo.u32 %y, %r2, 10, %r3;
        """
    out, stats = run_body(body, [1, 2], registers=TILE + ".reg .b16 %h<2>;", checks=Checks())
    assert (out, stats.findings) == ([56, 0], [])
    _, stats = run_body(body.replace("{%h0, _}, %r0", "{_, %h0}, %r0"), [1, 2],
                        registers=TILE + ".reg .b16 %h<2>;", checks=Checks())  # fmt: skip
    assert [f.code for f in stats.findings] == ["race"]


LAST = (
    HEADER
    + """
.const .align 16 .b16 table[7] = {{10, 11, 12, 13, 14, 15, 16}};
.visible .entry k(.param .u64 in, .param .u64 out) {{
    .local .align 16 .b8 spill[14]; .shared .align 16 .b8 tile[14];
    .reg .b64 %in, %out, %at; .reg .b16 %h<4>; .reg .b32 %y;
    ld.param.b64 %in, [in]; ld.param.b64 %out, [out];
    {before}
    ld.{space}.v4.b16 {{%h0, %h1, %h2, %h3}}, [{place}];
    cvt.u32.u16 %y, %h{used}; st.global.b32 [%out], %y; ret; }}
"""
)


def _filled(name: str) -> str:
    return "".join(f"st.{name.split('.')[0]}.b16 [{name.split('.')[1]}+{2 * i}], {10 + i}; " for i in range(7))


@pytest.mark.parametrize(
    ("space", "place", "before"),
    [
        ("global", "%in+8", ""),
        ("shared", "tile+8", _filled("shared.tile")),
        ("local", "spill+8", _filled("local.spill")),
        ("const", "table+8", ""),
        ("global", "%at+8", "mov.u64 %at, table; cvta.const.u64 %at, %at;"),
    ],
)
def test_every_space_goes_on_behind_its_last_element(space: str, place: str, before: str) -> None:
    """Seven elements of 16 bits: a load of four may begin at the fifth, but not at the ninth, nor at the sixth."""
    source, out = np.arange(10, 17, dtype=np.uint16), np.zeros(1, np.uint32)

    def run(place: str, used: int) -> list[str]:
        text = LAST.format(space=space, place=place, before=before, used=used)
        stats = run_ptx(text, [source, out], PtxLaunch((1,), (1,)), checks=Checks(read_only=[0]))
        return [f.code for f in stats.findings]

    assert (run(place, 2), out[0]) == ([], 16)
    if space not in ("const",) and not before.startswith("mov"):
        assert run(place, 3) == ["uninitialised-read"]
    for wrong, code in (("16", "out-of-bounds"), ("10", "misaligned")):
        with pytest.raises(CheckFailed) as caught:
            run(place.replace("+8", f"+{wrong}"), 2)
        assert caught.value.finding.code == code
    assert source.tolist() == [10, 11, 12, 13, 14, 15, 16]


@pytest.mark.parametrize("store", ["st.global.v4.b16 [%in+8], {%h0, %h0, %h0, %h0}", "red.global.add.u32 [%in+12], %y"])
def test_stores_and_sums_stay_inside(store: str) -> None:
    text = LAST.format(space="global", place="%in", before="", used=0).replace("st.global.b32 [%out], %y", store)
    with pytest.raises(CheckFailed) as caught:
        run_ptx(text, [np.zeros(7, np.uint16), np.zeros(1, np.uint32)], PtxLaunch((1,), (1,)))
    assert caught.value.finding.code == "out-of-bounds"


WORD = (
    HEADER
    + """
.visible .entry k(.param .u64 bytes, .param .u64 out) {
    .reg .b64 %a, %w, %out; .reg .b32 %i, %s, %m, %old, %new, %was, %y; .reg .pred %p;
    ld.param.b64 %a, [bytes]; ld.param.b64 %out, [out]; mov.u32 %i, %tid.x;
    cvt.u64.u32 %w, %i; add.s64 %a, %a, %w; and.b64 %w, %a, -4;
    cvt.u32.u64 %s, %a; and.b32 %s, %s, 3; shl.b32 %s, %s, 3; shl.b32 %m, 1, %s;
    ld.global.b32 %old, [%w];
$again:
    add.u32 %new, %old, %m;
    atom.global.cas.b32 %was, [%w], %old, %new;
    setp.eq.b32 %p, %was, %old; mov.b32 %old, %was;
    @!%p bra $again;
    ret; }
"""
)


def test_exchanges_of_bytes_take_the_whole_last_word() -> None:
    """27 threads each add one to a byte of their own, by words; what lies behind the 27 bytes is nobody's concern."""
    counts = np.arange(27, dtype=np.uint8)
    stats = run_ptx(WORD, [counts, np.zeros(1, np.uint32)], PtxLaunch((1,), (27,)), checks=Checks())
    assert (counts == np.arange(1, 28)).all()
    assert stats.findings == []
    plain = WORD.replace("ld.global.b32 %old, [%w]", "add.s64 %a, %w, 0; ld.global.b32 %old, [%a]")
    stats = run_ptx(plain, [counts, np.zeros(1, np.uint32)], PtxLaunch((1,), (27,)), checks=Checks())
    assert [(f.code, f.byte) for f in stats.findings] == [("uninitialised-read", 27)]
    with pytest.raises(CheckFailed):  # the word begins behind the bytes
        run_ptx(WORD, [counts, np.zeros(1, np.uint32)], PtxLaunch((1,), (29,)))


def test_buffers_that_share_memory_still_do() -> None:
    """One array twice, or a part of another: what goes to one is there in the other."""
    for first, second in ((0, 0), (0, 1)):
        memory = np.arange(3, dtype=np.uint32)
        text = LAST.format(space="global", place="%in", before="", used=0)
        text = text.replace("v4.b16 {%h0, %h1, %h2, %h3}", "b16 %h0").replace("%out], %y", "%out], 77")
        run_ptx(text, [memory[first:], memory[second:]], PtxLaunch((1,), (1,)))
        assert memory[second] == 77


SCATTER = """HloModule m
multiply { a = u8[] parameter(0)  b = u8[] parameter(1)  ROOT c = u8[] multiply(a, b) }
fused {
  p0 = u8[27] parameter(0)
  p1 = s32[9,1] parameter(1)
  p2 = u8[9,1] parameter(2)
  ROOT s = u8[27] scatter(p0, p1, p2), update_window_dims={1}, inserted_window_dims={},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=multiply
}
"""


def test_a_scatter_into_27_bytes_runs_as_ptx() -> None:
    """LLVM makes a byte's update one of its word; the last word has three bytes."""
    exe = compile(parse_hlo(SCATTER), "sm_90", cache=False)
    (kernel,) = exe.kernels
    source, updates = np.arange(1, 28, dtype=np.uint8), np.full(9, 3, np.uint8)
    indices = np.array([26, 26, 0, 25, 24, 26, 3, 7, 31], np.int32)
    launch = PtxLaunch(kernel.grid, kernel.block, aliases=[(0, 0)])
    buffers = [source, indices, updates]
    found, stats = simulate_ptx(exe.artifact("ptx"), buffers, [(source.dtype, 27)], launch, Checks())
    factors = np.bincount(indices[indices < 27], minlength=27)
    expected = (source * 3**factors).astype(np.uint8)
    assert (found[0] == expected).all()
    assert stats.findings == []
