"""`ws.tile`: load, run, compile and explain, as the command has them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import warpsmith as ws
from tests.tile.helpers import body, read
from warpsmith.cli import main
from warpsmith.errors import ArgumentMismatch, TileSyntaxError, UsageError

FILE = str(Path(__file__).parents[2] / "examples" / "tile" / "column_sum.py")


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["tile", FILE, *arguments]) == 0
    return capsys.readouterr().out


def test_each_says_what_the_command_says(capsys: pytest.CaptureFixture[str]) -> None:
    """If this failed, Python and the command line would tell two stories of one kernel."""
    kernel = ws.tile.load(FILE)
    report = ws.tile.run(kernel, seed=3)
    assert command(capsys, "--run", "--seed", "3") == f"{report}\n"
    assert json.loads(command(capsys, "--run", "--seed", "3", "--json")) == json.loads(report.to_json())
    assert report.to_dict()["match"] is report.match is report.ok is True
    program = ws.tile.compile(kernel)
    for stage in ("tirx", "dispatched", "lowered", "cuda", "ptx"):
        assert command(capsys, "--stage", stage).rstrip("\n") == str(program.artifact(stage)).rstrip("\n")
    assert program.artifact() == program.artifact("dispatched")
    assert command(capsys).rstrip("\n") == str(program.artifact()).rstrip("\n")
    explanation = ws.tile.explain(kernel)
    assert command(capsys, "--explain").rstrip("\n") == str(explanation)
    assert [each["variant"] for each in explanation.to_dict()["primitives"]] == ["gmem_smem", "smem", "gmem_smem"]


def test_a_notebook_shows_a_kernel_in_a_line() -> None:
    """Its whole syntax tree and every text made so far would fill the screen."""
    kernel = ws.tile.load(FILE)
    assert repr(kernel) == "<kernel column_sum: grid (1, 1, 1), block (128, 1, 1)>"
    program = ws.tile.compile(kernel)
    program.artifact("ptx")
    assert repr(program) == "<kernel column_sum for sm_90>"


def test_a_program_for_the_cpu_is_called_and_leaves_arrays_alone() -> None:
    """If this failed, a compiled program would write into its inputs, or lose what it doesn't write."""
    kernel = read(body("B[0, tid] = A[0, tid] + B[1, tid]"))
    a, b = np.arange(64 * 64, dtype=np.float32).reshape(64, 64), np.ones((64, 64), np.float32)
    program = ws.tile.compile(kernel, target="cpu")
    wanted = b.copy()
    wanted[0, :32] = a[0, :32] + 1
    for found in (program(a, b), program(A=a, B_ptr=b), ws.tile.run(kernel, [a, b], platform="cpu").outputs):
        np.testing.assert_array_equal(found["B_ptr"], wanted)
    assert (b == 1).all()
    assert "B[0, tid]" in str(program.artifact("tirx"))
    with pytest.raises(UsageError, match="in order or by parameter, not both"):
        program(a, B=b)
    with pytest.raises(ArgumentMismatch, match="has shape"):
        program(a[:3])


def test_what_can_not_be_run_says_what_can() -> None:
    """If this failed, an author would be sent to private modules, or to nothing."""
    kernel = read(body("B[0, tid] = A[0, tid]"))
    with pytest.raises(TileSyntaxError, match=r"compiled, not called\n.*ws\.tile\.run\(kernel, arrays\)"):
        kernel()
    with pytest.raises(UsageError, match=r"a program for sm_90 isn't called.*\n.*target=\"cpu\""):
        ws.tile.compile(kernel)()
    with pytest.raises(UsageError, match="no stage 'ptz'"):
        ws.tile.compile(kernel).artifact("ptz")
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = ws.tile.nonsense
    assert {"run", "compile", "explain", "load", "T", "Tx"} <= set(dir(ws.tile))


def test_what_is_no_kernel_is_refused_with_how_to_get_one() -> None:
    """The name of a file in the place of its kernel would end in an AttributeError of ours."""
    for call in (ws.tile.run, ws.tile.compile, ws.tile.explain):
        with pytest.raises(UsageError, match="a tile kernel is asked for, not str") as caught:
            call("softmax.py")  # pyright: ignore[reportArgumentType]
        assert "ws.tile.load" in str(caught.value)


def test_a_seed_may_be_negative() -> None:
    """`warpsmith tile --run --seed -1` would end as a bug of ours, where `warpsmith run` takes it."""
    assert ws.tile.run(ws.tile.load(FILE), seed=-1).ok
