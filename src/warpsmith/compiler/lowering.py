"""Lowering, in one place: from a module to its kernels, and from a fusion through a back end's passes.

In: a module, a device; or one fusion.  Out: `Program`, `LoweredKernel`.  Compiling, bisection, explanations and the
simulator all come here, so that what one of them says is true of the code that another makes.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Generator, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any, TypeAlias, TypeVar

from warpsmith.backends import backend_of
from warpsmith.backends.base import Backend, Hook, Keep, Lowered
from warpsmith.compiler.keys import kernel_key
from warpsmith.devices import Device, device
from warpsmith.emitters import EmittedKernel, emit
from warpsmith.emitters.choose import Choices
from warpsmith.emitters.kernel.origin import Fused
from warpsmith.fusion.support import KERNEL_OPS
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule
from warpsmith.hlo.opcodes import OPCODES
from warpsmith.hlo.verifier import verify_module
from warpsmith.hlo_passes.recomputation_splitter import split_recomputed
from warpsmith.hlo_passes.scatter_order import keep_order, keeps_order
from warpsmith.hlo_passes.tree_reduction import split_reductions
from warpsmith.hlo_passes.wrap import wrap
from warpsmith.numerics.modes import mode
from warpsmith.passes.support.edits import Edit, parse_edits
from warpsmith.schedule.schedule import Schedule, make_schedule

__all__ = ["LoweredKernel", "Program", "lower_fusion", "program"]

LoweredKernel: TypeAlias = Lowered[Fused]
T = TypeVar("T")

_UNUSUAL = (
    frozenset(OPCODES) - KERNEL_OPS - {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "fusion"}
)


@dataclass(frozen=True, eq=False)
class Program:
    """A module as it is compiled for a device: nothing but fusions and ops that stay by themselves, and their plan."""

    module: HloModule
    schedule: Schedule
    device: Device
    numerics: str
    choices: Choices
    edits: tuple[Edit, ...] = ()
    """Changes to the passes of each kernel."""

    @cached_property
    def fusions(self) -> Mapping[HloInstruction, Sequence[HloInstruction]]:
        """One fusion of each kernel, and all that are the same kernel."""
        alike: dict[Hashable, list[HloInstruction]] = {}
        for fusion in self.schedule.kernel_fusions():
            alike.setdefault(kernel_key(fusion), []).append(fusion)
        return {each[0]: each for each in alike.values()}

    def emit(self, fusion: HloInstruction) -> EmittedKernel:
        """The kernel of a fusion before any pass."""
        return emit(fusion, self.device, numerics=self.numerics, choices=self.choices)

    def lower(
        self, fusion: HloInstruction, backend: Backend[Any] | None = None, *, name: str = "main", **options: Any
    ) -> LoweredKernel:
        """The kernel of a fusion after a back end's passes, the device's own by default; see `lower_fusion`."""
        return lower_fusion(
            fusion,
            self.device,
            numerics=self.numerics,
            name=name,
            backend=backend,
            choices=self.choices,
            edits=self.edits,
            **options,
        )

    def lowered(
        self, backend: Backend[Any] | None = None, *, keep: Keep = "facts", generic: bool = False
    ) -> Iterator[LoweredKernel]:
        """Each kernel, once."""
        for fusion in self.fusions:
            yield self.lower(fusion, backend, keep=keep, generic=generic)

    def by_fusion(self, values: Sequence[T]) -> dict[HloInstruction, T]:
        """Each fusion's value, from one a kernel."""
        return {each: value for alike, value in zip(self.fusions.values(), values, strict=True) for each in alike}


def program(
    module: HloModule,
    target: str | Device,
    *,
    numerics: str = "strict",
    deterministic: bool = False,
    pipeline: str = "",
) -> Program:
    """Wrap and schedule a module.  InvalidHlo for one that means nothing; UnknownTarget; UnknownPass.

    `deterministic`: scatters keep the order of their updates where it shows.  `pipeline`: changes to the
    passes (`passes/support/edits.py`).
    """
    mode(numerics)
    edits = parse_edits(pipeline) if pipeline else ()
    chosen = target if isinstance(target, Device) else device(target)
    verify_module(module)
    choices = Choices(chosen)
    takes = choices.takes
    if deterministic and chosen.is_gpu:
        wrapped = wrap(module, takes=lambda each: keeps_order(each) or takes(each), splits=True)
        wrapped = keep_order(wrapped, chosen)
    else:
        wrapped = wrap(module, host=None if chosen.is_gpu else _lacking(choices), takes=takes, splits=True)
    split = split_reductions(split_recomputed(wrapped), chosen)
    return Program(split, make_schedule(split), chosen, numerics, choices, edits)


def _lacking(choices: Choices) -> Callable[[HloInstruction], Collection[str]]:
    """What gives the ops for which no emitter takes a fusion; that is asked only where an op is unusual."""

    def unusual(fusion: HloInstruction) -> Collection[str]:
        body = fusion.attr("calls", HloComputation)
        found = {each.opcode for each in body if each.opcode in _UNUSUAL}
        return found if found and not choices.takes(fusion) else ()

    return unusual


def lower_fusion(
    fusion: HloInstruction,
    target: Device,
    *,
    numerics: str = "strict",
    name: str = "main",
    keep: Keep = "facts",
    generic: bool = False,
    backend: Backend[Any] | None = None,
    choices: Choices | None = None,
    on_after: Hook | None = None,
    edits: Sequence[Edit] = (),
) -> LoweredKernel:
    """Emit a fusion and run the passes of a back end (the device's own by default).

    `keep` says what the result holds on to, beside facts; texts are in MLIR's generic form if `generic`; `edits` change
    the passes.
    """
    with _collection_paused():
        start = perf_counter()
        kernel = emit(fusion, target, numerics=numerics, name=name, choices=choices)
        seconds = perf_counter() - start
        lowered = (backend or backend_of(target)).lower(
            kernel, keep=keep, generic=generic, on_after=on_after, edits=edits
        )
        lowered.emission_seconds = seconds
        return lowered


@contextmanager
def _collection_paused() -> Generator[None]:
    """IR is full of cycles, lives long and dies all at once: looking for garbage in it meanwhile doubles the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
