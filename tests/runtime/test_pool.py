"""The thread pool: every workgroup once, any number of callers, forks, idleness, and the arithmetic's environment."""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpsmith
from warpsmith.backends.cpu import jit as llvm_jit
from warpsmith.errors import UsageError
from warpsmith.runtime import pool
from warpsmith.runtime.pool_code import pool_ir

COUNT = """
define void @count(ptr %argv, i64 %begin, i64 %end) {
entry:
  %p = load ptr, ptr %argv
  br label %test
test:
  %i = phi i64 [%begin, %entry], [%next, %body]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %body, label %exit
body:
  %q = getelementptr i32, ptr %p, i64 %i
  %v = load i32, ptr %q
  %w = add i32 %v, 1
  store i32 %w, ptr %q
  %next = add i64 %i, 1
  br label %test
exit:
  ret void
}
define void @double(ptr %argv, i64 %begin, i64 %end) {
entry:
  %p = load ptr, ptr %argv
  br label %test
test:
  %i = phi i64 [%begin, %entry], [%next, %body]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %body, label %exit
body:
  %q = getelementptr i32, ptr %p, i64 %i
  %v = load i32, ptr %q
  %w = mul i32 %v, 2
  store i32 %w, ptr %q
  %next = add i64 %i, 1
  br label %test
exit:
  ret void
}
"""

CODE = llvm_jit.load_object(llvm_jit.compile_object(COUNT))


def counters(size: int) -> tuple[np.ndarray, bytes]:
    array = np.zeros(max(size, 1), np.int32)
    return array, struct.pack("=Q", array.ctypes.data)


@pytest.fixture(params=[pool.NativePool, pool.PythonPool])
def each_pool(request: pytest.FixtureRequest) -> Iterator[pool.Pool]:
    if request.param is pool.NativePool and os.name != "posix":
        pytest.skip("needs POSIX threads")
    made = request.param(4)
    yield made
    made.close()


SHARED = pool.the_pool()


@settings(deadline=None, max_examples=200)
@given(total=st.integers(0, 3000), grain=st.integers(1, 1000))
def test_every_workgroup_runs_exactly_once(total: int, grain: int) -> None:
    array, argv = counters(total)
    SHARED.launch(CODE.address("count"), argv, total, grain)
    assert (array[:total] == 1).all()


def test_many_small_jobs_are_each_run_once(each_pool: pool.Pool) -> None:
    array, argv = counters(97)
    jobs = 3000 if isinstance(each_pool, pool.NativePool) else 50
    for _ in range(jobs):
        each_pool.launch(CODE.address("count"), argv, 97, 5)
    assert (array == jobs).all()


def test_sleeping_workers_wake(each_pool: pool.Pool) -> None:
    array, argv = counters(64)
    for _ in range(20):
        time.sleep(0.002)
        each_pool.launch(CODE.address("count"), argv, 64, 1)
    assert (array == 20).all()


def test_kernels_run_in_order(each_pool: pool.Pool) -> None:
    array, argv = counters(64)
    for name in ("count", "double", "count", "double"):
        each_pool.launch(CODE.address(name), argv, 64, 4)
    assert (array == 6).all()  # ((0 + 1) * 2 + 1) * 2: no other order gives it


