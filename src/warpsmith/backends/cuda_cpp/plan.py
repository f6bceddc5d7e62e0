"""Which values are folded into the expression that uses them.

In: a function.  Out: the ops that get no variable of their own, and the `scf.if`s that can be a conditional expression.

A value with one use is folded when it may be computed where it is used: it has no effects, nothing that was read is
written in between, no loop is entered, and a shuffle, which all threads take part in, doesn't come under a condition.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from warpsmith.ir.core.effects import effects_of
from warpsmith.ir.core.ssa import Block, Effect, Operation, Trait, Value
from warpsmith.ir.core.types import I1, VectorType
from warpsmith.ir.dialects.arith import CMPF

__all__ = ["Plan", "accumulation", "is_accumulated", "is_invariant_read", "plan", "stored_next"]

_READS = frozenset(("memref.load", "vector.load"))
_SHUFFLE = "gpu.shuffle"
_MEETINGS = frozenset((_SHUFFLE, "nvgpu.mma.sync", "nvgpu.ldmatrix"))  # all lanes are there, and nothing is written
_ACCUMULATES = frozenset(("arith.addf", "arith.mulf", "arith.addi"))
_TWICE = frozenset((CMPF["one"], CMPF["ueq"]))


@dataclass(slots=True)
class Plan:
    """`folded`: no variable.  `conditional`: an `scf.if` whose arms are expressions."""

    folded: set[Operation] = field(default_factory=set[Operation])
    conditional: set[Operation] = field(default_factory=set[Operation])


def plan(function: Operation, expressions: Container[str]) -> Plan:
    """Decide for all ops of a function; `expressions` are the ops that are C++ expressions."""
    planner = _Planner(expressions)
    for region in function.regions:
        for block in region.blocks:
            planner.block(block)
    return planner.plan


def is_invariant_read(op: Operation) -> bool:
    """A read of what the kernel never writes."""
    return op.name in _READS and "invariant" in op.attributes


class _Planner:
    def __init__(self, expressions: Container[str]) -> None:
        self.expressions = expressions
        self.plan = Plan()
        self.ends: dict[Operation, Operation] = {}  # a folded op -> the statement it ends up in
        self.lazy: set[Operation] = set()  # folded where it isn't always evaluated

    def block(self, block: Block) -> None:
        """Users come before what they use: bottom up."""
        for op in reversed(block):
            if op.name == "scf.if" and self._arms_are_expressions(op):
                self.plan.conditional.add(op)
            self._decide(op)
            for region in op.regions:
                for inner in region.blocks:
                    self.block(inner)

    def _arms_are_expressions(self, op: Operation) -> bool:
        if len(op.results) != 1 or isinstance(op.result.type, VectorType):
            return False
        for region in op.regions:
            for inner in region.blocks[0]:
                if inner.row.traits & (Trait.TERMINATOR | Trait.CONSTANT):
                    continue
                if inner.name == "scf.if":
                    fits = self._arms_are_expressions(inner)
                else:
                    fits = inner.name in self.expressions and inner.name != _SHUFFLE and len(inner.results) == 1
                if not fits or not inner.result.has_one_use:
                    return False
                if next(iter(inner.result.users)).block is not inner.block or needs_name(inner.result):
                    return False
        return True

    def _decide(self, op: Operation) -> None:
        if (op.name not in self.expressions or op.row.has(Trait.CONSTANT)) and op not in self.plan.conditional:
            return
        if op.name == _SHUFFLE and op.results[1].users:
            return
        result = op.results[0]
        if not result.has_one_use or needs_name(result) or accumulation(op) is not None:
            return
        user = next(iter(result.users))
        lazy = _evaluates_lazily(user, result) or user in self.lazy
        end = self.ends.get(user, user)
        if user.name == "scf.yield" and user.parent in self.plan.conditional:
            assert user.parent is not None
            lazy, end = True, self.ends.get(user.parent, user.parent)
        if self._may_move(op, end, lazy):
            self.plan.folded.add(op)
            self.ends[op] = end
            if lazy:
                self.lazy.add(op)

    def _may_move(self, op: Operation, end: Operation, lazy: bool) -> bool:
        """Whether `op` may be computed at the statement `end`."""
        place = end
        while place.block is not op.block:
            parent = place.parent
            if parent is None or parent.row.traits & Trait.LOOP:
                # An arm of a conditional expression ends outside its block.
                return parent is None and op.parent in self.plan.conditional
            place = parent
        nested = place is not end
        if op.name == _SHUFFLE:
            return not (nested or lazy)
        reads = Effect.READ in effects_of(op) and not is_invariant_read(op)
        if not reads:
            return True
        return not nested and not _is_written_between(op, place)


def accumulation(op: Operation) -> Value | None:
    """The value x of `x + shuffle(x)`, if nothing else uses it: the sum takes its variable."""
    if len(op.operands) != 2 or op.name not in _ACCUMULATES:
        return None
    x, other = op.operands
    shuffle = other.defining_op
    if shuffle is None or shuffle.name != _SHUFFLE or shuffle.operands[0] is not x or shuffle.block is not op.block:
        return None
    alone = other.has_one_use and set(x.users) == {op, shuffle} and x.users[op] == x.users[shuffle] == 1
    return x if alone and x.parent_block is op.block else None


def is_accumulated(value: Value) -> bool:
    """Whether a value's variable takes a sum with what its neighbours have."""
    return any(accumulation(user) is value for user in value.users)


def stored_next(op: Operation) -> Operation | None:
    """The store that alone takes an op's vector, with nothing in between that has effects: its place can be filled."""
    result = op.result
    user = next(iter(result.users), None)
    if user is None or not result.has_one_use or user.name != "vector.store" or user.block is not op.block:
        return None
    between = op.next
    while between is not None and between is not user:
        if effects_of(between):
            return None
        between = between.next
    return user if user.operands[0] is result else None


def _is_written_between(first: Operation, last: Operation) -> bool:
    op = first.next
    while op is not None and op is not last:
        if op.name not in _MEETINGS and effects_of(op) & {Effect.WRITE, Effect.BARRIER, Effect.UNKNOWN}:
            return True
        op = op.next
    return False


def _evaluates_lazily(user: Operation, value: Value) -> bool:
    if user.name == "arith.select":
        return user.operands[0] is not value
    return user.name in ("arith.andi", "arith.ori") and value.type is I1


def needs_name(value: Value) -> bool:
    """Whether the text of the one user has the operand twice, or takes an element of it."""
    user = next(iter(value.users))
    name = user.name
    if name in ("vector.extract", "vector.shuffle", "vector.bitcast", "arith.mulsi_extended", "arith.mului_extended"):
        return True
    if name in ("scf.for", "xla_gpu.compare_exchange"):
        return value in user.operands[1:3]
    if name == "arith.cmpf":
        return user.int_attr("predicate") in _TWICE
    if name == "vector.store" and value is user.operands[0]:
        return value.defining_op is None or value.defining_op.name != "vector.load"
    return user.row.has(Trait.ELEMENTWISE) and any(isinstance(r.type, VectorType) for r in user.results)
