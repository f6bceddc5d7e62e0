"""Which lowering each primitive gets, that it does what the primitive means, and how a refusal reads."""

from __future__ import annotations

import numpy as np
import pytest

from tests.tile.helpers import body, read
from warpsmith.compiler.tile.programs import explain_tile, run_tile, tile_text
from warpsmith.errors import DispatchFailed, SimulationError

A = (np.random.default_rng(5).random((64, 64)) * 3 + 0.5).astype(np.float32)
LANE_ROW = 'R_ = T.alloc_buffer((32, 8), "float32", scope="local", layout=TileLayout(S[(32, 8) : (1 @ laneid, 1)]))\n'


def shared(layout: str, shape: str = "(32, 64)") -> str:
    return f's = T.alloc_shared({shape}, "float32", layout={layout})\n'


def through(tile: str, scope: str = "cta") -> str:
    """A[0:32] into shared memory and on into B[0:32]."""
    return tile + f"Tx.{scope}.copy(s, A[0:32, 0:64])\nT.cuda.cta_sync()\nTx.{scope}.copy(B[0:32, 0:64], s)"


def check(statements: str, block: int = 32, grid: int = 1) -> list[tuple[str, str]]:
    """Run, compare with the primitives' meaning, keep everything in registers; the variants and partitions."""
    kernel = read(body(statements, block=block, grid=grid))
    result = run_tile(kernel, {"A_ptr": A})
    assert result.ok, (dict(result.mismatches), [str(f) for f in result.findings])
    assert ".local" not in tile_text(kernel, "ptx")
    return [(c.variant, c.partition) for c in explain_tile(kernel)]


def words(width: int) -> str:
    return "1 element" if width == 1 else f"{width} elements"


@pytest.mark.parametrize(
    ("layout", "block", "width"),
    [
        ("TileLayout(S[(32, 64) : (64, 1)])", 128, 4),
        ("TileLayout(S[(32, 64) : (68, 1)])", 128, 4),  # padding keeps 16-byte rows
        ("TileLayout(S[(32, 64) : (65, 1)])", 128, 1),
        ("TileLayout(S[(32, 64) : (66, 1)])", 128, 2),
        ("TileLayout(S[(32, 64) : (1, 32)])", 128, 1),
        ("TileLayout(S[(32, 8, 8) : (8, 256, 1)])", 128, 4),  # tiled along columns
        ("ComposeLayout(2, 3, 3, tile=TileLayout(S[(32, 64)]))", 128, 4),
        ("ComposeLayout(1, 2, 3, tile=TileLayout(S[(32, 64)]))", 128, 2),  # chunks of two
        ("TileLayout(S[(32, 64) : (64, 1)])", 96, 4),
    ],
)
def test_copies_take_the_widest_vector_that_layouts_allow(layout: str, block: int, width: int) -> None:
    found = check(through(shared(layout)), block)
    assert found[0] == ("gmem_smem", f"{-(-2048 // width // block)} x {block} threads x {words(width)}")


@pytest.mark.parametrize("start", [0, 1, 2, 4])
def test_a_regions_beginning_limits_the_vector(start: int) -> None:
    text = f's = T.alloc_shared((32, 32), "float32")\nTx.warp.copy(s, A[0:32, {start} : {start + 32}])\n'
    found = check(text + "T.cuda.warp_sync()\nTx.warp.copy(B[0:32, 0:32], s)")
    assert found[0][1].endswith(f"x {words(4 if start == 0 else min(start & -start, 4))}")


def test_cta_register_tiles_span_warps_and_copies() -> None:
    layout = "TileLayout(S[(4, 16, 8, 8) : (1 @ warpid, 8, 4 @ laneid, 1)] + R[4 : 1 @ laneid])"
    text = f'F = T.alloc_buffer((64, 64), "float32", scope="local", layout={layout})\n'
    check(text + "Tx.cta.copy(F, A)\nTx.cta.copy(B, F)", 128)


UNARY = ["sqrt", "exp", "exp2", "log", "log2", "rsqrt", "tanh", "sin", "cos", "erf", "floor", "ceil", "sigmoid"]
UNARY += ["abs", "neg", "relu", "square", "reciprocal", "silu"]


