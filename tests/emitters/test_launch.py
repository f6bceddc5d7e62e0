"""Launch, unroll factor and choice of emitter agree with what XLA:GPU itself did (rows measured for an H200)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from warpsmith.devices import device
from warpsmith.emitters.gpu import loop
from warpsmith.emitters.kernel.index_width import index_bits
from warpsmith.emitters.kernel.launch import calculate_launch, split_grid_x
from warpsmith.fusion import FusionAnalysis, analyze
from warpsmith.hlo.module import HloComputation
from warpsmith.hlo.text.parser import parse_hlo

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "hlo" / "cases" / "launch.json").read_text())
H200 = device("H200")


def analysis_of(text: str, target: str = "H200") -> FusionAnalysis:
    (fusion,) = [each for each in parse_hlo(text).entry if each.opcode == "fusion"]
    return analyze(fusion.attr("calls", HloComputation), device(target), fusion.name)


@pytest.mark.parametrize("row", [row for row in ROWS if row["emitter"] == "loop"], ids=lambda row: row["name"])
def test_loop_launches_as_xla_does(row: dict[str, Any]) -> None:
    """Wrong: a rule of the grid, the block, or the unroll factor."""
    chosen = loop.launch(analysis_of(row["hlo"]))
    assert [list(chosen.grid), list(chosen.block), chosen.unroll] == [row["grid"], row["block"], row["factor"]]


def test_every_row_gets_xlas_emitter() -> None:
    """Wrong: a hero, a threshold, or the order of the decisions."""
    wrong = [row["name"] for row in ROWS if analysis_of(row["hlo"]).emitter != row["emitter"]]
    assert wrong == []
    assert Counter(row["emitter"] for row in ROWS).keys() >= {
        "loop",
        "transpose",
        "reduction",
        "scatter",
        "concatenate",
    }


def test_packed_and_padded_transposes_are_told_apart() -> None:
    """Wrong: the tile of the packed transpose."""
    for row in ROWS:
        if row["emitter"] == "transpose":
            found = analysis_of(row["hlo"]).transpose
            assert found is not None
            assert ("packed" if found.packed is not None else "padded") == row["variant"], row["name"]


def test_row_and_column_reductions_are_told_apart() -> None:
    """Wrong: the three dimensions of a reduction."""
    for row in ROWS:
        if row["emitter"] == "reduction":
            found = analysis_of(row["hlo"]).reduction
            assert found is not None
            assert found.is_row == (row["variant"] in ("row", "multi_row")), row["name"]


def unary(dtype: str, size: int) -> str:
    return (
        f"HloModule m\nf {{\n  p = {dtype}[{size}] parameter(0)\n  ROOT r = {dtype}[{size}] negate(p)\n}}\n"
        f"ENTRY e {{\n  p = {dtype}[{size}] parameter(0)\n  ROOT r = {dtype}[{size}] fusion(p), kind=kLoop, calls=f\n}}"
    )


@pytest.mark.parametrize(("dtype", "factor"), [("s8", 16), ("bf16", 8), ("f32", 4)])
def test_blackwell_unrolls_narrow_outputs_further(dtype: str, factor: int) -> None:
    """Measured with XLA for a B200 description: 8-bit 16, 16-bit 8, 32-bit 4 elements a thread."""
    assert loop.launch(analysis_of(unary(dtype, 1 << 24), "sm_100")).unroll == factor


def test_grid_beyond_the_limit_is_split() -> None:
    """The loop's grid is split evenly, a reduction's by powers of two (both measured with XLA)."""
    assert calculate_launch(1 << 41, H200, 4).grid == (1431655766, 3, 1)
    assert split_grid_x(1 << 31, H200) == (1 << 30, 2)
    assert split_grid_x(1 << 32, H200) == (1 << 30, 4)


@pytest.mark.parametrize(("name", "bits"), [("lp_tm1", 32), ("lp_c64", 32), ("du_dsother", 32)], ids=str)
def test_small_arrays_take_32_bit_indices(name: str, bits: int) -> None:
    rows = {row["name"]: row for row in ROWS}
    assert index_bits(analysis_of(rows[name]["hlo"])) == bits


def test_large_arrays_and_64_bit_starts_take_64_bit_indices() -> None:
    """Wrong: indices that wrap around."""
    assert index_bits(analysis_of(unary("s8", 2**31 - 1))) == 32
    assert index_bits(analysis_of(unary("s8", 2**31))) == 64
    assert index_bits(analysis_of(unary("s64", 1024))) == 32
    start = """HloModule m
f {
  p = f32[64] parameter(0)
  i = u64[] parameter(1)
  ROOT r = f32[8] dynamic-slice(p, i), dynamic_slice_sizes={8}
}
ENTRY e {
  p = f32[64] parameter(0)
  i = u64[] parameter(1)
  ROOT r = f32[8] fusion(p, i), kind=kLoop, calls=f
}"""
    assert index_bits(analysis_of(start)) == 64
    assert index_bits(analysis_of(start.replace("u64", "u8"))) == 32
    assert index_bits(analysis_of(unary("f32", 4), "cpu")) == 64


def test_refusals_say_why() -> None:
    """Each emitter passed over names the condition that failed."""
    refused = {each.emitter: each.reason for each in analysis_of(unary("f32", 4)).refused}
    assert refused.keys() >= {"reduction", "transpose", "scatter", "concatenate", "dynamic_update_slice"}
    assert "no dynamic-update-slice" in refused["dynamic_update_slice"]
