"""The driver: a module in, an executable out.

    HLO -> wrap -> plan -> for each kernel: emit -> passes -> LLVM IR -> machine code (CPU) or PTX (GPU)

Each kernel is one small LLVM module; those of a plan that aren't in the cache are compiled together, in several processes when
there are many.  Ops without an emitter become host steps that run the reference interpreter.  On a GPU target without a
driver the executable can't be called, but all its artifacts are there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from warpsmith.devices import Device, device
from warpsmith.dtypes import Kind
from warpsmith.emitters import EmittedKernel, emit
from warpsmith.errors import LoweringError, ToolMissing, UsageError, did_you_mean
from warpsmith.fusion.schedule import Plan as Schedule
from warpsmith.fusion.schedule import Step, plan
from warpsmith.fusion.wrap import wrap
from warpsmith.hlo.builder import ComputationBuilder
from warpsmith.hlo.evaluator import evaluate_computation
from warpsmith.hlo.literals import Literal
from warpsmith.hlo.module import HloInstruction, HloModule
from warpsmith.ir import attributes as at
from warpsmith.ir.core import Operation
from warpsmith.ir.dialects import func
from warpsmith.numerics.modes import mode
from warpsmith.runtime.cache import default_cache
from warpsmith.runtime.cpu_executable import ArgSpec, CpuKernel, load_kernels
from warpsmith.runtime.executable import (
    BufferSpec,
    Executable,
    HostStep,
    KernelInfo,
    KernelStep,
    Plan,
)
from warpsmith.targets import cpu, llvm_jit, nvptx, ptxas
from warpsmith.targets.nvptx_codegen import ptx_from_llvm

__all__ = [
    "LoweredKernel",
    "architecture",
    "check_stage",
    "compile",
    "kernel_steps",
    "lower_fusion",
    "stage_bytes",
    "stage_text",
    "time_passes",
]

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(slots=True)
class LoweredKernel:
    """One kernel on its way down.  `texts` holds IR that was asked to be kept, `steps` the IR after each pass."""

    emitted: EmittedKernel
    llvm: str
    table_bytes: tuple[int, ...]
    seconds: dict[str, float]
    pass_seconds: list[tuple[str, float]]
    emitted_text: str = ""
    lowered_text: str = ""
    steps: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


def architecture(target: Device) -> str:
    """The sm_ name that LLVM and ptxas know a GPU by."""
    major, minor = target.compute_capability
    return f"sm_{major}{minor}"


def lower_fusion(
    fusion: HloInstruction,
    target: Device,
    *,
    numerics: str = "strict",
    name: str = "main",
    keep: bool = False,
    generic: bool = False,
) -> LoweredKernel:
    """Emit a fusion and lower it to LLVM IR.  `keep` records the IR's text after emission and after each pass."""
    start = perf_counter()
    kernel = emit(fusion, target, numerics=numerics, name=name)
    module = kernel.module
    entry = func.entry(module)
    emitted_seconds = perf_counter() - start
    steps: list[tuple[str, str]] = []
    emitted_text = ""
    hook = None
    if keep:
        emitted_text = _print(module, generic)

        def record(_index: int, name: str, module: Operation) -> None:
            steps.append((name, _print(module, generic)))

        hook = record
    if target.is_gpu:
        timings = nvptx.lower(module, hook)
        text = nvptx.llvm_ir(module)
    else:
        output_bytes = sum(a.shape.byte_size for a in kernel.args if a.is_output)
        timings = cpu.lower(module, hook, output_bytes=output_bytes)
        text = cpu.llvm_ir(module)
    total = perf_counter() - start
    tables = entry.attributes.get("warpsmith.tables")
    return LoweredKernel(
        emitted=kernel,
        llvm=text,
        table_bytes=tables.values if isinstance(tables, at.DenseArrayAttr) else (),
        seconds={"emit": emitted_seconds, "passes": total - emitted_seconds},
        pass_seconds=[(t.name, t.seconds) for t in timings],
        emitted_text=emitted_text,
        lowered_text=steps[-1][1] if steps else "",
        steps=steps,
    )


