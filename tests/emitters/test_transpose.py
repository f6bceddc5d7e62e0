"""The transpose emitters: launch and tile as XLA's, results as the interpreter's, after emission and every pass."""

from __future__ import annotations

from typing import Any

import pytest
from differential import check_passes
from hero_kernels import analysis_of, assembled, body, case, emitted, ids_of, launched, rows_of
from indexing.bijection import is_bijection_onto
from kernel_runner import check
from needs import needs_ptxas

from warpsmith.emitters.gpu import packed_transpose, transpose
from warpsmith.indexing import IndexingMap


@pytest.mark.parametrize("row", rows_of("transpose"), ids=ids_of)
def test_launch_and_tile_are_xlas(row: dict[str, Any]) -> None:
    """Wrong: tile sizes, the vector factor, or the choice between padded and packed."""
    found, _ = launched(row)
    assert found == {key: row[key] for key in found}


def swap(dtype: str, dims: tuple[int, ...], order: tuple[int, ...], before: str = "", after: str = "") -> str:
    """A transpose of one parameter, with a unary op before and after it."""
    source, target = (",".join(map(str, d)) for d in (dims, [dims[i] for i in order]))
    lines = [f"p = {dtype}[{source}] parameter(0)"]
    if before:
        lines.append(f"b = {dtype}[{source}] {before}(p)")
    root = "" if after else "ROOT "
    lines.append(
        f"{root}t = {dtype}[{target}] transpose({'b' if before else 'p'}), dimensions={{{','.join(map(str, order))}}}"
    )
    if after:
        lines.append(f"ROOT a = {dtype}[{target}] {after}(t)")
    return "\n".join(lines)


