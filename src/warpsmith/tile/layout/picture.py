"""Pictures of layouts: who owns which element, and which bank each element of shared memory is in.

In: a layout and the shape of its tile (two dims are drawn; more are flattened into rows).  Out: SVG, with no script and
nothing from elsewhere.  The same in words and as text is in `words`.
"""

from __future__ import annotations

import colorsys
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from warpsmith.errors import InvalidLayout
from warpsmith.tile.layout.banks import BANK_BYTES, address_of, bank_of, bank_turns, column_conflicts
from warpsmith.tile.layout.notebook import Drawn
from warpsmith.tile.layout.swizzle import ComposeLayout
from warpsmith.tile.layout.tile_layout import TileLayout
from warpsmith.tile.layout.words import home_of, in_words

__all__ = ["bank_picture", "owner_picture"]

_CELL_HEIGHT = 22
_MOST_ROWS, _MOST_COLUMNS = 64, 64
_ROUND = 32
_WIDE_BITS = 128


@dataclass(frozen=True, slots=True)
class _Cell:
    """One element: what is written in it, the hue that groups it with others, and whether it is outlined."""

    text: str
    group: int
    outlined: bool = False


def owner_picture(layout: TileLayout | ComposeLayout, shape: Sequence[int], *, title: str = "") -> str:
    """Each element with its thread and register ("3 r5": register 5 of thread 3), coloured by thread.

    Copies name each thread that has one ("3,19 r5").  Of a layout without thread axes, each element with its address,
    coloured by 32 addresses.  InvalidLayout for a shape of another size.
    """
    rows, columns = _two_dims(layout, shape)
    shown = layout if isinstance(layout, ComposeLayout) else layout.canonical()
    seen: dict[str, int] = {}
    cells: list[list[_Cell]] = []
    for row in range(min(rows, _MOST_ROWS)):
        line: list[_Cell] = []
        for column in range(min(columns, _MOST_COLUMNS)):
            home = home_of(shown, row * columns + column)
            key = home.threads[0] if home.threads else home.place
            number = int(key) if key.isdecimal() else seen.setdefault(key, len(seen))
            line.append(_Cell(str(home), number if home.threads else number // _ROUND))
        cells.append(line)
    return _grid(cells, title or str(layout), in_words(layout, shape), _cut_note(rows, columns))


def bank_picture(
    layout: TileLayout | ComposeLayout,
    shape: Sequence[int],
    bits: int,
    *,
    title: str = "",
    lanes: Sequence[Sequence[int]] | None = None,
    vector: int = 1,
) -> str:
    """Each element with the bank of shared memory that it is in, coloured by bank; `bits` is an element's width.

    With `lanes` (lane i accesses `vector` elements from coordinates lanes[i] on) the elements where lanes begin are
    outlined, and the sentence says how many turns the access takes; without, it speaks of 32 lanes that read a column,
    an element each, and 16 bytes each where these lie together.
    InvalidLayout for a layout with thread axes, a shape of another size, or an access that no warp can make.
    """
    rows, columns = _two_dims(layout, shape)
    asked = {tuple(coords) for coords in lanes or ()}
    cells: list[list[_Cell]] = []
    for row in range(min(rows, _MOST_ROWS)):
        line: list[_Cell] = []
        for column in range(min(columns, _MOST_COLUMNS)):
            bank = bank_of(layout, row * columns + column, bits)
            line.append(_Cell(str(bank), bank, _indices(row, column, shape) in asked))
        cells.append(line)
    if lanes is None:
        worst = column_conflicts(layout, shape, bits)
        words = (
            f"32 threads that read one column meet {worst} to a bank" if worst > 1 else "a column is free of conflicts"
        ) + _wide_words(layout, rows, columns, bits)
    else:
        turns, ideal = bank_turns(layout, shape, bits, lanes, vector)
        words = f"the outlined access takes {_turns(turns)} of the banks; {ideal} without conflicts"
    return _grid(cells, title or str(layout), f"banks of {BANK_BYTES} bytes; {words}", _cut_note(rows, columns))


def _wide_words(layout: TileLayout | ComposeLayout, rows: int, columns: int, bits: int) -> str:
    """What a column costs when each of 32 threads takes 16 bytes from it on; nothing where these don't lie together."""
    vector = _WIDE_BITS // bits
    if columns % vector:
        return ""
    for first in range(0, rows * columns, vector):
        start = address_of(layout, first)
        if start % vector or any(address_of(layout, first + i) != start + i for i in range(vector)):
            return ""
    lanes = [(row, 0) for row in range(min(rows, _ROUND))]
    turns, ideal = bank_turns(layout, (rows, columns), bits, lanes, vector)
    verdict = "the fewest" if turns == ideal else f"{ideal} without conflicts"
    return f"; with 16 bytes a thread it takes {_turns(turns)}, {verdict}"


def _turns(count: int) -> str:
    return f"{count} turn{'s' if count > 1 else ''}"


def _indices(row: int, column: int, shape: Sequence[int]) -> tuple[int, ...]:
    found = [column]
    for extent in reversed(shape[:-1]):
        found.append(row % extent)
        row //= extent
    return tuple(reversed(found))


# ------------------------------------------------------------------------------------------------------------- drawing
def _two_dims(layout: TileLayout | ComposeLayout, shape: Sequence[int]) -> tuple[int, int]:
    if not shape or math.prod(shape) != layout.size():
        raise InvalidLayout(f"a tile of shape {tuple(shape)} in a layout of {layout.size()} elements")
    return math.prod(shape[:-1]), shape[-1]


def _cut_note(rows: int, columns: int) -> str:
    if rows <= _MOST_ROWS and columns <= _MOST_COLUMNS:
        return ""
    return f"the first {min(rows, _MOST_ROWS)} x {min(columns, _MOST_COLUMNS)} of {rows} x {columns}"


def _grid(cells: Sequence[Sequence[_Cell]], title: str, words: str, note: str) -> str:
    width = max(26, 9 * max(len(cell.text) for line in cells for cell in line) + 6)
    left, top = 44, 66
    columns = len(cells[0])
    parts: list[str] = []
    frames: list[str] = []  # drawn last, so that no neighbour covers a side
    for column in range(columns):
        x = left + column * width + width / 2
        parts.append(f'<text class="axis" x="{x}" y="{top - 6}" text-anchor="middle">{column}</text>')
    for row, line in enumerate(cells):
        y = top + row * _CELL_HEIGHT
        parts.append(f'<text class="axis" x="{left - 8}" y="{y + 15}" text-anchor="end">{row}</text>')
        for column, cell in enumerate(line):
            x = left + column * width
            box = f'x="{x}" y="{y}" width="{width}" height="{_CELL_HEIGHT}"'
            if cell.outlined:
                frames.append(f'<rect class="asked" {box}/>')
            parts.append(
                f'<rect {box} fill="{_colour(cell.group)}"/>'
                f'<text x="{x + width / 2}" y="{y + 15}" text-anchor="middle">{escape(cell.text)}</text>'
            )
    total_width = max(left + columns * width + 16, 9 * max(len(title), len(words)) + 32)
    total_height = top + len(cells) * _CELL_HEIGHT + (34 if note else 16)
    if note:
        parts.append(f'<text class="axis" x="{left}" y="{total_height - 12}">{escape(note)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total_width}" height="{total_height}" '
        f'viewBox="0 0 {total_width} {total_height}">\n<style>text {{ font: 12px ui-monospace, monospace; '
        "fill: #1c1e21; } .title { font-size: 14px; } .axis { fill: #5f6670; font-size: 11px; } "
        "rect { stroke: #ffffff; stroke-width: 1; } .asked { fill: none; stroke: #1c1e21; stroke-width: 2; }</style>\n"
        '<rect width="100%" height="100%" fill="#ffffff"/>\n'
        f'<text class="title" x="16" y="22">{escape(title)}</text>\n'
        f'<text class="axis" x="16" y="40">{escape(words)}</text>\n' + "\n".join(parts + frames) + "\n</svg>\n"
    )


def _colour(group: int) -> str:
    """Light enough for dark text; neighbours are far apart in hue (the golden angle), rounds of 32 in lightness."""
    hue = group * 137.508 % 360 / 360
    light = 0.86 - 0.05 * (group // _ROUND % 3)
    red, green, blue = (round(255 * part) for part in colorsys.hls_to_rgb(hue, light, 0.7))
    return f"#{red:02x}{green:02x}{blue:02x}"


def _in_a_notebook(layout: TileLayout | ComposeLayout) -> str:
    """The picture of a layout by itself: its factors cut into rows and columns, as near to a square as they go."""
    extents = [each.extent for each in (layout.tile if isinstance(layout, ComposeLayout) else layout).shard]
    cuts = [(math.prod(extents[:k]), math.prod(extents[k:])) for k in range(len(extents))]
    return owner_picture(layout, min(cuts, key=lambda cut: abs(math.log(cut[0] / cut[1]))))


Drawn.picture = _in_a_notebook
