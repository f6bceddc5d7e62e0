"""LLVM in worker processes: what kills LLVM doesn't kill us, and parallel results are the serial ones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import warpsmith
from warpsmith.backends.cpu import jit as llvm_jit
from warpsmith.backends.llvm import isolate as llvm_isolate
from warpsmith.backends.nvptx import codegen as nvptx_codegen
from warpsmith.errors import InternalError, LoweringError

ABORTS = """
declare float @llvm.tanh.f32(float)
define ptx_kernel void @k(ptr %p) {
  %x = load float, ptr %p
  %y = call float @llvm.tanh.f32(float %x)
  store float %y, ptr %p
  ret void
}
"""


def kernel(constant: int) -> str:
    return f"define i64 @k(i64 %x) {{\n  %y = add i64 %x, {constant}\n  ret i64 %y\n}}\n"


def test_an_abort_in_llvm_is_an_error_with_its_words() -> None:
    with pytest.raises(LoweringError, match=r"Cannot select.*ftanh"):
        llvm_isolate.run_isolated(nvptx_codegen.ptx_code, ABORTS, sm="sm_90")


def test_an_exit_in_llvm_is_an_error_with_its_words() -> None:
    with pytest.raises(LoweringError, match="no libcall available for fexp"):
        llvm_isolate.run_isolated(nvptx_codegen.ptx_code, ABORTS.replace("tanh", "exp"), sm="sm_90")


def test_work_goes_on_after_a_worker_died() -> None:
    for _ in range(llvm_isolate.worker_count() + 1):
        with pytest.raises(LoweringError):
            llvm_isolate.run_isolated(nvptx_codegen.ptx_code, ABORTS, sm="sm_90")
    assert (
        llvm_isolate.run_isolated(llvm_isolate.object_code, kernel(1), opt=2) == llvm_jit.compile_object(kernel(1)).data
    )


def test_errors_keep_their_class() -> None:
    with pytest.raises(InternalError, match="expected top-level entity"):
        llvm_isolate.run_isolated(llvm_isolate.object_code, "junk", opt=2)


def test_many_modules_come_back_in_order() -> None:
    texts = [kernel(number) for number in range(30)]
    assert llvm_isolate.compile_objects(texts) == [llvm_jit.compile_object(text).data for text in texts]


def test_no_modules_give_no_objects() -> None:
    assert llvm_isolate.compile_objects([]) == []


def test_the_first_bad_module_of_many_is_the_error() -> None:
    with pytest.raises(InternalError, match="first_bad"):
        llvm_isolate.compile_objects([kernel(0), "@first_bad", kernel(1), "@second_bad"])


def test_untested_intrinsics_are_compiled_away_from_this_process() -> None:
    text = (
        "declare float @llvm.exp.f32(float)\n"
        "define float @k(float %x) {\n  %y = call float @llvm.exp.f32(float %x)\n  ret float %y\n}\n"
    )
    with pytest.raises(LoweringError):
        llvm_jit.compile_object(text)
    (data,) = llvm_isolate.compile_objects([text])
    assert llvm_jit.undefined_symbols(data) in (["expf"], [])


def test_callers_in_many_threads_get_their_own_answers() -> None:
    texts = [kernel(1000 + number) for number in range(24)]
    with ThreadPoolExecutor(6) as threads:
        futures = list(threads.map(llvm_isolate.submit_object, texts))
    assert [future.result() for future in futures] == [llvm_jit.compile_object(text).data for text in texts]


SCRIPT = """
import os
from warpsmith.backends.cpu import jit as llvm_jit
from warpsmith.backends.llvm import isolate

TEXT = "define i64 @k(i64 %x) {{ %y = add i64 %x, 7\\n ret i64 %y }}"
{body}
"""


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(warpsmith.__file__).parents[1])}


def run_script(body: str) -> subprocess.CompletedProcess[str]:
    """Run in a process of its own, because forks and signals concern the whole process."""
    command = [sys.executable, "-c", SCRIPT.format(body=textwrap.dedent(body))]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=ENVIRONMENT)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_workers_of_its_own() -> None:
    done = run_script("""
        parent = isolate.run_isolated(isolate.object_code, TEXT, opt=2)
        child = os.fork()
        if child == 0:
            os._exit(0 if isolate.run_isolated(isolate.object_code, TEXT, opt=2) == parent else 3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert isolate.run_isolated(isolate.object_code, TEXT, opt=2) == parent
        print("held")
    """)
    assert done.stdout == "held\n", done.stderr


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_workers_end_with_the_process_even_when_it_is_killed() -> None:
    text = SCRIPT.format(
        body="import time\nisolate.run_isolated(isolate.ping, '')\n"
        "print(isolate._teams.get()._all[0]._process.pid, flush=True)\ntime.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert gone(worker)


def gone(pid: int) -> bool:
    """Whether a process that isn't our child ends within five seconds."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        try:
            if Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("warning: x\nLLVM ERROR: Cannot select: t7\nStack dump:\n0. more", "LLVM ERROR: Cannot select: t7"),
        ("just this\nand that\n", "and that"),
        ("", ""),
    ],
)
def test_the_telling_line_of_a_dead_worker_is_found(text: str, words: str) -> None:
    assert llvm_isolate.last_words(text) == words
