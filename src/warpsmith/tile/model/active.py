"""Which threads of a block reach a point of a kernel.

In: the conditions around it.  Out: `Active`: a mask over the block's threads, exact wherever the conditions depend on
ids and constants alone, times conditions that are the same for the whole block (which leave either all of them or
none); or unknown, with the reason and the place of the condition.  Collective primitives need it known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from warpsmith.ir.core.ssa import Location, Operation, Value
from warpsmith.ir.core.types import I1
from warpsmith.tile.model.uniform import Grouped, Known, Uniformity, Varying

__all__ = ["Active", "everyone", "narrow", "narrow_loop"]

Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, eq=False, slots=True)
class Active:
    """The threads that reach a point: `mask`, or None with the reason and the place of what hides it.

    With `group`, of each group of so many threads in the mask either all get there or none, which isn't known.
    """

    mask: Mask | None
    reason: str = ""
    place: Location | None = None
    group: int | None = None

    def of_scope(self, threads: int) -> str | None:
        """None when every group of `threads` threads is active as a whole or not at all; else what is wrong."""
        if self.mask is None or (self.group is not None and threads > self.group):
            where = f" (line {self.place.line})" if self.place is not None and self.place.line else ""
            return f"which threads get here can't be told{where}: {self.reason}"
        total = self.mask.size
        if threads < 1:
            return "the scope has no threads in one block"
        if total % threads:
            return f"a block of {total} threads isn't a whole number of groups of {threads}"
        groups = self.mask.reshape(-1, threads)
        counts = groups.sum(axis=1)
        broken = np.flatnonzero((counts != 0) & (counts != threads))
        if broken.size == 0:
            return None
        first = int(broken[0])
        return f"{_spans(groups[first])} of {threads} threads are active in group {first}"

    def within(self, mask: Mask) -> Active:
        """Those of them that a mask has."""
        return self if self.mask is None else replace(self, mask=self.mask & mask)

    def in_groups(self, group: int, reason: str, place: Location | None) -> Active:
        """The same, of which only some groups of so many threads may get further."""
        if self.mask is None or (self.group is not None and self.group <= group):
            return self
        return Active(self.mask, reason, place, group)


def _spans(mask: Mask) -> str:
    """`[0, 16)` and the like: which threads are in."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8)))
    spans = [f"[{a}, {b})" for a, b in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)]
    return ", ".join(spans) if len(spans) <= 3 else f"{', '.join(spans[:3])} and more"


def everyone(threads: int) -> Active:
    """All threads of a block."""
    return Active(np.ones(threads, np.bool_))


def narrow(active: Active, condition: Value, uniform: Uniformity, *, taken: bool) -> Active:
    """The threads for which a condition holds (`taken`) or doesn't."""
    if active.mask is None:
        return active
    what = uniform.what(condition)
    if isinstance(what, Known):
        values = np.broadcast_to(what.values.astype(np.bool_), active.mask.shape)
        return active.within(values if taken else ~values)
    op = condition.defining_op
    if isinstance(what, Grouped):
        reason = f"it differs between groups of {what.threads} threads"
        return active.in_groups(what.threads, reason, op.location if op is not None else None)
    if not isinstance(what, Varying):
        return active  # all threads go one way together
    parts = _conjunction(condition) if taken else _disjunction(condition)
    if len(parts) > 1:  # all parts hold (or all fail) where this way is taken
        for part in parts:
            active = narrow(active, part, uniform, taken=taken)
        return active
    negated = _negated(condition)
    if negated is not None:
        return narrow(active, negated, uniform, taken=not taken)
    return Active(None, what.reason, op.location if op is not None else None)


def _conjunction(condition: Value) -> Sequence[Value]:
    op = condition.defining_op
    return op.operands if op is not None and op.name == "arith.andi" and condition.type is I1 else (condition,)


def _disjunction(condition: Value) -> Sequence[Value]:
    """`not (a or b)` is `not a and not b`."""
    op = condition.defining_op
    return op.operands if op is not None and op.name == "arith.ori" and condition.type is I1 else (condition,)


def _negated(condition: Value) -> Value | None:
    """x, of `x xor true`."""
    from warpsmith.ir.dialects.arith import constant_int

    op = condition.defining_op
    if op is not None and op.name == "arith.xori" and condition.type is I1 and constant_int(op.operands[1]):
        return op.operands[0]
    return None


def narrow_loop(active: Active, loop: Operation, uniform: Uniformity) -> Active:
    """The threads in a loop's body: the same as before it where all threads make the same turns."""
    if active.mask is None:
        return active
    bounds = loop.operands[:3] if loop.name == "scf.for" else [loop.body.terminator.operands[0]]
    for bound in bounds:
        what = uniform.what(bound)
        reason = what.reason if isinstance(what, Varying) else "threads make different numbers of turns"
        active = _grouped(active, uniform, uniform.group(bound), reason, loop)
    leaving = "only some threads leave the loop or a turn of it early"
    return _grouped(active, uniform, uniform.leaving(loop), leaving, loop)


def _grouped(active: Active, uniform: Uniformity, group: int, reason: str, loop: Operation) -> Active:
    if group == uniform.threads or active.mask is None:
        return active
    if group == 1:
        return Active(None, reason, loop.location)
    return active.in_groups(group, reason, loop.location)
