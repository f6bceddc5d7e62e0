"""Compiling a module, and asking for the text of a stage.

In: a module, a target.  Out: an `Executable`, texts, timings.  Each kernel is one small LLVM module; those that aren't
in the cache go to LLVM as soon as they are there, in several processes when there are many.  Ops without an emitter
become host steps.  On a GPU target without a driver the executable can't be called, but all its artifacts are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import Any

from warpsmith.arrays import Array
from warpsmith.backends import backend_of
from warpsmith.backends.base import Backend
from warpsmith.backends.nvptx import ptxas
from warpsmith.compiler.cuda_text import cuda_text
from warpsmith.compiler.lowering import LoweredKernel, Program, program
from warpsmith.compiler.plans import kernel_infos, runtime_plan
from warpsmith.devices import Device, device
from warpsmith.errors import UsageError, did_you_mean
from warpsmith.hlo.module import HloInstruction, HloModule
from warpsmith.library.dot_and_convolution import HostFunction
from warpsmith.library.host import host_function
from warpsmith.runtime.cache import default_cache
from warpsmith.runtime.cpu_executable import cpu_kernel
from warpsmith.runtime.executable import Executable

__all__ = ["check_stage", "compile", "kernel_steps", "stage_bytes", "stage_names", "stage_text", "time_passes"]


def compile(
    module: HloModule,
    target: str = "cpu",
    *,
    numerics: str = "strict",
    cache: bool = True,
    trace: bool = False,
    deterministic: bool = False,
    pipeline: str = "",
) -> Executable:
    """Compile a module for `target`: "cpu", "sm_80", "sm_90", "sm_100", or a device's name.

    Raises UnknownTarget, UnsupportedFusion (an op that no emitter takes), UnsupportedHlo (a host step that nothing
    computes; on the CPU), LoweringError (no form on the target).  With `cache` machine code for the CPU is looked up
    and kept on disk (PTX never is); with `trace` the executable's `trace` holds the IR after each pass.  With
    `deterministic` results repeat bit for bit on a GPU, too: scatters combine updates in order, or in steps whose order
    doesn't show.  `pipeline` changes the passes: `"+mine@before:cse"` (docs/your-own-pass.md).
    """
    began = perf_counter()
    whole = program(module, target, numerics=numerics, deterministic=deterministic, pipeline=pipeline)
    scheduled = perf_counter()
    if not whole.device.is_gpu:
        _check_host_steps(whole)
    backend = backend_of(whole.device)
    kernels: list[LoweredKernel] = []

    def lowered() -> Iterator[LoweredKernel]:
        for each in whole.lowered(keep="steps" if trace else "facts"):
            kernels.append(each)
            yield each

    codes = backend.load(lowered(), expected=len(whole.fusions), store=default_cache() if cache else None)
    emission, passes = (sum(k.emission_seconds for k in kernels), sum(k.seconds for k in kernels))
    if whole.device.is_gpu:
        plan = runtime_plan(whole.schedule, _refusal(backend), whole.module, host_of=_refusal(backend))
    else:
        native = whole.by_fusion([cpu_kernel(k, code) for k, code in zip(kernels, codes, strict=True)])
        plan = runtime_plan(whole.schedule, native.__getitem__, whole.module)
    seconds = {"hlo": scheduled - began, "emit": emission, "passes": passes}
    seconds["llvm"] = perf_counter() - scheduled - emission - passes
    return Executable(
        plan,
        kernel_infos(whole.schedule, whole.by_fusion(kernels)),
        _artifacts(whole, backend, kernels, codes),
        target=target,
        numerics=numerics,
        timings=seconds,
        trace=[step for kernel in kernels for step in [("emitted", kernel.emitted_text()), *kernel.steps]]
        if trace
        else (),
        temporary_bytes=whole.schedule.peak_bytes(),
    )


def _check_host_steps(whole: Program) -> None:
    """UnsupportedHlo for a host step that nothing computes, before time goes into kernels."""
    for step in whole.schedule.all_steps():
        if step.kind == "host" and not step.in_place:
            host_function(step.instruction)


def _refusal(backend: Backend[Any]) -> Callable[[HloInstruction], HostFunction]:
    """What stands in a plan for a step on a GPU that can't be reached: it says why it can't run."""

    def refuse(_: Sequence[Array]) -> Sequence[Array]:
        raise backend.no_driver()

    return lambda _: refuse


# -------------------------------------------------------------------------------------------------------------- stages
def _artifacts(
    whole: Program, backend: Backend[Any], kernels: Sequence[LoweredKernel], codes: Sequence[Any]
) -> dict[str, Callable[[], str]]:
    """What makes the text of each stage, of kernels that are lowered and loaded."""

    def of_kernels(stage: str) -> str:
        return "\n".join(backend.text(k, stage, code) for k, code in zip(kernels, codes, strict=True))

    own = {stage: partial(of_kernels, stage) for stage in backend.stages}
    return {
        **own,
        "hlo": lambda: str(whole.module),
        "emitted": lambda: "\n".join(k.emitted_text() for k in kernels),
        "lowered": lambda: "\n".join(k.lowered_text() for k in kernels),
        "llvm": lambda: "\n".join(k.code for k in kernels),
        **({"cuda": lambda: cuda_text(whole)} if "cuda" in own else {}),
    }


def stage_names(target: Device) -> list[str]:
    """The stages that `--stage` knows on a target."""
    return ["hlo", *backend_of(target).stages]


def check_stage(stage: str, target: Device) -> None:
    """UsageError, with the nearest name, for a stage that the target lacks."""
    names = stage_names(target)
    if stage not in names:
        raise UsageError(
            f"target {target.name} has no stage '{stage}'",
            help=did_you_mean(stage, names) or f"its stages: {', '.join(names)}",
        )


def kernel_steps(
    module: HloModule,
    target: str,
    *,
    numerics: str = "strict",
    generic: bool = False,
    deterministic: bool = False,
    pipeline: str = "",
) -> list[tuple[str, LoweredKernel]]:
    """Each kernel's fusion name and its IR after emission and after each pass, as text."""
    whole = program(module, target, numerics=numerics, deterministic=deterministic, pipeline=pipeline)
    return list(zip([each.name for each in whole.fusions], whole.lowered(keep="steps", generic=generic), strict=True))


