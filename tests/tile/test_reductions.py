"""Reductions: what the dispatched code computes in the simulator equals numpy, without findings; refusals by reason."""

from __future__ import annotations

import math
import re

import ml_dtypes
import numpy as np
import pytest

from tests.tile.helpers import body, read
from warpsmith.compiler.tile.programs import explain_tile, run_tile, tile_text
from warpsmith.errors import DispatchFailed, InvalidTileProgram
from warpsmith.simt.ptx.launch import PtxLaunch, simulate_ptx

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


def test_a_result_may_lie_on_one_of_the_lanes_alone() -> None:
    alone = LANE_QUAD[0], "TileLayout(S[(8, 1) : (4 @ laneid, 1)])"
    found, source, _ = reduced("sum", "warp", "float32", (8, 32), alone, "local")
    np.testing.assert_array_equal(found, source.sum(axis=1, keepdims=True))


# ------------------------------------------------------------------------------------------------ a slot on each thread
SLOTS = "TileLayout(S[(8, 4) : (4 @ laneid, 1 @ laneid)])"


def with_slots(config: str, *, src: str = "X") -> tuple[np.ndarray, np.ndarray]:
    """(8 x 4 results, A): a row's 32 elements lie on four lanes, eight on each, and each lane has a result."""
    head = 'A = T.match_buffer(A_ptr, (8, 32), "float32"); B = T.match_buffer(B_ptr, (8, 4), "float32")'
    lines = [
        f'X = T.alloc_buffer((8, 32), "float32", scope="local", layout={LANE_QUAD[0]})',
        f'Y = T.alloc_buffer((8, 4), "float32", scope="local", layout={SLOTS})',
        "Tx.warp.copy(X, A)",
        f"Tx.warp.sum(Y, X, axes=-1{config})",
        *(["Tx.warp.sum(Y, Y, axes=-1, thread_reduce=True)"] if src == "Y" else []),
        "Tx.warp.copy(B, Y)",
    ]
    source = np.arange(256, dtype=np.float32).reshape(8, 32)
    result = run_tile(read(body("\n".join(lines), parameters=head)), {"A_ptr": source})
    assert result.ok, (dict(result.mismatches), [str(f) for f in result.findings])
    return np.asarray(result.outputs["B_ptr"]), source


def test_a_slot_holds_what_its_lane_has() -> None:
    found, source = with_slots("")
    np.testing.assert_array_equal(found, source.reshape(8, 4, 8).sum(axis=2))


@pytest.mark.parametrize(("config", "src"), [(", thread_reduce=True", "X"), ("", "Y")])
def test_thread_reduce_gives_every_slot_the_whole(config: str, src: str) -> None:
    found, source = with_slots(config, src=src)
    np.testing.assert_array_equal(found, np.repeat(source.sum(axis=1, keepdims=True), 4, axis=1))


def test_memory_has_no_slots() -> None:
    text = 's = T.alloc_shared((8, 32), "float32"); t = T.alloc_shared((8, 4), "float32")\nTx.warp.sum(t, s, axes=1)'
    with pytest.raises(InvalidTileProgram, match="only registers that are spread over threads"):
        read(body(text))


# --------------------------------------------------------------------------------------------------- over several warps
CTA_ROWS = (
    "TileLayout(S[(2, 4, 32, 2) : (1, 1 @ warpid, 1 @ laneid, 2)])",
    "TileLayout(S[(2, 1) : (1, 1)] + R[(4, 32) : (1 @ warpid, 1 @ laneid)])",
)
CTA_HALVES = (
    "TileLayout(S[(2, 64, 4) : (64 @ tx, 1 @ tx, 1)])",
    "TileLayout(S[(2, 1) : (64 @ tx, 1)] + R[64 : 1 @ tx])",
)
GROUP_ROWS = tuple(text.replace("warpid", "wid_in_wg") for text in CTA_ROWS)


@pytest.mark.parametrize("name", sorted(NUMPY))
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8", "int64"])
@pytest.mark.parametrize("accum", [False, True])
@pytest.mark.parametrize(
    ("scope", "layouts"),
    [("cta", CTA_ROWS), ("cta", CTA_HALVES), ("warpgroup", GROUP_ROWS)],
    ids=["rows", "halves", "wg"],
)
def test_registers_of_several_warps(scope: str, layouts: tuple[str, str], name: str, dtype: str, accum: bool) -> None:
    values = np.random.default_rng(7).integers(0, 2, (2, 256)) if name == "sum" else None
    found, source, variants = reduced(
        name, scope, dtype, (2, 256), layouts, "local", accum=accum, block=128, values=values
    )
    wanted = NUMPY[name](source.astype(np.float64), axis=1, keepdims=True)
    if accum:
        wanted = {"sum": np.add, "max": np.maximum, "min": np.minimum}[name](wanted, 3)
    wanted = wanted.astype(np.int64) if dtype.startswith("int") else wanted
    np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(source.dtype).astype(np.float64))
    assert any("through shared memory" in partition for _, partition in variants)


