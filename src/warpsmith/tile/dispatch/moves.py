"""Elements between a buffer's memory and values, whatever type the buffer views that memory as.

In: an operand of a call (or a buffer), where its element lies.  Out: a value of the buffer's own type.  Memory has the
narrowest type that any buffer views it as (`storage`), so a wider element is several that lie together; and what is
written is written to each copy that the layout keeps in memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from warpsmith.indexing import Expr, add, const, dim, mul
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.core.types import MemRefType, Type, VectorType, bit_width
from warpsmith.ir.core.types import vector as vector_type
from warpsmith.ir.dialects import memory, vector
from warpsmith.tile.dispatch.context import CallContext
from warpsmith.tile.dispatch.digits import Placement
from warpsmith.tile.dispatch.emission import Distance, Term, address, apply
from warpsmith.tile.dispatch.widths import base_alignment
from warpsmith.tile.model.buffers import BufferInfo

__all__ = ["load_elements", "read", "store_elements", "write"]


def read(call: CallContext, role: str, term: Term, distance: Expr | Distance, lanes: int = 1) -> Value:
    """The element of an operand at `distance` from its beginning; with `lanes` > 1 a vector of those from there on."""
    place = call.place(role, anyhow=True)
    return load_elements(call.b, place.buffer, call.storage.of(place.buffer), address(term, place, distance), lanes)


def write(call: CallContext, role: str, term: Term, distance: Expr | Distance, value: Value, lanes: int = 1) -> None:
    """Write the element of an operand at `distance` (or `lanes` from there on), and its copies in memory."""
    place = call.place(role, anyhow=True)
    flat = call.storage.of(place.buffer)
    for further in _copies(place):
        moved = add_distance(distance, further)
        store_elements(call.b, value, place.buffer, flat, address(term, place, moved), lanes)


def add_distance(distance: Expr | Distance, amount: int) -> Expr | Distance:
    """So many elements further."""
    if isinstance(distance, Distance):
        return Distance(add(distance.known, const(amount)), distance.scaled)
    return add(distance, const(amount))


def _copies(place: Placement) -> Iterator[int]:
    """How far each copy that is kept in memory lies from the first; copies on other threads they write themselves."""
    own = [(extent, step.stride) for extent, step in place.replicas if not step.is_thread]
    for steps in itertools.product(*(range(extent) for extent, _ in own)):
        yield sum(number * stride for number, (_, stride) in zip(steps, own, strict=True))


# ------------------------------------------------------------------------------------------------------- in other types
def _parts(flat: Value, buffer: BufferInfo) -> tuple[Type, int]:
    """The type of the memory's elements, and how many of them one of the buffer's is."""
    type = flat.type
    assert isinstance(type, MemRefType)
    if type.element is buffer.type.ir:
        return type.element, 1
    return type.element, buffer.type.bits // bit_width(type.element)


def _alignment(buffer: BufferInfo, lanes: int) -> at.Attribute:
    return at.integer_attr(min(lanes * buffer.type.bytes, base_alignment(buffer)), at.I64)


def load_elements(b: Builder, buffer: BufferInfo, flat: Value, index: Value, lanes: int = 1) -> Value:
    """Element `index` of a buffer's flat memory, in the buffer's type; a vector of `lanes` from there on."""
    element, parts = _parts(flat, buffer)
    wanted = buffer.type.ir
    if lanes * parts == 1:
        found = memory.load(b, flat, index)
        return found if element is wanted else b.op1("arith.bitcast", (found,), wanted)
    if parts > 1:
        index = apply(b, mul(dim(0), parts), [index])
    attributes = {"alignment": _alignment(buffer, lanes)}
    found = vector.load(b, flat, index, vector_type((lanes * parts,), element), attributes)
    if element is not wanted:
        found = b.op1("vector.bitcast", (found,), vector_type((lanes,), wanted))
    return found if lanes > 1 else vector.extract(b, found, 0)


def store_elements(b: Builder, value: Value, buffer: BufferInfo, flat: Value, index: Value, lanes: int = 1) -> None:
    """Write element `index` of a buffer's flat memory, or the lanes of a vector from there on."""
    element, parts = _parts(flat, buffer)
    wanted = buffer.type.ir
    if lanes * parts == 1:
        stored = value if element is wanted else b.op1("arith.bitcast", (value,), element)
        memory.store(b, stored, flat, index)
        return
    if parts > 1:
        index = apply(b, mul(dim(0), parts), [index])
    if not isinstance(value.type, VectorType):
        value = vector.from_elements(b, [value])
    if element is not wanted:
        value = b.op1("vector.bitcast", (value,), vector_type((lanes * parts,), element))
    vector.store(b, value, flat, index, {"alignment": _alignment(buffer, lanes)})
