"""What an op does beside computing its results, read from its row and the ops in its regions.

In: ops.  Out: yes or no.  CSE, LICM, the rewriter's dead-op removal and the folder all ask here, so that an op's row is
the only place that states its effects.

Tensors are values: a read or write of a tensor operand is data flow, not a memory effect.
"""

from __future__ import annotations

import numpy as np

from warpsmith.ir.core.attributes import DenseAttr, IntegerAttr
from warpsmith.ir.core.ssa import Effect, Operation, Trait, Value
from warpsmith.ir.core.types import TensorType

__all__ = [
    "constant_of",
    "effects_of",
    "has_effects",
    "is_pure",
    "is_removable",
    "is_speculatable",
    "only_reads",
]


def _own_effects(op: Operation) -> tuple[Effect, ...]:
    effects = op.row.effects
    if not effects or not any(isinstance(v.type, TensorType) for v in op.operands):
        return tuple(effect for effect, _ in effects)
    return tuple(effect for effect, operand in effects if operand is None)


def effects_of(op: Operation) -> frozenset[Effect]:
    """All effects of an op and, when they count (`Trait.RECURSIVE`), of the ops in its regions."""
    row = op.row
    if not row.traits & Trait.RECURSIVE:
        own = _own_effects(op) if row.effects else ()
        return frozenset(own) if own else _NO_EFFECTS
    found: set[Effect] = set()
    for inner in op.walk():
        if inner.row.effects:
            found.update(_own_effects(inner))
    return frozenset(found)


_NO_EFFECTS: frozenset[Effect] = frozenset()


def is_pure(op: Operation) -> bool:
    """No effects at all: equal ops give equal results, and an unused one can go."""
    if op.row.effects and _own_effects(op):
        return False
    if op.regions and op.row.has(Trait.RECURSIVE):
        return all(is_pure(inner) for region in op.regions for block in region.blocks for inner in block)
    return True


def has_effects(op: Operation) -> bool:
    """Whether an op reads or writes memory, or does anything else than to give results."""
    return not is_pure(op)


def only_reads(op: Operation) -> bool:
    """Reads memory and does nothing else."""
    return effects_of(op) == _READS


_READS = frozenset((Effect.READ,))
_REMOVABLE = frozenset((Effect.READ, Effect.ALLOCATE))


def is_removable(op: Operation) -> bool:
    """Whether the op can go once its results have no users: it writes nothing, syncs nothing, defines no symbol."""
    if op.row.traits & (Trait.TERMINATOR | Trait.SYMBOL):
        return False
    if not op.row.effects and not op.regions:
        return True
    if op.regions and not op.row.has(Trait.RECURSIVE):
        return bool(op.results) and not any(e not in _REMOVABLE for e in _own_effects(op)) and _regions_removable(op)
    return effects_of(op) <= _REMOVABLE


def _regions_removable(op: Operation) -> bool:
    return all(effects_of(inner) <= _REMOVABLE for region in op.regions for block in region.blocks for inner in block)


def constant_of(value: Value) -> IntegerAttr | None:
    """The integer a value is known to be (index, iN); None when it is no integer constant."""
    op = value.defining_op
    if op is None or not op.row.traits & Trait.CONSTANT:
        return None
    found = op.attributes.get("value")
    return found if isinstance(found, IntegerAttr) else None


def is_speculatable(op: Operation) -> bool:
    """Whether a pure op may run where the program would not have run it: it can't trap and touches no memory."""
    if op.row.traits & (Trait.GUARDED | Trait.CALL):
        return False
    if op.row.has(Trait.DIVISION) and not _safe_divisor(op.operands[1]):
        return False
    return all(is_speculatable(inner) for region in op.regions for block in region.blocks for inner in block)


def _safe_divisor(value: Value) -> bool:
    """A constant other than 0 and -1 (the least integer over -1 overflows)."""
    op = value.defining_op
    if op is None or not op.row.has(Trait.CONSTANT):
        return False
    found = op.attributes.get("value")
    if isinstance(found, IntegerAttr):
        return found.value not in (0, -1)
    return isinstance(found, DenseAttr) and not np.isin(found.array, (0, -1)).any()
