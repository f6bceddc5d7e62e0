"""Memory: widths, spaces, initial values, atomics; and every access that hardware would not do is an error."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simt.ptx_runner import HEADER, run_body

from warpsmith.errors import SimulationError
from warpsmith.simt.core.checks import Checks
from warpsmith.simt.ptx.launch import PtxLaunch, run_ptx, simulate_ptx

COPY = (
    HEADER
    + """
.visible .entry copy(.param .u64 .ptr .align 32 from, .param .u64 .ptr .align 32 to)
{{
    .reg .b64 %rd<5>; .reg .b32 %i; .reg .b64 %v<8>; .reg .b32 %w<8>; .reg .b16 %h<8>;
    mov.u32 %i, %tid.x;
    ld.param.b64 %rd1, [from]; ld.param.b64 %rd2, [to];
    cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2;
    mad.wide.u32 %rd3, %i, {bytes}, %rd1; mad.wide.u32 %rd4, %i, {bytes}, %rd2;
    ld.global.nc.{form} {registers}, [%rd3];
    st.global.{form} [%rd4], {registers};
    ret;
}}
"""
)


@pytest.mark.parametrize(
    ("form", "registers", "size"),
    [
        ("b8", "%h0", 1),
        ("b16", "%h0", 2),
        ("b32", "%w0", 4),
        ("b64", "%v0", 8),
        ("v2.b8", "{%h0, %h1}", 2),
        ("v4.b16", "{%h0, %h1, %h2, %h3}", 8),
        ("v4.b32", "{%w0, %w1, %w2, %w3}", 16),
        ("v2.b64", "{%v0, %v1}", 16),
        ("v8.b32", "{%w0, %w1, %w2, %w3, %w4, %w5, %w6, %w7}", 32),
        ("v4.b64", "{%v0, %v1, %v2, %v3}", 32),
    ],
)
def test_every_width_moves_its_bytes(form: str, registers: str, size: int) -> None:
    """64 threads copy 64 items; one thread more is out of bounds, and the message says where."""
    text = COPY.format(bytes=size, form=form, registers=registers)
    source = np.random.default_rng(3).integers(0, 256, 64 * size, dtype=np.uint8)
    target = np.zeros_like(source)
    stats = run_ptx(text, [source, target], PtxLaunch((1,), (64,)))
    assert (source == target).all()
    assert stats.accesses[("load", "global", 8 * size)] == 64
    with pytest.raises(SimulationError) as caught:
        run_ptx(text, [source, target], PtxLaunch((1,), (65,), file="copy.ptx"))
    assert f"byte {64 * size} of 'from', which has {64 * size}" in caught.value.cause
    assert "thread 64" in caught.value.cause
    assert str(caught.value).startswith("copy.ptx:12:")


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (
            "ld.global.v2.b32 {%r0, %r1}, [%in+4];",
            "8 bytes at byte 4 of 'in', which has 16, aren't aligned to 8",
        ),
        ("ld.global.b32 %r0, [%from+-8];", "byte -8 of 'in'"),
        ("ld.global.b32 %r0, [8];", "address 0x8 is in no buffer"),
        ("st.shared.b32 [tile+12], %x;", "4 bytes at byte 12 of shared memory, which has 14"),
        ("ld.shared.b32 %r0, [tile+2];", "aren't aligned to 4"),
        ("ld.local.b32 %r0, [spill+16];", "byte 16 of local memory, which has 16"),
        (
            "mov.b64 %rd0, constant; cvta.const.u64 %rd0, %rd0; ld.b32 %r0, [%rd0+4];",
            "byte 4 of 'constant', which has 4",
        ),
    ],
)
def test_accesses_that_no_hardware_does(body: str, cause: str) -> None:
    """Misaligned, before or after a buffer, at a null pointer, past shared, local and constant memory."""
    with pytest.raises(SimulationError) as caught:
        run_body(
            body,
            [1, 2, 3, 4],
            registers=".shared .align 4 .b8 tile[14]; .local .align 4 .b8 spill[16];",
            before=".const .align 4 .b32 constant = 5;",
        )
    assert cause in caught.value.cause
    assert "(block 0, thread 0)" in caught.value.cause


def test_lanes_that_are_masked_off_may_hold_wild_addresses() -> None:
    out, _ = run_body(
        "setp.lt.u32 %p0, %x, 5; selp.b64 %rd0, %from, 0, %p0;\n@%p0 ld.global.b32 %y, [%rd0];", [9, 3, 8, 1]
    )
    assert out == [0, 3, 0, 1]


def test_blocks_have_shared_memory_of_their_own() -> None:
    """Each thread reads its neighbour's element from the tile of its own block."""
    values = list(range(10, 34))
    body = """
        mov.u32 %r0, %tid.x;
        mov.b64 %rd0, tile;
        mad.wide.u32 %rd1, %r0, 4, %rd0;
        st.shared.b32 [%rd1], %x;
        bar.sync 0;
        xor.b32 %r1, %r0, 1;
        mad.wide.u32 %rd1, %r1, 4, %rd0;
        ld.shared.b32 %y, [%rd1];
        """
    out, stats = run_body(body, values, block=8, registers=".shared .align 4 .b8 tile[32];")
    assert out == [values[i ^ 1] for i in range(24)]
    assert stats.accesses[("store", "shared", 32)] == 24


