"""The simulator as users reach it: `ws.simulate` and `warpsmith run --platform sim`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import warpsmith as ws
from warpsmith.cli import main
from warpsmith.errors import UsageError

TEXT = """HloModule sums

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY e {
  x = f32[40,96] parameter(0)
  z = f32[] constant(0)
  t = f32[96,40] transpose(x), dimensions={1,0}
  ROOT r = f32[96] reduce(t, z), dimensions={1}, to_apply=add
}
"""


def test_simulate_gives_outputs_counters_and_no_finding() -> None:
    """The PTX of each kernel runs; the reference is numpy."""
    x = np.arange(40 * 96, dtype=np.float32).reshape(40, 96)
    sim = ws.simulate(ws.parse_hlo(TEXT), x)
    np.testing.assert_array_equal(sim.outputs[0], x.sum(axis=0))
    assert sim.findings == []
    assert len(sim.counters) == 2
    assert all(each.warp_instructions > 0 for each in sim.counters)


@pytest.mark.parametrize("stage", ["buffers", "ptx"])
def test_the_command_simulates_and_compares(stage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sums.hlo"
    file.write_text(TEXT)
    assert main(["run", str(file), "--platform", "sim", "--stage", stage]) == 0
    out = capsys.readouterr().out
    assert "match" in out
    assert f"simulated at stage {stage}" in out


def test_only_gpus_are_simulated_and_stages_are_named() -> None:
    module = ws.parse_hlo(TEXT)
    with pytest.raises(UsageError, match="none"):
        ws.run(module, platform="sim", target="cpu")
    with pytest.raises(UsageError) as caught:
        ws.run(module, platform="sim", target="sm_90", stage="ptz")
    assert "did you mean 'ptx'?" in str(caught.value)
