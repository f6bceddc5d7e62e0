"""Compile, run, compare: the main job, as data.

In: a module, arrays, `RunOptions`.  Out: a `RunReport`.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from time import perf_counter
from typing import Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.compiler import compile
from warpsmith.compiler.simulated import simulated
from warpsmith.errors import ArgumentMismatch, SimulationError, UsageError, did_you_mean, require
from warpsmith.hlo.evaluator import evaluate, evaluate_with_limits
from warpsmith.hlo.evaluator.interpreter import array_leaves
from warpsmith.hlo.evaluator.machine import STEP_LIMIT
from warpsmith.hlo.module import HloModule
from warpsmith.hlo.shapes import Shape
from warpsmith.hlo.verifier import verify_instruction
from warpsmith.numerics.bounds import bound
from warpsmith.numerics.compare import Tolerance, compare
from warpsmith.numerics.inputs import Profile, random_array
from warpsmith.report.run.run_report import OutputReport, RunReport
from warpsmith.report.run.scatter_inputs import make_scatters_meet
from warpsmith.runtime.bandwidth import copy_bandwidth
from warpsmith.runtime.executable import Executable
from warpsmith.simt.core.results import LaunchResult

__all__ = ["RunOptions", "compiled", "random_inputs", "run"]


REFERENCES = ("interpreter", "none")
_A_PRIORI = "the bound that the documented accuracy of its ops gives"
_MIN_SECONDS = 0.2
_MAX_ITERATIONS = 100


def parameter_shapes(module: HloModule) -> list[Shape]:
    """The array leaves of the entry's parameters, in order."""
    return [leaf for parameter in module.entry.parameters for leaf in array_leaves(parameter.shape)]


def random_inputs(module: HloModule, seed: int = 0, numerics: str = "strict") -> list[Array]:
    """Seeded input for every parameter leaf: normal, log-uniform, edge and small values mixed.

    Where a module sums or sorts, values are tame instead: among infinities and NaN every order of a sum is right.
    Indices of scatters keep what the module promises; in strict numerics some of their sums are subnormal.
    Raises InvalidHlo for a parameter that no memory could hold.
    """
    for parameter in module.entry.parameters:
        verify_instruction(parameter)
    orders = any(each.opcode in _ORDERED for each in module.instructions())
    profile = Profile.TAME if orders else Profile.MIXTURE
    shapes = enumerate(parameter_shapes(module))
    arrays = [random_array(s.dtype, s.dims, seed=seed, parameter=i, profile=profile) for i, s in shapes]
    make_scatters_meet(module, arrays, seed=seed, subnormal=numerics == "strict")
    return arrays


_ORDERED = frozenset(
    ("reduce", "reduce-window", "dot", "convolution", "scatter", "select-and-scatter", "sort", "while", "cholesky")
)
"""Ops whose result on infinities and NaN depends on an order that HLO leaves open, or on rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How `run` compiles, calls and compares.

    `target` is "cpu" or, with `platform="sim"`, a GPU whose kernels are simulated at `stage` ("buffers" or "ptx"): an
    access that a kernel may not make becomes a finding.  `numerics`, `deterministic`,
    `pipeline` and `cache` are as in `compile`.
    `seed` makes the inputs that aren't given.  `iterations` timed calls (default: as many as fit in 0.2 s, at most 100,
    at least 3); `measure_copy` also times a copy of memory.  `reference` is "interpreter" or "none"; it takes
    `step_limit` instructions at most, so that a loop without end is an error.  With `abs_error` or `rel_error` XLA's
    rule is the tolerance, else a bound for each element.  `recorded` holds results that were recorded for these inputs,
    one array an output leaf; they are compared where the reference runs, too.
    """

    target: str = "cpu"
    platform: str = ""
    stage: str = "buffers"
    numerics: str = "strict"
    deterministic: bool = False
    pipeline: str = ""
    cache: bool = True
    seed: int = 0
    iterations: int | None = None
    measure_copy: bool = True
    reference: str = "interpreter"
    abs_error: float | None = None
    rel_error: float | None = None
    step_limit: int = STEP_LIMIT
    recorded: Sequence[Array] = ()

    def __post_init__(self) -> None:
        if self.reference not in REFERENCES:
            help = did_you_mean(str(self.reference), REFERENCES)
            raise UsageError(f"no reference is called '{self.reference}'", help=help)
        for name, number in (("iterations", self.iterations), ("step_limit", self.step_limit)):
            if number is not None and (int(number) != number or number < 1):
                raise UsageError(f"{name} is {number}; it is a whole number of at least 1")
        require(self.seed, int, "a seed is a whole number")

    @staticmethod
    def of(keywords: Mapping[str, Any]) -> RunOptions:
        """The options of a call's keyword arguments.  UsageError for a name that there isn't."""
        known = [each.name for each in fields(RunOptions)]
        for name in keywords:
            if name not in known:
                raise UsageError(f"`run` has no option '{name}'", help=did_you_mean(name, known))
        return RunOptions(**keywords)


