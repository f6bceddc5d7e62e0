"""A run's report: data, and the text that a terminal or a notebook shows.

In: what `checked_run` measured.  Out: `RunReport`; `str()` has no colours, `text(color=True)` has those of a terminal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from warpsmith.numerics.compare import Comparison
from warpsmith.numerics.ulp import UNCOMPARABLE
from warpsmith.records import Record
from warpsmith.report.words import WIDTH, Line, byte_count, dims, folded
from warpsmith.runtime.executable import KernelInfo

__all__ = ["OutputReport", "RunReport"]


@dataclass(frozen=True, slots=True)
class OutputReport:
    """One output leaf against its reference.

    Of `compared` elements a match proves something (`compiler/generated.py`).
    """

    index: int
    shape: str
    comparison: Comparison
    compared: int


@dataclass(slots=True)
class RunReport(Record):
    """All that `warpsmith run` says of one module; `str()` is what it prints.

    Times are in milliseconds, bandwidth in GB/s (10^9 bytes).

    `kernel_ms` and `host_ms` are what kernels and host steps take of `time_ms`, loops and branches included, and
    `kernel_launches` and `host_calls` how often they run in a call.  `temporary_bytes` is the most memory that results
    and intermediate values take.  `bytes` counts each kernel's inputs and outputs once.  `copy_gbps` is this machine's
    copy bandwidth, measured in the same run.

    `match` is None where there was no reference, and where most elements of an output prove nothing, whatever they are:
    `vacuous` has the numbers of such outputs, and `compared` of all `elements` do prove something.  `max_share` is the
    largest error as a share of its bound.  `inputs` is "given", or the profile of generated input
    (`numerics/inputs.py`), which alone has a `seed`.  `unbounded` counts elements of which the reference knows no
    bound, since rounding errors may have grown without limit on the way: any value matches there.  `estimated` counts
    those whose bound is an estimate (`hlo/evaluator/bounds/estimate.py`).  `recorded_elements` counts what a snapshot's
    recorded result holds, where it was compared, and `recorded_mismatches` how many of them differ by more than two
    such bounds.
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
    elements: int = 0
    compared: int | None = None
    vacuous: list[int] = field(default_factory=list[int])
    max_share: float | None = None
    unbounded: int = 0
    estimated: int = 0
    recorded_elements: int | None = None
    recorded_mismatches: int | None = None
    inputs: str = "given"
    seed: int | None = None
    iterations: int = 0
    outputs: list[OutputReport] = field(default_factory=list[OutputReport])
    findings: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    @property
    def says_nothing(self) -> bool:
        """Whether there was a comparison that proves nothing."""
        return self.match is None and bool(self.outputs)

    def text(self, width: int = WIDTH, *, color: bool = False) -> str:
        """A short report: verdict, kernels, times, bandwidth, errors, in lines of at most `width` characters."""
        paint = _painted if color else _unpainted
        lines = list(folded(_lines(self), _LABEL, width))
        wrong = ("  finding",) if self.match else ("  finding", "  error")
        painted = [paint(line, _RED) if line.startswith(wrong) else line for line in lines]
        return "\n".join([_heading(self, paint), *painted])

    def __str__(self) -> str:
        return self.text()


_LABEL = 11
_MAX_KERNELS = 12
_BOLD, _RED, _GREEN, _YELLOW, _CYAN = "1", "1;31", "1;32", "33", "36"

Color = Callable[[str, str], str]


def _painted(text: str, code: str) -> str:
    """Text in one of a terminal's styles (ECMA-48, "Select graphic rendition")."""
    return f"\x1b[{code}m{text}\x1b[0m"


def _unpainted(text: str, code: str) -> str:
    return text


def _heading(report: RunReport, color: Color) -> str:
    verdicts = {True: ("match", _GREEN), False: ("DIFFERS", _RED), None: ("not compared", _YELLOW)}
    verdict = color(*(("NOTHING WAS COMPARED", _RED) if report.says_nothing else verdicts[report.match]))
    target = color(report.target, _CYAN)
    return f"{color(report.module, _BOLD)}  on {target}  numerics {report.numerics}  {verdict}"


