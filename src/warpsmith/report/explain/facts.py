"""What is said of one kernel: plain facts, which text, pictures and advice are made of.

In: nothing.  Out: `KernelExplanation` and its parts, as `explanation` fills them in.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from warpsmith.arrays import Dim3
from warpsmith.backends.nvptx.ptxas import KernelResources
from warpsmith.devices.occupancy import Occupancy
from warpsmith.emitters import EmittedKernel
from warpsmith.fusion.analysis import Refusal
from warpsmith.report.explain.maps import Access, Dependence
from warpsmith.report.explain.roofline import Roofline, Work
from warpsmith.simt.core.results import Counters

__all__ = ["Cost", "HostStep", "KernelExplanation", "Traffic"]


@dataclass(frozen=True, slots=True)
class Cost:
    """The dearest thing of a kernel: what, in words, and the HLO that it comes from (line 0 where unknown)."""

    what: str
    instruction: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """Accesses of one kind to one buffer, over the whole grid.

    `bits` is a thread's width.  Global memory: `sectors` of 32 bytes against the fewest that hold what was asked for;
    shared memory: `wavefronts`, turns of its banks, against those without conflicts.
    """

    kind: str
    space: str
    buffer: str
    bits: int
    warps: int
    sectors: int
    ideal_sectors: int
    wavefronts: int
    ideal_wavefronts: int
    contention: int

    @property
    def sectors_per_access(self) -> float:
        """32-byte sectors that a warp's access touches, on average."""
        return self.sectors / max(1, self.warps)

    @property
    def conflicts(self) -> int:
        """Turns of the banks of shared memory beyond the least that the accesses need."""
        return self.wavefronts - self.ideal_wavefronts


@dataclass(frozen=True, slots=True)
class HostStep:
    """A step that no kernel does, and why."""

    name: str
    opcode: str
    reason: str


@dataclass(frozen=True, slots=True)
class KernelExplanation:
    """One kernel.  `fusions` are the names of all that run it, the first of which it is explained by.

    `accesses` are maps from threads to elements of arrays, `other_maps` (title and text) those to anything else, and
    `dependences` what an element of a result needs of each input.  `in_place`: an output, and the input whose buffer
    it shares.

    `bytes_read` and `bytes_written` are the least that any kernel must move, `bytes_moved` what this one moves between
    its cores and L2 (None where that is unknown), `memory_bytes` the different sectors among it.  On the CPU `lanes` is
    the width of its vectors in elements, `tables` the bytes of its lookup tables.
    """

    name: str
    fusions: tuple[str, ...]
    emitter: str
    variant: str
    hero: str
    refused: tuple[Refusal, ...]
    target: str
    is_gpu: bool
    grid: Dim3
    block: Dim3
    unroll: int
    chunk: int
    shared_bytes: int
    index_bits: int
    index_reason: str
    accesses: tuple[Access, ...]
    other_maps: tuple[tuple[str, str], ...]
    dependences: tuple[Dependence, ...]
    in_place: tuple[tuple[str, str], ...]
    bytes_read: int
    bytes_written: int
    bytes_moved: int | None
    memory_bytes: int | None
    blocks_run: int
    traffic: tuple[Traffic, ...]
    counters: Counters | None
    resources: KernelResources | None
    occupancy: Occupancy | None
    waves: float | None
    work: Work
    roofline: Roofline
    largest: Cost | None
    advice: tuple[str, ...]
    notes: tuple[str, ...]
    lanes: int = 0
    tables: tuple[int, ...] = ()
    streams: bool = False
    kernel: EmittedKernel = field(repr=False, kw_only=True)

    @property
    def bytes_least(self) -> int:
        """Bytes that the kernel must at least move: each input and output once."""
        return self.bytes_read + self.bytes_written

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as `warpsmith explain --json` writes for each fusion."""
        return {
            "name": self.name,
            "emitter": self.emitter,
            "variant": self.variant,
            "hero": self.hero,
            "refused": [{"emitter": r.emitter, "reason": r.reason, "numbers": dict(r.numbers)} for r in self.refused],
            "grid": list(self.grid),
            "block": list(self.block),
            "unroll": self.unroll,
            "chunk": self.chunk,
            "shared_bytes": self.shared_bytes,
            "index_bits": self.index_bits,
            "index_reason": self.index_reason,
            "maps": [
                *({"kind": "thread", **asdict(each)} for each in self.accesses),
                *({"kind": "other", "title": title, "map": text} for title, text in self.other_maps),
                *({"kind": "dependence", **asdict(each)} for each in self.dependences),
            ],
            "in_place": [list(pair) for pair in self.in_place],
            "bytes_least": self.bytes_least,
            "bytes_read": self.bytes_read,
            "bytes_written": self.bytes_written,
            "bytes_moved": self.bytes_least if self.bytes_moved is None else self.bytes_moved,
            "bytes_moved_measured": self.bytes_moved is not None,
            "memory_bytes": self.memory_bytes,
            "blocks_run": self.blocks_run,
            "traffic": [asdict(each) for each in self.traffic],
            "counters": None if self.counters is None else self.counters.to_dict(),
            "registers": None if self.resources is None else self.resources.registers,
            "spills": None if self.resources is None else self.resources.spill_stores + self.resources.spill_loads,
            "occupancy": None if self.occupancy is None else asdict(self.occupancy),
            "waves": self.waves,
            "operations": self.work.operations,
            "limits": asdict(self.roofline),
            "largest": None if self.largest is None else asdict(self.largest),
            "advice": list(self.advice),
            "notes": list(self.notes),
            "lanes": self.lanes,
            "tables": list(self.tables),
            "streams": self.streams,
        }
