"""How long it takes from a tile kernel's text to CUDA C++: in a process that has done it before, and in a new one.

    python bench/tile_speed.py [FILE.py ...]

Without files: one warp that takes square roots (the published example of the register variant), and the kernels of
examples/tile/.  The table has medians of time and of processor time, which a busy machine lengthens less.  The exit
status is 1 when the first kernel misses a goal: 60 ms warm, 0.6 s in a new process, of processor time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.tile.helpers import IMPORTS, SEED
from warpsmith.compiler.tile.programs import tile_text
from warpsmith.tile.files import load_kernel

ROOT = Path(__file__).resolve().parents[1]
WARM_GOAL, COLD_GOAL = 0.060, 0.6  # seconds
WARM_RUNS, COLD_RUNS = 20, 5


def measured(run: Callable[[], object], clock: Callable[[], float], times: int) -> tuple[float, float]:
    """Medians of elapsed and of processor seconds."""
    elapsed: list[float] = []
    busy: list[float] = []
    for _ in range(times):
        start, began = time.perf_counter(), clock()
        run()
        elapsed.append(time.perf_counter() - start)
        busy.append(clock() - began)
    return median(elapsed), median(busy)


def children() -> float:
    """Processor seconds of the processes that have ended."""
    spent = os.times()
    return spent.children_user + spent.children_system


def main(files: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        if not files:
            seed = Path(folder) / "seed.py"
            seed.write_text(IMPORTS + SEED, encoding="utf-8")
            files = [str(seed), *sorted(map(str, (ROOT / "examples" / "tile").glob("*.py")))]
        print(f"{'kernel':20} {'warm: ms':>9} {'cpu ms':>7} {'new process: ms':>16} {'cpu ms':>7}")
        missed = False
        for number, file in enumerate(files):
            command = [sys.executable, "-m", "warpsmith", "tile", file, "--stage", "cuda", "-o", f"{folder}/out.cu"]
            subprocess.run(command, check=True)
            cold = measured(lambda command=command: subprocess.run(command, check=True), children, COLD_RUNS)
            tile_text(load_kernel(file), "cuda")
            warm = measured(lambda file=file: tile_text(load_kernel(file), "cuda"), time.process_time, WARM_RUNS)
            shown = [f"{1e3 * seconds:.1f}" for seconds in (*warm, *cold)]
            print(f"{Path(file).stem:20} {shown[0]:>9} {shown[1]:>7} {shown[2]:>16} {shown[3]:>7}")
            missed = missed or (number == 0 and (warm[1] > WARM_GOAL or cold[1] > COLD_GOAL))
    return int(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
