"""Random programs agree with the meaning of their primitives, and compile (`bench/random_tiles.py` runs thousands)."""

from __future__ import annotations

import itertools
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from needs import needs_ptxas

from tests.tile.helpers import read
from tests.tile.random_programs import GENERATORS
from warpsmith.backends.nvptx.cuda_files import HELP, find
from warpsmith.compiler.tile.programs import explain_tile, run_tile, tile_bytes, tile_text
from warpsmith.errors import DispatchFailed

NVCC = find("bin/nvcc", "WARPSMITH_NVCC")
TARGETS = ("sm_80", "sm_90", "sm_100")
TAKEN = {"copy": 28, "elementwise": 28, "reduction": 28, "guard": 18}
"""So many of 30 programs at least aren't refused."""


def refusal(kernel: Any) -> DispatchFailed | None:
    try:
        tile_text(kernel, "dispatched")
    except DispatchFailed as failed:
        return failed
    return None


@pytest.mark.slow
@pytest.mark.parametrize("kind", GENERATORS)
def test_dispatched_programs_mean_what_their_primitives_mean(kind: str) -> None:
    taken = 0
    for seed in range(30):
        text = GENERATORS[kind](seed)
        kernel = read(text)
        refused = refusal(kernel)
        if refused is not None:
            assert refused.span is not None, text
            assert refused.rejected, text
            continue
        taken += 1
        result = run_tile(kernel, seed=seed)
        assert result.ok, (seed, text, dict(result.mismatches), [str(f) for f in result.findings])
    assert taken >= TAKEN[kind]


@cache
def sample(kind: str) -> tuple[Any, ...]:
    """The first few programs of a kind that dispatch takes."""
    kernels = (read(GENERATORS[kind](seed)) for seed in range(100, 120))
    return tuple(itertools.islice((kernel for kernel in kernels if refusal(kernel) is None), 8))


@pytest.mark.parametrize("kind", GENERATORS)
def test_their_cuda_reads_as_if_written(kind: str) -> None:
    """No one-element array stands for a variable, and a comment says what each statement comes from."""
    for kernel in sample(kind):
        text = tile_text(kernel, "cuda")
        code = re.sub(r"//.*", "", text)
        assert not re.findall(r"^ *alignas\(\d+\) [\w ]+\b\w+\[1\];", code, flags=re.MULTILINE), text
        if kind != "guard":  # where some statements are never reached
            comments = re.findall(r"// (Tx\.[\w.]+)\(", text)
            assert sorted(comments) == sorted(choice.call.partition("(")[0] for choice in explain_tile(kernel))


@needs_ptxas
@pytest.mark.parametrize("kind", GENERATORS)
@pytest.mark.parametrize("target", TARGETS)
def test_ptxas_takes_their_ptx(kind: str, target: str) -> None:
    for kernel in sample(kind)[:2]:
        assert tile_bytes(kernel, target).startswith(b"\x7fELF")


@pytest.mark.skipif(NVCC is None, reason=f"nvcc isn't installed: {HELP}")
@pytest.mark.parametrize(
    ("kind", "target"), [("copy", "sm_80"), ("elementwise", "sm_90"), ("reduction", "sm_100"), ("guard", "sm_80")]
)
def test_nvcc_takes_their_cuda_without_a_warning(kind: str, target: str, tmp_path: Path) -> None:
    source = tmp_path / "kernel.cu"
    source.write_text(tile_text(sample(kind)[0], "cuda", target))
    command = [str(NVCC), "-ptx", f"-arch={target}", "-std=c++17", "--Werror", "all-warnings"]
    done = subprocess.run(
        [*command, str(source), "-o", str(tmp_path / "kernel.ptx")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
