"""How many random tile programs agree with the meaning of their primitives.

    python bench/tile_programs.py [COUNT] [FIRST]

Prints the programs that don't, and the counts.  Programs are those of `tests/tile/random_programs.py`.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.tile.helpers import read
from tests.tile.random_programs import program
from warpsmith.compiler.tile_programs import explain_tile, run_tile


def main(count: int, first: int) -> int:
    """Run `count` programs from seed `first` on; the exit status is 1 when one is wrong."""
    start, wrong = time.perf_counter(), 0
    variants: Counter[str] = Counter()
    for seed in range(first, first + count):
        text = program(seed)
        kernel = read(text)
        result = run_tile(kernel, seed=seed)
        variants.update(f"{choice.primitive} {choice.variant}" for choice in explain_tile(kernel))
        if not result.ok:
            wrong += 1
            print(f"seed {seed}\n{text}", dict(result.mismatches), *result.findings, sep="\n")
    print(f"{count - wrong} of {count} programs agree ({time.perf_counter() - start:.0f} s)")
    for name, calls in sorted(variants.items()):
        print(f"  {calls:6} {name}")
    return 1 if wrong else 0


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:3]]
    sys.exit(main(*given, *[1000, 0][len(given) :]))
