"""The thread hierarchy: scope ids, the extents that follow from one another, and the launch.

In: the `tile.scope_id` ops of a kernel.  Out: a `Launch`.  What an author leaves out is inferred: extents along a path
multiply, and a warp has 32 lanes and a warpgroup four warps wherever the block divides so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from warpsmith.errors import InvalidTileProgram
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.ssa import Operation
from warpsmith.tile.frontend.source import span_at

__all__ = ["EDGES", "WARP", "WARPGROUP", "Launch", "ScopeId", "infer", "scope_ids_of"]

WARP, WARPGROUP = 32, 128  # threads
MOST_THREADS = 1024  # of a block, on every architecture

Edge = tuple[str, str]

EDGES: dict[str, Edge] = {
    "cluster_id": ("kernel", "cluster"),
    "cta_id": ("kernel", "cta"),
    "cta_id_in_cluster": ("cluster", "cta"),
    "cta_id_in_pair": ("pair", "cta"),
    "warpgroup_id": ("cta", "warpgroup"),
    "warp_id": ("cta", "warp"),
    "warp_id_in_wg": ("warpgroup", "warp"),
    "lane_id": ("warp", "thread"),
    "thread_id": ("cta", "thread"),
    "thread_id_in_wg": ("warpgroup", "thread"),
}
"""Each kind of id counts the parts (second) of a whole (first)."""

_OF_A_WARP = frozenset(("warpgroup_id", "warp_id", "warp_id_in_wg", "lane_id", "thread_id_in_wg"))
_HARDWARE: dict[Edge, int] = {
    ("warp", "thread"): WARP,
    ("warpgroup", "warp"): WARPGROUP // WARP,
    ("warpgroup", "thread"): WARPGROUP,
}


@dataclass(frozen=True, slots=True)
class ScopeId:
    """One declaration: its kind, its extents (None: to be inferred), and the op."""

    kind: str
    extents: tuple[int, ...] | None
    op: Operation

    @property
    def count(self) -> int | None:
        """How many ids there are; None where the kernel doesn't say."""
        return None if self.extents is None else math.prod(self.extents)


@dataclass(frozen=True, slots=True)
class Launch:
    """How a kernel is launched: the grid and the block along x, y, z; and the extent of each kind of id."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    extents: dict[Edge, int]

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return math.prod(self.block)


def scope_ids_of(function: Operation) -> list[ScopeId]:
    """The declarations of a kernel, in order."""
    found: list[ScopeId] = []
    for op in function.walk():
        if op.name == "tile.scope_id":
            extents = op.attributes.get("extents")
            found.append(
                ScopeId(op.str_attr("kind"), extents.values if isinstance(extents, at.DenseArrayAttr) else None, op)
            )
    return found


def _error(id: ScopeId, cause: str, help: str | None = None) -> InvalidTileProgram:
    return InvalidTileProgram(cause, span=span_at(id.op.location), help=help)


def infer(ids: Sequence[ScopeId]) -> Launch:
    """Extents of all kinds, and the launch.  InvalidTileProgram where they contradict, or don't follow."""
    known: dict[Edge, int] = {}
    declared: dict[Edge, ScopeId] = {}
    for id in ids:
        if id.count is None:
            continue
        edge = EDGES[id.kind]
        if known.get(edge, id.count) != id.count:
            raise _error(id, f"T.{id.kind} has extent {id.count} here and {known[edge]} elsewhere")
        known[edge] = id.count
        declared.setdefault(edge, id)
    _close(known, declared)
    threads = known.get(("cta", "thread"))
    if threads is None or threads % WARP == 0:
        _check_hardware(known, declared)
        for edge, extent in _HARDWARE.items():
            if edge[0] == "warp" or threads is None or threads % WARPGROUP == 0:
                known.setdefault(edge, extent)
        _close(known, declared)
    threads = known.get(("cta", "thread"))
    if threads is None:
        raise InvalidTileProgram(
            "the kernel doesn't say how many threads a block has",
            span=span_at(ids[0].op.location) if ids else None,
            help="declare T.thread_id([n]), or T.warp_id([n]) and T.lane_id([32])",
        )
    _check_threads(ids, threads)
    for id in ids:
        if id.extents is None and EDGES[id.kind] not in known:
            whole, part = EDGES[id.kind]
            raise _error(
                id, f"the extent of T.{id.kind} can't be inferred", f"give it: how many {part}s are in a {whole}?"
            )
    return Launch(_dims(ids, "cta_id", known.get(("kernel", "cta"), 1)), _dims(ids, "thread_id", threads), known)


