"""Pictures of kernels: each cell shows the thread that really takes it, banks are those of the hardware, no scripts."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hero_kernels import body

import warpsmith as ws
from warpsmith.cli import main
from warpsmith.dtypes import by_name
from warpsmith.emitters.kernel.origin import SharedTile
from warpsmith.hlo.shapes import Shape
from warpsmith.indexing import Expr, IndexingMap, Interval, Variable, dim, floordiv, mod, mul
from warpsmith.report.explain.explanation import KernelExplanation
from warpsmith.report.explain.maps import access_of, lane_positions, position_map
from warpsmith.report.explain.picture import banks_panel, elements_panel
from warpsmith.report.svg import Panel

SVG = "{http://www.w3.org/2000/svg}"


def kernel_of(text: str, target: str = "sm_90") -> KernelExplanation:
    (kernel,) = ws.explain(ws.parse_hlo(body(text)), target).kernels
    return kernel


def numbers(panel: Panel) -> dict[tuple[int, int], str]:
    return {(cell.row, cell.column): cell.text for cell in panel.cells}


def panel_of(kernel: KernelExplanation, name: str) -> Panel:
    maps = [each for each in kernel.accesses if each.name == name]
    return elements_panel("", maps, kernel)


def test_the_loops_threads_follow_memory() -> None:
    """Element (row, column) of f32[64,50] is number 50 row + column; 128 threads a block take one each."""
    panel = panel_of(kernel_of("x = f32[64,50] parameter(0)\n ROOT r = f32[64,50] negate(x)"), "r")
    found = numbers(panel)
    assert len(found) == 36 * 40
    assert all(int(text) == (50 * row + column) % 128 for (row, column), text in found.items())


def test_the_transposes_warps_take_rows_on_both_sides() -> None:
    """A tile of 32 x 32: lane l of warp w takes element l of rows w, w + 4, ..., of the input and of the output."""
    kernel = kernel_of("x = f32[64,96] parameter(0)\n ROOT r = f32[96,64] transpose(x), dimensions={1,0}")
    for name in ("x", "r"):
        found = numbers(panel_of(kernel, name))
        assert len(found) == 36 * 40
        assert all(int(text) == row % 4 * 32 + column % 32 for (row, column), text in found.items()), name


def test_vectors_are_one_cell() -> None:
    """bf16, four elements a thread: 40 cells are 160 elements."""
    kernel = kernel_of("x = bf16[4096,4096] parameter(0)\n ROOT r = bf16[4096,4096] negate(x)")
    panel = panel_of(kernel, "r")
    assert panel.columns[4] == "16"
    assert numbers(panel)[0, 33] == "33"


def tile(columns: int, dtype: str = "f32") -> SharedTile:
    """A tile of 32 rows: written along a row, read along a column."""
    lanes = [Variable("th_x", Interval.of_size(128))]
    lane, step = mod(dim(0), 32), floordiv(dim(0), 32)
    write = IndexingMap.make(lanes, [step, lane])
    read = IndexingMap.make(lanes, [lane, step])
    return SharedTile((32, columns), by_name(dtype), write, read)


@pytest.mark.parametrize(
    ("columns", "dtype", "turns"),
    [
        (32, "f32", 32),
        (33, "f32", 1),
        (32, "bf16", 16),
        (34, "bf16", 1),
        (33, "bf16", 1),
        (99, "bf16", 2),
        (32, "f64", 16),
    ],
)
def test_columns_of_a_tile_meet_in_banks_as_hardware_has_them(columns: int, dtype: str, turns: int) -> None:
    """32 banks of a word: a column of a 32 x 32 tile of words is one bank, of a 32 x 33 tile all of them.

    16-bit elements: rows of 16 words use two banks; of 17 words all, of 16 1/2 words too (lanes 2k and 2k + 1 are in
    banks k and k + 16); of 49 1/2 words (3k and 3k + 17) some twice.  64-bit ones go by half warps: 16 lanes in one
    bank.
    """
    panel = banks_panel("", tile(columns, dtype), tile(columns, dtype).read)
    bad = any(cell.bad for cell in panel.cells)
    assert bad == (turns > 1)
    assert ("no conflicts" if turns == 1 else f"{turns} turns instead of 1") in panel.note
    rows = banks_panel("", tile(columns, dtype), tile(columns, dtype).write)
    assert not any(cell.bad for cell in rows.cells)
    assert sum(cell.strong for cell in rows.cells) in (32, 16)  # two 16-bit elements are one cell


@pytest.mark.parametrize(
    ("expr", "words"),
    [
        (mul(dim(0), 4096), "neighbours in a warp lie 4096 elements apart (16384 bytes)"),
        (dim(0), "neighbours in a warp are contiguous"),
        (floordiv(dim(0), 32), "neighbours in a warp take the same element"),
        (mod(mul(dim(0), 7), 32), "neighbours in a warp are scattered"),
        (mod(dim(0), 16), "contiguous in runs of 16 elements"),
    ],
)
def test_lanes_in_words(expr: Expr, words: str) -> None:
    """Wrong: a stride, or a claim of contiguity."""
    ids = [Variable("th_x", Interval.of_size(128)), Variable("bl_x", Interval.of_size(2))]
    text = str(IndexingMap.make(ids, [expr]))
    root = ws.parse_hlo("ENTRY e { ROOT r = f32[1000000] parameter(0) }").entry.root
    access = access_of("thread -> r", text, root, ["r"], 32)
    assert access is not None
    assert words in access.words


def test_lanes_outside_of_a_map_take_no_part() -> None:
    map = IndexingMap.make(
        [Variable("th_x", Interval.of_size(64))], [dim(0)], constraints=[(mod(dim(0), 8), Interval.point(0))]
    )
    places = lane_positions(position_map(map, Shape(by_name("f32"), (64,))), 32)
    assert [i for i, place in enumerate(places) if place is not None] == [0, 8, 16, 24]


def test_the_file_is_static_xml_with_a_panel_an_array_and_a_phase(tmp_path: Path) -> None:
    """Wrong: a script, a link to elsewhere, text that isn't escaped, or a panel that is missing."""
    source = tmp_path / "t.hlo"
    source.write_text(body("x = f32[64,96] parameter(0)\n ROOT r = f32[96,64] transpose(x), dimensions={1,0}"))
    out = tmp_path / "t.svg"
    assert main(["explain", str(source), "--svg", str(out)]) == 0
    text = out.read_text()
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert {each.tag for each in root.iter()} == {f"{SVG}{name}" for name in ("svg", "g", "path", "rect", "text")}
    assert re.findall(r"https?://[^'\"]*", text) == ["http://www.w3.org/2000/svg"]
    titles = [each.text for each in root.iter(f"{SVG}text") if each.get("font-size") == "13"]
    assert titles == [
        "fusion: transpose (padded) reads x",
        "fusion: transpose (padded) writes r",
        "fusion: transpose (padded): first phase, warp 0 writes the tile",
        "fusion: transpose (padded): second phase, warp 0 reads the tile",
    ]
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    for each in root.iter(f"{SVG}rect"):
        assert float(each.get("x", "0")) + float(each.get("width", "0")) <= width
        assert float(each.get("y", "0")) + float(each.get("height", "0")) <= height


def test_cpu_pictures_are_of_work_groups() -> None:
    found = ws.explain(ws.parse_hlo(body("x = f32[512,512] parameter(0)\n ROOT r = f32[512,512] negate(x)")), "cpu")
    assert "its number and its colour the work group" in found.svg()


@pytest.mark.parametrize("place", ["nowhere/t.svg", "."])
def test_a_picture_that_cannot_be_written_is_refused_first(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong: a long explanation on standard output, and then status 2."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.hlo").write_text(body("x = f32[8] parameter(0)\n ROOT r = f32[8] negate(x)"))
    assert main(["explain", "t.hlo", "--svg", place]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"can't write {place}" in printed.err
