"""Which roots of a reduction share a block: those that have inputs in common; the others get blocks of their own.

In: an analysis of a reduction.  Out: groups of roots, one a value of the z block id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.fusion.reductions import ReductionDimensions, real_reduction
from warpsmith.hlo.module import HloInstruction

__all__ = ["ReductionGroup", "reduction_groups"]


@dataclass(frozen=True, slots=True)
class ReductionGroup:
    """`heroes` (each once) and the roots behind them, and the roots that are written as the input is read."""

    heroes: tuple[HloInstruction, ...]
    reduced: tuple[HloInstruction, ...]
    sides: tuple[HloInstruction, ...]


def reduction_groups(analysis: FusionAnalysis) -> list[ReductionGroup]:
    """The groups, in the order of their first roots."""
    roots = analysis.roots
    warp = analysis.device.warp_size
    heroes = {
        root: hero
        for root, hero in zip(roots, analysis.heroes, strict=True)
        if isinstance(real_reduction(hero, warp), ReductionDimensions)
    }
    sets = _Sets(len(roots))
    sides = [i for i, root in enumerate(roots) if root not in heroes]
    sets.join(sides)
    reached = _reached_roots(analysis)
    for instruction, numbers in reached.items():
        if _is_cheap(instruction):
            # Recomputing a scalar is no reason to share a block: it joins at most one reduction to the side outputs.
            reductions = [i for i in numbers if roots[i] in heroes]
            numbers = [i for i in numbers if i not in reductions[1:]]
        sets.join(numbers)
    found: list[ReductionGroup] = []
    for numbers in sets.members():
        members = [roots[i] for i in numbers]
        reduced = tuple(root for root in members if root in heroes)
        found.append(
            ReductionGroup(
                *(tuple(dict.fromkeys(heroes[root] for root in reduced)), reduced),
                tuple(root for root in members if root not in heroes),
            )
        )
    return found


def _is_cheap(instruction: HloInstruction) -> bool:
    """A constant, a scalar, or a broadcast of one."""
    if instruction.opcode == "broadcast":
        instruction = instruction.operands[0]
    shape = instruction.shape
    return instruction.opcode == "constant" or (not shape.is_tuple and shape.leaves()[0].rank == 0)


def _reached_roots(analysis: FusionAnalysis) -> dict[HloInstruction, list[int]]:
    """For each instruction: the roots that depend on it, by number."""
    reached: dict[HloInstruction, int] = {}
    for number, root in enumerate(analysis.roots):
        reached[root] = reached.get(root, 0) | 1 << number
    for instruction in reversed(analysis.instructions):
        bits = reached.get(instruction, 0)
        if not bits or (instruction is analysis.body.root and instruction not in analysis.roots):
            continue
        for operand in instruction.operands:
            reached[operand] = reached.get(operand, 0) | bits
    count = len(analysis.roots)
    return {each: [i for i in range(count) if bits >> i & 1] for each, bits in reached.items()}


class _Sets:
    """Disjoint sets of the numbers below `count`."""

    def __init__(self, count: int) -> None:
        self._parent = list(range(count))

    def find(self, i: int) -> int:
        while self._parent[i] != i:
            self._parent[i] = self._parent[self._parent[i]]
            i = self._parent[i]
        return i

    def join(self, numbers: Sequence[int]) -> None:
        """One set of all sets that the numbers are in; the lowest number speaks for it."""
        for i in numbers[1:]:
            a, b = sorted((self.find(numbers[0]), self.find(i)))
            self._parent[b] = a

    def members(self) -> list[list[int]]:
        found: dict[int, list[int]] = {}
        for i in range(len(self._parent)):
            found.setdefault(self.find(i), []).append(i)
        return list(found.values())
