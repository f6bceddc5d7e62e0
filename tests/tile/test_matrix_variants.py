"""ldmatrix, stmatrix and mma.sync: which calls they take, that they do what the primitives mean, how refusals read."""

from __future__ import annotations

import dataclasses

import ml_dtypes
import numpy as np
import pytest

from tests.tile.helpers import body, read
from tests.tile.matrix_programs import matrix_copy, product, shuffled_product
from warpsmith.compiler.tile.programs import TileRun, explain_tile, run_tile, tile_text
from warpsmith.devices import device
from warpsmith.errors import DispatchFailed, InvalidLayout, InvalidTileProgram
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.dialects import nvgpu, vector
from warpsmith.tile import Kernel, TileLayout, dispatch, mma_a, mma_b, mma_c

FRAGMENTS = "from warpsmith.tile import mma_a, mma_b, mma_c\n"
RNG = np.random.default_rng(11)


def text(statements: str, type: str = "float16", shape: tuple[int, int] = (64, 64), block: int = 32) -> str:
    """A kernel with parameters A and B of one type around some statements."""
    parameters = "; ".join(f'{name} = T.match_buffer({name}_ptr, {shape}, "{type}")' for name in "AB")
    return FRAGMENTS + body(statements, parameters=parameters, block=block)


def good(result: TileRun) -> None:
    assert result.ok, (dict(result.mismatches), [str(each) for each in result.findings])


def variants(kernel: Kernel, target: str = "sm_90") -> list[tuple[str, str]]:
    return [(c.variant, c.partition) for c in explain_tile(kernel, target)]


def there_and_back(layout: str, shared: str, type: str = "float16", shape: tuple[int, int] = (16, 16)) -> str:
    """A through shared memory into a register tile, and back by the same way."""
    rows, columns = shape
    region = f"[0:{rows}, 0:{columns}]"
    return text(
        f"""
X = T.alloc_shared(({rows}, {columns}), "{type}", layout={shared})
Y = T.alloc_shared(({rows}, {columns}), "{type}", layout={shared})
V = T.alloc_local(({rows}, {columns}), "{type}", layout={layout})
Tx.warp.copy(X, A{region}); T.cuda.cta_sync()
Tx.warp.copy(V, X); Tx.warp.copy(Y, V); T.cuda.cta_sync()
Tx.warp.copy(B{region}, Y)""",
        type,
    )


# --------------------------------------------------------------------------------------------------- ldmatrix, stmatrix
DENSE = "TileLayout(S[(16, 16)])"
COLUMNS = "TileLayout(S[(16, 16) : (1, 16)])"


