"""What may not be alive after a pass, and the check.

In: `ILLEGAL_AFTER` of each pass that has run.  Out: nothing, or InvalidIr about the first op that should be gone, with
the pass that leaves none.  A pass lists names of ops ("xla_gpu.loop"), of whole dialects ("scf.*"), and `Types`.  What
one pass has done away with no later one may bring back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from warpsmith.ir.core.attributes import TypeAttr
from warpsmith.ir.core.diagnostics import invalid
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.types import FunctionType, ShapedType, TensorType, Type

__all__ = ["HIGH_RANK", "TENSORS", "Illegal", "Legality", "Types"]


@dataclass(frozen=True, slots=True)
class Types:
    """Types that no value may have any more; `what` says which in words."""

    what: str
    has: Callable[[Type], bool]

    def __str__(self) -> str:
        return self.what


Illegal = str | Types

TENSORS = Types("tensors", lambda type: isinstance(type, TensorType))
HIGH_RANK = Types("types of rank 2 and up", lambda type: isinstance(type, ShapedType) and type.rank > 1)


class Legality:
    """What the passes that have run so far leave none of."""

    def __init__(self) -> None:
        self._ops: dict[str, str] = {}  # an op, or a dialect with ".*" -> the pass
        self._types: dict[Types, str] = {}
        self._checked: dict[Type, Types | None] = {}

    def check(self, module: Operation, name: str, illegal: Iterable[Illegal]) -> None:
        """After the pass `name`: InvalidIr if something is alive that it, or one before it, leaves none of."""
        for each in illegal:
            if isinstance(each, str):
                self._ops.setdefault(each, name)
            else:
                self._types.setdefault(each, name)
                self._checked.clear()
        for op in module.walk():
            by = self._ops.get(op.row.name) or self._ops.get(f"{op.row.dialect}.*")
            if by is not None:
                raise invalid(op, f"is alive after {name}, {_leaver(name, by)} leaves none")
            for type in _types(op):
                found = self._wrong(type)
                if found is not None:
                    by = self._types[found]
                    raise invalid(op, f"{type} is alive after {name}, {_leaver(name, by)} leaves no {found}")

    def _wrong(self, type: Type) -> Types | None:
        if type not in self._checked:
            self._checked[type] = next((each for each in self._types if each.has(type)), None)
        return self._checked[type]


def _leaver(name: str, by: str) -> str:
    return "which" if name == by else f"though {by}"


def _types(op: Operation) -> list[Type]:
    found = [result.type for result in op.results]
    found += [a.type for region in op.regions for block in region.blocks for a in block.args]
    attribute = op.attributes.get("function_type")
    if isinstance(attribute, TypeAttr) and isinstance(attribute.type, FunctionType):
        found += [*attribute.type.inputs, *attribute.type.results]
    return found
