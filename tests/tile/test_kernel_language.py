"""The kernel language: scalars, control flow, macros, specialisation, and what it says about mistakes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.tile.helpers import body, read
from warpsmith.compiler.tile.programs import run_tile, tile_text
from warpsmith.errors import InvalidTileProgram, TileSyntaxError, WarpsmithError
from warpsmith.tile import T, Tx

A = (np.random.default_rng(3).random((64, 64)) * 3 + 0.5).astype(np.float32)
Expected = Callable[[np.ndarray[Any, Any], np.ndarray[Any, Any]], None]


def result_of(statements: str, **options: int) -> np.ndarray[Any, Any]:
    run = run_tile(read(body(statements, **options)), {"A_ptr": A, "B_ptr": np.zeros((64, 64), np.float32)})
    assert run.ok, (run.mismatches, [str(f) for f in run.findings])
    return run.outputs["B_ptr"]


def test_elements_are_read_and_written_through_the_layout() -> None:
    b = result_of("for i in range(tid, 4096, 32):\n    B[i // 64, i % 64] = A[i // 64, i % 64] * 2.0 + 1")
    np.testing.assert_array_equal(b, A * np.float32(2) + 1)


def test_floor_division_and_modulo_are_pythons() -> None:
    b = result_of("x = tid - 16\nB[0, tid] = x // 3\nB[1, tid] = x % 3\nB[2, tid] = (x * 3) // (tid - 40)")
    x = np.arange(32) - 16
    np.testing.assert_array_equal(b[0, :32], x // 3)
    np.testing.assert_array_equal(b[1, :32], x % 3)
    np.testing.assert_array_equal(b[2, :32], (x * 3) // (np.arange(32) - 40))


def test_variables_loops_break_and_continue() -> None:
    b = result_of("""
acc = 0.0
i = 0
while i < 64:
    if i == 50:
        break
    if i % 3 == 0:
        i += 1
        continue
    acc += A[tid, i]
    i += 1
B[0, tid] = acc
""")
    chosen = [i for i in range(50) if i % 3]
    total = np.zeros(32, np.float32)
    for i in chosen:
        total = total + A[:32, i]
    np.testing.assert_array_equal(b[0, :32], total)


def test_for_leaves_early_per_thread() -> None:
    b = result_of("n = 0\nfor i in range(64):\n    if i > tid:\n        break\n    n += 1\nB[0, tid] = n")
    np.testing.assert_array_equal(b[0, :32], np.arange(32) + 1)


def test_nested_grid_and_python_loops() -> None:
    b = result_of("for i, j in T.grid(4, 2):\n    for k in (0, 5):\n        B[i * 8 + j + k, tid] = A[i, tid] + k")
    for i in range(4):
        for j in range(2):
            for k in (0, 5):
                np.testing.assert_array_equal(b[i * 8 + j + k, :32], A[i, :32] + np.float32(k))


def test_and_does_not_load_what_its_left_side_excludes() -> None:
    b = result_of("for i in range(70):\n    if i < 64 and A[i, 0] > 1.0:\n        B[i, tid] = 1.0")
    np.testing.assert_array_equal(b[:, 0], (A[:, 0] > 1.0).astype(np.float32))


def test_or_not_and_chained_comparison() -> None:
    b = result_of("if not (tid < 4 or 10 <= tid < 20):\n    B[0, tid] = 1.0\nelse:\n    B[0, tid] = 2.0")
    t = np.arange(32)
    np.testing.assert_array_equal(b[0, :32], np.where(~((t < 4) | ((t >= 10) & (t < 20))), 1.0, 2.0))


def test_conditional_expressions_and_functions() -> None:
    b = result_of("B[0, tid] = T.max(A[0, tid], 2.0) if tid < 16 else T.if_then_else(A[0, tid] > 1.0, 7, 8)")
    expected = np.where(np.arange(32) < 16, np.maximum(A[0, :32], 2), np.where(A[0, :32] > 1, 7, 8))
    np.testing.assert_array_equal(b[0, :32], expected.astype(np.float32))


def test_shuffles_sum_over_the_warp() -> None:
    steps = "\n".join(f"x = x + T.tvm_warp_shuffle_xor(0xFFFFFFFF, x, {m}, 32, 32)" for m in (16, 8, 4, 2, 1))
    b = result_of(f"x = A[0, tid]\n{steps}\nB[0, tid] = x")
    np.testing.assert_allclose(b[0, :32], A[0, :32].sum(), rtol=1e-6)


def test_macros_are_expanded_with_the_names_around_them() -> None:
    b = result_of("""