@pytest.mark.parametrize(
    ("layout", "shared", "shape", "instruction"),
    [
        ("mma_a(16, 16)", DENSE, (16, 16), "1 x {}.x4"),
        ("mma_a(16, 16)", COLUMNS, (16, 16), "1 x {}.x4.trans"),
        ("mma_a(32, 32)", "TileLayout(S[(32, 32)])", (32, 32), "4 x {}.x4"),
        ("mma_c(16, 8)", "TileLayout(S[(16, 8)])", (16, 8), "1 x {}.x2"),
        ("mma_b(16, 8)", "TileLayout(S[(16, 8)])", (16, 8), "1 x {}.x2.trans"),
        ("mma_b(16, 16)", DENSE, (16, 16), "1 x {}.x4.trans"),
        ("mma_b(16, 16, transposed=True)", DENSE, (16, 16), "1 x {}.x4"),
        ("TileLayout(S[(8, 4, 2) : (4 @ laneid, 1 @ laneid, 1)])", "TileLayout(S[(8, 8)])", (8, 8), "1 x {}.x1"),
        ("mma_c(16, 24)", "TileLayout(S[(16, 24)])", (16, 24), "3 x {}.x2"),  # three tiles of columns
        ("mma_a(16, 16)", "TileLayout(S[(16, 16) : (24, 1)])", (16, 16), "1 x {}.x4"),  # padding of 16 bytes
        ("mma_a(16, 16)", "TileLayout(S[(16, 16)] + 8)", (16, 16), "1 x {}.x4"),
        ("mma_a(16, 16)", "TileLayout(S[(16, 2, 8) : (8, 128, 1)])", (16, 16), "1 x {}.x4"),
        ("mma_a(16, 16)", "ComposeLayout(3, 1, 3, tile=TileLayout(S[(16, 16)]))", (16, 16), "1 x {}.x4"),
        ("mma_a(16, 64)", "ComposeLayout(3, 3, 3, tile=TileLayout(S[(16, 64)]))", (16, 64), "4 x {}.x4"),
        (
            "mma_a(64, 16)",
            "ComposeLayout(3, 3, 3, tile=TileLayout(S[(64, 16) : (1, 64)]))",
            (64, 16),
            "4 x {}.x4.trans",
        ),
        ("mma_a(16, 16)", "ComposeLayout(3, 2, 3, inner=False, tile=TileLayout(S[(16, 16)]))", (16, 16), "1 x {}.x4"),
        # a lane's registers in another order
        (
            "TileLayout(S[(2, 8, 4, 2) : (1, 4 @ laneid, 1 @ laneid, 2)])",
            "TileLayout(S[(16, 8)])",
            (16, 8),
            "1 x {}.x2",
        ),
    ],
)
@pytest.mark.parametrize("type", ["float16", "bfloat16", "int16"])
def test_tiles_of_rows_that_lie_together_go_at_once(
    layout: str, shared: str, shape: tuple[int, int], instruction: str, type: str
) -> None:
    kernel = read(there_and_back(layout, shared, type, shape))
    moved = [each for each in variants(kernel) if each[0] == "ldstmatrix"]
    assert moved == [("ldstmatrix", instruction.format("ldmatrix")), ("ldstmatrix", instruction.format("stmatrix"))]
    good(run_tile(kernel))


@pytest.mark.parametrize("type", ["float32", "int32", "int8", "uint8", "float64"])
def test_elements_of_other_sizes_are_left_to_reg(type: str) -> None:
    """Defect B7: the same geometry in other types was moved as if it were of 16 bits."""
    kernel = read(there_and_back("mma_a(16, 16)", DENSE, type))
    assert [name for name, _ in variants(kernel)] == ["gmem_smem", "reg", "reg", "gmem_smem"]
    good(run_tile(kernel))


def test_stmatrix_needs_compute_capability_9_and_ldmatrix_7_5() -> None:
    kernel = read(there_and_back("mma_a(16, 16)", DENSE))
    assert [name for name, _ in variants(kernel, "sm_80")] == ["gmem_smem", "ldstmatrix", "reg", "gmem_smem"]
    good(run_tile(kernel, target="sm_80"))
    older = dataclasses.replace(device("sm_80"), compute_capability=(7, 0))
    chosen = dispatch.dispatch(kernel, older).origin.choices
    assert [each.variant for each in chosen] == ["gmem_smem", "reg", "reg", "gmem_smem"]
    assert (
        "ldstmatrix (20)",
        "compute capability 7.5, or 9.0 to store: ldmatrix needs compute capability 7.5; sm_80 has 7.0",
    ) in chosen[1].rejected


def test_the_instructions_stand_in_every_text() -> None:
    kernel = read(there_and_back("mma_b(16, 16)", DENSE))
    assert "T.ptx.ldmatrix.x4.trans(X[" in tile_text(kernel, "dispatched")
    assert "T.ptx.stmatrix.x4.trans(Y[" in tile_text(kernel, "dispatched")
    assert '"nvgpu.ldmatrix"' in tile_text(kernel, "lowered")
    assert "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16" in tile_text(kernel, "ptx")
    assert "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16" in tile_text(kernel, "ptx")
    assert "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16" in tile_text(kernel, "cuda")


