"""Kernels loaded through the cache and run over the pool; tables; the roof measured with them."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from warpsmith.backends.llvm import isolate as llvm_isolate
from warpsmith.errors import InternalError, LoweringError, RuntimeFailure
from warpsmith.runtime import bandwidth
from warpsmith.runtime.buffers import default_pool, pointer
from warpsmith.runtime.cache import Cache
from warpsmith.runtime.copy_kernel import copy_ir
from warpsmith.runtime.cpu_executable import ArgSpec, CpuKernel, load_kernels

GROUP = 32


def scale(factor: int) -> str:
    """A kernel whose workgroup multiplies `GROUP` s32 by a factor."""
    return f"""
define void @scale(ptr %argv, i64 %begin, i64 %end) {{
entry:
  %q = getelementptr ptr, ptr %argv, i64 1
  %in = load ptr, ptr %argv
  %out = load ptr, ptr %q
  br label %loop
loop:
  %i = phi i64 [%begin, %entry], [%next, %loop]
  %a = getelementptr <{GROUP} x i32>, ptr %in, i64 %i
  %b = getelementptr <{GROUP} x i32>, ptr %out, i64 %i
  %x = load <{GROUP} x i32>, ptr %a, align 4
  %y = mul <{GROUP} x i32> %x, splat (i32 {factor})
  store <{GROUP} x i32> %y, ptr %b, align 4
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %exit
exit:
  ret void
}}
"""


LOOKUP = """
@calls = global i32 0
define void @lookup_setup(ptr %tables, i64 %begin, i64 %end) {
entry:
  %table = load ptr, ptr %tables
  %before = atomicrmw add ptr @calls, i32 1 seq_cst
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %t = trunc i64 %i to i8
  %v = xor i8 %t, 255
  %p = getelementptr i8, ptr %table, i64 %i
  store i8 %v, ptr %p
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 256
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
define void @lookup(ptr %argv, i64 %begin, i64 %end) {
entry:
  %q = getelementptr ptr, ptr %argv, i64 1
  %t = getelementptr ptr, ptr %argv, i64 2
  %in = load ptr, ptr %argv
  %out = load ptr, ptr %q
  %table = load ptr, ptr %t
  br label %loop
loop:
  %i = phi i64 [%begin, %entry], [%next, %loop]
  %a = getelementptr i8, ptr %in, i64 %i
  %x = load i8, ptr %a
  %z = zext i8 %x to i64
  %c = getelementptr i8, ptr %table, i64 %z
  %y = load i8, ptr %c
  %b = getelementptr i8, ptr %out, i64 %i
  store i8 %y, ptr %b
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
"""


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def run(kernel: CpuKernel, x: np.ndarray) -> np.ndarray:
    y = default_pool().empty(x.shape, x.dtype)
    kernel.launch([pointer(x), pointer(y)])
    return y


@pytest.mark.parametrize("groups", [1, 2, 7, 5000])
@pytest.mark.parametrize("threads", [None, 1])
def test_a_kernel_runs_all_its_workgroups(groups: int, threads: int | None, cache: Cache) -> None:
    x = np.arange(groups * GROUP, dtype=np.int32)
    (code,) = load_kernels([scale(3)], cache=cache)
    kernel = CpuKernel(code, "scale", groups, [ArgSpec(4), ArgSpec(4)], threads=threads)
    np.testing.assert_array_equal(run(kernel, x), x * 3)


def test_no_workgroups_is_no_work(cache: Cache) -> None:
    (code,) = load_kernels([LOOKUP], cache=cache)
    x = np.zeros(0, np.uint8)
    CpuKernel(code, "lookup_setup", 0, [ArgSpec(), ArgSpec()])
    assert run(CpuKernel(load_kernels([scale(2)], cache=cache)[0], "scale", 0, [ArgSpec(), ArgSpec()]), x).size == 0


def test_kernels_of_a_plan_run_in_order(cache: Cache) -> None:
    codes = load_kernels([scale(3), scale(5)], cache=cache)
    first, second = (CpuKernel(code, "scale", 100, [ArgSpec(), ArgSpec()]) for code in codes)
    x = np.arange(100 * GROUP, dtype=np.int32)
    middle, out = np.zeros_like(x), np.zeros_like(x)
    first.launch([pointer(x), pointer(middle)])
    second.launch([pointer(middle), pointer(out)])
    np.testing.assert_array_equal(out, x * 15)


def test_a_table_is_filled_once_for_all_callers(cache: Cache) -> None:
    (code,) = load_kernels([LOOKUP], cache=cache)
    kernel = CpuKernel(code, "lookup", 1000, [ArgSpec(), ArgSpec()], table_bytes=[256])
    x = np.random.default_rng(0).integers(0, 256, 1000).astype(np.uint8)
    wrong: list[int] = []

    def caller() -> None:
        for _ in range(20):
            y = np.zeros_like(x)
            kernel.launch([pointer(x), pointer(y)])
            wrong.append(int((y != 255 - x).sum()))

    threads = [threading.Thread(target=caller) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(wrong) == {0}
    calls = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_int32 * 1).from_address(code.address("calls")))
    assert calls[0] == 1


def test_a_pointer_that_breaks_the_codes_claim_is_refused_before_the_run(cache: Cache) -> None:
    (code,) = load_kernels([scale(1)], cache=cache)
    kernel = CpuKernel(code, "scale", 1, [ArgSpec(), ArgSpec(64, "output 0")])
    room = np.zeros(GROUP * 4 + 128, np.uint8)
    base = pointer(room) + -pointer(room) % 64
    kernel.launch([pointer(room), base])
    with pytest.raises(RuntimeFailure, match=r"output 0.*multiple of 64"):
        kernel.launch([pointer(room), base + 4])


def test_a_missing_function_is_an_error_at_once(cache: Cache) -> None:
    (code,) = load_kernels([scale(1)], cache=cache)
    with pytest.raises(LoweringError, match="gelu"):
        CpuKernel(code, "gelu", 1, [])


def test_the_second_load_compiles_nothing(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    load_kernels([scale(2), scale(3)], cache=cache)

    def refuse(batch: llvm_isolate.Batch, text: str) -> None:
        pytest.fail("compiled again")

    monkeypatch.setattr(llvm_isolate.Batch, "add", refuse)
    x = np.arange(GROUP, dtype=np.int32)
    for factor, code in zip((2, 3), load_kernels([scale(2), scale(3)], cache=cache), strict=True):
        np.testing.assert_array_equal(run(CpuKernel(code, "scale", 1, [ArgSpec(), ArgSpec()]), x), x * factor)


def test_a_cached_object_that_does_not_load_is_made_anew(cache: Cache) -> None:
    load_kernels([scale(2)], cache=cache)
    assert cache.directory is not None
    (path,) = cache.directory.glob("*.bin")
    cache.put(path.stem, b"whole, but no object")
    x = np.arange(GROUP, dtype=np.int32)
    (code,) = load_kernels([scale(2)], cache=cache)
    np.testing.assert_array_equal(run(CpuKernel(code, "scale", 1, [ArgSpec(), ArgSpec()]), x), x * 2)
    assert cache.get(path.stem) != b"whole, but no object"


def test_bad_text_is_not_cached(cache: Cache) -> None:
    with pytest.raises(InternalError):
        load_kernels(["junk"], cache=cache)
    assert cache.clear() == 0


def test_the_copy_kernel_copies() -> None:
    """Between whole lines, and from a source that begins anywhere (`copies`)."""
    source, target = (default_pool().empty((1 << 20,), np.dtype(np.uint8)) for _ in range(2))
    source[:] = np.random.default_rng(0).integers(0, 256, source.size)
    target[:] = 0
    (code,) = load_kernels([copy_ir(1 << 16)])
    CpuKernel(code, "copy", 16, [ArgSpec(64), ArgSpec(64)]).launch([pointer(source), pointer(target)])
    np.testing.assert_array_equal(source, target)
    (code,) = load_kernels([copy_ir(1 << 16, source_alignment=1)])
    CpuKernel(code, "copy", 15, [ArgSpec(1), ArgSpec(64)]).launch([pointer(source) + 3, pointer(target)])
    np.testing.assert_array_equal(source[3 : 3 + 15 * (1 << 16)], target[: 15 * (1 << 16)])


def test_the_measured_bandwidth_is_that_of_a_computer() -> None:
    rate = bandwidth.copy_bandwidth()
    assert 1e8 < rate < 1e13
    assert bandwidth.copy_bandwidth() == rate
