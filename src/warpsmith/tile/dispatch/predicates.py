"""Predicates that several variants share, each with its words and the values in its reason."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence

import numpy as np

from warpsmith.ir.core.types import element_type
from warpsmith.ir.dialects.nvgpu import CAPABILITY
from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.decline import Decline
from warpsmith.tile.dispatch.registry import Predicate
from warpsmith.tile.layout import TileLayout
from warpsmith.tile.model import affine
from warpsmith.tile.model.buffers import BufferInfo, RegionInfo, first_element, memory_elements

__all__ = [
    "ALL_ACTIVE",
    "LAYOUTS",
    "NO_OVERLAP",
    "ROUNDING",
    "SAME_ELEMENTS",
    "SCOPE",
    "all_in",
    "capability",
    "lacks",
    "pair",
]


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
    return _shared_places(call)


def _shared_places(call: CallContext) -> str | None:
    """Several elements of the destination at one place: which of them stays would depend on the order of threads."""
    try:
        place = call.place("dst")
    except Decline:
        return None  # the variant says so
    factors = [each for dim in place.dims for each in dim] + list(place.replicas)
    steps = [(extent, step.stride) for extent, step in factors if not step.is_thread and step.by is None]
    return None if _apart(steps) else f"dst {place.region} has several elements at one place"


def _apart(steps: Sequence[tuple[int, int]]) -> bool:
    """Whether all sums of steps differ."""
    real = sorted(((extent, abs(stride)) for extent, stride in steps if extent > 1), key=lambda each: each[1])
    reach = 0
    for extent, stride in real:
        if stride <= reach:
            break
        reach += (extent - 1) * stride
    else:
        return True
    places = np.zeros(1, np.int64)
    for extent, stride in real:
        places = np.unique((places[:, None] + np.arange(extent) * stride).reshape(-1))
    return places.size == math.prod(extent for extent, _ in real)


LAYOUTS = Predicate("every operand has a layout, registers a plain one, dst a place for each element", _layouts)


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
        first, second = sorted((_bytes_of(one), _bytes_of(other)), key=lambda each: each.start)
        return first.stop <= second.start
    gaps = [affine.difference(a, b) for a, b in zip(src.mins, dst.mins, strict=True)]
    if dst.extents == src.extents and all(gap == 0 for gap in gaps):
        return True
    return any(
        gap is not None and (gap >= wide or -gap >= own)
        for gap, wide, own in zip(gaps, dst.extents, src.extents, strict=True)
    )


def _bytes_of(buffer: BufferInfo) -> range:
    """The bytes of its memory that a buffer reaches over; all that may come where that isn't known."""
    if buffer.layout is None or -1 in buffer.shape:
        return range(sys.maxsize)
    size = buffer.type.bytes
    return range(first_element(buffer.layout) * size, memory_elements(buffer.layout, buffer.shape) * size)


NO_OVERLAP = Predicate("sources are dst itself, or apart from it", _overlap)


def _rounding(call: CallContext) -> str | None:
    mode = call.config.get("rounding_mode", "rn")
    if mode != "rn":
        return f"rounding_mode is '{mode}', and arithmetic here rounds to nearest"
    return "ftz wants subnormals flushed, and arithmetic here keeps them" if call.config.get("ftz") else None


ROUNDING = Predicate("results round to nearest, and subnormals stay", _rounding)


def _same_elements(call: CallContext) -> str | None:
    for role, region in call.regions.items():
        buffer = region.buffer
        if buffer.scope != "local" and (kept := element_type(call.storage.of(buffer).type)) is not buffer.type.ir:
            return f"{role} {buffer.name} is {buffer.type} in memory that is kept as {kept}"
    return None


SAME_ELEMENTS = Predicate("memory is kept in the operands' type", _same_elements)


def lacks(call: CallContext, op: str, instruction: str) -> str | None:
    """Why the device doesn't run an op (a row of `nvgpu.CAPABILITY`), in words for an instruction; None if it does."""
    needed, found = divmod(CAPABILITY[op], 10), call.device.compute_capability
    if found >= needed:
        return None
    return f"{instruction} needs compute capability {_version(needed)}; {call.device.name} has {_version(found)}"


def _version(capability: tuple[int, int]) -> str:
    return f"{capability[0]}.{capability[1]}"


def capability(op: str, instruction: str) -> Predicate:
    """The device runs an op that not all do."""
    return Predicate(
        f"compute capability {_version(divmod(CAPABILITY[op], 10))}", lambda call: lacks(call, op, instruction)
    )


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
