"""How many random tile programs agree with the meaning of their primitives.

    python bench/random_tiles.py [KIND] [--count N] [--first SEED] [--platform cpu] [--nvcc T,T] [--ptxas T,T]

Kinds are those of `tests/tile/random_programs.py` and `matrix_programs.py`; none means all.  A program agrees, is
refused by dispatch (the reasons are counted), or is wrong: then its text is printed, and the exit status is 1.
`--nvcc` and `--ptxas` compile the CUDA C++ and the PTX of each program that agrees.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.tile import random_programs
from tests.tile.helpers import read
from tests.tile.matrix_programs import async_copy, matrix_copy, product, relayout
from warpsmith.compiler.tile.programs import explain_tile, run_tile, tile_bytes, tile_text
from warpsmith.errors import DispatchFailed

GENERATORS = {
    **random_programs.GENERATORS,
    **{each.__name__: each for each in (matrix_copy, async_copy, product, relayout)},
}


def main() -> int:
    """Run the programs; 1 when one is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", nargs="?", choices=GENERATORS)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--platform", default="sim")
    for tool in ("--nvcc", "--ptxas"):
        parser.add_argument(tool, type=lambda text: text.split(","), default=[])
    options = parser.parse_args()
    kinds = [options.kind] if options.kind else list(GENERATORS)
    return int(sum(_run(kind, options) for kind in kinds) > 0)


def _run(kind: str, options: argparse.Namespace) -> bool:
    """Whether a program of a kind was wrong."""
    start = time.perf_counter()
    verdicts: Counter[str] = Counter()
    variants: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for seed in range(options.first, options.first + options.count):
        text = GENERATORS[kind](seed)
        try:
            kernel = read(text)
            result = run_tile(kernel, seed=seed, platform=options.platform)
            if result.ok:
                verdicts["agree"] += 1
                variants.update(f"{choice.primitive} {choice.variant}" for choice in explain_tile(kernel))
                _compile(kernel, options)
                continue
            trouble = "\n".join([str(dict(result.mismatches)), *map(str, result.findings)])
        except DispatchFailed as failed:
            verdicts["refused"] += 1
            reasons[_reason(failed)] += 1
            continue
        except Exception:  # whatever it is, the program that does it is worth reading
            trouble = traceback.format_exc()
        verdicts["WRONG"] += 1
        print(f"{kind} seed {seed}\n{text}{trouble}", flush=True)
    print(f"{kind}: {dict(verdicts)} ({time.perf_counter() - start:.0f} s)")
    for title, counts in (("variants", variants), ("refused", reasons)):
        for name, count in counts.most_common():
            print(f"  {count:6} {title}: {name}")
    return verdicts["WRONG"] > 0


def _compile(kernel: Any, options: argparse.Namespace) -> None:
    for target in options.nvcc:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "kernel.cu"
            source.write_text(tile_text(kernel, "cuda", target))
            command = ["nvcc", "-ptx", f"-arch={target}", "-std=c++17", "--Werror", "all-warnings", str(source)]
            subprocess.run([*command, "-o", f"{folder}/kernel.ptx"], check=True)
    for target in options.ptxas:
        tile_bytes(kernel, target)


def _reason(failed: DispatchFailed) -> str:
    """What the variants for the operands' memory lack, without names and numbers."""
    near = [reason for _, reason in failed.rejected if " memory" not in reason] or [str(failed)]
    return re.sub(r"\d+", "N", re.sub(r"\b[XYAB]\d*\b(\[[^]]*\])?", "tile", " | ".join(near)))


if __name__ == "__main__":
    sys.exit(main())
