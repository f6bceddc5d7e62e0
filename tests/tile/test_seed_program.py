"""The seed's program: one warp takes the square root of a 32x8 register tile, row i in lane i."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.tile.helpers import IMPORTS, SEED, read
from warpsmith.backends.nvptx import ptxas
from warpsmith.cli import main
from warpsmith.compiler.tile.programs import explain_tile, run_tile, tile_text
from warpsmith.errors import ToolMissing

SYNC = "T.cuda.cta_sync()"


def without_barrier(number: int) -> str:
    parts = SEED.split(SYNC)
    return SYNC.join(parts[: number + 1]) + "pass" + SYNC.join(parts[number + 1 :])


@pytest.fixture
def seed_file(tmp_path: Path) -> Path:
    path = tmp_path / "seed.py"
    path.write_text(IMPORTS + SEED)
    return path


def test_it_takes_the_square_root_of_every_element() -> None:
    a = np.random.default_rng(1).random((32, 8), dtype=np.float32)
    result = run_tile(read(SEED), [a])
    np.testing.assert_array_equal(result.outputs["B_ptr"], np.sqrt(a))
    assert result.findings == []
    assert result.ok


def test_dispatched_has_a_loop_over_the_lanes_eight_registers() -> None:
    text = tile_text(read(SEED), "dispatched")
    assert "for f in T.unroll(8):\n        R[f] = T.sqrt(R[f])" in text
    assert text.count("T.cuda.cta_sync()") == 2


def test_cuda_has_private_registers_wide_moves_and_two_barriers() -> None:
    text = tile_text(read(SEED), "cuda")
    assert "float R[8];" in text
    assert "R[f] = sqrtf(R[f]);" in text
    assert text.count("__syncthreads()") == 2
    assert text.count("*reinterpret_cast<float4*>") == 8 - text.count("*reinterpret_cast<const float4*>")
    assert "[1]" not in text  # no one-element arrays


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
def test_ptx_keeps_the_tile_in_registers(target: str) -> None:
    text = tile_text(read(SEED), "ptx", target)
    assert text.count("sqrt.rn.f32") == 8
    assert text.count("bar.sync") == 2
    assert ".local" not in text
    try:
        assert ptxas.assemble(text, target).data.startswith(b"\x7fELF")
    except ToolMissing:
        pytest.skip("ptxas isn't installed (pip install 'warpsmith[cuda]')")


def test_variants_and_partitions_are_those_of_the_reference() -> None:
    choices = [(c.primitive, c.variant, c.partition) for c in explain_tile(read(SEED))]
    assert choices == [
        ("copy", "gmem_smem", "2 x 32 threads x 4 elements"),
        ("copy", "reg", "each thread: 2 x 4 elements"),
        ("sqrt", "reg", "each thread: its 8 registers of R"),
        ("copy", "reg", "each thread: 2 x 4 elements"),
        ("copy", "gmem_smem", "2 x 32 threads x 4 elements"),
    ]


def test_what_tirx_prints_is_the_same_kernel_again() -> None:
    text = tile_text(read(SEED), "tirx")
    again = read(text)
    assert tile_text(again, "tirx") == text
    assert tile_text(again, "dispatched") == tile_text(read(SEED), "dispatched")


def test_command_prints_stages_and_runs(seed_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for stage, words in (
        ("tirx", "Tx.warp.sqrt"),
        ("dispatched", "T.sqrt"),
        ("lowered", "math.sqrt"),
        ("cuda", "sqrtf"),
    ):
        assert main(["tile", str(seed_file), "--stage", stage]) == 0
        assert words in capsys.readouterr().out
    assert main(["tile", f"{seed_file}:k", "--run", "--platform", "sim"]) == 0
    assert "no findings" in capsys.readouterr().out


def test_command_says_which_two_places_race(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "race.py"
    path.write_text(IMPORTS + without_barrier(0))
    assert main(["tile", str(path), "--run"]) == 1
    out = capsys.readouterr().out
    assert "race.py:12" in out
    assert "race.py:10" in out


def test_command_draws_who_owns_what(seed_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "picture.svg"
    assert main(["tile", str(seed_file), "--svg", str(out)]) == 0
    text = out.read_text()
    assert text.startswith("<svg")
    assert "31 r7" in text


def test_command_refuses_what_is_not_there(seed_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tile", f"{seed_file}:q"]) == 2
    assert "no kernel 'q'" in capsys.readouterr().err
    assert main(["tile", str(seed_file), "--stage", "cudo"]) == 2
    assert "did you mean 'cuda'?" in capsys.readouterr().err
    assert main(["tile", str(seed_file), "--run", "--platform", "cuda"]) == 2
    assert main(["tile", str(seed_file), "--target", "cpu"]) == 2
    broken = tmp_path / "broken.py"
    broken.write_text("x = 1 / 0\n")
    assert main(["tile", str(broken)]) == 2
    assert "broken.py:1:1: error[WS1201]: ZeroDivisionError" in capsys.readouterr().err
