"""Threads that part meet again; loops end when their last thread leaves; barriers in torn blocks are found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simt.ptx_runner import HEADER, body_kernel, run_body

from warpsmith.errors import SimulationError
from warpsmith.simt.ptx.launch import PtxLaunch, run_ptx


def test_both_sides_of_a_branch_run_and_meet() -> None:
    """Each thread takes its own side; what follows the join runs for all."""
    out, stats = run_body(
        """
        setp.gt.u32 %p0, %x, 9;
        @%p0 bra $big;
        add.u32 %y, %x, 100;
        bra.uni $join;
    $big:
        mul.lo.u32 %y, %x, 2;
    $join:
        add.u32 %y, %y, 1;
        """,
        [3, 10, 9, 40],
    )
    assert out == [104, 21, 110, 81]
    assert stats.divergent_branches == 1
    # 12 instructions before the branch with it, 2 or 1 on a side, 1 after the join, store and return
    assert stats.total == 4 * 12 + 2 * 2 + 2 * 1 + 4 * 3


@settings(max_examples=20)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=70))
def test_each_thread_has_its_own_trip_count(counts: list[int]) -> None:
    """The sum 1 + ... + n, for another n in each thread."""
    out, _ = run_body(
        """
        mov.b32 %r0, 0;
    $loop:
        setp.ge.u32 %p0, %r0, %x;
        @%p0 bra $done;
        add.u32 %r0, %r0, 1;
        add.u32 %y, %y, %r0;
        bra.uni $loop;
        """,
        counts,
    )
    assert out == [n * (n + 1) // 2 for n in counts]


def _collatz(n: int) -> int:
    steps = 0
    while n != 1:
        n = 3 * n + 1 if n % 2 else n // 2
        steps += 1
    return steps


def test_a_branch_in_a_loop() -> None:
    """Collatz: threads part and meet in each of up to 118 iterations, and leave one by one."""
    out, stats = run_body(
        """
    $loop:
        setp.eq.u32 %p0, %x, 1;
        @%p0 bra $done;
        add.u32 %y, %y, 1;
        and.b32 %r0, %x, 1;
        setp.eq.u32 %p1, %r0, 0;
        @%p1 bra $even;
        mad.lo.u32 %x, %x, 3, 1;
        bra.uni $loop;
    $even:
        shr.u32 %x, %x, 1;
        bra.uni $loop;
        """,
        list(range(1, 101)),
    )
    assert out == [_collatz(n) for n in range(1, 101)]
    assert stats.divergent_branches > 100


def test_nested_loops_with_break_and_continue() -> None:
    """Counts pairs (i, j), j <= i < x, with i + j not a multiple of 3, until i * j passes 50."""

    def expected(x: int) -> int:
        found = 0
        for i in range(x):
            for j in range(i + 1):
                if i * j > 50:
                    break
                if (i + j) % 3 == 0:
                    continue
                found += 1
        return found

    out, _ = run_body(
        """
        mov.b32 %r0, 0;
    $outer:
        setp.ge.u32 %p0, %r0, %x;
        @%p0 bra $done;
        mov.b32 %r1, 0;
    $inner:
        setp.gt.u32 %p1, %r1, %r0;
        @%p1 bra $next;
        mul.lo.u32 %r2, %r0, %r1;
        setp.gt.u32 %p2, %r2, 50;
        @%p2 bra $next;
        add.u32 %r3, %r0, %r1;
        add.u32 %r1, %r1, 1;
        rem.u32 %r3, %r3, 3;
        setp.eq.u32 %p3, %r3, 0;
        @%p3 bra $inner;
        add.u32 %y, %y, 1;
        bra.uni $inner;
    $next:
        add.u32 %r0, %r0, 1;
        bra.uni $outer;
        """,
        [0, 1, 5, 9, 20, 33],
    )
    assert out == [expected(x) for x in [0, 1, 5, 9, 20, 33]]


def test_threads_that_return_early_write_nothing() -> None:
    """A return in a branch and a predicated one."""
    for leave in ("@%p0 bra $end;", "@%p0 ret;", "@!%p0 bra $on;\n exit;\n $on:"):
        out, _ = run_body(f"setp.lt.u32 %p0, %x, 5;\n{leave}\nmov.b32 %y, 7;", [1, 8, 4, 9])
        assert out == [0, 7, 0, 7]


def test_a_table_of_targets() -> None:
    """brx.idx sends each thread to its own label; an index past the table is an error."""
    body = """
    $table: .branchtargets $a, $b, $c;
        brx.idx %x, $table;
    $a: mov.b32 %y, 11; bra.uni $done;
    $b: mov.b32 %y, 22; bra.uni $done;
    $c: mov.b32 %y, 33;
    """
    assert run_body(body, [2, 0, 1, 1, 2])[0] == [33, 11, 22, 22, 33]
    with pytest.raises(SimulationError, match=r"past the table.*thread 1"):
        run_body(body, [2, 3])


CALLEE = """
.func (.param .b32 result) power(.param .b32 base, .param .b32 exponent)
{
    .reg .b32 %r<5>; .reg .pred %p<2>;
    ld.param.b32 %r1, [base];
    ld.param.b32 %r2, [exponent];
    mov.b32 %r3, 1;
$more:
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra $enough;
    mul.lo.u32 %r3, %r3, %r1;
    sub.u32 %r2, %r2, 1;
    bra.uni $more;
$enough:
    st.param.b32 [result], %r3;
    ret;
}
"""


def test_calls_have_registers_and_parameters_of_their_own() -> None:
    """A function called by some threads only, each with its own arguments."""
    out, _ = run_body(
        """
        setp.eq.u32 %p0, %x, 4;
        @%p0 bra $done;
        {
        .param .b32 first; .param .b32 second; .param .b32 back;
        st.param.b32 [first], 3;
        st.param.b32 [second], %x;
        call.uni (back), power, (first, second);
        ld.param.b32 %y, [back];
        }
        """,
        [0, 4, 1, 5],
        before=CALLEE,
    )
    assert out == [1, 0, 3, 243]


def test_a_barrier_is_for_all_threads_of_a_block() -> None:
    """Whole blocks may take different ways to one; a block torn apart is an error that names a missing thread."""
    body = """
        setp.lt.u32 %p0, %x, 100;
        @%p0 bra $done;
        bar.sync 0;
        mov.b32 %y, 1;
        """
    out, _ = run_body(body, [100] * 4 + [0] * 4 + [200] * 4, block=4)
    assert out == [1] * 4 + [0] * 4 + [1] * 4
    with pytest.raises(SimulationError, match="3 threads of a block wait here, 1 are elsewhere") as caught:
        run_body(body, [100] * 4 + [200, 200, 0, 200], block=4)
    assert "block 1, thread 2" in caught.value.cause


def test_a_barrier_does_not_wait_for_threads_that_have_ended() -> None:
    out, _ = run_body("setp.eq.u32 %p0, %x, 0;\n@%p0 ret;\nbar.sync 0;\nmov.b32 %y, 5;", [1, 0, 2, 0])
    assert out == [5, 0, 5, 0]


def test_a_loop_without_end_is_stopped() -> None:
    with pytest.raises(SimulationError, match="hasn't ended"):
        run_body("$loop: add.u32 %y, %y, 1; bra.uni $loop;", [1], most_blocks=1000)


def test_a_trap_names_the_thread() -> None:
    with pytest.raises(SimulationError, match=r"traps \(block 0, thread 1\)"):
        run_body("setp.eq.u32 %p0, %x, 0;\n@!%p0 bra $done;\ntrap;", [1, 0])


def test_ids_of_three_dimensions() -> None:
    """x is fastest, in blocks and in the grid, whatever the size of a batch."""
    text = (
        HEADER
        + """.visible .entry k(.param .u64 out) {
        .reg .b32 %r<20>; .reg .b64 %a;
        mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z;
        mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ctaid.y; mov.u32 %r5, %ctaid.z;
        mov.u32 %r6, %ntid.x; mov.u32 %r7, %ntid.y; mov.u32 %r8, %ntid.z;
        mov.u32 %r9, %nctaid.x; mov.u32 %r10, %nctaid.y;
        mad.lo.u32 %r11, %r2, %r7, %r1; mad.lo.u32 %r11, %r11, %r6, %r0;
        mad.lo.u32 %r12, %r5, %r10, %r4; mad.lo.u32 %r12, %r12, %r9, %r3;
        mul.lo.u32 %r13, %r6, %r7; mul.lo.u32 %r13, %r13, %r8;
        mad.lo.u32 %r13, %r12, %r13, %r11;
        ld.param.b64 %a, [out]; mad.wide.u32 %a, %r13, 4, %a;
        mad.lo.u32 %r14, %r3, 10, %r0; mad.lo.u32 %r14, %r5, 1000, %r14;
        st.global.b32 [%a], %r14; ret; }"""
    )
    want = [
        1000 * bz + 10 * bx + tx
        for bz in range(2)
        for _ in range(3)
        for bx in range(4)
        for _ in range(6)
        for tx in range(5)
    ]
    for batch in (1, 100, 1 << 18):
        out = np.zeros(24 * 30, np.uint32)
        run_ptx(text, [out], PtxLaunch((4, 3, 2), (5, 2, 3), batch_threads=batch))
        assert out.tolist() == want


def test_a_register_that_was_never_written_is_noted() -> None:
    out, stats = run_body("add.u32 %y, %x, %r9;", [1, 2])
    assert out == [1, 2]
    assert stats.undefined == ["%r9 of 'k'"]


def test_a_text_that_runs_again_counts_anew() -> None:
    """Wrong: what one launch counted, or where its memory lay, is there in the next launch of the same text."""
    text = body_kernel("add.u32 %y, %x, 1;")
    counted: list[dict[str, int]] = []
    for more in (0, 0, 64):
        source, out = np.arange(4, dtype=np.uint32), np.zeros(4, np.uint32)
        stats = run_ptx(text, [source, out], PtxLaunch((1,), (4,), dynamic_shared=more))
        counted.append(dict(stats.instructions))
        assert out.tolist() == [1, 2, 3, 4]
    assert counted == [counted[0]] * 3
