"""How much work it is to get from a kernel's text to CUDA C++: modules that are loaded, calls that are made.

Both decide how long a command takes, and are the same on every machine.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from work import calls_of

from tests.tile.helpers import IMPORTS, SEED, read
from warpsmith.compiler.tile.programs import tile_text
from warpsmith.tile.files import load_kernel

EXAMPLES = Path(__file__).parents[2] / "examples" / "tile"

LOADED = """
import contextlib, io, sys
from warpsmith.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    assert main(["tile", sys.argv[1], "--stage", sys.argv[2]]) == 0
print(*sys.modules)
"""
UNUSED = {
    "emitters": "warpsmith.emitters",
    "fusions": "warpsmith.fusion",
    "HLO": "warpsmith.hlo",
    "the simulator": "warpsmith.simt",
    "running": "warpsmith.runtime",
    "reports": "warpsmith.report",
    "LLVM": "llvmlite",
    "colours": "rich",
    "other processes": "subprocess",
    "network": "socket",
}


def loaded(file: Path, stage: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, str(file), stage], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.split()


@pytest.fixture
def seed_file(tmp_path: Path) -> Path:
    path = tmp_path / "seed.py"
    path.write_text(IMPORTS + SEED)
    return path


@pytest.mark.parametrize("stage", ["tirx", "dispatched", "cuda"])
def test_a_stage_loads_only_what_it_needs(stage: str, seed_file: Path) -> None:
    """A quarter of a second is spent on loading; the simulator or LLVM alone would double it."""
    modules = loaded(seed_file, stage)
    packages = {".".join(name.split(".")[:2]) if name.startswith("warpsmith.") else name for name in modules}
    assert {what for what, package in UNUSED.items() if package in packages} == set()
    assert len([name for name in modules if name.startswith("warpsmith")]) < 250


def test_a_warm_compilation_is_some_ten_thousand_calls() -> None:
    """43,000 take 9 ms; the goal is 60 ms from text to CUDA C++."""
    tile_text(read(SEED), "cuda")
    assert calls_of(lambda: tile_text(read(SEED), "cuda")) < 75_000


def test_a_large_kernel_is_no_more_work_than_its_statements() -> None:
    """The matrix product has 1,024 multiplications to a warp; as loops, they are never written out."""
    path = str(EXAMPLES / "gemm.py")
    tile_text(load_kernel(path), "cuda")
    assert calls_of(lambda: tile_text(load_kernel(path), "cuda")) < 300_000
