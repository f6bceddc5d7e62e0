"""symbol-dce: private symbols (functions, globals) that nothing live names go.

    memref.global "private" @table = ...   ->   (gone)

A cycle of private functions that only call each other goes as well.
"""

from __future__ import annotations

from warpsmith.ir.core.ssa import Operation, Trait
from warpsmith.passes.support.symbols import is_private, references, symbol_table

CONTRACT = "bit-exact"


def run(module: Operation) -> None:
    """Keep public symbols, what they name, and so on."""
    table = symbol_table(module)
    waiting = [op for op in module.body if not (op.row.has(Trait.SYMBOL) and is_private(op))]
    live = set(waiting)
    while waiting:
        for op in waiting.pop().walk():
            for name in references(op):
                target = table.get(name)
                if target is not None and target not in live:
                    live.add(target)
                    waiting.append(target)
    for op in table.values():
        if op not in live:
            op.erase()
