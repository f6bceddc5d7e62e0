"""Compile, run, compare: the main job, as data.

`run` gives a `RunReport`; `report/run/text.py` prints it, `RunReport.to_json` is what `warpsmith run --json` writes.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any, cast

import numpy as np

from warpsmith.arrays import Array
from warpsmith.compiler import compile
from warpsmith.compiler.simulated import simulated
from warpsmith.errors import SimulationError, UsageError, did_you_mean, require
from warpsmith.hlo.evaluator import evaluate, evaluate_with_limits
from warpsmith.hlo.evaluator.interpreter import array_leaves
from warpsmith.hlo.evaluator.machine import STEP_LIMIT
from warpsmith.hlo.module import HloModule
from warpsmith.hlo.shapes import Shape
from warpsmith.hlo.verifier import verify_instruction
from warpsmith.numerics.bounds import bound
from warpsmith.numerics.compare import Comparison, Tolerance, compare
from warpsmith.numerics.inputs import Profile, random_array
from warpsmith.runtime.bandwidth import copy_bandwidth
from warpsmith.runtime.executable import Executable, KernelInfo
from warpsmith.simt.core.results import LaunchResult

__all__ = ["OutputReport", "RunReport", "compiled", "random_inputs", "run"]


REFERENCES = ("interpreter", "none")
_A_PRIORI = "the bound that the documented accuracy of its ops gives"
_MIN_SECONDS = 0.2
_MAX_ITERATIONS = 100


@dataclass(frozen=True, slots=True)
class OutputReport:
    """One output leaf against its reference."""

    index: int
    shape: str
    comparison: Comparison


@dataclass(slots=True)
class RunReport:
    """All that `warpsmith run` says of one module.  Times are in milliseconds, bandwidth in GB/s (10^9 bytes).

    `kernel_ms` and `host_ms` are what kernels and host steps take of `time_ms`, loops and branches included, and
    `kernel_launches` and `host_calls` how often they run in a call.  `temporary_bytes` is the most memory that results
    and intermediate values take.  `bytes` counts each kernel's inputs and outputs once.  `copy_gbps` is this machine's
    copy bandwidth, measured in the same run.  `match` is None where there was no reference.  `unbounded` counts
    elements of which the reference knows no bound, since rounding errors may have grown without limit on the way: any
    value matches there.  `estimated` counts those whose bound is an estimate (`hlo/evaluator/bounds/estimate.py`).
    """

    module: str
    platform: str
    target: str
    numerics: str
    kernels: list[KernelInfo]
    compile_ms: float
    compile_parts_ms: dict[str, float]
    bytes: int
    time_ms: float | None = None
    kernel_ms: float = 0.0
    host_ms: float = 0.0
    kernel_launches: int = 0
    host_calls: int = 0
    temporary_bytes: int = 0
    gbps: float | None = None
    copy_gbps: float | None = None
    reference: str = "none"
    reference_ms: float | None = None
    match: bool | None = None
    tolerance: str = ""
    max_ulp: int | None = None
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    mismatches: int | None = None
    unbounded: int = 0
    estimated: int = 0
    seed: int = 0
    iterations: int = 0
    outputs: list[OutputReport] = field(default_factory=list[OutputReport])
    findings: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    def to_json(self) -> dict[str, Any]:
        """Plain data for `json.dumps`; infinities and NaN become strings."""
        plain = asdict(self)
        return _finite(plain)


def _finite(value: Any) -> Any:
    """Plain data without the floats that JSON lacks."""
    match value:
        case float() if not np.isfinite(value):
            return str(value)
        case dict():
            return {k: _finite(v) for k, v in cast("dict[str, Any]", value).items()}
        case list() | tuple():
            return [_finite(v) for v in cast("Sequence[Any]", value)]
        case _:
            return value


def parameter_shapes(module: HloModule) -> list[Shape]:
    """The array leaves of the entry's parameters, in order."""
    return [leaf for parameter in module.entry.parameters for leaf in array_leaves(parameter.shape)]


def random_inputs(module: HloModule, seed: int = 0) -> list[Array]:
    """Seeded input for every parameter leaf: normal, log-uniform, edge and small values mixed.

    Where a module sums or sorts, values are tame instead: among infinities and NaN every order of a sum is right.
    Raises InvalidHlo for a parameter that no memory could hold.
    """
    for parameter in module.entry.parameters:
        verify_instruction(parameter)
    orders = any(each.opcode in _ORDERED for each in module.instructions())
    profile = Profile.TAME if orders else Profile.MIXTURE
    shapes = enumerate(parameter_shapes(module))
    return [random_array(s.dtype, s.dims, seed=seed, parameter=i, profile=profile) for i, s in shapes]


_ORDERED = frozenset(
    ("reduce", "reduce-window", "dot", "convolution", "scatter", "select-and-scatter", "sort", "while", "cholesky")
)
"""Ops whose result on infinities and NaN depends on an order that HLO leaves open, or on rounding."""