def _close(known: dict[Edge, int], declared: dict[Edge, ScopeId]) -> None:
    """Extents along a path multiply; of three, two give the third."""
    legal = set(EDGES.values())
    changed = True
    while changed:
        changed = False
        for (a, b), first in list(known.items()):
            for (b2, c), second in list(known.items()):
                if b == b2 and (a, c) in legal:
                    changed |= _learn(known, declared, (a, c), first * second)
                if a == b2 and b != c:
                    if (b, c) in legal and _leads(b, c):
                        changed |= _divide(known, declared, (b, c), second, first)
                    elif (c, b) in legal and _leads(c, b):
                        changed |= _divide(known, declared, (c, b), first, second)
                if b == c and a != b2 and (a, b2) in legal:
                    changed |= _divide(known, declared, (a, b2), first, second)


_ORDER = ("kernel", "cluster", "pair", "cta", "warpgroup", "warp", "thread")


def _leads(whole: str, part: str) -> bool:
    return _ORDER.index(whole) < _ORDER.index(part)


def _learn(known: dict[Edge, int], declared: dict[Edge, ScopeId], edge: Edge, extent: int) -> bool:
    found = known.get(edge)
    if found is None:
        known[edge] = extent
        return True
    if found != extent:
        culprit = declared.get(edge) or next(iter(declared.values()))
        raise _error(
            culprit,
            f"a {edge[0]} has {found} {edge[1]}s by one declaration and {extent} by the others",
            "make them agree",
        )
    return False


def _divide(known: dict[Edge, int], declared: dict[Edge, ScopeId], edge: Edge, whole: int, part: int) -> bool:
    if whole % part:
        if edge in known or edge in declared:
            dividing = [id for id in declared.values() if id.count == part]
            culprit = declared.get(edge) or next(iter([*dividing, *declared.values()]))
            raise _error(
                culprit, f"{whole} isn't divisible by {part}, so a {edge[0]} has no whole number of {edge[1]}s"
            )
        return False
    return _learn(known, declared, edge, whole // part)


def _check_hardware(known: dict[Edge, int], declared: dict[Edge, ScopeId]) -> None:
    for edge, extent in _HARDWARE.items():
        if known.get(edge, extent) != extent:
            culprit = declared.get(edge) or next(iter(declared.values()))
            raise _error(culprit, f"a {edge[0]} has {extent} {edge[1]}s, not {known[edge]}")


def _check_threads(ids: Iterable[ScopeId], threads: int) -> None:
    for id in ids:
        if id.kind in _OF_A_WARP and threads % WARP:
            raise _error(
                id,
                f"T.{id.kind} in a block of {threads} threads, which isn't a whole number of warps",
                "use a multiple of 32",
            )
        if id.kind in ("thread_id", "warp_id") and threads > MOST_THREADS:
            raise _error(id, f"a block of {threads} threads; it has at most {MOST_THREADS}")


def _dims(ids: Iterable[ScopeId], kind: str, count: int) -> tuple[int, int, int]:
    for id in ids:
        if id.kind == kind and id.extents is not None:
            padded = (*id.extents, 1, 1)
            return padded[0], padded[1], padded[2]
    return count, 1, 1
