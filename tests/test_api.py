"""The public API end to end: parse, compile, call, compare; and what it refuses."""

from __future__ import annotations

import threading

import ml_dtypes
import numpy as np
import pytest

import warpsmith as ws
from warpsmith.errors import ArgumentMismatch, UnknownTarget, UsageError
from warpsmith.runtime.dlpack import export

ADD = """HloModule m
f {
  p = f32[8,5] parameter(0)
  q = f32[8,5] parameter(1)
  ROOT s = f32[8,5] add(p, q)
}
ENTRY e {
  x = f32[8,5] parameter(0)
  y = f32[8,5] parameter(1)
  ROOT z = f32[8,5] fusion(x, y), kind=kLoop, calls=f
}
"""
SCALE = """HloModule m
f {
  p = f32[SIZE] parameter(0)
  c = f32[] constant(3)
  b = f32[SIZE] broadcast(c), dimensions={}
  ROOT s = f32[SIZE] multiply(p, b)
}
ENTRY e {
  x = f32[SIZE] parameter(0)
  ROOT z = f32[SIZE] fusion(x), kind=kLoop, calls=f
}
"""


def test_an_executable_gives_one_array_an_output() -> None:
    exe = ws.compile(ws.parse_hlo(ADD))
    x = np.arange(40, dtype=np.float32).reshape(8, 5)
    (z,) = exe(x, x)
    np.testing.assert_array_equal(z, x + x)
    (kernel,) = exe.kernels
    assert (kernel.fusion, kernel.emitter, kernel.host) == ("z", "loop", False)


def test_results_of_two_calls_are_apart() -> None:
    """A recycled buffer must never be one that a caller still holds."""
    exe = ws.compile(ws.parse_hlo(SCALE.replace("SIZE", "100000")))
    x = np.arange(100000, dtype=np.float32)
    first = exe(x)[0]
    kept = first.copy()
    second = exe(x + 1)[0]
    np.testing.assert_array_equal(first, kept)
    assert not np.shares_memory(first, second)


def test_out_is_written_in_place_aligned_or_not() -> None:
    exe = ws.compile(ws.parse_hlo(SCALE.replace("SIZE", "4194304")))
    x = np.arange(4194304, dtype=np.float32)
    room = np.zeros(4194304 + 16, np.float32)
    for offset in (0, 1, 4):  # element-aligned only, too: large results are streamed, which wants whole lines
        out = room[offset : offset + 4194304]
        (given,) = exe(x, out=out)
        assert given is out
        np.testing.assert_array_equal(out, x * 3)


def test_out_may_be_the_input() -> None:
    exe = ws.compile(ws.parse_hlo(SCALE.replace("SIZE", "1000")))
    x = np.arange(1000, dtype=np.float32)
    exe(x, out=x)
    np.testing.assert_array_equal(x, np.arange(1000, dtype=np.float32) * 3)


def test_strided_and_misaligned_arguments_are_taken() -> None:
    exe = ws.compile(ws.parse_hlo(SCALE.replace("SIZE", "1000")))
    wide = np.arange(2000, dtype=np.float32)
    np.testing.assert_array_equal(exe(wide[::2])[0], wide[::2] * 3)
    raw = np.zeros(4001, np.uint8)[1:].view(np.float32)
    raw[:] = wide[:1000]
    np.testing.assert_array_equal(exe(raw)[0], raw * 3)


def test_layouts_are_memory_orders_not_shapes() -> None:
    text = ADD.replace("[8,5]", "[8,5]{0,1}").replace("ROOT z = f32[8,5]{0,1}", "ROOT z = f32[8,5]{0,1}")
    exe = ws.compile(ws.parse_hlo(text))
    x = np.arange(40, dtype=np.float32).reshape(8, 5)
    (z,) = exe(x, np.asfortranarray(x))
    assert z.shape == (8, 5)
    assert z.flags.f_contiguous
    np.testing.assert_array_equal(z, x + x)


def test_dlpack_arguments_are_read_without_numpy_knowing_their_dtype() -> None:
    text = ADD.replace("f32", "bf16")
    exe = ws.compile(ws.parse_hlo(text))
    x = np.arange(40).reshape(8, 5).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(exe(export(x), x)[0], x + x)


def test_callers_in_several_threads_get_their_own_results() -> None:
    exe = ws.compile(ws.parse_hlo(SCALE.replace("SIZE", "300000")))
    wrong: list[int] = []

    def work(seed: int) -> None:
        x = np.full(300000, seed, np.float32)
        wrong.extend(int((exe(x)[0] != 3 * seed).sum()) for _ in range(10))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [0] * 40


def test_results_repeat_bit_for_bit() -> None:
    module = ws.parse_hlo(
        "HloModule m\nadd {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b)\n}\n"
        "ENTRY e {\n x = f32[1000,33] parameter(0)\n z = f32[] constant(0)\n"
        " ROOT r = f32[33] reduce(x, z), dimensions={0}, to_apply=add\n}\n"
    )
    x = np.random.default_rng(0).standard_normal((1000, 33)).astype(np.float32)
    first = ws.compile(module)(x)[0]
    for _ in range(3):
        np.testing.assert_array_equal(ws.compile(module)(x)[0], first)