def test_generic_addresses_reach_every_space() -> None:
    """Half of the threads read shared memory, half global, by one instruction; local memory is each thread's own."""
    body = """
        mov.b64 %rd0, tile; cvta.shared.u64 %rd0, %rd0;
        st.b32 [%rd0], 77;
        mov.b64 %rd1, spill; cvta.local.u64 %rd1, %rd1;
        st.b32 [%rd1], %x;
        setp.lt.u32 %p0, %i, 2;
        selp.b64 %rd2, %rd0, %from, %p0;
        ld.b32 %y, [%rd2];
        ld.b32 %r0, [%rd1];
        mad.lo.u32 %y, %r0, 100, %y;
        """
    out, _ = run_body(body, [1, 2, 3, 4], registers=".shared .align 4 .b8 tile[4]; .local .align 4 .b8 spill[4];")
    assert out == [177, 277, 303, 404]


def test_initial_values_and_pointers_between_variables() -> None:
    out, _ = run_body(
        """
        mov.b64 %rd0, table;
        mad.wide.u32 %rd1, %i, 2, %rd0;
        ld.global.s16 %r0, [%rd1];
        ld.global.b64 %rd2, [pointer];
        ld.global.u8 %r1, [%rd2];
        mad.lo.u32 %y, %r1, 1000, %r0;
        """,
        [0, 0, 0],
        before=".global .align 8 .b16 table[3] = {1, -2, 3};\n.global .align 8 .b64 pointer = generic(table)+4;",
    )
    assert out == [3001, 2998, 3003]


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2**32 - 1)), min_size=1, max_size=64))
def test_atomics_take_turns(updates: list[tuple[int, int]]) -> None:
    """Whatever the collisions: the memory and each thread's old value are those of one thread after the other."""
    steps = {
        "add.u32": lambda old, new: (old + new) & 0xFFFFFFFF,
        "min.s32": lambda old, new: min(old, new, key=lambda v: v - (1 << 32) * (v >> 31)),
        "max.u32": max,
        "xor.b32": lambda old, new: old ^ new,
        "exch.b32": lambda old, new: new,
        "inc.u32": lambda old, new: 0 if old >= new else old + 1,
        "dec.u32": lambda old, new: new if old == 0 or old > new else old - 1,
        "cas.b32": lambda old, new: new if old == 5 else old,
    }
    places = np.array([place for place, _ in updates], np.uint32)
    operands = np.array([value for _, value in updates], np.uint32)
    for name, step in steps.items():
        text = (
            HEADER
            + f"""
        .visible .entry k(.param .u64 place, .param .u64 value, .param .u64 memory, .param .u64 before) {{
        .reg .b32 %r<4>; .reg .b64 %a<5>;
        mov.u32 %r0, %tid.x;
        ld.param.b64 %a0, [place]; ld.param.b64 %a1, [value]; ld.param.b64 %a2, [memory]; ld.param.b64 %a3, [before];
        mad.wide.u32 %a0, %r0, 4, %a0; mad.wide.u32 %a1, %r0, 4, %a1; mad.wide.u32 %a3, %r0, 4, %a3;
        ld.global.b32 %r1, [%a0]; ld.global.b32 %r2, [%a1]; mad.wide.u32 %a2, %r1, 4, %a2;
        atom.relaxed.gpu.global.{name} %r3, [%a2], {"5, " if "cas" in name else ""}%r2;
        st.global.b32 [%a3], %r3; ret; }}"""
        )
        memory = np.array([5, 5, 0, 2**32 - 1], np.uint32)
        before = np.zeros(len(updates), np.uint32)
        want_memory, want_before = memory.tolist(), list[int]()
        for place, value in updates:
            want_before.append(want_memory[place])
            want_memory[place] = step(want_memory[place], value)
        run_ptx(text, [places, operands, memory, before], PtxLaunch((1,), (len(updates),)))
        assert memory.tolist() == want_memory, name
        assert before.tolist() == want_before, name


