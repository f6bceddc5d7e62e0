"""Executables whose kernels run in the simulator: a GPU's code, checked without a GPU.

In: a module, a GPU target, and the stage to run: "buffers" (the IR just before its control flow is flattened) or "ptx"
(the text that is handed out).  Out: an `Executable` like the compiled one, slower and exact: an access out of bounds or
misaligned is an error that names it; and, if asked for, what else is wrong and what each launch costs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from warpsmith.arrays import Array
from warpsmith.backends.nvptx import lowering as nvptx
from warpsmith.backends.nvptx.codegen import ptx_from_llvm
from warpsmith.compiler.driver import scheduled
from warpsmith.compiler.lowering import LoweredKernel, architecture, lower_fusion
from warpsmith.compiler.plans import kernel_infos, runtime_plan
from warpsmith.devices import Device, device
from warpsmith.emitters import EmittedKernel, emit
from warpsmith.errors import CheckFailed, UsageError, did_you_mean
from warpsmith.hlo.module import HloInstruction, HloModule
from warpsmith.numerics.modes import mode
from warpsmith.passes.manager import run_pipeline
from warpsmith.runtime.executable import Executable
from warpsmith.simt.core.checks import Checks, Findings
from warpsmith.simt.core.results import Counters, Finding, LaunchResult
from warpsmith.simt.ir.launch import run_kernel, watch_kernel
from warpsmith.simt.ptx.launch import PtxLaunch, simulate_ptx

__all__ = ["STAGES", "Simulation", "simulate", "simulated"]

Run = Callable[[list[Array]], list[Array]]

STAGES = ("buffers", "ptx")
_FLATTENING = ("convert-scf-to-cf", "convert-to-llvm")


@dataclass(frozen=True, slots=True)
class Simulation:
    """What a simulated call gave.

    `outputs` are the results; none if a kernel did what no hardware does, which is the last of the `findings` then.
    `counters` has one entry a launch that ended.  Where a launch ran a sample of its blocks (`counters[i].sampled`),
    the elements of the others are left unwritten.
    """

    outputs: list[Array]
    findings: list[Finding]
    counters: list[Counters]


def simulate(
    module: HloModule,
    *arrays: Any,
    target: str = "sm_90",
    numerics: str = "strict",
    stage: str = "ptx",
    blocks: int | None = None,
    deterministic: bool = False,
) -> Simulation:
    """Run `module`'s kernels on `arrays`, watching every access.

    `stage` is "ptx", or "buffers" for the IR.  With `blocks` at most so many blocks of a kernel run: the first, the
    last, and random ones between.  An access that a kernel may not make ends the run as a finding, with no outputs.
    `deterministic` is as in `compile`.
    Raises what `compile` raises; SimulationError for an instruction that the simulator doesn't know.
    """
    launches: list[LaunchResult] = []
    options: dict[str, Any] = {"numerics": numerics, "stage": stage, "blocks": blocks, "deterministic": deterministic}
    exe = simulated(module, target, launches=launches, **options)
    try:
        outputs = exe(*arrays)
    except CheckFailed:
        outputs = []
    counters = [each.counters for each in launches if each.counters is not None]
    return Simulation(outputs, [finding for each in launches for finding in each.findings], counters)


def simulated(
    module: HloModule,
    target: str = "sm_90",
    *,
    numerics: str = "strict",
    stage: str = "buffers",
    launches: list[LaunchResult] | None = None,
    blocks: int | None = None,
    deterministic: bool = False,
) -> Executable:
    """An executable that simulates `target`'s kernels at `stage`.

    With `launches` every access is watched, and each launch adds its result; one that a check ended comes without
    counters, and the check is its last finding.  Raises what `compile` raises, and UsageError for a target that is no
    GPU or another stage; calls raise CheckFailed for an access that the kernel may not make.
    """
    mode(numerics)
    chosen = device(target)
    if not chosen.is_gpu:
        raise UsageError(f"the simulator runs a GPU's kernels, and {target} is none", help="such as sm_90")
    if stage not in STAGES:
        raise UsageError(
            f"the simulator has no stage '{stage}'", help=did_you_mean(stage, STAGES) or f"one of {', '.join(STAGES)}"
        )
    began = perf_counter()
    wrapped, schedule = scheduled(module, chosen, deterministic=deterministic)
    kernels: dict[HloInstruction, LoweredKernel] = {
        fusion: lower_fusion(fusion, chosen, numerics=numerics) for fusion in schedule.kernel_fusions()
    }

    def kernel_of(fusion: HloInstruction) -> Callable[[Sequence[Array]], Sequence[Array]]:
        if stage == "ptx":
            kernel = kernels[fusion].emitted
            run = _ptx_runner(kernels[fusion], chosen)
        else:
            kernel = emit(fusion, chosen, numerics=numerics)
            run_pipeline(kernel.module, [name for name in nvptx.PASSES if name not in _FLATTENING])
            run = _ir_runner(kernel)
        return _around(kernel, _watched(kernel, run, chosen, launches, blocks))

    return Executable(
        runtime_plan(schedule, kernel_of, wrapped),
        kernel_infos(schedule, kernels),
        {"hlo": lambda: str(wrapped), "llvm": lambda: "\n".join(k.llvm for k in kernels.values())},
        target=target,
        numerics=numerics,
        timings={"all": perf_counter() - began},
    )


Launch = Callable[[list[Array], Checks | None], tuple[list[Array], LaunchResult | None]]


def _watched(
    kernel: EmittedKernel, launch: Launch, target: Device, launches: list[LaunchResult] | None, blocks: int | None
) -> Run:
    """A launch that tells of what it found, if somebody wants to know."""
    names = tuple(argument.name for argument in kernel.arguments)
    origins = _origins(kernel)

    def run(inputs: list[Array]) -> list[Array]:
        if launches is None:
            return launch(inputs, None)[0]
        before = Findings()
        checks = Checks(names=names, origins=origins, device=target, blocks=blocks, found=before)
        try:
            found, result = launch(inputs, checks)
        except CheckFailed as failed:
            last = [failed.finding] if isinstance(failed.finding, Finding) else []
            launches.append(LaunchResult(None, [*before.items, *last]))
            raise
        assert result is not None
        launches.append(result)
        return found

    return run


def _origins(kernel: EmittedKernel) -> Mapping[int, tuple[str, ...]]:
    """The HLO instructions that ops of each line of the source came from."""
    found: dict[int, tuple[str, ...]] = {}
    for op in kernel.module.walk():
        place = op.location
        if place.line:
            found[place.line] = tuple(dict.fromkeys(found.get(place.line, ()) + place.names))
    return found


def _ir_runner(kernel: EmittedKernel) -> Launch:
    outputs = len(kernel.outputs)

    def launch(inputs: list[Array], checks: Checks | None) -> tuple[list[Array], LaunchResult | None]:
        inputs = [each.view(f"f{each.itemsize // 2}") if each.dtype.kind == "c" else each for each in inputs]
        if checks is None:
            return run_kernel(kernel.module, inputs, outputs), None
        found, result = watch_kernel(kernel.module, inputs, outputs, checks)
        if result.counters is not None:
            result = replace(result, counters=replace(result.counters, stage="buffers"))
        return found, result

    return launch


def _ptx_runner(kernel: LoweredKernel, target: Device) -> Launch:
    text = ptx_from_llvm(kernel.llvm, architecture(target))
    emitted = kernel.emitted
    wanted = [(each.dtype.numpy, each.elements) for each in emitted.outputs]
    words = [i for i, each in enumerate(emitted.outputs) if each.whole_words]
    how = PtxLaunch(emitted.launch.grid, emitted.launch.block, aliases=emitted.aliases, words=words)

    def launch(inputs: list[Array], checks: Checks | None) -> tuple[list[Array], LaunchResult | None]:
        found, stats = simulate_ptx(text, inputs, wanted, how, checks)
        return found, None if checks is None else LaunchResult(stats.counters, stats.findings)

    return launch


def _around(kernel: EmittedKernel, run: Run) -> Callable[[Sequence[Array]], Sequence[Array]]:
    """From arrays in HLO's dims to flat memory, through the kernel, and back."""

    def function(arrays: Sequence[Array]) -> list[Array]:
        flat = [given.to_memory(array) for array, given in zip(arrays, kernel.inputs, strict=True)]
        return [made.from_memory(data) for data, made in zip(run(flat), kernel.outputs, strict=True)]

    return function
