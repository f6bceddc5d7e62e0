"""Reductions: what the dispatched code computes in the simulator equals numpy, without findings; refusals by reason."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from tests.tile.helpers import body, read
from warpsmith.compiler.tile_programs import explain_tile, run_tile
from warpsmith.errors import DispatchFailed

NUMPY = {"sum": np.sum, "max": np.max, "min": np.min}
PADDED = "TileLayout(S[(32, 8) : (9, 1)])"
SWIZZLED = "ComposeLayout(2, 1, 3, tile=TileLayout(S[(32, 8)]))"
LANE_ROW = "TileLayout(S[(32, 8) : (1 @ laneid, 1)])", "TileLayout(S[(32, 1) : (1 @ laneid, 1)])"
LANE_QUAD = (
    "TileLayout(S[(8, 4, 8) : (4 @ laneid, 1 @ laneid, 1)])",
    "TileLayout(S[(8, 1) : (4 @ laneid, 1)] + R[4 : 1 @ laneid])",
)


def reduced(
    name: str, scope: str, dtype: str, shape: tuple[int, int], layouts: tuple[str, str], where: str, *, axis: int = 1,
    accum: bool = False, block: int = 32, values: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, list[tuple[str, str]]]:  # fmt: skip
    """(what the simulator gives, src, the variants): src from A; dst is B's part, read first where it accumulates."""
    out = (shape[0], 1) if axis == 1 else (1, shape[1])
    head = f'A = T.match_buffer(A_ptr, {shape}, "{dtype}"); B = T.match_buffer(B_ptr, {out}, "{dtype}")'
    mover = "cta" if scope == "thread" else scope
    call = f"Tx.{scope}." if scope != "thread" else "Tx."
    guard = "if tid == 0:\n    " if scope == "thread" else ""
    lines = [
        f'X = T.alloc_buffer({shape}, "{dtype}", scope="{where}", layout={layouts[0]})',
        f'Y = T.alloc_buffer({out}, "{dtype}", scope="{where}", layout={layouts[1]})',
        f"Tx.{mover}.copy(X, A)",
        *([f"Tx.{mover}.fill(Y, 3.0)"] if accum else []),
        "T.cuda.cta_sync()",
        f"{guard}{call}{name}(Y, X, axes=[{axis}], accum={accum})",
        "T.cuda.cta_sync()",
        f"Tx.{mover}.copy(B, Y)",
    ]
    kernel = read(body("\n".join(lines), parameters=head, block=block))
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if values is None:
        values = np.random.default_rng(3).integers(-20, 20, math.prod(shape)).reshape(shape)
    source = values.astype(kind)
    result = run_tile(kernel, {"A_ptr": source})
    assert result.ok, (dict(result.mismatches), [str(f) for f in result.findings])
    return (
        np.asarray(result.outputs["B_ptr"]).reshape(out),
        source,
        [(c.variant, c.partition) for c in explain_tile(kernel)],
    )


@pytest.mark.parametrize("name", sorted(NUMPY))
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32"])
@pytest.mark.parametrize("layouts", [LANE_ROW, LANE_QUAD])
@pytest.mark.parametrize("accum", [False, True])
def test_registers(name: str, dtype: str, layouts: tuple[str, str], accum: bool) -> None:
    shape = (32, 8) if layouts is LANE_ROW else (8, 32)
    found, source, variants = reduced(name, "warp", dtype, shape, layouts, "local", accum=accum)
    wanted = NUMPY[name](source.astype(np.float64), axis=1, keepdims=True)
    if accum:
        wanted = {"sum": np.add, "max": np.maximum, "min": np.minimum}[name](wanted, 3)
    np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(source.dtype).astype(np.float64))
    assert any(variant == "reg" and "shuffles" in partition for variant, partition in variants)


@pytest.mark.parametrize("scope", ["thread", "warp", "warpgroup", "cta"])
@pytest.mark.parametrize("name", sorted(NUMPY))
@pytest.mark.parametrize("layout", [PADDED, SWIZZLED])
@pytest.mark.parametrize("axis", [0, 1])
def test_shared(scope: str, name: str, layout: str, axis: int) -> None:
    block = {"warp": 32, "warpgroup": 128}.get(scope, 64)
    out = "TileLayout(S[(32, 1)])" if axis else "TileLayout(S[(1, 8)])"
    found, source, _ = reduced(name, scope, "float32", (32, 8), (layout, out), "shared", axis=axis, block=block)
    np.testing.assert_array_equal(found, NUMPY[name](source, axis=axis, keepdims=True))


@pytest.mark.parametrize("name", ["max", "min"])
def test_infinities_and_nan(name: str) -> None:
    values = np.full((32, 8), -np.inf if name == "max" else np.inf)
    values[3, 5] = np.nan
    found, source, _ = reduced(name, "warp", "float32", (32, 8), LANE_ROW, "local", values=values)
    np.testing.assert_array_equal(found, NUMPY[name](source, axis=1, keepdims=True))


def test_a_result_that_is_not_copied_to_the_lanes_is_refused() -> None:
    alone = LANE_QUAD[0], "TileLayout(S[(8, 1) : (4 @ laneid, 1)])"
    with pytest.raises(DispatchFailed, match="isn't copied to the lanes"):
        reduced("sum", "warp", "float32", (8, 32), alone, "local")