def test_a_part_of_shared_memory_that_moves_with_a_loop() -> None:
    kernel = read(
        text("""
X = T.alloc_shared((64, 64), "float16"); Y = T.alloc_shared((64, 64), "float16")
V = T.alloc_local((32, 16), "float16", layout=mma_a(32, 16))
Tx.warp.copy(X, A); T.cuda.cta_sync()
for i in range(4):
    Tx.warp.copy(V[0:16, 0:16], X[i * 16 : i * 16 + 16, 16:32])
    Tx.warp.copy(V[16:32, 0:16], X[0:16, i * 16 : i * 16 + 16])
    Tx.warp.copy(Y[i * 16 : i * 16 + 16, 0:16], V[0:16, 0:16])
    Tx.warp.copy(Y[i * 16 : i * 16 + 16, 16:32], V[16:32, 0:16])
T.cuda.cta_sync()
Tx.warp.copy(B[0:64, 0:32], Y[0:64, 0:32])""")
    )
    assert [name for name, _ in variants(kernel)].count("ldstmatrix") == 4
    good(run_tile(kernel))


def test_warps_that_hold_the_same_tile_store_it_once() -> None:
    layout = "TileLayout(S[(8, 4, 2) : (4 @ laneid, 1 @ laneid, 1)] + R[2 : 1 @ warpid])"
    kernel = read(
        text(
            f"""
X = T.alloc_shared((8, 8), "float16"); Y = T.alloc_shared((8, 8), "float16")
V = T.alloc_local((8, 8), "float16", layout={layout})
Tx.cta.copy(X, A[0:8, 0:8]); T.cuda.cta_sync()
Tx.cta.copy(V, X); Tx.cta.copy(Y, V); T.cuda.cta_sync()
Tx.cta.copy(B[0:8, 0:8], Y)""",
            block=64,
        )
    )
    assert [name for name, _ in variants(kernel)][1:3] == ["ldstmatrix", "ldstmatrix"]
    good(run_tile(kernel))  # two warps that store would race


LOAD = 'Tx.{scope}.copy(V, X, dispatch="ldstmatrix")'


@pytest.mark.parametrize(
    ("layout", "shared", "scope", "block", "reason"),
    [
        ("mma_a(16, 16)", "TileLayout(S[(16, 16) : (20, 1)])", "warp", 32,
         "rows of V begin 20 elements apart, no multiple of 8"),
        ("mma_a(16, 16)", "TileLayout(S[(16, 16)] + 4)", "warp", 32,
         "a row of X may begin at another place than a multiple of 8 elements"),
        ("mma_a(16, 16)", "ComposeLayout(2, 1, 3, tile=TileLayout(S[(16, 16)]))", "warp", 32,
         "the swizzle of X tears rows of 8 elements: it moves 4"),
        ("mma_a(16, 16)", DENSE + ", align=8", "warp", 32, "X is aligned to 8 bytes, not to 16"),
        ("mma_a(16, 16)", "TileLayout(S[(16, 8, 2) : (16, 1, 8)])", "warp", 32,
         "lanes of V don't hold 8 x 8 tiles of its memory: neighbours there are lanes 1: 1, 2: 2, 4: 16, 8: 32, 16: 64 "
         "elements apart (1 and 2 must be 2 and 4 apart, or 4, 8 and 16 be 1, 2 and 4)"),
        ("TileLayout(S[(16, 16) : (1 @ laneid, 1)])", DENSE, "warp", 32,
         "V isn't spread over all lanes of its warps, each with its own elements"),
        (DENSE, DENSE, "warp", 32, "one side is spread over threads, in registers, and the other isn't"),
        ("mma_a(16, 16)", DENSE, "thread", 32, "the scope is whole warps: it is a call of one thread"),
        ("mma_a(16, 16)", DENSE, "cta", 48, "the scope is whole warps: the scope has 48 threads"),
    ],
)  # fmt: skip
def test_what_ldmatrix_refuses(layout: str, shared: str, scope: str, block: int, reason: str) -> None:
    kernel = read(
        text(
            f'X = T.alloc_shared((16, 16), "float16", layout={shared})\n'
            f'V = T.alloc_local((16, 16), "float16", layout={layout})\n{LOAD.format(scope=scope)}',
            block=block,
        )
    )
    with pytest.raises(DispatchFailed) as caught:
        explain_tile(kernel)
    assert str(caught.value).splitlines()[3:4] == [f"  ldstmatrix (20)  {reason}"]


