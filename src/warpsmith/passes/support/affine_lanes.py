"""How values change from one iteration of a loop to the next: uniform, by a constant stride, or anyhow.

What the CPU passes ask before they turn iterations into vector lanes.  No pass of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from warpsmith.ir.core.effects import is_pure
from warpsmith.ir.core.ssa import Block, Operation, Value
from warpsmith.ir.dialects import arith

__all__ = ["VARYING", "Lanes", "known_multiple"]

_ANYTHING = 1 << 30  # zero is a multiple of everything

VARYING = None  # neither uniform (0) nor linear (a stride)


def known_multiple(value: Value, given: Mapping[Value, int]) -> int:
    """A number that is proven to divide `value`, through sums and products of constants and of what is `given`."""
    found = given.get(value)
    if found is not None:
        return found
    constant = arith.constant_int(value)
    if constant is not None:
        return abs(constant) or _ANYTHING
    op = value.defining_op
    if op is None or op.name not in _LINEAR:
        return 1
    a, b = (known_multiple(v, given) for v in op.operands)
    return min(a * b, _ANYTHING) if op.name == "arith.muli" else math.gcd(a, b)


class Lanes:
    """The stride of every value in a loop body with respect to the loop's induction variable.

    A value from outside is uniform (stride 0).  The answer is an int, or None for "varies".
    """

    def __init__(self, loop: Operation) -> None:
        self.loop = loop
        self.strides: dict[Value, int | None] = {loop.body.args[0]: 1}
        for argument in loop.body.args[1:]:
            self.strides[argument] = VARYING
        self._block(loop.body)

    def __getitem__(self, value: Value) -> int | None:
        return self.strides.get(value, 0)

    def is_uniform(self, value: Value) -> bool:
        """Whether all lanes have the same value."""
        return self.strides.get(value, 0) == 0

    def _block(self, block: Block) -> None:
        for op in block:
            if op.name == "scf.for":
                self._for(op)
            elif op.name == "scf.if":
                self._if(op)
            else:
                self._op(op)

    def _op(self, op: Operation) -> None:
        rule = _LINEAR.get(op.name)
        stride = rule(self, op) if rule is not None else self._anyhow(op)
        if stride != 0:
            for result in op.results:
                self.strides[result] = stride

    def _anyhow(self, op: Operation) -> int | None:
        uniform = all(self.is_uniform(v) for v in op.operands)
        return 0 if uniform and (is_pure(op) or op.name == "memref.load") else VARYING

    def _for(self, op: Operation) -> None:
        """An inner loop with uniform bounds: what it carries is uniform only if it stays so."""
        inits = op.operands[3:]
        args = op.body.args[1:]
        bounds_uniform = all(self.is_uniform(v) for v in op.operands[:3])
        if not bounds_uniform:
            self.strides[op.body.args[0]] = VARYING
        for argument, init in zip(args, inits, strict=True):
            if not bounds_uniform or not self.is_uniform(init):
                self.strides[argument] = VARYING
        while True:
            self._block(op.body)
            changed = False
            for argument, value in zip(args, op.body.terminator.operands, strict=True):
                if self.is_uniform(argument) and not self.is_uniform(value):
                    self.strides[argument] = VARYING
                    changed = True
            if not changed:
                break
        for argument, result in zip(args, op.results, strict=True):
            if not self.is_uniform(argument):
                self.strides[result] = VARYING

    def _if(self, op: Operation) -> None:
        yields: list[list[Value]] = []
        for region in op.regions:
            for block in region.blocks:
                self._block(block)
                yields.append(block.terminator.operands)
        uniform_condition = self.is_uniform(op.operands[0])
        for i, result in enumerate(op.results):
            if not uniform_condition or not all(self.is_uniform(y[i]) for y in yields):
                self.strides[result] = VARYING

    # -- linear arithmetic
    def sum(self, op: Operation) -> int | None:
        """The stride of a sum; VARYING if it has none."""
        a, b = self[op.operands[0]], self[op.operands[1]]
        return VARYING if a is None or b is None else a + b

    def difference(self, op: Operation) -> int | None:
        """The stride of a difference; VARYING if it has none."""
        a, b = self[op.operands[0]], self[op.operands[1]]
        return VARYING if a is None or b is None else a - b

    def product(self, op: Operation) -> int | None:
        """The stride of a product; VARYING unless one factor is a constant."""
        a, b = self[op.operands[0]], self[op.operands[1]]
        if a == 0 and b == 0:
            return 0
        for stride, factor in ((a, op.operands[1]), (b, op.operands[0])):
            constant = arith.constant_int(factor)
            if constant is not None and stride is not None:
                return stride * constant
        return VARYING


_LINEAR = {"arith.addi": Lanes.sum, "arith.subi": Lanes.difference, "arith.muli": Lanes.product}
