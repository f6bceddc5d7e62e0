"""`warpsmith opt`: passes on IR text."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpsmith.cli import main
from warpsmith.passes.manager import names

TWICE = """func.func @f(%a: i32) -> i32 {
  %0 = arith.addi %a, %a : i32
  %1 = arith.addi %a, %a : i32
  %2 = arith.muli %0, %1 : i32
  return %2 : i32
}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "m.mlir"
    path.write_text(TWICE)
    return str(path)


def output(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["opt", *words]) == 0
    return capsys.readouterr().out


def test_passes_are_run_in_the_given_order(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """cse makes one add of two; without it there are two."""
    assert output([file, "--passes", "symbol-dce"], capsys).count("arith.addi") == 2
    assert output([file, "--passes", "cse"], capsys).count("arith.addi") == 1


def test_what_is_printed_can_be_read_again(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    once = output([file, "--passes", "cse"], capsys)
    again = tmp_path / "again.mlir"
    again.write_text(once)
    assert output([str(again), "--passes", "cse"], capsys) == once


def test_generic_is_the_form_that_mlir_opt_reads(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert '"arith.muli"(' in output([file, "--passes", "cse", "--generic"], capsys)


def test_times_go_to_stderr(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["opt", file, "--passes", "canonicalize,cse", "--time-passes"]) == 0
    shown = capsys.readouterr()
    assert [line.split()[-1] for line in shown.err.splitlines()] == ["canonicalize", "cse"]
    assert "ms" not in shown.out


def test_the_list_names_every_pass_and_its_contract(capsys: pytest.CaptureFixture[str]) -> None:
    lines = output(["--list-passes"], capsys).splitlines()
    assert [line.split()[0] for line in lines[::2]] == names()
    assert all(line.startswith("    contract: ") for line in lines[1::2])


def test_invalid_ir_is_refused_before_any_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.mlir"
    path.write_text("func.func @f(%a: i32) -> i32 {\n  %0 = arith.addf %a, %a : i32\n  return %0 : i32\n}\n")
    assert main(["opt", str(path), "--passes", "cse"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"{path}:2:" in shown.err
