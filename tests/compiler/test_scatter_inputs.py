"""Seeded input of scatters: it keeps what a module promises of indices, and reaches sums that are subnormal."""

from __future__ import annotations

import numpy as np
import pytest

from warpsmith.compiler.generated import random_inputs
from warpsmith.hlo.evaluator import evaluate
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.passes import lower_atomics
from warpsmith.passes.support.capabilities import Capabilities
from warpsmith.report.run.checked_run import run

ADD = """
    HloModule m
    sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }"""
ROWS = (
    ADD
    + """
    ENTRY e {
      x = f32[40,5] parameter(0)
      i = s32[300,1] parameter(1)
      u = f32[300,1,5] parameter(2)
      ROOT r = f32[40,5] scatter(x, i, u), update_window_dims={1,2}, inserted_window_dims={},
        scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
    }"""
)
WINDOWS = (
    ADD
    + """
    f {
      x = f32[30,40] parameter(0)
      i = u8[2,50] parameter(1)
      u = f32[50,2,3] parameter(2)
      ROOT r = f32[30,40] scatter(x, i, u), update_window_dims={1,2}, inserted_window_dims={},
        scatter_dims_to_operand_dims={0,1}, index_vector_dim=0, to_apply=sum,
        indices_are_sorted=true, unique_indices=true
    }
    ENTRY e {
      u = f32[50,2,3] parameter(0)
      i = u8[2,50] parameter(1)
      x = f32[30,40] parameter(2)
      ROOT r = f32[30,40] fusion(x, i, u), kind=kInput, calls=f
    }"""
)


@pytest.mark.parametrize("text", [ROWS, WINDOWS], ids=["rows", "windows in a fusion"])
def test_some_sums_are_subnormal_and_some_are_not(text: str) -> None:
    """Wrong: input on which a unit that flushes subnormal numbers gives the right bits."""
    module = parse_hlo(text)
    arrays = random_inputs(module)
    before = next(a for a, p in zip(arrays, module.entry.parameters, strict=True) if p.name == "x")
    result = np.asarray(evaluate(module, *arrays)[0])
    moved = result != before
    small = np.abs(result) < np.finfo(np.float32).tiny
    assert (moved & small & (result != 0)).sum() > 20
    assert (moved & ~small).sum() > 20
    assert not (np.abs(random_inputs(module, numerics="xla")[0]) < 2.0**-100).any()


def test_promises_are_kept() -> None:
    """Wrong: slices that overlap where none may, or an order that isn't one."""
    columns = random_inputs(parse_hlo(WINDOWS))[1].astype(int)
    flat = columns[0] * 1000 + columns[1]
    assert (np.diff(flat) > 0).all()
    assert (columns % [[2], [3]] == 0).all()
    assert run(parse_hlo(WINDOWS), platform="sim", target="sm_90", stage="ptx").match


def test_run_finds_an_atomic_addition_that_flushes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong: a match on seeded input, though strict numerics has the instruction that only xla's may have."""
    module, options = parse_hlo(ROWS), {"platform": "sim", "target": "sm_90", "stage": "ptx"}
    assert run(module, **options).match
    monkeypatch.setattr(lower_atomics, "capabilities", lambda _: Capabilities())
    assert run(module, **options).match is False
