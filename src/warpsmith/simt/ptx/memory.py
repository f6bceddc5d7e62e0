"""The simulated GPU's memory, by bytes: one flat 64-bit address space.

Each buffer and global variable has a range of its own, far from the others, so that an address off its end is always
found.  Shared memory has one copy a block, local memory one a thread; their own addresses start at 0, and a window of
generic addresses shows them.

An access is checked for all threads at once: in bounds, and aligned to its whole width, as the hardware wants.  An
aligned access that begins in bounds touches no other page, nor another block's memory, as each of these begins and ends
at a multiple of more bytes than any access has: loads may go on past the end of a region, to bytes that hold nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.simt.core.tracked import Tracked
from warpsmith.simt.ptx.values import UNSIGNED

__all__ = ["LOCAL_WINDOW", "SHARED_WINDOW", "Memory", "MemoryFault", "Place", "Region", "padded"]

_REGION_BITS = 40
_WINDOW_BITS = 32
SHARED_WINDOW = 1 << _WINDOW_BITS
LOCAL_WINDOW = 2 << _WINDOW_BITS

_WIDE: dict[int, np.dtype[Any]] = {
    **{bits // 8: dtype for bits, dtype in UNSIGNED.items() if bits >= 8},
    16: np.dtype(np.complex128),  # the quickest 16 bytes that numpy moves
}


class MemoryFault(Exception):
    """An access that no hardware would do: what is wrong (a code of `results.CODES`, and in words), by which lane, and
    where, if in a buffer.  The machine adds the instruction.
    """

    def __init__(self, code: str, cause: str, lane: int, region: Region | None = None, byte: int | None = None) -> None:
        super().__init__(cause)
        self.code = code
        self.cause = cause
        self.lane = lane
        self.region = region
        self.byte = byte


def padded(size: int) -> int:
    """A size that every access width divides."""
    return (size + 31) // 32 * 32


@dataclass(eq=False, slots=True)
class Region:
    """A range of addresses.  `size` bytes are in bounds of `data`; `copy` is the distance between a block's (or
    thread's) copy and the next, 0 for global memory.  `tracked` is what a watch knows of it.
    """

    name: str
    base: int
    data: Array
    size: int
    copy: int = 0
    tracked: Tracked | None = None
    views: dict[int, Array] = field(default_factory=dict[int, Array])

    def least(self, width: int, tail: bool) -> int:
        """How many bytes of an aligned access must be in bounds; with `tail` one, if there is data for the others."""
        return 1 if tail and self.data.size == padded(self.data.size) else width

    def view(self, width: int) -> Array:
        """The bytes as items of `width` bytes (rows of four words for 32)."""
        found = self.views.get(width)
        if found is None:
            whole = self.data[: self.data.size // width * width]
            found = whole.view(_WIDE[width]) if width in _WIDE else whole.view(np.uint64).reshape(-1, width // 8)
            self.views[width] = found
        return found


@dataclass(slots=True)
class Place:
    """Items of one region that some lanes access: `positions` into `region.view(width)`, for the lanes `lanes`.

    `lanes` is None when the positions are those of all active lanes, or a single one that all share.  `past`: some of
    the items go on past the region's end.
    """

    region: Region
    positions: Array
    lanes: Array | None
    past: bool = False


class Memory:
    """The global memory of a launch, and the shared and local memory of its current batch of blocks."""

    def __init__(self) -> None:
        self.regions: list[Region] = []
        self.shared = Region("shared memory", 0, np.zeros(0, np.uint8), 0)
        self.local = Region("local memory", 0, np.zeros(0, np.uint8), 0)
        self.block_of: Array = np.zeros(1, np.int64)
        self.threads = 1

    def add(self, name: str, data: Array, size: int) -> Region:
        """Give `size` bytes an address; `data` may go on, to a multiple of every access's width."""
        base = ((len(self.regions) + 1) << _REGION_BITS) + (1 << (_REGION_BITS - 1))  # room before as well as after
        region = Region(name, base, data, size)
        self.regions.append(region)
        return region

    def begin_batch(self, blocks: int, per_block: int, shared: int, local: int) -> None:
        """Fresh shared and local memory, filled with 0xFF: a NaN to whoever reads what wasn't written."""
        self.threads = blocks * per_block
        self.block_of = np.repeat(np.arange(blocks, dtype=np.int64), per_block)
        self.shared = self._copies("shared memory", shared, blocks)
        self.local = self._copies("local memory", local, self.threads)

    @staticmethod
    def _copies(name: str, size: int, count: int) -> Region:
        step = padded(size)
        return Region(name, 0, np.full(step * count, 0xFF, np.uint8), size, step)

    # -- finding places
    def places(self, space: str, address: Array, width: int, mask: Array | None, *, tail: bool = False) -> list[Place]:
        """Where the active lanes' accesses of `width` bytes go.  MemoryFault for a bad one.

        With `tail` an access need only begin in its region (and be aligned).
        """
        lanes = None
        if mask is not None and address.shape[0] > 1:
            lanes = np.flatnonzero(mask)
            address = address[lanes]
        if space in ("shared", "local"):
            own = self.shared if space == "shared" else self.local
            return [self._own(own, address, 0, width, lanes, mask, own.least(width, tail))]
        first = int(address[0])
        region = self._region(first)
        if region is not None and region.copy == 0:
            low, high = int(address.min()), int(address.max())
            end, least = region.base + region.size, region.least(width, tail)
            if low >= region.base and high + least <= end:
                return [Place(region, self._positions(region, address, width, lanes), lanes, high + width > end)]
        return self._split(address, width, lanes, mask, tail)

    def _region(self, address: int) -> Region | None:
        number = address >> _REGION_BITS
        if number == 0:
            return {1: self.shared, 2: self.local}.get(address >> _WINDOW_BITS)
        return self.regions[number - 1] if number <= len(self.regions) else None

    def _positions(self, region: Region, address: Array, width: int, lanes: Array | None) -> Array:
        if width > 1:
            every = int(np.bitwise_or.reduce(address))
            if every & (width - 1):
                bad = int(np.flatnonzero(address & np.uint64(width - 1))[0])
                raise MemoryFault(
                    "misaligned",
                    f"{width} bytes at {self.describe(int(address[bad]))}, aren't aligned to {width}",
                    _lane(lanes, bad),
                    region,
                    int(address[bad]) - region.base,
                )
        offset = address - np.uint64(region.base)
        return (offset >> np.uint64(width.bit_length() - 1)).view(np.int64)

    def _own(
        self,
        region: Region,
        address: Array,
        window: int,
        width: int,
        lanes: Array | None,
        mask: Array | None,
        least: int,
    ) -> Place:
        """Shared and local memory: each lane has its own copy."""
        if address.shape[0] == 1 and lanes is None:
            lanes = None if mask is None else np.flatnonzero(mask)
            address = np.broadcast_to(address, (self.threads if lanes is None else lanes.shape[0],))
        offset = address - np.uint64(window)
        beyond = offset + np.uint64(least) > np.uint64(region.size)
        beyond |= offset > np.uint64(region.size)
        if beyond.any():
            bad = int(np.flatnonzero(beyond)[0])
            raise MemoryFault(
                "out-of-bounds",
                f"{width} bytes at byte {int(offset[bad])} of {region.name}, which has {region.size}",
                _lane(lanes, bad),
                region,
                int(offset[bad]),
            )
        if width > 1 and int(np.bitwise_or.reduce(offset)) & (width - 1):
            bad = int(np.flatnonzero(offset & np.uint64(width - 1))[0])
            raise MemoryFault(
                "misaligned",
                f"{width} bytes at byte {int(offset[bad])} of {region.name}, aren't aligned to {width}",
                _lane(lanes, bad),
                region,
                int(offset[bad]),
            )
        owner = self.block_of if region is self.shared else np.arange(self.threads, dtype=np.int64)
        if lanes is not None:
            owner = owner[lanes]
        position = (offset.view(np.int64) + owner * region.copy) >> (width.bit_length() - 1)
        return Place(region, position, lanes, least < width and int(offset.max(initial=0)) + width > region.size)

    def _split(self, address: Array, width: int, lanes: Array | None, mask: Array | None, tail: bool) -> list[Place]:
        """Lanes that go to different regions, or astray."""
        if lanes is None:
            lanes = np.arange(self.threads) if mask is None else np.flatnonzero(mask)
            address = np.broadcast_to(address, lanes.shape)
        keys = np.where(address >> np.uint64(_REGION_BITS) == 0, address >> np.uint64(_WINDOW_BITS), np.uint64(0))
        keys = np.where(keys == 0, address >> np.uint64(_REGION_BITS) << np.uint64(8), keys)
        found: list[Place] = []
        for key in np.unique(keys).tolist():
            chosen = np.flatnonzero(keys == key)
            part = address[chosen]
            group = lanes[chosen]
            region = self._region(int(part[0]))
            if region is not None and region.copy:
                window = SHARED_WINDOW if region is self.shared else LOCAL_WINDOW
                found.append(self._own(region, part, window, width, group, mask, region.least(width, tail)))
                continue
            if region is None:
                raise MemoryFault("out-of-bounds", f"address {int(part[0]):#x} is in no buffer", int(group[0]))
            end, least = region.base + region.size, region.least(width, tail)
            outside = (part < np.uint64(region.base)) | (part + np.uint64(least) > np.uint64(end))
            if outside.any():
                bad = int(np.flatnonzero(outside)[0])
                byte = int(part[bad]) - region.base
                cause = f"{width} bytes at {self.describe(int(part[bad]))}"
                raise MemoryFault("out-of-bounds", cause, int(group[bad]), region, byte)
            past = int(part.max()) + width > end
            found.append(Place(region, self._positions(region, part, width, group), group, past))
        return found

    def describe(self, address: int) -> str:
        """An address in words."""
        region = self._region(address)
        if region is None or region.copy:
            return f"address {address:#x}"
        return f"byte {address - region.base} of {region.name}, which has {region.size}"

    # -- moving data
    def load(self, place: Place, width: int, count: int) -> list[Array]:
        """`count` items of `width` bytes for each position; `place` was found with width * count."""
        total = width * count
        view = place.region.view(total)
        if count == 1:
            return [view.take(place.positions)]
        rows = view.take(place.positions, axis=0).view(_WIDE[width]).reshape(-1, count)
        return [np.ascontiguousarray(rows[:, i]) for i in range(count)]

    def store(self, place: Place, values: list[Array], width: int) -> None:
        """Items of `width` bytes side by side; where lanes meet, the last one wins."""
        count = len(values)
        total = width * count
        view = place.region.view(total)
        if not view.flags.writeable:
            raise MemoryFault(
                "read-only-write", f"{place.region.name} is read-only", _lane(place.lanes, 0), place.region
            )
        if count == 1:
            view[place.positions] = values[0]
            return
        rows = np.empty((max(v.shape[0] for v in values), count), _WIDE[width])
        for i, value in enumerate(values):
            rows[:, i] = value
        view[place.positions] = rows.view(view.dtype).reshape((-1, *view.shape[1:]))


def _lane(lanes: Array | None, index: int) -> int:
    return index if lanes is None else int(lanes[index])