def _print(module: Operation, generic: bool) -> str:
    from warpsmith.ir.printer import print_op  # text is asked for only by dumps and traces

    return print_op(module, generic=generic)


def compile(
    module: HloModule, target: str = "cpu", *, numerics: str = "strict", cache: bool = True, trace: bool = False
) -> Executable:
    """Compile a module for `target`: "cpu", "sm_80", "sm_90", "sm_100", or a device's name.

    Raises UnknownTarget, UnsupportedFusion (an op that no emitter takes), LoweringError (no form on the target).  With `cache`
    machine code is looked up and kept on disk; with `trace` the executable's `trace` holds the IR after each pass.
    """
    mode(numerics)
    chosen = device(target)
    began = perf_counter()
    wrapped = wrap(module)
    schedule = plan(wrapped)
    seconds: dict[str, float] = {"hlo": perf_counter() - began, "emit": 0.0, "passes": 0.0, "llvm": 0.0}
    lowered = [
        lower_fusion(step.instruction, chosen, numerics=numerics, keep=trace)
        for step in schedule.steps
        if step.kind == "kernel"
    ]
    for kernel in lowered:
        for part, value in kernel.seconds.items():
            seconds[part] += value
    start = perf_counter()
    builder = _GpuBuilder(chosen, lowered) if chosen.is_gpu else _CpuBuilder(schedule, lowered, cache)
    runtime_plan = builder.plan(schedule)
    seconds["llvm"] = perf_counter() - start
    artifacts: dict[str, Callable[[], str]] = {
        "hlo": lambda: str(wrapped),
        "emitted": lambda: _joined(_kept(schedule, chosen, numerics), "emitted_text"),
        "lowered": lambda: _joined(_kept(schedule, chosen, numerics), "lowered_text"),
        "llvm": lambda: "\n".join(k.llvm for k in lowered),
        **builder.artifacts(),
    }
    return Executable(
        runtime_plan,
        _kernel_infos(schedule, lowered),
        artifacts,
        target=target,
        numerics=numerics,
        timings=seconds,
        trace=[step for kernel in lowered for step in [("emitted", kernel.emitted_text), *kernel.steps]] if trace else (),
    )


def _kept(schedule: Schedule, target: Device, numerics: str) -> list[LoweredKernel]:
    """The kernels once more, with their texts: printing isn't paid for by those who don't ask."""
    steps = [s for s in schedule.steps if s.kind == "kernel"]
    return [lower_fusion(s.instruction, target, numerics=numerics, keep=True) for s in steps]


def _joined(kernels: Sequence[LoweredKernel], attribute: str) -> str:
    return "\n".join(getattr(k, attribute) for k in kernels)


def _kernel_infos(schedule: Schedule, lowered: Sequence[LoweredKernel]) -> list[KernelInfo]:
    remaining = iter(lowered)
    infos: list[KernelInfo] = []
    for step in schedule.steps:
        name = step.instruction.name
        if step.kind == "kernel":
            k = next(remaining).emitted
            moved = sum(a.shape.byte_size for a in k.args)
            infos.append(KernelInfo(name, k.emitter, k.variant, k.grid, k.block, k.shared_bytes, bytes=moved))
        else:
            label = f"{name} = {step.instruction.opcode}: {step.reason}"
            infos.append(KernelInfo(label, "", "", (0, 0, 0), (0, 0, 0), 0, host=True))
    return infos