offset = 3.0
@T.inline
def shifted(x, by=1.0):
    y = x + offset
    return y * by
B[0, tid] = shifted(A[0, tid], 2.0)
B[1, tid] = shifted(by=4.0, x=A[1, tid])
""")
    np.testing.assert_array_equal(b[0, :32], (A[0, :32] + np.float32(3)) * 2)
    np.testing.assert_array_equal(b[1, :32], (A[1, :32] + np.float32(3)) * 4)


JIT = """
@T.jit
def k(A_ptr: T.handle, B_ptr: T.handle, rows: T.constexpr, doubled: T.constexpr):
    A = T.match_buffer(A_ptr, (rows, 32), "float32"); B = T.match_buffer(B_ptr, (rows, 32), "float32")
    T.device_entry(); T.cta_id([1]); lane = T.lane_id(); tid = T.thread_id([32])
    for i in range(rows):
        if doubled:
            B[i, lane] = A[i, lane] * 2.0
        else:
            B[i, lane] = A[i, lane]
"""


def test_specialisation_decides_branches_and_shapes() -> None:
    a = A[:3, :32].copy()
    for doubled in (True, False):
        kernel = read(JIT).specialize(rows=3, doubled=doubled)
        assert ("* 2.0" in tile_text(kernel, "tirx")) is doubled
        np.testing.assert_array_equal(run_tile(kernel, [a]).outputs["B_ptr"], a * 2 if doubled else a)
    jit = read(JIT)
    assert jit.specialize(rows=3, doubled=True) is jit.specialize(rows=3, doubled=True)
    with pytest.raises(TileSyntaxError, match="lacks doubled"):
        jit.specialize(rows=3)
    with pytest.raises(TileSyntaxError, match="no constant 'row'"):
        jit.specialize(row=3, doubled=True)


SYMBOLIC = """
@T.prim_func
def k(A_ptr: T.handle, B_ptr: T.handle):
    n = T.int32()
    A = T.match_buffer(A_ptr, (n, 32), "float32"); B = T.match_buffer(B_ptr, (n, 32), "float32")
    T.device_entry(); bx = T.cta_id([4]); lane = T.lane_id(); tid = T.thread_id([32])
    for i in range(bx, n, 4):
        B[i, lane] = A[i, lane] * 2.0