def run(module: HloModule, *arrays: Any, results: list[Array] | None = None, **options: Any) -> RunReport:
    """Compile `module`, call it, compare with the reference, time it; keyword arguments are those of `RunOptions`.

    `arrays`: one for each array leaf of the entry's parameters, in order, in HLO's dtype and logical dims (numpy with
    ml_dtypes, or anything with `__dlpack__`); none for seeded input.  `results`, a list, receives the outputs.  Times
    are in milliseconds, bandwidths in GB/s, sizes in bytes.

    A difference is no error but `match == False`, and so is what the simulator finds (`findings`).  Raises InvalidHlo,
    UnknownTarget, UnsupportedFusion and LoweringError as `compile` does, ArgumentMismatch for arrays that don't fit,
    UsageError for an option that there isn't.
    """
    chosen = RunOptions.of(options)
    inputs: Sequence[Any] = arrays if arrays else random_inputs(module, chosen.seed, chosen.numerics)
    report, found = (_simulated if chosen.platform == "sim" else _on_cpu)(module, inputs, chosen)
    if results is not None and found is not None:
        results[:] = found
    return report


def _on_cpu(module: HloModule, inputs: Sequence[Any], options: RunOptions) -> tuple[RunReport, list[Array] | None]:
    """The reference comes first, so that what never ends is an error of its step limit."""
    start = perf_counter()
    exe = compile(
        module,
        target=options.target,
        numerics=options.numerics,
        cache=options.cache,
        deterministic=options.deterministic,
        pipeline=options.pipeline,
    )
    report = _of_executable(module, exe, perf_counter() - start)
    report.reference, report.seed = options.reference, options.seed
    wanted = _expected(report, module, inputs, options)
    found, clock = exe.profiled(*inputs)
    report.kernel_launches, report.host_calls = clock.kernels, clock.host_steps
    seconds = _timed(report, exe, inputs, options.iterations)
    report.gbps = report.bytes / seconds / 1e9 if seconds else None
    report.copy_gbps = copy_bandwidth() / 1e9 if options.measure_copy else None
    if wanted is not None:
        _compare(report, found, *wanted)
        _compare_recorded(report, found, options.recorded, wanted[1])
    return report, found


def _simulated(module: HloModule, inputs: Sequence[Any], options: RunOptions) -> tuple[RunReport, list[Array] | None]:
    """One simulated call; what the simulator's checks find is in the report, not raised."""
    start = perf_counter()
    launches: list[LaunchResult] = []
    exe = simulated(
        module,
        options.target,
        launches=launches,
        numerics=options.numerics,
        stage=options.stage,
        deterministic=options.deterministic,
        pipeline=options.pipeline,
    )
    report = _of_executable(module, exe, perf_counter() - start)
    report.notes.append(f"simulated at stage {options.stage}; times are the simulator's, not a GPU's")
    report.platform, report.reference, report.seed, report.iterations = "sim", options.reference, options.seed, 1
    start = perf_counter()
    try:
        found = exe(*inputs)
    except SimulationError as error:
        report.findings += [str(finding) for each in launches for finding in each.findings] or [str(error)]
        return report, None
    report.time_ms = (perf_counter() - start) * 1e3
    report.findings += [str(finding) for each in launches for finding in each.findings]
    wanted = _expected(report, module, inputs, options)
    if wanted is not None:
        _compare(report, found, *wanted)
        _compare_recorded(report, found, options.recorded, wanted[1])
    return report, found


def compiled(
    module: HloModule, *, target: str, numerics: str = "strict", deterministic: bool = False, pipeline: str = ""
) -> RunReport:
    """The report of a module that was compiled and not run."""
    start = perf_counter()
    exe = compile(module, target=target, numerics=numerics, deterministic=deterministic, pipeline=pipeline)
    return _of_executable(module, exe, perf_counter() - start)


