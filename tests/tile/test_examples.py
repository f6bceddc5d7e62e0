"""The example kernels compute what they say, in the simulator, without findings."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from warpsmith.compiler.tile_programs import run_tile

EXAMPLES = Path(__file__).parents[2] / "examples" / "tile"


def softmax(a: np.ndarray) -> np.ndarray:
    powers = np.exp(a - a.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


WANTED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "row_sum": lambda a: a.sum(axis=1, keepdims=True),
    "column_sum": lambda a: a.sum(axis=0, keepdims=True),
    "softmax": softmax,
}


@pytest.mark.parametrize("name", sorted(WANTED))
def test_an_example_computes_what_it_says(name: str) -> None:
    kernel = runpy.run_path(str(EXAMPLES / f"{name}.py"))[name]
    a = (np.random.default_rng(1).random((32, 32)) * 200 - 50).astype(np.float32)
    result = run_tile(kernel, {"A_ptr": a})
    assert result.ok, (dict(result.mismatches), [str(f) for f in result.findings])
    wanted = WANTED[name](a.astype(np.float64))
    np.testing.assert_allclose(np.asarray(result.outputs["B_ptr"]).reshape(wanted.shape), wanted, rtol=2e-5, atol=1e-6)
