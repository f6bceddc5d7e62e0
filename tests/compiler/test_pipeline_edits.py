"""Passes of a user's own in the pipelines of kernels: every driver runs them, and bisect tells on a wrong one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpsmith as ws
from warpsmith.cli import main
from warpsmith.compiler.bisection import bisect
from warpsmith.errors import InvalidIr, OwnPassFailed, UnknownPass
from warpsmith.passes import Operation, constant_value, manager

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples/passes"
HLO = EXAMPLES / "scale.hlo"
RIGHT = ["--load", str(EXAMPLES / "double_by_adding.py"), "--pipeline", "+double-by-adding@after:inline"]
WRONG = ["--load", str(EXAMPLES / "wrong_doubling.py"), "--pipeline", "+wrong-doubling@after:inline"]
X = np.linspace(-3, 3, 1024, dtype=np.float32)


@pytest.fixture(autouse=True)
def registered_passes_go_again() -> Iterator[None]:
    yield
    vars(manager)["_registered"].clear()
    manager.lookup.cache_clear()


def module() -> ws.HloModule:
    return ws.parse_hlo(HLO.read_text())


def add_one_to_constants() -> None:
    """A pass that keeps the IR valid and changes what it computes."""

    @ws.passes.register("one-more", contract="bit-exact")
    def one_more(ir: Operation) -> None:
        for op in list(ir.walk()):
            if op.name == "arith.mulf":
                found = constant_value(op.operands[1])
                assert found is not None
                builder = ws.passes.Builder.before(op)
                op.set_operand(1, ws.passes.constant(builder, found.value + 1, op.result.type))

    assert one_more.__name__ == "one-more".replace("-", "_")


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_a_pass_is_in_the_trace_and_in_the_code(target: str) -> None:
    """If this failed, the pass would have run nowhere, or unseen."""
    add_one_to_constants()
    exe = ws.compile(module(), target, trace=True, cache=False, pipeline="+one-more@after:inline")
    names = [name for name, _ in exe.trace]
    assert names[names.index("inline") + 1] == "one-more"
    assert "3.000000e+00" in exe.artifact("lowered")
    assert "3.000000e+00" not in ws.compile(module(), target, cache=False).artifact("lowered")
    if target == "cpu":
        np.testing.assert_array_equal(exe(X)[0], X * -3)


@pytest.mark.parametrize("stage", ["buffers", "ptx"])
def test_the_simulator_runs_what_was_changed(stage: str) -> None:
    """If this failed, a pass for a GPU could not be checked without one."""
    add_one_to_constants()
    found = ws.simulate(module(), X, stage=stage, pipeline="+one-more@after:inline")
    np.testing.assert_array_equal(found.outputs[0], X * -3)


def test_run_compares_what_was_changed_with_the_reference() -> None:
    """If this failed, a wrong pass would show only to who bisects."""
    add_one_to_constants()
    assert ws.run(module(), iterations=1, measure_copy=False).match is True
    for options in ({}, {"platform": "sim", "target": "sm_90"}):
        report = ws.run(
            module(), iterations=1, measure_copy=False, cache=False, pipeline="+one-more@after:inline", **options
        )
        assert report.match is False


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_bisect_names_a_wrong_pass(target: str) -> None:
    """If this failed, bisect would judge another pipeline than the one that is wrong."""
    add_one_to_constants()
    culprit = bisect(module(), X, target=target, pipeline="+one-more@after:inline").culprit
    assert culprit is not None
    assert (culprit.step, culprit.what, culprit.contract) == ("one-more", "values", "bit-exact")
    assert bisect(module(), X, target=target).culprit is None


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_a_pass_that_breaks_the_ir_or_raises_is_named(target: str) -> None:
    """If this failed, the pass that ran next would be blamed."""

    @ws.passes.register("cuts", contract="bit-exact")
    def cuts(ir: Operation) -> None:
        next(op for op in ir.walk() if op.name == "func.return").erase()

    @ws.passes.register("fails", contract="bit-exact")
    def fails(ir: Operation) -> None:
        raise KeyError(ir.name)

    for name, error, what in (("cuts", InvalidIr, "invalid IR"), ("fails", OwnPassFailed, "raised")):
        pipeline = f"+{name}@before:canonicalize#2"
        with pytest.raises(error, match=f"pass '{name}'"):
            ws.compile(module(), target, cache=False, pipeline=pipeline)
        culprit = bisect(module(), X, target=target, pipeline=pipeline).culprit
        assert culprit is not None
        assert (culprit.step, culprit.what) == (name, what)
    assert (cuts.__name__, fails.__name__) == ("cuts", "fails")


def test_a_place_that_the_pipeline_lacks_is_refused() -> None:
    """If this failed, a pass would silently not run on one of the targets."""
    with pytest.raises(UnknownPass, match="the pipeline has no pass 'vectorize-cpu'"):
        ws.compile(module(), "sm_90", pipeline="-vectorize-cpu")


def output(words: list[str], capsys: pytest.CaptureFixture[str], status: int = 0) -> str:
    assert main(words) == status
    return capsys.readouterr().out


def test_commands_load_a_file_and_change_the_pipeline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If this failed, the page about it would show commands that don't work."""
    hlo = str(HLO)
    assert "x_value + x_value" in output(["compile", hlo, "--stage", "cuda", *RIGHT], capsys)
    assert "x_value + x_value" not in output(["compile", hlo, "--stage", "cuda"], capsys)
    output(["compile", hlo, "--dump-to", str(tmp_path), *RIGHT], capsys)
    assert [path.name for path in tmp_path.glob("*.double-by-adding.mlir")] == ["scale.y.09.double-by-adding.mlir"]
    assert "double-by-adding" in (tmp_path / "index.txt").read_text()
    run = ["run", hlo, "--iterations", "1", "--json", "--no-cache"]
    for platform in ("cpu", "sim"):
        right: dict[str, Any] = json.loads(output([*run, "--platform", platform, *RIGHT], capsys))
        wrong: dict[str, Any] = json.loads(output([*run, "--platform", platform, *WRONG], capsys, 1))
        assert (right["match"], wrong["match"]) == (True, False)
    assert json.loads(output(["bisect", hlo, "--json", *RIGHT], capsys))["culprit"] is None
    assert json.loads(output(["bisect", hlo, "--json", *WRONG], capsys, 1))["culprit"]["step"] == "wrong-doubling"


def test_a_pass_that_is_missed_is_no_bug_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    """If this failed, an experiment would end with "this is a bug in Warpsmith"."""
    assert main(["compile", str(HLO), "--pipeline=-flatten-tensors,-lower-tensors"]) == 2
    assert "bug in Warpsmith" not in capsys.readouterr().err
