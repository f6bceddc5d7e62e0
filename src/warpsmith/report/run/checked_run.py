"""Compile, run, compare: the main job, as data.

In: a module, arrays, `RunOptions`.  Out: a `RunReport`.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from time import perf_counter
from typing import Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.compiler import compile
from warpsmith.compiler.generated import Evaluated, draw, informative, is_vacuous, output_types, unjudged
from warpsmith.compiler.simulated import simulated
from warpsmith.errors import ArgumentMismatch, SimulationError, UsageError, did_you_mean, require
from warpsmith.hlo.evaluator import evaluate, evaluate_with_limits
from warpsmith.hlo.evaluator.machine import STEP_LIMIT
from warpsmith.hlo.module import HloModule
from warpsmith.numerics.bounds import bound
from warpsmith.numerics.compare import Tolerance, compare
from warpsmith.report.run.run_report import OutputReport, RunReport
from warpsmith.runtime.bandwidth import copy_bandwidth
from warpsmith.runtime.executable import Executable
from warpsmith.simt.core.results import LaunchResult

__all__ = ["RunOptions", "compiled", "run"]


REFERENCES = ("interpreter", "none")
_A_PRIORI = "the bound that the documented accuracy of its ops gives"
_MIN_SECONDS = 0.2
_MAX_ITERATIONS = 100


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

    A difference is no error but `match == False`, and so is what the simulator finds (`findings`).  `match` is None,
    and `vacuous` says so, where no seeded input made most elements of each output comparable.  Raises InvalidHlo,
    UnknownTarget, UnsupportedFusion and LoweringError as `compile` does, ArgumentMismatch for arrays that don't fit,
    UsageError for an option that there isn't.
    """
    chosen = RunOptions.of(options)
    report, found = (_simulated if chosen.platform == "sim" else _on_cpu)(module, arrays, chosen)
    if results is not None and found is not None:
        results[:] = found
    return report


def _on_cpu(module: HloModule, arrays: Sequence[Any], options: RunOptions) -> tuple[RunReport, list[Array] | None]:
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
    inputs, wanted = _reference(report, module, arrays, options)
    found, clock = exe.profiled(*inputs)
    report.kernel_launches, report.host_calls = clock.kernels, clock.host_steps
    seconds = _timed(report, exe, inputs, options.iterations)
    report.gbps = report.bytes / seconds / 1e9 if seconds else None
    report.copy_gbps = copy_bandwidth() / 1e9 if options.measure_copy else None
    if wanted is not None:
        _compare(report, found, wanted)
        _compare_recorded(report, found, options.recorded, wanted.tolerances)
    return report, found


def _simulated(module: HloModule, arrays: Sequence[Any], options: RunOptions) -> tuple[RunReport, list[Array] | None]:
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
    report.platform, report.iterations = "sim", 1
    inputs, wanted = _reference(report, module, arrays, options)
    start = perf_counter()
    try:
        found = exe(*inputs)
    except SimulationError as error:
        report.findings += [str(finding) for each in launches for finding in each.findings] or [str(error)]
        return report, None
    report.time_ms = (perf_counter() - start) * 1e3
    report.findings += [str(finding) for each in launches for finding in each.findings]
    if wanted is not None:
        _compare(report, found, wanted)
        _compare_recorded(report, found, options.recorded, wanted.tolerances)
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


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The reference's results, what may differ from them, and how many elements of each output that tells apart."""

    expected: Sequence[Array]
    tolerances: list[Tolerance]
    compared: list[int]


def _reference(
    report: RunReport, module: HloModule, arrays: Sequence[Any], options: RunOptions
) -> tuple[Sequence[Any], _Wanted | None]:
    """The inputs, seeded unless given, and what they should give; None where nothing is to be compared."""
    report.reference = options.reference
    if not arrays:
        report.seed = options.seed
    if options.reference == "none":
        return arrays or unjudged(module, options.seed, options.numerics), None
    start, by_xla = perf_counter(), options.abs_error is not None or options.rel_error is not None

    def evaluated(inputs: Sequence[Any]) -> Evaluated:
        if not by_xla:
            return evaluate_with_limits(module, *inputs, op_ulp_bound=bound, step_limit=options.step_limit)
        found = evaluate(module, *inputs, step_limit=options.step_limit)
        # No bound says which zeros are exact.
        return found, [np.zeros(each.shape) for each in found], [np.ones(each.shape, np.bool_) for each in found]

    if arrays:
        results = evaluated(arrays)
        masks = [informative(*each) for each in zip(*results, output_types(module), strict=True)]
        inputs, compared = arrays, [int(mask.sum()) for mask in masks]
    else:
        drawn = draw(module, options.seed, evaluated, options.numerics)
        inputs, results, compared, report.inputs = drawn.arrays, drawn.evaluated, drawn.compared, drawn.profile.value
        report.vacuous = drawn.vacuous
    report.reference_ms = (perf_counter() - start) * 1e3
    expected, limits, estimated = results
    if by_xla:
        tolerances = [Tolerance(abs_error=options.abs_error, rel_error=options.rel_error)] * len(expected)
    else:
        pairs = zip(limits, estimated, strict=True)
        tolerances = [Tolerance(absolute=limit, estimated=int(guessed.sum())) for limit, guessed in pairs]
    return inputs, _Wanted(expected, tolerances, compared)


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


def _compare(report: RunReport, results: Sequence[Array], wanted: _Wanted) -> None:
    """Fill in the report's comparison."""
    tolerances = wanted.tolerances
    for i, (actual, expected, tolerance) in enumerate(zip(results, wanted.expected, tolerances, strict=True)):
        shape = f"{actual.dtype}[{','.join(map(str, actual.shape))}]"
        report.outputs.append(OutputReport(i, shape, compare(actual, expected, tolerance), wanted.compared[i]))
    found = [o.comparison for o in report.outputs]
    report.match = all(c.match for c in found) and (None if report.vacuous else True)
    report.tolerance = str(tolerances[0]) if tolerances and tolerances[0].is_xla else _A_PRIORI
    report.elements, report.compared = sum(c.elements for c in found), sum(wanted.compared)
    report.max_share = max((c.max_share for c in found if c.max_share is not None), default=None)
    report.max_ulp = max((c.max_ulp for c in found), default=0)
    report.max_abs_error = max((c.max_abs_error for c in found), default=0.0)
    report.max_rel_error = max((c.max_rel_error for c in found), default=0.0)
    report.mismatches = sum(c.mismatches for c in found)
    report.unbounded = sum(int(np.isinf(t.absolute).sum()) for t in tolerances)
    report.estimated = sum(t.estimated for t in tolerances)
    if report.estimated:
        report.tolerance += " or, where that is wide, an estimate"
        report.notes.append(
            f"the bounds of {report.estimated} of {report.elements} elements are estimates, from evaluations with "
            "random errors: sure ones would be wider than a hundredth of the element"
        )
    if report.unbounded:
        report.notes.append(
            f"{report.unbounded} of {report.elements} elements have no bound: rounding errors may grow without limit "
            "on their way, so any value matches; --abs-error and --rel-error compare them"
        )
    report.notes += _uncompared(report)


def _uncompared(report: RunReport) -> Iterator[str]:
    """Of which outputs a match says nothing, whoever made the inputs."""
    for output in report.outputs:
        elements = output.comparison.elements
        if is_vacuous(output.compared, elements):
            yield (
                f"of output {output.index}, {output.shape}, {elements - output.compared} of {elements} elements are "
                "infinite, NaN, zero by rounding, or no larger than their bounds: agreement there proves nothing"
                + ("; other inputs (--input) may" if output.index in report.vacuous else "")
            )
