"""Who refers to which symbol: shared by the passes that remove or inline functions.

In: a module.  Out: counts of references and the call graph.
"""

from __future__ import annotations

from collections import Counter

from warpsmith.ir.core.attributes import ArrayAttr, StringAttr, SymbolRefAttr
from warpsmith.ir.core.ssa import Operation, Trait

__all__ = ["is_private", "references", "symbol_table", "symbol_uses"]


def symbol_table(module: Operation) -> dict[str, Operation]:
    """The ops in the module's body that define a symbol, by name."""
    table: dict[str, Operation] = {}
    for op in module.body:
        name = op.attributes.get("sym_name")
        if op.row.has(Trait.SYMBOL) and isinstance(name, StringAttr):
            table[name.value] = op
    return table


def references(op: Operation) -> list[str]:
    """The symbols that this one op names in its attributes."""
    found: list[str] = []
    for attribute in op.attributes.values():
        if isinstance(attribute, SymbolRefAttr):
            found.append(attribute.name)
        elif isinstance(attribute, ArrayAttr):
            found += [item.name for item in attribute.items if isinstance(item, SymbolRefAttr)]
    return found


def symbol_uses(root: Operation) -> Counter[str]:
    """How often each symbol is named anywhere inside `root`."""
    return Counter(name for op in root.walk() for name in references(op))


def is_private(op: Operation) -> bool:
    """Whether a symbol is invisible outside its module, so that it may go when unused."""
    visibility = op.attributes.get("sym_visibility")
    return isinstance(visibility, StringAttr) and visibility.value in ("private", "nested")
