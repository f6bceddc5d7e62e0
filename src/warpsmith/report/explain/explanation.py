"""Why a module's kernels are as they are, and what they cost: `explain` gives it as data, `str()` of that as text.

    HLO -> schedule -> for each kernel: choice and refusals, launch, maps in words, bytes, sectors, banks, registers,
    occupancy, roofline, advice; for each host step its reason

In: a module and a target.  Out: `Explanation`.  Nothing is timed: times are those of a model (`roofline`), counts those
of the simulator, so two calls give the same.  `text` prints, `advice` judges.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from warpsmith.backends import backend_of
from warpsmith.compiler.lowering import LoweredKernel, program
from warpsmith.devices import Device
from warpsmith.devices.occupancy import Occupancy, occupancy
from warpsmith.emitters import EmittedKernel
from warpsmith.emitters.choose import refusals
from warpsmith.emitters.kernel.index_width import index_reason
from warpsmith.errors import UsageError
from warpsmith.hlo.module import HloInstruction, HloModule
from warpsmith.records import Record, plain, preformatted
from warpsmith.report.explain.advice import advice, largest_cost
from warpsmith.report.explain.facts import HostStep, KernelExplanation, Traffic
from warpsmith.report.explain.maps import Access, access_of, dependences
from warpsmith.report.explain.measure import Measured, least_bytes, measure
from warpsmith.report.explain.picture import kernels_svg
from warpsmith.report.explain.roofline import roofline, work_of
from warpsmith.report.explain.text import WIDTH, explanation_text
from warpsmith.simt.core.results import AccessCounters

__all__ = ["Explanation", "HostStep", "KernelExplanation", "Traffic", "explain"]


@dataclass(frozen=True, slots=True)
class Explanation(Record):
    """A module on a target.  `str()` is what `warpsmith explain` prints, a notebook shows that with the pictures."""

    module: str
    target: str
    title: str
    numerics: str
    kernels: tuple[KernelExplanation, ...]
    host: tuple[HostStep, ...]

    @property
    def heading(self) -> str:
        """The first line: module, target and numerics."""
        return f"{self.module} for {self.target} ({self.title}), numerics {self.numerics}"

    def text(self, width: int = WIDTH) -> str:
        """All of it for people, in lines of at most `width` characters."""
        return explanation_text(self.heading, self.kernels, self.host, width)

    def svg(self) -> str:
        """Pictures of the kernels.  UsageError for a module without kernels."""
        if not self.kernels:
            raise UsageError(f"module '{self.module}' has no kernel to draw")
        return kernels_svg(f"{self.module} for {self.target}", self.kernels)

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return preformatted(str(self)) + (self.svg() if self.kernels else "")

    def to_dict(self) -> dict[str, Any]:
        """Plain data: an entry of `fusions` for each fusion, those that are one kernel with the same facts."""
        return plain(
            {
                "module": self.module,
                "target": self.target,
                "device": self.title,
                "numerics": self.numerics,
                "fusions": [{**each.to_dict(), "name": name} for each in self.kernels for name in each.fusions],
                "host": [asdict(each) for each in self.host],
            }
        )


def explain(
    module: HloModule, target: str = "sm_90", *, numerics: str = "strict", deterministic: bool = False
) -> Explanation:
    """Explain each kernel of `module` on `target`: "cpu", "sm_80", "sm_90", "sm_100", or a device's name.

    Nothing is timed and no GPU is needed: counts are the simulator's, times (in microseconds) a model's, sizes bytes.
    `numerics` and `deterministic` are as in `compile`.  Raises UnknownTarget, InvalidHlo, UnsupportedFusion (an op that
    no emitter takes) and LoweringError.
    """
    whole = program(module, target, numerics=numerics, deterministic=deterministic)
    chosen = whole.device
    if chosen.is_gpu and not chosen.is_nvidia:
        raise UsageError(
            f"what {chosen.title} pays for a kernel isn't known: costs are counted on PTX",
            help="explain it for sm_90, or read it: warpsmith compile --stage asm",
        )
    kernels = [
        _kernel(lowered, alike, chosen) for lowered, alike in zip(whole.lowered(), whole.fusions.values(), strict=True)
    ]
    host = [
        HostStep(step.instruction.name, step.instruction.opcode, step.reason)
        for step in whole.schedule.all_steps()
        if step.kind == "host"
    ]
    return Explanation(module.name, target, chosen.title, numerics, tuple(kernels), tuple(host))


def _kernel(lowered: LoweredKernel, alike: Sequence[HloInstruction], target: Device) -> KernelExplanation:
    kernel = lowered.kernel
    analysis = kernel.origin.analysis
    measured = Measured(None, None, {})
    if target.is_gpu:
        (ptx,) = backend_of(target).load([lowered])
        measured = measure(lowered, ptx, target)
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
        lanes=0 if target.is_gpu else _lanes(lowered.code),
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
