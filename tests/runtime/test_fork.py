"""A child that is forked while another thread compiles: it has none of the thread's locks to wait for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import warpsmith

SCRIPT = """
import os, threading, time
from warpsmith.backends.cpu import jit as llvm_jit
from warpsmith.runtime import cpu_executable

def compiled(name):
    text = f"define i64 @{name}(i64 %x) {{ %y = mul i64 %x, 3 ret i64 %y }}"
    return llvm_jit.load_object(llvm_jit.compile_object(text)).address(name)

compiled("first")
ended = threading.Event()

def compile_all_the_time():
    number = 0
    while not ended.is_set():
        compiled(f"thread{number}")
        number += 1

threads = [threading.Thread(target=compile_all_the_time) for _ in range(2)]
for thread in threads:
    thread.start()
lock = cpu_executable._fill.lock
lock.acquire()  # as a thread that fills a table holds it
finished = 0
for number in range(6):
    time.sleep(0.005)
    child = os.fork()
    if child == 0:
        compiled(f"child{number}")
        os._exit(0 if cpu_executable._fill.lock.acquire(timeout=1) else 3)
    deadline = time.monotonic() + 20
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            finished += os.waitstatus_to_exitcode(status) == 0
            break
        if time.monotonic() > deadline:
            os.kill(child, 9)
            os.waitpid(child, 0)
            break
        time.sleep(0.005)
ended.set()
for thread in threads:
    thread.join()
compiled("last")  # the parent's locks are free again
print(finished)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_during_a_compile_compiles_too() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(warpsmith.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        capture_output=True,
        text=True,
        timeout=180,
        env=environment,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("6\n", 0), done.stderr
