"""A buffer under watch, accesses to it, and the copies that are on their way to it or from it.

Both machines share this.  A copy's bytes move when its thread waits for its group, the last moment at which they may:
whoever doesn't wait sees what was there before.  `Groups` keeps the copies of a batch of threads; a buffer that one
goes to, or comes from, has a `Flight` that tells an access that it comes too early (`async_copies` makes findings of
that).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.errors import InternalError
from warpsmith.simt.core.shadow import Clock, Shadow

__all__ = ["Accesses", "Copy", "End", "Flight", "Groups", "New", "Tracked"]

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


WORD = 4
"""Bytes of the smallest copy; all are made of words."""


@dataclass(slots=True)
class End:
    """Where copies begin or end: a buffer's bytes, and the first byte of each copy."""

    data: Array
    start: Array
    tracked: Tracked | None = None


@dataclass(eq=False, slots=True)
class Copy:
    """Copies that some threads, `lanes`, start by one instruction, whose key is `key`; `group` is each thread's.

    Each writes `size` bytes, of which `filled` are read and the rest is zero.
    """

    key: Any
    lanes: Array
    source: End
    target: End
    size: int
    filled: int
    group: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    flying: Array = field(default_factory=lambda: np.zeros(0, np.bool_))
    groups: Groups | None = None

    def bytes(self, rows: Array) -> Array:
        """What some of them bring, a row a copy."""
        found = np.zeros((rows.shape[0], self.size), np.uint8)
        found[:, : self.filled] = self.source.data[self.source.start[rows][:, None] + np.arange(self.filled)]
        return found

    def reason(self, row: int, describe: Callable[[Any], str]) -> str:
        """Why a copy is in flight still, in words; `describe` gives those for an instruction's key."""
        return "" if self.groups is None else self.groups.reason(self, row, describe)

    def move(self, rows: Array) -> None:
        """Some of them arrive."""
        self.target.data[self.target.start[rows][:, None] + np.arange(self.size)] = self.bytes(rows)


class Flight:
    """How many copies in flight move each word of a buffer.  A copy takes part as a whole, with one end of it, of which
    it moves `size` bytes.
    """

    def __init__(self, size: int) -> None:
        self._count = np.zeros(-(-size // WORD), np.int32)
        self._copies: list[tuple[Copy, Array, int]] = []

    def begin(self, copy: Copy, start: Array, size: int) -> None:
        """The copies of these threads are on their way, from or to the bytes `start`."""
        np.add.at(self._count, _words(start, size), 1)
        self._copies.append((copy, start, size))

    def end(self, copy: Copy, start: Array, size: int) -> None:
        """Some have arrived."""
        np.subtract.at(self._count, _words(start, size), 1)
        if not copy.flying.any():
            self._copies = [each for each in self._copies if each[0] is not copy]

    def hit(self, start: Array, size: int) -> Array | None:
        """Which accesses meet words in flight; None if none does."""
        if not self._copies:
            return None
        busy: Array = self._count[_words(start, size)] > 0
        found = np.logical_or.reduce(busy, axis=1)
        return found if found.any() else None

    def at(self, start: int, size: int) -> tuple[Copy, int]:
        """The latest copy that an access meets, and the row in it."""
        first, last = start // WORD, (start + size - 1) // WORD
        for copy, begin, width in reversed(self._copies):
            met = copy.flying & (begin // WORD <= last) & ((begin + width - 1) // WORD >= first)
            if met.any():
                return copy, int(met.argmax())
        raise InternalError(f"no copy is in flight at byte {start}")


def _words(start: Array, size: int) -> Array:
    """The words of each access, a row an access (one that isn't aligned may cover one more)."""
    first = start // WORD
    last = (start + size - 1) // WORD
    most = int((last - first).max(initial=0))
    return np.minimum(first[:, None] + np.arange(most + 1), last[:, None])


class Groups:
    """The copies in flight of a batch of threads, and how many groups each thread has committed."""

    def __init__(self, threads: int) -> None:
        self.copies: list[Copy] = []
        self._committed = np.zeros(threads, np.int64)
        self._at_wait = np.zeros(threads, np.int64)
        self._wait = np.zeros(threads, np.int32)
        self._waits: list[tuple[Any, int]] = [(None, 0)]

    def start(self, copy: Copy) -> None:
        """A copy joins the group that its thread gathers."""
        copy.groups = self
        copy.group = self._committed[copy.lanes]
        copy.flying = np.ones(copy.lanes.shape[0], np.bool_)
        self.copies.append(copy)

    def commit(self, mask: Array | None) -> None:
        """What these threads have started since their last commit is a group."""
        self._committed[... if mask is None else mask] += 1

    def wait(self, mask: Array | None, groups: int, key: Any) -> Iterator[tuple[Copy, Array]]:
        """These threads wait until at most `groups` of their groups are in flight: the copies that arrive, by rows."""
        chosen = ... if mask is None else mask
        if (key, groups) not in self._waits:
            self._waits.append((key, groups))
        self._at_wait[chosen] = self._committed[chosen]
        self._wait[chosen] = self._waits.index((key, groups))
        waiting = np.broadcast_to(np.ones(1, np.bool_) if mask is None else mask, self._committed.shape)
        for copy in list(self.copies):
            done = copy.flying & waiting[copy.lanes] & (copy.group < self._committed[copy.lanes] - groups)
            rows = np.flatnonzero(done)
            if not rows.size:
                continue
            copy.move(rows)
            copy.flying[rows] = False
            if not copy.flying.any():
                self.copies.remove(copy)
            yield copy, rows

    def reason(self, copy: Copy, row: int, describe: Callable[[Any], str]) -> str:
        """Why a copy is in flight still, in words; `describe` those for an instruction's key."""
        thread, group = int(copy.lanes[row]), int(copy.group[row])
        if group == self._committed[thread]:
            return "no commit follows the copy, so it is in no group that a wait could end"
        key, left = self._waits[int(self._wait[thread])]
        after = int(self._at_wait[thread]) - group - 1
        if after < 0:
            return "its thread hasn't waited for it"
        most = f"at most {after}" if after else "none"
        return f"the wait at {describe(key)} leaves {left} of its groups in flight, this one too; wait until {most} is"
