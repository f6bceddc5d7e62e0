"""When two fusions are one kernel.

In: a fusion.  Out: a hashable key; fusions with equal keys differ in names, operands and metadata alone, and so get
the same code.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import cast

from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.traversal import callees_first

__all__ = ["kernel_key"]

_SAYS_NOTHING = frozenset(
    ("metadata", "backend_config", "frontend_attributes", "sharding", "control-predecessors", "origin", "statistics")
)


def kernel_key(fusion: HloInstruction) -> Hashable:
    """The structure of a fusion's body and of what it calls."""
    numbers: dict[HloComputation, int] = {}
    found: list[Hashable] = []
    for computation in callees_first(fusion.called_computations):
        numbers[computation] = len(numbers)
        found.append(_computation_key(computation, numbers))
    return tuple(found)


def _computation_key(computation: HloComputation, numbers: Mapping[HloComputation, int]) -> Hashable:
    places: dict[HloInstruction, int] = {}
    rows: list[Hashable] = []
    for place, each in enumerate(computation):
        places[each] = place
        operands = tuple([places[operand] for operand in each.operands])
        attributes = tuple(
            [(name, _value_key(value, numbers)) for name, value in each.attributes.items() if name not in _SAYS_NOTHING]
        )
        rows.append((each.opcode, each.shape, operands, attributes, each.literal, each.parameter_number))
    return (places[computation.root], *rows)


def _value_key(value: object, numbers: Mapping[HloComputation, int]) -> Hashable:
    if isinstance(value, HloComputation):
        return ("computation", numbers[value])
    if isinstance(value, tuple):
        return tuple([_value_key(each, numbers) for each in cast("tuple[object, ...]", value)])
    return (type(value).__name__, str(value))
