"""Buffers under brackets: regions and elements.

In: a buffer and what stands in the brackets.  Out: a `Region` whose extents are known numbers; where every index is an
integer it stands for one element, which is loaded when its number is wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warpsmith.errors import InvalidTileProgram
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.core.types import MemRefType
from warpsmith.ir.dialects import tile
from warpsmith.tile.frontend.scalars import Operand
from warpsmith.tile.frontend.state import KernelState
from warpsmith.tile.frontend.values import Buffer, Region, Scalar, Variable, items
from warpsmith.tile.model import affine, bounds
from warpsmith.tile.model.buffers import buffer_of, extents_of
from warpsmith.tile.model.dtypes import BY_NAME, INDEX

__all__ = [
    "full",
    "integer",
    "load",
    "region",
    "region_value",
    "shape_of",
    "shape_values",
    "slice_bounds",
    "store",
]


def shape_of(buffer: Buffer) -> tuple[int, ...]:
    """The logical shape; -1 where an extent is symbolic."""
    type = buffer.value.type
    assert isinstance(type, MemRefType)
    return type.shape


def shape_values(buffer: Buffer) -> tuple[int | Scalar, ...]:
    """The logical shape, symbolic extents as scalars."""
    return tuple(
        each if isinstance(each, int) else Scalar(each, _INTEGERS.get(each.type, INDEX))
        for each in extents_of(buffer.value)
    )


_INTEGERS = {each.ir: each for each in BY_NAME.values() if each.kind == "int"}


def full(buffer: Buffer) -> Region:
    """All of a buffer."""
    shape = shape_of(buffer)
    if any(extent < 0 for extent in shape):
        raise InvalidTileProgram(
            f"'{buffer.value.name}' has a symbolic extent: its whole isn't a tile",
            help="take a region of known extents",
        )
    return Region(buffer, (0,) * len(shape), shape, (True,) * len(shape))


def region(state: KernelState, owner: Buffer | Region, index: Any) -> Region:
    """A box of a buffer, or of a box."""
    base = owner if isinstance(owner, Region) else None
    buffer = owner.buffer if isinstance(owner, Region) else owner
    shape = base.extents if base is not None else shape_of(buffer)
    parts: list[Any] = items(index) or [index]
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        parts[at : at + 1] = [slice(None)] * (len(shape) - len(parts) + 1)
    if len(parts) > len(shape):
        raise InvalidTileProgram(f"{len(parts)} indices for '{buffer.value.name}' of shape {_shown(shape)}")
    parts += [slice(None)] * (len(shape) - len(parts))
    mins: list[Scalar | int] = []
    extents: list[int] = []
    kept: list[bool] = []
    for d, (part, size) in enumerate(zip(parts, shape, strict=True)):
        start, extent = _part(state, part, size, d, buffer)
        if base is not None:
            moved = state.scalars.binary("add", base.mins[d], start)
            assert isinstance(moved, (Scalar, int))
            start = moved
        mins.append(start)
        extents.append(extent)
        kept.append(isinstance(part, slice))
    return Region(buffer, tuple(mins), tuple(extents), tuple(kept))


def _part(state: KernelState, part: Any, size: int, d: int, buffer: Buffer) -> tuple[Scalar | int, int]:
    if not isinstance(part, slice):
        start = integer(state, part)
        _check_inside(buffer, d, start, None, size)
        return start, 1
    low, high, step = slice_bounds(part)
    if step not in (None, 1):
        raise InvalidTileProgram("a region has no step", help="say it in the layout")
    start = integer(state, 0 if low is None else low)
    if high is None:
        if size < 0:
            raise InvalidTileProgram(f"dim {d} of '{buffer.value.name}' is symbolic: its region needs an end")
        stop: Scalar | int = size
    else:
        stop = integer(state, high)
    extent = _extent(state, start, stop)
    if extent < 1:
        raise InvalidTileProgram(f"the region of dim {d} of '{buffer.value.name}' is empty")
    _check_inside(buffer, d, start, extent, size)
    return start, extent


def slice_bounds(part: Any) -> tuple[Any, Any, Any]:
    """What stands before, between and behind the colons of a slice."""
    return part.start, part.stop, part.step


def integer(state: KernelState, value: Any) -> Scalar | int:
    """An index: a number, or a scalar of index type.  InvalidTileProgram for anything else."""
    if isinstance(value, Variable):
        return integer(state, state.read(value))
    if isinstance(value, Region):
        return integer(state, load(state, value))
    if isinstance(value, Scalar):
        return Scalar(state.scalars.index(value), INDEX)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidTileProgram(f"an index can't be {value!r}")
    return int(value)


def _extent(state: KernelState, start: Scalar | int, stop: Scalar | int) -> int:
    if isinstance(start, int) and isinstance(stop, int):
        return stop - start
    found = affine.difference(state.scalars.index(stop), state.scalars.index(start))
    if found is None:
        raise InvalidTileProgram(
            "the extent of this region isn't a known number", help="write it as start : start + extent"
        )
    return found


def _check_inside(buffer: Buffer, d: int, start: Scalar | int, extent: int | None, size: int) -> None:
    """InvalidTileProgram for an index or a region that lies outside for every value that its start can take."""
    name = buffer_of(buffer.value).name
    cause = bounds.outside(name, d, start if isinstance(start, int) else start.value, extent, size)
    if cause is not None:
        is_negative = isinstance(start, int) and start < 0
        raise InvalidTileProgram(cause, help="indices here don't count from the end" if is_negative else None)


def _shown(shape: Sequence[int]) -> str:
    return str(tuple(shape))


# ------------------------------------------------------------------------------------------------------------ elements
def _indices(state: KernelState, element: Region) -> list[Value]:
    info = buffer_of(element.buffer.value)
    if info.layout is None:
        raise InvalidTileProgram(f"'{info.name}' has no layout, so that its elements have no addresses")
    if info.is_distributed:
        raise InvalidTileProgram(
            f"'{element.buffer.value.name}' is spread over threads: its elements can't be named one by one",
            help="take this thread's registers with .local(), or call a tile primitive",
        )
    return [state.scalars.index(start) for start in element.mins]


def load(state: KernelState, element: Region) -> Scalar:
    """One element of a buffer."""
    if any(element.kept):
        raise InvalidTileProgram(f"a region of '{element.buffer.value.name}' where a number is needed")
    state.need_device("a load")
    type = element.buffer.type
    indices = _indices(state, element)
    return Scalar(state.b.op1("tile.load", (element.buffer.value, *indices), type.ir, None, ""), type)


def store(state: KernelState, element: Region, value: Operand) -> None:
    """Write one element of a buffer."""
    if any(element.kept):
        raise InvalidTileProgram("a number can't be assigned to a region", help="Tx.fill(region, value)")
    state.need_device("a store")
    converted = state.scalars.cast(value, element.buffer.type)
    state.b.create("tile.store", (converted.value, element.buffer.value, *_indices(state, element)))


def region_value(state: KernelState, box: Region) -> Value:
    """The region as an operand of a primitive."""
    mins = [state.scalars.index(start) for start in box.mins]
    return tile.region(state.b, box.buffer.value, mins, box.extents)
