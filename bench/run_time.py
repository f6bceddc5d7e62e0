"""Run time of kernels on this computer's cores, against XLA:CPU through jax, in one process.

    python bench/run_time.py                       the cases that have a goal, memory warm for both sides, then plain
    python bench/run_time.py --others              simple kernels of many kinds
    python bench/run_time.py gelu --memory plain   cases whose name holds a word; jax as users have it

Batches of calls of both sides alternate; times are medians over batches.  Both sides read the same arrays.

Memory: jax allocates each result anew, and the first touch of fresh pages costs more than most kernels.  Warpsmith's
results come from a pool.  `warm` compares kernels: the process runs with an allocator that keeps large blocks, either
glibc's with its thresholds raised (default) or a library of yours (`--preload FILE.so`, or FILE.c to be built here).
`plain` compares what users see.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

from cases import OTHERS, RUN, Case

KEEP = ":".join(
    f"glibc.malloc.{name}={value}"
    for name, value in (("mmap_max", 0), ("trim_threshold", 1 << 34), ("top_pad", 1 << 30), ("arena_max", 1))
)
_BATCH_SECONDS = 0.03


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD", help="only cases whose name holds one of these")
    parser.add_argument("--others", action="store_true", help="the table of simple kernels")
    parser.add_argument("--memory", choices=("warm", "plain", "both"), default="both")
    parser.add_argument(
        "--preload", metavar="FILE", help="an allocator for `warm`: a shared library, or C source to build"
    )
    parser.add_argument("--rounds", type=int, default=15, help="batches of each side (default: 15)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        return measure(arguments, arguments.child)
    status = 0
    with tempfile.TemporaryDirectory() as folder:
        for memory in ("warm", "plain") if arguments.memory == "both" else (arguments.memory,):
            environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
            if memory == "warm" and arguments.preload:
                environment |= {"LD_PRELOAD": built(arguments.preload, folder)}
            elif memory == "warm":
                environment |= {"GLIBC_TUNABLES": KEEP}
            child = subprocess.run([sys.executable, *sys.argv, "--child", memory], env=environment, check=False)
            status = max(status, child.returncode)
    return status


def built(path: str, folder: str) -> str:
    """The shared library at `path`, built from it when it is C source."""
    if not path.endswith(".c"):
        return str(Path(path).resolve())
    library = str(Path(folder, "preload.so"))
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", path, "-o", library, "-ldl", "-pthread"], check=True)
    return library


def measure(arguments: argparse.Namespace, memory: str) -> int:
    cases = [
        c
        for c in (OTHERS if arguments.others else RUN)
        if not arguments.words or any(w in c.name for w in arguments.words)
    ]
    how = "pages kept warm for both sides" if memory == "warm" else "plain jax: each result in fresh memory"
    print(f"\n{len(os.sched_getaffinity(0))} cores; {how}; {arguments.rounds} alternating batches; medians", flush=True)
    print(f"{'case':34} {'warpsmith':>12} {'out=':>12} {'jax':>12} {'ratio':>7}  {'goal':>5}", flush=True)
    missed = 0
    for case in cases:
        ours, into, theirs = compare(case, arguments.rounds)
        ratio = ours / theirs
        goal = "" if case.goal is None else f"{case.goal:5.2f}"
        late = case.goal is not None and ratio > case.goal
        missed += late
        times = " ".join(f"{seconds * 1e6:9.1f} us" for seconds in (ours, into, theirs))
        print(f"{case.name:34} {times} {ratio:7.3f}  {goal}{'  MISSED' * late}", flush=True)
    return 1 if missed else 0


def compare(case: Case, rounds: int) -> tuple[float, float, float]:
    """Seconds a call: ours with a result from the pool, ours with `out=`, jax's."""
    import jax
    import numpy as np
    from jax import lax

    import warpsmith as ws

    module = ws.parse_hlo(case.text)
    exe = ws.compile(module)
    random = np.random.default_rng(0)
    inputs: list[Any] = []
    for parameter in module.entry.parameters:
        shape = parameter.array_shape
        values = random.standard_normal(shape.dims, dtype=np.float32) * (40 if shape.dtype.name == "s8" else 2)
        inputs.append(jax.device_put(values.astype(shape.dtype.numpy)))
    arrays = [np.asarray(each) for each in inputs]
    jitted = jax.jit(case.jax(lax)).lower(*inputs).compile()
    check(case, exe(*arrays)[0], np.asarray(jitted(*inputs)))
    out = exe(*arrays)

    def ours() -> None:
        exe(*arrays)

    def into() -> None:
        exe(*arrays, out=out)

    def theirs() -> None:
        jitted(*inputs).block_until_ready()

    sides = (ours, into, theirs)
    counts = [calls_of(side) for side in sides]
    seconds: list[list[float]] = [[], [], []]
    for _ in range(rounds):
        for side, count, times in zip(sides, counts, seconds, strict=True):
            side()
            start = perf_counter()
            for _ in range(count):
                side()
            times.append((perf_counter() - start) / count)
    first, second, third = (statistics.median(times) for times in seconds)
    return first, second, third


def calls_of(side: Any) -> int:
    side()
    start = perf_counter()
    side()
    return max(1, min(2000, int(_BATCH_SECONDS / max(1e-7, perf_counter() - start))))


def check(case: Case, ours: Any, theirs: Any) -> None:
    """Both sides must have computed the same function: a benchmark of something else is worth nothing."""
    import numpy as np

    tolerance = 1e-4 if ours.dtype == np.float32 else 5e-2
    if not np.allclose(ours.astype(np.float32), theirs.astype(np.float32), rtol=tolerance, atol=tolerance * 10):
        raise SystemExit(f"{case.name}: the results differ")


if __name__ == "__main__":
    sys.exit(main())