def stage_text(
    module: HloModule,
    stage: str,
    target: str,
    *,
    numerics: str = "strict",
    generic: bool = False,
    cache: bool = True,
    deterministic: bool = False,
    pipeline: str = "",
) -> str:
    """The text of a stage.  Raises what `compile` raises, and UsageError for a stage that the target lacks.

    Nothing after the stage is done: the IR of a kernel that LLVM refuses can be read.
    """
    check_stage(stage, device(target))
    if stage not in ("hlo", "cuda", "emitted", "lowered", "llvm"):
        return compile(
            module, target, numerics=numerics, cache=cache, deterministic=deterministic, pipeline=pipeline
        ).artifact(stage)
    whole = program(module, target, numerics=numerics, deterministic=deterministic, pipeline=pipeline)
    if stage == "hlo":
        return str(whole.module)
    if stage == "cuda":
        return cuda_text(whole)
    kernels = whole.lowered(keep="ir" if stage == "lowered" else "facts", generic=generic)
    if stage == "llvm":
        return "\n".join(k.code for k in kernels)
    text = LoweredKernel.emitted_text if stage == "emitted" else LoweredKernel.lowered_text
    return "\n".join(map(text, kernels))


def stage_bytes(
    module: HloModule, target: str, *, numerics: str = "strict", deterministic: bool = False, pipeline: str = ""
) -> bytes:
    """The cubin of a module with one kernel.  Raises ToolMissing without ptxas, UsageError for several kernels."""
    exe = compile(module, target, numerics=numerics, deterministic=deterministic, pipeline=pipeline)
    count = sum(not k.host for k in exe.kernels)
    if count != 1:
        raise UsageError(f"the module has {count} kernels; a cubin holds one", help="print --stage ptx instead")
    return ptxas.assemble(exe.artifact("ptx"), device(target).architecture).data


def time_passes(
    module: HloModule, target: str, *, numerics: str = "strict", deterministic: bool = False, pipeline: str = ""
) -> list[tuple[str, float]]:
    """(part, seconds) in order: emission, each pass, LLVM; summed over kernels.  The first, cold run isn't counted."""
    whole = program(module, target, numerics=numerics, deterministic=deterministic, pipeline=pipeline)
    backend = backend_of(whole.device)
    list(whole.lowered())
    kernels = list(whole.lowered())
    rows = [("emit", sum(k.emission_seconds for k in kernels))]
    if kernels:
        for i, (name, _) in enumerate(kernels[0].pass_seconds):
            rows.append((name, sum(k.pass_seconds[i][1] for k in kernels)))
        backend.load(kernels[:1])
    start = perf_counter()
    for kernel in kernels:
        backend.load([kernel])
    rows.append(("LLVM", perf_counter() - start))
    return rows
