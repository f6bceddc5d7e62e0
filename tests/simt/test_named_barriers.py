"""Barriers of some of a block's warps: whom they order, against vector clocks; and meetings that can't work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simt.matrix_kernels import Run, ir_kernel, ptx_kernel, run_ir, run_ptx_text

from warpsmith.errors import SimulationError

MACHINES = ("ir", "ptx")
WARPS = 4
RACES = {"race", "double-write", "same-value-write"}


@dataclass(frozen=True)
class Step:
    """Some warps read or write an element (their first `lanes` lanes), or meet at a barrier."""

    what: str
    warps: tuple[int, ...]
    element: int = 0
    lanes: int = 1
    barrier: int = 0  # 0: one that no other step has

    @property
    def mask(self) -> int:
        return sum(1 << warp for warp in self.warps)


def _ptx(steps: Sequence[Step]) -> str:
    lines: list[str] = []
    for i, step in enumerate(steps):
        doing = {
            "read": f"ld.shared.b32 %r3, [%tile+{4 * step.element}];",
            "write": f"st.shared.b32 [%tile+{4 * step.element}], {i};",
            "meet": f"bar.sync {step.barrier or 1 + i % 15}, {32 * len(step.warps)};",
            "warp": "bar.warp.sync -1;",
            "block": "bar.sync 0;",
        }[step.what]
        lanes = step.lanes if step.what in ("read", "write") else 32
        lines.append(
            f"shr.b32 %r0, {step.mask}, %r9; and.b32 %r0, %r0, 1; setp.lt.u32 %p1, %lane, {lanes}; "
            f"setp.eq.and.u32 %p0, %r0, 1, %p1;\n@!%p0 bra $s{i};\n{doing}\n$s{i}:"
        )
    return ptx_kernel("shr.b32 %r9, %t, 5;\n" + "\n".join(lines))


def _ir(steps: Sequence[Step]) -> str:
    lines = ["%warp = arith.divui %t, %c32 : index"]
    for i, step in enumerate(steps):
        doing = {
            "read": f"%v{i} = memref.load %tile[%e{i}] : memref<1024xf32, 3>",
            "write": f"memref.store %x{i}, %tile[%e{i}] : memref<1024xf32, 3>",
            "meet": f'"nvvm.barrier"(%k{i}, %n{i}) : (i32, i32) -> ()',
            "warp": f'"nvvm.bar.warp.sync"(%n{i}) : (i32) -> ()',
            "block": "gpu.barrier",
        }[step.what]
        lanes = step.lanes if step.what in ("read", "write") else 32
        lines.append(f"""
  %m{i} = arith.constant {step.mask} : index
  %e{i} = arith.constant {step.element} : index
  %x{i} = arith.constant {i}.0 : f32
  %k{i} = arith.constant {step.barrier or 1 + i % 15} : i32
  %n{i} = arith.constant {32 * len(step.warps) if step.what == "meet" else -1} : i32
  %l{i} = arith.constant {lanes} : index
  %a{i} = arith.shrui %m{i}, %warp : index
  %b{i} = arith.andi %a{i}, %c1 : index
  %p{i} = arith.cmpi eq, %b{i}, %c1 : index
  %q{i} = arith.cmpi ult, %lane, %l{i} : index
  %r{i} = arith.andi %p{i}, %q{i} : i1
  scf.if %r{i} {{
    {doing}
  }}""")
    return ir_kernel("\n".join(lines), threads=32 * WARPS, element="f32", outputs=1)


ALL = tuple(range(WARPS))
START = (Step("write", (0,), 0), Step("write", (0,), 1), Step("block", ALL))


def _run(machine: str, steps: Sequence[Step]) -> list[Any]:
    """The races."""
    whole = [*START, *steps]
    if machine == "ir":
        run = run_ir(_ir(whole), np.zeros(1024, np.float32))
    else:
        run = run_ptx_text(_ptx(whole), np.zeros(4, np.float32), np.zeros(1, np.float32), threads=32 * WARPS)
    return [each for each in run.findings if each.code != "unwritten-output"]


def _first_race(steps: Sequence[Step]) -> int | None:
    """By vector clocks, one a thread: the first step with an access that isn't ordered after an earlier one."""
    threads = [(warp, lane) for warp in range(WARPS) for lane in range(2)]
    clocks = {thread: dict.fromkeys(threads, 0) for thread in threads}
    for thread in threads:
        clocks[thread][thread] = 1
    past: list[tuple[tuple[int, int], int, str, int]] = []
    for i, step in enumerate(steps):
        if step.what in ("read", "write"):
            here = [(warp, lane) for warp in step.warps for lane in range(step.lanes)]
            for thread in here:
                for other, time, what, element in past:
                    conflict = element == step.element and other != thread and "write" in (what, step.what)
                    if conflict and clocks[thread][other] < time:
                        return i
                past.append((thread, clocks[thread][thread], step.what, step.element))
            continue
        meetings = [[warp] for warp in step.warps] if step.what == "warp" else [list(step.warps)]
        for meeting in meetings:
            met = [thread for thread in threads if thread[0] in meeting]
            joint = {thread: max(clocks[each][thread] for each in met) for thread in threads}
            for thread in met:
                clocks[thread] = dict(joint)
            for thread in met:
                clocks[thread][thread] += 1
    return None


