"""Registers that are computed on in pairs give the bits that they give one by one."""

from __future__ import annotations

import contextlib
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.tile.helpers import body, read
from warpsmith.arrays import Array
from warpsmith.compiler.tile.programs import tile_bytes, tile_text
from warpsmith.errors import ToolMissing
from warpsmith.simt.core.checks import Checks
from warpsmith.simt.ptx.launch import PtxLaunch, simulate_ptx

TILE = "TileLayout(S[(32, {n}) : (1 @ laneid, 1)])"
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-45, 3.4e38, 1e-20, 65520.0], np.float32)
EXPECTED = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "fma": lambda a, b: a * b + b,
}


def program(call: str, out: str = "float32", n: int = 8) -> Any:
    head = "; ".join(
        f'{name} = T.match_buffer({name}_ptr, (32, {n}), "{type}")' for name, type in (("A", "float32"), ("B", out))
    )
    layout = TILE.format(n=n)
    lines = [
        f'x = T.alloc_local((32, {n}), "float32", layout={layout})',
        f'y = T.alloc_local((32, {n}), "float32", layout={layout})',
        f'z = T.alloc_local((32, {n}), "{out}", layout={layout})',
        "Tx.warp.copy(x, A)",
        "Tx.warp.mul(y, x, -0.75)",
        call,
        "Tx.warp.copy(B, z)",
    ]
    return read(body("\n".join(lines), parameters=head))


def inputs(n: int) -> Array:
    a = np.random.default_rng(0).standard_normal((32, n)).astype(np.float32)
    a.reshape(-1)[: SPECIAL.size] = SPECIAL
    return a


def run(kernel: Any, target: str, a: Array, out: Any) -> tuple[Array, str]:
    text = tile_text(kernel, "ptx", target)
    (found,), stats = simulate_ptx(text, [a], [(np.dtype(out), a.size)], PtxLaunch((1,), (32,)), checks=Checks())
    assert stats.findings == []
    with contextlib.suppress(ToolMissing):
        assert tile_bytes(kernel, target).startswith(b"\x7fELF")
    return found.reshape(a.shape), text


@pytest.mark.parametrize("n", [8, 2, 7])
@pytest.mark.parametrize("name", EXPECTED)
def test_arithmetic_in_pairs_has_the_same_bits(name: str, n: int) -> None:
    kernel = program(f"Tx.warp.{name}(z, x, y{', y' if name == 'fma' else ''})", n=n)
    a = inputs(n)
    with np.errstate(all="ignore"):
        wanted = EXPECTED[name](a, a * np.float32(-0.75))
    for target, pairs in (("sm_80", False), ("sm_90", False), ("sm_100", n % 2 == 0)):
        found, text = run(kernel, target, a, np.float32)
        np.testing.assert_array_equal(
            found.view(np.uint32)[~np.isnan(wanted)], wanted.view(np.uint32)[~np.isnan(wanted)]
        )
        assert np.isnan(found[np.isnan(wanted)]).all()
        assert ("f32x2" in text) == pairs
        assert ".ftz" not in text


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize(("out", "dtype"), [("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)])
def test_conversions_in_pairs_have_the_same_bits(out: str, dtype: Any, target: str) -> None:
    a = inputs(8)
    found, text = run(program("Tx.warp.cast(z, x)", out), target, a, dtype)
    with np.errstate(all="ignore"):
        wanted = a.astype(dtype)
    good = ~np.isnan(wanted.astype(np.float32))
    np.testing.assert_array_equal(found.view(np.uint16)[good], wanted.view(np.uint16)[good])
    assert np.isnan(found.astype(np.float32)[~good]).all()
    assert f"cvt.rn.{'f16x2' if out == 'float16' else 'bf16x2'}.f32" in text
