"""Whether iterations of a loop may run side by side: no two of them touch one element that one of them writes.

In: a loop with step 1 whose body only loads and stores rank-1 buffers.  Out: yes or no.  Lanes run each op for all
iterations before the next op, and an inner loop's step for all iterations before its next step, so accesses of
different iterations change places; those of one iteration never do.  What vectorize-cpu asks; no pass of its own.

Two buffers that are different values are taken not to overlap: each argument of a kernel is an array of its own
(merge-pointers).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.dialects import arith
from warpsmith.passes.support.affine_lanes import Lanes

__all__ = ["iterations_are_independent"]

_BUFFER = {"memref.load": 0, "memref.store": 1, "xla_cpu.lookup": 0}  # the operand that is the buffer


@dataclass(frozen=True, slots=True)
class _Place:
    """An index as `constant + sum(terms)`, and besides any multiple of `inner`, as inner loops go round (0: none)."""

    terms: dict[Value, int]
    constant: int
    inner: int


def iterations_are_independent(loop: Operation, lanes: Lanes) -> bool:
    """Stores against all other accesses of their buffers, by the distance of the indices."""
    accesses: dict[Value, list[Operation]] = {}
    written: set[Value] = set()
    for op in loop.walk():
        position = _BUFFER.get(op.name)
        if position is not None:
            accesses.setdefault(op.operands[position], []).append(op)
            if op.name == "memref.store":
                written.add(op.operands[position])
    lower, upper = (arith.constant_int(v) for v in loop.operands[:2])
    extent = upper - lower if lower is not None and upper is not None else None
    for base in written:
        stores: dict[Value, Operation] = {}
        others: dict[Value, Operation] = {}
        for op in accesses[base]:
            if op.name == "xla_cpu.lookup":
                return False
            (stores if op.name == "memref.store" else others).setdefault(op.operands[-1], op)
        places = {index: _place(loop, lanes, index) for index in {**stores, **others}}
        for store in stores:
            if not all(_apart(loop, places[store], place, extent) for place in places.values()):
                return False
    return True


def _apart(loop: Operation, a: _Place | None, b: _Place | None, extent: int | None) -> bool:
    """Whether two accesses meet in one iteration only, or never."""
    iv = loop.body.args[0]
    if a is None or b is None or a.terms != b.terms or a.terms.get(iv) != 1:
        return False
    distance, step = b.constant - a.constant, math.gcd(a.inner, b.inner)
    if not step:
        return distance == 0 or (extent is not None and abs(distance) >= extent)
    if extent is None:
        return False
    rest = distance % step
    return step >= extent if rest == 0 else min(rest, step - rest) >= extent


def _place(loop: Operation, lanes: Lanes, index: Value) -> _Place | None:
    """`index` through sums, differences and products with constants; None where something else varies in the loop."""
    terms: dict[Value, int] = {}
    constant = inner = 0
    pending = [(index, 1)]
    while pending:
        value, factor = pending.pop()
        known = arith.constant_int(value)
        op = value.defining_op
        if known is not None:
            constant += factor * known
        elif op is not None and op.name in ("arith.addi", "arith.subi"):
            sign = 1 if op.name == "arith.addi" else -1
            pending += [(op.operands[0], factor), (op.operands[1], sign * factor)]
        elif (scaled := _scaled(op)) is not None:
            pending.append((scaled[0], factor * scaled[1]))
        elif value is loop.body.args[0] or not _is_inside(loop, value):
            terms[value] = terms.get(value, 0) + factor
        elif lanes.is_uniform(value):
            start, step = _progression(value)
            if start is not None:
                pending.append((start, factor))
            inner = math.gcd(inner, factor * step)
        else:
            return None
    return _Place({v: c for v, c in terms.items() if c}, constant, inner)


def _scaled(op: Operation | None) -> tuple[Value, int] | None:
    """A product's variable factor and its constant one."""
    if op is None or op.name != "arith.muli":
        return None
    for value, factor in (op.operands, op.operands[::-1]):
        constant = arith.constant_int(factor)
        if constant is not None:
            return value, constant
    return None


def _is_inside(loop: Operation, value: Value) -> bool:
    block = value.parent_block
    owner = block.parent_op if block is not None else None
    return owner is not None and (owner is loop or loop.is_ancestor_of(owner))


def _progression(value: Value) -> tuple[Value | None, int]:
    """First value and step of an inner loop's induction variable; any other value may be any integer."""
    block = value.parent_block
    owner = block.parent_op if block is not None and value.defining_op is None else None
    if owner is not None and owner.name == "scf.for" and value is owner.body.args[0]:
        step = arith.constant_int(owner.operands[2])
        if step is not None:
            return owner.operands[0], step
    return None, 1
