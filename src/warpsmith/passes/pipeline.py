"""The passes in order, for each kind of target.

XLA's order (its passes are in `xla/codegen/emitters/transforms/` and `xla/backends/gpu/codegen/emitters/transforms/`),
except: `simplify-arith` also runs right after the loops became scf, so that bounds
checks that follow from `xla.range` are gone before tensors are flattened and loops vectorised.
"""

from __future__ import annotations

__all__ = [
    "CPU_LOWERING",
    "CPU_PIPELINE",
    "FLATTEN",
    "GPU_BUFFERS",
    "GPU_LOOPS",
    "GPU_LOWERING",
    "GPU_PIPELINE",
    "LOOPS",
    "ONE_FUNCTION",
    "OPTIMIZE",
    "TILE_BUFFERS",
    "TILE_CPU_LOWERING",
    "TILE_LOWERING",
]

# On tensors, functions still apart.
OPTIMIZE: tuple[str, ...] = ("simplify-arith", "canonicalize", "cse", "erase-dead-functions", "cse")

# One function, xla_gpu.loop to scf, tensors to rank 1, bounds checks out of loops.
LOOPS: tuple[str, ...] = (
    "inline",
    "canonicalize",
    "cse",
    "peel-loops",
    "lower-loops-to-scf",
    "simplify-arith",
    "flatten-tensors",
    "licm",
    "unswitch-loops",
    "licm",
)

ONE_FUNCTION: tuple[str, ...] = ("inline-calls", "canonicalize", "cse")

GPU_LOOPS: tuple[str, ...] = (*OPTIMIZE, "lower-xla-shared", "lower-xla-to-scf", *LOOPS, "vectorize-loads-stores")
GPU_PIPELINE: tuple[str, ...] = (*GPU_LOOPS, "optimize-loops", *ONE_FUNCTION)
CPU_PIPELINE: tuple[str, ...] = (*OPTIMIZE, "lower-xla-to-scf", *LOOPS, *ONE_FUNCTION)

# Tensors to buffers; indexing maps to arithmetic.
_BUFFERS: tuple[str, ...] = (
    "convert-pure-call",
    "lower-tensors",
    "merge-pointers",
    "canonicalize",
    "cse",
    "simplify-arith",
    "simplify-affine",
    "pack-sub-byte",
    "lower-atomics",
    "licm",
    "symbol-dce",
)

# Blocks and branches, then LLVM's own ops.
FLATTEN: tuple[str, ...] = ("convert-scf-to-cf", "convert-to-llvm")

# Arithmetic that the target has.
GPU_BUFFERS: tuple[str, ...] = (
    *_BUFFERS,
    "expand-float-ops",
    "expand-small-floats",
    "expand-remainder",
    "expand-approximate",
    "expand-math",
    "canonicalize",
    "cse",
)
GPU_LOWERING: tuple[str, ...] = (*GPU_BUFFERS, "library-calls", *FLATTEN)

# `tabulate` sees ops in their own types, so it comes before they are widened; `expand-math` comes after the loop became
# vectors, so that each function is expanded once for all lanes.
CPU_LOWERING: tuple[str, ...] = (
    *_BUFFERS,
    "allocate-on-stack",
    "canonicalize",
    "fit-loop-bounds",
    "tabulate",
    "lower-workgroups",
    "expand-float-ops",
    "expand-small-floats",
    "canonicalize",
    "cse",
    "vectorize-cpu",
    "expand-math",
    "canonicalize",
    "licm",
    "cse",
    "prefetch-rows",
    "library-calls",
    *FLATTEN,
)

# A dispatched tile program has buffers from the start.
TILE_BUFFERS: tuple[str, ...] = (
    "merge-pointers",
    "canonicalize",
    "cse",
    "simplify-arith",
    "simplify-affine",
    "lower-atomics",
    "canonicalize",
    "licm",
    "cse",
    "symbol-dce",
)

TILE_LOWERING: tuple[str, ...] = (
    *TILE_BUFFERS,
    "pair-registers",
    "unroll-marked-loops",
    "expand-float-ops",
    "expand-small-floats",
    "expand-remainder",
    "expand-math",
    "canonicalize",
    "cse",
    "library-calls",
    *FLATTEN,
)

# The same for a CPU, where LLVM's own passes make vectors of the loops over threads.
TILE_CPU_LOWERING: tuple[str, ...] = (
    *TILE_BUFFERS,
    "clamp-indices",
    "threads-to-loops",
    "guard-divisions",
    "allocate-on-stack",
    "canonicalize",
    "lower-workgroups",
    "expand-float-ops",
    "expand-small-floats",
    "expand-math",
    "canonicalize",
    "licm",
    "cse",
    "library-calls",
    *FLATTEN,
)
