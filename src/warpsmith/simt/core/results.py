"""What a simulated launch gives beside its outputs: findings (what is wrong) and counters (what it costs).

Plain data, the same for IR and for PTX.  `str(finding)` says all of it in words, `to_dict` is for reports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from warpsmith.arrays import Dim3

__all__ = ["CODES", "SECTOR", "WARP", "AccessCounters", "Counters", "Finding", "LaunchResult", "Party", "Site", "words"]


SECTOR = 32
"""Bytes of a sector, in which global memory moves."""

WARP = 32
"""Threads of a warp in PTX, by definition (PTX ISA, `WARP_SZ`), and what its barriers of a part of a block and its
matrix instructions count by.  IR takes the width of its device.
"""

CODES: Mapping[str, str] = {
    "out-of-bounds": "an access outside of its buffer",
    "misaligned": "an access that isn't aligned to its width, or as the op claims",
    "uninitialised-read": "a read of what nobody wrote: an output's memory, shared or local memory",
    "unwritten-output": "an element of an output that no thread wrote",
    "race": "a read and a write of one element by two threads, with nothing that orders them",
    "double-write": "two threads write different values to one element, without atomics, with nothing that orders them",
    "same-value-write": "the same, but both write the same value",
    "copy-in-flight": "an access of what an asynchronous copy still writes, or a write to what one still reads",
    "barrier-divergence": "a barrier that some threads of a block reach and others don't",
    "barrier-members": "a barrier of some of a block's threads that others may reach too, or that no block can have",
    "shuffle-divergence": "a shuffle or vote that some threads of a warp don't take part in",
    "matrix-divergence": "ldmatrix, stmatrix or mma.sync that some lanes of a warp don't run",
    "shuffle-members": "a shuffle or vote whose member mask leaves out a thread that runs it",
    "operand-divergence": "an operand of a tile primitive of which threads that do it together have different values",
    "read-only-write": "a write to an input",
    "shared-limit": "more shared memory than a block may have",
    "launch-limit": "a grid or block that the device can't launch",
}
"""Each finding's code, and what it means."""


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the code: an op of the IR or an instruction of PTX.

    `text` is the op on one line; `line` its line in the PTX, 0 in IR.  `instructions` are the HLO instructions that it
    came from, `file` and `file_line` where the first is written.
    """

    op: str
    text: str = ""
    line: int = 0
    instructions: tuple[str, ...] = ()
    file: str = ""
    file_line: int = 0

    def __str__(self) -> str:
        text = f"line {self.line}: {self.text or self.op}" if self.line else self.text or self.op
        return text + self.origin

    @property
    def origin(self) -> str:
        """Where it came from, in words, or nothing."""
        names = f"HLO instruction {', '.join(self.instructions)}" if self.instructions else ""
        place = f"{self.file or 'line'}:{self.file_line}" if self.file_line else ""
        found = f"{names} ({place})" if names and place else names or place
        return f"; from {found}" if found else ""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "op": self.op,
            "text": self.text,
            "line": self.line,
            "instructions": list(self.instructions),
            "file": self.file,
            "file_line": self.file_line,
        }


@dataclass(frozen=True, slots=True)
class Party:
    """The other side of a race: what it did, where, by which thread (None where several did)."""

    site: Site
    kind: str
    block: Dim3 | None
    thread: Dim3 | None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a kernel may not do, the first time that a site did it.

    `code` is one of `CODES`, `message` says what in a sentence.  `block` and `thread` are those of the first thread;
    `byte` counts from the start of `buffer` (in shared memory of the block's own copy), `index` in elements where their
    size is known.  `count` is how many threads (of an unwritten output: elements) were seen at it.
    """

    code: str
    message: str
    site: Site | None = None
    kind: str = ""
    block: Dim3 | None = None
    thread: Dim3 | None = None
    space: str = ""
    buffer: str = ""
    byte: int | None = None
    index: int | None = None
    count: int = 1
    other: Party | None = None

    def __str__(self) -> str:
        lines = [f"{self.code}: {self.message}"]
        if self.site is not None:
            lines.append(f"  at {self.site}")
        if self.block is not None and self.thread is not None:
            more = f" (and {self.count - 1} more)" if self.count > 1 else ""
            lines.append(f"  by block {words(self.block)}, thread {words(self.thread)}{more}")
        if self.other is not None:
            who = (
                f" by block {words(self.other.block)}, thread {words(self.other.thread)}"
                if self.other.block is not None and self.other.thread is not None
                else ""
            )
            lines.append(f"  against a {self.other.kind} at {self.other.site}{who}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """For JSON; `other` is the second party of a race."""
        other = self.other
        return {
            "code": self.code,
            "message": self.message,
            "site": None if self.site is None else self.site.to_dict(),
            "kind": self.kind,
            "block": self.block,
            "thread": self.thread,
            "space": self.space,
            "buffer": self.buffer,
            "byte": self.byte,
            "index": self.index,
            "count": self.count,
            "other": None
            if other is None
            else {"site": other.site.to_dict(), "kind": other.kind, "block": other.block, "thread": other.thread},
        }


def words(place: Dim3) -> str:
    """A block or thread: one number where the others are 0."""
    return str(place[0]) if place[1] == place[2] == 0 else str(place)


@dataclass(slots=True)
class AccessCounters:
    """What the accesses of one site to one space cost, summed over the blocks that ran.

    `bytes` is the width of one thread's access.  `warps` counts accesses by warps, `partial` those in which threads of
    the warp were masked off.  Global memory costs `sectors` of 32 bytes, of which `ideal_sectors` would have held the
    different bytes asked for; shared memory `wavefronts`, turns of its 32 banks, where `ideal_wavefronts` would do
    without conflicts.  Of atomics, `contention` is the most threads of one warp that met at an address, and `turns` the
    sum of each warp access's most.
    """

    site: Site
    kind: str
    space: str
    buffer: str
    bytes: int
    warps: int = 0
    threads: int = 0
    partial: int = 0
    sectors: int = 0
    ideal_sectors: int = 0
    wavefronts: int = 0
    ideal_wavefronts: int = 0
    contention: int = 0
    turns: int = 0

    @property
    def requested(self) -> int:
        """Bytes that threads asked for."""
        return self.threads * self.bytes

    @property
    def moved(self) -> int:
        """Bytes of global memory's sectors, or 128 a turn of shared memory's banks."""
        return SECTOR * self.sectors + 128 * self.wavefronts

    @property
    def conflicts(self) -> int:
        """Turns of the banks that conflicts added."""
        return self.wavefronts - self.ideal_wavefronts

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "site": self.site.to_dict(),
            "kind": self.kind,
            "space": self.space,
            "buffer": self.buffer,
            "bytes": self.bytes,
            "warps": self.warps,
            "threads": self.threads,
            "partial": self.partial,
            "requested": self.requested,
            "moved": self.moved,
            "sectors": self.sectors,
            "ideal_sectors": self.ideal_sectors,
            "wavefronts": self.wavefronts,
            "ideal_wavefronts": self.ideal_wavefronts,
            "contention": self.contention,
            "turns": self.turns,
        }


@dataclass(slots=True)
class Counters:
    """What one launch of a kernel cost.  Where `blocks_run` is less than `blocks`, a sample of the grid ran.

    `mix` counts instructions that warps issued, by class; `thread_instructions` those of threads.  `read_bytes` and
    `written_bytes` are the different sectors of global memory that were touched: the least that DRAM has to move.
    `matrix_flops` are floating point operations of the matrix units.  `registers` is None unless an assembler said it.
    """

    kernel: str
    stage: str
    grid: Dim3
    block: Dim3
    blocks: int
    blocks_run: int
    accesses: list[AccessCounters] = field(default_factory=list[AccessCounters])
    mix: dict[str, int] = field(default_factory=dict[str, int])
    thread_instructions: int = 0
    partial_instructions: int = 0
    divergent_branches: int = 0
    barriers: int = 0
    shuffles: int = 0
    matrix_flops: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    shared_bytes: int = 0
    registers: int | None = None

    def _sum(self, name: str, space: str = "") -> int:
        return sum(getattr(a, name) for a in self.accesses if space in ("", a.space))

    @property
    def sampled(self) -> bool:
        """Whether only some blocks ran."""
        return self.blocks_run < self.blocks

    @property
    def warp_instructions(self) -> int:
        """Instructions, one a warp."""
        return sum(self.mix.values())

    @property
    def divergence(self) -> float:
        """The share of warps' instructions that were issued with threads masked off."""
        return self.partial_instructions / max(1, self.warp_instructions)

    @property
    def atomics(self) -> int:
        """Atomic accesses by warps."""
        return sum(a.warps for a in self.accesses if a.kind == "atomic")

    @property
    def sectors(self) -> int:
        """32-byte sectors of global memory that all accesses touch."""
        return self._sum("sectors")

    @property
    def ideal_sectors(self) -> int:
        """Sectors that would hold the different bytes that they ask for."""
        return self._sum("ideal_sectors")

    @property
    def moved_bytes(self) -> int:
        """Bytes between the cores and L2."""
        return SECTOR * self.sectors

    @property
    def requested_bytes(self) -> int:
        """Bytes of global memory that threads asked for."""
        return self._sum("requested", "global")

    @property
    def reuse(self) -> float:
        """How often a sector is moved between the cores and L2, on average: 1.0 is never twice."""
        least = self.read_bytes + self.written_bytes
        return self.moved_bytes / least if least else 1.0

    @property
    def wavefronts(self) -> int:
        """Turns that accesses of shared memory take."""
        return self._sum("wavefronts")

    @property
    def conflicts(self) -> int:
        """Turns beyond the least that they need."""
        return self._sum("conflicts")

    @property
    def widths(self) -> dict[tuple[str, str, int], int]:
        """Warps' accesses by (load, store or atomic; space; bits of a thread)."""
        found: Counter[tuple[str, str, int]] = Counter()
        for access in self.accesses:
            found[access.kind, access.space, access.bytes * 8] += access.warps
        return dict(found)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "kernel": self.kernel,
            "stage": self.stage,
            "grid": self.grid,
            "block": self.block,
            "blocks": self.blocks,
            "blocks_run": self.blocks_run,
            "warp_instructions": self.warp_instructions,
            "thread_instructions": self.thread_instructions,
            "partial_instructions": self.partial_instructions,
            "mix": dict(self.mix),
            "divergent_branches": self.divergent_branches,
            "barriers": self.barriers,
            "shuffles": self.shuffles,
            "matrix_flops": self.matrix_flops,
            "atomics": self.atomics,
            "sectors": self.sectors,
            "ideal_sectors": self.ideal_sectors,
            "requested_bytes": self.requested_bytes,
            "moved_bytes": self.moved_bytes,
            "read_bytes": self.read_bytes,
            "written_bytes": self.written_bytes,
            "reuse": self.reuse,
            "wavefronts": self.wavefronts,
            "conflicts": self.conflicts,
            "widths": [{"kind": k, "space": s, "bits": b, "warps": n} for (k, s, b), n in sorted(self.widths.items())],
            "shared_bytes": self.shared_bytes,
            "registers": self.registers,
            "accesses": [a.to_dict() for a in self.accesses],
        }


@dataclass(slots=True)
class LaunchResult:
    """What watching one launch gave; no counters where a check ended it."""

    counters: Counters | None
    findings: list[Finding] = field(default_factory=list[Finding])
