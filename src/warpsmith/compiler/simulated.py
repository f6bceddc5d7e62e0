"""Executables whose kernels run in the simulator: a GPU's code, checked without a GPU.

In: a module, a GPU target, and the stage to run: "buffers" (the IR just before its control flow is flattened) or "ptx"
(the text that is handed out).  Out: an `Executable` like the compiled one, slower and exact: an access out of bounds or
misaligned is an error that names it; and, if asked for, what else is wrong and what each launch costs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from warpsmith.arrays import Array
from warpsmith.backends.simulator.backend import Simulator
from warpsmith.backends.simulator.pipeline import STAGES
from warpsmith.compiler.lowering import LoweredKernel, program
from warpsmith.compiler.plans import kernel_infos, runtime_plan
from warpsmith.devices import device
from warpsmith.errors import CheckFailed, UsageError, did_you_mean
from warpsmith.hlo.module import HloModule
from warpsmith.ir.core.ssa import Operation
from warpsmith.runtime.executable import Executable
from warpsmith.simt.core.checks import Checks, Findings
from warpsmith.simt.core.results import Counters, Finding, LaunchResult

__all__ = ["STAGES", "Simulation", "simulate", "simulated"]


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
    pipeline: str = "",
) -> Simulation:
    """Run `module`'s kernels on `arrays`, watching every access.

    `stage` is "ptx", or "buffers" for the IR.  With `blocks` at most so many blocks of a kernel run: the first, the
    last, and random ones between.  An access that a kernel may not make ends the run as a finding, with no outputs.
    `deterministic` and `pipeline` are as in `compile`.
    Raises what `compile` raises; SimulationError for an instruction that the simulator doesn't know.
    """
    launches: list[LaunchResult] = []
    options: dict[str, Any] = {
        "numerics": numerics,
        "stage": stage,
        "blocks": blocks,
        "deterministic": deterministic,
        "pipeline": pipeline,
    }
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
    pipeline: str = "",
) -> Executable:
    """An executable that simulates `target`'s kernels at `stage`.

    With `launches` every access is watched, and each launch adds its result; one that a check ended comes without
    counters, and the check is its last finding.  Raises what `compile` raises, and UsageError for a target that is no
    GPU or another stage; calls raise CheckFailed for an access that the kernel may not make.
    """
    chosen = device(target)
    if not chosen.is_gpu:
        raise UsageError(f"the simulator runs a GPU's kernels, and {target} is none", help="such as sm_90")
    if stage not in STAGES:
        raise UsageError(
            f"the simulator has no stage '{stage}'", help=did_you_mean(stage, STAGES) or f"one of {', '.join(STAGES)}"
        )
    if stage == "ptx" and not chosen.is_nvidia:
        raise UsageError(f"{target} has no PTX", help="simulate its IR: stage buffers")
    began = perf_counter()
    whole = program(module, chosen, numerics=numerics, deterministic=deterministic, pipeline=pipeline)
    backend = Simulator(chosen, stage)
    kernels = list(whole.lowered(backend))
    codes = backend.load(kernels, expected=len(kernels))
    functions = whole.by_fusion(
        [_function(backend, k, code, launches, blocks) for k, code in zip(kernels, codes, strict=True)]
    )
    return Executable(
        runtime_plan(whole.schedule, functions.__getitem__, whole.module),
        kernel_infos(whole.schedule, whole.by_fusion(kernels)),
        {
            "hlo": lambda: str(whole.module),
            "llvm": lambda: "\n".join(backend.text(k, "llvm", c) for k, c in zip(kernels, codes, strict=True)),
        },
        target=target,
        numerics=numerics,
        timings={"all": perf_counter() - began},
    )


def _function(
    backend: Simulator,
    lowered: LoweredKernel,
    code: Operation | str,
    launches: list[LaunchResult] | None,
    blocks: int | None,
) -> Callable[[Sequence[Array]], Sequence[Array]]:
    """A kernel as a function of arrays in HLO's dims, which tells of what it found, if somebody wants to know."""
    kernel = lowered.kernel
    names = tuple(argument.name for argument in kernel.arguments)
    origins = _origins(lowered.emitted)

    def run(arrays: Sequence[Array]) -> list[Array]:
        flat = [given.to_memory(array) for array, given in zip(arrays, kernel.inputs, strict=True)]
        buffers = [*flat, *[None] * len(kernel.outputs)]
        before = Findings()
        watch = Checks(names=names, origins=origins, device=backend.device, blocks=blocks, found=before)
        try:
            found, result = backend.launch(lowered, code, buffers, None if launches is None else watch)
        except CheckFailed as failed:
            if launches is not None:
                last = [failed.finding] if isinstance(failed.finding, Finding) else []
                launches.append(LaunchResult(None, [*before.items, *last]))
            raise
        if launches is not None and result is not None:
            launches.append(result)
        return [made.from_memory(data) for data, made in zip(found, kernel.outputs, strict=True)]

    return run


def _origins(module: Operation) -> Mapping[int, tuple[str, ...]]:
    """The HLO instructions that ops of each line of the source came from."""
    found: dict[int, tuple[str, ...]] = {}
    for op in module.walk():
        place = op.location
        if place.line:
            found[place.line] = tuple(dict.fromkeys(found.get(place.line, ()) + place.names))
    return found
