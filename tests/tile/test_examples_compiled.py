"""The CUDA C++ and the PTX of the example kernels: assemblers and nvcc take them, and they compute the same.

PTX runs in the simulator, every access watched.  That of nvcc is NVIDIA's reading of our CUDA C++.
"""

from __future__ import annotations

import math
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from needs import needs_ptxas

from tests.tile.example_cases import SAMPLES, TARGETS, compare, every_example, inputs_of, kernel
from warpsmith.backends.nvptx.cuda_files import HELP, find
from warpsmith.compiler.tile.programs import tile_bytes, tile_text
from warpsmith.simt.core.checks import Checks
from warpsmith.simt.ptx.launch import PtxLaunch, simulate_ptx

NVCC = find("bin/nvcc", "WARPSMITH_NVCC")


@needs_ptxas
@pytest.mark.parametrize("target", TARGETS)
@every_example
def test_ptxas_takes_its_ptx(name: str, target: str) -> None:
    assert tile_bytes(kernel(name), target).startswith(b"\x7fELF")


WITHOUT_SCALARS = sorted(set(SAMPLES) - {"vector_add"})
"""The simulator of PTX takes pointers alone as parameters."""


def run_ptx(name: str, text: str) -> None:
    """Run PTX of an example, every access watched."""
    inputs = inputs_of(SAMPLES[name], 3)
    output = kernel(name).parameters[-1]
    launch = kernel(name).launch
    (found,), stats = simulate_ptx(
        text,
        list(inputs.values()),
        [(np.dtype(output.type.numpy), math.prod(output.shape))],
        PtxLaunch(launch.grid, launch.block, kernel=name),
        checks=Checks(),
    )
    assert stats.findings == []
    compare(name, inputs, found.reshape(output.shape))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", WITHOUT_SCALARS)
def test_its_ptx_computes_the_same(name: str, target: str) -> None:
    run_ptx(name, tile_text(kernel(name), "ptx", target))


@pytest.mark.slow
@pytest.mark.skipif(NVCC is None, reason=f"nvcc isn't installed: {HELP}")
@pytest.mark.parametrize("target", TARGETS)
def test_nvcc_takes_their_cuda_without_a_warning_and_means_the_same(target: str, tmp_path: Path) -> None:
    """All in one file, each in a namespace of its own: nvcc takes longer to start than to compile one."""
    texts = {name: tile_text(kernel(name), "cuda", target) for name in sorted(SAMPLES)}
    headers = sorted({line for text in texts.values() for line in re.findall(r"^#include .*$", text, re.MULTILINE)})
    parts = [
        f"namespace of_{name} {{\n{re.sub(r'^#include .*$', '', text, flags=re.MULTILINE)}}}"
        for name, text in texts.items()
    ]
    source = tmp_path / "kernels.cu"
    source.write_text("\n".join([*headers, *parts]))
    command = [str(NVCC), "-ptx", f"-arch={target}", "-std=c++17", "--Werror", "all-warnings"]
    done = subprocess.run(
        [*command, str(source), "-o", str(tmp_path / "kernels.ptx")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    text = (tmp_path / "kernels.ptx").read_text()
    assert text.count(".entry") == len(SAMPLES)
    for name in WITHOUT_SCALARS:
        run_ptx(name, text)
