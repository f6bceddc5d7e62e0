"""Memory under other names: views as other element types, symbolic extents, dynamic shared memory, and layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.tile.helpers import body, read
from warpsmith.compiler.tile.programs import TileRun, run_tile, tile_bytes, tile_text
from warpsmith.errors import ArgumentMismatch, InvalidTileProgram, ToolMissing, WarpsmithError
from warpsmith.report.explain.tile import tile_explanation
from warpsmith.simt.ptx.launch import PtxLaunch, run_ptx

A = (np.random.default_rng(5).random((64, 64)) * 3 + 0.5).astype(np.float32)
LANE_ROW = 'R_ = T.alloc_buffer((32, 8), "float32", scope="local", layout=TileLayout(S[(32, 8) : (1 @ laneid, 1)]))\n'


def right(text: str, arrays: Any = None, **options: Any) -> TileRun:
    kernel = read(text if text.startswith("@") else body(text, **options))
    result = run_tile(kernel, {"A_ptr": A} if arrays is None else arrays)
    assert result.ok, (dict(result.mismatches), [str(f) for f in result.findings])
    assert ".local" not in tile_text(kernel, "ptx")
    assert tile_text(kernel, "cuda")
    assert tile_text(read(tile_text(kernel, "tirx")), "tirx") == tile_text(kernel, "tirx")
    return result


# ----------------------------------------------------------------------------------------- views as other element types
WIDTHS = ["int8", "float8_e4m3fn", "int16", "float16", "bfloat16", "int32", "uint32", "float64", "int64"]


def bits(name: str) -> int:
    return int("".join(c for c in name.split("_")[0].replace("float8", "float 8") if c.isdigit()))


@pytest.mark.parametrize("dtype", WIDTHS)
def test_a_register_tile_as_another_type_and_back(dtype: str) -> None:
    columns = 8 * 32 // bits(dtype)
    layout = f"TileLayout(S[(32, {columns}) : (1 @ laneid, 1)])"
    other = f'W = T.alloc_buffer((32, {columns}), "{dtype}", scope="local", layout={layout})\n'
    text = LANE_ROW + other + f'Tx.warp.copy(R_, A[0:32, 0:8])\nv = R_.view("{dtype}")\nTx.warp.copy(W, v)\n'
    text += "Tx.warp.zero(R_)\nTx.warp.copy(v, W)\nTx.warp.copy(B[0:32, 0:8], R_)"
    np.testing.assert_array_equal(right(text).outputs["B_ptr"][:32, :8], A[:32, :8])


@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize("pad", [0, 4])
def test_a_shared_tile_as_another_type_and_back(dtype: str, pad: int) -> None:
    columns = 8 * 32 // bits(dtype)
    text = f's = T.alloc_shared((32, 8), "float32", layout=TileLayout(S[(32, 8) : ({8 + pad}, 1)]))\n'
    text += f'd = T.alloc_shared((32, {columns}), "{dtype}")\nv = s.view("{dtype}")\nTx.cta.copy(s, A[0:32, 0:8])\n'
    text += "T.cuda.cta_sync()\nTx.cta.copy(d, v)\nT.cuda.cta_sync()\nTx.cta.zero(s)\nTx.cta.copy(v, d)\n"
    text += "T.cuda.cta_sync()\nTx.cta.copy(B[0:32, 0:8], s)"
    np.testing.assert_array_equal(right(text, block=64).outputs["B_ptr"][:32, :8], A[:32, :8])


def test_elements_of_parameters_as_halves_and_doubles() -> None:
    text = 'v = A.view("int16"); w = B.view("int16")\nfor i in range(64):\n    w[tid, i * 2] = v[tid, i * 2]\n'
    found = right(text + "    w[tid, i * 2 + 1] = 16384").outputs["B_ptr"][:32].view(np.uint32)
    np.testing.assert_array_equal(found, (A[:32].view(np.uint32) & 0xFFFF) | 16384 << 16)
    text = 'v = A.view("float64"); w = B.view("float64")\nfor i in range(32):\n    w[tid, 31 - i] = v[tid, i]'
    found = right(text).outputs["B_ptr"][:32]
    np.testing.assert_array_equal(found, A[:32].reshape(32, 32, 2)[:, ::-1].reshape(32, 64))


def test_arithmetic_on_the_bits_of_a_tile() -> None:
    text = LANE_ROW + 'Tx.warp.copy(R_, A[0:32, 0:8])\nv = R_.view("int32")\nTx.warp.add(v, v, 1)\n'
    found = right(text + "Tx.warp.copy(B[0:32, 0:8], R_)").outputs["B_ptr"][:32, :8]
    np.testing.assert_array_equal(found, np.nextafter(A[:32, :8], np.float32(np.inf)))


def test_two_threads_write_the_halves_of_one_element() -> None:
    """Nothing is read back to be written: a wide element is made of narrow ones, not the other way round."""
    text = 's = T.alloc_shared((16,), "float32"); h = s.view("int16")\nh[tid] = tid\nT.cuda.cta_sync()\n'
    text += 'i = s.view("int32")\nif tid < 16:\n    B[0, tid] = i[tid]'
    t = np.arange(16)
    np.testing.assert_array_equal(right(text).outputs["B_ptr"][0, :16], 2 * t + (2 * t + 1) * 65536)


@pytest.mark.parametrize(
    ("view", "words"),
    [
        ('A[0:1, 0:1].view("float64")', "has no 'view'|Region"),
        ('A.permute(1, 0).view("float64")', "innermost|side by side|stride"),
        ('T.alloc_shared((8, 7)).view("float64")', "7 elements of float32 don't make whole elements of float64"),
        ('T.alloc_shared((8, 8), "bool").view("int8")', "can't be viewed as int8"),
        (
            'T.alloc_shared((8, 32), layout=ComposeLayout(2, 3, 3, tile=TileLayout(S[(8, 32)]))).view("int16")',
            "a swizzled buffer keeps its element width",
        ),
    ],
)
def test_views_that_have_no_meaning_are_refused(view: str, words: str) -> None:
    with pytest.raises(WarpsmithError, match=words) as caught:
        read(body(f"v = {view}"))
    assert caught.value.span is not None


# ----------------------------------------------------------------------------------------------------- symbolic extents
def symbolic(symbols: str, a: str, b: str, statements: str, *, block: int = 32) -> str:
    lines = "\n".join(f"    {line}" for line in statements.split("\n"))
    return (
        f"@T.prim_func\ndef k(A_ptr: T.handle, B_ptr: T.handle):\n    {symbols}\n"
        f'    A = T.match_buffer(A_ptr, {a}, "float32"); B = T.match_buffer(B_ptr, {b}, "float32")\n'
        f"    T.device_entry(); bx = T.cta_id([1]); tid = T.thread_id([{block}])\n{lines}\n"
    )


MN = "m = T.int32(); n = T.int32()"
TILE = "s = T.alloc_shared((32, 32))\nTx.cta.copy(s, A[8:40, 4:36])\nT.cuda.cta_sync()\nTx.cta.copy(B[0:32, 0:32], s)"


@pytest.mark.parametrize(("shape", "width"), [((40, 36), 1), ((41, 64), 1)])
def test_both_extents_of_a_matrix(shape: tuple[int, int], width: int) -> None:
    a = A[:1].repeat(shape[0], 0)[:, : shape[1]] * np.arange(shape[0], dtype=np.float32)[:, None]
    text = symbolic(MN, "(m, n)", "(m, n)", TILE)
    np.testing.assert_array_equal(right(text, [a]).outputs["B_ptr"][:32, :32], a[8:40, 4:36])
    assert f"x {width} element{'s' * (width > 1)}\n" in tile_text(read(text), "dispatched")


def test_what_divides_a_row_is_known_of_its_stride() -> None:
    text = symbolic(MN, "(m, n * 4)", "(m, n * 4)", TILE)
    np.testing.assert_array_equal(right(text, [A]).outputs["B_ptr"][:32, :32], A[8:40, 4:36])
    assert "8 x 32 threads x 4 elements" in tile_text(read(text), "dispatched")


def test_three_dims_registers_and_moving_regions() -> None:
    loops = "for i in range(m // 32):\n    for q in range(4):\n        for j in range(n // 2):\n            "
    part = "[i * 32 : i * 32 + 32, q, j * 8 : j * 8 + 8]"
    text = symbolic(
        MN,
        "(m, 4, n * 4)",
        "(m, 4, n * 4)",
        LANE_ROW + loops + f"Tx.warp.copy(R_, A{part})\n            Tx.warp.copy(B{part}, R_)",
    )
    a = np.random.default_rng(2).random((64, 4, 16), dtype=np.float32)
    np.testing.assert_array_equal(right(text, [a]).outputs["B_ptr"], a)


def test_a_transpose_by_elements_and_shapes() -> None:
    text = symbolic(
        MN,
        "(m, n)",
        "(n, m)",
        "for i in range(A.shape[0]):\n    for j in range(tid, A.shape[1], 32):\n        B[j, i] = A[i, j]",
    )
    a = np.ascontiguousarray(A[:5, :7])
    np.testing.assert_array_equal(right(text, [a]).outputs["B_ptr"], a.T)


NOTHING = "if tid < 1:\n    B[0, 0] = 1.0"


@pytest.mark.parametrize(
    ("a", "b", "shapes", "n"),
    [
        ("(n * 4, 2)", "(n, 2)", ((8, 2), (2, 2)), None),
        ("(n * 4, 2)", "(n, 2)", ((8, 2), None), None),
        ("(2 * n + 3, 2)", "(n, 2)", ((7, 2), (2, 2)), None),
        ("(n // 2, 2)", "(n, 2)", ((3, 2), (7, 2)), None),
        ("(n // 2, 2)", "(n // 3, 2)", ((3, 2), (2, 2)), 7),
        ("(n + 1, n)", "(n, n + 1)", ((4, 3), (3, 4)), None),
    ],
)
def test_extents_are_solved_for_symbols(a: str, b: str, shapes: Any, n: int | None) -> None:
    arrays = {name: np.ones(s, np.float32) for name, s in zip(("A_ptr", "B_ptr"), shapes, strict=True) if s}
    assert run_tile(read(symbolic("n = T.int32()", a, b, NOTHING)), arrays | ({"n": n} if n else {})).ok


@pytest.mark.parametrize(
    ("a", "b", "shapes", "words"),
    [
        ("(n * 4, 2)", "(n, 2)", ((7, 2), None), "dim 0 of 'A_ptr' is 7, which doesn't say what n is in n \\* 4"),
        ("(n // 2, 2)", "(n // 3, 2)", ((3, 2), (2, 2)), "give it as an argument too: n=..."),
        ("(n * 4, 2)", "(n, 2)", ((8, 2), (3, 2)), "'B_ptr' says that n is 3, another argument that it is 2"),
        ("(n, n // 2)", "(n, 2)", ((8, 3), None), r"has shape \(8, 4\) \(n, n // 2\), not \(8, 3\)"),
        ("(n, n)", "(n, 2)", ((8, 3), None), "'A_ptr' says that n is 3, another argument that it is 8"),
    ],
)
def test_extents_that_do_not_fit_are_refused(a: str, b: str, shapes: Any, words: str) -> None:
    arrays = {name: np.ones(s, np.float32) for name, s in zip(("A_ptr", "B_ptr"), shapes, strict=True) if s}
    with pytest.raises(ArgumentMismatch, match=words):
        run_tile(read(symbolic("n = T.int32()", a, b, NOTHING)), arrays)


@pytest.mark.parametrize(
    ("a", "statement", "words"),
    [
        ("(n / 2, 2)", NOTHING, "an extent is an integer, not float32"),
        ("(2, n)", "v = A.view(-1)", "it can't be reshaped"),
        ("(2, n)", "v = A.permute(1, 0)", "it has no views"),
        ("(2, n)", "Tx.copy(B[0:2, 0:2], A)", "its whole isn't a tile"),
        ("(2, n)", "Tx.copy(B[0, 0:2], A[0, 1:])", "its region needs an end"),
    ],
)
def test_what_symbolic_extents_do_not_allow_is_named(a: str, statement: str, words: str) -> None:
    with pytest.raises(InvalidTileProgram, match=words) as caught:
        read(symbolic("n = T.int32()", a, "(n, 2)", statement))
    assert caught.value.span is not None


# ------------------------------------------------------------------------------------------------ dynamic shared memory
DYNAMIC = """s = T.alloc_buffer((64, 256), "float32", scope="shared.dyn")
for i in range(4):
    Tx.cta.copy(s[0:64, i * 64 : i * 64 + 64], A)
