"""What the texts of a kernel say: comments in the author's words, names from the source, nothing left over."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.tile.helpers import body, read
from warpsmith.compiler.tile.programs import explain_tile, run_tile, tile_text
from warpsmith.ir.core.ssa import Operation
from warpsmith.reference.places import Places
from warpsmith.reference.primitives import MEANINGS
from warpsmith.tile.files import load_kernel

EXAMPLES = Path(__file__).parents[2] / "examples" / "tile"


def cuda(statements: str, **options: int) -> str:
    return tile_text(read(body(statements, **options)), "cuda")


ROWS = 'x = T.alloc_local((32, 8), "float32", layout=TileLayout(S[(32, 8) : (1 @ laneid, 1)]))'


def comments(text: str) -> list[str]:
    return re.findall(r"// (Tx\..*)", text)


def test_comments_have_regions_and_numbers_as_the_author_wrote_them() -> None:
    text = cuda(f"{ROWS}\nTx.warp.copy(x, A[bx * 32 : bx * 32 + 32, 8:16])\nTx.warp.mul(x, x, 0.5)", grid=2)
    assert comments(text) == [
        "Tx.warp.copy(x, A[bx * 32 : bx * 32 + 32, 8:16]): reg, each thread: 2 x 4 elements",
        "Tx.warp.mul(x, x, 0.5): reg, each thread: its 8 registers of x",
    ]


def test_comments_name_a_number_that_has_a_name() -> None:
    text = cuda(f"{ROWS}\nTx.warp.copy(x, A[0:32, 0:8])\nfactor = A[0, tid] + 1.0\nTx.warp.mul(x, x, factor)")
    assert "Tx.warp.mul(x, x, factor): reg, each thread: its 8 registers of x" in comments(text)


def test_explanations_spell_whole_buffers_out() -> None:
    kernel = read(body(f"{ROWS}\nTx.warp.copy(x, A[0:32, 0:8])"))
    assert explain_tile(kernel)[0].call == "Tx.warp.copy(x[0:32, 0:8], A[0:32, 0:8])"


def test_a_copy_without_a_loop_has_its_comment_too() -> None:
    text = cuda(
        'x = T.alloc_local((32, 4), "float32", layout=TileLayout(S[(32, 4) : (1 @ laneid, 1)]))\n'
        "Tx.warp.copy(x, A[0:32, 0:4])\nTx.warp.copy(B[0:32, 0:4], x)"
    )
    assert len(comments(text)) == 2
    assert "for (" not in text


def test_a_comment_stands_above_all_of_its_code() -> None:
    """What is computed for a loop alone stands before the loop, but after what says what it is for."""
    text = tile_text(load_kernel(str(EXAMPLES / "transpose.py")), "cuda")
    declared = r"  const int \w+ = .*\n"
    assert re.search(rf"// Tx\.cta\.copy\(B.*\n{declared}{declared}#pragma unroll\n  for \(", text)


def test_a_single_register_is_a_variable_declared_where_it_gets_its_value() -> None:
    text = tile_text(load_kernel(str(EXAMPLES / "softmax.py")), "cuda")
    assert re.search(r"^  float total = \w+;$", text, re.MULTILINE)
    assert not re.search(r"float total(;|\[)", text)
    assert "x[f] /= total;" in text


def test_a_variable_of_two_branches_is_declared_before_them() -> None:
    text = cuda("if tid < 16:\n    v = 1.0\nelse:\n    v = 2.0\nB[0, tid] = v")
    assert "  float v;\n" in text
    result = run_tile(read(body("if tid < 16:\n    v = 1.0\nelse:\n    v = 2.0\nB[0, tid] = v")))
    assert result.ok
    np.testing.assert_array_equal(result.outputs["B_ptr"][0, :32], np.repeat([1.0, 2.0], 16))


def test_an_id_isnt_called_what_is_computed_from_it() -> None:
    text = cuda("first = T.warp_id([1]) * 8\nB[first, tid] = 1.0")
    assert "first = threadIdx" not in text


def test_extents_are_no_negative_numbers() -> None:
    """Division by a power of two is one shift then; Python's rounding needs a branch."""
    text = tile_text(load_kernel(str(EXAMPLES / "vector_add.py")), "cuda")
    assert "const int64_t tiles = n / 1024;" in text
    assert "?" not in text


def test_a_swizzle_of_one_period_needs_no_mask() -> None:
    text = tile_text(load_kernel(str(EXAMPLES / "transpose.py")), "cuda")
    assert text.count("staged[staged_index ^ (staged_index >> 5)]") == 2


def test_dispatched_text_has_what_a_loop_carries() -> None:
    lines = tile_text(load_kernel(str(EXAMPLES / "row_sum.py")), "dispatched").splitlines()
    at = next(i for i, line in enumerate(lines) if "for r in" in line)
    assert re.fullmatch(r" +partial = x\[0\]", lines[at - 1])
    assert re.fullmatch(r" +partial = partial \+ x\[.*\]", lines[at + 1])


def test_the_blocks_that_a_multiprocessor_is_to_hold_reach_the_compilers() -> None:
    kernel = read(
        body(
            "B[0, tid] = 1.0",
            parameters='T.func_attr({"launch_bounds_min_blocks_per_sm": 2})\n    '
            'B = T.match_buffer(B_ptr, (64, 64), "float32"); A = T.match_buffer(A_ptr, (64, 64), "float32")',
        )
    )
    assert "__launch_bounds__(32, 2)" in tile_text(kernel, "cuda")
    assert ".minnctapersm 2" in tile_text(kernel, "ptx")


# -------------------------------------------------------------------------------------------- what rounding explains
LAYER_NORM = str(EXAMPLES / "layer_norm.py")


def test_sums_in_another_order_are_no_mistake() -> None:
    """Of numbers about a thousand, the mean takes three digits, and what is left differs in the third."""
    x = np.random.default_rng(3).uniform(999, 1001, (32, 256)).astype(np.float32)
    result = run_tile(load_kernel(LAYER_NORM), {"X_ptr": x})
    found, wanted = (np.asarray(side["Y_ptr"], np.float64) for side in (result.outputs, result.reference))
    distance = np.abs(found - wanted) / np.spacing(np.abs(wanted).astype(np.float32))
    assert distance.max() > 100  # units in the last place
    assert result.ok


def test_a_scale_that_is_off_by_a_thousandth_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    inverse_root = MEANINGS["rsqrt"]

    def off(places: Places, op: Operation) -> None:
        inverse_root(places, op)
        places.frame.buffer(op.operands[0]).data *= np.float32(1.001)

    x = np.random.default_rng(3).uniform(-2, 2, (32, 256)).astype(np.float32)
    assert run_tile(load_kernel(LAYER_NORM), {"X_ptr": x}).ok
    monkeypatch.setitem(MEANINGS, "rsqrt", off)
    assert not run_tile(load_kernel(LAYER_NORM), {"X_ptr": x}).ok
