"""Compiling a module, and asking for the text of a stage.

In: a module, a target.  Out: an `Executable`, texts, timings.  Each kernel is one small LLVM module; those that aren't
in the cache go to LLVM as soon as they are there, in several processes when there are many.  Ops without an emitter
become host steps.  On a GPU target without a driver the executable can't be called, but all its artifacts are there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from time import perf_counter
from typing import TypeVar

from warpsmith.arrays import Array
from warpsmith.backends.cpu import jit as llvm_jit
from warpsmith.backends.cpu import lowering as cpu
from warpsmith.backends.nvptx import ptxas
from warpsmith.backends.nvptx.codegen import PtxBatch, ptx_from_llvm
from warpsmith.compiler.keys import kernel_key
from warpsmith.compiler.lowering import LoweredKernel, architecture, lower_fusion
from warpsmith.compiler.plans import kernel_infos, runtime_plan
from warpsmith.devices import Device, device
from warpsmith.emitters.choose import choose
from warpsmith.errors import ToolMissing, UnsupportedFusion, UsageError, did_you_mean
from warpsmith.fusion.analysis import analyze
from warpsmith.fusion.support import KERNEL_OPS
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule
from warpsmith.hlo.opcodes import OPCODES
from warpsmith.hlo.verifier import verify_module
from warpsmith.hlo_passes.scatter_order import keep_order, keeps_order
from warpsmith.hlo_passes.tree_reduction import split_reductions
from warpsmith.hlo_passes.wrap import wrap
from warpsmith.library.host import host_function
from warpsmith.numerics.modes import mode
from warpsmith.runtime.cache import Cache, default_cache
from warpsmith.runtime.cpu_executable import ArgSpec, CpuKernel, KernelLoader
from warpsmith.runtime.executable import Executable
from warpsmith.runtime.plan import Plan
from warpsmith.schedule.schedule import Schedule, make_schedule

__all__ = [
    "check_stage",
    "compile",
    "distinct_fusions",
    "kernel_steps",
    "scheduled",
    "stage_bytes",
    "stage_names",
    "stage_text",
    "time_passes",
]


def scheduled(module: HloModule, target: Device, *, deterministic: bool = False) -> tuple[HloModule, Schedule]:
    """The wrapped module and its plan; InvalidHlo for a module that means nothing.

    `deterministic`: scatters keep the order of their updates where it shows.
    """
    verify_module(module)
    if target.is_gpu:
        takes = _Takes(target)
        if deterministic:
            wrapped = keep_order(wrap(module, takes=lambda each: keeps_order(each) or takes(each)), target)
        else:
            wrapped = wrap(module, takes=takes)
    else:
        wrapped = wrap(module, host=_Lacking(target), takes=_Takes(target))
    split = split_reductions(wrapped, target)
    return split, make_schedule(split)


class _Takes:
    """Whether an emitter takes a fusion."""

    def __init__(self, target: Device) -> None:
        self.target = target

    def __call__(self, fusion: HloInstruction) -> bool:
        try:
            choose(analyze(fusion.attr("calls", HloComputation), self.target, fusion.name))
        except UnsupportedFusion:
            return False
        return True


class _Lacking:
    """The ops for which no emitter takes a fusion; whether there is one is asked only where an op is unusual."""

    def __init__(self, target: Device) -> None:
        self.target = target

    def __call__(self, fusion: HloInstruction) -> Collection[str]:
        body = fusion.attr("calls", HloComputation)
        unusual = {each.opcode for each in body if each.opcode in _UNUSUAL}
        if unusual:
            try:
                choose(analyze(body, self.target, fusion.name))
            except UnsupportedFusion:
                return unusual
        return ()


_UNUSUAL = (
    frozenset(OPCODES) - KERNEL_OPS - {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "fusion"}
)


def compile(
    module: HloModule,
    target: str = "cpu",
    *,
    numerics: str = "strict",
    cache: bool = True,
    trace: bool = False,
    deterministic: bool = False,
) -> Executable:
    """Compile a module for `target`: "cpu", "sm_80", "sm_90", "sm_100", or a device's name.

    Raises UnknownTarget, UnsupportedFusion (an op that no emitter takes), UnsupportedHlo (a host step that nothing
    computes; on the CPU), LoweringError (no form on the target).  With `cache` machine code for the CPU is looked up
    and kept on disk (PTX never is); with `trace` the executable's `trace` holds the IR after each pass.  With
    `deterministic` results repeat bit for bit on a GPU, too: scatters combine updates in order, or in steps whose order
    doesn't show.
    """
    mode(numerics)
    chosen = device(target)
    began = perf_counter()
    wrapped, schedule = scheduled(module, chosen, deterministic=deterministic)
    seconds: dict[str, float] = {"hlo": perf_counter() - began, "emit": 0.0, "passes": 0.0, "llvm": 0.0}
    fusions = distinct_fusions(schedule.kernel_fusions())
    builder = _GpuBuilder(chosen, len(fusions)) if chosen.is_gpu else _CpuBuilder(len(fusions), cache)
    builder.check(schedule)
    kernels: list[LoweredKernel] = []
    for fusion in fusions:
        kernel = lower_fusion(fusion, chosen, numerics=numerics, keep=trace)
        builder.add(kernel)
        kernels.append(kernel)
        for part, value in kernel.seconds.items():
            seconds[part] += value
    start = perf_counter()
    runtime = builder.plan(schedule, fusions, wrapped)
    seconds["llvm"] = perf_counter() - start
    artifacts: dict[str, Callable[[], str]] = {
        "hlo": lambda: str(wrapped),
        "emitted": lambda: _joined(_kept(fusions, chosen, numerics), "emitted_text"),
        "lowered": lambda: _joined(_kept(fusions, chosen, numerics), "lowered_text"),
        "llvm": lambda: "\n".join(k.llvm for k in kernels),
        **builder.artifacts(),
    }
    return Executable(
        runtime,
        kernel_infos(schedule, _shared(fusions, kernels)),
        artifacts,
        target=target,
        numerics=numerics,
        timings=seconds,
        trace=[step for kernel in kernels for step in [("emitted", kernel.emitted_text), *kernel.steps]]
        if trace
        else (),
        temporary_bytes=schedule.peak_bytes(),
    )


Distinct = Mapping[HloInstruction, Sequence[HloInstruction]]
"""One fusion of each kernel, and all that are the same kernel."""


def distinct_fusions(fusions: Sequence[HloInstruction]) -> Distinct:
    """The fusions by kernel: the first of each, and all that are alike."""
    alike: dict[Hashable, list[HloInstruction]] = {}
    for fusion in fusions:
        alike.setdefault(kernel_key(fusion), []).append(fusion)
    return {each[0]: each for each in alike.values()}


T = TypeVar("T")


def _shared(distinct: Distinct, values: Sequence[T]) -> dict[HloInstruction, T]:
    """Each fusion's value, from one a kernel."""
    return {each: value for alike, value in zip(distinct.values(), values, strict=True) for each in alike}


