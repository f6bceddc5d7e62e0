"""The address of one element by its coordinates, in any layout."""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.errors import InternalError
from warpsmith.indexing import Expr, add, const, mul
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.dialects import arith
from warpsmith.tile.dispatch.emission import Term, swizzled
from warpsmith.tile.dispatch.irregular import coordinate_expr
from warpsmith.tile.layout import ComposeLayout
from warpsmith.tile.model.buffers import BufferInfo, RegionInfo, Stride

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


def _by_strides(b: Builder, strides: Sequence[Stride], coordinates: Sequence[Expr], term: Term, hint: str) -> Value:
    """An address of which some strides are known only when the kernel runs."""
    known: Expr = const(0)
    scaled: list[Value] = []
    for coordinate, (amount, by) in zip(coordinates, strides, strict=True):
        count = mul(coordinate, amount)
        if by is None:
            known = add(known, count)
        else:
            scaled.append(arith.binary(b, "muli", term.emit(count), by))
    found = term.emit(known)
    for each in scaled:
        found = arith.binary(b, "addi", each, found)
    found.name = found.name or hint
    return found


def _at(b: Builder, buffer: BufferInfo, coordinates: Sequence[Expr], term: Term, hint: str) -> Value:
    layout = buffer.layout
    if layout is None:
        raise InternalError(f"{buffer.name} has no layout")
    if buffer.strides is not None:
        return _by_strides(b, buffer.strides, coordinates, term, hint)
    found = term.emit(coordinate_expr(buffer, coordinates), hint)
    return swizzled(b, layout, found) if isinstance(layout, ComposeLayout) else found
