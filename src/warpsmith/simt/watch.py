"""Watching a launch: each access by each thread, each barrier; what is wrong becomes findings, what it costs counters.

IR and PTX share this.  A machine tells it of batches of blocks, of the buffers it has (`Tracked`), and of accesses as
bytes from a buffer's start.  Costs are computed in `traffic`, races in `shadow`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from warpsmith.simt.checks import Findings, triple
from warpsmith.simt.results import SECTOR, AccessCounters, Counters, Dim3, Finding, Party, Site
from warpsmith.simt.shadow import NOBODY, Clock, Conflict, Shadow
from warpsmith.simt.tracked import Tracked
from warpsmith.simt.traffic import WARP, meeting_lanes, sectors, wavefronts

__all__ = ["Watch"]

Array = np.ndarray[Any, np.dtype[Any]]

_SEVERAL = "several threads"


class Watch:
    """Sees a launch of `grid` blocks of `block` threads.  `describe` gives the place in the code of an op's key."""

    def __init__(
        self,
        counters: Counters,
        describe: Callable[[Any], Site],
        findings: Findings | None = None,
    ) -> None:
        self.counters = counters
        self.findings = findings if findings is not None else Findings()
        self.mix: Counter[str] = Counter()
        self._describe = describe
        self._per_block = int(np.prod(counters.block))
        self._sites: list[Site] = []
        self._site_numbers: dict[Any, int] = {}
        self._rows: dict[tuple[Any, str, str, int], AccessCounters] = {}
        self._buffers: list[Tracked] = []
        self._last_mask: tuple[Array | None, int, int, int, int] | None = None
        self.begin_batch(np.zeros(1, np.int64))

    # ------------------------------------------------------------------------------------------------------- structure
    def track(self, buffer: Tracked) -> Tracked:
        """Count the different sectors of a global buffer, and look for what nobody writes in it."""
        if buffer.space == "global":
            self._buffers.append(buffer)
            for name in ("read", "written"):
                setattr(buffer, name, np.zeros(-(-buffer.data.size // SECTOR), np.bool_))
        return buffer

    def begin_batch(self, blocks: Array) -> None:
        """The blocks of these numbers run, all their threads at once."""
        per_block = self._per_block
        self._blocks: Array = blocks
        self._block: Array = blocks.repeat(per_block)
        own = np.tile(np.arange(per_block, dtype=np.int64), blocks.shape[0])
        self._thread = self._block * per_block + own
        self._warps = -(-per_block // WARP)
        self._warp = self._block * self._warps + own // WARP
        first: Array = np.arange(blocks.shape[0], dtype=np.int64) * self._warps
        self._row: Array = np.repeat(first, per_block) + own // WARP
        self._column = own % WARP
        self._block_time = np.zeros(blocks.shape[0], np.int32)
        self._warp_time = np.zeros(self._thread.shape[0], np.int32)
        self._timed = False
        self._last_mask = None

    @property
    def threads(self) -> int:
        return self._thread.shape[0]

    def site(self, key: Any) -> int:
        """The number of an op's place in the code."""
        found = self._site_numbers.get(key)
        if found is None:
            found = self._site_numbers[key] = len(self._sites)
            self._sites.append(self._describe(key))
        return found

    # -------------------------------------------------------------------------------------------------------- ordering
    def barrier(self, mask: Array | None) -> None:
        """These threads have met the others of their block: what they did before is ordered before what they do now."""
        self._timed = True
        lanes = np.arange(self.threads) if mask is None else np.flatnonzero(mask)
        met = np.unique(lanes // self._per_block)
        self._block_time[met] += 1
        self.counters.barriers += np.unique(self._row[lanes]).shape[0]

    def warp_barrier(self, mask: Array | None) -> None:
        """These threads have met the others of their warp."""
        self._timed = True
        if mask is None:
            self._warp_time += 1
        else:
            self._warp_time[mask] += 1

    def shuffle(self, mask: Array | None, threads: int) -> None:
        """Threads have exchanged values."""
        self.counters.shuffles += self._count(mask, threads)[0]

    def torn_warp(self, mask: Array) -> tuple[int, int] | None:
        """A thread that is off in a warp with threads that are on, and how many such there are; None if none is."""
        mask = np.broadcast_to(mask, (self.threads,))
        here = np.bincount(self._row[mask], minlength=self._blocks.shape[0] * self._warps)
        away = np.flatnonzero(~mask & (here[self._row] > 0))
        return (int(away[0]), away.shape[0]) if away.size else None

    def parted(self, some: Array, others: Array, threads: int) -> None:
        """Threads part at a branch: counts the warps that have threads on both sides."""
        turns = threads // self.threads
        both = [np.broadcast_to(each, (threads,)).reshape(self.threads, turns) for each in (some, others)]
        count = self._blocks.shape[0] * self._warps
        sides: list[Array] = []
        for side in both:
            marks = np.zeros((count, turns), np.bool_)
            np.logical_or.at(marks, self._row, side)
            sides.append(marks)
        self.counters.divergent_branches += int(np.count_nonzero(sides[0] & sides[1]))

    # ---------------------------------------------------------------------------------------------------- instructions
    def executed(self, kind: str, mask: Array | None, threads: int) -> None:
        """An op was issued for the threads of a mask."""
        warps, lanes, partial = self._count(mask, threads)
        self.mix[kind] += warps
        self.counters.thread_instructions += lanes
        self.counters.partial_instructions += partial

    def _count(self, mask: Array | None, threads: int) -> tuple[int, int, int]:
        """Warps with an active thread, active threads, and warps with an inactive one too."""
        last = self._last_mask
        if last is not None and last[0] is mask and last[1] == threads:
            return last[2:]
        turns = threads // self.threads
        if mask is None or mask.shape[0] == 1:
            on = mask is None or bool(mask[0])
            found = (self._blocks.shape[0] * self._warps * turns, threads, 0) if on else (0, 0, 0)
        else:
            rows = (
                self._row
                if turns == 1
                else np.repeat(self._row, turns) * turns + np.tile(np.arange(turns), self.threads)
            )
            count = self._blocks.shape[0] * self._warps * turns
            here = np.bincount(rows[mask], minlength=count)
            whole = np.bincount(rows, minlength=count)
            some = here > 0
            found = (int(some.sum()), int(here.sum()), int((some & (here < whole)).sum()))
        self._last_mask = (mask, threads, found[0], found[1], found[2])
        return found

    # -------------------------------------------------------------------------------------------------------- accesses
    def access(
        self,
        key: Any,
        kind: str,
        buffer: Tracked,
        start: Array,
        size: int,
        lanes: Array | None,
        turns: int = 1,
        new: Callable[[], Array] | None = None,
    ) -> None:
        """Accesses of `size` bytes that begin at the bytes `start` of the buffer; a store's data isn't there yet.

        One access a thread, or with `turns` that many one after the other (thread by thread); only those whose numbers
        are in `lanes`, which ascend.  `kind` is load, store, atomic, or cas (compare-and-swap).  `new` gives a store's
        bytes, a row an access.
        """
        total = self.threads * turns
        count = total if lanes is None else lanes.shape[0]
        if count == 0:
            return
        if start.shape[0] != count:
            start = np.broadcast_to(start, (count,))
        if buffer.space != "local":
            self._cost(key, "atomic" if kind == "cas" else kind, buffer, start, size, lanes, turns)
        if buffer.read_only and kind == "load":
            return
        site = self.site(key)
        clock = self._clock(lanes, turns)
        shadow = buffer.shadow
        if shadow is None:
            shadow = buffer.shadow = Shadow(buffer.data.size, self._per_block)
        where = shadow.where(start, size)
        if buffer.read_only:
            self._find("read-only-write", "writes to", site, kind, buffer, start, 0, clock, count)
        if buffer.fresh and not buffer.packed and kind != "store":
            unwritten = shadow.unwritten(where)
            if unwritten.any():
                first, many = int(unwritten.argmax()), int(np.count_nonzero(unwritten))
                what = "reads what nobody wrote in"
                self._find("uninitialised-read", what, site, kind, buffer, start, first, clock, many)
        same = _comparison(buffer.data, start, size, new)
        for conflict in shadow.access(kind, where, clock, site, same):
            self._conflict(conflict, site, kind, buffer, start, clock)

    def _clock(self, lanes: Array | None, turns: int) -> Clock:
        who = lanes if lanes is not None else (np.arange(self.threads * turns) if turns > 1 else None)
        if who is not None and turns > 1:
            who = who // turns
        thread, block, warp, warp_time = (
            each if who is None else each[who] for each in (self._thread, self._block, self._warp, self._warp_time)
        )
        if not self._timed:
            return Clock(thread, block, warp, warp_time, warp_time)  # all are 0
        own = np.repeat(self._block_time, self._per_block)
        return Clock(thread, block, warp, own if who is None else own[who], warp_time)

    # ----------------------------------------------------------------------------------------------------------- costs
    def _cost(
        self, key: Any, kind: str, buffer: Tracked, start: Array, size: int, lanes: Array | None, turns: int
    ) -> None:
        row = self._rows.get((key, buffer.space, kind, size))
        if row is None:
            row = AccessCounters(self._sites[self.site(key)], kind, buffer.space, buffer.name, size)
            self._rows[key, buffer.space, kind, size] = row
        addresses, active, whole = self._warp_rows(start, lanes, turns)
        here = addresses.shape[0] * WARP if active is None else int(np.count_nonzero(active))
        row.warps += addresses.shape[0]
        row.threads += here
        if active is not None:
            row.partial += int((np.count_nonzero(active, axis=1) < whole).sum())
        if buffer.space == "shared":
            turned, least = wavefronts(addresses % max(1, buffer.copy), active, size)
            row.wavefronts += turned
            row.ideal_wavefronts += least
        else:
            touched, least = sectors(addresses, active, size)
            row.sectors += touched
            row.ideal_sectors += least
            if buffer.read is not None and buffer.written is not None:
                for marks, wanted in ((buffer.read, kind != "store"), (buffer.written, kind != "load")):
                    if wanted:
                        marks[start // SECTOR] = True
                        marks[(start + (size - 1)) // SECTOR] = True
        if kind == "atomic":
            most, sum_ = meeting_lanes(addresses, active)
            row.contention = max(row.contention, most)
            row.turns += sum_

    def _warp_rows(self, start: Array, lanes: Array | None, turns: int) -> tuple[Array, Array | None, Array]:
        """Addresses, a row of 32 a warp access; which are of active lanes (None: all); and how many threads it has."""
        blocks = self._blocks.shape[0]
        last = self._per_block - (self._warps - 1) * WARP
        whole = np.full(self._warps, WARP)
        whole[-1] = last
        if lanes is None and last == WARP:
            rows = (
                start.reshape(-1, WARP)
                if turns == 1
                else start.reshape(-1, WARP, turns).swapaxes(1, 2).reshape(-1, WARP)
            )
            return np.ascontiguousarray(rows), None, whole
        who = np.arange(self.threads * turns) if lanes is None else lanes
        thread = who if turns == 1 else who // turns
        row = self._row[thread]
        if turns > 1:
            row = row * turns + who % turns
        count = blocks * self._warps * turns
        used = np.zeros(count, np.bool_)
        used[row] = True
        number = np.cumsum(used) - 1
        kept = np.flatnonzero(used)
        addresses = np.zeros((kept.shape[0], WARP), np.int64)
        active = np.zeros((kept.shape[0], WARP), np.bool_)
        place = number[row], self._column[thread]
        addresses[place] = start
        active[place] = True
        return addresses, active, whole[kept // turns % self._warps]

    # -------------------------------------------------------------------------------------------------------- findings
    def _who(self, thread: int) -> tuple[Dim3, Dim3]:
        return (
            triple(thread // self._per_block, self.counters.grid),
            triple(thread % self._per_block, self.counters.block),
        )

    def _find(
        self,
        code: str,
        what: str,
        site: int,
        kind: str,
        buffer: Tracked,
        start: Array,
        first: int,
        clock: Clock,
        count: int,
        *,
        more: str = "",
        other: Party | None = None,
        dedupe: int = -1,
    ) -> None:
        byte = int(start[first]) % (buffer.copy or buffer.data.size)
        index = byte // buffer.item if buffer.item else None
        place = f"element {index} (byte {byte})" if index is not None else f"byte {byte}"
        block, thread = self._who(int(clock.thread[first]))
        name = buffer.name if buffer.name.endswith("memory") else f"{buffer.name} in {buffer.space} memory"
        kind = "atomic" if kind == "cas" else kind
        finding = Finding(
            code,
            f"{self._sites[site].op} {what} {place} of {name}{more}",
            self._sites[site],
            kind,
            block,
            thread,
            buffer.space,
            buffer.name,
            byte,
            index,
            count,
            other,
        )
        self.findings.add(finding, (code, site, dedupe, buffer.name))

    def _conflict(self, found: Conflict, site: int, kind: str, buffer: Tracked, start: Array, clock: Clock) -> None:
        code = "race"
        if kind == found.kind == "store":
            code = "same-value-write" if found.same else "double-write"
        block, thread = (None, None) if found.other == NOBODY else self._who(found.other)
        verb = {"load": "reads", "store": "writes", "atomic": "changes", "cas": "changes"}
        who = "another thread" if thread is not None else _SEVERAL
        done = verb[found.kind] if thread is not None else verb[found.kind].removesuffix("s")
        more = f", which {who} {done} too" if kind == found.kind else f", which {who} {done}"
        if found.same:
            more += " (the same value)"
        more += (
            ", with no barrier between them"
            if block is None or block == self._who(int(clock.thread[found.index]))[0]
            else (", and nothing orders blocks")
        )
        other = "atomic" if found.kind == "cas" else found.kind
        party = Party(self._sites[found.site], other, block, thread)
        self._find(
            code, verb[kind], site, kind, buffer, start, found.index, clock, found.count,
            more=more, other=party, dedupe=found.site,
        )  # fmt: skip

    # --------------------------------------------------------------------------------------------------------- the end
    def finish(self) -> None:
        """Counters of the whole launch; outputs that have elements without a writer, if all blocks ran."""
        counters = self.counters
        counters.accesses = list(self._rows.values())
        counters.mix = dict(self.mix)
        for buffer in self._buffers:
            assert buffer.read is not None
            assert buffer.written is not None
            counters.read_bytes += SECTOR * int(np.count_nonzero(buffer.read))
            counters.written_bytes += SECTOR * int(np.count_nonzero(buffer.written))
            if buffer.fresh and not counters.sampled:
                self._unwritten(buffer)

    def _unwritten(self, buffer: Tracked) -> None:
        needed = buffer.needed or buffer.data.size
        shadow = buffer.shadow or Shadow(buffer.data.size, self._per_block)
        empty = np.flatnonzero(~shadow.written())
        start = empty * shadow.piece
        start = start[start < needed]
        if not start.size:
            return
        item = buffer.item or 1
        missing = int((np.minimum(start + shadow.piece, needed) - start).sum()) // item
        first = int(start[0])
        what = "elements" if buffer.item else "bytes"
        self.findings.add(
            Finding(
                "unwritten-output",
                f"{missing} {what} of {buffer.name} are written by no thread, the first is {first // item}",
                space=buffer.space,
                buffer=buffer.name,
                byte=first,
                index=first // item if buffer.item else None,
                count=missing,
            ),
            ("unwritten-output", buffer.name),
        )


def _comparison(
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