# -------------------------------------------------------------------------------------------------------------- plans
class _CpuBuilder:
    """Machine code for this computer, and the plan that runs it."""

    def __init__(self, schedule: Schedule, lowered: Sequence[LoweredKernel], cache: bool) -> None:
        self.lowered = lowered
        for name, shape in schedule.buffers.items():
            if shape.dtype.kind not in (Kind.TOKEN, Kind.OPAQUE) and shape.dtype.bits < 8:
                raise LoweringError(
                    f"'{name}' is {shape}: packed {shape.dtype.name} arrays don't run on the CPU yet",
                    help="convert to s8 or f32 outside, or print the GPU's code with --target sm_90",
                )
        texts = [k.llvm for k in lowered]
        if cache:
            codes = load_kernels(texts, cache=default_cache())
        else:
            codes = [llvm_jit.load_object(llvm_jit.compile_object(t)) for t in texts]
        self.kernels = [_cpu_kernel(k, code) for k, code in zip(lowered, codes, strict=True)]

    def plan(self, schedule: Schedule) -> Plan:
        return _runtime_plan(schedule, self.kernels)

    def artifacts(self) -> dict[str, Callable[[], str]]:
        return {
            "llvm-opt": lambda: "\n".join(llvm_jit.optimize_ir(k.llvm) for k in self.lowered),
            "asm": lambda: "\n".join(llvm_jit.assembly(k.llvm) for k in self.lowered),
        }