def test_ldmatrix_refuses_a_warp_in_part() -> None:
    kernel = read(
        text(
            'X = T.alloc_shared((16, 16), "float16"); V = T.alloc_local((16, 16), "float16", layout=mma_a(16, 16))\n'
            f"if tid < 16:\n    {LOAD.format(scope='warp')}"
        )
    )
    with pytest.raises(DispatchFailed, match=r"\[0, 16\) of 32 threads are active in group 0"):
        explain_tile(kernel)


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_random_copies_of_fragments(first: int) -> None:
    taken = 0
    for seed in range(first, first + 20):
        kernel = read(matrix_copy(seed))
        result = run_tile(kernel, seed=seed)
        assert result.ok, (seed, matrix_copy(seed), dict(result.mismatches), [str(f) for f in result.findings])
        taken += sum(name == "ldstmatrix" for name, _ in variants(kernel))
    assert taken > 5


# ----------------------------------------------------------------------------------------------------- fragment layouts
@pytest.mark.parametrize("lane", range(32))
def test_fragment_layouts_are_the_instruction_sets(lane: int) -> None:
    """PTX ISA, "Matrix fragments for mma.m16n8k16": rows and columns of a0..a7, b0..b3 and c0..c3."""
    group, member = lane >> 2, lane % 4

    def owned(layout: TileLayout, rows: int, columns: int) -> dict[int, tuple[int, int]]:
        found: dict[int, tuple[int, int]] = {}
        for i in range(rows):
            for j in range(columns):
                places = {axis.name: value for axis, value in layout.apply(i, j, shape=(rows, columns)).items()}
                if places.get("laneid", 0) == lane:
                    found[places.get("m", 0)] = (i, j)
        return found

    a = owned(mma_a(16, 16), 16, 16)
    for i in range(8):
        row = group if i in (0, 1, 4, 5) else group + 8
        assert a[i] == (row, member * 2 + (i & 1) + (8 if i >= 4 else 0))
    b = owned(mma_b(16, 8), 16, 8)
    for i in range(4):
        assert b[i] == (member * 2 + (i & 1) + (8 if i >= 2 else 0), group)
    c = owned(mma_c(16, 8), 16, 8)
    for i in range(4):
        assert c[i] == (group + 8 * (i >= 2), member * 2 + (i & 1))
    assert owned(mma_a(16, 16, transposed=True), 16, 16) == {r: (j, i) for r, (i, j) in a.items()}
    assert owned(mma_b(16, 8, transposed=True), 8, 16) == {r: (j, i) for r, (i, j) in b.items()}


def test_fragment_layouts_have_whole_fragments() -> None:
    with pytest.raises(InvalidLayout, match=r"m = 24: fragments of mma.m16n8k16 have 16"):
        mma_a(24, 16)
    with pytest.raises(InvalidLayout, match=r"k = 8: fragments of mma.m16n8k16 have 16"):
        mma_b(8, 8)
    with pytest.raises(InvalidLayout, match=r"n = 8 for 2 warps: fragments of mma.m16n8k16 have 8"):
        mma_c(16, 8, warps=(1, 2))
    with pytest.raises(InvalidLayout, match=r"m = 16 for 0 warps"):
        mma_c(16, 8, warps=(0, 1))
    for made, cause in (("mma_a(16, 16, warps=2)", "warps = 2"), ("mma_b('n', 8)", "k = 'n' is no integer")):
        with pytest.raises(InvalidLayout, match=cause):  # and not what Python says of it
            read(products("c, a, b", a=("(16, 16)", "float16", made)))


# ------------------------------------------------------------------------------------------------------------- products
OPERANDS = {
    "a": ("(16, 16)", "float16", "mma_a(16, 16)"),
    "b": ("(16, 8)", "float16", "mma_b(16, 8)"),
    "c": ("(16, 8)", "float32", "mma_c(16, 8)"),
    "d": ("(16, 8)", "float32", "mma_c(16, 8)"),
}


