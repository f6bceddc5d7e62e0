"""A run's report as text for a terminal.

In: a `RunReport`.  Out: lines printed with rich (colours only on a terminal).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from warpsmith.numerics.ulp import UNCOMPARABLE
from warpsmith.report.run.checked_run import RunReport
from warpsmith.runtime.executable import KernelInfo

__all__ = ["print_run"]


def print_run(report: RunReport, console: Console) -> None:
    """Print a short report: verdict, kernels, times, bandwidth, errors."""
    console.print(_title(report))
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for host in (False, True):
        steps = [each for each in report.kernels if each.host == host]
        for each in steps[:_MAX_KERNELS]:
            table.add_row("host" if host else "kernel", _kernel(each))
        if len(steps) > _MAX_KERNELS:
            table.add_row("", f"... and {len(steps) - _MAX_KERNELS} more ({_counted(steps)} in all)")
    table.add_row("compile", f"{report.compile_ms:.1f} ms{_parts(report)}")
    if report.time_ms is not None:
        table.add_row("run", f"{report.time_ms:.3f} ms, median of {report.iterations}")
        if report.kernel_launches + report.host_calls > 1 or report.host_calls:
            table.add_row("", _split(report))
    table.add_row("memory", _memory(report))
    if report.match is not None:
        table.add_row("error", _error(report))
        table.add_row("reference", f"{report.reference}, {report.reference_ms or 0:.0f} ms, input seed {report.seed}")
    for finding in report.findings:
        table.add_row("finding", Text(finding, style="red"))
    for note in report.notes:
        table.add_row("note", note)
    console.print(table)


_MAX_KERNELS = 12


def _title(report: RunReport) -> Text:
    verdicts = {True: ("match", "bold green"), False: ("DIFFERS", "bold red"), None: ("not compared", "yellow")}
    word, style = verdicts[report.match]
    return Text.assemble(
        (report.module, "bold"), "  on ", (report.target, "cyan"), f"  numerics {report.numerics}  ", (word, style)
    )


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
        return f"{kernel.fusion} = {kernel.opcode}{where}: {kernel.reason}"
    variant = f" ({kernel.variant})" if kernel.variant else ""
    if kernel.block == (1, 1, 1) and kernel.shared_bytes == 0:
        launch = f"{kernel.grid[0]} work groups"
    else:
        launch = f"grid {_dims(kernel.grid)}, block {_dims(kernel.block)}"
    shared = f", {kernel.shared_bytes} B shared" if kernel.shared_bytes else ""
    return f"{kernel.fusion}{where}: {kernel.emitter}{variant}, {launch}{shared}"


def _dims(dims: tuple[int, int, int]) -> str:
    """`24576`, or `30 x 2` when there is more than x."""
    last = max((i for i, d in enumerate(dims) if d != 1), default=0)
    return " x ".join(map(str, dims[: last + 1]))


def _parts(report: RunReport) -> str:
    parts = ", ".join(f"{name} {ms:.1f}" for name, ms in report.compile_parts_ms.items())
    return f" ({parts})" if parts else ""


def _memory(report: RunReport) -> str:
    text = f"{_bytes(report.bytes)} moved"
    if report.kernel_launches + report.host_calls > 1:
        text += f", at most {_bytes(report.temporary_bytes)} at a time for results"
    if report.gbps is None:
        return text
    text += f", {report.gbps:.1f} GB/s"
    if report.copy_gbps:
        text += f", {report.gbps / report.copy_gbps:.0%} of this machine's copy ({report.copy_gbps:.1f} GB/s)"
    return text


def _bytes(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


def _error(report: RunReport) -> Text:
    ulp = "NaN against a number" if report.max_ulp == UNCOMPARABLE else f"{report.max_ulp} ulp"
    largest = f"largest {ulp}, abs {report.max_abs_error:.3g}, rel {report.max_rel_error:.3g}"
    if report.match:
        if report.max_ulp == 0:
            return Text("largest 0 ulp: every bit agrees")
        return Text(f"{largest}; each element within {report.tolerance}")
    lines = [f"{report.mismatches} elements are not within {report.tolerance}; {largest}"]
    for output in report.outputs:
        c = output.comparison
        if not c.match:
            lines.append(
                f"output {output.index} {output.shape} at {list(c.worst or ())}: {c.actual}, expected {c.expected}"
            )
    return Text("\n".join(lines), style="red")
