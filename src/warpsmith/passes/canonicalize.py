"""canonicalize: folds and the canonical patterns of all dialects, to a fixpoint.

    %0 = xla_gpu.apply_indexing #map(%c3)
    %1 = arith.addi %0, %c1 : index          ->   "use"(%c4)
    "use"(%1)

The patterns are in `passes/canonical/`, one file a dialect; `ir/core/rewriter.py` drives (pipeline reference 13.2,
13.3).
"""

from __future__ import annotations

from warpsmith.ir.core.rewriter import rewrite
from warpsmith.ir.core.ssa import Operation
from warpsmith.passes.canonical import PATTERNS

NAME = "canonicalize"
CONTRACT = "bit-exact"


def run(module: Operation) -> None:
    """Rewrite everything in `module`."""
    rewrite(module, PATTERNS)
