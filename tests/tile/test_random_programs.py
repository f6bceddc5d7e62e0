"""Random programs agree with the meaning of their primitives (`bench/tile_programs.py` runs thousands)."""

from __future__ import annotations

import pytest

from tests.tile.helpers import read
from tests.tile.random_programs import program
from warpsmith.compiler.tile_programs import run_tile


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_dispatched_programs_mean_what_their_primitives_mean(first: int) -> None:
    for seed in range(first, first + 20):
        text = program(seed)
        result = run_tile(read(text), seed=seed)
        assert result.ok, (seed, text, dict(result.mismatches), [str(f) for f in result.findings])
