"""What an author of kernels tries, and gets wrong: each is taken as Python means it, or refused with a next step."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.tile.helpers import body, read
from warpsmith.compiler.tile.programs import TileRun, run_tile, tile_text
from warpsmith.errors import DispatchFailed, InvalidTileProgram, TileSyntaxError, WarpsmithError

A = (np.random.default_rng(5).random((64, 64)) * 4 - 2).astype(np.float32)


def ran(statements: str, platform: str = "sim", **options: int) -> TileRun:
    kernel = read(body(statements, **options))
    return run_tile(kernel, {"A_ptr": A, "B_ptr": np.zeros((64, 64), np.float32)}, platform=platform)


def result_of(statements: str, **options: int) -> np.ndarray[Any, Any]:
    run = ran(statements, **options)
    assert run.ok, (run.mismatches, [str(f) for f in run.findings])
    return run.outputs["B_ptr"]


# ---------------------------------------------------------------------------------------------------------- what works
def test_a_region_that_begins_at_a_variable_is_as_wide_as_it_is_written() -> None:
    moved = "r = T.alloc_local((64,), layout=TileLayout(S[(32, 2) : (1 @ tx, 1)]))\ni = bx * 2\nwhile i + 1 <= 64:\n"
    b = result_of(moved + "    Tx.cta.copy(r, A[i : i + 1, :])\n    Tx.cta.copy(B[i : i + 1, :], r)\n    i += 2")
    np.testing.assert_array_equal(b[::2], A[::2])
    assert not b[1::2].any()


def test_a_variable_that_was_stored_between_is_another_number() -> None:
    statements = "i = 0\nif A[0, 0] > 9.0:\n    i = 4\nj = i\ni = i + 2\nTx.copy(B[0, 0:4], A[0, j : i + 2])"
    with pytest.raises(InvalidTileProgram, match="extent of this region isn't a known number"):
        read(body(statements))


def test_a_loops_variable_may_have_the_name_of_one_assigned_before() -> None:
    loop = "for k in range(0, 8, 4):\n    Tx.copy(B[tid, k : k + 4], A[tid, k : k + 4])"
    b = result_of("if tid < 0:\n    k = 2\n    B[tid, k] = 1.0\n" + loop)
    np.testing.assert_array_equal(b[:32, :8], A[:32, :8])


def test_python_values_are_gone_through_in_pairs() -> None:
    b = result_of(
        "for n, x in enumerate((3.0, 4.0)):\n    B[tid, n] = x\n"
        "for n, x in zip((5, 6), (1.0, 2.0)):\n    B[tid, n] = x\n"
        "for n, X in reversed([(8, A), (9, A)]):\n    B[tid, n] = X[tid, n]"
    )
    np.testing.assert_array_equal(b[:32, [0, 1, 5, 6]], np.tile(np.float32([3, 4, 1, 2]), (32, 1)))
    np.testing.assert_array_equal(b[:32, 8:10], A[:32, 8:10])


def test_what_has_a_value_keeps_it_where_a_branch_gives_no_other() -> None:
    kernel = read(
        "@T.prim_func\ndef k(B_ptr: T.handle, a: T.float32):\n    B = T.match_buffer(B_ptr, (32,))\n"
        "    T.device_entry(); t = T.thread_id([32])\n    if t < 3:\n        a = 2.0\n    B[t] = a\n"
    )
    run = run_tile(kernel, {"a": 7.0})
    assert run.ok
    np.testing.assert_array_equal(run.outputs["B_ptr"], np.where(np.arange(32) < 3, 2, 7))
    macro = "@T.inline\ndef f(x):\n    if tid < 3:\n        x = x + 1.0\n    B[0, tid] = x\nv = A[0, tid]\nf(v)\n"
    b = result_of(macro + "for i in range(1, 5):\n    if tid > 7:\n        i = 9\n    B[i, tid] = 5.0")
    np.testing.assert_array_equal(b[0, :32], A[0, :32] + (np.arange(32) < 3).astype(np.float32))
    assert (b[1:5, :8] == 5).all()
    assert not b[1:5, 8:].any()
    assert (b[9, 8:32] == 5).all()


def test_membership_is_a_chain_of_comparisons() -> None:
    b = result_of("if tid in (1, 5, 7):\n    B[0, tid] = 1.0\nif tid % 4 not in (0, 3):\n    B[1, tid] = 1.0")
    lane = np.arange(32)
    np.testing.assert_array_equal(b[0, :32], np.isin(lane, (1, 5, 7)))
    np.testing.assert_array_equal(b[1, :32], ~np.isin(lane % 4, (0, 3)))


@pytest.mark.parametrize("divisor", [1, 2, 3, 8, 12, -3, -8])
def test_quotients_of_any_sign_round_down(divisor: int) -> None:
    b = result_of(
        f"x: T.int32 = T.cast(A[tid, 0] * 50.0, 'int32')\nB[0, tid] = x // {divisor}\nB[1, tid] = x % {divisor}"
    )
    x = (A[:32, 0] * np.float32(50)).astype(np.int32)
    np.testing.assert_array_equal(b[0, :32], x // divisor)
    np.testing.assert_array_equal(b[1, :32], x % divisor)


def test_a_power_of_two_divides_by_one_operation() -> None:
    text = tile_text(read(body("x: T.int32 = T.cast(A[tid, 0], 'int32')\nB[0, tid] = x % 16 + x // 4")), "cuda")
    assert "& 15" in text
    assert ">> 2" in text
    assert "?" not in text


def test_chunks_are_parts_of_dims() -> None:
    b = result_of(
        "s = T.alloc_shared((8, 64))\nTx.cta.copy(s, A.chunk((8, None))[bx + 2])\nT.cuda.cta_sync()\n"
        "Tx.cta.copy(B.chunk((8, 4))[5, 1], s.chunk((None, 4))[:, 2])"
    )
    np.testing.assert_array_equal(b[40:48, 16:32], A[16:24, 32:48])


def test_constants_of_a_kernel_may_have_defaults() -> None:
    kernel = read(
        "@T.jit\ndef k(A_ptr: T.handle, n: T.constexpr, factor: T.constexpr = 3.0):\n"
        "    A = T.match_buffer(A_ptr, (n,))\n    T.device_entry(); t = T.thread_id([n])\n    A[t] = A[t] * factor\n"
    )
    given = np.arange(32, dtype=np.float32)
    for constants, factor in (({}, 3), ({"factor": 5.0}, 5)):
        run = run_tile(kernel.specialize(n=32, **constants), {"A_ptr": given})
        np.testing.assert_array_equal(run.outputs["A_ptr"], given * factor)


def test_a_tile_is_filled_with_an_element_of_another() -> None:
    rows = "r = T.alloc_local((32, 1), layout=TileLayout(S[(32, 1) : (1 @ laneid, 1)]))\n"
    b = result_of(rows + "Tx.warp.fill(r, A[0, 5])\nTx.warp.copy(B[0:32, 0:1], r)")
    np.testing.assert_array_equal(b[:32, 0], A[0, 5])


def test_a_kernel_is_read_once_for_each_set_of_constants() -> None:
    kernel = read(
        "@T.jit\ndef k(A_ptr: T.handle, table: T.constexpr):\n"
        "    A = T.match_buffer(A_ptr, (4,))\n    T.device_entry(); t = T.thread_id([1])\n    A[0] = table[1500]\n"
    )
    assert kernel.specialize(table=(1,) * 1501) is kernel.specialize(table=(1,) * 1501)
    for last in (3, 4):  # their texts, shortened by numpy, are the same
        table = np.zeros(2001, np.int32)
        table[1500] = last
        assert run_tile(kernel.specialize(table=table)).outputs["A_ptr"][0] == last


def test_a_parameter_takes_the_options_of_match_buffer() -> None:
    kernel = read(
        '@T.prim_func\ndef k(A: T.Buffer((4, 8), "float32", strides=(1, 4))):\n'
        "    T.device_entry(); t = T.thread_id([32])\n    A[t // 8, t % 8] = T.cast(t, 'float32')\n"
    )
    np.testing.assert_array_equal(run_tile(kernel).outputs["A"], np.arange(32, dtype=np.float32).reshape(4, 8))
    assert "t" in tile_text(kernel, "cuda")
    with pytest.raises(InvalidTileProgram, match="a parameter is in global memory, not in shared"):
        read('@T.prim_func\ndef k(A: T.Buffer((4,), scope="shared")):\n    T.device_entry(); T.thread_id([32])\n')


@pytest.mark.parametrize("narrow", ["float8_e4m3fn", "float8_e5m2"])
def test_bfloat16_becomes_eight_bits_on_a_cpu_too(narrow: str) -> None:
    kernel = read(
        f'@T.prim_func\ndef k(A: T.Buffer((64,), "bfloat16"), B: T.Buffer((64,), "{narrow}")):\n'
        f'    T.device_entry(); t = T.thread_id([64])\n    B[t] = T.cast(A[t], "{narrow}")\n'
    )
    given = A[0].astype(ml_dtypes.bfloat16)
    run = run_tile(kernel, {"A": given}, platform="cpu")
    expected = given.astype(np.float32).astype(getattr(ml_dtypes, narrow))
    np.testing.assert_array_equal(run.outputs["B"].view(np.uint8), expected.view(np.uint8))


def test_a_kernel_may_be_called_like_a_function_of_c() -> None:
    text = body("B[0, tid] = A[0, tid]").replace("def k(", "def norm(")
    assert "void __launch_bounds__(32) norm_1(" in tile_text(read(text, "norm"), "cuda")


def test_loops_that_are_left_read_well() -> None:
    left = "    if v <= 1.0 or v >= 9.0:\n        break\n"
    text = tile_text(read(body(f"v = A[tid, 0]\nwhile True:\n{left}    v = v - 1.0\nB[0, tid] = v")), "cuda")
    assert "!!" not in text
    assert "true :" not in text
    assert "||" in text


# ---------------------------------------------------------------------------------------------------- what is a mistake
MISTAKES: list[tuple[str, type[WarpsmithError], str]] = [
    ("Tx.wrap.copy(A, B)", TileSyntaxError, "Tx has no 'wrap'(.|\n)*did you mean 'warp'"),
    ("Tx.grid.copy(A, B)", TileSyntaxError, "its scopes are thread, warp, warpgroup, cta"),
    ("q += 1", TileSyntaxError, "name 'q' isn't defined"),
    ("x = tid // 0", InvalidTileProgram, "division by zero"),
    ("x = T.cast(tid, 'uint32') % 0", InvalidTileProgram, "division by zero"),
    ("q = 1\nif tid < 3:\n    q = 1.5\nB[0, tid] = q", InvalidTileProgram, "'q' is int32(.|\n)*T.cast"),
    ("q = 1\nq += 1.5", InvalidTileProgram, "'q' is int32, by its first value, and this is float32"),
    ("x = T.tvm_warp_shuffle_xor(0xFFFFFFFF, 1.0)", InvalidTileProgram, r"missing a required argument: 'offset'"),
    ("s = T.alloc_shared((4,), dtyp='float32')", InvalidTileProgram, "unexpected keyword argument 'dtyp'"),
    ("x = T.max(1.0, 2.0, 3.0)", InvalidTileProgram, "too many positional arguments"),
    ("x = (1.0, 2.0)[tid]", InvalidTileProgram, "its index must be known while the kernel is read"),
    ("B[0, tid] = float(tid)", TileSyntaxError, "T.cast"),
    ("B[0:4, 0:4] = A[0:4, 0:4] + 1.0", InvalidTileProgram, "primitives compute on tiles"),
    ("for i in range(7, -1, -1):\n    pass", TileSyntaxError, "to count down, use n - 1 - i"),
    ("for n, i in enumerate(range(3)):\n    pass", TileSyntaxError, "enumerate of a loop that the kernel makes"),
    ("for i in range(4):\n    for x in (1.0, 2.0):\n        break", TileSyntaxError, "break in a loop over Python"),
    ("x = [i for i in (1, 2)]", TileSyntaxError, "no comprehension"),
    ("if (q := tid) > 3:\n    pass", TileSyntaxError, "assignment inside an expression"),
    ("with A:\n    pass", TileSyntaxError, "no 'with' statement"),
    ("B[-1, 0] = 1.0", InvalidTileProgram, "index -1 lies outside dim 0(.|\n)*don't count from the end"),
    ("x: T.let = A[0, tid]\nx = 3.0", TileSyntaxError, "T.let binds 'x' once"),
    ("Tx.warp.fill(B, A)", InvalidTileProgram, "Tx.fill takes a number, not a tile(.|\n)*Tx.copy"),
    ("x = A.chunk((3, None))[0]", InvalidTileProgram, "64 elements, and can't be cut into 3 equal parts"),
    ("x = A.chunk((4, None))[0:2, :]", InvalidTileProgram, "cut into parts: name one of them"),
    ("x = A.chunk((4,))[0]", InvalidTileProgram, "1 numbers of parts for the 2 dims"),
]  # fmt: skip


@pytest.mark.parametrize(("statements", "kind", "words"), MISTAKES, ids=[m[0][:40] for m in MISTAKES])
def test_a_mistake_is_named_with_a_next_step(statements: str, kind: type[WarpsmithError], words: str) -> None:
    with pytest.raises(kind, match=words) as caught:
        read(body(statements))
    assert caught.value.span is not None


def test_only_constants_have_defaults() -> None:
    with pytest.raises(TileSyntaxError, match="parameter 'A_ptr' has a default") as caught:
        read("@T.prim_func\ndef k(A_ptr: T.handle = 3):\n    T.device_entry(); T.thread_id([32])\n")
    assert caught.value.span is not None


def test_an_offset_of_a_swizzled_parameter_is_refused() -> None:
    swizzle = "ComposeLayout(per_element=3, swizzle_len=3, atom_len=3)"
    with pytest.raises(InvalidTileProgram, match="elem_offset is of a buffer with known extents and a plain layout"):
        read(
            f"@T.prim_func\ndef k(A_ptr: T.handle):\n"
            f"    A = T.match_buffer(A_ptr, (8, 64), 'float16', elem_offset=8, layout={swizzle})\n"
        )


def test_part_of_a_warp_may_not_wait_for_the_rest() -> None:
    for condition in ("tid < 16", "tid % 2 == 0", "not tid > 3"):
        with pytest.raises(
            InvalidTileProgram, match="lanes of warp 0 reach this barrier, which waits for all"
        ) as caught:
            tile_text(read(body(f"if {condition}:\n    T.cuda.warp_sync()")), "dispatched")
        assert caught.value.span is not None
    for condition in ("tid < 32", "tid // 32 == 1", "A[0, 0] > 0.0"):
        assert ran(f"if {condition}:\n    T.cuda.warp_sync()", block=64).ok
    assert ran("if tid >= 32:\n    T.cuda.warp_sync()", block=48).ok  # lanes that don't exist aren't waited for


@pytest.mark.parametrize("platform", ["sim", "cpu"])
@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("Tx.warp.mul(r, r, v)", "differ in b: thread 1 of them has"),
        ("Tx.warp.fill(r, v)", "differ in value: thread 1"),
        ("Tx.warp.copy(B[n : n + 32, 0:1], r)", r"differ in where B\[.*\] begins"),
    ],
)
def test_threads_that_differ_in_an_operand_are_a_finding(call: str, what: str, platform: str) -> None:
    """No value of a thread's own can be told to differ while the kernel is read, so that this is found when it runs."""
    rows = "r = T.alloc_local((32, 1), layout=TileLayout(S[(32, 1) : (1 @ laneid, 1)]))\n"
    run = ran(f"v = A[tid, 0]\nn = T.cast(A[tid, 1] + 2.0, 'int32')\n{rows}Tx.warp.zero(r)\n{call}", platform)
    assert not run.ok
    found = run.findings[-1]
    assert found.code == "operand-divergence"
    assert found.site is not None
    assert found.site.file_line
    assert re.search(what, str(found))


