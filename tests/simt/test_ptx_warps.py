"""Instructions by which the 32 threads of a warp meet."""

from __future__ import annotations

import pytest
from simt.ptx_runner import run_body

X = list(range(100, 164))
SHUFFLES = {
    "down.b32 %y, %x, 16, 31": lambda i: i + 16 if i % 32 < 16 else i,
    "up.b32 %y, %x, 3, 0": lambda i: i - 3 if i % 32 >= 3 else i,
    "bfly.b32 %y, %x, 5, 31": lambda i: i ^ 5,
    "idx.b32 %y, %x, 7, 31": lambda i: i // 32 * 32 + 7,
    "down.b32 %y, %x, 1, 0x1C03": lambda i: i + 1 if i % 4 < 3 else i,
    "idx.b32 %y, %x, 1, 0x181F": lambda i: i // 8 * 8 + 1,
}


@pytest.mark.parametrize("form", SHUFFLES)
def test_shuffles_read_the_right_lane(form: str) -> None:
    """Warps don't mix; segments of a warp don't either."""
    out, stats = run_body(f"shfl.sync.{form}, -1;", X)
    assert out == [X[SHUFFLES[form](i)] for i in range(64)]
    assert not stats.findings


def test_a_shuffle_says_whether_its_lane_was_in_range() -> None:
    out, _ = run_body("shfl.sync.down.b32 %r0|%p0, %x, 30, 31, -1;\nselp.b32 %y, 1, 0, %p0;", X)
    assert out == ([1, 1] + [0] * 30) * 2


def test_a_shuffle_from_a_lane_that_is_elsewhere_is_a_finding() -> None:
    _, stats = run_body("setp.lt.u32 %p0, %i, 8;\n@!%p0 bra $done;\nshfl.sync.down.b32 %y, %x, 4, 31, 0xFF;", X[:32])
    (found,) = stats.findings
    assert (found.code, found.block, found.thread) == ("shuffle-divergence", (0, 0, 0), (4, 0, 0))
    assert "takes a value from a lane that doesn't run it" in found.message


def test_an_elected_lane_needs_the_whole_warp() -> None:
    """The mask names 32 lanes, of which 8 are there."""
    _, stats = run_body("setp.ge.u32 %p0, %i, 8;\n@%p0 bra $done;\nelect.sync %y|%p1, -1;", X[:32])
    (found,) = stats.findings
    assert (found.code, found.thread, found.count) == ("shuffle-divergence", (8, 0, 0), 24)


def test_a_sum_over_a_warp() -> None:
    """Five shuffles and adds leave the sum in the first lane, as every reduction has it."""
    steps = "\n".join(f"shfl.sync.down.b32 %r0, %x, {d}, 31, -1;\nadd.u32 %x, %x, %r0;" for d in (16, 8, 4, 2, 1))
    out, _ = run_body(steps + "\nmov.b32 %y, %x;", X)
    assert (out[0], out[32]) == (sum(X[:32]), sum(X[32:]))


VOTES = {
    "vote.sync.ballot.b32 %y, %p0, -1;": [0b10101010101010101010101010101010] * 32,
    "vote.sync.all.pred %p1, %p0, -1; selp.b32 %y, 1, 0, %p1;": [0] * 32,
    "vote.sync.any.pred %p1, %p0, -1; selp.b32 %y, 1, 0, %p1;": [1] * 32,
    "vote.sync.uni.pred %p1, !%p0, -1; selp.b32 %y, 1, 0, %p1;": [0] * 32,
    "activemask.b32 %y;": [0xFFFFFFFF] * 32,
    "redux.sync.add.u32 %y, %x, -1;": [sum(range(32))] * 32,
    "redux.sync.max.s32 %y, %x, -1;": [31] * 32,
    "redux.sync.xor.b32 %y, %x, -1;": [0] * 32,
    "match.any.sync.b32 %y, %r0, -1;": [0x55555555 << (i % 2) for i in range(32)],
    "match.all.sync.b32 %y|%p1, %r0, -1;": [0] * 32,
    "elect.sync %y|%p1, -1;": [0] * 32,
    "mov.u32 %y, %laneid;": list(range(32)),
    "mov.u32 %y, %lanemask_lt;": [(1 << i) - 1 for i in range(32)],
    "mov.u32 %y, %lanemask_ge;": [0xFFFFFFFF ^ ((1 << i) - 1) for i in range(32)],
}


@pytest.mark.parametrize("instruction", VOTES)
def test_a_whole_warp(instruction: str) -> None:
    """%p0 holds in odd lanes; %r0 is the lane's parity."""
    before = "and.b32 %r0, %x, 1;\nsetp.ne.u32 %p0, %r0, 0;\n"
    assert run_body(before + instruction, list(range(32)))[0] == VOTES[instruction]


def test_only_active_lanes_vote() -> None:
    """After a branch the ballot and the reduction are of the lanes that took it; so too in a warp that isn't full."""
    body = """
        setp.ge.u32 %p0, %i, 4;
        @%p0 bra $done;
        activemask.b32 %r0;
        redux.sync.add.u32 %r1, %x, 15;
        mad.lo.u32 %y, %r1, 1000, %r0;
        """
    assert run_body(body, [1, 2, 3, 4, 5, 6])[0] == [10015] * 4 + [0, 0]
    assert run_body("vote.sync.ballot.b32 %y, 1, 63;", [0] * 12, block=6)[0] == [0b111111] * 12


def test_lanes_are_counted_in_each_block_from_its_start() -> None:
    """48 threads a block: the second warp of each block has 16 lanes, and no block's warp reaches into the next."""
    out, _ = run_body("mov.u32 %r0, %laneid; mov.u32 %r1, %warpid; mad.lo.u32 %y, %r1, 100, %r0;", [0] * 96, block=48)
    assert out == [(i % 48 // 32) * 100 + i % 48 % 32 for i in range(96)]
    out, _ = run_body("shfl.sync.bfly.b32 %y, %x, 1, 31, -1;", list(range(96)), block=48)
    assert out == [i ^ 1 for i in range(96)]
