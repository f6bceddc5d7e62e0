"""Who refers to which symbol: shared by the passes that remove, inline or declare functions.

In: a module.  Out: counts of references and the call graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from warpsmith.ir.core.attributes import ArrayAttr, Attribute, StringAttr, SymbolRefAttr, string, type_attr
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.llvm_types import llvm_function
from warpsmith.ir.core.ssa import Operation, Region
from warpsmith.ir.core.types import Type

__all__ = ["declare", "is_private", "reachable", "references", "symbol_uses"]


def declare(module: Operation, name: str, result: Type, inputs: Sequence[Type]) -> None:
    """A private llvm.func without a body, at the module's end."""
    attributes: dict[str, Attribute] = {
        "sym_name": string(name),
        "function_type": type_attr(llvm_function(result, inputs)),
        "sym_visibility": string("private"),
    }
    Builder.at_end(module.body).create("llvm.func", (), (), attributes, (Region(),))


def reachable(roots: Iterable[Operation], table: Mapping[str, Operation]) -> set[Operation]:
    """The symbols' ops that `roots` name, with what those name, and so on; and the roots."""
    waiting = list(roots)
    live = set(waiting)
    while waiting:
        for op in waiting.pop().walk():
            for name in references(op):
                target = table.get(name)
                if target is not None and target not in live:
                    live.add(target)
                    waiting.append(target)
    return live


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