def test_three_warps_and_half_of_a_fourth() -> None:
    """Shuffles reach only lanes of one warp: 112 threads of 16 lanes each go through shared memory."""
    layouts = "TileLayout(S[(1, 112) : (1, 1 @ tx)])", "TileLayout(S[(1, 1) : (1, 1)] + R[112 : 1 @ tx])"
    found, source, _ = reduced("sum", "cta", "int32", (1, 112), layouts, "local", block=112)
    np.testing.assert_array_equal(found, source.sum(axis=1, keepdims=True))


def test_partial_results_take_turns_in_shared_memory() -> None:
    """Two reductions share their memory, and so do the turns of a loop: no race is found, and one array is made."""
    head = 'A = T.match_buffer(A_ptr, (2, 256), "float32"); B = T.match_buffer(B_ptr, (2, 1), "float32")'
    lines = [
        f'X = T.alloc_buffer((2, 256), "float32", scope="local", layout={CTA_ROWS[0]})',
        f'Y = T.alloc_buffer((2, 1), "float32", scope="local", layout={CTA_ROWS[1]})',
        "Tx.cta.copy(X, A)",
        "Tx.cta.max(Y, X, axes=1)",
        "for i in range(3):",
        "    Tx.cta.sum(Y, X, axes=1, accum=True)",
        "Tx.cta.copy(B, Y)",
    ]
    kernel = read(body("\n".join(lines), parameters=head, block=128))
    source = np.random.default_rng(1).integers(-9, 9, (2, 256)).astype(np.float32)
    result = run_tile(kernel, {"A_ptr": source})
    assert result.ok, (dict(result.mismatches), [str(f) for f in result.findings])
    wanted = source.max(axis=1, keepdims=True) + 3 * source.sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(result.outputs["B_ptr"], wanted)
    assert tile_text(kernel, "cuda").count("__shared__") == 1


# ------------------------------------------------------------------------------------------------------- types, lanes
@pytest.mark.parametrize("scope", ["warp", "cta"])
def test_narrow_floats_are_summed_in_float32(scope: str) -> None:
    """2048 + 1 - 2048: float16 has no 2049, so a sum in float16 would lose the 1."""
    values = np.zeros((32, 8))
    values[:, :3] = 2048, 1, -2048
    found, _, _ = reduced("sum", scope, "float16", (32, 8), LANE_ROW, "local", values=values)
    np.testing.assert_array_equal(found.astype(np.float32), np.ones((32, 1)))


@pytest.mark.parametrize(("src", "dst", "wanted"), [("int8", "int8", 1600 - 6 * 256), ("int8", "int32", 1600)])
def test_narrow_integers_are_exact_in_a_wider_destination(src: str, dst: str, wanted: int) -> None:
    head = f'A = T.match_buffer(A_ptr, (16, 16), "{src}"); B = T.match_buffer(B_ptr, (16, 1), "{dst}")'
    lines = [
        f's = T.alloc_shared((16, 16), "{src}"); t = T.alloc_shared((16, 1), "{dst}")',
        "Tx.warp.copy(s, A); T.cuda.warp_sync(); Tx.warp.sum(t, s, axes=1); Tx.warp.copy(B, t)",
    ]
    result = run_tile(read(body("\n".join(lines), parameters=head)), {"A_ptr": np.full((16, 16), 100, src)})
    assert result.ok
    np.testing.assert_array_equal(result.outputs["B_ptr"], np.full((16, 1), wanted))


@pytest.mark.parametrize(
    ("shape", "pitch", "block", "lanes"),
    [
        ((128, 32), 33, 128, 1),  # an output a thread keeps all busy, and rows of 33 words don't conflict
        ((16, 64), 72, 128, 8),  # all are busy: 8 loads, 3 shuffles; four rows' numbers are in 32 banks
        ((1, 128), 128, 128, 32),  # a whole warp: 4 loads, 5 shuffles
        ((4, 5), 5, 64, 2),  # 3 loads, 1 shuffle
        ((100, 6), 7, 128, 1),
    ],
)
def test_lanes_share_an_output(shape: tuple[int, int], pitch: int, block: int, lanes: int) -> None:
    layouts = f"TileLayout(S[{shape} : ({pitch}, 1)])", f"TileLayout(S[({shape[0]}, 1)])"
    found, source, variants = reduced("sum", "cta", "float32", shape, layouts, "shared", block=block)
    np.testing.assert_array_equal(found, source.sum(axis=1, keepdims=True))
    assert ("smem", lanes) in [(name, _lanes(words)) for name, words in variants]