def test_threads_that_agree_on_what_they_exchanged_do_a_call_together() -> None:
    rows = "r = T.alloc_local((32, 1), layout=TileLayout(S[(32, 1) : (1 @ laneid, 1)]))\n"
    b = result_of(
        "v = A[tid, 0]\nfor i in T.unroll(5):\n    v += T.tvm_warp_shuffle_xor(0xFFFFFFFF, v, 16 >> i, 32, 32)\n"
        f"{rows}Tx.warp.copy(r, A[0:32, 0:1])\nTx.warp.fdiv(r, r, v)\nTx.warp.copy(B[0:32, 0:1], r)"
    )
    np.testing.assert_allclose(b[:32, 0], A[:32, 0] / A[:32, 0].sum(), rtol=1e-5)


def test_a_tile_of_threads_has_no_place_in_shared_memory() -> None:
    spread = "s = T.alloc_shared((32, 2), layout=TileLayout(S[(32, 2) : (1 @ laneid, 1)]))\n"
    with pytest.raises((InvalidTileProgram, DispatchFailed), match="spread over threads"):
        tile_text(read(body(spread + "Tx.warp.copy(s, A[0:32, 0:2])")), "dispatched")


# ------------------------------------------------------------------------------------------------------ text read again
AGAIN = [
    "x: T.float16 = 0.1\nx += 0.1\nB[0, tid] = x",
    "x: T.int8 = 100\nx += 100\nB[0, tid] = x",
    "x: T.uint8 = 200\nx += 100\nB[0, tid] = x",
    "y: T.int8 = 100\nB[0, tid] = y + y",
    "B[0, tid] = T.float16(0.1) + T.float16(0.2)",
    "B[0, tid] = T.cast(T.cast(A[0, tid] * 100.0, 'uint8'), 'float32')",
    "x = T.cast(A[0, tid] + 2.0, 'uint32') - 3\nB[0, tid] = x // 2",
    "x = T.cast(A[0, tid] * 9.0, 'int32')\nB[0, tid] = x % 3 + x // 3",
    "B[0, tid] = T.abs(A[0, tid]) ** 2.5",
    "B[0, tid] = T.nan()",
    "h = T.cast(A[0, tid], 'float16')\nB[0, tid] = T.tvm_warp_shuffle_xor(0xFFFFFFFF, h, 1, 32, 32)",
    "B[0, tid] = T.cast(T.reinterpret('int32', A[0, tid]) & 0x7FFFFF, 'float32')",
    "if tid > 3:\n    v = A[0, tid]\n    B[0, tid] = v\nif tid > 5 or A[1, tid] > 0.0 and tid:\n    B[1, tid] = 1",
    "for i in range(3):\n    a = i + 1\n    B[a, tid] = a\nfor j in range(4):\n    b = A[j, tid]\n    B[j, tid] = b",
]


