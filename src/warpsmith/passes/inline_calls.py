"""inline-calls: the calls that `inline` left go where that makes little code.

    %a = xla_gpu.pure_call @add(%x, %y)        %a = arith.addf %x, %y
    %b = xla_gpu.pure_call @add(%a, %z)   ->   %b = arith.addf %a, %z

`inline` keeps a function that is called more than once, as XLA does, which leaves the rest to LLVM's inliner.  We
run LLVM without one, and a call in a hot loop would stop our vectoriser.  So, at the end of the tensor passes: small
functions of scalars (a reduction's combiner) are inlined always, others while all copies together are at most `growth`
ops.
"""

from __future__ import annotations

from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.types import FloatType, IntegerType
from warpsmith.passes.inline import Inliner, callee_of, op_count

CONTRACT = "bit-exact"

_TINY = 16


def run(module: Operation, growth: int = 400) -> None:
    """Inline in every function of `module`."""

    def small(callee: Operation, uses: int) -> bool:
        return _is_tiny(callee) or op_count(callee) * uses <= growth

    Inliner(module, small).run()


def _is_tiny(function: Operation) -> bool:
    """A few ops on scalars that call nothing: no memory is read twice by copying it."""
    scalars = all(isinstance(a.type, (FloatType, IntegerType)) for a in function.body.args)
    return scalars and all(
        number <= _TINY and not op.regions and callee_of(op) is None for number, op in enumerate(function.body)
    )