@pytest.mark.parametrize("name", UNARY)
def test_unary_primitives_in_registers_and_in_shared_memory(name: str) -> None:
    registers = LANE_ROW + f"Tx.warp.copy(R_, A[0:32, 0:8])\nTx.warp.{name}(R_, R_)\nTx.warp.copy(B[0:32, 0:8], R_)"
    assert check(registers)[1][0] == "reg"
    memory = 's = T.alloc_shared((32, 8), "float32")\nTx.cta.copy(s, A[0:32, 0:8])\nT.cuda.cta_sync()\n'
    assert check(memory + f"Tx.cta.{name}(s, s)\nTx.cta.copy(B[0:32, 0:8], s)", 64)[1][0] == "smem"


@pytest.mark.parametrize("name", ["add", "sub", "mul", "fdiv", "maximum", "minimum"])
@pytest.mark.parametrize("operands", ["R_, Q", "R_, 2.5", "2.5, R_", "R_, m", "m, Q"])
def test_binary_primitives_take_numbers_and_broadcast(name: str, operands: str) -> None:
    text = LANE_ROW + LANE_ROW.replace("R_", "Q") + LANE_ROW.replace("R_", "m").replace("8)", "1)")
    text += "Tx.warp.copy(R_, A[0:32, 0:8])\nTx.warp.copy(Q, A[0:32, 8:16])\nTx.warp.copy(m, A[0:32, 20:21])\n"
    check(text + f"Tx.warp.{name}(Q, {operands})\nTx.warp.copy(B[0:32, 0:8], Q)")


def test_scale_bias_fma_select_fill_and_cast() -> None:
    text = LANE_ROW + LANE_ROW.replace("R_", "Q") + LANE_ROW.replace("R_", "H").replace("float32", "float16")
    text += LANE_ROW.replace("R_", "c").replace("float32", "bool")
    text += """
Tx.warp.copy(R_, A[0:32, 0:8])
Tx.warp.fill(Q, 0.5)
Tx.warp.sqrt(Q, R_, bias=Q, scale=2.0)
Tx.warp.fma(Q, Q, R_, 3.0)
Tx.warp.cast(H, Q)
Tx.warp.cast(Q, H)
Tx.warp.zero(c)
Tx.warp.select(Q, c, R_, Q)
Tx.warp.copy(B[0:32, 0:8], Q)
"""
    check(text)


def test_thread_scope_works_on_local_views() -> None:
    text = (
        LANE_ROW
        + "Tx.warp.copy(R_, A[0:32, 0:8])\nr = R_.local()\nTx.mul(r, r, 2.0)\nfor i in range(8):\n    r[i] = r[i] + i\n"
    )
    check(text + "Tx.warp.copy(B[0:32, 0:8], R_)")


def test_permuted_and_rearranged_views() -> None:
    tile = shared("TileLayout(S[(32, 64) : (65, 1)])") + "Tx.cta.copy(s, A[0:32, 0:64])\nT.cuda.cta_sync()\n"
    check(tile + "Tx.cta.copy(B[0:64, 0:32], s.permute(1, 0))", 128)
    check(tile + 'Tx.cta.copy(B[0:64, 0:32], s.rearrange("a (b c) -> (b a) c", c=32))', 128)


def test_regions_that_move_with_a_loop_or_a_block() -> None:
    text = LANE_ROW + "for j in range(8):\n    Tx.warp.copy(R_, A[0:32, j * 8 : j * 8 + 8])\n    if j % 2 == 1:\n"
    check(text + "        Tx.warp.neg(R_, R_)\n    Tx.warp.copy(B[0:32, j * 8 : j * 8 + 8], R_)")
    text = LANE_ROW + "Tx.warp.copy(R_, A[0:32, bx * 8 : bx * 8 + 8])\n"
    check(text + "Tx.warp.copy(B[0:32, bx * 8 : bx * 8 + 8], R_)", grid=8)


# ------------------------------------------------------------------------------------------------------------- refusals
def test_a_refusal_lists_every_variant_its_reasons_and_the_place() -> None:
    text = 's = T.alloc_shared((32, 8), "float32")\n' + LANE_ROW + "Tx.warp.sqrt(R_, s)"
    with pytest.raises(DispatchFailed) as caught:
        tile_text(read(body(text)), "dispatched")
    message = str(caught.value)
    assert "no lowering takes Tx.warp.sqrt(R_[0:32, 0:8], s[0:32, 0:8])" in message
    assert "reg (10)" in message
    assert "every operand is in registers: src s is in shared memory" in message
    assert "smem (10)" in message
    assert "dst R_ is in local memory" in message
    assert "help: copy s into registers with the layout of R_ first: Tx.warp.copy(tile, s)" in message
    assert caught.value.span is not None
    assert "Tx.warp.sqrt" in caught.value.span.text