def _sum(form: str, dtype: type, values: list[float], start: float = 0.0, space: str = "global") -> float:
    bits = np.dtype(dtype).itemsize * 8
    register = {16: "%h", 32: "%w", 64: "%v"}[bits]
    text = (
        HEADER
        + f"""
    .visible .entry k(.param .u64 in, .param .u64 out) {{
    .shared .align 8 .b8 tile[8]; .reg .b32 %i, %w, %z; .reg .b64 %v, %a, %o, %t; .reg .b16 %h; .reg .pred %p;
    mov.u32 %i, %tid.x; ld.param.b64 %a, [in]; ld.param.b64 %o, [out]; mov.b64 %t, tile;
    mad.wide.u32 %a, %i, {bits // 8}, %a; ld.global.b{bits} {register}, [%a];
    {"st.shared.b32 [%t], 0;" if space == "shared" else ""}
    red.{space}.{form} [{"%t" if space == "shared" else "%o"}], {register};
    {"ld.shared.b32 %w, [%t]; st.global.b32 [%o], %w;" if space == "shared" else ""}
    ret; }}"""
    )
    source, target = np.array(values, dtype), np.array([start], dtype)
    run_ptx(text, [source, target], PtxLaunch((1,), (len(values),)))
    return target[0]


def test_sums_of_floats_add_in_the_order_of_the_threads_and_round_each_time() -> None:
    """2^24 + 1 + 1 is 2^24 in f32 one by one; f64 and f16 likewise have their own steps."""
    assert _sum("add.f32", np.float32, [2.0**24, 1.0, 1.0]) == 2.0**24
    assert _sum("add.f32", np.float32, [1.0, 1.0, 2.0**24]) == 2.0**24 + 2
    assert _sum("add.f64", np.float64, [2.0**53, 1.0, 1.0]) == 2.0**53
    assert _sum("add.noftz.f16", np.float16, [2048.0, 1.0, 1.0]) == 2048.0
    assert np.isnan(_sum("add.f32", np.float32, [np.inf, -np.inf]))


def test_a_sum_of_f32_in_global_memory_flushes_subnormals_and_in_shared_memory_does_not() -> None:
    tiny = 2.0**-140
    assert _sum("add.f32", np.float32, [tiny, tiny]) == 0
    assert _sum("add.f32", np.float32, [tiny, tiny], space="shared") == 2 * tiny


def test_a_vector_of_sums() -> None:
    text = (
        HEADER
        + """
    .visible .entry k(.param .u64 out) { .reg .b64 %a; .reg .b32 %r<3>;
    ld.param.b64 %a, [out]; mov.b32 %r1, 0f3F800000; mov.b32 %r2, 0f40000000;
    red.global.v2.f32.add [%a], {%r1, %r2}; ret; }"""
    )
    target = np.array([10, 20], np.float32)
    run_ptx(text, [target], PtxLaunch((4,), (8,)))
    assert target.tolist() == [42, 84]