PADDED = {
    "f32": swap("f32", (45, 70), (1, 0)),
    "f32 whole tiles": swap("f32", (64, 32), (1, 0), "negate", "abs"),
    "f32 three dims": swap("f32", (5, 33, 40), (0, 2, 1)),
    "f32 reversed": swap("f32", (20, 3, 37), (2, 1, 0), "negate"),
    "f32 four dims": swap("f32", (3, 4, 16, 40), (1, 3, 0, 2)),
    "f32 ones": swap("f32", (1, 33, 1, 65), (0, 3, 2, 1)),
    "f32 merged": swap("f32", (6, 7, 33), (2, 0, 1)),
    "f32 minor stays": swap("f32", (33, 40, 2), (1, 0, 2)),
    "bf16 odd": swap("bf16", (33, 65), (1, 0), "", "negate"),
    "bf16 minor stays": swap("bf16", (40, 35, 3), (1, 0, 2)),
    "bf16 minor stays, four dims": swap("bf16", (33, 6, 20, 2), (2, 0, 1, 3)),
    "s8 minor stays": swap("s8", (33, 35, 8), (1, 0, 2), "not"),
    "s8 odd": swap("s8", (33, 37), (1, 0)),
    "u8 wide and low": swap("u8", (8, 1030), (1, 0)),
    "f64": swap("f64", (40, 33), (1, 0), "", "negate"),
    "pred": swap("pred", (35, 37), (1, 0), "not", "not"),
    "c64": swap("c64", (33, 34), (1, 0), "negate"),
    "c128": swap("c128", (17, 20), (1, 0)),
    "f16 minor stays": swap("f16", (20, 40, 4), (1, 0, 2), "", "abs"),
}
PACKED = {
    "bf16": swap("bf16", (100, 66), (1, 0)),
    "bf16 whole tiles": swap("bf16", (128, 64), (1, 0), "negate", "abs"),
    "f16 odd columns": swap("f16", (66, 67), (1, 0), "", "negate"),
    "bf16 batched": swap("bf16", (3, 70, 36), (0, 2, 1)),
    "bf16 reversed": swap("bf16", (64, 5, 6), (2, 1, 0)),
    "bf16 rotated": swap("bf16", (66, 10, 20), (1, 2, 0)),
    "bf16 middle block stays": swap("bf16", (64, 6, 5, 8), (3, 1, 2, 0)),
    "s16": swap("s16", (44, 3, 70), (2, 1, 0), "negate"),
    "s8": swap("s8", (132, 140), (1, 0), "", "not"),
    "u8 partial": swap("u8", (44, 129), (1, 0)),
    "pred, whole words": swap("pred", (44, 68), (1, 0), "not"),
    "f8e4m3fn": swap("f8e4m3fn", (44, 60), (1, 0)),
    "f16 ones": swap("f16", (1, 40, 1, 66), (0, 3, 2, 1)),
}
FUSIONS = {
    "prologue and epilogue read other inputs": """
        p = f32[45,70] parameter(0)
        q = f32[45,70] parameter(1)
        s = f32[70,45] parameter(2)
        a = f32[45,70] add(p, q)
        t = f32[70,45] transpose(a), dimensions={1,0}
        m = f32[70,45] multiply(t, s)
        ROOT r = f32[70,45] subtract(m, t)""",
    "side output": """
        p = f32[45,70] parameter(0)
        n = f32[45,70] negate(p)
        t = f32[70,45] transpose(n), dimensions={1,0}
        ROOT r = (f32[70,45], f32[45,70]) tuple(t, n)""",
    "several heroes": """
        p = f32[45,70] parameter(0)
        q = s32[45,70] parameter(1)
        t = f32[70,45] transpose(p), dimensions={1,0}
        u = s32[70,45] transpose(q), dimensions={1,0}
        ROOT r = (f32[70,45], s32[70,45]) tuple(t, u)""",
    "one hero, several roots": """
        p = f32[45,70] parameter(0)
        t = f32[70,45] transpose(p), dimensions={1,0}
        a = f32[70,45] abs(t)
        c = bf16[70,45] convert(t)
        ROOT r = (f32[70,45], bf16[70,45], f32[70,45]) tuple(t, c, a)""",
    "epilogue of two heroes": """
        p = f32[45,70] parameter(0)
        q = f32[45,70] parameter(1)
        t = f32[70,45] transpose(p), dimensions={1,0}
        b = f32[70,45] abs(t)
        u = f32[70,45] transpose(q), dimensions={1,0}
        ROOT r = (f32[70,45], f32[70,45]) tuple(b, u)""",
    "roots of other ranks": """
        p = f32[8,33,20] parameter(0)
        t = f32[8,20,33] transpose(p), dimensions={0,2,1}
        n = f32[8,20,33] negate(t)
        b = f32[8,660] bitcast(n)
        ROOT r = (f32[8,20,33], f32[8,660]) tuple(t, b)""",
    "side output of another rank": """
        p = f32[40,50] parameter(0)
        q = f32[40,50] parameter(1)
        a = f32[40,50] add(p, q)
        t = f32[50,40] transpose(a), dimensions={1,0}
        b = f32[2000] bitcast(q)
        n = f32[2000] negate(b)
        ROOT r = (f32[50,40], f32[2000]) tuple(t, n)""",
    "a root twice": """
        p = f32[40,50] parameter(0)
        t = f32[50,40] transpose(p), dimensions={1,0}
        ROOT r = (f32[50,40], f32[50,40]) tuple(t, t)""",
    "epilogue with a broadcast": """
        p = f32[45,70] parameter(0)
        v = f32[45] parameter(1)
        t = f32[70,45] transpose(p), dimensions={1,0}
        b = f32[70,45] broadcast(v), dimensions={1}
        ROOT r = f32[70,45] add(t, b)""",
    "side output read at another index": """
        p = f32[40,40] parameter(0)
        e = f32[40,40] negate(p)
        v = f32[40,40] reverse(e), dimensions={0}
        t = f32[40,40] transpose(e), dimensions={1,0}
        ROOT r = (f32[40,40], f32[40,40]) tuple(t, v)""",
    "packed, several heroes of one width": """
        p = bf16[66,70] parameter(0)
        q = s16[66,70] parameter(1)
        n = s16[66,70] negate(q)
        t = bf16[70,66] transpose(p), dimensions={1,0}
        u = s16[70,66] transpose(n), dimensions={1,0}
        ROOT r = (bf16[70,66], s16[70,66]) tuple(t, u)""",
    "packed, roots and side outputs": """
        p = bf16[66,70] parameter(0)
        n = bf16[66,70] abs(p)
        t = bf16[70,66] transpose(n), dimensions={1,0}
        c = f32[70,66] convert(t)
        m = f32[70,66] multiply(c, c)
        b = bf16[4620] bitcast(n)
        ROOT r = (f32[70,66], bf16[70,66], bf16[4620]) tuple(m, t, b)""",
    "packed, another transpose as side output": """
        p = bf16[2,40,3,24] parameter(0)
        t = bf16[2,3,40,24] transpose(p), dimensions={0,2,1,3}
        b = bf16[2,40,72] bitcast(p)
        u = bf16[2,72,40] transpose(b), dimensions={0,2,1}
        ROOT r = (bf16[2,3,40,24], bf16[2,72,40]) tuple(t, u)""",
    "no input": """
        i = s32[40,44] iota(), iota_dimension=0
        t = s32[44,40] transpose(i), dimensions={1,0}
        ROOT n = s32[44,40] negate(t)""",
}


