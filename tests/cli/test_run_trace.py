"""`warpsmith run --trace` and `--step-limit`: what the reference interpreter made, and when it gives up."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from warpsmith.cli import main
from warpsmith.cli.npz import write_npz
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.report.run.values import summary, trace_values

LOOP = """HloModule loop
less {
  s = (s32[], f32[3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(LIMIT)
  ROOT r = pred[] compare(i, n), direction=LT
}
next {
  s = (s32[], f32[3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[3] get-tuple-element(s), index=1
  y = f32[3] add(x, x)
  ROOT t = (s32[], f32[3]) tuple(j, y)
}
ENTRY e {
  i = s32[] constant(0)
  x = f32[3] parameter(0)
  s = (s32[], f32[3]) tuple(i, x)
  l = (s32[], f32[3]) while(s), condition=less, body=next
  ROOT r = f32[3] get-tuple-element(l), index=1
}
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str, str]:
    """A loop of two rounds, one of two billion, and an input."""
    short, long, given = tmp_path / "short.hlo", tmp_path / "long.hlo", tmp_path / "in.npz"
    short.write_text(LOOP.replace("LIMIT", "2"))
    long.write_text(LOOP.replace("LIMIT", "2000000000"))
    write_npz(str(given), [np.array([1, np.nan, -3], np.float32)])
    return str(short), str(long), str(given)


def test_a_trace_has_a_line_for_each_value_of_each_round(
    files: tuple[str, str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", files[0], "--input", files[2], "--trace", "--iterations", "1", "--no-cache"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rounds = [line.split() for line in lines if line.startswith("y ")]
    assert rounds == [
        ["y", "f32[3]", "min", "-6", "max", "2", "nan", "1"],
        ["y", "f32[3]", "min", "-12", "max", "4", "nan", "1"],
    ]
    assert lines[0].split() == ["x", "f32[3]", "min", "-3", "max", "1", "nan", "1"]
    assert any(line.startswith("l{0} ") and "max 2" in line for line in lines)


def test_a_trace_leaves_the_json_alone(files: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", files[0], "--input", files[2], "--trace", "--json", "--iterations", "1", "--no-cache"]
    assert main(words) == 0
    output = capsys.readouterr()
    report = json.loads(output.out)
    assert report["kernel_launches"] == 3 + 2 * 2
    assert {row["computation"] for row in report["kernels"]} == {"less", "next"}
    assert sum(line.startswith("y ") for line in output.err.splitlines()) == 2


def test_a_loop_that_goes_on_too_long_is_an_error_with_its_place(
    files: tuple[str, str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Rather than a command that never comes back."""
    assert main(["run", files[1], "--step-limit", "5000", "--no-cache"]) == 2
    error = capsys.readouterr().err
    assert "error[WS0303]" in error
    assert "more than 5000 instructions" in error


def test_values_without_order_have_no_range() -> None:
    text = """HloModule m
ENTRY e {
  p = pred[2] parameter(0)
  c = c64[2] parameter(1)
  z = f32[0] parameter(2)
  t = token[] after-all()
  n = f32[1] parameter(3)
  ROOT r = (pred[2], c64[2], f32[0], token[], f32[1]) tuple(p, c, z, t, n)
}
"""
    module = parse_hlo(text)
    arrays = [np.array([True, False]), np.array([3 + 4j, 0], np.complex64), np.zeros(0, np.float32)]
    lines = list(trace_values(module, *arrays, np.array([np.nan], np.float32)))
    assert [line.split(None, 1)[1].split() for line in lines[:4]] == [
        ["pred[2]", "min", "0", "max", "1"],
        ["c64[2]", "min", "0", "max", "5", "nan", "0"],
        ["f32[0]"],
        ["f32[1]", "nan", "1"],
    ]
    assert summary(module.entry.instruction("z"), arrays[2]) == ["z                            f32[0]"]


NAN = """HloModule nan
f {
  p = f32[4] parameter(0)
  l = f32[4] log(p), metadata={op_name="jit(f)/log" source_file="model.py" source_line=12}
  ROOT q = f32[4] add(l, l)
}
ENTRY e {
  x = f32[4] parameter(0)
  n = f32[4] negate(x)
  ROOT s = f32[4] fusion(n), kind=kLoop, calls=f
}
"""


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (1.0, "first NaN: l (log), of operands without one, at <string>:4:3, from model.py:12 (jit(f)/log)"),
        (np.nan, "first NaN: in parameter 0, x, at <string>:8:3"),
    ],
)
def test_a_trace_names_the_first_nan_and_its_source(value: float, said: str) -> None:
    """Whoever looks for a NaN's origin would have to search all lines, or blame what a NaN came in with."""
    *_, last = trace_values(parse_hlo(NAN), np.full(4, value, np.float32))
    assert last == said


def test_a_trace_without_nans_names_none() -> None:
    """A line about NaNs would be said of values that have none."""
    assert not any("first NaN" in line for line in trace_values(parse_hlo(NAN), np.full(4, -1, np.float32)))