REFUSED = [
    ("Tx.warp.sqrt(F, F)", "S[(16, 8) : (1 @ laneid, 1)]", "(16, 8)", "it spans 16 threads, not all 32"),
    ("Tx.warp.sqrt(F, F)", "S[(16, 8) : (2 @ laneid, 1)]", "(16, 8)", "expected 1, got 2"),
    ("Tx.cta.sqrt(F, F)", "S[(4, 8) : (1 @ warpid, 1)]", "(4, 8)", "by stride: expected 1, got 32"),
    ("Tx.warp.sqrt(F, F)", "S[(32, 8) : (1 @ tx, 1)]", "(32, 8)", "a call at warp scope can't use"),
    ("Tx.warp.sqrt(F.local(8), F.local(8))", "S[(32, 8) : (1 @ laneid, 1)]", "(32, 8)", "isn't spread over threads"),
    ("Tx.warp.copy(F.local(8), A[0, 0:8])", "S[(32, 8) : (1 @ laneid, 1)]", "(32, 8)", "isn't spread over threads"),
    ("Tx.cluster.copy(F, A[0:32, 0:8])", "S[(32, 8) : (1 @ laneid, 1)]", "(32, 8)", "compute capability 9"),
]


@pytest.mark.parametrize(("call", "layout", "shape", "words"), REFUSED)
def test_refusals_name_what_does_not_fit(call: str, layout: str, shape: str, words: str) -> None:
    text = f'F = T.alloc_buffer({shape}, "float32", scope="local", layout=TileLayout({layout}))\n{call}'
    with pytest.raises(DispatchFailed, match=words):
        tile_text(read(body(text, block=128)), "dispatched")


def test_forcing_a_variant() -> None:
    tile = 's = T.alloc_shared((32, 8), "float32")\n'
    kernel = read(
        body(
            tile
            + 'Tx.warp.copy(s, A[0:32, 0:8], dispatch="fallback")\nT.cuda.warp_sync()\nTx.warp.copy(B[0:32, 0:8], s)'
        )
    )
    assert [c.variant for c in explain_tile(kernel)] == ["fallback", "gmem_smem"]
    assert run_tile(kernel, {"A_ptr": A}).ok
    with pytest.raises(DispatchFailed, match="has no variant 'fallbck'"):
        tile_text(read(body(tile + 'Tx.warp.copy(s, A[0:32, 0:8], dispatch="fallbck")')), "dispatched")


def test_known_primitives_of_other_hardware_say_what_they_need() -> None:
    with pytest.raises(DispatchFailed, match="needs tcgen05 matrix units"):
        tile_text(read(body("Tx.gemm_async(A, A, A)")), "dispatched")
    with pytest.raises(DispatchFailed, match="needs a Trainium core"):
        tile_text(read(body("Tx.binary_chain(A, A, A, A)")), "dispatched")


@pytest.mark.parametrize("source", ["R_[0:32, 0:7]", "R_[0:32, 1:2]"])
def test_a_source_that_overlaps_its_destination_is_refused(source: str) -> None:
    text = LANE_ROW + f"Tx.warp.add(R_[0:32, 1:8], {source}, 1.0)"
    with pytest.raises(DispatchFailed, match="may share some elements, and aren't the same"):
        tile_text(read(body(text)), "dispatched")
    check(
        LANE_ROW
        + "Tx.warp.copy(R_, A[0:32, 0:8])\nTx.warp.add(R_[0:32, 0:4], R_[0:32, 4:8], 1.0)\n"
        + "Tx.warp.copy(B[0:32, 0:8], R_)"
    )


def test_the_meaning_of_a_primitive_refuses_a_torn_warp_too() -> None:
    kernel = read(body(LANE_ROW + "if tid < 16:\n    Tx.warp.copy(R_, A[0:32, 0:8])"))
    from warpsmith.reference.program import run_reference

    with pytest.raises(SimulationError, match="takes all 32 threads of a warp; 16 of group 0"):
        run_reference(kernel, {"A_ptr": A, "B_ptr": A}, {})
