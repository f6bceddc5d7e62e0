"""Why a module's kernels are as they are, and what they cost: `explain` gives it as data, `str()` of that as text.

    HLO -> schedule -> for each kernel: choice and refusals, launch, maps in words, bytes, sectors, banks, registers,
    occupancy, roofline, advice; for each host step its reason

In: a module and a target.  Out: `Explanation`.  Nothing is timed: times are those of a model (`roofline`), counts those
of the simulator, so two calls give the same.  `explain_text` prints, `explain_advice` judges.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from warpsmith.arrays import Dim3
from warpsmith.backends.nvptx.codegen import ptx_from_llvm
from warpsmith.backends.nvptx.ptxas import KernelResources
from warpsmith.compiler.driver import distinct_fusions, scheduled
from warpsmith.compiler.lowering import LoweredKernel, architecture, lower_fusion
from warpsmith.devices import Device, device
from warpsmith.devices.occupancy import Occupancy, occupancy
from warpsmith.emitters import EmittedKernel
from warpsmith.emitters.choose import refusals
from warpsmith.emitters.kernel.index_width import index_reason
from warpsmith.fusion.analysis import Refusal
from warpsmith.hlo.module import HloInstruction, HloModule
from warpsmith.numerics.modes import mode
from warpsmith.report.explain.advice import Cost, advice, largest_cost
from warpsmith.report.explain.maps import Access, Dependence, access_of, dependences
from warpsmith.report.explain.measure import Measured, least_bytes, measure
from warpsmith.report.explain.roofline import Roofline, Work, roofline, work_of
from warpsmith.simt.core.results import AccessCounters, Counters

__all__ = ["Explanation", "HostStep", "KernelExplanation", "Traffic", "explain"]


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

    def to_json(self) -> dict[str, Any]:
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
            "counters": None if self.counters is None else self.counters.as_json(),
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


@dataclass(frozen=True, slots=True)
class Explanation:
    """A module on a target.  `str()` is what `warpsmith explain` prints."""

    module: str
    target: str
    title: str
    numerics: str
    kernels: tuple[KernelExplanation, ...]
    host: tuple[HostStep, ...]

    def __str__(self) -> str:
        from warpsmith.report.explain.text import explanation_text  # text is asked for only by people

        return explanation_text(self)

    def to_json(self) -> dict[str, Any]:
        """Plain data: an entry of `fusions` for each fusion, those that are one kernel with the same facts."""
        return {
            "module": self.module,
            "target": self.target,
            "device": self.title,
            "numerics": self.numerics,
            "fusions": [{**each.to_json(), "name": name} for each in self.kernels for name in each.fusions],
            "host": [asdict(each) for each in self.host],
        }


def explain(
    module: HloModule, target: str = "sm_90", *, numerics: str = "strict", deterministic: bool = False
) -> Explanation:
    """Explain each kernel of `module` on `target`: "cpu", "sm_80", "sm_90", "sm_100", or a device's name.

    `deterministic` is as in `compile`.  Raises UnknownTarget, InvalidHlo, UnsupportedFusion (an op that no emitter
    takes) and LoweringError.
    """
    mode(numerics)
    chosen = device(target)
    _, schedule = scheduled(module, chosen, deterministic=deterministic)
    kernels = [
        _kernel(lower_fusion(fusion, chosen, numerics=numerics), alike, chosen)
        for fusion, alike in distinct_fusions(schedule.kernel_fusions()).items()
    ]
    host = [
        HostStep(step.instruction.name, step.instruction.opcode, step.reason)
        for step in schedule.all_steps()
        if step.kind == "host"
    ]
    return Explanation(module.name, target, chosen.title, numerics, tuple(kernels), tuple(host))


def _kernel(lowered: LoweredKernel, alike: Sequence[HloInstruction], target: Device) -> KernelExplanation:
    kernel = lowered.emitted
    analysis = kernel.origin.analysis
    measured = Measured(None, None, {})
    if target.is_gpu:
        measured = measure(lowered, ptx_from_llvm(lowered.llvm, architecture(target)), target)
    counters = measured.counters
    traffic = _traffic(measured)
    read, written = least_bytes(kernel)
    moved = None if counters is None else measured.scaled(counters.moved_bytes)
    memory = _memory_bytes(kernel, measured, read + written)
    work = work_of(analysis.instructions)
    issued = None if counters is None else measured.scaled(counters.warp_instructions)
    times = roofline(work, read + written if memory is None else memory, issued, target)
    held = _occupancy(kernel, measured, target)
    waves = None if held is None else kernel.launch.workgroups / max(1, held.blocks * target.core_count)
    accesses = _accesses(kernel, target)
    facts = KernelExplanation(
        name=alike[0].name,
        fusions=tuple(each.name for each in alike),
        emitter=kernel.origin.emitter,
        variant=kernel.origin.variant,
        hero=_hero(kernel),
        refused=refusals(kernel),
        target=target.name,
        is_gpu=target.is_gpu,
        grid=kernel.launch.grid,
        block=kernel.launch.block,
        unroll=kernel.launch.unroll,
        chunk=kernel.launch.chunk,
        shared_bytes=kernel.launch.shared_bytes,
        index_bits=kernel.launch.index_bits,
        index_reason=index_reason(analysis),
        accesses=accesses,
        other_maps=tuple(pair for pair in kernel.origin.maps if pair[1] not in {each.map for each in accesses}),
        in_place=_in_place(kernel),
        dependences=tuple(dependences(analysis.body, analysis.roots)),
        bytes_read=read,
        bytes_written=written,
        bytes_moved=moved,
        memory_bytes=memory,
        blocks_run=0 if counters is None else counters.blocks_run,
        traffic=traffic,
        counters=counters,
        resources=measured.resources,
        occupancy=held,
        waves=waves,
        work=work,
        roofline=times,
        largest=largest_cost(alike[0], measured, work, times),
        advice=(),
        notes=(*kernel.origin.notes, *measured.notes),
        lanes=0 if target.is_gpu else _lanes(lowered.llvm),
        tables=lowered.table_bytes,
        streams=lowered.streams,
        kernel=kernel,
    )
    return replace(facts, advice=tuple(advice(facts, target)))


def _hero(kernel: EmittedKernel) -> str:
    """The op that shapes the kernel, as HLO: the first hero of the opcode that the emitter is named for."""
    heroes = kernel.origin.analysis.heroes
    wanted = kernel.origin.emitter.replace("_", "-")
    wanted = {"reduction": "reduce", "input-slices": "slice"}.get(wanted, wanted)
    found = next((each for each in (*heroes, *kernel.origin.analysis.updates) if each.opcode == wanted), heroes[0])
    return f"{found.name} = {found.shape} {found.opcode}"


def _accesses(kernel: EmittedKernel, target: Device) -> tuple[Access, ...]:
    outputs = [each.name for each in kernel.outputs]
    by_name = {each.name: each for each in kernel.origin.analysis.body}
    found: Mapping[tuple[str, str], Access | None] = {
        (title, text): access_of(title, text, by_name[name], outputs, target.warp_size)
        for title, text in kernel.origin.maps
        if (name := title.partition(" -> ")[2]) in by_name
    }
    return tuple(each for each in found.values() if each is not None)


def _in_place(kernel: EmittedKernel) -> tuple[tuple[str, str], ...]:
    inputs = [each.name for each in kernel.inputs]
    outputs = [each.name for each in kernel.outputs]
    return tuple((outputs[output], inputs[source]) for output, source in kernel.aliases)


def _traffic(measured: Measured) -> tuple[Traffic, ...]:
    """The counters of all sites that do the same to one buffer, together."""
    if measured.counters is None:
        return ()
    groups: dict[tuple[str, str, str, int], list[AccessCounters]] = {}
    for each in measured.counters.accesses:
        groups.setdefault((each.kind, each.space, each.buffer, each.bytes * 8), []).append(each)
    return tuple(
        Traffic(
            *key,
            warps=measured.scaled(sum(each.warps for each in sites)),
            sectors=measured.scaled(sum(each.sectors for each in sites)),
            ideal_sectors=measured.scaled(sum(each.ideal_sectors for each in sites)),
            wavefronts=measured.scaled(sum(each.wavefronts for each in sites)),
            ideal_wavefronts=measured.scaled(sum(each.ideal_wavefronts for each in sites)),
            contention=max(each.contention for each in sites),
        )
        for key, sites in groups.items()
    )


def _memory_bytes(kernel: EmittedKernel, measured: Measured, least: int) -> int | None:
    """Bytes that DRAM has to move: the different sectors that a launch touches.

    Blocks that weren't run may touch the sectors of those that were: no more is assumed than whole buffers, or the
    least.
    """
    counters = measured.counters
    if counters is None:
        return None
    touched = counters.read_bytes + counters.written_bytes
    if not counters.sampled:
        return touched
    whole = sum(-(-each.byte_size // 32) * 32 for each in kernel.arguments)
    return min(measured.scaled(touched), max(whole, least))


def _occupancy(kernel: EmittedKernel, measured: Measured, target: Device) -> Occupancy | None:
    if not target.is_gpu:
        return None
    registers = measured.resources.registers if measured.resources is not None else 0
    return occupancy(target, kernel.launch.threads, registers=registers, shared=kernel.launch.shared_bytes)


_VECTOR = re.compile(r"<(\d+) x (?:float|double|half|bfloat|i\d+)>")


def _lanes(llvm: str) -> int:
    """The widest vector that the kernel's LLVM IR computes with; 1 where it has none."""
    return max((int(lanes) for lanes in _VECTOR.findall(llvm)), default=1)
