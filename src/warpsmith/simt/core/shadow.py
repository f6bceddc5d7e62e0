"""Who touched each piece of a buffer, and when: what finds races, double writes, and reads of what nobody wrote.

The unit is the thread, not the warp.  Two accesses to one piece are ordered if one thread made both; or if a barrier of
the block that both threads belong to, or one of their warp, lies between them, or a chain of barriers of some of the
block's warps.  Nothing orders threads of different blocks.  A shuffle moves values between registers and orders nothing
in memory.  Unordered accesses are fine if both read, or both are atomic.

A buffer is divided into pieces as large as its accesses allow; narrower accesses divide it further.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from warpsmith.arrays import Array
from warpsmith.simt.core.readers import Readers

__all__ = ["Clock", "Conflict", "Shadow", "comparison"]


NOBODY = -1
_LARGEST_PIECE = 32

_WRITES = ("store", "atomic", "cas")
_AGAINST = {
    "load": ("store", "atomic"),
    "store": ("store", "atomic", "cas", "load"),
    "atomic": ("store", "load"),
    "cas": ("store",),
}
"""Which earlier accesses one must be ordered after.

A compare-and-swap may meet plain reads: the loop around one starts with such a read, and a stale value only costs it
another turn.
"""

# How far the threads reach that a mark stands for.
_ONE, _WARP, _BLOCK, _GRID = 0, 1, 2, 3


@dataclass(slots=True)
class Clock:
    """Who accesses: the number of each thread in the grid, its block and warp; and how many barriers each has met.

    Where barriers of a part of a block may be, also the present `moment`, and `seen`: for each warp of the batch, `row`
    of these threads, up to which moment it knows what the block's warps did.
    """

    thread: Array
    block: Array
    warp: Array
    block_time: Array
    warp_time: Array
    row: Array | None = None
    moment: int = 0
    seen: Array | None = None

    def take(self, chosen: Array) -> Clock:
        """Those of some of the accesses."""
        return Clock(
            self.thread[chosen],
            self.block[chosen],
            self.warp[chosen],
            self.block_time[chosen],
            self.warp_time[chosen],
            None if self.row is None else self.row[chosen],
            self.moment,
            self.seen,
        )


@dataclass(slots=True)
class Conflict:
    """An unordered pair: access number `index` against an earlier one by thread `other` (NOBODY: several) at `site`.

    `count` accesses conflict; `piece` is where the first does, `same` says that all write what is there already.
    """

    index: int
    piece: int
    other: int
    site: int
    kind: str
    count: int
    same: bool = False


class _Marks:
    """For each piece the last access of a kind.  Where `reach` isn't _ONE, several threads made it, `thread` is one."""

    __slots__ = ("block_time", "moment", "reach", "readers", "site", "thread", "warp_time")

    def __init__(self, pieces: int) -> None:
        self.thread = np.full(pieces, NOBODY, np.int64)
        self.block_time = np.zeros(pieces, np.int32)
        self.warp_time = np.zeros(pieces, np.int32)
        self.reach = np.zeros(pieces, np.int8)
        self.site = np.zeros(pieces, np.int32)
        self.moment: Array | None = None  # these two where barriers of a part of a block may be
        self.readers: Array | None = None

    def divide(self, factor: int) -> None:
        self.thread = self.thread.repeat(factor)
        self.block_time = self.block_time.repeat(factor)
        self.warp_time = self.warp_time.repeat(factor)
        self.reach = self.reach.repeat(factor)
        self.site = self.site.repeat(factor)
        if self.moment is not None and self.readers is not None:
            self.moment, self.readers = self.moment.repeat(factor), self.readers.repeat(factor)


