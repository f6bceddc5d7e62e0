"""`warpsmith indexing`: the maps that it prints, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from warpsmith.cli import main
from warpsmith.indexing import parse_map

HLO = """HloModule m

ENTRY e {
  x = f32[20,40] parameter(0)
  start = s32[] parameter(1)
  t = f32[40,20] transpose(x), dimensions={1,0}
  r = f32[800] reshape(t)
  d = f32[100] dynamic-slice(r, start), dynamic_slice_sizes={100}
  ROOT out = (f32[100], f32[40,20]) tuple(d, t)
}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "m.hlo"
    path.write_text(HLO)
    return str(path)


def output(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["indexing", *words]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return shown.out


def test_every_instruction_has_its_line_and_its_maps(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert output([file], capsys) == (
        "e:\n"
        "  %x = f32[20,40] parameter(0)\n"
        "  %start = s32[] parameter(1)\n"
        "  %t = f32[40,20] transpose(%x), dimensions={1,0}\n"
        "    operand 0 (x): (d0, d1) -> (d1, d0), domain: d0 in [0, 39], d1 in [0, 19]\n"
        "  %r = f32[800] reshape(%t)\n"
        "    operand 0 (t): (d0) -> (d0 floordiv 20, d0 mod 20), domain: d0 in [0, 799]\n"
        "  %d = f32[100] dynamic-slice(%r, %start), dynamic_slice_sizes={100}\n"
        "    operand 0 (r): (d0){rt0} -> (d0 + rt0), domain: d0 in [0, 99], rt0 in [0, 700]\n"
        "    operand 1 (start): (d0) -> (), domain: d0 in [0, 99]\n"
        "    rt0 is read from operand 1 at (d0) -> (), domain: d0 in [0, 99]\n"
        "  %out = (f32[100], f32[40,20]) tuple(%d, %t)\n"
        "    operand 0 (d): unknown\n"
        "    operand 1 (t): unknown\n"
    )


@pytest.mark.parametrize("name", ["r", "%r"])
def test_one_instruction_can_be_asked_for(name: str, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert output([file, "--instruction", name, "--style", "xla"], capsys) == (
        "e:\n  %r = f32[800] reshape(%t)\n    operand 0 (t): (d0) -> (d0 / 20, d0 mod 20), domain: d0 in [0, 799]\n"
    )


def test_json_holds_the_same_maps(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(output([file, "--json"], capsys))
    assert data["module"] == "m"
    (computation,) = data["computations"]
    rows = {row["name"]: row for row in computation["instructions"]}
    assert list(rows) == ["x", "start", "t", "r", "d", "out"]
    assert rows["t"]["opcode"] == "transpose"
    assert rows["t"]["shape"] == "f32[40,20]"
    (operand,) = rows["t"]["operands"]
    assert operand["name"] == "x"
    # The text in the JSON is a map that can be read back: element [3, 7] of the result is element [7, 3] of x.
    assert parse_map(operand["maps"][0]) == parse_map("(d0, d1) -> (d1, d0), domain: d0 in [0, 39], d1 in [0, 19]")
    assert [(row["name"], row["operand"]) for row in rows["d"]["runtime_variables"]] == [("rt0", 1)]
    assert [operand["maps"] for operand in rows["out"]["operands"]] == [[], []]


def test_a_fusion_has_the_maps_of_its_whole_body(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Reversing twice along a transpose reads x once, at the transposed index."""
    path = tmp_path / "f.hlo"
    path.write_text(
        "HloModule m\n\nbody {\n  p = f32[4,8] parameter(0)\n  r = f32[4,8] reverse(p), dimensions={0}\n"
        "  s = f32[4,8] reverse(r), dimensions={0}\n  ROOT t = f32[8,4] transpose(s), dimensions={1,0}\n}\n\n"
        "ENTRY e {\n  x = f32[4,8] parameter(0)\n  ROOT f = f32[8,4] fusion(x), kind=kLoop, calls=body\n}\n"
    )
    shown = output([str(path), "--instruction", "f"], capsys)
    assert "operand 0 (x): (d0, d1) -> (d1, d0), domain: d0 in [0, 7], d1 in [0, 3]\n" in shown


def test_the_result_can_go_to_a_file(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "maps.txt"
    assert output([file, "-o", str(target)], capsys) == ""
    assert output([file], capsys) == target.read_text()


def test_the_shipped_example_can_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert "%tanh = bf16[6,512,4096] tanh(%scaled)" in output(["--example", "gelu"], capsys)