def test_callers_in_many_threads_do_not_mix(each_pool: pool.Pool) -> None:
    wrong: list[int] = []
    jobs = 1000 if isinstance(each_pool, pool.NativePool) else 20

    def caller() -> None:
        array, argv = counters(300)
        for _ in range(jobs):
            each_pool.launch(CODE.address("count"), argv, 300, 10)
        wrong.extend(array[array != jobs])

    threads = [threading.Thread(target=caller) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_closed_pool_still_runs_kernels() -> None:
    closed = pool.NativePool(3)
    closed.close()
    array, argv = counters(50)
    closed.launch(CODE.address("count"), argv, 50, 1)
    assert (array == 1).all()
    assert closed.threads == 1


def test_an_idle_pool_takes_no_processor_time() -> None:
    array, argv = counters(64)
    SHARED.launch(CODE.address("count"), argv, 64, 1)
    time.sleep(0.05)
    start = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - start < 0.1
    assert (array == 1).all()


FLUSH = """
declare void @llvm.x86.sse.ldmxcsr(ptr)
@flush = private constant i32 40896
@keep = private constant i32 8064
define void @flush_on() {
  call void @llvm.x86.sse.ldmxcsr(ptr @flush)
  ret void
}
define void @flush_off() {
  call void @llvm.x86.sse.ldmxcsr(ptr @keep)
  ret void
}
define void @halve(ptr %argv, i64 %begin, i64 %end) {
  %p = load ptr, ptr %argv
  %q = getelementptr float, ptr %p, i64 %begin
  %v = load float, ptr %q
  %w = fmul float %v, 0.5
  store float %w, ptr %q
  ret void
}
"""


@pytest.mark.skipif("x86_64" not in llvm_jit.host_target()[0], reason="sets an x86 register")
def test_subnormals_are_kept_when_a_library_has_switched_them_off() -> None:
    code = llvm_jit.load_object(llvm_jit.compile_object(FLUSH, check=False))
    switch_on, switch_off = (ctypes.CFUNCTYPE(None)(code.address(name)) for name in ("flush_on", "flush_off"))
    small = np.full(8, 2.0**-126, np.float32)
    argv = struct.pack("=Q", small.ctypes.data)
    probe = np.full(1, 2.0**-126, np.float32)
    function, bare = code.address("halve"), code.kernel("halve")
    switch_on()
    try:
        SHARED.launch(function, argv, 8, 1)
        bare((ctypes.c_void_p * 1)(probe.ctypes.data), 0, 1)
    finally:
        switch_off()
    assert small.view(np.uint32).tolist() == [0x00400000] * 8
    assert probe[0] == 0, "the switch didn't work, so this test proves nothing"


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(warpsmith.__file__).parents[1])}


def run_script(body: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(body)]
    environment = {**ENVIRONMENT, **variables}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)


FORK = f"""
import ctypes, os, struct
from warpsmith.runtime import pool
from warpsmith.runtime.pool_code import pool_ir
from warpsmith.backends.cpu import jit as llvm_jit
code = llvm_jit.load_object(llvm_jit.compile_object('''{COUNT}'''))
def right():
    array = (ctypes.c_int32 * 100)()
    pool.launch(code.address("count"), struct.pack("=Q", ctypes.addressof(array)), 100, 3)
    return all(value == 1 for value in array)
assert right()
parents = pool.the_pool()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_makes_its_own_pool() -> None:
    done = run_script(
        FORK
        + """
child = os.fork()
if child == 0:
    os._exit(0 if right() and pool.the_pool() is not parents and pool.the_pool().threads == 3 else 3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert right() and pool.the_pool() is parents
print("held")
""",
        WARPSMITH_THREADS="3",
    )
    assert done.stdout == "held\n", done.stderr


def test_exit_right_after_a_kernel_is_clean() -> None:
    for _ in range(3):
        done = run_script(FORK + "\nfor _ in range(100): assert right()\n", WARPSMITH_THREADS="4")
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("triple", ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "arm64-apple-macosx"])
def test_the_native_half_compiles_for_every_platform(triple: str) -> None:
    text = llvm_jit.assembly(pool_ir(triple), triple=triple)
    assert "pool_launch" in text
    assert ("pause" if triple.startswith("x86") else "yield") in text


def test_the_number_of_threads_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPSMITH_THREADS", "5")
    assert pool.thread_count() == 5


@pytest.mark.parametrize("text", ["0", "-1", "many", ""])
def test_a_wrong_number_of_threads_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPSMITH_THREADS", text)
    with pytest.raises(UsageError, match="WARPSMITH_THREADS"):
        pool.thread_count()
