"""Executables whose kernels run in the simulator: a GPU's code, checked without a GPU.

In: a module, a GPU target, and the stage to run: "buffers" (the IR just before its control flow is flattened) or "ptx"
(the text that is handed out).  Out: an `Executable` like the compiled one, slower and exact: an access out of bounds or
misaligned is an error that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from warpsmith.compiler.driver import scheduled
from warpsmith.compiler.lowering import LoweredKernel, architecture, lower_fusion
from warpsmith.compiler.plans import kernel_infos, runtime_plan
from warpsmith.devices import Device, device
from warpsmith.emitters import EmittedKernel, emit
from warpsmith.errors import SimulationError, UsageError, did_you_mean
from warpsmith.hlo.module import HloInstruction, HloModule
from warpsmith.hlo.shapes import Shape
from warpsmith.numerics.modes import mode
from warpsmith.passes.manager import run_pipeline
from warpsmith.runtime.executable import Executable
from warpsmith.simt.launch import run_kernel
from warpsmith.simt.ptx import PtxStats, simulate_ptx
from warpsmith.targets import nvptx
from warpsmith.targets.nvptx_codegen import ptx_from_llvm

__all__ = ["STAGES", "Simulation", "simulate", "simulated"]

Array = np.ndarray[Any, np.dtype[Any]]
Run = Callable[[list[Array]], list[Array]]

STAGES = ("buffers", "ptx")
_FLATTENING = ("convert-scf-to-cf", "convert-to-llvm")


@dataclass(frozen=True, slots=True)
class Simulation:
    """What a simulated call gave.

    `outputs` are the results, `findings` what the checks saw (races, reads of what nobody wrote...), in words;
    `counters` has one entry a kernel launch: instructions, accesses by width, and what each access costs.
    """

    outputs: list[Array]
    findings: list[str]
    counters: list[PtxStats]


def simulate(module: HloModule, *arrays: Any, target: str = "sm_90", numerics: str = "strict") -> Simulation:
    """Run the PTX of `module`'s kernels on `arrays`, watching every access.

    An access that a kernel may not make ends the run as a finding, with no outputs.  Raises what `compile` raises.
    """
    counters: list[PtxStats] = []
    exe = simulated(module, target, numerics=numerics, stage="ptx", counters=counters)
    try:
        outputs, last = exe(*arrays), []
    except SimulationError as error:
        outputs, last = [], [str(error)]
    return Simulation(outputs, [f for each in counters for f in (*each.findings, *each.races)] + last, counters)


def simulated(
    module: HloModule,
    target: str = "sm_90",
    *,
    numerics: str = "strict",
    stage: str = "buffers",
    counters: list[PtxStats] | None = None,
) -> Executable:
    """An executable that simulates `target`'s kernels at `stage`; launches of PTX add what they did to `counters`.

    Raises what `compile` raises, and UsageError for a target that is no GPU or another stage; calls raise
    SimulationError for an access that the kernel may not make.
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
    wrapped, schedule = scheduled(module, chosen)
    kernels: dict[HloInstruction, LoweredKernel] = {
        fusion: lower_fusion(fusion, chosen, numerics=numerics) for fusion in schedule.kernel_fusions()
    }

    def kernel_of(fusion: HloInstruction) -> Callable[[Sequence[Array]], Sequence[Array]]:
        if stage == "ptx":
            return _around(kernels[fusion].emitted, _ptx_runner(kernels[fusion], chosen, counters))
        kernel = emit(fusion, chosen, numerics=numerics)
        run_pipeline(kernel.module, [name for name in nvptx.PASSES if name not in _FLATTENING])
        return _around(kernel, _ir_runner(kernel))

    return Executable(
        runtime_plan(schedule, kernel_of, wrapped),
        kernel_infos(schedule, kernels),
        {"hlo": lambda: str(wrapped), "llvm": lambda: "\n".join(k.llvm for k in kernels.values())},
        target=target,
        numerics=numerics,
        timings={"all": perf_counter() - began},
    )


def _ir_runner(kernel: EmittedKernel) -> Run:
    outputs = sum(a.is_output for a in kernel.args)
    return lambda inputs: run_kernel(kernel.module, inputs, outputs)


def _ptx_runner(kernel: LoweredKernel, target: Device, counters: list[PtxStats] | None) -> Run:
    text = ptx_from_llvm(kernel.llvm, architecture(target))
    shapes = [a.shape for a in kernel.emitted.args if a.is_output]
    wanted = [(s.dtype.numpy, s.elements) for s in shapes]

    def run(inputs: list[Array]) -> list[Array]:
        launch = kernel.emitted
        found, stats = simulate_ptx(
            text,
            inputs,
            wanted,
            grid=launch.grid,
            block=launch.block,
            aliases=launch.aliases,
            check_reads=True,
            watch=counters is not None,
        )
        if counters is not None:
            counters.append(stats)
        return found

    return run


def _around(kernel: EmittedKernel, run: Run) -> Callable[[Sequence[Array]], Sequence[Array]]:
    """From arrays in HLO's dims to flat memory, through the kernel, and back."""
    inputs = [a.shape for a in kernel.args if not a.is_output]
    outputs = [a.shape for a in kernel.args if a.is_output]

    def function(arrays: Sequence[Array]) -> list[Array]:
        flat = [_in_memory(array, shape) for array, shape in zip(arrays, inputs, strict=True)]
        return [_in_dims(data, shape) for data, shape in zip(run(flat), outputs, strict=True)]

    return function


def _in_memory(array: Array, shape: Shape) -> Array:
    return np.ascontiguousarray(array.transpose(shape.minor_to_major[::-1])).reshape(-1)


def _in_dims(data: Array, shape: Shape) -> Array:
    order = shape.minor_to_major[::-1]
    typed = data if data.dtype == shape.dtype.numpy else data.view(shape.dtype.numpy)
    physical = typed.reshape([shape.dims[d] for d in order])
    return physical.transpose([order.index(d) for d in range(len(order))])