def _lanes(partition: str) -> int:
    found = re.search(r"by (\d+) lane", partition)
    return int(found[1]) if found else 0


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("scope", ["warp", "cta"])
def test_infinities_and_nan_in_shared_memory(name: str, scope: str) -> None:
    values = np.full((4, 40), -np.inf if name == "max" else np.inf)
    values[3, 37] = np.nan
    layouts = "TileLayout(S[(4, 40)])", "TileLayout(S[(4, 1)])"
    found, source, _ = reduced(name, scope, "float32", (4, 40), layouts, "shared", values=values)
    np.testing.assert_array_equal(found, NUMPY[name](source, axis=1, keepdims=True))


# ------------------------------------------------------------------------------------------------------------- rounding
@pytest.mark.parametrize("name", ["add", "sub", "mul", "fma"])
def test_arithmetic_rounds_to_nearest_and_keeps_subnormals_on_sm_100(name: str) -> None:
    """The peer's packed add rounds towards zero and flushes by default (B12)."""
    shapes = ", ".join(f'{x} = T.match_buffer({x}_ptr, (32, 8), "float32")' for x in "AB").replace(", B", "; B")
    tiles = "\n".join(
        f'{x} = T.alloc_buffer((32, 8), "float32", scope="local", layout={LANE_ROW[0]})\nTx.warp.copy({x}, A)'
        for x in "XY"
    )
    operands = "Y, X, X, X" if name == "fma" else "Y, X, 1.1754942e-38" if name == "sub" else "Y, X, X"
    kernel = read(body(f"{tiles}\nTx.warp.{name}({operands})\nTx.warp.copy(B, Y)", parameters=shapes))
    values = np.full((32, 8), 1 + 3 * 2**-23, np.float32)
    values[0] = 1e-39  # subnormal
    result = run_tile(kernel, {"A_ptr": values}, target="sm_100")
    assert result.ok
    wide = values.astype(np.float64)
    wanted = {
        "add": wide + wide, "sub": wide - np.float32(1.1754942e-38), "mul": wide * wide,
        "fma": (wide * wide).astype(np.float32).astype(np.float64) + wide,
    }[name].astype(np.float32)  # fmt: skip
    np.testing.assert_array_equal(result.outputs["B_ptr"], wanted)
    text = tile_text(kernel, "ptx", "sm_100")
    assert re.search(r"\b(add|sub|mul)\.rn\.f32x2\b", text)
    assert ".rz" not in text
    assert ".ftz" not in text


@pytest.mark.parametrize("option", ['rounding_mode="rz"', "ftz=True"])
def test_other_roundings_are_refused_by_name(option: str) -> None:
    tile = f'X = T.alloc_buffer((32, 8), "float32", scope="local", layout={LANE_ROW[0]})\n'
    with pytest.raises(DispatchFailed, match="rounds to nearest" if "rz" in option else "subnormals"):
        explain_tile(read(body(f"{tile}Tx.warp.add(X, X, X, {option})")), "sm_100")


@pytest.mark.parametrize("option", ['rounding_mode="nearest"', "ftz=1"])
def test_an_option_has_the_values_that_it_has(option: str) -> None:
    tile = f'X = T.alloc_buffer((32, 8), "float32", scope="local", layout={LANE_ROW[0]})\n'
    with pytest.raises(InvalidTileProgram, match=option.partition("=")[0]):
        read(body(f"{tile}Tx.warp.add(X, X, X, {option})"))


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64", "float32", "int8"])
def test_ptx_of_a_reduction_computes_it(dtype: str) -> None:
    """A shuffle moves 32 bits: of 64-bit numbers the halves go one after the other."""
    head = f'A = T.match_buffer(A_ptr, (8, 32), "{dtype}"); B = T.match_buffer(B_ptr, (8, 1), "{dtype}")'
    lines = [
        f'X = T.alloc_buffer((8, 32), "{dtype}", scope="local", layout={LANE_QUAD[0]})',
        f'Y = T.alloc_buffer((8, 1), "{dtype}", scope="local", layout={LANE_QUAD[1]})',
        "Tx.warp.copy(X, A); Tx.warp.max(Y, X, axes=1); Tx.warp.copy(B, Y)",
    ]
    text = tile_text(read(body("\n".join(lines), parameters=head)), "ptx")
    source = np.random.default_rng(2).integers(-100, 100, (8, 32)).astype(dtype)
    source[::2] *= np.array(3, dtype) ** (np.dtype(dtype).itemsize * 4)
    (found,), _ = simulate_ptx(text, [source], [(source.dtype, 8)], PtxLaunch((1,), (32,)))
    np.testing.assert_array_equal(found, source.max(axis=1))
    assert text.count("shfl.sync.bfly") == 2 * (2 if source.itemsize == 8 else 1)