def _of_executable(module: HloModule, exe: Executable, seconds: float) -> RunReport:
    return RunReport(
        module=module.name,
        platform="cpu" if exe.target == "cpu" else "cuda",
        target=exe.target,
        numerics=exe.numerics,
        kernels=list(exe.kernels),
        compile_ms=seconds * 1e3,
        compile_parts_ms={name: s * 1e3 for name, s in exe.timings.items()},
        bytes=exe.bytes_moved,
        temporary_bytes=exe.temporary_bytes,
    )


def _timed(report: RunReport, exe: Executable, inputs: Sequence[Any], iterations: int | None) -> float:
    """Fill in medians over many calls; the seconds of one."""
    times: list[tuple[float, float, float]] = []
    began = perf_counter()
    while True:
        start = perf_counter()
        results, kernel_seconds, host_seconds = exe.timed(*inputs)
        times.append((perf_counter() - start, kernel_seconds, host_seconds))
        del results
        count = len(times)
        if count >= (iterations or _MAX_ITERATIONS) or (
            iterations is None and count >= 3 and perf_counter() - began > _MIN_SECONDS
        ):
            break
    seconds, kernels, host = (statistics.median(column) for column in zip(*times, strict=True))
    report.time_ms, report.kernel_ms, report.host_ms = seconds * 1e3, kernels * 1e3, host * 1e3
    report.iterations = count
    return seconds


def _expected(
    report: RunReport, module: HloModule, inputs: Sequence[Any], options: RunOptions
) -> tuple[list[Array], list[Tolerance]] | None:
    """The reference's results and what may differ from them: XLA's rule if asked for, else a-priori bounds."""
    if options.reference == "none":
        return None
    start, limit = perf_counter(), options.step_limit
    if options.abs_error is not None or options.rel_error is not None:
        expected = evaluate(module, *inputs, step_limit=limit)
        tolerances = [Tolerance(abs_error=options.abs_error, rel_error=options.rel_error)] * len(expected)
    else:
        expected, limits, estimated = evaluate_with_limits(module, *inputs, op_ulp_bound=bound, step_limit=limit)
        pairs = zip(limits, estimated, strict=True)
        tolerances = [Tolerance(absolute=limit, estimated=int(guessed.sum())) for limit, guessed in pairs]
    report.reference_ms = (perf_counter() - start) * 1e3
    return expected, tolerances


def _compare_recorded(
    report: RunReport, results: Sequence[Array], recorded: Sequence[Array], tolerances: Sequence[Tolerance]
) -> None:
    """Both results may be a bound away from the exact one."""
    if not recorded:
        return
    if len(recorded) != len(results):
        raise ArgumentMismatch(f"the module has {len(results)} outputs, the recorded result {len(recorded)}")
    found = [
        compare(actual, wanted, replace(tolerance, absolute=tolerance.absolute * 2))
        for actual, wanted, tolerance in zip(results, recorded, tolerances, strict=True)
    ]
    report.recorded_elements = sum(each.elements for each in found)
    report.recorded_mismatches = sum(each.mismatches for each in found)


def _compare(
    report: RunReport, results: Sequence[Array], expected: Sequence[Array], tolerances: Sequence[Tolerance]
) -> None:
    """Fill in the report's comparison."""
    for i, (actual, wanted, tolerance) in enumerate(zip(results, expected, tolerances, strict=True)):
        shape = f"{actual.dtype}[{','.join(map(str, actual.shape))}]"
        report.outputs.append(OutputReport(i, shape, compare(actual, wanted, tolerance)))
    found = [o.comparison for o in report.outputs]
    report.match = all(c.match for c in found)
    report.tolerance = str(tolerances[0]) if tolerances and tolerances[0].is_xla else _A_PRIORI
    report.max_ulp = max((c.max_ulp for c in found), default=0)
    report.max_abs_error = max((c.max_abs_error for c in found), default=0.0)
    report.max_rel_error = max((c.max_rel_error for c in found), default=0.0)
    report.mismatches = sum(c.mismatches for c in found)
    report.unbounded = sum(int(np.isinf(t.absolute).sum()) for t in tolerances)
    report.estimated = sum(t.estimated for t in tolerances)
    if report.estimated:
        report.tolerance += " or, where that is wide, an estimate"
    whole = sum(each.size for each in expected)
    if report.estimated:
        report.notes.append(
            f"the bounds of {report.estimated} of {whole} elements are estimates, from evaluations with random errors: "
            "sure ones would be wider than a hundredth of the element"
        )
    if report.unbounded:
        report.notes.append(
            f"{report.unbounded} of {whole} elements have no bound: rounding errors may grow without limit on their "
            "way, so any value matches; --abs-error and --rel-error compare them"
        )