def products(call: str, scope: str = "warp", block: int = 32, **operands: tuple[str, str, str]) -> str:
    lines = [
        f'{name} = T.alloc_local({shape}, "{type}", layout={layout})'
        for name, (shape, type, layout) in {**OPERANDS, **operands}.items()
    ]
    return text("\n".join([*lines, f"Tx.{scope}.gemm({call})"]), block=block)


MATMUL = """
@T.prim_func
def k(A_ptr: T.handle, B_ptr: T.handle, C_ptr: T.handle):
    A = T.match_buffer(A_ptr, (64, 48), "{type}"); B = T.match_buffer(B_ptr, (48, 32), "{type}")
    C = T.match_buffer(C_ptr, (64, 32), "float32")
    T.device_entry(); T.cta_id([1]); tid = T.thread_id([128])
    X = T.alloc_shared((64, 16), "{type}"); Y = T.alloc_shared((16, 32), "{type}")
    a = T.alloc_local((64, 16), "{type}", layout=mma_a(64, 16, warps=(2, 2)))
    b = T.alloc_local((16, 32), "{type}", layout=mma_b(16, 32, warps=(2, 2)))
    c = T.alloc_local((64, 32), "float32", layout=mma_c(64, 32, warps=(2, 2)))
    Tx.cta.fill(c, 0.0)
    for i in range(3):
        Tx.cta.copy(X, A[0:64, i * 16 : i * 16 + 16]); Tx.cta.copy(Y, B[i * 16 : i * 16 + 16, 0:32])
        T.cuda.cta_sync()
        Tx.cta.copy(a, X); Tx.cta.copy(b, Y)
        Tx.cta.gemm(c, a, b, beta=1.0)
        T.cuda.cta_sync()
    Tx.cta.copy(C, c)
"""