class Shadow:
    """The marks of one buffer of `size` bytes; `per_block` and `warp_size` tell a thread's block and warp."""

    def __init__(self, size: int, per_block: int, warp_size: int) -> None:
        self.size = size
        self.piece = _LARGEST_PIECE
        self.per_block = per_block
        self.warp_size = warp_size
        self.marks: dict[str, _Marks] = {}
        self._readers = Readers(-(-per_block // 32))

    @property
    def pieces(self) -> int:
        """How many pieces the buffer has now."""
        return -(-self.size // self.piece)

    def _of(self, kind: str) -> _Marks:
        found = self.marks.get(kind)
        if found is None:
            found = self.marks[kind] = _Marks(self.pieces)
        return found

    def where(self, start: Array, size: int) -> Array:
        """The pieces that each access covers, a row an access; divides the buffer if it must."""
        bits = int(np.bitwise_or.reduce(start, initial=0)) | size
        step = min(bits & -bits, self.piece)
        if step < self.piece:
            factor = self.piece // step
            for marks in self.marks.values():
                marks.divide(factor)
            self.piece = step
        first = start // self.piece
        count = size // self.piece
        return first[:, None] if count == 1 else first[:, None] + np.arange(count)

    def written(self) -> Array:
        """Which pieces hold something."""
        found = np.zeros(self.pieces, np.bool_)
        for kind in _WRITES:
            if kind in self.marks:
                held = self.marks[kind].thread != NOBODY
                found[: held.shape[0]] |= held[: self.pieces]
        return found

    def unwritten(self, where: Array) -> Array:
        """Which rows of pieces have one that holds nothing."""
        found = np.ones(where.shape, np.bool_)
        for kind in _WRITES:
            if kind in self.marks:
                found &= self.marks[kind].thread[where] == NOBODY
        return np.logical_or.reduce(found, axis=1)

    # ------------------------------------------------------------------------------------------------------- accesses
    def access(
        self, kind: str, where: Array, clock: Clock, site: int, same: Callable[[Array, Array | None], bool]
    ) -> list[Conflict]:
        """Note an access of each row of pieces; the conflicts, one an earlier kind at most.

        `same(rows, others)` says whether these rows all write what is there, or what those other rows write.
        """
        found: list[Conflict] = []
        several = where.shape[1]
        flat = where.reshape(-1)
        rows = np.arange(where.shape[0], dtype=np.int64)
        who = clock if several == 1 else clock.take(np.repeat(rows, several))
        for other in _AGAINST[kind]:
            marks = self.marks.get(other)
            if marks is None:
                continue
            bad = self._unordered(marks, flat, who)
            if bad is not None:
                found.append(self._conflict(marks, other, flat, bad, several, kind, same))
        inside = self._put(kind, flat, who, site)
        if kind == "store" and inside is not None:
            found.append(self._doubled(flat, inside, site, several, same, who))
        return found

    def note(self, kind: str, where: Array, clock: Clock, site: int) -> None:
        """Mark an access of each row of pieces that was checked before."""
        several = where.shape[1]
        rows = np.arange(where.shape[0], dtype=np.int64)
        who = clock if several == 1 else clock.take(np.repeat(rows, several))
        self._put(kind, where.reshape(-1), who, site)

    def _unordered(self, marks: _Marks, flat: Array, who: Clock) -> Array | None:
        """Which accesses nothing orders after the marks; None if all are ordered."""
        thread = marks.thread[flat]
        other = (thread != NOBODY) & ((thread != who.thread) | (marks.reach[flat] != _ONE))
        if not other.any():
            return None
        chosen = np.flatnonzero(other)
        flat, who, thread = flat[chosen], who.take(chosen), thread[chosen]
        reach = marks.reach[flat]
        bad = (thread // self.per_block != who.block) | (reach == _GRID)
        now = marks.block_time[flat] == who.block_time
        apart = (self._warp_of(thread) != who.warp) | (reach == _BLOCK)
        bad |= now & np.where(apart, ~self._met(marks, flat, who), marks.warp_time[flat] == who.warp_time)
        return chosen[bad] if bad.any() else None

    def _met(self, marks: _Marks, flat: Array, who: Clock) -> Array:
        """Whether barriers of a part of the block order an access after the mark, of a warp or of several."""
        if who.seen is None or who.row is None or marks.moment is None or marks.readers is None:
            return np.zeros(1, np.bool_)
        warps = who.seen.shape[2]
        seen = who.seen.reshape(-1, warps)[who.row]
        warp = self._warp_of(marks.thread[flat]) % warps
        one = marks.moment[flat] < seen[np.arange(flat.shape[0]), warp]
        return np.where(marks.reach[flat] == _BLOCK, self._readers.known(marks.readers[flat], seen), one)

    def _warp_of(self, thread: Array) -> Array:
        """As `Clock.warp`: a number that no two warps of the grid share."""
        rows = -(-self.per_block // self.warp_size)
        return thread // self.per_block * rows + thread % self.per_block // self.warp_size

    @staticmethod
    def _conflict(
        marks: _Marks,
        other: str,
        flat: Array,
        bad: Array,
        several: int,
        kind: str,
        same: Callable[[Array, Array | None], bool],
    ) -> Conflict:
        first = int(bad[0])
        rows = np.unique(bad // several)
        piece = int(flat[first])
        one = int(marks.reach[piece]) == _ONE
        return Conflict(
            index=first // several,
            piece=piece,
            other=int(marks.thread[piece]) if one else NOBODY,
            site=int(marks.site[piece]),
            kind=other,
            count=int(rows.shape[0]),
            same=kind == "store" and other == "store" and same(rows, None),
        )

    def _doubled(
        self,
        flat: Array,
        inside: Array,
        site: int,
        several: int,
        same: Callable[[Array, Array | None], bool],
        who: Clock,
    ) -> Conflict:
        """Two threads that store to one piece by one instruction."""
        concerned = np.flatnonzero(np.isin(flat, np.unique(flat[inside])))
        order = concerned[np.argsort(flat[concerned], kind="stable")]
        pairs = np.flatnonzero(
            (flat[order[1:]] == flat[order[:-1]]) & (who.thread[order[1:]] != who.thread[order[:-1]])
        )
        later, earlier = order[pairs + 1], order[pairs]
        return Conflict(
            index=int(later[0]) // several,
            piece=int(flat[later[0]]),
            other=int(who.thread[earlier[0]]),
            site=site,
            kind="store",
            count=int(np.unique(later // several).shape[0]),
            same=same(later // several, earlier // several),
        )

    def _put(self, kind: str, flat: Array, who: Clock, site: int) -> Array | None:
        """Mark the accesses; those that share a piece with another thread of the same instruction, if any."""
        marks = self._of(kind)
        reach = np.int8(_ONE)
        before = None
        if kind != "store":
            reach = self._reach(marks, flat, who)
            before = self._readers_before(marks, flat, reach, who)
        marks.thread[flat] = who.thread
        marks.reach[flat] = reach
        marks.block_time[flat] = who.block_time
        marks.warp_time[flat] = who.warp_time
        marks.site[flat] = site
        held = marks.thread[flat]
        shared = held != who.thread
        if who.seen is not None:
            self._join(marks, flat, who, before)
        if not shared.any():
            return None
        inside = np.flatnonzero(shared)
        if kind == "store":
            return inside
        where, mine, kept = flat[inside], who.take(inside), held[inside]
        same_block = kept // self.per_block == mine.block
        same_warp = same_block & (self._warp_of(kept) == mine.warp)
        for level, some in ((_WARP, same_warp), (_BLOCK, same_block & ~same_warp), (_GRID, ~same_block)):
            at = where[some]
            marks.reach[at] = np.maximum(marks.reach[at], level)
        return inside

    def _reach(self, marks: _Marks, flat: Array, who: Clock) -> Array:
        """How far each mark reaches when the accesses join those that nothing orders before them."""
        thread, before = marks.thread[flat], marks.reach[flat]
        known = thread != NOBODY
        if not known.any():
            return np.zeros(flat.shape, np.int8)
        same_block = thread // self.per_block == who.block
        now = same_block & (marks.block_time[flat] == who.block_time)
        same_warp = now & (self._warp_of(thread) == who.warp)
        if who.seen is not None:
            now &= ~self._met(marks, flat, who) | (same_warp & (before != _BLOCK))
            same_warp &= now
        joined = same_warp & (marks.warp_time[flat] == who.warp_time)
        mine = (thread == who.thread) & (before == _ONE)
        reach = np.where(joined & ~mine, np.maximum(before, _WARP), _ONE)
        reach = np.where(same_warp & (before == _BLOCK), _BLOCK, reach)
        reach = np.where(now & ~same_warp, np.maximum(before, _BLOCK), reach)
        reach = np.where((before == _GRID) | ~same_block, _GRID, reach)
        return np.where(known, reach, _ONE).astype(np.int8)

    # ------------------------------------------------------------------------------- barriers of a part of the block
    def _readers_before(self, marks: _Marks, flat: Array, reach: Array, who: Clock) -> Array | None:
        """The set of warps that each access joins; the empty one where it's the first, or ordered after all others."""
        if who.seen is None:
            return None
        if marks.moment is None or marks.readers is None:
            marks.moment, marks.readers = (np.zeros(marks.thread.shape[0], np.int32) for _ in range(2))
        alone = marks.reach[flat] != _BLOCK
        sets = np.where(reach == _BLOCK, marks.readers[flat], 0)
        joins = np.flatnonzero((reach == _BLOCK) & alone)
        if joins.size:
            moments = marks.moment[flat[joins]]
            for moment in np.unique(moments).tolist():
                then = joins[moments == moment]
                warp = self._warp_of(marks.thread[flat[then]]) % who.seen.shape[2]
                sets[then] = self._readers.joined(np.zeros(then.size, np.int64), np.left_shift(1, warp), moment)
        return sets

    def _join(self, marks: _Marks, flat: Array, who: Clock, before: Array | None) -> None:
        """Note the moment of accesses, and where several warps read a place, which and when."""
        assert who.seen is not None
        if marks.moment is None or marks.readers is None:
            marks.moment, marks.readers = (np.zeros(marks.thread.shape[0], np.int32) for _ in range(2))
        marks.moment[flat] = who.moment
        if before is None:
            return
        pieces, where = np.unique(flat, return_inverse=True)
        sets, warps = np.zeros(pieces.shape[0], np.int64), np.zeros(pieces.shape[0], np.int64)
        np.maximum.at(sets, where, before)  # one access's set; that of others is the same, or ordered before them
        np.bitwise_or.at(warps, where, np.left_shift(1, who.warp % who.seen.shape[2]))
        marks.readers[pieces] = self._readers.joined(sets, warps, who.moment)


def comparison(
    data: Array, start: Array, size: int, new: Callable[[], Array] | None
) -> Callable[[Array, Array | None], bool]:
    """Whether some accesses write what is in memory; or with others given, what those write."""

    def same(rows: Array, others: Array | None) -> bool:
        if new is None:
            return False
        written = np.broadcast_to(new(), (start.shape[0], size))
        if others is not None:
            return bool((start[rows] == start[others]).all() and (written[rows] == written[others]).all())
        return bool((written[rows] == data[start[rows][:, None] + np.arange(size)]).all())

    return same
