"""`out=`: results land in the caller's arrays, wherever these lie in memory."""

from __future__ import annotations

import numpy as np
import pytest

import warpsmith as ws
from warpsmith.errors import ArgumentMismatch
from warpsmith.runtime import runner

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


def test_a_notebook_shows_what_an_executable_is(run: ws.Executable) -> None:
    """An address in memory says nothing."""
    assert repr(run) == "<executable for cpu: r>"


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


SUMS = """HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[400000] parameter(0)
  i = s32[100,1] parameter(1)
  u = f32[100] parameter(2)
  ROOT r = f32[400000] scatter(x, i, u), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
}"""
TURNED = """HloModule m, entry_computation_layout={(f32[512,1024]{0,1}, f32[512,3]{0,1}, s32[])->f32[512,1024]{0,1}}
ENTRY e {
  x = f32[512,1024]{0,1} parameter(0)
  u = f32[512,3]{0,1} parameter(1)
  i = s32[] parameter(2)
  z = s32[] constant(0)
  ROOT r = f32[512,1024]{0,1} dynamic-update-slice(x, u, z, i)
}"""
CHAIN = """HloModule m
ENTRY e {
  x = f32[1024,512] parameter(0)
  u = f32[3,512] parameter(1)
  i = s32[] parameter(2)
  z = s32[] constant(0)
  j = s32[] constant(40)
  r = f32[1024,512] dynamic-update-slice(x, u, i, z)
  ROOT s = f32[1024,512] dynamic-update-slice(r, u, j, z)
}"""


def arguments_for(run: ws.Executable) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    specs = [run.plan.buffers[b] for b in run.plan.parameters]
    return [
        rng.standard_normal(s.dims, np.float32) if s.dtype.is_float else rng.integers(0, 500, s.dims, np.int32)
        for s in specs
    ]


@pytest.mark.parametrize("text", [SUMS, TURNED, CHAIN], ids=["scatter", "other layout", "two updates"])
@pytest.mark.parametrize("start", [0, 1], ids=["aligned", "anywhere"])
def test_an_update_copies_its_argument_once_into_the_output(
    text: str, start: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong: the argument is copied to memory of the pool, updated there, and copied again to where it belongs."""
    run = ws.compile(ws.parse_hlo(text))
    arguments = arguments_for(run)
    (wanted,) = run(*arguments)
    before = arguments[0].copy()
    copies: list[int] = []
    copy, kernel_copy = np.copyto, runner.copied

    def counted(array: np.ndarray, into: np.ndarray | None = None) -> np.ndarray:
        copies.append(array.nbytes)
        with pytest.MonkeyPatch.context() as inside:
            inside.setattr(np, "copyto", copy)
            return kernel_copy(array, into)

    def counted_here(target: np.ndarray, source: np.ndarray) -> None:
        copies.append(target.nbytes)
        copy(target, source)

    room = np.zeros(wanted.size + 64, np.float32)
    first = -room.ctypes.data // 4 % 16 + start
    memory = room[first : first + wanted.size]
    out = memory.reshape(wanted.shape[::-1]).T if text == TURNED else memory.reshape(wanted.shape)
    monkeypatch.setattr(np, "copyto", counted_here)
    monkeypatch.setattr(runner, "copied", counted)
    run(*arguments, out=out)
    assert len(copies) == 1 or start
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_array_equal(arguments[0], before)


SLOTS = """HloModule m
ENTRY e {
  x = f32[1024,512] parameter(0)
  y = f32[1024,512] parameter(1)
  u = f32[3,512] parameter(2)
  i = s32[] parameter(3)
  z = s32[] constant(0)
  r = f32[1024,512] dynamic-update-slice(x, u, i, z)
  s = f32[1024,512] dynamic-update-slice(y, u, i, z)
  ROOT t = (f32[1024,512], f32[1024,512]) tuple(r, s)
}"""


@pytest.fixture(scope="module")
def slots() -> ws.Executable:
    return ws.compile(ws.parse_hlo(SLOTS))


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("donate", [(), (0,), (1,), (0, 1)])
def test_outputs_that_are_the_updated_arguments(slots: ws.Executable, donate: tuple[int, ...], swapped: bool) -> None:
    """Wrong: a result that is in its place already is lost when the other one is put into its own."""
    x, y = np.full((1024, 512), 1, np.float32), np.full((1024, 512), 2, np.float32)
    u = np.full((3, 512), 9, np.float32)
    out = [y, x] if swapped else [x, y]
    first, second = slots(x, y, u, np.int32(5), out=out, donate=donate)
    assert (first is out[0], second is out[1]) == (True, True)
    for found, before in ((first, 1), (second, 2)):
        wanted = np.full((1024, 512), before, np.float32)
        wanted[5:8] = 9
        np.testing.assert_array_equal(found, wanted)


def test_an_update_of_the_argument_that_is_the_output_copies_nothing(
    slots: ws.Executable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`out=` gives the memory away as `donate=` does: the update happens there."""
    copied: list[int] = []
    monkeypatch.setattr(np, "copyto", lambda target, source: copied.append(target.nbytes))
    x, y = np.zeros((1024, 512), np.float32), np.zeros((1024, 512), np.float32)
    u = np.ones((3, 512), np.float32)
    slots(x, y, u, np.int32(1020), out=[x, y])
    assert copied == []
    assert [x.sum(), y.sum()] == [3 * 512, 3 * 512]
