"""Every misuse of the command line: exit status 2, the cause and the next step on stderr, nothing on stdout."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from warpsmith.cli import COMMANDS, main

HLO = "HloModule m\n\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] negate(x)\n}\n"
MISUSES = {
    "unknown command": (["rum"], "did you mean 'run'?"),
    "command that is like no other": (["zzzz"], "see `warpsmith --help`"),
    "value that begins with a dash": (["compile", "{hlo}", "--pipeline", "-licm"], "needs an equals sign: --pipeline="),
    "indexing without a file": (["indexing"], "warpsmith indexing --help"),
    "indexing of a file and an example": (["indexing", "{hlo}", "--example", "gelu"], "warpsmith indexing --help"),
    "indexing of a missing file": (["indexing", "{folder}/m.hl"], "did you mean 'm.hlo'?"),
    "indexing in a missing folder": (["indexing", "{folder}/nowhere/m.hlo"], "there is no folder"),
    "indexing of a misspelt example": (["indexing", "--example", "gellu"], "did you mean 'gelu'?"),
    "indexing of a misspelt instruction": (["indexing", "{hlo}", "--instruction", "yy"], "did you mean 'y'?"),
    "indexing in an unknown style": (["indexing", "{hlo}", "--style", "c"], "warpsmith indexing --help"),
    "indexing of what isn't HLO": (["indexing", "{broken}"], "did you mean 'tanh'?"),
    "opt without a file": (["opt", "--passes", "cse"], "standard input"),
    "opt with a misspelt pass": (["opt", "{ir}", "--passes", "canonicalise"], "did you mean 'canonicalize'?"),
    "opt with a misspelt option": (
        ["opt", "{ir}", "--passes", "optimize-loops{{max_unrol=2}}"],
        "did you mean 'max_unroll'?",
    ),
    "opt of what isn't IR": (["opt", "{broken}", "--passes", "cse"], "1 | HloModule m"),
    "an argument too many": (["doctor", "please"], "warpsmith doctor --help"),
    **{
        f"{command} with an unknown option": ([command, "--no-such-option"], f"warpsmith {command} --help")
        for command in COMMANDS
    },
}


@pytest.fixture
def names(tmp_path: Path) -> dict[str, str]:
    files = {
        "hlo": ("m.hlo", HLO),
        "broken": ("broken.hlo", HLO.replace("negate", "tahn")),
        "ir": ("m.mlir", "func.func @f() {\n  return\n}\n"),
    }
    for file, text in files.values():
        (tmp_path / file).write_text(text)
    return {"folder": str(tmp_path)} | {name: str(tmp_path / file) for name, (file, _) in files.items()}


@pytest.mark.parametrize("misuse", MISUSES)
def test_misuse_is_status_2_with_help_and_no_output(
    misuse: str, names: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A script that reads stdout must get nothing to take for a result, and a person must learn what to type."""
    words, hint = MISUSES[misuse]
    status = main([word.format(**names) for word in words])
    shown = capsys.readouterr()
    assert (status, shown.out) == (2, "")
    assert "error[WS" in shown.err
    assert hint in shown.err
    assert "Traceback" not in shown.err


def test_an_error_in_a_file_shows_the_place(names: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["indexing", names["broken"]]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"{names['broken']}:5:19: error[WS0203]: unknown opcode 'tahn'"
    assert lines[1] == "  5 |   ROOT y = f32[4] tahn(x)"
    assert lines[2].endswith(" " * 18 + "^^^^")


@pytest.mark.parametrize("command", ["run", "bisect"])
def test_a_parameter_that_no_memory_could_hold_is_an_error(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The module is refused before input is made for it."""
    file = tmp_path / "m.hlo"
    file.write_text("ENTRY e { x = f32[4611686018427387904] parameter(0) ROOT y = f32[4611686018427387904] abs(x) }")
    assert main([command, str(file)]) == 2
    assert "no memory could hold" in capsys.readouterr().err


def test_an_output_that_cannot_be_written_is_an_error(
    names: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["indexing", names["hlo"], "-o", f"{names['folder']}/nowhere/out.txt"]) == 2
    assert "can't write" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"], *([command, "--help"] for command in COMMANDS)])
def test_help_is_on_stdout_and_no_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("usage: warpsmith")
    assert shown.err == ""


def test_the_overview_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert [command for command in COMMANDS if f"  {command} " not in shown] == []


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.split()[0] == "warpsmith"


def test_standard_input_is_read_for_a_dash(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(HLO))
    assert main(["indexing", "-"]) == 0
    assert "negate(%x)" in capsys.readouterr().out


def test_python_m_is_the_command(names: dict[str, str]) -> None:
    command = [sys.executable, "-m", "warpsmith", "indexing", names["broken"]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "unknown opcode" in done.stderr


def test_a_reader_that_leaves_is_no_error(names: dict[str, str]) -> None:
    """`warpsmith ... | head` must not end in a traceback."""
    code = "import os, sys; os.close(0); from warpsmith.cli import main; sys.exit(main(sys.argv[1:]))"
    reader, writer = os.pipe()
    os.close(reader)
    child = subprocess.Popen(
        [sys.executable, "-c", code, "opt", "--list-passes"], stdout=writer, stderr=subprocess.PIPE, text=True
    )
    os.close(writer)
    _, err = child.communicate(timeout=60)
    assert err == ""
    assert child.returncode == 0
