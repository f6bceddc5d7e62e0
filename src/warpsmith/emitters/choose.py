"""The choice of an emitter, and `emit`, which applies it.

In: a fusion instruction and a device.  Out: a `Kernel`.  A new emitter is one line in `_EMITTERS` for each
machine.  Where the emitter that the rules prefer refuses, the loop emitter takes the fusion and the refusal says so; a
sort, which no emitter takes, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from warpsmith.devices import Device
from warpsmith.emitters.cpu import concatenate as cpu_concatenate
from warpsmith.emitters.cpu import dynamic_update_slice as cpu_dynamic_update_slice
from warpsmith.emitters.cpu import input_slices as cpu_input_slices
from warpsmith.emitters.cpu import loop as cpu_loop
from warpsmith.emitters.cpu import reduction as cpu_reduction
from warpsmith.emitters.cpu import scatter as cpu_scatter
from warpsmith.emitters.cpu import transpose as cpu_transpose
from warpsmith.emitters.gpu import concatenate as gpu_concatenate
from warpsmith.emitters.gpu import dynamic_update_slice as gpu_dynamic_update_slice
from warpsmith.emitters.gpu import input_slices as gpu_input_slices
from warpsmith.emitters.gpu import loop as gpu_loop
from warpsmith.emitters.gpu import reduction as gpu_reduction
from warpsmith.emitters.gpu import scatter as gpu_scatter
from warpsmith.emitters.gpu import transpose as gpu_transpose
from warpsmith.emitters.kernel.origin import EmittedKernel
from warpsmith.errors import UnsupportedFusion, UsageError
from warpsmith.fusion.analysis import FusionAnalysis, Refusal, analyze, later_rules
from warpsmith.fusion.reasons import Reason
from warpsmith.fusion.support import MOST_BUFFERS, has_many_buffers
from warpsmith.hlo.module import HloComputation, HloInstruction

__all__ = ["EMITTERS", "NUMERICS", "Choices", "choose", "emit", "refusals"]

NUMERICS = ("strict", "xla")

EMITTERS = ("reduction", "transpose", "input_slices", "scatter", "concatenate", "dynamic_update_slice", "loop")
"""In the order in which they are asked; the last one takes what the others don't."""


class Emitter(Protocol):
    """What `choose` asks of an emitter's module."""

    @property
    def NAME(self) -> str:
        """The emitter's name, as `Executable.kernels` and `explain` give it."""
        ...

    def matches(self, analysis: FusionAnalysis) -> Reason | str | None:
        """None when the emitter takes the fusion, else why not: a sentence, with its numbers where it compares some."""
        ...

    def emit(self, analysis: FusionAnalysis, *, numerics: str, name: str) -> EmittedKernel:
        """The kernel of a fusion for which `matches` gave no reason against it; `name` is its function's."""
        ...


_EMITTERS: Mapping[str, Mapping[str, Emitter]] = {
    "gpu": {
        "loop": gpu_loop,
        "concatenate": gpu_concatenate,
        "dynamic_update_slice": gpu_dynamic_update_slice,
        "input_slices": gpu_input_slices,
        "transpose": gpu_transpose,
        "reduction": gpu_reduction,
        "scatter": gpu_scatter,
    },
    "cpu": {
        "loop": cpu_loop,
        "concatenate": cpu_concatenate,
        "dynamic_update_slice": cpu_dynamic_update_slice,
        "input_slices": cpu_input_slices,
        "transpose": cpu_transpose,
        "reduction": cpu_reduction,
        "scatter": cpu_scatter,
    },
}
_NEVER_ELEMENTAL = ("scatter", "sort")


def choose(analysis: FusionAnalysis) -> tuple[Emitter, tuple[Refusal, ...]]:
    """The emitter for a fusion, and every one that was refused with its reason."""
    available = _EMITTERS["gpu" if analysis.device.is_gpu else "cpu"]
    refused = analysis.refused
    preferred = available.get(analysis.emitter)
    if preferred is not None:
        reason = preferred.matches(analysis)
        if reason is None:
            return preferred, refused
        refused = (*refused, Refusal.of(analysis.emitter, reason))
    else:
        where = "GPUs" if analysis.device.is_gpu else "CPUs"
        refused = (*refused, Refusal(analysis.emitter, f"there is no {analysis.emitter} emitter for {where} yet"))
    if analysis.emitter in _NEVER_ELEMENTAL:
        root = analysis.roots[0]
        raise UnsupportedFusion(
            f"no emitter takes '{root.opcode}' ('{root.name}') as the root of fusion '{analysis.name}': "
            f"{refused[-1].reason}",
            span=root.span,
            help=f"move '{root.opcode}' out of the fusion: it then runs as a step of its own",
        )
    return available["loop"], refused


class Choices:
    """What was chosen for fusions on one device: each is analysed once, whoever asks."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._made: dict[tuple[HloComputation, str], tuple[FusionAnalysis, Emitter, tuple[Refusal, ...]]] = {}

    def of(self, fusion: HloInstruction) -> tuple[FusionAnalysis, Emitter, tuple[Refusal, ...]]:
        """The analysis, the emitter, and every one that was refused.  UnsupportedFusion where none takes it."""
        body = fusion.attr("calls", HloComputation)
        found = self._made.get((body, fusion.name))
        if found is None:
            _check_buffers(fusion, self.device)
            analysis = analyze(body, self.device, fusion.name)
            found = self._made[body, fusion.name] = (analysis, *choose(analysis))
        return found

    def takes(self, fusion: HloInstruction) -> bool:
        """Whether an emitter takes a fusion."""
        try:
            self.of(fusion)
        except UnsupportedFusion:
            return False
        return True


def _check_buffers(fusion: HloInstruction, device: Device) -> None:
    if device.is_gpu and has_many_buffers(fusion):
        buffers = len(fusion.operands) + len(fusion.shape.leaves())
        raise UnsupportedFusion(
            f"fusion '{fusion.name}' has {buffers} inputs and outputs, and a GPU's kernel takes {MOST_BUFFERS} buffers",
            span=fusion.span,
            help="split it into fusions of fewer, or pass its operands as parts of one array",
        )


def emit(
    fusion: HloInstruction,
    device: Device,
    *,
    numerics: str = "strict",
    name: str = "main",
    choices: Choices | None = None,
) -> EmittedKernel:
    """The kernel of a fusion instruction on `device`; its entry function is called `name`.

    `numerics` is `strict` or `xla`; `choices` are those that were made before.  UnsupportedFusion for a fusion with an
    op that no emitter takes.
    """
    if numerics not in NUMERICS:
        raise UsageError(f"unknown numerics '{numerics}'", help=f"one of {', '.join(NUMERICS)}")
    body = fusion.attributes.get("calls")
    if fusion.opcode != "fusion" or not isinstance(body, HloComputation):
        raise UnsupportedFusion(f"'{fusion.name}' is no fusion", span=fusion.span)
    analysis, emitter, refused = (choices or Choices(device)).of(fusion)
    kernel = emitter.emit(analysis, numerics=numerics, name=name)
    return replace(kernel, origin=replace(kernel.origin, refused=refused))


def refusals(kernel: EmittedKernel) -> tuple[Refusal, ...]:
    """Why not each of the other emitters, in the order in which they are asked."""
    taken = kernel.origin.emitter
    known = {each.emitter: each for each in (*later_rules(kernel.origin.analysis), *kernel.origin.refused)}
    known["loop"] = Refusal("loop", f"it takes what no other emitter does, and {taken} takes this")
    return tuple(known[each] for each in EMITTERS if each != taken)
