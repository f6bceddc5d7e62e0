"""Tiles of elements narrower than a byte: what a kernel says of its shared memory is what its PTX takes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hero_kernels import body

import warpsmith as ws
from warpsmith.compiler import compile, simulate
from warpsmith.dtypes import by_name
from warpsmith.emitters.kernel.launch import shared_tile_bytes
from warpsmith.hlo.text.parser import parse_hlo


def kept_rows(dtype: str, width: int) -> str:
    """Rows of `width` elements turned as wholes."""
    return body(f"""
        p0 = {dtype}[33,40,{width}] parameter(0)
        ROOT r = {dtype}[40,33,{width}] transpose(p0), dimensions={{1,0,2}}""")


def turned(dtype: str) -> str:
    return body(f"""
        p0 = {dtype}[66,65] parameter(0)
        ROOT r = {dtype}[65,66] transpose(p0), dimensions={{1,0}}""")


def largest(dtype: str, dims: str, dim: int, kept: str) -> str:
    return body(f"""
        p0 = {dtype}[{dims}] parameter(0)
        c = {dtype}[] constant(0)
        ROOT r = {dtype}[{kept}] reduce(p0, c), dimensions={{{dim}}}, to_apply=add_{dtype}""")


CASES = {
    **{f"{dtype} rows of {n}": kept_rows(dtype, n) for dtype in ("u2", "s2", "s4") for n in (2, 3, 4, 6, 8, 12, 16)},
    "u2 rows of 32": kept_rows("u2", 32),
    "u2 turned": turned("u2"),
    "s2 turned": turned("s2"),
    "s4 rows reduced": largest("s4", "5,520", 1, "5"),
    "s4 columns reduced": largest("s4", "64,36", 0, "36"),
    "s4 few columns reduced": largest("s4", "300,8", 0, "8"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_tiles_take_what_is_said_and_results_are_right(name: str) -> None:
    """Wrong: threads that write one byte of a tile, a vector of less than a byte, or bytes that nobody counted."""
    module = parse_hlo(CASES[name])
    exe = compile(module, "sm_90")
    (kernel,) = exe.kernels
    tiles = re.findall(r"\.shared \.align \d+ \.b8 \S+?\[(\d+)\]", exe.artifact("ptx"))
    assert kernel.shared_bytes == sum(map(int, tiles)) > 0
    dtype = module.entry.parameters[0].array_shape.dtype
    rng = np.random.default_rng(2)
    low, high = (-(1 << dtype.bits - 1), 1 << dtype.bits - 1) if dtype.is_signed else (0, 1 << dtype.bits)
    values = rng.integers(low, high, module.entry.parameters[0].array_shape.dims).astype(dtype.numpy)
    found = simulate(module, values)
    assert found.findings == []
    np.testing.assert_array_equal(found.outputs[0].astype(np.int8), ws.evaluate(module, values)[0].astype(np.int8))


@pytest.mark.parametrize(
    ("dtype", "run", "bytes"),
    [("s4", 1, 66), ("s4", 2, 33), ("s4", 6, 66), ("u2", 2, 66), ("u2", 4, 17), ("s8", 1, 66), ("f32", 3, 264)],
)
def test_runs_of_whole_bytes_are_packed(dtype: str, run: int, bytes: int) -> None:
    assert shared_tile_bytes(by_name(dtype), 66, run) == bytes
