"""Watching a launch: each access by each thread, each barrier; what is wrong becomes findings, what it costs counters.

IR and PTX share this.  A machine tells it of batches of blocks, of the buffers it has (`Tracked`), and of accesses as
bytes from a buffer's start.  Costs are computed in `costs`, what is ordered in `order`, races in `shadow`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpsmith.arrays import Array, Dim3
from warpsmith.simt.core.checks import Findings, triple
from warpsmith.simt.core.costs import add_cost
from warpsmith.simt.core.named_barriers import Meeting, Trouble, mixed
from warpsmith.simt.core.order import Order
from warpsmith.simt.core.reach import Reach
from warpsmith.simt.core.results import SECTOR, WARP, AccessCounters, Counters, Finding, Party, Site
from warpsmith.simt.core.shadow import NOBODY, Clock, Conflict, Shadow, comparison
from warpsmith.simt.core.tracked import Accesses, New, Tracked

__all__ = ["Access", "Watch"]


_SEVERAL = "several threads"
_VERBS = {"load": "reads", "store": "writes", "atomic": "changes", "cas": "changes"}


@dataclass(frozen=True, slots=True)
class Access:
    """What one instruction does to a buffer: `size` bytes from the bytes `start` on, one access a thread.

    `kind` is load, store, atomic, or cas (compare-and-swap).  Only threads whose numbers are in `lanes`, which ascend,
    take part (None: all); with `turns` there are that many accesses, one after the other, thread by thread.  `new`
    gives a store's bytes, a row an access.  `whole`: that other lanes don't access is no loss.  `reach`: only these
    bytes count.
    """

    kind: str
    buffer: Tracked
    start: Array
    size: int
    lanes: Array | None = None
    turns: int = 1
    new: New = None
    whole: bool = False
    reach: Reach | None = None


class Watch:
    """Sees the launch whose grid and block `counters` has.  `describe` gives the place in the code of an op's key."""

    def __init__(
        self,
        counters: Counters,
        describe: Callable[[Any], Site],
        findings: Findings | None = None,
        *,
        partial: bool = False,
        warp_size: int = WARP,
    ) -> None:
        """`partial`: the kernel has barriers of a part of a block."""
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
        self._partial = partial
        self._warp_size = warp_size
        self._awaited: dict[int, int] = {}  # the place of an asynchronous copy: the place of the wait for it
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
        self.order = Order(blocks, self._per_block, self._warp_size, partial=self._partial)
        self._warps = blocks.shape[0] * self.order.warps
        self._last_mask = None
        for buffer in self._buffers:
            buffer.arriving = buffer.leaving = None

    @property
    def threads(self) -> int:
        """Threads of the blocks that run."""
        return self.order.thread.shape[0]

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
        lanes = np.arange(self.threads) if mask is None else np.flatnonzero(mask)
        self.order.barrier(lanes)
        self.counters.barriers += np.unique(self.order.row[lanes]).shape[0]

    def warp_barrier(self, mask: Array | None) -> None:
        """These threads have met the others of their warp."""
        self.order.warp_barrier(mask)

    def part_barrier(self, meeting: Meeting) -> Trouble | None:
        """Some whole warps have met; what is wrong if others may have been at their barrier still."""
        strangers = self.order.part_barrier(meeting.lanes, meeting.group, meeting.barrier)
        self.counters.barriers += np.unique(self.order.row[meeting.lanes]).shape[0]
        return mixed(strangers, meeting)

    def shuffle(self, mask: Array | None, threads: int) -> None:
        """Threads have exchanged values."""
        self.counters.shuffles += self._count(mask, threads)[0]

    def multiplied(self, mask: Array | None, operations: int) -> None:
        """Warps have run an instruction of so many operations on the matrix units."""
        self.counters.matrix_flops += operations * self._count(mask, self.threads)[0]

    def torn_warp(self, mask: Array) -> tuple[int, int] | None:
        """A thread that is off in a warp with threads that are on, and how many such there are; None if none is."""
        mask = np.broadcast_to(mask, (self.threads,))
        row = self.order.row
        here = np.bincount(row[mask], minlength=self._warps)
        away = np.flatnonzero(~mask & (here[row] > 0))
        return (int(away[0]), away.shape[0]) if away.size else None

    def short_warp(self, mask: Array | None) -> tuple[int, int] | None:
        """A thread that is off, or missing in a block's last warp (then the first there), and how many lanes are."""
        everyone = np.broadcast_to(np.ones(1, np.bool_) if mask is None else mask, (self.threads,))
        row = self.order.row
        here = np.bincount(row[everyone], minlength=self._warps)
        short = (here > 0) & (here < self._warp_size)
        if not short.any():
            return None
        concerned = np.flatnonzero(short[row])
        away = concerned[~everyone[concerned]]
        return int(away[0] if away.size else concerned[0]), int((self._warp_size - here[short]).sum())

    def parted(self, some: Array, others: Array, threads: int) -> None:
        """Threads part at a branch: counts the warps that have threads on both sides."""
        turns = threads // self.threads
        both = [np.broadcast_to(each, (threads,)).reshape(self.threads, turns) for each in (some, others)]
        sides: list[Array] = []
        for side in both:
            marks = np.zeros((self._warps, turns), np.bool_)
            np.logical_or.at(marks, self.order.row, side)
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
            found = (self._warps * turns, threads, 0) if on else (0, 0, 0)
        else:
            row = self.order.row
            rows = row if turns == 1 else np.repeat(row, turns) * turns + np.tile(np.arange(turns), self.threads)
            count = self._warps * turns
            here = np.bincount(rows[mask], minlength=count)
            whole = np.bincount(rows, minlength=count)
            some = here > 0
            found = (int(some.sum()), int(here.sum()), int((some & (here < whole)).sum()))
        self._last_mask = (mask, threads, found[0], found[1], found[2])
        return found

    # -------------------------------------------------------------------------------------------------------- accesses
    def access(self, key: Any, made: Access) -> None:
        """Accesses to a buffer by one instruction, `key`; a store's data isn't there yet."""
        buffer, kind, start, lanes = made.buffer, made.kind, made.start, made.lanes
        count = self.threads * made.turns if lanes is None else lanes.shape[0]
        if count == 0:
            return
        if start.shape[0] != count:
            start = np.broadcast_to(start, (count,))
        if buffer.space != "local":
            row = self._counted(key, "atomic" if kind == "cas" else kind, buffer, made.size)
            add_cost(row, self.order, buffer, start, lanes, made.turns, whole=made.whole)
        if buffer.read_only and kind == "load" and made.reach is None:
            return
        found = Accesses(self.site(key), kind, buffer, start, made.size, self._clock(lanes, made.turns), made.new)
        if made.reach is None:
            self._check(found)
            return
        for rows, first, some in made.reach.inside(buffer, start):
            self._check(found.part(rows, first, some))
        for rows, first in made.reach.past(buffer, start):
            past = found.part(rows, first, 1)
            self._find("uninitialised-read", "reads, past its end,", past, 0, rows.shape[0])

    def _check(self, made: Accesses) -> None:
        """Look for what is wrong with accesses, and note them."""
        buffer, kind = made.buffer, made.kind
        if buffer.read_only and kind == "load":
            return
        early = self._early(made)
        if early is not None:
            kept = np.flatnonzero(~early)
            if not kept.size:
                return
            made = made.take(kept)
        shadow = buffer.shadow
        if shadow is None:
            shadow = buffer.shadow = Shadow(buffer.data.size, self._per_block, self._warp_size)
        where = shadow.where(made.start, made.size)
        if buffer.read_only:
            self._find("read-only-write", "writes to", made, 0, made.start.shape[0])
        if buffer.fresh and not buffer.packed and kind != "store":
            unwritten = shadow.unwritten(where)
            if unwritten.any():
                first, many = int(unwritten.argmax()), int(np.count_nonzero(unwritten))
                self._find("uninitialised-read", "reads what nobody wrote in", made, first, many)
        same = comparison(buffer.data, made.start, made.size, made.new)
        for conflict in shadow.access(kind, where, made.clock, made.site, same):
            self._conflict(conflict, made)

    def _clock(self, lanes: Array | None, turns: int) -> Clock:
        who = lanes if lanes is not None else (np.arange(self.threads * turns) if turns > 1 else None)
        return self.order.clock(who if who is None or turns == 1 else who // turns)

    def arrived(self, key: Any, wait: Any, buffer: Tracked, start: Array, size: int, lanes: Array) -> None:
        """Asynchronous copies have ended at the wait of their threads: as if these threads wrote now."""
        site = self.site(key)
        self._awaited[site] = self.site(wait)
        if buffer.shadow is not None:
            where = buffer.shadow.where(start, size)
            buffer.shadow.note("store", where, self.order.clock(lanes), site)

    def _counted(self, key: Any, kind: str, buffer: Tracked, size: int) -> AccessCounters:
        """The counters of accesses of `size` bytes at a place."""
        row = self._rows.get((key, buffer.space, kind, size))
        if row is None:
            row = AccessCounters(self._sites[self.site(key)], kind, buffer.space, buffer.name, size)
            self._rows[key, buffer.space, kind, size] = row
        return row

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
        made: Accesses,
        first: int,
        count: int,
        *,
        more: str = "",
        other: Party | None = None,
        dedupe: int = -1,
    ) -> None:
        """Add a finding about `count` of these accesses, of which `first` is one."""
        buffer, site = made.buffer, made.site
        byte = int(made.start[first]) % (buffer.copy or buffer.data.size)
        index = byte // buffer.item if buffer.item else None
        place = f"element {index} (byte {byte})" if index is not None else f"byte {byte}"
        block, thread = self._who(int(made.clock.thread[first]))
        name = buffer.name if buffer.name.endswith("memory") else f"{buffer.name} in {buffer.space} memory"
        kind = "atomic" if made.kind == "cas" else made.kind
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

    def _conflict(self, found: Conflict, made: Accesses) -> None:
        code, kind = "race", made.kind
        if kind == found.kind == "store":
            code = "same-value-write" if found.same else "double-write"
        block, thread = (None, None) if found.other == NOBODY else self._who(found.other)
        who = "another thread" if thread is not None else _SEVERAL
        wait = self._awaited.get(found.site) if found.kind == "store" else None
        done = "copies" if wait is not None else _VERBS[found.kind]
        done = done if thread is not None else done.removesuffix("s")
        more = f", which {who} {done} too" if kind == found.kind and wait is None else f", which {who} {done}"
        if found.same:
            more += " (the same value)"
        more += (
            ", with no barrier between them"
            if block is None or block == self._who(int(made.clock.thread[found.index]))[0]
            else (", and nothing orders blocks")
        )
        if wait is not None:
            more = more.replace("between them", f"after the copying thread's wait ({self._place(wait)})")
        other = "atomic" if found.kind == "cas" else found.kind
        party = Party(self._sites[found.site], other, block, thread)
        self._find(code, _VERBS[kind], made, found.index, found.count, more=more, other=party, dedupe=found.site)

    def _place(self, site: int) -> str:
        """A place in the code in a few words."""
        found = self._sites[site]
        return f"{found.op} in line {found.line}" if found.line else found.text or found.op

    def _early(self, made: Accesses) -> Array | None:
        """Which accesses meet an asynchronous copy in flight: one that writes there, or reads what they write."""
        buffer, kind, start = made.buffer, made.kind, made.start
        found: Array | None = None
        flights = ((buffer.arriving, "writes"), (buffer.leaving if kind != "load" else None, "reads"))
        for flight, doing in flights:
            hit = flight.hit(start, made.size) if flight is not None else None
            if flight is None or hit is None:
                continue
            found = hit if found is None else found | hit
            first = int(hit.argmax())
            copy, row = flight.at(int(start[first]), made.size)
            reason = copy.reason(row, lambda key: self._place(self.site(key)))
            party = Party(self._sites[self.site(copy.key)], "copy", *self._who(int(self.order.thread[copy.lanes[row]])))
            more = f", which an asynchronous copy still {doing}: {reason}"
            many, dedupe = int(hit.sum()), self.site(copy.key)
            self._find("copy-in-flight", _VERBS[kind], made, first, many, more=more, other=party, dedupe=dedupe)
        return found

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
        needed = buffer.needed or buffer.end or buffer.data.size
        shadow = buffer.shadow or Shadow(buffer.data.size, self._per_block, self._warp_size)
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
