"""canonicalize: folds and the canonical patterns of all dialects, to a fixpoint.

    %0 = xla_gpu.apply_indexing #map(%c3)
    %1 = arith.addi %0, %c1 : index          ->   "use"(%c4)
    "use"(%1)

The patterns are here, one file a dialect; a pass may pick a dialect's own table.  `ir/core/rewriter.py` drives.
"""

from __future__ import annotations

from warpsmith.ir.core.rewriter import Pattern, rewrite
from warpsmith.ir.core.ssa import Operation
from warpsmith.passes.canonicalize import arith, indexing, scf, tensor, vector

CONTRACT = "bit-exact"


def run(module: Operation) -> None:
    """Rewrite everything in `module`."""
    rewrite(module, PATTERNS)


def merge(*tables: dict[str, tuple[Pattern, ...]]) -> dict[str, tuple[Pattern, ...]]:
    """One table with the patterns of several, in order."""
    merged: dict[str, tuple[Pattern, ...]] = {}
    for table in tables:
        for name, patterns in table.items():
            merged[name] = merged.get(name, ()) + patterns
    return merged


PATTERNS = merge(arith.PATTERNS, indexing.PATTERNS, scf.PATTERNS, tensor.PATTERNS, vector.PATTERNS)