def _meet(*warps: int) -> Step:
    return Step("meet", warps)


CASES: dict[str, tuple[tuple[Step, ...], bool]] = {
    "two that met": ((Step("write", (0,)), _meet(0, 1), Step("read", (1,))), False),
    "one that didn't meet them": ((Step("write", (0,)), _meet(0, 1), Step("read", (2,))), True),
    "a chain": ((Step("write", (0,)), _meet(0, 1), _meet(1, 2), Step("read", (2,))), False),
    "a chain in the wrong order": ((Step("write", (0,)), _meet(1, 2), _meet(0, 1), Step("read", (2,))), True),
    "a write after the meeting": ((_meet(0, 1), Step("write", (0,)), Step("read", (1,))), True),
    "readers that met the writer": ((Step("read", (0, 1)), _meet(0, 1), Step("write", (0,))), False),
    "one reader too many": ((Step("read", (0, 1, 2)), _meet(0, 1), Step("write", (0,))), True),
    "readers that meet the writer one by one": (
        (Step("read", (0,)), _meet(0, 2), Step("read", (1,)), _meet(1, 2), Step("write", (2,))),
        False,
    ),
    "readers of whom one met the writer too early": (
        (Step("read", (0,)), _meet(0, 2), Step("read", (0,)), _meet(1, 2), Step("write", (2,))),
        True,
    ),
    "lanes of a warp that met others": ((Step("write", (1,)), _meet(1, 3), Step("read", (1,), lanes=2)), False),
    "a block's barrier between": ((Step("read", ALL), Step("block", ALL), Step("write", (3,))), False),
    "a warp's barrier and a meeting": (
        (Step("read", (0, 1), lanes=2), Step("warp", (0, 1)), _meet(0, 1), Step("write", (0,))),
        False,
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("machine", MACHINES)
def test_who_is_ordered(machine: str, case: str) -> None:
    steps, racy = CASES[case]
    assert bool(_run(machine, steps)) == racy
    assert (_first_race(steps) is not None) == racy


_SOME = st.sets(st.sampled_from(ALL), min_size=1).map(lambda warps: tuple(sorted(warps)))
_ACCESSES = st.one_of(
    st.builds(Step, st.just("read"), _SOME, st.integers(0, 1), st.integers(1, 2)),
    st.builds(Step, st.just("write"), st.sampled_from(ALL).map(lambda warp: (warp,)), st.integers(0, 1)),
)
_BARRIERS = st.one_of(
    st.builds(Step, st.sampled_from(["meet", "meet", "warp"]), _SOME),
    st.just(Step("block", ALL)),
)


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
@given(steps=st.lists(st.one_of(_ACCESSES, _BARRIERS, _BARRIERS), max_size=14))
@settings(max_examples=120, deadline=None)
def test_races_are_those_of_vector_clocks(machine: str, steps: list[Step]) -> None:
    """A race is found where there is one, at the first access that has one, and else none."""
    first = _first_race(steps)
    found = _run(machine, steps)
    assert bool(found) == (first is not None)
    if first is not None:
        site = found[0].site
        op = {"read": ("ld.shared.b32", "memref.load"), "write": ("st.shared.b32", "memref.store")}[steps[first].what]
        assert site.op in op
        if machine == "ptx":
            text = _ptx([*START, *steps]).splitlines()
            assert text[site.line].startswith(f"$s{first + len(START)}:")


# ---------------------------------------------------------------------------------------- barriers that are used again
def _first_mixed(steps: Sequence[Step]) -> int | None:
    """The first meeting with a warp that knows nothing of the last one at the same barrier, by sets of meetings."""
    known: list[set[int]] = [set() for _ in ALL]
    last: dict[int, int] = {}
    for i, step in enumerate(steps):
        if step.what == "meet":
            before = last.get(step.barrier)
            if before is not None and any(before not in known[warp] for warp in step.warps):
                return i
            last[step.barrier] = i
        joint = set[int]().union({i}, *(known[warp] for warp in step.warps))
        for warp in step.warps:
            known[warp] = joint
    return None


def _at(barrier: int, *warps: int) -> Step:
    return Step("meet", warps, barrier=barrier)


REUSED: dict[str, tuple[tuple[Step, ...], bool]] = {
    "by the same warps": ((_at(1, 0, 1), _at(1, 0, 1)), False),
    "by others": ((_at(1, 0, 1), _at(1, 2, 3)), True),
    "by others who met one of them": ((_at(1, 0, 1), _at(2, 1, 2), _at(3, 2, 3), _at(1, 2, 3)), False),
    "by others of whom one met one of them": ((_at(1, 0, 1), _at(2, 1, 2), _at(1, 2, 3)), True),
    "by others after the block's": ((_at(1, 0, 1), Step("block", ALL), _at(1, 2, 3)), False),
    "another one": ((_at(1, 0, 1), _at(2, 2, 3)), False),
}


@pytest.mark.parametrize("case", REUSED)
@pytest.mark.parametrize("machine", MACHINES)
def test_a_barrier_is_used_again(machine: str, case: str) -> None:
    """Warps that come early to a barrier's second use would be counted in its first."""
    steps, mixes = REUSED[case]
    found = _run(machine, steps)
    assert [each.code for each in found] == ["barrier-members"] * mixes
    assert (_first_mixed(steps) is not None) == mixes
    if mixes:
        assert found[0].thread == (64 if case == "by others" else 96, 0, 0)
        assert "other warps met at barrier 1 before, and nothing that these waited for came after" in found[0].message


_REUSES = st.builds(Step, st.just("meet"), _SOME, barrier=st.integers(1, 3))


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
@given(steps=st.lists(st.one_of(_REUSES, _REUSES, _REUSES, st.just(Step("block", ALL))), max_size=12))
@settings(max_examples=100, deadline=None)
def test_barriers_that_are_used_too_early_are_found(machine: str, steps: list[Step]) -> None:
    """All of a block at a named barrier are the block's, whose number isn't looked at."""
    steps = [step for step in steps if step.what == "block" or step.warps != ALL]
    assert bool(_run(machine, steps)) == (_first_mixed(steps) is not None)


# ----------------------------------------------------------------------------------------------- meetings that hang
def _meeting(machine: str, number: str, count: int, warps: int = WARPS, lanes: int = 32) -> Run:
    """The first `warps` warps (their first lanes) reach a barrier: 1 or 16 as `number` says, or each pair its own."""
    if machine == "ir":
        text = f"""
  %warp = arith.divui %t, %c32 : index
  %nw = arith.constant {warps} : index
  %nl = arith.constant {lanes} : index
  %pair = arith.divui %warp, %c2 : index
  %one = arith.addi %pair, %c1 : index
  %id = arith.index_cast {"%one" if number == "pair" else "%c16" if number == "16" else "%c1"} : index to i32
  %n = arith.constant {count} : i32
  %p = arith.cmpi ult, %warp, %nw : index
  %q = arith.cmpi ult, %lane, %nl : index
  %r = arith.andi %p, %q : i1
  scf.if %r {{
    "nvvm.barrier"(%id, %n) : (i32, i32) -> ()
  }}"""
        return run_ir(ir_kernel(text, threads=32 * WARPS, element="f32", outputs=1), np.zeros(1024, np.float32))
    body = f"""
    shr.b32 %r9, %t, 5;
    shr.b32 %r8, %r9, 1;
    add.u32 %r8, %r8, 1;
    mov.b32 %r7, {"%r8" if number == "pair" else "16" if number == "16" else "1"};
    setp.lt.u32 %p1, %lane, {lanes};
    setp.lt.and.u32 %p0, %r9, {warps}, %p1;
    @!%p0 bra $end;
    bar.sync %r7, {count};
$end:"""
    return run_ptx_text(ptx_kernel(body), np.zeros(4, np.float32), np.zeros(1, np.float32), threads=32 * WARPS)


@pytest.mark.parametrize("machine", MACHINES)
def test_each_pair_of_warps_has_a_barrier(machine: str) -> None:
    run = _meeting(machine, "pair", 64)
    assert run.codes == ["unwritten-output"]
    assert run.counters is not None
    assert run.counters.barriers == WARPS


# which warps and lanes reach a barrier of how many threads -> code, what is said, the thread that is named, how many
HANGING = {
    "too few": (
        ("one", 96, 2, 32),
        ("barrier-divergence", "barrier 1 waits for 96 threads of the block, 64 are", 64, 32),
    ),
    "one pair isn't whole": (("pair", 64, 3, 32), ("barrier-divergence", "barrier 2 waits for 64 threads", 96, 32)),
    "half a warp": (("one", 32, 1, 16), ("barrier-divergence", "some lanes of a warp wait here", 16, 16)),
    "no whole warps": (("one", 48, 2, 32), ("barrier-members", "barrier 1 waits for 48 threads; it counts", 0, 64)),
    "nobody": (("one", 0, 2, 32), ("barrier-members", "barrier 1 waits for 0 threads; it counts whole warps", 0, 64)),
    "no such barrier": (
        ("16", 64, 2, 32),
        ("barrier-members", "barrier 16: a block has barriers 0 to 15", 0, 64),
    ),
    "too many": (("one", 64, 4, 32), ("barrier-members", "128 threads meet at barrier 1, which waits for 64", 0, 128)),
}


@pytest.mark.parametrize("case", HANGING)
@pytest.mark.parametrize("machine", MACHINES)
def test_meetings_that_can_not_work(machine: str, case: str) -> None:
    (number, count, warps, lanes), (code, words, thread, many) = HANGING[case]
    found = _meeting(machine, number, count, warps, lanes).findings[0]
    assert (found.code, found.thread, found.count) == (code, (thread, 0, 0), many)
    assert words in found.message
    assert found.site is not None


@pytest.mark.parametrize("machine", MACHINES)
def test_a_count_of_the_whole_block_is_the_blocks_barrier(machine: str) -> None:
    steps = (Step("read", ALL), Step("meet", ALL), Step("write", (3,)))
    assert _run(machine, steps) == []


def test_ptx_has_sixteen_barriers_a_block() -> None:
    kernel = ptx_kernel("bar.sync 16;")
    with pytest.raises(SimulationError, match="barrier 16: a block has barriers 0 to 15"):
        run_ptx_text(kernel, np.zeros(4, np.float32), np.zeros(1, np.float32))
