"""symbol-dce: private symbols (functions, globals) that nothing live names go.

    memref.global "private" @table = ...   ->   (gone)

A cycle of private functions that only call each other goes as well.
"""

from __future__ import annotations

from warpsmith.ir.core.ssa import Operation, Trait
from warpsmith.ir.dialects import func
from warpsmith.passes.support.symbols import is_private, reachable

CONTRACT = "bit-exact"


def run(module: Operation) -> None:
    """Keep public symbols, what they name, and so on."""
    table = func.symbols(module)
    live = reachable((op for op in module.body if not (op.row.has(Trait.SYMBOL) and is_private(op))), table)
    for op in table.values():
        if op not in live:
            op.erase()
