"""Predicates that several variants share, each with its words and the values in its reason.  Reference: tile.md 4.3,
6.3."""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.tile import affine
from warpsmith.tile.buffers import RegionInfo
from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.registry import Predicate
from warpsmith.tile.layout import TileLayout

__all__ = ["ALL_ACTIVE", "LAYOUTS", "NO_OVERLAP", "SCOPE", "all_in", "pair"]


def _scope(call: CallContext) -> str | None:
    if call.scope in ("thread", "warp", "warpgroup", "cta"):
        return None
    return f"scope {call.scope} needs thread block clusters (compute capability 9), which no lowering here uses"


SCOPE = Predicate("the scope is thread, warp, warpgroup or cta", _scope)


def _active(call: CallContext) -> str | None:
    if call.scope in ("thread", "cluster"):  # of a cluster the scope's predicate speaks
        return None
    return call.active.of_scope(call.threads)


ALL_ACTIVE = Predicate("all threads of the scope are active, or none", _active)


def _layouts(call: CallContext) -> str | None:
    for role, region in call.regions.items():
        layout = region.buffer.layout
        if layout is None:
            return f"{role} {region.buffer.name} has no layout"
        if region.buffer.scope == "local" and not isinstance(layout, TileLayout):
            return f"{role} {region.buffer.name} is in registers, where a {type(layout).__name__} has no meaning"
    return None


LAYOUTS = Predicate("every operand has a layout, registers a plain one", _layouts)


def _overlap(call: CallContext) -> str | None:
    """In place is fine, element by element; a shifted source would be read after it was written."""
    dst = call.region("dst")
    for role, region in call.regions.items():
        if role == "dst" or region.buffer.root is not dst.buffer.root or _is_apart(dst, region):
            continue
        return f"{role} {region} and dst {dst} may share some elements, and aren't the same"
    return None


def _is_apart(dst: RegionInfo, src: RegionInfo) -> bool:
    """Whether two regions of one memory are the same, or have nothing in common."""
    one, other = dst.buffer, src.buffer
    if (one.layout, one.type, one.shape) != (other.layout, other.type, other.shape):
        return False
    gaps = [affine.difference(a, b) for a, b in zip(src.mins, dst.mins, strict=True)]
    if dst.extents == src.extents and all(gap == 0 for gap in gaps):
        return True
    return any(
        gap is not None and (gap >= wide or -gap >= own)
        for gap, wide, own in zip(gaps, dst.extents, src.extents, strict=True)
    )


NO_OVERLAP = Predicate("sources are dst itself, or apart from it", _overlap)


def _where(region: RegionInfo) -> str:
    return "shared" if region.buffer.is_shared else region.buffer.scope


def all_in(scope: str, words: str) -> Predicate:
    """Every operand that is a buffer lies in one kind of memory."""

    def check(call: CallContext) -> str | None:
        for role, region in call.regions.items():
            if _where(region) != scope:
                return f"{role} {region.buffer.name} is in {_where(region)} memory"
        return None

    return Predicate(words, check)


def pair(words: str, legal: Callable[[str, str], bool]) -> Predicate:
    """Destination and source lie in a fitting pair of memories."""

    def check(call: CallContext) -> str | None:
        dst, src = call.region("dst"), call.region("src")
        if legal(_where(dst), _where(src)):
            return None
        return f"{src.buffer.name} is in {_where(src)}, {dst.buffer.name} in {_where(dst)} memory"

    return Predicate(words, check)
