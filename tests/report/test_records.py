"""Reports as data and as text: what scripts, people and notebooks get is one report."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

import warpsmith as ws
from warpsmith.errors import UsageError
from warpsmith.records import Record, plain
from warpsmith.report.run.checked_run import RunOptions
from warpsmith.report.words import byte_count, dims, folded
from warpsmith.runtime.plan import KernelInfo

MODULE = """HloModule m
ENTRY e {
  p = f32[4,8] parameter(0)
  ROOT n = f32[4,8] negate(p)
}
"""


@pytest.fixture(scope="module")
def report() -> ws.RunReport:
    return ws.run(ws.parse_hlo(MODULE), measure_copy=False, iterations=1)


def test_json_is_the_data_with_a_version(report: ws.RunReport) -> None:
    """Wrong: scripts that can't tell which keys to expect, or read something else than Python does."""
    assert json.loads(report.to_json()) == {"schema": 1, **json.loads(json.dumps(report.to_dict()))}


def test_plain_data_has_nothing_that_json_lacks() -> None:
    """Wrong: `Infinity` in a file that should be JSON."""
    assert plain({"a": (math.inf, 1.0), "b": [math.nan]}) == {"a": ["inf", 1.0], "b": ["nan"]}


def test_a_report_printed_is_what_the_command_prints(report: ws.RunReport) -> None:
    """Wrong: `print(ws.run(m))` that shows a dataclass, or colours where no terminal is."""
    lines = str(report).splitlines()
    assert lines[0] == "m  on cpu  numerics strict  match"
    assert [line for line in lines if line != line.rstrip() or "\x1b" in line] == []
    assert [line.split()[0] for line in lines[1:]] == ["kernel", "compile", "run", "memory", "error", "reference"]


def test_a_step_that_is_compared_with_itself_says_so(report: ws.RunReport) -> None:
    """Wrong: a match of a step that the reference's own code computed, and nothing that tells."""
    step = KernelInfo(
        "f", "", "", (0, 0, 0), (0, 0, 0), 0, host=True, opcode="fft", reason="a transform", unchecked=True
    )
    seen = replace(report, kernels=[step])
    assert "f = fft: a transform; unchecked: computed by the reference interpreter's own code" in str(seen)
    assert seen.to_dict()["kernels"][0]["unchecked"] is True
    assert "unchecked" not in str(report)


def test_colours_change_no_word(report: ws.RunReport) -> None:
    """Wrong: a terminal that is told something else than a file."""
    painted = report.text(color=True)
    bare = painted
    for code in ("1", "1;31", "1;32", "33", "36", "0"):
        bare = bare.replace(f"\x1b[{code}m", "")
    assert bare == str(report) != painted


@pytest.mark.parametrize("width", [50, 80, 120])
def test_lines_are_no_longer_than_the_terminal(report: ws.RunReport, width: int) -> None:
    """Wrong: lines that a terminal breaks in the middle of the labels' column."""
    report.notes[:] = ["a note of many words " * 12]
    assert max(map(len, report.text(width).splitlines())) <= width
    assert max(map(len, ws.explain(ws.parse_hlo(MODULE), "cpu").text(width).splitlines()[2:])) <= max(width, 60)


def test_notebooks_show_the_text_and_the_pictures(report: ws.RunReport) -> None:
    """Wrong: HTML that isn't escaped, or an explanation without its pictures."""

    @dataclass
    class Small(Record):
        text: str

        def __str__(self) -> str:
            return self.text

    assert "a &lt; b" in Small("a < b")._repr_html_()
    assert "numerics strict" in report._repr_html_()
    html = ws.explain(ws.parse_hlo(MODULE))._repr_html_()
    assert html.startswith("<pre")
    assert html.endswith("</svg>")


def test_an_option_that_there_is_not_says_which_is_near() -> None:
    """Wrong: a misspelt keyword that changes nothing, or a TypeError of an inner function."""
    with pytest.raises(UsageError, match="no option 'iteration'") as raised:
        ws.run(ws.parse_hlo(MODULE), np.zeros((4, 8), np.float32), iteration=3)
    assert "iterations" in str(raised.value)
    with pytest.raises(UsageError, match="no reference"):
        RunOptions(reference="nobody")


def test_sizes_and_lines_in_words() -> None:
    """Wrong: units off by a thousand, or a label column that moves."""
    assert [byte_count(n) for n in (999, 1000, 2_500_000, 10**9)] == ["999 B", "1.0 kB", "2.5 MB", "1.0 GB"]
    assert [dims((5, 1, 1)), dims((30, 2, 1)), dims((1, 1, 1))] == ["5", "30 x 2", "1"]
    assert list(folded([("a", "b c"), ("", "d")], 4, 80)) == ["  a   b c", "      d"]
