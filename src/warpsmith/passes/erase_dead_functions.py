"""erase-dead-functions: private functions that nothing public reaches go.

    func.func @main() {...}                    func.func @main() {...}
    func.func private @dead() { @callee }  ->
    func.func private @callee() {...}

The inliner counts uses, so a dead caller would make a callee of one live use look shared.
"""

from __future__ import annotations

from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.dialects import func
from warpsmith.passes.support.symbols import is_private, reachable

CONTRACT = "bit-exact"


def run(module: Operation) -> None:
    """Keep public functions and what they reach through any symbol."""
    table = func.symbols(module)
    live = reachable((op for op in table.values() if op.name == "func.func" and not is_private(op)), table)
    for op in table.values():
        if op.name == "func.func" and op not in live:
            op.erase()