def test_each_warpgroup_has_its_own_partial_results() -> None:
    """Two warpgroups reduce at the same time, one of them more often: no race, named barriers of their own."""
    head = 'A = T.match_buffer(A_ptr, (4, 256), "float32"); B = T.match_buffer(B_ptr, (4, 1), "float32")'
    lines = [
        "wg = T.warpgroup_id()",
        f'X = T.alloc_buffer((2, 256), "float32", scope="local", layout={GROUP_ROWS[0]})',
        f'Y = T.alloc_buffer((2, 1), "float32", scope="local", layout={GROUP_ROWS[1]})',
        "Tx.wg.copy(X, A[wg * 2 : wg * 2 + 2, 0:256])",
        "Tx.wg.sum(Y, X, axes=1)",
        "if wg == 1:",
        "    Tx.wg.sum(Y, X, axes=1, accum=True)",
        "Tx.wg.copy(B[wg * 2 : wg * 2 + 2, 0:1], Y)",
    ]
    kernel = read(body("\n".join(lines), parameters=head, block=256))
    source = np.random.default_rng(4).integers(-9, 9, (4, 256)).astype(np.float32)
    result = run_tile(kernel, {"A_ptr": source})
    assert result.ok, (dict(result.mismatches), [str(f) for f in result.findings])
    wanted = source.sum(axis=1, keepdims=True) * np.array([[1], [1], [2], [2]])
    np.testing.assert_array_equal(result.outputs["B_ptr"], wanted)


@pytest.mark.parametrize("accum", [False, True])
def test_a_number_on_each_lane_is_a_tile(accum: bool) -> None:
    """A scalar of each thread, viewed as a tile of 32, adds up to a tile of one that all lanes have (B10: accum)."""
    lines = [
        'x = T.alloc_local((1,), "float32"); y = T.alloc_local((1,), "float32")',
        "x[0] = A[tid]; y[0] = 5.0",
        "lanes = x.view(32, layout=TileLayout(S[32 : 1 @ laneid]))",
        "total = y.view(1, layout=TileLayout(S[1:1] + R[32 : 1 @ laneid]))",
        f"Tx.warp.sum(total, lanes, thread_reduce=True, accum={accum})",
        "B[tid] = y[0]",
    ]
    head = 'A = T.match_buffer(A_ptr, (32,), "float32"); B = T.match_buffer(B_ptr, (32,), "float32")'
    result = run_tile(read(body("\n".join(lines), parameters=head)), {"A_ptr": np.arange(32, dtype=np.float32)})
    assert result.ok
    np.testing.assert_array_equal(result.outputs["B_ptr"], np.full(32, 496 + 5 * accum))


def test_rows_of_a_fragment_in_two_steps() -> None:
    """Attention's row maximum: each lane over its own elements of 16 x 128, then four lanes in place."""
    lines = [
        'acc = T.alloc_local((64,), "float32"); red = T.alloc_local((2,), "float32")',
        "scores = acc.view(16, 128, layout=TileLayout(S[(2, 8, 16, 4, 2) : (2, 4 @ laneid, 4, 1 @ laneid, 1)]))",
        "rows = red.view(16, 4, layout=TileLayout(S[(2, 8, 4) : (1, 4 @ laneid, 1 @ laneid)]))",
        "Tx.warp.copy(scores, A)",
        "Tx.warp.max(rows, scores, [-1], False)",
        "Tx.warp.max(rows, rows, thread_reduce=True)",
        "B[tid // 4, tid % 4] = red[0]",
        "B[tid // 4 + 8, tid % 4] = red[1]",
    ]
    head = 'A = T.match_buffer(A_ptr, (16, 128), "float32"); B = T.match_buffer(B_ptr, (16, 4), "float32")'
    source = np.random.default_rng(9).standard_normal((16, 128)).astype(np.float32)
    result = run_tile(read(body("\n".join(lines), parameters=head)), {"A_ptr": source})
    assert result.ok
    np.testing.assert_array_equal(result.outputs["B_ptr"], np.repeat(source.max(axis=1, keepdims=True), 4, axis=1))
