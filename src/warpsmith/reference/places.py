"""Where the elements of a region are, for every group of threads that calls a primitive: by enumeration.

In: a region, the threads that are active.  Out: numbers of elements in the buffer's data, [groups, copies, elements].
Each element's place is computed by the layout's own rule: its flat number, split over the factors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from warpsmith.arrays import Array
from warpsmith.errors import SimulationError
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.reference.memory import swizzled
from warpsmith.simt.core.checks import fail
from warpsmith.simt.core.results import Finding, Site
from warpsmith.simt.ir.interpreter import Frame, Interpreter
from warpsmith.tile.layout import ComposeLayout, Iter
from warpsmith.tile.model.buffers import BufferInfo, buffer_of, extents_of, plain, region_of

__all__ = ["Places"]


_UNBOUNDED = 1 << 62  # a view's extent that isn't known
_THREADS = {"laneid": 1, "warpid": 32, "wgid": 128, "wid_in_wg": 32, "tid_in_wg": 1, "tx": 1}
"""How many threads a step along a thread axis is."""


class Places:
    """Finds elements for the frame's active threads."""

    def __init__(self, interpreter: Interpreter, frame: Frame) -> None:
        self.machine = interpreter.machine
        self.frame = frame
        self.members = 1  # threads that do the call together
        self.site: Site | None = None

    def groups(self, op: Operation) -> Array:
        """The first thread of each group that calls `op`.  SimulationError when a group calls it in part."""
        self.site = _site(op)
        per_block, threads = self.machine.threads_per_block, self.frame.threads
        size = {"thread": 1, "warp": 32, "warpgroup": 128, "cta": per_block}.get(op.str_attr("scope"), 0)
        if size == 0 or per_block % size:
            raise SimulationError(f"{op.name} at {op.str_attr('scope')} scope in a block of {per_block} threads")
        mask = self.frame.mask
        active = np.ones(threads, np.bool_) if mask is None else np.broadcast_to(mask, (threads,))
        counts = active.reshape(-1, size).sum(axis=1)
        torn = np.flatnonzero((counts != 0) & (counts != size))
        if torn.size:
            raise SimulationError(
                f"{op.name} takes all {size} threads of a {op.str_attr('scope')}; {int(counts[torn[0]])} of group "
                f"{int(torn[0])} call it (line {op.location.line})"
            )
        self.members = size
        return np.flatnonzero(counts) * size

    def of_region(self, value: Value, groups: Array) -> Array:
        """Places of a region's elements, [groups, copies, elements]: copies are where replicas are."""
        region = region_of(value)
        mins = [self.agreed(each, groups, f"where {region} begins") for each in region.mins]
        grid = np.meshgrid(*(np.arange(extent) for extent in region.extents), indexing="ij")
        coordinates = [axis.reshape(-1)[None] + low[:, None] for axis, low in zip(grid, mins, strict=True)]
        self._check(region.buffer, coordinates, f"{region} reaches {{}} in dim {{}}")
        places = self._places(region.buffer, coordinates, groups)
        self._check_memory(str(region), region.buffer, places)
        return places

    def agreed(self, value: Value, groups: Array, what: str) -> Array:
        """A number that the threads of each group give to a call.  CheckFailed where they differ: `what` it is."""
        array = self.frame.array(value)
        if array.shape[0] == 1:
            return np.broadcast_to(array, groups.shape)
        rows = array.reshape(-1, self.members)[groups // self.members]
        differs = (rows != rows[:, :1]) & ~((rows != rows) & (rows[:, :1] != rows[:, :1]))
        if differs.any():
            group, thread = (int(i) for i in np.argwhere(differs)[0])
            fail(
                Finding(
                    "operand-divergence",
                    f"{self.members} threads do this together, but differ in {what}: thread {thread} of them has "
                    f"{rows[group, thread]}, the first {rows[group, 0]}",
                    self.site,
                )
            )
        return rows[:, 0]

    def _shape(self, buffer: BufferInfo) -> list[int]:
        """The buffer's extents in this run."""
        return [
            self._number(each) if isinstance(each, Value) else each if each >= 0 else _UNBOUNDED
            for each in extents_of(buffer.value)
        ]

    def _number(self, value: Value) -> int:
        """A value that all threads have."""
        return int(self.frame.array(value).reshape(-1)[0])

    def _check(self, buffer: BufferInfo, coordinates: Sequence[Array], words: str) -> None:
        """CheckFailed for coordinates that aren't the buffer's; `words` has places for one such and for its dim."""
        for d, (coordinate, size) in enumerate(zip(coordinates, self._shape(buffer), strict=True)):
            if ((coordinate < 0) | (coordinate >= size)).any():
                worst = int(coordinate.max() if coordinate.max() >= size else coordinate.min())
                self._outside(f"{words.format(worst, d)}, which has {size} elements")

    def _outside(self, cause: str) -> NoReturn:
        fail(Finding("out-of-bounds", cause, self.site))

    def _check_memory(self, what: str, buffer: BufferInfo, places: Array) -> None:
        """A view's extents may be unknown, but not how much memory it is a view of."""
        size = self.frame.buffer(buffer.value).data.size
        if ((places < 0) | (places >= size)).any():
            worst = int(places.max() if places.max() >= size else places.min())
            self._outside(f"{what} reaches element {worst} of its memory, which has {size} elements")

    def of_element(self, op: Operation, buffer: Value, indices: Sequence[Value]) -> Array:
        """Where each thread's own element is."""
        self.site = _site(op)
        threads = self.frame.threads
        coordinates = [np.broadcast_to(self.frame.array(v), (threads,))[:, None] for v in indices]
        info = buffer_of(buffer)
        if self.frame.mask is not None:
            off = ~np.broadcast_to(self.frame.mask, (threads,))[:, None]
            coordinates = [np.where(off, 0, c) for c in coordinates]
        self._check(info, coordinates, f"index {{}} of dim {{}} of {info.name}")
        places = self._places(info, coordinates, np.arange(threads))
        self._check_memory(info.name, info, places)
        return places[:, 0, 0]

    def _places(self, buffer: BufferInfo, coordinates: Sequence[Array], groups: Array) -> Array:
        layout = buffer.layout
        if layout is None:
            raise SimulationError(f"{buffer.name} has no layout")
        inner = plain(layout)
        if buffer.strides is not None:
            place = np.zeros(np.broadcast_shapes(*(c.shape for c in coordinates)), np.int64)
            for coordinate, (amount, by) in zip(coordinates, buffer.strides, strict=True):
                place = place + coordinate * amount * (self._number(by) if by is not None else 1)
            return place[:, None]
        address, thread = self._apply(buffer, coordinates)
        address, thread = address[:, None], thread[:, None]
        for each in inner.replica:
            steps = np.arange(each.extent)[None, :, None, None]
            moved = steps * each.stride
            if each.axis.is_thread:
                thread = thread[:, None] + moved * _THREADS[each.axis.name]
                address = np.broadcast_to(address[:, None], thread.shape)
            else:
                address = address[:, None] + moved
                thread = np.broadcast_to(thread[:, None], address.shape)
            address = address.reshape(address.shape[0], -1, address.shape[-1])
            thread = thread.reshape(address.shape)
        if isinstance(layout, ComposeLayout):
            address = swizzled(layout, address)
        root = self._copies(buffer)
        first = groups[:, None, None]
        if buffer.scope == "local":
            return (first + thread) * root + address
        if buffer.is_shared:
            return first // self.machine.threads_per_block * root + address
        return address

    def _copies(self, buffer: BufferInfo) -> int:
        """Elements (of the view's type) between one copy of the memory and the next."""
        return self.frame.buffer(buffer.value).size

    @staticmethod
    def _apply(buffer: BufferInfo, coordinates: Sequence[Array]) -> tuple[Array, Array]:
        """(address, thread) of elements by the layout's rule: flatten, split over the factors, add up."""
        assert buffer.layout is not None
        layout = plain(buffer.layout)
        shape = [max(extent, 1) for extent in buffer.shape]
        flat = np.zeros(np.broadcast_shapes(*(c.shape for c in coordinates)) if coordinates else (1, 1), np.int64)
        for coordinate, extent in zip(coordinates, shape, strict=True):
            flat = flat * extent + coordinate
        address, thread = np.zeros_like(flat), np.zeros_like(flat)
        block = math.prod(each.extent for each in layout.shard)
        for number, each in enumerate(layout.shard):
            block //= each.extent
            digit = flat // block if number == 0 else flat // block % each.extent
            address, thread = _moved(each, digit, address, thread)
        for axis, amount in layout.offset.items():
            address, thread = _moved(Iter(2, amount, axis), np.ones_like(flat), address, thread)
        return address, thread


def _site(op: Operation) -> Site:
    """Where a call or an access stands in the kernel's text."""
    return Site(op.name, file=op.location.file, file_line=op.location.line)


def _moved(each: Iter, digit: Array, address: Array, thread: Array) -> tuple[Array, Array]:
    if each.axis.is_thread:
        return address, thread + digit * each.stride * _THREADS[each.axis.name]
    return address + digit * each.stride, thread
