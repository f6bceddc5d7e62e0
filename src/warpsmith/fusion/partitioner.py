"""Splitting a computation into functions, so that no value is computed at two places of one function.

In: a computation, and the roots that share a function.  Out: subgraphs; inside one, each instruction is evaluated at
exactly one index tuple that follows from the function's own indices.  An instruction starts a new subgraph when it is
forced to, when its users lie in several subgraphs, or when they read it at several indices (compared as simplified
maps).  XLA: `xla/codegen/emitters/computation_partitioner.cc`.  Roots of one kernel read each other through bitcast
maps, so that roots that are reshapes of one another share a function; XLA compares them by identity maps and splits.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from warpsmith.errors import IndexingError
from warpsmith.fusion.operand_maps import HERE, Place, index_dims, operand_places
from warpsmith.fusion.traversal import reachable
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.shapes import Shape
from warpsmith.indexing import IndexingMap, bitcast_map

__all__ = ["Epilogue", "PartitionedComputation", "Subgraph", "partition"]

MAX_SUBGRAPH = 2000
_INDEX_ONLY = frozenset(
    ("bitcast", "constant", "iota", "parameter", "reshape", "reverse", "transpose", "broadcast", "slice", "copy")
)
_NAME_LIMIT = 80


@dataclass(slots=True, eq=False)
class Subgraph:
    """One function: index arguments range over `index_sizes`; root i is evaluated at `root_maps[i]` of them.

    `injected` gives the values of heroes that the caller passes in, by position among the extra scalar arguments.
    """

    name: str
    roots: tuple[HloInstruction, ...]
    index_sizes: tuple[int, ...]
    root_maps: tuple[IndexingMap | None, ...]  # None: the function's own indices
    instructions: dict[HloInstruction, None] = field(default_factory=dict[HloInstruction, None])
    injected: tuple[HloInstruction, ...] = ()

    @property
    def no_compute(self) -> bool:
        """Only moves indices about: always worth inlining."""
        return all(each.opcode in _INDEX_ONLY for each in self.instructions)


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What happens to heroes after the emitter has computed them: roots, seen from the emitter's own indices."""

    heroes: tuple[HloInstruction, ...]
    roots: tuple[HloInstruction, ...]
    index_sizes: tuple[int, ...]
    root_maps: tuple[IndexingMap | None, ...]


@dataclass(slots=True, eq=False)
class PartitionedComputation:
    """The subgraphs of a computation, groups first, then users before producers.

    `groups[i]` computes the i-th group of roots, `epilogues[i]` the i-th epilogue; `owners` says which subgraph holds
    an instruction.
    """

    computation: HloComputation
    subgraphs: list[Subgraph]
    groups: list[Subgraph]
    epilogues: list[Subgraph]
    owners: dict[HloInstruction, Subgraph]


@dataclass(slots=True)
class _Uses:
    """How an instruction is used by those visited before it."""

    owners: dict[Subgraph, None] = field(default_factory=dict[Subgraph, None])
    places: dict[Place, None] = field(default_factory=dict[Place, None])
    edges: int = 0
    overflow: bool = False

    def add(self, owner: Subgraph, place: Place | None) -> None:
        self.owners[owner] = None
        self.edges += 1
        if place is not None:
            self.places[place] = None


def partition(
    computation: HloComputation,
    groups: Sequence[Sequence[HloInstruction]] = (),
    *,
    forced: Collection[HloInstruction] = (),
    epilogues: Sequence[Epilogue] = (),
) -> PartitionedComputation:
    """The subgraphs of `computation`.

    `groups`: roots computed by one function each (all at one index, through bitcasts); by default each root of the
    computation that isn't covered by an epilogue belongs to one group.  `forced`: instructions that get a function of
    their own, heroes and operands of heroes being so in any case.
    """
    names = _Names(computation.name)
    epilogue_roots = {root for each in epilogues for root in each.roots}
    heroes = {hero for each in epilogues for hero in each.heroes}
    if not groups and not epilogues:
        root = computation.root
        groups = [tuple(dict.fromkeys(root.operands)) if root.opcode == "tuple" else (root,)]
    must_split = set(forced) | {operand for hero in heroes for operand in hero.operands}
    alive = reachable(tuple(root for group in groups for root in group) + tuple(must_split) + tuple(heroes))
    uses: dict[HloInstruction, _Uses] = {}
    result = PartitionedComputation(computation, [], [], [], {})
    for group in groups:
        subgraph = _group(computation, tuple(group), names)
        result.groups.append(subgraph)
        for root, map in zip(subgraph.roots, subgraph.root_maps, strict=True):
            uses.setdefault(root, _Uses()).add(subgraph, Place(map))
    result.subgraphs += result.groups
    known = set(result.groups)
    for instruction in reversed(computation.instructions):
        if instruction not in alive or instruction.opcode == "parameter":
            continue
        apart = instruction in must_split or instruction in heroes
        subgraph, place = _place(instruction, uses.get(instruction), names, apart)
        if subgraph not in known:
            known.add(subgraph)
            result.subgraphs.append(subgraph)
        subgraph.instructions[instruction] = None
        result.owners[instruction] = subgraph
        for number, operand in enumerate(instruction.operands):
            if operand.opcode != "parameter":
                _use(uses.setdefault(operand, _Uses()), subgraph, instruction, number, place)
    for epilogue in epilogues:
        subgraph = _epilogue(epilogue, names)
        result.epilogues.append(subgraph)
        result.subgraphs.append(subgraph)
    _drop_unused(result, epilogue_roots)
    return result