T.cuda.cta_sync()
Tx.cta.copy(B, s[0:64, 64:128])"""


def test_dynamic_shared_memory_beyond_48_kilobytes() -> None:
    result = right(DYNAMIC, block=128)
    np.testing.assert_array_equal(result.outputs["B_ptr"], A)
    kernel = read(body(DYNAMIC, block=128))
    cuda = tile_text(kernel, "cuda")
    assert "extern __shared__ __align__(64) float s[];" in cuda
    assert "// k<<<1, 128, 65536>>>(...)" in cuda
    assert "cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536)" in cuda
    assert ".extern .shared .align 64 .b8 s[];" in tile_text(kernel, "ptx")
    record = tile_explanation(kernel, "sm_90").to_dict()
    assert (record["shared_bytes"], record["dynamic_shared_bytes"]) == (65536, 65536)
    try:
        assert tile_bytes(kernel).startswith(b"\x7fELF")
    except ToolMissing:
        pytest.skip("ptxas isn't installed (pip install 'warpsmith[cuda]')")


def test_its_ptx_runs_with_the_bytes_of_the_launch() -> None:
    out = np.zeros_like(A)
    text = tile_text(read(body(DYNAMIC, block=128)), "ptx")
    run_ptx(text, [A.copy(), out], PtxLaunch((1,), (128,), dynamic_shared=65536))
    np.testing.assert_array_equal(out, A)


def test_a_small_device_takes_less() -> None:
    text = DYNAMIC.replace("256", "512").replace("range(4)", "range(8)")
    right(text, block=128)
    with pytest.raises(InvalidTileProgram, match=r"131072 bytes of shared memory; .* has 101376 for a block"):
        tile_text(read(body(text, block=128)), "ptx", "sm_86")


# ---------------------------------------------------------------------------------------------------- arrays in layouts
@pytest.mark.parametrize("options", ["strides=(72, 1)", "strides=(1, 64)", "strides=(72, 1), elem_offset=4"])
def test_strides_of_a_parameter(options: str) -> None:
    head = "; ".join(f'{x} = T.match_buffer({x}_ptr, (64, 64), "float32", {options})' for x in "AB")
    for platform in ("sim", "cpu"):
        kernel = read(body("for i in range(64):\n    B[i, tid] = A[i, tid]", parameters=head, block=64))
        np.testing.assert_array_equal(run_tile(kernel, [A], platform=platform).outputs["B_ptr"], A)


def test_one_place_for_several_elements_takes_equal_values_alone() -> None:
    rows = "layout=TileLayout(S[(64, 64) : (0, 1)])"
    head = f"A = T.match_buffer(A_ptr, (64, 64), {rows}); B = T.match_buffer(B_ptr, (64, 64))"
    kernel = read(body("for i in range(64):\n    B[i, tid] = A[i, tid]", parameters=head, block=64))
    same = A[:1].repeat(64, 0)
    np.testing.assert_array_equal(run_tile(kernel, [same]).outputs["B_ptr"], same)
    with pytest.raises(ArgumentMismatch, match="'A_ptr' has several elements at one place; they differ"):
        run_tile(kernel, [A])
