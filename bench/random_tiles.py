"""Counts random reductions whose dispatched code agrees with their meaning: `python bench/random_tiles.py N`."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.tile.helpers import read
from tests.tile.random_reductions import reduction_program
from warpsmith.compiler.tile_programs import run_tile
from warpsmith.errors import DispatchFailed


def main(count: int) -> int:
    """Run seeds 0 to count; 1 where any is wrong."""
    found: Counter[str] = Counter()
    for seed in range(count):
        try:
            verdict = "agrees" if run_tile(read(reduction_program(seed))).ok else "WRONG"
        except DispatchFailed:
            verdict = "refused"
        found[verdict] += 1
        if verdict != "agrees":
            print(f"seed {seed}: {verdict}", flush=True)
        if (seed + 1) % 50 == 0:
            print(f"{seed + 1}: {dict(found)}", flush=True)
    print(f"{count}: {dict(found)}")
    return int(bool(found["WRONG"]))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
