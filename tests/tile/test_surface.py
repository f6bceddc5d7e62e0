"""The peer's surface as kernel authors write it: buffers over other memory, parts of buffers, reductions of lanes and
blocks, objects, constants by name; and that what is printed means what was read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tile.helpers import IMPORTS, body, read
from warpsmith.cli import main
from warpsmith.compiler.tile.programs import TileRun, explain_tile, run_tile, tile_text
from warpsmith.errors import DispatchFailed, InvalidTileProgram, TileSyntaxError, WarpsmithError

A = (np.random.default_rng(3).random((64, 64)) * 4 + 0.25).astype(np.float32)
SYNC = "\nT.cuda.cta_sync()\n"
ROWS = 'R = T.alloc_local((32, 8), "float32", layout=TileLayout(S[(32, 8) : (1 @ laneid, 1)]))\n'


def right(kernel: Any, arrays: dict[str, Any] | None = None) -> TileRun:
    result = run_tile(kernel, arrays or {"A_ptr": A})
    assert result.ok, (dict(result.mismatches), [str(f) for f in result.findings])
    return result


def moved(statements: str, region: Any, block: int = 32) -> None:
    """A kernel that copies a part of A to B; it is the same when it is printed and read again."""
    kernel = read(body(statements, block=block))
    for each in (kernel, read(tile_text(kernel, "tirx"))):
        np.testing.assert_array_equal(right(each).outputs["B_ptr"][region], A[region])


# ------------------------------------------------------------------------------------------- buffers over other memory
ARENA = 'a = T.alloc_buffer((4096,), "uint8", scope="shared.dyn")\n'
OVER = [
    's = T.alloc_shared((256,))\nv = T.decl_buffer((32, 8), "float32", data=s.data, scope="shared")',
    ARENA + 'v = T.decl_buffer((32, 8), "float32", a.data, elem_offset=256, scope="shared.dyn")',
    ARENA + 'v = T.decl_buffer((32, 8), "float32", a.data, strides=[9, 1], elem_offset=3)',
    ARENA + 'v = T.decl_buffer((32, 8), "float32", a.data, layout=TileLayout(S[(32, 8) : (1, 33)]))',
    ARENA + "w = ComposeLayout(2, 1, 3, tile=TileLayout(S[(32, 8)]))\n"
    'v = T.decl_buffer((32, 8), "float32", a.data, elem_offset=64, layout=w)',
    'v = T.decl_buffer((32, 8), "float32", scope="shared")',
]


@pytest.mark.parametrize("declared", OVER)
def test_a_buffer_is_declared_over_memory(declared: str) -> None:
    moved(f"{declared}\nTx.warp.copy(v, A[0:32, 0:8]){SYNC}Tx.warp.copy(B[0:32, 0:8], v)", np.s_[:32, :8])


def test_buffers_apart_in_one_arena_are_operands_of_one_primitive() -> None:
    text = 'a = T.alloc_buffer((512,), "float32", scope="shared.dyn")\ns = T.decl_buffer((32, 8), "float32", a.data)\n'
    text += 'u = T.decl_buffer((32, 8), "float32", a.data, elem_offset={})\n'
    text += f"Tx.warp.copy(s, A[0:32, 0:8]){SYNC}Tx.warp.sqrt(u, s)\nTx.warp.copy(B[0:32, 0:8], u)"
    found = right(read(body(text.format(256)))).outputs["B_ptr"]
    np.testing.assert_array_equal(found[:32, :8], np.sqrt(A[:32, :8]))
    with pytest.raises(DispatchFailed, match="may share some elements"):
        tile_text(read(body(text.format(128))), "dispatched")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ('T.decl_buffer((8,), "float32", s.data, elem_offset=250)', "reaches over 258 elements"),
        ('T.decl_buffer((8,), "float32", s.data, scope="local")', "is shared, not local"),
        ('T.decl_buffer((8,), "float32", 3)', "a buffer's .data, not int"),
        ('T.decl_buffer((1,), "float64", T.alloc_shared((3,)).data)', "no whole number of elements of float64"),
        (
            'T.decl_buffer((64,), "float32", s.data, elem_offset=8, layout=ComposeLayout(2, 1, 3))',
            "a multiple of its period, 64 elements, not at 8",
        ),
    ],
)
def test_a_declaration_that_leaves_its_memory_is_refused(statement: str, words: str) -> None:
    with pytest.raises(InvalidTileProgram, match=words):
        read(body(f"s = T.alloc_shared((256,))\nv = {statement}"))


# ---------------------------------------------------------------------------------------------------- parts of buffers
def part(text: str) -> str:
    return f"s = T.alloc_shared({{}})\nTx.warp.copy(s, A.{text}){SYNC}Tx.warp.copy(B.{text}, s)"


PARTS = [
    ("sub[3]", "(64,)", np.s_[3]),
    ("sub[3, 8:16]", "(8,)", np.s_[3, 8:16]),
    ("sub[0:16, 5]", "(16,)", np.s_[:16, 5]),
    ("sub[1::4, 0:8]", "(16, 8)", np.s_[1::4, :8]),
    ("tile(0, (4, -1))[2, :]", "(16, 64)", np.s_[32:48]),
    ("tile(0, (-1, 4))[:, 2]", "(16, 64)", np.s_[2::4]),
    ("tile(1, (4, 2, -1))[:, 1, :]", "(64, 32)", np.s_[:, [c for c in range(64) if c // 8 % 2]]),
]


@pytest.mark.parametrize(("picked", "shape", "region"), PARTS, ids=[p[0] for p in PARTS])
def test_parts_are_views(picked: str, shape: str, region: Any) -> None:
    moved(part(picked).format(shape), region)


@pytest.mark.parametrize("picked", ["tile(0, (4, -1))[i, :]", "tile(0, (-1, 4))[:, i]", "sub[i * 16 : i * 16 + 16]"])
def test_parts_may_be_picked_when_the_kernel_runs(picked: str) -> None:
    copies = f"    Tx.warp.copy(s, A.{picked})\n    T.cuda.cta_sync()\n    Tx.warp.copy(B.{picked}, s)\n"
    moved(f"s = T.alloc_shared((16, 64))\nfor i in range(4):\n{copies}    T.cuda.cta_sync()", np.s_[:])


@pytest.mark.parametrize(
    ("picked", "words"),
    [
        ("sub[70]", "index 70 lies outside dim 0"),
        ("sub[1, 2, 3]", "3 indices for 'A'"),
        ("sub[::3]", "has no part 0::3"),
        ("tile(0, (5, -1))[1, :]", "isn't the product"),
        ("tile(0, (4, -1))[:, :]", "one of which picks"),
        ("tile(2, (4, -1))[0, :]", "has no dim 2"),
        ("tile(0, (4, -1, 2))[:, tid, :]", "isn't one dim"),
    ],
)
def test_parts_that_are_not_there_are_refused(picked: str, words: str) -> None:
    with pytest.raises(InvalidTileProgram, match=words):
        read(body(f"v = A.{picked}", block=8))


# ------------------------------------------------------------------------------------------- reductions without a tile
@pytest.mark.parametrize("width", [2, 4, 8, 16, 32])
@pytest.mark.parametrize("name", ["sum", "max", "min"])
def test_lanes_are_reduced(name: str, width: int) -> None:
    kernel = read(body(f"B[0, tid] = T.cuda.warp_{name}(A[0, tid], width={width})", block=64))
    groups = getattr(A[0].reshape(-1, width), name)(axis=1)
    np.testing.assert_allclose(right(kernel).outputs["B_ptr"][0], np.repeat(groups, width), rtol=1e-6)


@pytest.mark.parametrize("warps", [1, 2, 4, 8])
@pytest.mark.parametrize(("name", "scratch"), [("sum", "s"), ("max", "s.ptr_to([3])"), ("min", "s")])
def test_a_block_is_reduced(name: str, scratch: str, warps: int) -> None:
    """Twice in a row through the same memory."""
    call = f"T.cuda.cta_{name}(B.view(4096)[tid], {warps}, {scratch})"
    text = (
        f"s = T.alloc_shared((16,))\nB.view(4096)[tid] = A.view(4096)[tid]\nx = {call}\ny = {call}\nB[63, 0] = x + y\n"
    )
    kernel = read(body(text + "B.view(4096)[tid] = x", block=32 * warps))
    expected = getattr(A.reshape(-1)[: 32 * warps], name)()
    for each in (kernel, read(tile_text(kernel, "tirx"))):
        found = run_tile(each, {"A_ptr": A}).outputs["B_ptr"].reshape(-1)
        np.testing.assert_allclose(found[: 32 * warps], expected, rtol=1e-5)
        np.testing.assert_allclose(found[63 * 64], 2 * expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ('warp_reduce(1.0, "prod")', "aren't reduced by 'prod'"),
        ("warp_sum(1.0, 5)", "over 5 lanes"),
        ("cta_sum(1.0, 2, A)", "shared memory of one dim"),
        ("cta_sum(1.0, 0, T.alloc_shared((4,)))", "a positive number of warps"),
        ("thread_fence()", "an order of one thread's writes"),
    ],
)
def test_reductions_that_cannot_be_are_refused(call: str, words: str) -> None:
    with pytest.raises(InvalidTileProgram, match=words):
        read(body(f"x = T.cuda.{call}"))


def test_an_element_is_shuffled_as_it_stands() -> None:
    kernel = read(body("B[0, tid] = T.tvm_warp_shuffle_xor(0xFFFFFFFF, A[0, tid], 1, 32, 32)"))
    found = right(kernel).outputs["B_ptr"][0, :32]
    np.testing.assert_array_equal(found, A[0, np.arange(32) ^ 1])


# --------------------------------------------------------------------------------------------------------- all the rest
def test_names_of_several_variants_force_either() -> None:
    text = f'{ROWS}s = T.alloc_shared((32, 8))\nTx.warp.copy(s, A[0:32, 0:8], dispatch="vec_auto"){SYNC}'
    kernel = read(body(text + 'Tx.warp.copy(R, s, dispatch="vec_auto")\nTx.warp.copy(B[0:32, 0:8], R)'))
    assert [choice.variant for choice in explain_tile(kernel)] == ["gmem_smem", "reg", "reg"]
    right(kernel)


OBJECTS = """
@T.meta_class
class Total:
    def __init__(self, start):
        self.held = T.alloc_local([1], "float32")
        self.start = start

    @T.inline
    def add(self, value):
        self.held[0] = self.held[0] + value

