"""Which thread holds which digit: a register tile's part of a scope's threads.

In: the digits whose step is a number of threads, and the copies on other threads.  Out: `Owners`: each digit's value in
a thread, and the condition under which a thread holds anything (and is the one copy that stores).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.indexing import Expr, add, const, dim, floordiv, mod
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.dialects import arith
from warpsmith.tile.dispatch.decline import Decline
from warpsmith.tile.dispatch.emission import apply, conjunction

__all__ = ["Owners", "owners"]


@dataclass(frozen=True, slots=True)
class Owners:
    """`parts`: (extent, stride in threads) of each digit; `copies`: those of the replicas; `first`: where it begins."""

    parts: tuple[tuple[int, int], ...]
    copies: tuple[tuple[int, int], ...]
    first: int
    threads: int

    @property
    def chain(self) -> list[tuple[int, int]]:
        """All parts and copies, the smallest stride first."""
        return sorted((each for each in (*self.parts, *self.copies) if each[0] > 1), key=lambda each: each[1])

    def gaps(self) -> str | None:
        """None when every thread holds a part, each exactly one; else what is missing."""
        expected = 1
        for extent, stride in self.chain:
            if stride != expected:
                return (
                    f"its threads don't make a complete {self.threads}:1 (by stride: expected {expected}, got {stride})"
                )
            expected *= extent
        if self.first:
            return f"it begins at thread {self.first}"
        if expected != self.threads:
            return f"it spans {expected} threads, not all {self.threads}"
        return None

    def digit(self, number: int) -> Expr:
        """Digit `number` in the thread that is `dim(0)`."""
        extent, stride = self.parts[number]
        shifted = add(dim(0), const(-self.first)) if self.first else dim(0)
        return mod(floordiv(shifted, stride), extent)

    def holds(self, b: Builder, thread: Value, *, one_copy: bool) -> Value | None:
        """Whether a thread holds a part; with `one_copy`, whether its copy is the one that counts.  None: all do."""
        conditions: list[Value] = []
        shifted = add(dim(0), const(-self.first)) if self.first else dim(0)
        if self.first:
            conditions.append(arith.cmpi(b, "sge", thread, arith.index(b, self.first)))
        expected = 1
        for extent, stride in self.chain:
            if stride != expected:
                rest = apply(b, mod(floordiv(shifted, expected), stride // expected), [thread])
                conditions.append(arith.cmpi(b, "eq", rest, arith.index(b, 0)))
            expected = stride * extent
        if self.first + expected < self.threads:
            conditions.append(arith.cmpi(b, "slt", thread, arith.index(b, self.first + expected)))
        if one_copy:
            for extent, stride in self.copies:
                if extent > 1:
                    copy = apply(b, mod(floordiv(shifted, stride), extent), [thread])
                    conditions.append(arith.cmpi(b, "eq", copy, arith.index(b, 0)))
        return conjunction(b, conditions)


def owners(
    parts: Sequence[tuple[int, int]], copies: Sequence[tuple[int, int]], first: int, threads: int, name: str
) -> Owners:
    """Check that no two digits fall on one thread, and that all threads exist.  Decline otherwise."""
    found = Owners(tuple(parts), tuple(copies), first, threads)
    if any(stride < 0 for _, stride in found.chain):
        raise Decline(f"{name} counts threads downwards, by {[s for _, s in found.chain if s < 0]}")
    expected = 1
    for extent, stride in found.chain:
        if stride == 0 or stride % expected:
            raise Decline(f"{name} puts two parts on one thread: its thread strides are {[s for _, s in found.chain]}")
        expected = stride * extent
    reach = first + 1 + sum((extent - 1) * stride for extent, stride in found.chain)
    if reach > threads:
        raise Decline(f"{name} reaches thread {reach - 1}, but the scope has {threads} threads")
    if first and math.prod(extent for extent, _ in found.chain) == 0:
        raise Decline(f"{name} holds nothing")
    return found