def _kept(fusions: Iterable[HloInstruction], target: Device, numerics: str) -> list[LoweredKernel]:
    """The kernels once more, with their texts: printing isn't paid for by those who don't ask."""
    return [lower_fusion(each, target, numerics=numerics, keep=True) for each in fusions]


def _joined(kernels: Sequence[LoweredKernel], attribute: str) -> str:
    return "\n".join(getattr(k, attribute) for k in kernels)


# ------------------------------------------------------------------------------------------------------------ builders
class _CpuBuilder:
    """Machine code for this computer, and the plan that runs it."""

    def __init__(self, expected: int, cache: bool) -> None:
        self.lowered: list[LoweredKernel] = []
        self.loader = KernelLoader(expected, cache=default_cache() if cache else Cache(None))

    def check(self, schedule: Schedule) -> None:
        """UnsupportedHlo for a host step that nothing computes, before time goes into kernels."""
        for step in schedule.all_steps():
            if step.kind == "host" and not step.in_place:
                host_function(step.instruction)

    def add(self, kernel: LoweredKernel) -> None:
        """Compilation starts here, in other processes when there is much of it."""
        self.lowered.append(kernel)
        self.loader.add(kernel.llvm)

    def plan(self, schedule: Schedule, fusions: Distinct, module: HloModule) -> Plan:
        kernels = [_cpu_kernel(k, code) for k, code in zip(self.lowered, self.loader.results(), strict=True)]
        return runtime_plan(schedule, _shared(fusions, kernels).__getitem__, module)

    def artifacts(self) -> dict[str, Callable[[], str]]:
        return {
            "llvm-opt": lambda: "\n".join(llvm_jit.optimize_ir(k.llvm) for k in self.lowered),
            "asm": lambda: "\n".join(llvm_jit.assembly(k.llvm) for k in self.lowered),
        }