"""


@pytest.mark.parametrize("rows", [1, 6, 64])
def test_symbolic_extents_come_from_the_arrays(rows: int) -> None:
    a = A[:rows, :32].copy()
    np.testing.assert_array_equal(run_tile(read(SYMBOLIC), [a]).outputs["B_ptr"], a * 2)


def test_symbolic_extents_agree() -> None:
    with pytest.raises(WarpsmithError, match="says that n is 5, another argument that it is 4"):
        run_tile(read(SYMBOLIC), [A[:4, :32], A[:5, :32]])


def test_ids_are_inferred_from_one_another() -> None:
    text = "w = T.warp_id(); l = T.lane_id(); g = T.warpgroup_id(); q = T.warp_id_in_wg()\n"
    text += "if tid < 64:\n    B[1, tid] = w * 1000 + l\nif tid >= 192:\n    B[2, tid - 192] = g * 10 + q"
    b = result_of(text, block=256)
    t = np.arange(64)
    np.testing.assert_array_equal(b[1], t // 32 * 1000 + t % 32)
    np.testing.assert_array_equal(b[2], 10 + (t + 192) // 32 % 4)


def test_a_name_assigned_once_is_a_value_not_an_array() -> None:
    text = tile_text(read(body("x = A[0, tid] + 1.0\nB[0, tid] = x * x")), "lowered")
    assert "memref.alloca" not in text


MISTAKES = [
    ("B[0, tid] = undefined", TileSyntaxError, "name 'undefined' isn't defined"),
    ("B[0, tid] = T.sqr(A[0, 0])", TileSyntaxError, "did you mean 'sqrt'"),
    ("Tx.warp.sqrtt(A, A)", TileSyntaxError, "no tile primitive is called 'sqrtt'"),
    ("Tx.warp.sqrt(1.0, A)", InvalidTileProgram, "expects `dst` to be a buffer or a region"),
    (
        "Tx.warp.copy(A[0:4, 0:4], B[0:4, 0:5])",
        InvalidTileProgram,
        r"dst region shape \[4, 4\] != src region shape \[4, 5\]",
    ),
    ("Tx.warp.add(A, 1.0, 2.0)", InvalidTileProgram, "all inputs are numbers"),
    ("Tx.warp.add(A, A, B[0:3, 0:64])", InvalidTileProgram, r"dim 0 is 3 against 64 \(equal or 1\)"),
    ("Tx.warp.sum(A[0:64, 0:1], A, axes=2)", InvalidTileProgram, "axis 2 of a source with 2 dims"),
    ("Tx.warp.copy(A, B, prefetch=1)", InvalidTileProgram, "no parameter 'prefetch'"),
    ("B[0, 64] = 1.0", InvalidTileProgram, "lies outside dim 1 of 'B', which has 64 elements"),
    ("x = A[0:4, 0]\nB[0, 0] = x + 1.0", InvalidTileProgram, "operator has no meaning|number is needed"),
    ("import os", TileSyntaxError, "no 'import' statement"),
    ("return 3", TileSyntaxError, "a kernel returns nothing"),
    ("for k in (0, 5):\n    break", TileSyntaxError, "break in a loop over Python values"),
    ("for i in 'abc':\n    pass", TileSyntaxError, "a loop can't run over str"),
    ("s = T.alloc_shared((8, 8), 'float33')", InvalidTileProgram, "did you mean 'float32'"),
    ("s = T.alloc_buffer((8, 8), scope='tmem')", InvalidTileProgram, "needs tensor memory"),
    (
        "s = T.alloc_buffer((8, 8), scope='local', layout=TileLayout(S[(8, 4) : (4, 1)]))",
        InvalidTileProgram,
        "32 elements",
    ),
    ("r = T.alloc_local((8,)); v = r.local(9)", InvalidTileProgram, "9 elements, but a thread holds 8 registers"),
    ("v = A.view(63, 64)", InvalidTileProgram, "4032 elements, 'A' of shape"),
    ("v = A.rearrange('a b -> (a b c)')", InvalidTileProgram, "name the same parts"),
    ("len(A[0:2, 0:2])", TileSyntaxError, "a Python function"),
    ("T.cluster_id([2])", InvalidTileProgram, "thread block clusters"),
    ("Tx.warp.fdiv(s8, s8, s8)", TileSyntaxError, "s8"),
    ("T.thread_binding(32)", TileSyntaxError, "T.thread_id"),
]


@pytest.mark.parametrize(("statements", "kind", "words"), MISTAKES, ids=[m[0][:30] for m in MISTAKES])
def test_mistakes_are_named_at_their_place(statements: str, kind: type[WarpsmithError], words: str) -> None:
    with pytest.raises(kind, match=words) as caught:
        read(body(statements))
    assert caught.value.span is not None
    assert caught.value.span.line >= 6  # behind the imports and the kernel's head
    assert "^" in str(caught.value)


def test_the_caret_stands_under_the_mistake() -> None:
    with pytest.raises(TileSyntaxError) as caught:
        read(body("B[0, tid] = A[0, tid] + missing"))
    line, carets = str(caught.value).split("\n")[1:3]
    assert line[carets.index("^") :].startswith("missing")


def test_launch_extents_are_checked() -> None:
    for statements, block, words in (
        ("T.lane_id()", 48, "48 threads, which isn't a whole number of warps"),
        ("T.warp_id([3])", 64, "64 isn't divisible by 3"),
        ("pass", 2048, "at most 1024"),
    ):
        with pytest.raises(InvalidTileProgram, match=words):
            read(body(statements, block=block))
    with pytest.raises(InvalidTileProgram, match="doesn't say how many threads"):
        read(
            "@T.prim_func\ndef k(A_ptr: T.handle):\n    A = T.match_buffer(A_ptr, (4,))\n"
            "    T.device_entry(); T.cta_id([1])"
        )
    with pytest.raises(InvalidTileProgram, match="never bound"):
        read("@T.prim_func\ndef k(A_ptr: T.handle):\n    T.device_entry(); T.thread_id([32])")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_a_nan_keeps_its_type_in_the_text(dtype: str) -> None:
    text = tile_text(read(body(f"x = T.nan('{dtype}')\nB[0, tid] = T.cast(x, 'float32')")), "tirx")
    assert f'T.nan("{dtype}")' in text


@pytest.mark.parametrize("namespace", [T.cuda, T.ptx, Tx, Tx.warp])
def test_pythons_own_questions_get_pythons_answer(namespace: object) -> None:
    """`copy`, `inspect` and debuggers ask an object for names with two underscores, and expect an AttributeError."""
    assert not hasattr(namespace, "__wrapped__")
    assert isinstance(copy.copy(namespace), type(namespace))
