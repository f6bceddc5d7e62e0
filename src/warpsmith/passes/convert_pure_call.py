"""convert-pure-call: `xla_gpu.pure_call` becomes `func.call`.

    %r = xla_gpu.pure_call @f(%x) : (index) -> f32   ->   %r = func.call @f(%x) : (index) -> f32

From here on calls may touch memory, so CSE no longer merges them.  Attributes stay.
"""

from __future__ import annotations

from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Operation

CONTRACT = "bit-exact"
ILLEGAL_AFTER = ("xla_gpu.pure_call",)


def run(module: Operation) -> None:
    """Rewrite every pure_call."""
    for op in module.walk():
        if op.name == "xla_gpu.pure_call":
            new = Builder.before(op).create("func.call", op.operands, [r.type for r in op.results], op.attributes)
            for old, result in zip(op.results, new.results, strict=True):
                result.name = old.name
            op.replace_by(new.results)
