"""Emitters: from a fusion to IR.

In: a fusion instruction and a device.  Out: a `Kernel`: a module with the entry function and one private function
for each subgraph, and the launch.  `gpu/` and `cpu/` hold one file an emitter, under the same names.
"""

from warpsmith.emitters.choose import choose, emit
from warpsmith.emitters.kernel.origin import EmittedKernel

__all__ = ["EmittedKernel", "choose", "emit"]