@pytest.mark.parametrize(("type", "numpy"), [("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)])
def test_a_product_by_four_warps_is_numpys(type: str, numpy: type) -> None:
    kernel = read(FRAGMENTS + MATMUL.format(type=type))
    a, b = (RNG.standard_normal(shape).astype(numpy) for shape in ((64, 48), (48, 32)))
    result = run_tile(kernel, {"A_ptr": a, "B_ptr": b})
    good(result)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    bound = 48 * 2.0**-23 * (np.abs(wide_a) @ np.abs(wide_b))  # of any order of an f32 sum
    assert (np.abs(result.outputs["C_ptr"] - wide_a @ wide_b) <= bound).all()
    taken = [each for each in variants(kernel) if each[0] in ("ldstmatrix", "mma_m16n8k16")]
    assert taken == [
        ("ldstmatrix", "2 x ldmatrix.x4"), ("ldstmatrix", "1 x ldmatrix.x4.trans"),
        ("mma_m16n8k16", "4 x 1 x m16n8k16 a warp"),
    ]  # fmt: skip
    assert f"mma.sync.aligned.m16n8k16.row.col.f32.{'f16.f16' if type == 'float16' else 'bf16.bf16'}.f32" in tile_text(
        kernel, "ptx"
    )


def test_a_product_is_the_next_ones_first_factor_as_it_lies() -> None:
    kernel = read(
        FRAGMENTS
        + """
@T.prim_func
def k(A_ptr: T.handle, B_ptr: T.handle, C_ptr: T.handle):
    A = T.match_buffer(A_ptr, (16, 16), "float16"); B = T.match_buffer(B_ptr, (16, 16), "float16")
    C = T.match_buffer(C_ptr, (16, 16), "float32")
    T.device_entry(); T.cta_id([1]); tid = T.thread_id([32])
    a = T.alloc_local((16, 16), "float16", layout=mma_a(16, 16))
    b = T.alloc_local((16, 16), "float16", layout=mma_b(16, 16))
    c = T.alloc_local((16, 16), "float32", layout=mma_c(16, 16))
    h = T.alloc_local((16, 16), "float16", layout=mma_c(16, 16))
    Tx.warp.copy(a, A); Tx.warp.copy(b, B)
    Tx.warp.gemm(c, a, b)
    Tx.warp.cast(h, c)
    Tx.warp.gemm(c, h, b)
    Tx.warp.copy(C, c)
"""
    )
    a, b = (RNG.standard_normal((16, 16)).astype(np.float16) for _ in range(2))
    result = run_tile(kernel, {"A_ptr": a, "B_ptr": b})
    good(result)
    first = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float16).astype(np.float64)
    np.testing.assert_allclose(result.outputs["C_ptr"], first @ b.astype(np.float64), rtol=2e-2, atol=2e-2)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_products(first: int) -> None:
    for seed in range(first, first + 20):
        kernel = read(product(seed))
        assert "mma_m16n8k16" in [name for name, _ in variants(kernel)]
        result = run_tile(kernel, seed=seed)
        assert result.ok, (seed, product(seed), dict(result.mismatches), [str(f) for f in result.findings])


@pytest.mark.slow
def test_rows_columns_and_registers_may_be_in_any_order() -> None:
    """Small integers, whose products and sums are exact in any order."""
    for seed in range(24):
        source, ta, tb, adds = shuffled_product(seed)
        kernel = read(source)
        arrays = {
            each.name: np.random.default_rng(i)
            .integers(-8, 8, [int(str(extent)) for extent in each.shape or ()])
            .astype(each.type.numpy)
            for i, each in enumerate(kernel.parameters)
        }
        result = run_tile(kernel, {name: array.copy() for name, array in arrays.items()})
        good(result)
        a, b, c = (array.astype(np.float64) for array in arrays.values())
        expected = (a.T if ta else a) @ (b.T if tb else b) + (c if adds else 0.0)
        np.testing.assert_array_equal(result.outputs["C_ptr"], expected, err_msg=source)


def test_the_comparison_sees_a_fragment_in_the_wrong_order(monkeypatch: pytest.MonkeyPatch) -> None:
    right = nvgpu.mma_sync

    def swapped(b: Builder, first: Value, second: Value, total: Value) -> Value:
        return right(b, vector.shuffle(b, first, first, (1, 0, 2, 3, 4, 5, 6, 7)), second, total)

    monkeypatch.setattr(nvgpu, "mma_sync", swapped)
    assert run_tile(read(product(1)), seed=1).mismatches


MISFIT = (
    "{dim} isn't spread over lanes as fragments of m16n8k16 are: they need {first} and {second}, but for the order of "
    "registers"
)
WANTED = {
    "a": "a a such as mma_a(16, 16) = S[(2, 8, 2, 4, 2):(2, 4@laneid, 4, 1@laneid, 1)]",
    "b": "b b such as mma_b(16, 8) = S[(2, 4, 2, 8):(2, 1@laneid, 1, 4@laneid)]",
    "c": "dst c such as mma_c(16, 8) = S[(2, 8, 4, 2):(2, 4@laneid, 1@laneid, 1)]",
}
FACTORS = "a and b are both float16 or both bfloat16, dst and c float32: "


@pytest.mark.parametrize(
    ("call", "operands", "reason"),
    [
        ("c, a, b", {"a": ("(16, 16)", "float32", "mma_a(16, 16)")}, FACTORS + "a is float32, b is float16"),
        ("c, a, b", {"b": ("(16, 8)", "bfloat16", "mma_b(16, 8)")}, FACTORS + "a is float16, b is bfloat16"),
        ("c, a, b", {"c": ("(16, 8)", "float16", "mma_c(16, 8)")}, FACTORS + "dst is float16"),
        ("c, a, b, alpha=2.0, beta=0.5", {}, "alpha is 1, beta 0 or 1: alpha is 2, beta is 0.5"),
        ("c, a[0:16, 0:8], b[0:8, 0:8]", {}, "m, n and k are multiples of 16, 8 and 16: the product is 16 x 8 x 8"),
        ("c, a, b", {"b": ("(16, 8)", "float16", "mma_c(16, 8)")},
         MISFIT.format(dim="n", first=WANTED["c"], second=WANTED["b"])),
        ("c, a, b", {"a": ("(16, 16)", "float16", "mma_b(16, 16)")},
         MISFIT.format(dim="m", first=WANTED["c"], second=WANTED["a"])),
        ("c, a, b", {"b": ("(16, 8)", "float16", "TileLayout(S[(2, 4, 2, 8) : (2, 2 @ laneid, 1, 4 @ laneid)])")},
         None),
        ("c, a, b", {"a": ("(16, 16)", "float16", "TileLayout(S[(16, 16)])")},
         "a a isn't spread over the lanes of a warp: it needs a layout" + WANTED["a"].removeprefix("a a")),
        ("c, a, b, d", {"d": ("(16, 8)", "float32", "TileLayout(S[(8, 2, 4, 2) : (4 @ laneid, 2, 1 @ laneid, 1)])")},
         "c d isn't spread over threads as dst c is"),
    ],
)  # fmt: skip
def test_what_mma_refuses(call: str, operands: dict[str, tuple[str, str, str]], reason: str | None) -> None:
    with pytest.raises(DispatchFailed) as caught:
        explain_tile(read(products(call, **operands)))
    line = str(caught.value).splitlines()[3]
    assert line.startswith("  mma_m16n8k16 (10)  ")
    assert reason is None or line == f"  mma_m16n8k16 (10)  {reason}"


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("transpose_a=tid", "gemm: transpose_a is True or False, not a value of the kernel"),
        ("transpose_b=2", "gemm: transpose_b is True or False, not 2"),
        ("alpha='x'", "gemm: alpha is a number that is known while the kernel is read, not 'x'"),
        ("beta=tid", "gemm: beta is a number that is known while the kernel is read, not a value of the kernel"),
    ],
)
def test_options_of_a_product_are_checked(option: str, message: str) -> None:
    with pytest.raises(InvalidTileProgram, match=message):
        read(products(f"c, a, b, {option}"))