LOWERED = (
    *("f32", "f32 minor stays", "bf16 minor stays", "c64", "bf16", "f16 odd columns"),
    *("prologue and epilogue read other inputs", "side output", "packed, roots and side outputs"),
)


@pytest.mark.parametrize("name", [*PADDED, *PACKED, *FUSIONS])
def test_emitted_kernels_give_the_interpreters_results(name: str) -> None:
    """Wrong: a tile's place or bounds, the turn of packed rows, a root computed at the other side's indices."""
    text = {**PADDED, **PACKED, **FUSIONS}[name]
    assert emitted(text).origin.emitter == "transpose"
    if name not in LOWERED:
        check(body(text))


@pytest.mark.parametrize("name", LOWERED)
def test_every_pass_keeps_the_results(name: str) -> None:
    """Wrong: a pass that moves an access across the barrier, or makes one wider than its alignment."""
    text = {**PADDED, **PACKED, **FUSIONS}[name]
    assert check_passes(case(name, text), "sm_90").simulated > 8


@pytest.mark.parametrize("name", [*PADDED, *PACKED])
def test_the_variant_is_the_expected_one(name: str) -> None:
    """So that the cases above test what their names say."""
    assert emitted({**PADDED, **PACKED}[name]).origin.variant == ("packed" if name in PACKED else "padded")


def test_the_walk_throughs_kernel() -> None:
    """The published example: a tile of 32 x 1 x 33, filled by one loop and emptied by another, a barrier between."""
    text = """
        p = f32[20,160,170] parameter(0)
        e = f32[20,160,170] exponential(p)
        t = f32[170,160,20] transpose(e), dimensions={2,1,0}
        ROOT a = f32[170,160,20] abs(t)"""
    kernel = emitted(text)
    assert (kernel.launch.grid, kernel.launch.block) == ((960, 1, 1), (128, 1, 1))
    lines = [line.strip() for line in str(kernel.module).splitlines()]
    wanted = (
        "%shmem = xla_gpu.allocate_shared : tensor<32x1x33xf32>",
        "%xla_loop = xla_gpu.loop (%thread_id_x, %block_id_x)[%i, %vector_index] -> "
        "(%input_dim0, %input_dim1, %input_dim2, %shmem_dim0, %shmem_dim1, %shmem_dim2) "
        "in #map iter_args(%iter = %shmem) -> (tensor<32x1x33xf32>) {",
        "%synced_tensor = xla_gpu.sync_threads %xla_loop : tensor<32x1x33xf32>",
        "%extracted = tensor.extract %synced_tensor[%shmem_dim0, %shmem_dim1, %shmem_dim2] : tensor<32x1x33xf32>",
        "return %xla_loop_0 : tensor<170x160x20xf32>",
    )
    assert [line for line in lines if line in wanted] == list(wanted)


def test_packed_transpose_of_four_bit_elements() -> None:
    """Eight of them fill a word.  As emitted: below, memory is bytes of two elements each."""
    text = swap("s4", (88, 96), (1, 0))
    assert emitted(text).launch.shared_bytes == 256 * 256 // 2
    check(body(text))


def onto(map: IndexingMap, dims: tuple[int, ...]) -> bool:
    return is_bijection_onto(map, dims)


@pytest.mark.parametrize("name", [*PADDED, *PACKED])
def test_each_element_is_read_and_written_once(name: str) -> None:
    """Wrong: a tile that overlaps another, or a row that no thread takes."""
    analysis = analysis_of({**PADDED, **PACKED}[name])
    if name in PACKED:
        packed = packed_transpose.tile_of(analysis)
        assert onto(packed_transpose.thread_to_input(packed), packed_transpose.input_dims(packed))
        assert onto(packed_transpose.thread_to_output(packed), packed.dimensions)
    else:
        tile = transpose.tile_of(analysis)
        assert onto(transpose.thread_to_input(tile), tile.description.input_dimensions)
        assert onto(transpose.thread_to_output(tile), tile.description.dimensions)


@needs_ptxas
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("name", ["f32", "bf16 minor stays", "c64", "bf16", "s8", "packed, roots and side outputs"])
def test_ptxas_takes_the_ptx(name: str, target: str) -> None:
    """Wrong: an address space, an alignment, or a barrier that ptxas or the ABI refuses."""
    text = {**PADDED, **PACKED, **FUSIONS}[name]
    ptx, cubin = assembled(text, target)
    assert "st.shared" in ptx
    assert "bar" in ptx
    assert cubin.kernels[0].shared == emitted(text, target).launch.shared_bytes