def run(
    module: HloModule,
    *arrays: Any,
    target: str = "cpu",
    platform: str = "",
    stage: str = "buffers",
    numerics: str = "strict",
    seed: int = 0,
    iterations: int | None = None,
    reference: str = "interpreter",
    abs_error: float | None = None,
    rel_error: float | None = None,
    cache: bool = True,
    measure_copy: bool = True,
    results: list[Array] | None = None,
    step_limit: int = STEP_LIMIT,
    deterministic: bool = False,
) -> RunReport:
    """Compile `module`, call it (on `arrays`, or on seeded input), compare with the reference, time it.

    `iterations` timed calls (default: as many as fit in 0.2 s, at most 100, at least 3).  `results` receives the
    outputs.  Raises what `compile` and the executable raise; a difference is not an error but `match == False`.  The
    reference comes first and takes `step_limit` instructions at most, so that a loop without end is an error.
    `platform="sim"` simulates the kernels of the GPU `target` at `stage` ("buffers" or "ptx"): an access that a kernel
    may not make becomes a finding.  `deterministic` is as in `compile`.
    """
    if platform == "sim":
        start = perf_counter()
        launches: list[LaunchResult] = []
        options: dict[str, Any] = {"numerics": numerics, "stage": stage, "deterministic": deterministic}
        exe = simulated(module, target, launches=launches, **options)
        report = _of_executable(module, exe, perf_counter() - start)
        report.notes.append(f"simulated at stage {stage}; times are the simulator's, not a GPU's")
        return _simulated(report, module, exe, launches, arrays, seed, reference, (abs_error, rel_error), results)
    if reference not in REFERENCES:
        raise UsageError(f"no reference is called '{reference}'", help=did_you_mean(str(reference), REFERENCES))
    for name, number in (("iterations", iterations), ("step_limit", step_limit)):
        if number is not None and (int(number) != number or number < 1):
            raise UsageError(f"{name} is {number}; it is a whole number of at least 1")
    require(seed, int, "a seed is a whole number")
    start = perf_counter()
    exe = compile(module, target=target, numerics=numerics, cache=cache, deterministic=deterministic)
    report = _of_executable(module, exe, perf_counter() - start)
    report.reference, report.seed = reference, seed
    inputs: Sequence[Any] = arrays if arrays else random_inputs(module, seed)
    wanted = None
    if reference == "interpreter":
        start = perf_counter()
        wanted = _expected(module, inputs, abs_error, rel_error, step_limit)
        report.reference_ms = (perf_counter() - start) * 1e3
    found, clock = exe.profiled(*inputs)
    report.kernel_launches, report.host_calls = clock.kernels, clock.host_steps
    seconds = _timed(report, exe, inputs, iterations)
    report.gbps = report.bytes / seconds / 1e9 if seconds else None
    report.copy_gbps = copy_bandwidth() / 1e9 if measure_copy else None
    if wanted is not None:
        _compare(report, found, *wanted)
    if results is not None:
        results[:] = found
    return report


def _simulated(
    report: RunReport,
    module: HloModule,
    exe: Executable,
    launches: Sequence[LaunchResult],
    arrays: Sequence[Any],
    seed: int,
    reference: str,
    errors: tuple[float | None, float | None],
    results: list[Array] | None,
) -> RunReport:
    """One simulated call; what the simulator's checks find is in the report, not raised."""
    report.platform, report.reference, report.seed, report.iterations = "sim", reference, seed, 1
    inputs: Sequence[Any] = arrays if arrays else random_inputs(module, seed)
    start = perf_counter()
    try:
        found = exe(*inputs)
    except SimulationError as error:
        report.findings += [str(finding) for each in launches for finding in each.findings] or [str(error)]
        return report
    report.time_ms = (perf_counter() - start) * 1e3
    report.findings += [str(finding) for each in launches for finding in each.findings]
    if reference == "interpreter":
        start = perf_counter()
        wanted = _expected(module, inputs, *errors, STEP_LIMIT)
        report.reference_ms = (perf_counter() - start) * 1e3
        _compare(report, found, *wanted)
    if results is not None:
        results[:] = found
    return report


def compiled(module: HloModule, *, target: str, numerics: str = "strict", deterministic: bool = False) -> RunReport:
    """The report of a module that was compiled and not run."""
    start = perf_counter()
    exe = compile(module, target=target, numerics=numerics, deterministic=deterministic)
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
    module: HloModule,
    inputs: Sequence[Any],
    abs_error: float | None,
    rel_error: float | None,
    step_limit: int,
) -> tuple[list[Array], list[Tolerance]]:
    """The reference's results and what may differ from them: XLA's rule if asked for, else a-priori bounds."""
    if abs_error is not None or rel_error is not None:
        expected = evaluate(module, *inputs, step_limit=step_limit)
        return expected, [Tolerance(abs_error=abs_error, rel_error=rel_error)] * len(expected)
    expected, limits, estimated = evaluate_with_limits(module, *inputs, op_ulp_bound=bound, step_limit=step_limit)
    pairs = zip(limits, estimated, strict=True)
    return expected, [Tolerance(absolute=limit, estimated=int(guessed.sum())) for limit, guessed in pairs]


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