def test_mma_refuses_memory_threads_warps_and_older_hardware() -> None:
    def reason(source: str, target: str = "sm_90") -> str:
        with pytest.raises(DispatchFailed) as caught:
            dispatch.dispatch(read(source), device(target))
        return str(caught.value)

    assert "the scope is whole warps: it is a call of one thread" in reason(products("c, a, b", "thread"))
    assert (
        "dst c: it spans 32 threads, not all 64; it needs a layout such as mma_c(16, 8, warps=(r, c)) with r * c = 2"
    ) in reason(products("c, a, b", "cta", 64))
    shared = 's = T.alloc_shared((16, 16), "float16")\n' + "\n".join(products("c, s, b").splitlines()[5:])
    assert "every operand is in registers: a s is in shared memory" in reason(text(shared.replace("    ", "")))
    older = dataclasses.replace(device("sm_80"), compute_capability=(7, 5))
    with pytest.raises(DispatchFailed, match=r"mma.sync.m16n8k16 needs compute capability 8.0; sm_80 has 7.5"):
        dispatch.dispatch(read(products("c, a, b")), older)


def test_comments_say_which_product_it_is() -> None:
    """The options that change what is computed, and no others."""
    b = ("(8, 16)", "float16", "mma_b(16, 8, transposed=True)")
    for call, words in {
        "c, a, b, beta=1.0, transpose_b=True": "Tx.warp.gemm(c, a, b, transpose_b=True, beta=1.0)",
        "c, a, b, d, beta=0, transpose_b=True": "Tx.warp.gemm(c, a, b, d, transpose_b=True, beta=0.0)",
        "c, a, b, c, beta=1, transpose_b=True, alpha=1": "Tx.warp.gemm(c, a, b, c, transpose_b=True)",
    }.items():
        assert f"// {words}: mma_m16n8k16, 1 x 1 x m16n8k16 a warp" in tile_text(read(products(call, b=b)), "cuda")


def test_warps_must_share_out_a_product_as_its_factors() -> None:
    source = products(
        "c, a, b", "cta", 64, a=("(32, 16)", "float16", "mma_a(32, 16, warps=(2, 1))"),
        b=("(16, 16)", "float16", "mma_b(16, 16, warps=(1, 2))"),
        c=("(32, 16)", "float32", "mma_c(32, 16, warps=(1, 2))"),
    )  # fmt: skip
    with pytest.raises(DispatchFailed, match=r"m isn't spread over lanes as fragments"):
        explain_tile(read(source))


