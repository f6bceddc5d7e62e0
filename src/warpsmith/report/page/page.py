"""The dump as one page: HLO, every pass with its change, and the code with each line tied to its line of HLO.

In: a module, its lowered kernels (with their texts kept), and the code of the last stage.  Out: HTML that needs nothing
else: no network, no other file.  Lines of LLVM IR know their line of HLO by `!dbg`, lines of PTX by `.loc`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from warpsmith.compiler import LoweredKernel
from warpsmith.hlo.module import HloModule
from warpsmith.report.page.assets import SCRIPT, STYLE

__all__ = ["Code", "page"]

Lines = Iterator[tuple[str, int | None]]
"""Lines of text, each with the line of HLO that it comes from, if that is known."""

_MOST_DIFF_LINES = 4000


@dataclass(frozen=True, slots=True)
class Code:
    """The text of the last stage: "PTX" or "assembly"."""

    title: str
    text: str


def page(
    module: HloModule, target: str, numerics: str, kernels: Sequence[tuple[str, LoweredKernel]], code: Code
) -> str:
    """The page, as text.  `kernels` are (fusion, kernel) in the order of the plan."""
    title = escape(f"{module.name} for {target}")
    body = "".join(_kernel(name, kernel) for name, kernel in kernels) or "<p>No kernel: the host runs all of it.</p>"
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f'<meta name="viewport" content="width=device-width">\n<style>{STYLE}</style>\n</head>\n<body>\n'
        f"<header><h1>{title}</h1><p>{_summary(kernels, numerics)}</p></header>\n"
        f'<main>\n<section id="source"><h2>HLO</h2>{_source(module)}</section>\n'
        f'<section id="kernels">{body}{_last(code)}</section>\n</main>\n'
        f"<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def _summary(kernels: Sequence[tuple[str, LoweredKernel]], numerics: str) -> str:
    seconds = sum(kernel.emission_seconds + kernel.seconds for _, kernel in kernels)
    count = f"{len(kernels)} kernel{'' if len(kernels) == 1 else 's'}"
    time = f"{seconds * 1e3:.1f} ms to emit and lower"
    return f"{count}, {escape(numerics)} numerics, {time}. Click a line to see what belongs to it."


# ----------------------------------------------------------------------------------------------------------------- HLO
def _source(module: HloModule) -> str:
    """The text as it was written, if it was; else as the printer gives it, of which no line is known."""
    origin = next((each.origin for each in module.instructions() if each.origin is not None), None)
    if origin is None:
        return _pre((line, None) for line in str(module).splitlines())
    lines = origin.source.text.splitlines()
    return _pre(((line, number) for number, line in enumerate(lines, 1)), anchor="hlo-")


# ------------------------------------------------------------------------------------------------------------- kernels
def _kernel(name: str, kernel: LoweredKernel) -> str:
    facts = kernel.kernel
    rows = [
        ("emitter", f"{facts.origin.emitter}{f', {facts.origin.variant}' if facts.origin.variant else ''}"),
        ("grid", _dims(facts.launch.grid)),
        ("block", _dims(facts.launch.block)),
        ("shared memory", f"{facts.launch.shared_bytes:,} bytes"),
        ("index width", f"{facts.launch.index_bits} bits"),
    ]
    table = "".join(f"<tr><th>{label}</th><td>{escape(value)}</td></tr>" for label, value in rows)
    llvm = kernel.code.count("\n")
    return (
        f"<h2>{escape(name)}</h2><table>{table}</table>{_steps(kernel)}"
        f'<details><summary class="text">LLVM IR <span class="soft">{llvm:,} lines</span></summary>'
        f"{_pre(_llvm_lines(kernel.code), link=True)}</details>"
    )


def _dims(dims: Sequence[int]) -> str:
    return " x ".join(f"{each:,}" for each in dims)


def _steps(kernel: LoweredKernel) -> str:
    """A line a pass; those in a row that changed nothing share one."""
    slowest = max((seconds for _, seconds in kernel.pass_seconds), default=0.0)
    ops = kernel.step_ops
    parts = [
        f'<details><summary><span class="num">0</span><span class="name">emitted</span>'
        f'<span class="num time">{kernel.emission_seconds * 1e3:.2f} ms</span>'
        f'<span class="num">{_count(ops, 0):,} ops</span><span></span></summary>'
        f"{_pre((line, None) for line in kernel.emitted_text().splitlines())}</details>"
    ]
    before = kernel.emitted_text()
    idle: list[str] = []
    for number, ((name, text), (_, seconds)) in enumerate(zip(kernel.steps, kernel.pass_seconds, strict=True), 1):
        if text == before:
            idle.append(name)
            continue
        parts.append(_idle(idle))
        idle = []
        parts.append(
            _step(number, name, seconds, slowest, (_count(ops, number - 1), _count(ops, number)), before, text)
        )
        before = text
    parts.append(_idle(idle))
    parts.append(
        f'<details><summary class="text">IR after the last pass <span class="soft">{before.count(chr(10)):,} lines'
        f"</span></summary>{_pre((line, None) for line in before.splitlines())}</details>"
    )
    return "".join(parts)


def _count(ops: Sequence[int], step: int) -> int:
    return ops[step] if step < len(ops) else 0


def _idle(names: Sequence[str]) -> str:
    return f'<div class="same">unchanged by {escape(", ".join(names))}</div>' if names else ""


def _step(number: int, name: str, seconds: float, slowest: float, ops: tuple[int, int], before: str, after: str) -> str:
    diff = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2))[2:]
    plus, minus = (sum(line.startswith(sign) for line in diff) for sign in "+-")
    width = 100 * seconds / slowest if slowest else 0
    return (
        f'<details><summary><span class="num">{number}</span><span class="name">{escape(name)}</span>'
        f'<span class="num time">{seconds * 1e3:.2f} ms<i style="width:{width:.0f}%"></i></span>'
        f'<span class="num">{ops[1]:,} ops ({ops[1] - ops[0]:+,})</span>'
        f'<span class="num"><span class="plus">+{plus:,}</span> <span class="minus">-{minus:,}</span> lines</span>'
        f"</summary>{_diff(diff)}</details>"
    )


_KINDS = {"+": "plus", "-": "minus", "@": "hunk"}


def _diff(lines: Sequence[str]) -> str:
    shown = [
        f'<span class="{_KINDS[line[0]]}">{escape(line)}</span>' if line[:1] in _KINDS else escape(line)
        for line in lines[:_MOST_DIFF_LINES]
    ]
    if len(lines) > _MOST_DIFF_LINES:
        shown.append(
            f'<span class="soft">{len(lines) - _MOST_DIFF_LINES:,} more lines: compare the dumped files</span>'
        )
    return f"<pre>{chr(10).join(shown)}</pre>"


# ---------------------------------------------------------------------------------------------------------------- code
def _last(code: Code) -> str:
    lines = _READERS.get(code.title, _unknown)(code.text)
    return (
        f'<h2>Code</h2><details open><summary class="text">{code.title} '
        f'<span class="soft">{code.text.count(chr(10)):,} lines</span></summary>{_pre(lines, link=True)}</details>'
    )


_DEBUG_USE = re.compile(r"!dbg !(\d+)")
_DEBUG_LOCATION = re.compile(r"^!(\d+) = !DILocation\(line: (\d+)", re.MULTILINE)
_LOC = re.compile(r"^\s*\.loc\s+\d+\s+(\d+)")


def _llvm_lines(text: str) -> Lines:
    known = {match[1]: int(match[2]) for match in _DEBUG_LOCATION.finditer(text)}
    for line in text.splitlines():
        use = _DEBUG_USE.search(line)
        yield line, known.get(use[1]) if use is not None else None


def _ptx_lines(text: str) -> Lines:
    """`.loc` holds for the instructions after it, up to the next one or the end of the function."""
    current: int | None = None
    for line in text.splitlines():
        place = _LOC.match(line)
        if place is not None:
            current = int(place[1]) or None
        elif line.startswith("}"):
            current = None
        yield line, current


def _unknown(text: str) -> Lines:
    for line in text.splitlines():
        yield line, None


_READERS: dict[str, Callable[[str], Lines]] = {"PTX": _ptx_lines}


def _pre(lines: Iterable[tuple[str, int | None]], *, anchor: str = "", link: bool = False) -> str:
    """Numbered lines.  With `anchor` they can be linked to; with `link` they lead to their lines of HLO."""
    shown: list[str] = []
    for number, (line, source) in enumerate(lines, 1):
        gutter = f'<span class="n">{number}</span>'
        if link and source is not None:
            gutter = f'<a class="n" href="#hlo-{source}" title="HLO line {source}">{number}</a>'
        mark = "" if source is None else f' data-h="{source}"'
        place = f' id="{anchor}{number}"' if anchor else ""
        shown.append(f"<span{place}{mark}>{gutter}{escape(line)}</span>" if mark or place else gutter + escape(line))
    return f"<pre>{chr(10).join(shown)}</pre>"
