"""A pass of one's own: x * 2 is x + x, which has the same bits.

warpsmith opt examples/passes/twice.mlir --load examples/passes/double_by_adding.py --passes double-by-adding
"""

import warpsmith as ws
from warpsmith.passes import Operation, Rewriter, arith, constant_value


def add(op: Operation, rewriter: Rewriter) -> bool:
    """Replace `op`, an arith.mulf, if it multiplies by 2; whether it was replaced."""
    x, factor = op.operands
    found = constant_value(factor)
    if found is None or found.value != 2.0:
        return False
    total = arith.binary(rewriter.builder(op), "addf", x, x)
    rewriter.replace(op, [total])
    return True


@ws.passes.register("double-by-adding", contract="bit-exact")
def run(module: Operation) -> None:
    """A multiplication by two becomes an addition."""
    ws.passes.rewrite(module, {"arith.mulf": [add]})