def test_parts_of_register_tiles_that_move_with_loops_stay_in_registers() -> None:
    """k in steps of a fragment, rows of the sum one fragment at a time, and dynamic shared memory."""
    kernel = read(
        FRAGMENTS
        + """
@T.prim_func
def k(A_ptr: T.handle, B_ptr: T.handle, C_ptr: T.handle):
    A = T.match_buffer(A_ptr, (32, 64), "float16"); B = T.match_buffer(B_ptr, (64, 16), "float16")
    C = T.match_buffer(C_ptr, (32, 16), "float32")
    T.device_entry(); T.cta_id([1]); tid = T.thread_id([32])
    X = T.alloc_buffer((32, 64), "float16", scope="shared.dyn")
    a = T.alloc_local((32, 64), "float16", layout=mma_a(32, 64))
    b = T.alloc_local((64, 16), "float16", layout=mma_b(64, 16))
    c = T.alloc_local((32, 16), "float32", layout=mma_c(32, 16))
    Tx.warp.copy(X, A); T.cuda.warp_sync()
    Tx.warp.copy(a, X); Tx.warp.copy(b, B)
    Tx.warp.zero(c)
    for k in range(0, 64, 16):
        Tx.warp.gemm(c, a[0:32, k : k + 16], b[k : k + 16, 0:16], beta=1.0)
    for i in range(2):
        Tx.warp.gemm(c[i * 16 : i * 16 + 16, 0:16], a[0:16, 0:16], b[0:16, 0:16], beta=1.0)
    Tx.warp.copy(C, c)
"""
    )
    for target in ("sm_80", "sm_90", "sm_100"):
        assert ".local" not in tile_text(kernel, "ptx", target)
        good(run_tile(kernel, target=target))


def test_products_by_warpgroups() -> None:
    kernel = read(
        """
@T.prim_func
def k(A_ptr: T.handle, B_ptr: T.handle, C_ptr: T.handle):
    A = T.match_buffer(A_ptr, (2, 64, 16), "bfloat16"); B = T.match_buffer(B_ptr, (16, 8), "bfloat16")
    C = T.match_buffer(C_ptr, (2, 64, 8), "float32")
    T.device_entry(); T.cta_id([1]); tid = T.thread_id([256]); wg = T.warpgroup_id([2])
    X = T.alloc_shared((2, 64, 16), "bfloat16", layout=ComposeLayout(3, 1, 3, tile=TileLayout(S[(2, 64, 16)])))
    Y = T.alloc_shared((16, 8), "bfloat16")
    a = T.alloc_local((64, 16), "bfloat16",
                      layout=TileLayout(S[(4, 2, 8, 2, 4, 2) : (1 @ wid_in_wg, 2, 4 @ laneid, 4, 1 @ laneid, 1)]))
    b = T.alloc_local((16, 8), "bfloat16",
                      layout=TileLayout(S[(2, 4, 2, 8) : (2, 1 @ laneid, 1, 4 @ laneid)] + R[4 : 1 @ wid_in_wg]))
    c = T.alloc_local((64, 8), "float32",
                      layout=TileLayout(S[(4, 2, 8, 4, 2) : (1 @ wid_in_wg, 2, 4 @ laneid, 1 @ laneid, 1)]))
    Tx.cta.copy(X, A); Tx.cta.copy(Y, B); T.cuda.cta_sync()
    Tx.wg.copy(a, X[wg]); Tx.wg.copy(b, Y)
    Tx.wg.gemm(c, a, b)
    if wg == 1:
        Tx.wg.gemm(c, a, b, beta=1.0)
    Tx.wg.copy(C[wg], c)
"""
    )
    assert [name for name, _ in variants(kernel)][2:5] == ["ldstmatrix", "ldstmatrix", "mma_m16n8k16"]
    a, b = (RNG.integers(-8, 8, shape).astype(ml_dtypes.bfloat16) for shape in ((2, 64, 16), (16, 8)))
    result = run_tile(kernel, {"A_ptr": a, "B_ptr": b})
    good(result)
    exact = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(result.outputs["C_ptr"], exact * np.array([1, 2], np.float32)[:, None, None])
