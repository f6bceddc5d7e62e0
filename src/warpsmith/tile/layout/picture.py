"""Pictures of layouts: who owns which element, and which bank each element of shared memory is in.

In: a layout and the shape of its tile (two dims are drawn; more are flattened into rows).  Out: SVG, with no script and
nothing from elsewhere, and a sentence that says the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from warpsmith.errors import InvalidLayout
from warpsmith.tile.layout.swizzle import ComposeLayout
from warpsmith.tile.layout.tile_layout import TileLayout

__all__ = ["bank_picture", "in_words", "owner_picture"]

_CELL_HEIGHT = 22
_MOST_ROWS, _MOST_COLUMNS = 64, 64
BANKS = 32
BANK_BYTES = 4


@dataclass(frozen=True, slots=True)
class _Cell:
    """One element: what is written in it, and the hue that groups it with others."""

    text: str
    group: int


def owner_picture(layout: TileLayout | ComposeLayout, shape: Sequence[int], *, title: str = "") -> str:
    """Each element with its thread and register ("3 r5": thread 3, register 5), coloured by thread.

    Of a layout without thread axes, each element with its address, coloured by row of 32 addresses.  InvalidLayout for
    a shape of another size.
    """
    rows, columns = _two_dims(layout, shape)
    plain = layout.tile if isinstance(layout, ComposeLayout) else layout
    fused = plain.canonical()
    cells: list[list[_Cell]] = []
    for row in range(min(rows, _MOST_ROWS)):
        line: list[_Cell] = []
        for column in range(min(columns, _MOST_COLUMNS)):
            thread, place = _owner(layout, fused, row * columns + column)
            line.append(_Cell(str(place), place // 32) if thread is None else _Cell(f"{thread} r{place}", thread))
        cells.append(line)
    caption = title or str(layout)
    return _grid(cells, caption, in_words(layout, shape), _cut_note(rows, columns))


def bank_picture(layout: TileLayout | ComposeLayout, shape: Sequence[int], bits: int, *, title: str = "") -> str:
    """Each element with the bank of shared memory that it is in, coloured by bank; `bits` is an element's width.

    Elements of one row of the picture are read by neighbouring threads; a column shows what threads in different rows
    meet.  InvalidLayout for a layout with thread axes, or a shape of another size.
    """
    rows, columns = _two_dims(layout, shape)
    cells: list[list[_Cell]] = []
    for row in range(min(rows, _MOST_ROWS)):
        banks = [bank_of(layout, row * columns + column, bits) for column in range(min(columns, _MOST_COLUMNS))]
        cells.append([_Cell(str(bank), bank) for bank in banks])
    worst = column_conflicts(layout, (rows, columns), bits)
    words = f"32 threads that read one column meet {worst} to a bank" if worst > 1 else "a column is free of conflicts"
    return _grid(cells, title or str(layout), f"banks of {BANK_BYTES} bytes; {words}", _cut_note(rows, columns))


def bank_of(layout: TileLayout | ComposeLayout, element: int, bits: int) -> int:
    """The bank that an element of shared memory begins in."""
    _, address = _owner(layout, layout.tile if isinstance(layout, ComposeLayout) else layout, element)
    return address * bits // 8 // BANK_BYTES % BANKS


def column_conflicts(layout: TileLayout | ComposeLayout, shape: tuple[int, int], bits: int) -> int:
    """How many different words of one bank 32 threads ask for at most, each at one row of the same column."""
    rows, columns = shape
    worst = 1
    for column in range(columns):
        for first in range(0, rows, BANKS):
            words: dict[int, set[int]] = {}
            for row in range(first, min(first + BANKS, rows)):
                plain = layout.tile if isinstance(layout, ComposeLayout) else layout
                _, address = _owner(layout, plain, row * columns + column)
                word = address * bits // 8 // BANK_BYTES
                words.setdefault(word % BANKS, set()).add(word)
            worst = max(worst, *(len(each) for each in words.values()))
    return worst


def in_words(layout: TileLayout | ComposeLayout, shape: Sequence[int]) -> str:
    """A sentence: how many threads, how many elements each holds, and where their neighbours are."""
    plain = layout.tile if isinstance(layout, ComposeLayout) else layout
    fused = plain.canonical()
    size = " x ".join(map(str, shape))
    swizzled = ", swizzled" if isinstance(layout, ComposeLayout) and layout.swizzle_len else ""
    threads = [each for each in fused.shard if each.axis.is_thread]
    if not threads:
        dense = "dense" if fused.is_trivial() else f"within {fused.span()}"
        return f"{size} elements of memory, {dense}{swizzled}"
    count = math.prod(each.extent for each in threads)
    names = " and ".join(dict.fromkeys(each.axis.name for each in threads))
    each_holds = fused.size() // count
    copies = math.prod(each.extent for each in fused.replica)
    more = f", {copies} copies of each" if copies > 1 else ""
    return f"{size} elements over {count} threads ({names}), {each_holds} to a thread{more}"


# ------------------------------------------------------------------------------------------------------------- drawing
def _two_dims(layout: TileLayout | ComposeLayout, shape: Sequence[int]) -> tuple[int, int]:
    if math.prod(shape) != layout.size():
        raise InvalidLayout(f"a tile of shape {tuple(shape)} in a layout of {layout.size()} elements")
    return (math.prod(shape[:-1]), shape[-1]) if shape else (1, 1)


def _owner(layout: TileLayout | ComposeLayout, plain: TileLayout, element: int) -> tuple[int | None, int]:
    """(thread, register) of an element; (None, address) where no axis is a thread's."""
    thread: int | None = None
    address = 0
    for axis, place in plain.apply(element).items():
        assert isinstance(place, int), "a number's place is a number"
        if axis.is_thread:
            thread = (thread or 0) + place
        else:
            address += place
    return thread, layout.address(address) if isinstance(layout, ComposeLayout) else address


def _cut_note(rows: int, columns: int) -> str:
    if rows <= _MOST_ROWS and columns <= _MOST_COLUMNS:
        return ""
    return f"the first {min(rows, _MOST_ROWS)} x {min(columns, _MOST_COLUMNS)} of {rows} x {columns}"


def _grid(cells: Sequence[Sequence[_Cell]], title: str, words: str, note: str) -> str:
    width = max(26, 9 * max(len(cell.text) for line in cells for cell in line) + 6)
    left, top = 44, 66
    columns = len(cells[0])
    parts: list[str] = []
    for column in range(columns):
        x = left + column * width + width / 2
        parts.append(f'<text class="axis" x="{x}" y="{top - 6}" text-anchor="middle">{column}</text>')
    for row, line in enumerate(cells):
        y = top + row * _CELL_HEIGHT
        parts.append(f'<text class="axis" x="{left - 8}" y="{y + 15}" text-anchor="end">{row}</text>')
        for column, cell in enumerate(line):
            x = left + column * width
            parts.append(
                f'<rect x="{x}" y="{y}" width="{width}" height="{_CELL_HEIGHT}" fill="{_colour(cell.group)}"/>'
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
        'rect { stroke: #ffffff; stroke-width: 1; }</style>\n<rect width="100%" height="100%" fill="#ffffff"/>\n'
        f'<text class="title" x="16" y="22">{escape(title)}</text>\n'
        f'<text class="axis" x="16" y="40">{escape(words)}</text>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _colour(group: int) -> str:
    """Light enough for dark text; neighbours are far apart in hue (the golden angle), rounds of 32 in lightness."""
    hue = group * 137.508 % 360
    light = 86 - 5 * (group // 32 % 3)
    return f"hsl({hue:.0f}, 70%, {light}%)"
