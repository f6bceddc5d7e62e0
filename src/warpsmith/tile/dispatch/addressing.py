"""The address of one element by its coordinates, in any layout.  Reference: tile.md 3.2, 10.3."""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.errors import InternalError
from warpsmith.indexing import Expr, add, const, floordiv, mod, mul
from warpsmith.ir.builder import Builder
from warpsmith.ir.core import Value
from warpsmith.tile.buffers import BufferInfo, RegionInfo, plain
from warpsmith.tile.dispatch.emission import Term, swizzled
from warpsmith.tile.layout import ComposeLayout

__all__ = ["coordinate_address", "element_address"]


def coordinate_address(b: Builder, buffer: BufferInfo, coordinates: Sequence[Value], hint: str = "") -> Value:
    """Where the element at `coordinates` lies in the buffer's flat memory."""
    term = Term(b)
    return _at(b, buffer, [term.var(c) for c in coordinates], term, hint)


def element_address(b: Builder, region: RegionInfo, indices: Sequence[Value]) -> Value:
    """Where element `indices` of a region (dims of extent 1 left out) lies."""
    term = Term(b)
    rest = iter(indices)
    coordinates: list[Expr] = []
    for begin, extent in zip(region.mins, region.extents, strict=True):
        expr = term.var(begin)
        coordinates.append(add(expr, term.var(next(rest))) if extent != 1 else expr)
    return _at(b, region.buffer, coordinates, term, "")


def _at(b: Builder, buffer: BufferInfo, coordinates: Sequence[Expr], term: Term, hint: str) -> Value:
    layout = buffer.layout
    if layout is None:
        raise InternalError(f"{buffer.name} has no layout")
    grouped, seps = plain(layout).group(tuple(max(extent, 1) for extent in buffer.shape))
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
    found = term.emit(total, hint)
    return swizzled(b, layout, found) if isinstance(layout, ComposeLayout) else found
