"""SVG: a page of panels, each a grid of small cells with a legend.  Static: no scripts, no fonts to fetch.

In: panels of cells.  Out: the text of an SVG file, for a light background.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

__all__ = ["Cell", "Panel", "hue", "page"]

CELL_WIDTH, CELL_HEIGHT = 26, 18
_MARGIN, _GAP = 24, 34
_ROW_LABEL, _CHARACTER = 58, 6.4
_LEGEND_ROW, _LEGEND_WIDTH = 20, 640
_FONT = "font-family='DejaVu Sans Mono, Menlo, Consolas, monospace'"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: where, its colour, the text in it; `strong` ones have a dark frame, `bad` ones a red one."""

    row: int
    column: int
    color: str
    text: str = ""
    strong: bool = False
    bad: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """A grid.  `rows` and `columns` are the labels of each ("" for none); `legend` colours with what they mean."""

    title: str
    note: str
    rows: Sequence[str]
    columns: Sequence[str]
    cells: Sequence[Cell]
    legend: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def width(self) -> float:
        """In pixels: of the table, the title and notes, or the legend, whichever is widest."""
        words = max(len(self.title) * _CHARACTER * 1.15, max(map(len, self._notes), default=0) * _CHARACTER)
        legend = self._legend_columns * self._legend_width if self.legend else 0
        return max(_ROW_LABEL + len(self.columns) * CELL_WIDTH, words, legend)

    @property
    def height(self) -> float:
        """In pixels, title, notes and legend included."""
        return 22 + 15 * len(self._notes) + 18 + len(self.rows) * CELL_HEIGHT + 10 + self._legend_rows * _LEGEND_ROW

    @property
    def _notes(self) -> list[str]:
        return self.note.splitlines()

    @property
    def _legend_rows(self) -> int:
        return -(-len(self.legend) // self._legend_columns) if self.legend else 0

    @property
    def _legend_columns(self) -> int:
        room = max(_LEGEND_WIDTH, _ROW_LABEL + len(self.columns) * CELL_WIDTH)
        return max(1, int(room // self._legend_width))

    @property
    def _legend_width(self) -> float:
        return max((len(text) for text in self.legend.values()), default=0) * _CHARACTER + 34

    def draw(self, x: float, y: float) -> Iterator[str]:
        """The panel's elements, its upper left corner at (x, y)."""
        yield _text(x, y + 13, self.title, size=13, weight="bold")
        for i, line in enumerate(self._notes):
            yield _text(x, y + 31 + 15 * i, line, size=10.5, fill="#555")
        left, top = x + _ROW_LABEL, y + 22 + 15 * len(self._notes) + 18
        for i, label in enumerate(self.columns):
            if label:
                yield _text(left + (i + 0.5) * CELL_WIDTH, top - 5, label, size=9, fill="#555", anchor="middle")
        for i, label in enumerate(self.rows):
            if label:
                yield _text(left - 6, top + (i + 0.5) * CELL_HEIGHT + 3.5, label, size=9, fill="#555", anchor="end")
        yield from _cells(self.cells, left, top)
        yield from self._draw_legend(x, top + len(self.rows) * CELL_HEIGHT + 10)

    def _draw_legend(self, x: float, y: float) -> Iterator[str]:
        for i, (color, text) in enumerate(self.legend.items()):
            row, column = divmod(i, self._legend_columns)
            at, top = x + column * self._legend_width, y + row * _LEGEND_ROW
            if color.startswith("frame "):
                yield _rect(at + 1, top + 2, 14, 12, "#ffffff", color.removeprefix("frame "), 2)
            else:
                yield _rect(at, top + 1, 16, 14, color, "#999", 0.5)
            yield _text(at + 22, top + 12, text, size=10)


def _cells(cells: Sequence[Cell], left: float, top: float) -> Iterator[str]:
    """All cells: those without a frame as one shape a colour, then the framed ones, then the texts."""
    shapes: dict[str, list[str]] = {}
    for cell in cells:
        x, y = left + cell.column * CELL_WIDTH, top + cell.row * CELL_HEIGHT
        shapes.setdefault(cell.color, []).append(f"M{x:g} {y:g}h{CELL_WIDTH}v{CELL_HEIGHT}h-{CELL_WIDTH}z")
    yield "<g stroke='#ffffff'>"
    yield from (f"<path fill='{color}' d='{''.join(parts)}'/>" for color, parts in shapes.items())
    yield "</g>"
    for cell in sorted((each for each in cells if each.strong or each.bad), key=lambda each: each.bad):
        x, y = left + cell.column * CELL_WIDTH, top + cell.row * CELL_HEIGHT
        yield _rect(x + 1, y + 1, CELL_WIDTH - 2, CELL_HEIGHT - 2, cell.color, "#c00000" if cell.bad else "#111111", 2)
    for weight, framed in (("normal", False), ("bold", True)):
        for size, long in ((9, False), (7.5, True)):
            chosen = [c for c in cells if c.text and (c.strong or c.bad) == framed and (len(c.text) > 3) == long]
            if chosen:
                yield f"<g font-size='{size}' font-weight='{weight}' text-anchor='middle' fill='#111'>"
                yield from (_number(each, left, top) for each in chosen)
                yield "</g>"


def _number(cell: Cell, left: float, top: float) -> str:
    x, y = left + (cell.column + 0.5) * CELL_WIDTH, top + (cell.row + 0.5) * CELL_HEIGHT + 3.3
    return f"<text x='{x:g}' y='{y:g}'>{escape(cell.text)}</text>"


def _rect(x: float, y: float, width: float, height: float, fill: str, stroke: str, line: float) -> str:
    return (
        f"<rect x='{x:g}' y='{y:g}' width='{width:g}' height='{height:g}' fill='{fill}' stroke='{stroke}' "
        f"stroke-width='{line:g}'/>"
    )


def _text(
    x: float, y: float, text: str, *, size: float, fill: str = "#111", anchor: str = "start", weight: str = "normal"
) -> str:
    return (
        f"<text x='{x:g}' y='{y:g}' font-size='{size:g}' fill='{fill}' text-anchor='{anchor}' font-weight='{weight}'>"
        f"{escape(text)}</text>"
    )


def hue(number: int, count: int, lightness: int = 78) -> str:
    """A colour of a wheel of `count`: neighbours differ clearly where there are few, smoothly where there are many."""
    angle = 360 * number / max(1, count)
    return f"hsl({angle:.0f},65%,{lightness}%)"


def page(title: str, panels: Sequence[Panel]) -> str:
    """The SVG file: panels below one another."""
    width = max([len(title) * 10.0, *(each.width for each in panels)]) + 2 * _MARGIN
    parts: list[str] = []
    y = float(_MARGIN + 30)
    for panel in panels:
        parts += panel.draw(_MARGIN, y)
        y += panel.height + _GAP
    height = y - _GAP + _MARGIN
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width:.0f}' height='{height:.0f}' "
        f"viewBox='0 0 {width:.0f} {height:.0f}' {_FONT}>"
    )
    back = f"<rect width='{width:.0f}' height='{height:.0f}' fill='#ffffff'/>"
    return "\n".join([head, back, _text(_MARGIN, _MARGIN + 12, title, size=16, weight="bold"), *parts, "</svg>"])
