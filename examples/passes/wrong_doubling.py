"""A pass that is wrong: x * 2 becomes x + 2, which bisect finds.

The page "Your own pass" has the command.
"""

import warpsmith as ws
from warpsmith.passes import Operation, Rewriter, arith, constant_value


def add(op: Operation, rewriter: Rewriter) -> bool:
    """Replace `op`, an arith.mulf, if a factor is a constant; whether it was replaced."""
    x, factor = op.operands
    if constant_value(factor) is None:
        return False
    total = arith.binary(rewriter.builder(op), "addf", x, factor)
    rewriter.replace(op, [total])
    return True


@ws.passes.register("wrong-doubling", contract="bit-exact")
def run(module: Operation) -> None:
    """A multiplication by a constant becomes an addition of it."""
    ws.passes.rewrite(module, {"arith.mulf": [add]})