def test_reading_what_was_never_written_is_found_when_asked_for() -> None:
    """Outputs and shared memory; without the check, shared memory reads as 0xFF bytes."""
    body = "ld.shared.b32 %y, [tile+4];"
    shared = ".shared .align 4 .b8 tile[8];"
    assert run_body(body, [0], registers=shared)[0] == [0xFFFFFFFF]
    checks = Checks(fresh={1: 4})
    _, stats = run_body(body, [0], registers=shared, checks=checks)
    assert [(f.code, f.byte, f.buffer) for f in stats.findings] == [("uninitialised-read", 4, "shared memory")]
    found, stats = run_body("st.shared.b32 [tile+4], 9;" + body, [0], registers=shared, checks=checks)
    assert (found, stats.findings) == ([9], [])
    _, stats = run_body("ld.global.b32 %y, [%at];", [0], checks=checks)
    assert [(f.code, f.byte, f.index, f.buffer) for f in stats.findings] == [("uninitialised-read", 0, 0, "'out'")]


def test_read_only_arrays_stay_as_they_are() -> None:
    text = COPY.format(bytes=4, form="b32", registers="%w0")
    source, target = np.arange(8, dtype=np.uint32), np.zeros(8, np.uint32)
    target.flags.writeable = False
    with pytest.raises(SimulationError, match="'to' is read-only"):
        run_ptx(text, [source, target], PtxLaunch((1,), (8,)))


def test_arrays_that_are_not_contiguous_are_changed_in_place_too() -> None:
    text = COPY.format(bytes=4, form="b32", registers="%w0")
    whole = np.zeros((4, 4), np.uint32)
    run_ptx(text, [np.arange(8, dtype=np.uint32), whole[:, ::2]], PtxLaunch((1,), (8,)))
    assert whole[:, ::2].reshape(-1).tolist() == list(range(8))
    assert not whole[:, 1::2].any()


def test_elements_narrower_than_a_byte_are_packed_low_bits_first() -> None:
    """simulate_ptx gives the kernel 4-bit elements two a byte and takes them apart again."""
    values = np.array([1, -2, 3, -4, 5, -8, 7], ml_dtypes.int4)
    text = COPY.format(bytes=1, form="b8", registers="%h0")
    (found,), _ = simulate_ptx(text, [values], [(np.dtype(ml_dtypes.int4), 7)], PtxLaunch((1,), (4,)))
    assert found.astype(np.int8).tolist() == [1, -2, 3, -4, 5, -8, 7]
    packed = np.zeros(4, np.uint8)
    (bytes_,), _ = simulate_ptx(text, [values], [packed], PtxLaunch((1,), (4,)))
    assert bytes_.tolist() == [0xE1, 0xC3, 0x85, 0x07]
    assert not packed.any()


def test_an_aliased_output_starts_as_its_input_and_leaves_the_caller_s_array_alone() -> None:
    """Both parameters are one buffer: what is written through one is read through the other."""
    text = (
        HEADER
        + """
    .visible .entry k(.param .u64 a, .param .u64 b, .param .u64 out) { .reg .b64 %a<3>; .reg .b32 %r<3>;
    ld.param.b64 %a0, [a]; ld.param.b64 %a1, [b]; ld.param.b64 %a2, [out];
    ld.global.b32 %r0, [%a1]; st.global.b32 [%a2+4], %r0;
    ld.global.b32 %r1, [%a0+4]; st.global.b32 [%a2+8], %r1; ret; }"""
    )
    first = np.array([1, 2, 3], np.uint32)
    (found,), _ = simulate_ptx(
        text,
        [first, np.array([9], np.uint32)],
        [(np.dtype(np.uint32), 3)],
        PtxLaunch((1,), (1,), aliases=[(0, 0)]),
        checks=Checks(),
    )
    assert found.tolist() == [1, 9, 9]
    assert first.tolist() == [1, 2, 3]