@pytest.mark.parametrize("statements", AGAIN)
def test_printed_kernels_mean_the_same_when_they_are_read_again(statements: str) -> None:
    kernel = read(body(statements))
    again = read(tile_text(kernel, "tirx"))
    first, second = (run_tile(each, {"A_ptr": A, "B_ptr": np.ones_like(A)}) for each in (kernel, again))
    assert first.ok
    np.testing.assert_array_equal(first.outputs["B_ptr"], second.outputs["B_ptr"])


@pytest.mark.parametrize(("a", "b"), [(7, 2), (-7, 2), (7, -2), (-7, -2)])
def test_quotients_that_round_towards_zero(a: int, b: int) -> None:
    text = "B[0, 0] = T.truncdiv({0}, {1})\nB[0, 1] = T.truncmod({0}, {1})"
    for given in (text.format(a, b), f"x = T.cast(A[0, 0], 'int32') * 0 + {a}\n" + text.format("x", b)):
        b_ = result_of(given, block=1)
        assert (b_[0, 0], b_[0, 1]) == (int(a / b), a - b * int(a / b))


def test_bits_are_seen_as_another_type() -> None:
    b = result_of("B[0, tid] = T.reinterpret('float32', T.reinterpret('uint32', A[0, tid]) ^ 0x80000000)")
    np.testing.assert_array_equal(b[0, :32], -A[0, :32])
    with pytest.raises(InvalidTileProgram, match="the bits of float32 can't be seen as int16"):
        read(body("x = T.reinterpret('int16', A[0, tid])"))
