"""`warpsmith hlo`: what it prints can be read back, and misuse is refused with the next step."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from warpsmith.cli import main
from warpsmith.hlo import parse_hlo, verify_module
from warpsmith.hlo.query import fingerprint

TEXT = """HloModule m

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %r = f32[] add(%a, %b)
}

ENTRY %main (x: f32[4,8]) -> f32[4] {
  %x = f32[4,8]{1,0} parameter(0)
  %zero = f32[] constant(0)
  %n = f32[4,8]{1,0} negate(%x), metadata={op_name="neg"}
  ROOT %sum = f32[4]{0} reduce(%n, %zero), dimensions={1}, to_apply=%add
}
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "m.hlo"
    file.write_text(TEXT)
    (tmp_path / "bad.hlo").write_text(
        TEXT.replace("ROOT %sum = f32[4]{0}", "ROOT %sum = f32[5]{0}").replace("-> f32[4]", "-> f32[5]")
    )
    return str(file)


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["hlo", *words]) == 0
    return capsys.readouterr().out


def test_stats_count_and_json_says_the_same(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "stats", path)
    module = parse_hlo(TEXT)
    assert fingerprint(module) in text
    assert any(line.split() == ["reduce", "1"] for line in text.splitlines())
    data = json.loads(shown(capsys, "stats", path, "--json"))
    assert data["module"] == "m"
    assert data["fingerprint"] == fingerprint(module)
    assert data["opcodes"] == {"add": 1, "constant": 1, "negate": 1, "parameter": 3, "reduce": 1}
    assert data["parameter_bytes"] == 128


def test_print_keeps_the_style_of_the_file_or_takes_another(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "print", path) == TEXT
    short = shown(capsys, "print", path, "--style", "short")
    assert "%" not in short
    assert parse_hlo(short) == parse_hlo(TEXT)
    assert "negate(f32[4,8]{1,0} %x)" in shown(capsys, "print", path, "--style", "operand-shapes")
    bare = shown(capsys, "print", path, "--no-metadata", "--no-layouts")
    assert "metadata" not in bare
    assert "{1,0}" not in bare


def test_extract_prints_a_module_that_fits(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = parse_hlo(shown(capsys, "extract", path, "sum"))
    verify_module(module)
    assert [each.opcode for each in module.entry] == ["parameter", "parameter", "reduce"]
    kept = parse_hlo(shown(capsys, "extract", path, "%sum", "--keep-constants"))
    assert [each.opcode for each in kept.entry] == ["parameter", "constant", "reduce"]
    assert parse_hlo(shown(capsys, "extract", path, "add/r")).entry.root.opcode == "add"
    assert parse_hlo(shown(capsys, "extract", path, "add")).entry.name == "add"


def test_graph_in_both_formats(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "graph", path).startswith('digraph "main"')
    near = shown(capsys, "graph", path, "--around", "x", "--radius", "1", "--format", "mermaid")
    assert "negate" in near
    assert "reduce" not in near
    assert shown(capsys, "graph", path, "--computation", "add").count(" -> ") == 2
    assert shown(capsys, "graph", path, "--computation", "add", "--around", "a", "--radius", "0").count(" -> ") == 1


def test_output_goes_to_a_file(path: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "out.hlo"
    assert shown(capsys, "print", path, "-o", str(out)) == ""
    assert out.read_text() == TEXT


def test_an_example_needs_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert "kLoop" in shown(capsys, "stats", "--example", "gelu")
    assert "tanh" in shown(capsys, "extract", "fusion", "--example", "gelu")


def test_a_module_that_breaks_a_rule_is_shown_on_request_alone(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    bad = path.replace("m.hlo", "bad.hlo")
    assert main(["hlo", "stats", bad]) == 2
    error = capsys.readouterr().err
    assert "reduce makes f32[4] here, not f32[5]" in error
    assert "[result.shape]" in error
    assert f"{bad}:" in error
    assert "f32[5]" in shown(capsys, "print", bad, "--no-verify")


MISUSES = {
    "no action": ([], "warpsmith hlo --help"),
    "unknown action": (["stat", "{hlo}"], "choose from"),
    "no file": (["stats"], "--example NAME"),
    "a file and an example": (["stats", "{hlo}", "--example", "gelu"], "--example NAME"),
    "unknown example": (["stats", "--example", "gleu"], "did you mean 'gelu'?"),
    "missing file": (["print", "{hlo}x"], "did you mean 'm.hlo'?"),
    "unknown style": (["print", "{hlo}", "--style", "long"], "choose from"),
    "nothing to extract": (["extract", "{hlo}"], "--example NAME"),
    "misspelt instruction": (["extract", "{hlo}", "smu"], "did you mean 'sum'?"),
    "misspelt computation": (["extract", "{hlo}", "mian/sum"], "did you mean 'main'?"),
    "a parameter to extract": (["extract", "{hlo}", "x"], "nothing to extract"),
    "unknown format": (["graph", "{hlo}", "--format", "dto"], "did you mean 'dot'?"),
    "radius without a centre": (["graph", "{hlo}", "--radius", "2"], "--around NAME"),
    "negative radius": (["graph", "{hlo}", "--around", "x", "--radius", "-1"], "0 or more"),
    "a radius that is no number": (["graph", "{hlo}", "--around", "x", "--radius", "two"], "invalid int value"),
    "misspelt centre": (["graph", "{hlo}", "--around", "smu"], "did you mean 'sum'?"),
    "misspelt computation to draw": (["graph", "{hlo}", "--computation", "mian"], "did you mean 'main'?"),
    "centre in another computation": (
        ["graph", "{hlo}", "--computation", "add", "--around", "sum"],
        "no instruction 'sum'",
    ),
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_misuse_is_status_2_with_the_next_step_and_no_output(
    misuse: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words, hint = MISUSES[misuse]
    assert main(["hlo", *(word.format(hlo=path) for word in words)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "error[WS" in captured.err
    assert hint in captured.err
