"""Destination passing: a tensor that was inserted into is never read or written again, only forwarded.

A tensor value stands for a buffer, and an insert gives the same buffer back as a new value.  So
once something writes to a tensor, its old value must not be read or written where that may come later: the code would
see the new contents.  Handing it on (a yield, a return, the start value of a loop that doesn't touch it, a barrier) is
harmless.

In: the ops of a module.  Out: nothing, or InvalidIr about the op that comes too late.  Only tensors with a writer are
looked at; the work for one is its writers times its other users.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from warpsmith.ir.core.diagnostics import invalid
from warpsmith.ir.core.ssa import Block, Operation, Trait, Value
from warpsmith.ir.core.types import TensorType

__all__ = ["check_destinations"]


class _Use(IntEnum):
    FORWARD = 0
    READ = 1
    WRITE = 2


_WRITES = {"tensor.insert": 1, "vector.transfer_write": 1, "xla_gpu.atomic_rmw": 0, "xla_gpu.predicated_insert": 1}
"""Ops that write to a tensor operand, and which one."""

_FORWARDS = frozenset({"xla_gpu.sync_threads", "builtin.unrealized_conversion_cast", "tensor.cast"})


def check_destinations(ops: Iterable[Operation]) -> None:
    """Check every tensor that an op in `ops` defines or takes as a block argument."""
    checker = _Checker()
    for op in ops:
        for result in op.results:
            checker.value(result)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.args:
                    checker.value(argument)


class _Checker:
    def __init__(self) -> None:
        self.known: dict[Value, _Use] = {}  # what the body of a loop does to an argument
        self.numbers: dict[Block, dict[Operation, int]] = {}

    def value(self, value: Value) -> None:
        if len(value.users) == 0 or not isinstance(value.type, TensorType):
            return
        writers = [u for u in value.users if self.use(u, value) is _Use.WRITE]
        if not writers:
            return
        others = [u for u in value.users if self.use(u, value) is not _Use.FORWARD]
        for writer in writers:
            if value.users[writer] > 1 and writer.row.name in _WRITES:
                continue  # the value written and the place are one tensor only in ill-typed IR
            for other in others:
                if other is not writer and self.may_follow(writer, other, value):
                    self.fail(value, writer, other)
            if self.repeats(writer, value):
                self.fail(value, writer, writer)

    def fail(self, value: Value, writer: Operation, late: Operation) -> None:
        name = f"'%{value.name}'" if value.name else "a tensor"
        raise invalid(
            late,
            f"uses {name} after {writer.row.name} wrote to it",
            "a tensor that was written to may only be handed on: use the result of the op that wrote",
        )

    # -- what a user does
    def use(self, op: Operation, value: Value) -> _Use:
        """What `op` does to a tensor operand."""
        name = op.row.name
        written = _WRITES.get(name)
        if written is not None:
            return _Use.WRITE if len(op.operands) > written and op.operands[written] is value else _Use.READ
        if op.row.traits & Trait.TERMINATOR or name in _FORWARDS:
            return _Use.FORWARD
        if op.row.traits & Trait.LOOP and op.results:
            return self.loop_use(op, value)
        return _Use.READ

    def loop_use(self, op: Operation, value: Value) -> _Use:
        """What a loop's body does to the argument that starts as `value`."""
        block = op.body
        first_operand = len(op.operands) - len(op.results)
        first_argument = len(block.args) - len(op.results)
        if op.row.name == "scf.while" or first_argument < 0 or first_operand < 0:
            return _Use.READ
        worst = _Use.FORWARD
        for i, operand in enumerate(op.operands[first_operand:]):
            if operand is value:
                worst = max(worst, self.argument_use(block.args[first_argument + i]))
        return worst

    def argument_use(self, argument: Value) -> _Use:
        found = self.known.get(argument)
        if found is None:
            found = max((self.use(u, argument) for u in argument.users), default=_Use.FORWARD)
            self.known[argument] = found
        return found

    # -- order
    def may_follow(self, first: Operation, second: Operation, value: Value) -> bool:
        """Whether `second` may run after `first` with the same `value`."""
        a, b = _common(first, second)
        if a is None or b is None:
            return False
        if a is b:  # different regions of one op (branches exclude each other), unless it goes round
            return bool(a.row.traits & Trait.LOOP) and a is not value.defining_op
        if self.number(a) < self.number(b):
            return True
        return self.around(a, value)

    def repeats(self, op: Operation, value: Value) -> bool:
        """Whether `op` may run twice for one `value`: in a loop that doesn't define it."""
        return self.around(op, value)

    def around(self, op: Operation, value: Value) -> bool:
        """Whether a loop around `op` lies within the block that defines `value`."""
        home = value.parent_block
        at: Operation | None = op
        while at is not None and at.block is not home:
            at = at.parent
            if at is not None and at.row.traits & Trait.LOOP and at.block is not None and not _defines(at, value):
                return True
        return False

    def number(self, op: Operation) -> int:
        """The place of an op in its block."""
        block = op.block
        if block is None:
            return 0
        numbers = self.numbers.get(block)
        if numbers is None:
            numbers = self.numbers[block] = {o: i for i, o in enumerate(block)}
        return numbers[op]


def _defines(op: Operation, value: Value) -> bool:
    """Whether `value` is defined in a region of `op`."""
    block = value.parent_block
    while block is not None:
        parent = block.parent_op
        if parent is op:
            return True
        block = parent.block if parent is not None else None
    return False


def _common(first: Operation, second: Operation) -> tuple[Operation | None, Operation | None]:
    """The ops in one block that hold `first` and `second`; the same op twice if it holds both in different regions."""
    above: dict[Block, Operation] = {}
    at: Operation | None = first
    while at is not None and at.block is not None:
        above[at.block] = at
        at = at.parent
    at = second
    while at is not None and at.block is not None:
        found = above.get(at.block)
        if found is not None:
            return found, at
        at = at.parent
    return None, None
