"""Regions that lie outside their buffer whatever the values are that they begin at.

What leaves its buffer for some values only is found when the kernel runs in the simulator.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.ir.core.ssa import Value
from warpsmith.tile.model import affine
from warpsmith.tile.model.buffers import BufferInfo

__all__ = ["outside", "region_outside"]


def outside(name: str, d: int, start: int | Value, extent: int | None, size: int) -> str | None:
    """Why `extent` elements from `start` on (None: the one there) aren't in dim `d`, of `size` elements (-1: symbolic);
    None where they may be."""
    if isinstance(start, int):
        low = high = start
    else:
        known = affine.bounds(start)
        if known is None:
            return None
        low, high = known.lower, known.upper
    if high >= 0 and (size < 0 or low + (extent or 1) <= size):
        return None
    if extent is None:
        reach = f"index {low}" if low == high else f"index {low} to {high}"
    else:
        reach = f"region [{low}, {low + extent})" if low == high else f"region at {low} or later, {extent} wide,"
    held = "elements, counted when the kernel runs" if size < 0 else f"{size} elements"
    return f"{reach} lies outside dim {d} of '{name}', which has {held}"


def region_outside(buffer: BufferInfo, mins: Sequence[Value], extents: Sequence[int | None]) -> str | None:
    """Why a region (an index, where an extent is None) isn't in its buffer; None where it may be."""
    for d, (start, extent, size) in enumerate(zip(mins, extents, buffer.shape, strict=True)):
        found = outside(buffer.name, d, start, extent, size)
        if found is not None:
            return found
    return None