MISTAKES = {
    "too few": ([np.zeros((8, 5), np.float32)], "takes 2 arrays, not 1"),
    "shape": ([np.zeros((5, 8), np.float32)] * 2, r"parameter 0 'x' is f32\[8,5\], but the array is float32\[5,8\]"),
    "dtype": ([np.zeros((8, 5))] * 2, r"parameter 0 'x' is f32\[8,5\], but the array is float64\[8,5\]"),
    "no array": (["zebra", "gnu"], "parameter 0"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_wrong_arguments_are_named(mistake: str) -> None:
    arguments, message = MISTAKES[mistake]
    exe = ws.compile(ws.parse_hlo(ADD))
    with pytest.raises(ArgumentMismatch, match=message):
        exe(*arguments)


def test_wrong_out_arrays_are_named() -> None:
    exe = ws.compile(ws.parse_hlo(ADD))
    x = np.zeros((8, 5), np.float32)
    with pytest.raises(ArgumentMismatch, match="output 0 is f32"):
        exe(x, x, out=np.zeros((8, 6), np.float32))
    with pytest.raises(ArgumentMismatch, match="`out` holds 2 arrays"):
        exe(x, x, out=[x.copy(), x.copy()])
    frozen = np.zeros((8, 5), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ArgumentMismatch, match="read-only"):
        exe(x, x, out=frozen)


def test_unknown_targets_modes_and_stages_say_what_is_near() -> None:
    module = ws.parse_hlo(ADD)
    with pytest.raises(UnknownTarget, match="sm_9"):
        ws.compile(module, "sm_9")
    with pytest.raises(UsageError) as caught:
        ws.compile(module, numerics="strikt")
    assert "strict" in str(caught.value)
    with pytest.raises(UsageError) as caught:
        ws.compile(module).artifact("ptx")
    assert "asm" in str(caught.value)


def test_trace_holds_the_ir_after_each_pass() -> None:
    exe = ws.compile(ws.parse_hlo(ADD), "sm_90", trace=True)
    names = [name for name, _ in exe.trace]
    assert names[0] == "emitted"
    assert names[-1] == "convert-to-llvm"
    texts = dict(exe.trace)
    assert "xla_gpu.loop" in texts["emitted"]
    assert "scf.if" in texts["lower-loops-to-scf"]
    assert "memref.load" in texts["lower-tensors"]
    assert "llvm.load" in texts["convert-to-llvm"]


def test_run_reports_a_match_and_its_numbers() -> None:
    report = ws.run(ws.parse_hlo(ADD), iterations=3, measure_copy=False)
    assert report.match
    assert report.bytes == 3 * 8 * 5 * 4
    assert report.iterations == 3
    assert report.max_ulp == 0


def test_a_gpu_executable_prints_but_does_not_run() -> None:
    exe = ws.compile(ws.parse_hlo(ADD), "sm_90")
    assert ".visible .entry main" in exe.artifact("ptx")
    with pytest.raises(ws.WarpsmithError, match="no CUDA driver"):
        exe(np.zeros((8, 5), np.float32), np.zeros((8, 5), np.float32))


@pytest.mark.parametrize(("name", "component"), [("c64", 4), ("c128", 8)])
def test_complex_arrays_need_a_components_alignment_alone(name: str, component: int) -> None:
    """numpy calls such arrays aligned: fields of a struct, slices of a buffer of bytes."""
    exe = ws.compile(
        ws.parse_hlo(f"HloModule m\nENTRY e {{\n  x = {name}[9] parameter(0)\n  ROOT y = {name}[9] add(x, x)\n}}\n")
    )
    dtype = np.dtype(f"c{component * 2}")
    room = np.zeros(64 * component, np.uint8)
    start = (-room.ctypes.data) % (2 * component) + component
    x = room[start : start + 9 * dtype.itemsize].view(dtype)
    assert x.flags.aligned
    assert x.ctypes.data % dtype.itemsize == component
    x[:] = np.arange(9) - 2j
    np.testing.assert_array_equal(exe(x)[0], 2 * x)


@pytest.mark.parametrize("method", ["__call__", "timed", "profiled"])
def test_every_way_to_call_counts_its_arguments(method: str) -> None:
    exe = ws.compile(ws.parse_hlo(ADD))
    with pytest.raises(ArgumentMismatch, match="takes 2 arrays, not 1"):
        getattr(exe, method)(np.zeros((8, 5), np.float32))


@pytest.mark.parametrize("donated", [2, 7, -1])
def test_only_an_argument_can_be_donated(donated: int) -> None:
    exe = ws.compile(ws.parse_hlo(ADD))
    x = np.ones((8, 5), np.float32)
    for out in (None, np.empty((8, 5), np.float32)):
        with pytest.raises(ArgumentMismatch, match=f"argument {donated} can't be donated"):
            exe(x, x, donate=[donated], out=out)
    np.testing.assert_array_equal(exe(x, x, donate=[0])[0], 2 * np.ones((8, 5)))


def test_a_kernel_may_read_none_of_the_parameters() -> None:
    text = "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT z = s32[4] iota(), iota_dimension=0\n}\n"
    np.testing.assert_array_equal(ws.compile(ws.parse_hlo(text))(np.zeros(4, np.float32))[0], np.arange(4))


def test_out_arrays_that_share_memory_are_refused() -> None:
    text = (
        "HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  y = f32[4] negate(x)\n  w = f32[4] abs(x)\n"
        "  ROOT t = (f32[4], f32[4]) tuple(y, w)\n}\n"
    )
    both = np.zeros(4, np.float32)
    with pytest.raises(ArgumentMismatch, match="shares memory"):
        ws.compile(ws.parse_hlo(text))(both, out=[both, both])


@pytest.mark.parametrize("seed", range(3))
def test_products_and_sums_agree_on_generated_input(seed: int) -> None:
    """Partial sums that overflow in another order are no error of a kernel."""
    text = (
        "HloModule m\nENTRY e {\n  x = f32[17,33] parameter(0)\n  y = f32[33,15] parameter(1)\n"
        "  ROOT w = f32[17,15] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n"
    )
    assert ws.run(ws.parse_hlo(text), seed=seed, iterations=1, measure_copy=False).match
