"""Emitters: from a fusion to IR.

In: a fusion instruction and a device.  Out: `EmittedKernel`, a module with the entry function and one private function
for each subgraph, and the launch.  `gpu/` and `cpu/` hold one file an emitter, under the same names.
"""

from warpsmith.emitters.choose import choose, emit
from warpsmith.emitters.kernel.emitted import EmittedKernel, KernelArgument

__all__ = ["EmittedKernel", "KernelArgument", "choose", "emit"]