def _lines(report: RunReport) -> Iterator[Line]:
    for host in (False, True):
        steps = [each for each in report.kernels if each.host == host]
        for each in steps[:_MAX_KERNELS]:
            yield "host" if host else "kernel", _kernel(each)
        if len(steps) > _MAX_KERNELS:
            yield "", f"... and {len(steps) - _MAX_KERNELS} more ({_counted(steps)} in all)"
    yield "compile", f"{report.compile_ms:.1f} ms{_parts(report)}"
    if report.time_ms is not None:
        yield "run", f"{report.time_ms:.3f} ms, median of {report.iterations}"
        if report.kernel_launches + report.host_calls > 1 or report.host_calls:
            yield "", _split(report)
    yield "memory", _memory(report)
    if report.outputs:
        yield from _errors(report)
        source = "given input" if report.seed is None else f"input seed {report.seed} ({report.inputs} values)"
        yield "reference", f"{report.reference}, {report.reference_ms or 0:.0f} ms, {source}"
    if report.recorded_elements is not None:
        count = f"differs in {report.recorded_mismatches} of {report.recorded_elements} elements"
        yield "recorded", f"result: {count if report.recorded_mismatches else 'agrees'}"
    for finding in report.findings:
        yield from (("finding" if not i else "", line) for i, line in enumerate(finding.splitlines()))
    for note in report.notes:
        yield "note", note


def _split(report: RunReport) -> str:
    """Where the time goes."""
    rest = max(0.0, (report.time_ms or 0.0) - report.kernel_ms - report.host_ms)
    return (
        f"{report.kernel_ms:.3f} ms in kernels ({report.kernel_launches} launches), "
        f"{report.host_ms:.3f} ms on the host ({report.host_calls} calls), {rest:.3f} ms between"
    )


def _counted(steps: Sequence[KernelInfo]) -> str:
    """`896 loop`, or `3 sort, 1 dot`: how many of each."""
    counts = Counter(each.opcode if each.host else each.emitter for each in steps)
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())


def _kernel(kernel: KernelInfo) -> str:
    where = f" in {kernel.computation}" if kernel.computation else ""
    if kernel.host:
        unchecked = "; unchecked: computed by the reference interpreter's own code" if kernel.unchecked else ""
        return f"{kernel.fusion} = {kernel.opcode}{where}: {kernel.reason}{unchecked}"
    variant = f" ({kernel.variant})" if kernel.variant else ""
    if kernel.block == (1, 1, 1) and kernel.shared_bytes == 0:
        launch = f"{kernel.grid[0]} work group{'' if kernel.grid[0] == 1 else 's'}"
    else:
        launch = f"grid {dims(kernel.grid)}, block {dims(kernel.block)}"
    shared = f", {kernel.shared_bytes} B shared" if kernel.shared_bytes else ""
    return f"{kernel.fusion}{where}: {kernel.emitter}{variant}, {launch}{shared}"


def _parts(report: RunReport) -> str:
    parts = ", ".join(f"{name} {ms:.1f}" for name, ms in report.compile_parts_ms.items())
    return f" ({parts})" if parts else ""


def _memory(report: RunReport) -> str:
    text = f"{byte_count(report.bytes)} moved"
    if report.kernel_launches + report.host_calls > 1:
        text += f", at most {byte_count(report.temporary_bytes)} at a time for results"
    if report.gbps is None:
        return text
    text += f", {report.gbps:.1f} GB/s"
    if report.copy_gbps:
        text += f", {report.gbps / report.copy_gbps:.0%} of this machine's copy ({report.copy_gbps:.1f} GB/s)"
    return text


def _errors(report: RunReport) -> Iterator[Line]:
    among = f"{report.compared} of {report.elements} elements compared"
    if report.match is not False and not report.max_ulp:
        yield "error", f"every bit agrees, {among}"
        return
    largest = f"abs {report.max_abs_error:.3g}, rel {report.max_rel_error:.3g}"
    if report.match is not False:
        yield "error", f"{_share(report)}, {among}; largest {largest}"
        yield "", f"the limit of an element is {report.tolerance}"
        return
    ulp = "NaN against a number" if report.max_ulp == UNCOMPARABLE else f"{report.max_ulp} ulp"
    wrong = f"{report.mismatches} of {report.elements} elements are not within {report.tolerance}"
    yield "error", f"{wrong}; largest {ulp}, {largest}"
    for output in report.outputs:
        c = output.comparison
        if not c.match:
            where = f"output {output.index} {output.shape} at {list(c.worst or ())}"
            yield "", f"{where}: {c.actual}, expected {c.expected}"


def _share(report: RunReport) -> str:
    """How far the worst element is on the way to its limit."""
    if report.max_share is None:
        return "each element within its limit"
    return f"the worst element's error is {report.max_share:.1%} of its limit"
