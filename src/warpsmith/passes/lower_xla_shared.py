"""lower-xla-shared: the target-neutral block index becomes the GPU's.

    %b = xla_gpu.workgroup_id x {xla.range = ...}   ->   %b = gpu.block_id  x {xla.range = ...}

On a CPU the work group's index stays: it is an argument of the kernel there.
"""

from __future__ import annotations

from warpsmith.ir.core.attributes import opaque
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.types import INDEX
from warpsmith.ir.dialects import gpu

CONTRACT = "bit-exact"
ILLEGAL_AFTER = ("xla_gpu.workgroup_id",)


def run(module: Operation) -> None:
    """Rewrite every workgroup_id; of its attributes only the range stays."""
    for op in module.walk():
        if op.row.name != "xla_gpu.workgroup_id":
            continue
        dimension = gpu.dimension(op)
        attributes = {k: v for k, v in op.attributes.items() if k == "xla.range"}
        attributes["dimension"] = opaque(f"#gpu<dim {dimension}>")
        new = Builder.before(op).op1("gpu.block_id", (), INDEX, attributes, hint=f"block_id_{dimension}")
        op.results[0].name = ""
        op.replace_by([new])
