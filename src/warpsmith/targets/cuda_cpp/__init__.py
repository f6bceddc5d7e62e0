"""IR as CUDA C++ that a person can read.

In: a module whose loops are still loops, below `lower-tensors`.  Out: one `.cu` text, a `__global__` function for each
entry.  `lower` brings an emitted fusion there, `lower_tile` a dispatched tile kernel.  Reference: tile.md 11.
"""

from warpsmith.targets.cuda_cpp.lowering import PASSES, TILE_PASSES, lower, lower_tile
from warpsmith.targets.cuda_cpp.source import cuda_source

__all__ = ["PASSES", "TILE_PASSES", "cuda_source", "lower", "lower_tile"]