def _cpu_kernel(kernel: LoweredKernel, code: llvm_jit.LoadedCode) -> CpuKernel:
    specs: list[ArgSpec] = []
    for a in kernel.emitted.arguments:
        dtype = a.dtype
        # A complex number is two reals, and numpy aligns it as one of them.
        alignment = max(1, dtype.bits // (16 if dtype.is_complex else 8))
        if a.is_output:
            alignment = cpu.output_alignment(a.byte_size, alignment, streams=kernel.streams)
        specs.append(ArgSpec(alignment, a.name))
    return CpuKernel(
        code,
        "main",
        kernel.emitted.launch.workgroups,
        specs,
        table_bytes=kernel.table_bytes,
        aliases=kernel.emitted.aliases,
    )


class _GpuBuilder:
    """PTX; a plan that says why it can't run."""

    def __init__(self, target: Device, expected: int) -> None:
        self.target = target
        self.sm = architecture(target)
        self.batch = PtxBatch(self.sm, expected)
        self.ptx: list[str] = []

    def check(self, schedule: Schedule) -> None:
        """Nothing runs here: a host step that nothing computes is only listed."""

    def add(self, kernel: LoweredKernel) -> None:
        self.batch.add(kernel.llvm)

    def plan(self, schedule: Schedule, fusions: Distinct, module: HloModule) -> Plan:
        self.ptx = self.batch.results()

        def refuse(_: Sequence[Array]) -> Sequence[Array]:
            raise ToolMissing(
                f"no CUDA driver is used yet: {self.target.title} code can be printed, not run",
                help='run it on the CPU (target="cpu")',
            )

        return runtime_plan(schedule, lambda _: refuse, module, host_of=lambda _: refuse)

    def artifacts(self) -> dict[str, Callable[[], str]]:
        return {
            "ptx": lambda: "\n".join(self.ptx),
            "sass": lambda: "\n".join(ptxas.disassemble(ptxas.assemble(p, self.sm).data) for p in self.ptx),
        }


# -------------------------------------------------------------------------------------------------------------- stages
def stage_names(target: Device) -> list[str]:
    """The stages that `--stage` knows on a target."""
    common = ["hlo", "emitted", "lowered", "llvm"]
    return [*common, "cuda", "ptx", "cubin", "sass"] if target.is_gpu else [*common, "llvm-opt", "asm"]


def check_stage(stage: str, target: Device) -> None:
    """UsageError, with the nearest name, for a stage that the target lacks."""
    names = stage_names(target)
    if stage not in names:
        raise UsageError(
            f"target {target.name} has no stage '{stage}'",
            help=did_you_mean(stage, names) or f"its stages: {', '.join(names)}",
        )


def kernel_steps(
    module: HloModule, target: str, *, numerics: str = "strict", generic: bool = False, deterministic: bool = False
) -> list[tuple[str, LoweredKernel]]:
    """Each kernel's fusion name and its IR after emission and after each pass, as text."""
    chosen = device(target)
    mode(numerics)
    _, schedule = scheduled(module, chosen, deterministic=deterministic)
    return [
        (each.name, lower_fusion(each, chosen, numerics=numerics, keep=True, generic=generic))
        for each in distinct_fusions(schedule.kernel_fusions())
    ]


_TEXTS = {"emitted": "emitted_text", "lowered": "lowered_text", "llvm": "llvm"}
"""Stages before LLVM, and where a kernel keeps their text."""


def stage_text(
    module: HloModule,
    stage: str,
    target: str,
    *,
    numerics: str = "strict",
    generic: bool = False,
    cache: bool = True,
    deterministic: bool = False,
) -> str:
    """The text of a stage.  Raises what `compile` raises, and UsageError for a stage that the target lacks.

    Nothing after the stage is done: the IR of a kernel that LLVM refuses can be read.
    """
    chosen = device(target)
    check_stage(stage, chosen)
    mode(numerics)
    if stage not in ("hlo", "cuda", *_TEXTS):
        return compile(module, target, numerics=numerics, cache=cache, deterministic=deterministic).artifact(stage)
    wrapped, schedule = scheduled(module, chosen, deterministic=deterministic)
    if stage == "hlo":
        return str(wrapped)
    fusions = distinct_fusions(schedule.kernel_fusions())
    if stage == "cuda":
        from warpsmith.compiler.cuda_text import cuda_text  # a back end that is seldom asked for

        return cuda_text(fusions, chosen, numerics=numerics)
    keep = stage != "llvm"
    lowered = [lower_fusion(f, chosen, numerics=numerics, keep=keep, generic=generic) for f in fusions]
    return _joined(lowered, _TEXTS[stage])


def stage_bytes(module: HloModule, target: str, *, numerics: str = "strict", deterministic: bool = False) -> bytes:
    """The cubin of a module with one kernel.  Raises ToolMissing without ptxas, UsageError for several kernels."""
    exe = compile(module, target, numerics=numerics, deterministic=deterministic)
    count = sum(not k.host for k in exe.kernels)
    if count != 1:
        raise UsageError(f"the module has {count} kernels; a cubin holds one", help="print --stage ptx instead")
    return ptxas.assemble(exe.artifact("ptx"), architecture(device(target))).data


def time_passes(
    module: HloModule, target: str, *, numerics: str = "strict", deterministic: bool = False
) -> list[tuple[str, float]]:
    """(part, seconds) in order: emission, each pass, LLVM; summed over kernels.  The first, cold run isn't counted."""
    chosen = device(target)
    fusions = list(distinct_fusions(scheduled(module, chosen, deterministic=deterministic)[1].kernel_fusions()))
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
