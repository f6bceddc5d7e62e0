"""Regions that cut through their layout's factors: elements by their coordinates, each address by the layout's rule.

    X[3:7] of S[(4, 4):(1, 8)]   ->   element n is at coordinate 3 + n: (3 + n) // 4 * 1 + (3 + n) % 4 * 8

In: a region of memory.  Out: a placement whose steps count elements of the region itself, row-major, which split in any
way; `place_of` turns such a count into a place.  No vector moves them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warpsmith.indexing import Expr, add, const, floordiv, mod, mul
from warpsmith.ir.core.ssa import Value
from warpsmith.tile.dispatch.digits import Placement, Step
from warpsmith.tile.model import affine
from warpsmith.tile.model.buffers import BufferInfo, RegionInfo, plain

__all__ = ["by_coordinates", "coordinate_expr", "place_of"]


def by_coordinates(region: RegionInfo) -> Placement | None:
    """A region of any layout of memory; None of what is spread over threads or kept in several copies."""
    buffer = region.buffer
    if buffer.layout is None or buffer.strides is not None or buffer.is_distributed or plain(buffer.layout).replica:
        return None
    dims: list[tuple[tuple[int, Step], ...]] = []
    stride = 1
    for extent in reversed(region.extents):
        dims.insert(0, ((extent, Step(stride)),))
        stride *= extent
    return Placement(region, tuple(dims), (), 0, (), 0, irregular=True)


def place_of(placement: Placement, number: Expr, var: Callable[[Value], Expr]) -> Expr:
    """Where element `number` of an irregular region lies; `var` gives the expression of an index value."""
    coordinates: list[Expr] = []
    block = 1
    for begin, extent in zip(reversed(placement.region.mins), reversed(placement.region.extents), strict=True):
        digit = mod(floordiv(number, block) if block > 1 else number, extent)
        known = affine.linear(begin)
        coordinates.insert(0, add(digit, var(begin) if known.terms else const(known.constant)))
        block *= extent
    return coordinate_expr(placement.buffer, coordinates)


def coordinate_expr(buffer: BufferInfo, coordinates: Sequence[Expr]) -> Expr:
    """Where an element lies in its thread's (or the block's) flat memory, before a swizzle."""
    assert buffer.layout is not None
    grouped, seps = plain(buffer.layout).group(tuple(max(extent, 1) for extent in buffer.shape))
    total: Expr = const(sum(amount for axis, amount in grouped.offset.items() if not axis.is_thread))
    for d, coordinate in enumerate(coordinates):
        block = 1
        factors = grouped.shard[seps[d] : seps[d + 1]]
        for k in range(len(factors) - 1, -1, -1):
            each = factors[k]
            digit = floordiv(coordinate, block) if block > 1 else coordinate
            digit = mod(digit, each.extent) if k else digit
            total = add(total, mul(digit, each.stride))
            block *= each.extent
    return total
