"""`out=`: results land in the caller's arrays, wherever these lie in memory."""

from __future__ import annotations

import numpy as np
import pytest

import warpsmith as ws
from warpsmith.errors import ArgumentMismatch

LARGE = 4 << 20  # elements: enough for stores that pass the caches by, which need aligned lines


def adder(size: int) -> ws.Executable:
    type = f"f32[{size}]"
    return ws.compile(
        ws.parse_hlo(
            f"HloModule m\nENTRY e {{\n%a = {type} parameter(0)\n%b = {type} parameter(1)\n"
            f"ROOT %r = {type} add(%a, %b)\n}}\n"
        )
    )


@pytest.fixture(scope="module")
def run() -> ws.Executable:
    return adder(1000)


def test_an_output_at_any_address(run: ws.Executable) -> None:
    a, b = np.arange(1000, dtype=np.float32), np.full(1000, 2, np.float32)
    room = np.full(1032, -1, np.float32)
    for start in range(17):
        room[:] = -1
        out = room[start : start + 1000]
        assert run(a, b, out=out)[0] is out
        np.testing.assert_array_equal(out, a + 2)
        assert (room[:start] == -1).all()
        assert (room[start + 1000 :] == -1).all()


def test_a_large_output_off_a_cache_line() -> None:
    run = adder(LARGE)
    a, b = np.arange(LARGE, dtype=np.float32), np.ones(LARGE, np.float32)
    room = np.zeros(LARGE + 16, np.float32)
    for start in (1, 4):
        out = room[start : start + LARGE]
        run(a, b, out=out)
        np.testing.assert_array_equal(out, a + 1)


def test_a_small_result_of_a_large_kernel() -> None:
    """Large kernels stream what is large; a small result lies wherever numpy puts it, not on a line of its own."""
    text = """
        HloModule m
        add { %a = f32[] parameter(0) %b = f32[] parameter(1) ROOT %s = f32[] add(%a, %b) }
        ENTRY e {
          %x = f32[8192,1024] parameter(0)
          %z = f32[] constant(0)
          ROOT %r = f32[1024] reduce(%x, %z), dimensions={0}, to_apply=add
        }
    """
    run = ws.compile(ws.parse_hlo(text))
    x = np.ones((8192, 1024), np.float32)
    room = np.zeros(1040, np.float32)
    for start in range(8):
        np.testing.assert_array_equal(run(x)[0], np.full(1024, 8192))
        run(x, out=room[start : start + 1024])
        np.testing.assert_array_equal(room[start : start + 1024], np.full(1024, 8192))


def test_an_output_that_is_an_input(run: ws.Executable) -> None:
    a, b = np.arange(1000, dtype=np.float32), np.full(1000, 3, np.float32)
    run(a, b, out=a)
    np.testing.assert_array_equal(a, np.arange(1000) + 3)


def test_an_output_that_overlaps_an_input(run: ws.Executable) -> None:
    room = np.arange(1004, dtype=np.float32)
    b = np.full(1000, 3, np.float32)
    wanted = room[:1000] + 3
    run(room[:1000], b, out=room[4:])
    np.testing.assert_array_equal(room[4:], wanted)


def test_an_output_that_is_not_contiguous(run: ws.Executable) -> None:
    a, b = np.arange(1000, dtype=np.float32), np.full(1000, 3, np.float32)
    room = np.zeros(2000, np.float32)
    run(a, b, out=room[::2])
    np.testing.assert_array_equal(room[::2], a + 3)
    assert (room[1::2] == 0).all()


def test_a_read_only_output_is_refused(run: ws.Executable) -> None:
    a = np.arange(1000, dtype=np.float32)
    out = np.zeros(1000, np.float32)
    out.flags.writeable = False
    with pytest.raises(ArgumentMismatch, match="read-only"):
        run(a, a, out=out)