@T.prim_func
def k(A: T.Buffer((32, 8), "float32"), B: T.Buffer((32,), "float32")):
    T.device_entry(); T.cta_id([1]); tid = T.thread_id([32])
    total = Total(A[tid, 0])
    total.held[0] = total.start
    for i in range(1, 8):
        total.add(A[tid, i])
    B[tid] = total.held[0]
"""


def test_objects_hold_buffers_and_macros() -> None:
    found = right(read(OBJECTS), {"A": A[:32, :8].copy()}).outputs["B"]
    np.testing.assert_allclose(found, A[:32, :8].sum(1), rtol=1e-6)


NAMED = """
@T.{}
def k(A: T.Buffer((N,)), B: T.Buffer((N,)), *, N: T.constexpr, by: T.constexpr = 2.0):
    T.device_entry(); T.cta_id([T.ceildiv(N, 32)]); i = T.thread_id([32])
    if i < N:
        B[i] = A[i] * by
"""


@pytest.mark.parametrize(("constants", "by"), [({}, 2.0), ({"by": 3.0}, 3.0)])
def test_constants_may_be_given_by_name_alone(constants: dict[str, float], by: float) -> None:
    kernel = read(NAMED.format("jit")).specialize(N=20, **constants)
    np.testing.assert_array_equal(right(kernel, {"A": A[0, :20].copy()}).outputs["B"], A[0, :20] * np.float32(by))
    with pytest.raises(TileSyntaxError, match="parameters are plain"):
        read(NAMED.format("prim_func"))


def test_a_grid_of_symbolic_size_is_refused_with_what_to_do() -> None:
    head = "n = T.int32(); A = T.match_buffer(A_ptr, (n,)); B = T.match_buffer(B_ptr, (n,))"
    text = body("pass", parameters=head).replace("T.cta_id([1])", "T.cta_id([n // 32])")
    with pytest.raises(WarpsmithError, match=r"(?s)known while the kernel is read.*loop over what is symbolic"):
        read(text)


def test_what_is_printed_reads_before_the_barrier_what_was_read_before_it() -> None:
    """An element is written where it is used only if nothing happens up to the line where that is."""
    text = "s = T.alloc_shared((32,))\ns[tid] = A[0, tid]\nT.cuda.cta_sync()\nx = s[31 - tid] + s[5]\n"
    text += "T.cuda.cta_sync()\ns[tid] = 1.0\nB[0, tid] = x"
    kernel = read(body(text))
    lines = [line.strip() for line in tile_text(kernel, "tirx").split("\n")]
    second = len(lines) - 1 - lines[::-1].index("T.cuda.cta_sync()")
    assert not any("s[5]" in line for line in lines[second:])
    for each in (kernel, read(tile_text(kernel, "tirx"))):
        found = right(each).outputs["B_ptr"][0, :32]
        np.testing.assert_array_equal(found, A[0, 31::-1] + A[0, 5])


@pytest.mark.parametrize("shape", ["(1,)", "(1, 1)", "(1, 1, 1)"])
@pytest.mark.parametrize("memory", ["shared", "local"])
def test_a_whole_tile_is_reduced_to_one_element_of_any_rank(shape: str, memory: str) -> None:
    if memory == "shared":
        text = f"s = T.alloc_shared((32, 8)); m = T.alloc_shared({shape})\nTx.warp.copy(s, A[0:32, 0:8]){SYNC}"
        text += f"Tx.warp.sum(m, s, axes=(0, 1)){SYNC}Tx.warp.copy(B[0, 0:1], m)"
    else:
        text = f"s = T.alloc_local((2, 4)); m = T.alloc_local({shape})\nTx.copy(s.view(8), A[tid, 0:8])\n"
        text += "Tx.sum(m, s, axes=(0, 1))\nTx.copy(B[tid, 0:1], m)"
    found = right(read(body(text))).outputs["B_ptr"][:32, 0]
    expected = A[:32, :8].sum(1) if memory == "local" else A[:32, :8].sum()
    np.testing.assert_allclose(found if memory == "local" else found[0], expected, rtol=1e-5)


def test_a_kept_extent_of_1_may_be_left_out_as_well() -> None:
    text = f"s = T.alloc_shared((1, 32, 8)); m = T.alloc_shared((32,))\nTx.warp.copy(s, A[0:32, 0:8]){SYNC}"
    found = right(read(body(f"{text}Tx.warp.max(m, s, axes=-1){SYNC}Tx.warp.copy(B[0:32, 0], m)"))).outputs["B_ptr"]
    np.testing.assert_array_equal(found[:32, 0], A[:32, :8].max(1))


def test_every_axis_is_imported_beside_the_language() -> None:
    """If this failed, an axis would be out of reach, or a letter of the author's own would be taken by one."""
    import warpsmith.tile
    from warpsmith.tile.layout import AXES

    letters = {"m", "P", "F"}
    assert {n: getattr(warpsmith.tile, n, None) for n in AXES if n not in letters} == {
        n: axis for n, axis in AXES.items() if n not in letters
    }
    assert not letters & vars(warpsmith.tile).keys()
    assert [warpsmith.tile.axis(name) for name in letters] == [AXES[name] for name in letters]


