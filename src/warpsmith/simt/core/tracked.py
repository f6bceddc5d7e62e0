"""What a watch knows of a buffer, and of accesses to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from warpsmith.arrays import Array
from warpsmith.simt.core.in_flight import Flight
from warpsmith.simt.core.shadow import Clock, Shadow

__all__ = ["Accesses", "New", "Tracked"]

New = Callable[[], Array] | None
"""Gives the bytes that a store writes, a row an access."""


@dataclass(eq=False, slots=True)
class Tracked:
    """What is known of a buffer.  `data` are its bytes; of shared and local memory `copy` bytes are each block's or
    thread's.  `needed` bytes of it are the caller's, the rest is padding.  Of each copy, or of all, the first `end`
    bytes (0: all) are the buffer's; the rest is what an aligned access may reach on hardware.

    `fresh`: nothing was in it before the launch (`packed` elements, narrower than a byte, are read all the same).
    `read_only`: an input.  `item` is an element's size, 0 if unknown.  `arriving` and `leaving` are the copies in
    flight that write it and read it.
    """

    name: str
    space: str
    data: Array
    copy: int = 0
    needed: int = 0
    fresh: bool = False
    read_only: bool = False
    item: int = 0
    packed: bool = False
    end: int = 0
    shadow: Shadow | None = None
    read: Array | None = None
    written: Array | None = None
    arriving: Flight | None = None
    leaving: Flight | None = None


@dataclass(slots=True)
class Accesses:
    """One op's accesses to `size` bytes of a buffer from `start` on, a row an access; `new` gives what is stored."""

    site: int
    kind: str
    buffer: Tracked
    start: Array
    size: int
    clock: Clock
    new: New = None

    def take(self, rows: Array) -> Accesses:
        """Some of them."""
        start, clock = self.start[rows], self.clock.take(rows)
        return Accesses(self.site, self.kind, self.buffer, start, self.size, clock, _some(self.new, rows))

    def part(self, rows: Array, first: int, size: int) -> Accesses:
        """Some bytes, from `first` on, of some of them; what is stored there isn't known."""
        start, clock = self.start[rows] + first, self.clock.take(rows)
        return Accesses(self.site, self.kind, self.buffer, start, size, clock)


def _some(new: New, rows: Array) -> New:
    """Some rows of what is stored."""
    return None if new is None else lambda: np.asarray(new())[rows]