def _group(computation: HloComputation, roots: tuple[HloInstruction, ...], names: _Names) -> Subgraph:
    root = computation.root
    whole = root.opcode == "tuple" and set(roots) == set(root.operands) and len(roots) > 1
    name = names.of(root.name if whole else "_".join(each.name for each in roots))
    first = _leaf(next(iter(roots)))
    maps = tuple(_root_map(first, _leaf(each)) for each in roots)
    return Subgraph(name, roots, first.dims, maps)


def _leaf(instruction: HloInstruction) -> Shape:
    return instruction.shape.leaves()[0]


def _root_map(first: Shape, other: Shape) -> IndexingMap | None:
    if first.dims == other.dims and first.minor_to_major == other.minor_to_major:
        return None
    found = bitcast_map(first.dims, first.minor_to_major, other.dims, other.minor_to_major)
    return None if found.is_identity else found


def _place(
    instruction: HloInstruction, uses: _Uses | None, names: _Names, forced: bool
) -> tuple[Subgraph, Place | None]:
    """The subgraph of an instruction, and where it is evaluated there."""
    if uses is not None and not forced and not uses.overflow and len(uses.owners) == 1 and len(uses.places) <= 1:
        subgraph = next(iter(uses.owners))
        if len(subgraph.instructions) < MAX_SUBGRAPH or uses.edges > 1:
            return subgraph, next(iter(uses.places), None)
    return Subgraph(names.of(instruction.name), (instruction,), index_dims(instruction), (None,)), HERE


def _use(uses: _Uses, owner: Subgraph, user: HloInstruction, number: int, place: Place | None) -> None:
    """Record that `user`, evaluated at `place` of `owner`, reads its operand `number`."""
    if place is None:
        uses.add(owner, None)
        return
    try:
        found = operand_places(user, number, place, owner.index_sizes)
    except IndexingError:
        # The chain of index changes has grown too deep to compare: the operand starts afresh.
        uses.overflow = True
        found = [None]
    for each in found or [None]:
        uses.add(owner, each)


def _epilogue(epilogue: Epilogue, names: _Names) -> Subgraph:
    """All that the roots reach without passing a hero, whose values come in as arguments."""
    name = names.of("_epilogue__" + "_".join(root.name for root in epilogue.roots))
    subgraph = Subgraph(name, epilogue.roots, epilogue.index_sizes, epilogue.root_maps, injected=epilogue.heroes)
    stack = list(epilogue.roots)
    while stack:
        instruction = stack.pop()
        if instruction in subgraph.instructions or instruction in epilogue.heroes or instruction.opcode == "parameter":
            continue
        subgraph.instructions[instruction] = None
        stack.extend(instruction.operands)
    return subgraph


def _drop_unused(result: PartitionedComputation, epilogue_roots: set[HloInstruction]) -> None:
    """A function whose only purpose was a root that an epilogue covers is never called."""
    if not epilogue_roots:
        return
    read = {operand for instruction in result.owners for operand in instruction.operands}
    unread = epilogue_roots - read
    result.subgraphs = [
        each
        for each in result.subgraphs
        if each in result.groups or each in result.epilogues or not set(each.roots) <= unread
    ]


class _Names:
    """Function names: the computation's, then the roots'; unique and plain."""

    __slots__ = ("_prefix", "_taken")

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._taken: dict[str, int] = {}

    def of(self, suffix: str) -> str:
        whole = re.sub(r"[^A-Za-z0-9_]", "_", f"{self._prefix}_{suffix}")
        plain = name = whole[:_NAME_LIMIT]
        while name in self._taken:
            self._taken[plain] += 1
            mark = f"_{self._taken[plain]}"
            name = whole[: _NAME_LIMIT - len(mark)] + mark
        self._taken[name] = 0
        return name