def test_help_says_what_may_be_called_and_with_what() -> None:
    """If this failed, `dir(T)` would list what the module imports, or `help` would name a primitive and no more."""
    from warpsmith.tile import T, Tx

    assert {"match_buffer", "jit", "prim_func", "Buffer", "max"} <= set(dir(T))
    assert not {"Any", "views", "current", "annotations"} & set(dir(T))
    assert "copy(dst, src): dst = src\n" in str(Tx.cta.copy.__doc__)
    assert "It computes in float types." in str(Tx.sqrt.__doc__)
    assert "T.cta_id" not in str(T.lane_id.__doc__) != str(T.cta_id.__doc__)


def test_extents_that_are_named_together_have_their_own_names() -> None:
    """If this failed, `h` and `w` would both be called `n`, and arguments by name would mean either."""
    text = """
@T.prim_func
def k(A_ptr: T.handle):
    h, w = T.int32(), T.int32()
    A = T.match_buffer(A_ptr, (h, w), "float32")
    T.device_entry()
    T.cta_id([1])
    T.thread_id([32])
"""
    assert [p.name for p in read(text).parameters] == ["A_ptr", "h", "w"]


def test_the_command_keeps_a_finding_apart_from_a_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A race that did no harm this time: exit status 1, and the result still matches."""
    path = tmp_path / "racing.py"
    path.write_text(IMPORTS + body("s = T.alloc_shared((32,))\ns[tid] = A[0, tid]\nB[0, tid] = s[31 - tid]"))
    assert main(["tile", str(path), "--run", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["match"] is True
    assert any(each.startswith("race") for each in found["findings"])