def _cpu_kernel(kernel: LoweredKernel, code: llvm_jit.LoadedCode) -> CpuKernel:
    arguments = kernel.emitted.args
    streamed = "!nontemporal" in kernel.llvm
    specs = [
        ArgSpec(64 if streamed and a.is_output else max(1, a.shape.dtype.bits // 8), a.name) for a in arguments
    ]
    return CpuKernel(code, "main", kernel.emitted.workgroups, specs, table_bytes=kernel.table_bytes)


class _GpuBuilder:
    """PTX; a plan that says why it can't run."""

    def __init__(self, target: Device, lowered: Sequence[LoweredKernel]) -> None:
        self.target = target
        self.sm = architecture(target)
        self.ptx = [ptx_from_llvm(k.llvm, self.sm) for k in lowered]

    def plan(self, schedule: Schedule) -> Plan:
        def refuse(_: Sequence[Array]) -> Sequence[Array]:
            raise ToolMissing(
                f"no CUDA driver is used yet: {self.target.title} code can be printed, not run",
                help='run it on the CPU (target="cpu")',
            )

        return _runtime_plan(schedule, [refuse] * len(self.ptx))

    def artifacts(self) -> dict[str, Callable[[], str]]:
        return {
            "ptx": lambda: "\n".join(self.ptx),
            "sass": lambda: "\n".join(ptxas.disassemble(ptxas.assemble(p, self.sm).data) for p in self.ptx),
        }


def _runtime_plan(
    schedule: Schedule, kernels: Sequence[CpuKernel | Callable[[Sequence[Array]], Sequence[Array]]]
) -> Plan:
    """The schedule over numbered buffers."""
    number = {name: i for i, name in enumerate(schedule.buffers)}
    specs = [BufferSpec(s.dims, s.dtype, tuple(s.minor_to_major)) for s in schedule.buffers.values()]
    remaining = iter(kernels)
    steps: list[KernelStep | HostStep] = []
    for step in schedule.steps:
        inputs = tuple(number[n] for n in step.inputs)
        outputs = tuple(number[n] for n in step.outputs)
        name = step.instruction.name
        if step.kind != "kernel":
            steps.append(HostStep(_host_function(step), inputs, outputs, name))
            continue
        kernel = next(remaining)
        if isinstance(kernel, CpuKernel):
            steps.append(KernelStep(kernel, inputs, outputs, name))
        else:
            steps.append(HostStep(kernel, inputs, outputs, name))
    return Plan(
        buffers=specs,
        storage=[number[schedule.storage[n]] for n in schedule.buffers],
        parameters=[number[n] for n in schedule.parameters],
        outputs=[number[n] for n in schedule.results],
        steps=steps,
        constants={number[n]: _memory(literal, specs[number[n]]) for n, literal in schedule.constants.items()},
        parameter_names=list(schedule.parameters),
    )


def _memory(literal: Literal, spec: BufferSpec) -> Array:
    """A constant's elements in memory order."""
    array = np.asarray(literal.array).astype(spec.dtype.numpy, copy=False)
    array = np.broadcast_to(array, spec.dims)
    return np.ascontiguousarray(array if spec.is_row_major else array.transpose(spec.minor_to_major[::-1]))


def _host_function(step: Step) -> Callable[[Sequence[Array]], Sequence[Array]]:
    """One op as a computation of its own, run by the reference interpreter."""
    instruction = step.instruction
    builder = ComputationBuilder(f"host_{instruction.name}")
    operands = [builder.parameter(i, o.shape, o.name) for i, o in enumerate(instruction.operands)]
    builder.add(instruction.opcode, instruction.shape, operands, instruction.attributes, name=f"{instruction.name}.host")
    computation = builder.build()
    return lambda arrays: evaluate_computation(computation, *arrays)


def stage_names(target: Device) -> list[str]:
    """The stages that `--stage` knows on a target."""
    common = ["hlo", "emitted", "lowered", "llvm"]
    return [*common, "ptx", "cubin", "sass"] if target.is_gpu else [*common, "llvm-opt", "asm"]


def check_stage(stage: str, target: Device) -> None:
    """UsageError, with the nearest name, for a stage that the target lacks."""
    names = stage_names(target)
    if stage not in names:
        raise UsageError(
            f"target {target.name} has no stage '{stage}'",
            help=did_you_mean(stage, names) or f"its stages: {', '.join(names)}",
        )


def kernel_steps(
    module: HloModule, target: str, *, numerics: str = "strict", generic: bool = False
) -> list[tuple[str, LoweredKernel]]:
    """Each kernel's fusion name and its IR after emission and after each pass, as text."""
    chosen = device(target)
    mode(numerics)
    steps = [s for s in plan(wrap(module)).steps if s.kind == "kernel"]
    return [
        (s.instruction.name, lower_fusion(s.instruction, chosen, numerics=numerics, keep=True, generic=generic))
        for s in steps
    ]


def stage_text(
    module: HloModule, stage: str, target: str, *, numerics: str = "strict", generic: bool = False
) -> str:
    """The text of a stage.  Raises what `compile` raises, and UsageError for a stage that the target lacks."""
    check_stage(stage, device(target))
    if stage in ("emitted", "lowered") and generic:
        kernels = [k for _, k in kernel_steps(module, target, numerics=numerics, generic=True)]
        return _joined(kernels, f"{stage}_text")
    return compile(module, target, numerics=numerics).artifact(stage)


def stage_bytes(module: HloModule, target: str, *, numerics: str = "strict") -> bytes:
    """The cubin of a module with one kernel.  Raises ToolMissing without ptxas, UsageError for several kernels."""
    exe = compile(module, target, numerics=numerics)
    if sum(not k.host for k in exe.kernels) != 1:
        raise UsageError(f"the module has {len(exe.kernels)} kernels; a cubin holds one", help="print --stage ptx instead")
    return ptxas.assemble(exe.artifact("ptx"), architecture(device(target))).data


def time_passes(module: HloModule, target: str, *, numerics: str = "strict") -> list[tuple[str, float]]:
    """(part, seconds) in order: emission, each pass, LLVM; summed over kernels.  The first, cold run isn't counted."""
    chosen = device(target)
    fusions = [s.instruction for s in plan(wrap(module)).steps if s.kind == "kernel"]
    for fusion in fusions:
        lower_fusion(fusion, chosen, numerics=numerics)
    kernels = [lower_fusion(f, chosen, numerics=numerics) for f in fusions]
    rows = [("emit", sum(k.seconds["emit"] for k in kernels))]
    if kernels:
        for i, (name, _) in enumerate(kernels[0].pass_seconds):
            rows.append((name, sum(k.pass_seconds[i][1] for k in kernels)))
    if kernels:
        _back_end(kernels[0], chosen)
    start = perf_counter()
    for kernel in kernels:
        _back_end(kernel, chosen)
    rows.append(("LLVM", perf_counter() - start))
    return rows


def _back_end(kernel: LoweredKernel, target: Device) -> None:
    """LLVM's part, nothing kept."""
    if target.is_gpu:
        ptx_from_llvm(kernel.llvm, architecture(target))
    else:
        llvm_jit.load_object(llvm_jit.compile_object(kernel.llvm))
