"""`break` and `continue` without jumps: flags that the rest of a turn, and the loop's condition, ask.

    while c: ...; if p: break; rest        ->    leave = false; while c and not leave: ...; if p: leave = true
                                                                                       if not leave: rest

A `for` with a break keeps its turns: those after the break do nothing.
"""

from __future__ import annotations

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Block, Operation, Value
from warpsmith.ir.core.types import I1, memref
from warpsmith.ir.dialects import arith, memory, scf, tile

__all__ = ["lower_early_exits"]

_EXITS = ("tile.break", "tile.continue")
_LOOPS = ("scf.for", "scf.while")


def lower_early_exits(function: Operation) -> None:
    """Rewrite every loop that is left early, inner ones first."""
    for loop in list(function.walk_post()):
        if loop.name in _LOOPS:
            exits = [op for op in _own(loop) if op.name in _EXITS]
            if exits:
                _Loop(function, loop).lower(exits)


def _own(loop: Operation) -> list[Operation]:
    """The ops in a loop's body that aren't in a loop inside it."""
    found: list[Operation] = []
    stack = [op for region in loop.regions for block in region.blocks for op in block]
    while stack:
        op = stack.pop()
        found.append(op)
        if op.name not in _LOOPS:
            stack.extend(inner for region in op.regions for block in region.blocks for inner in block)
    return found


class _Loop:
    """One loop's flags: `left` for good, `skipped` for the rest of a turn."""

    def __init__(self, function: Operation, loop: Operation) -> None:
        self.function = function
        self.loop = loop
        self.body = loop.regions[-1].blocks[0]

    def lower(self, exits: list[Operation]) -> None:
        """Replace the exits by stores to flags, and guard what follows them."""
        flags: dict[str, Value] = {}
        for kind, name in (("tile.break", "left"), ("tile.continue", "skipped")):
            if any(op.name == kind for op in exits):
                flags[kind] = self._flag(name)
        if "tile.break" in flags:
            self._set(Builder.before(self.loop), flags["tile.break"], False)
        for op in exits:
            self._set(Builder.before(op), flags[op.name], True)
        self._guard(self.body, exits, list(flags.values()))
        for op in exits:
            op.erase()
        if "tile.continue" in flags:
            self._set(Builder.at_start(self.body, self.loop.location), flags["tile.continue"], False)
        if "tile.break" in flags:
            self._ask_before_turn(flags["tile.break"])

    def _flag(self, name: str) -> Value:
        top = Builder.at_start(self.function.body, self.loop.location)
        return memory.alloca(top, memref((1,), I1, tile.PRIVATE), 4, name, {"tile.variable": at.string("bool")})

    @staticmethod
    def _set(b: Builder, flag: Value, value: bool) -> None:
        b.create("memref.store", (arith.constant(b, value, I1), flag, arith.index(b, 0)))

    @staticmethod
    def _stays(b: Builder, flags: list[Value]) -> Value:
        """Whether none of the flags is set."""
        gone: Value | None = None
        for flag in flags:
            each = b.op1("memref.load", (flag, arith.index(b, 0)), I1, None, flag.name)
            gone = each if gone is None else arith.binary(b, "ori", gone, each)
        assert gone is not None
        return arith.binary(b, "xori", gone, arith.constant(b, True, I1))

    def _guard(self, block: Block, exits: list[Operation], flags: list[Value]) -> None:
        """Put what follows an exit (or a branch with one in it) into a branch that asks the flags."""
        for op in list(block):
            if op.block is not block or op.name in _LOOPS:
                continue
            if not any(op is each or op.is_ancestor_of(each) for each in exits):
                continue
            for region in op.regions:
                for inner in region.blocks:
                    self._guard(inner, exits, flags)
            following: list[Operation] = []
            rest = op.next
            while rest is not None and rest is not block.last:
                following.append(rest)
                rest = rest.next
            if not following:
                return
            b = Builder.after(op)
            b.location = op.location
            branch = scf.if_(b, self._stays(b, flags))
            inside = branch.regions[0].blocks[0]
            for each in following:
                each.unlink()
                inside.append(each)
            scf.yield_(Builder.at_end(inside, op.location))
            self._guard(inside, exits, flags)
            return

    def _ask_before_turn(self, left: Value) -> None:
        if self.loop.name == "scf.while":
            condition = self.loop.body.terminator
            b = Builder.before(condition)
            condition.set_operand(0, arith.binary(b, "andi", condition.operands[0], self._stays(b, [left])))
            return
        ops = [op for op in self.body if op is not self.body.last]
        b = Builder.at_start(self.body, self.loop.location)
        branch = scf.if_(b, self._stays(b, [left]))
        inside = branch.regions[0].blocks[0]
        for each in ops:
            each.unlink()
            inside.append(each)
        scf.yield_(Builder.at_end(inside, self.loop.location))
