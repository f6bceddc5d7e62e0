"""Pictures of kernels: which thread touches which element, and which bank an element of a shared tile lies in.

    elements: a corner of the array, rows x columns as they lie in memory; each cell is what one thread takes at once,
              its colour the warp (of its block), its number the thread
    banks:    the tile, each cell an element in its bank's colour; framed what the first warp touches in one access,
              with its lanes' numbers, red where two lanes meet in a bank at different words

In: explained kernels.  Out: SVG text.  What is drawn is counted from the maps that the emitter states.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from warpsmith.emitters.kernel.origin import SharedTile
from warpsmith.hlo.shapes import Shape
from warpsmith.indexing import Expr, IndexingMap, IntArray, dim, parse_map, substitute
from warpsmith.indexing.points import points
from warpsmith.report.explain.facts import KernelExplanation
from warpsmith.report.explain.maps import Access, lane_positions, position_map
from warpsmith.report.svg import Cell, Panel, hue, page

__all__ = ["banks_panel", "elements_panel", "kernels_svg"]

ROWS, COLUMNS = 36, 40
TILE_COLUMNS = 44
FEW_ROWS = 12  # of rows that are all alike
_MOST_POINTS = 1 << 22
_PIECE = 1 << 18
_BLOCK_IDS = ("bl_x", "workgroup_id")
_MOST_NAMED = 8
_LIGHT, _DARK = 82, 71  # per cent: blocks take turns
_BANKS, _WORD = 32, 4
_NOBODY = "#eeeeee"


def kernels_svg(title: str, kernels: Sequence[KernelExplanation]) -> str:
    """A page with the panels of every kernel."""
    return page(title, [panel for kernel in kernels for panel in _panels(kernel)])


def _panels(kernel: KernelExplanation) -> Iterator[Panel]:
    variant = f" ({kernel.variant})" if kernel.variant else ""
    name = f"{kernel.name}: {kernel.emitter}{variant}"
    done: set[tuple[str, str]] = set()
    for access in kernel.accesses:
        if (access.name, access.verb) in done:
            continue
        done.add((access.name, access.verb))
        same = [each for each in kernel.accesses if (each.name, each.verb) == (access.name, access.verb)]
        yield elements_panel(f"{name} {access.verb} {access.name}", same, kernel)
    tile = kernel.kernel.origin.tile
    if tile is not None:
        yield banks_panel(f"{name}: first phase, warp 0 writes the tile", tile, tile.write)
        yield banks_panel(f"{name}: second phase, warp 0 reads the tile", tile, tile.read)


# ------------------------------------------------------------------------------------------------------------ elements
@dataclass(frozen=True, slots=True)
class _Corner:
    """What of an array is drawn: `rows` x `columns` cells of `unit` neighbouring elements.

    Rows lie `step` elements apart and are those of the dimension `along` (in memory order; None: of an array without a
    second dimension, lines of as many cells as fit).  Columns run along the last `minor_dims` dimensions.
    """

    rows: int
    columns: int
    unit: int
    step: int
    along: int | None
    minor_dims: int = 1


def _corner(maps: Sequence[IndexingMap], shape: Shape, vector: int) -> _Corner:
    """The corner whose rows run along the dimension that block 0 covers most of, beside the minor one."""
    physical = shape.physical_dims() or (1,)
    minor = physical[-1]
    unit = vector if vector > 1 and minor % vector == 0 else 1
    minor_dims = 1
    while minor // unit == 1 and minor_dims < len(physical):  # a thread takes whole rows: they are drawn side by side
        minor_dims += 1
        minor *= physical[-minor_dims]
    outer = [d for d in range(len(physical) - minor_dims) if physical[d] > 1]
    if not outer:
        lines = -(-minor // unit // COLUMNS)
        return _Corner(min(ROWS, lines), min(COLUMNS, minor // unit), unit, COLUMNS * unit, None, minor_dims)
    order = list(reversed(shape.minor_to_major))
    covered = dict.fromkeys(outer, 1)
    for map in maps:
        dims, symbols = next(_points(map))
        first = np.ones(dims[0].shape if dims else (0,), bool)
        for values, each in zip(dims, map.dim_vars, strict=False):
            first &= (values == 0) | (each.name not in _BLOCK_IDS)
        results = map.evaluate([v[first] for v in dims], [v[first] for v in symbols]) if dims else ()
        for d in outer:
            if results:
                covered[d] = max(covered[d], np.unique(np.asarray(results[order[d]])).size)
    along = max(outer, key=lambda d: (covered[d], d))
    step = math.prod(physical[along + 1 :])
    rows = ROWS if covered[along] > 1 else FEW_ROWS
    return _Corner(min(rows, physical[along]), min(COLUMNS, minor // unit), unit, step, along, minor_dims)


def elements_panel(title: str, accesses: Sequence[Access], kernel: KernelExplanation) -> Panel:
    """A corner of the array that the accesses are to, the dimensions that aren't drawn at 0."""
    maps = [map for each in accesses if (map := parse_map(each.map)) is not None]
    shape = next(e.shape.leaves()[0] for e in kernel.kernel.origin.analysis.body if e.name == accesses[0].name)
    corner = _corner(maps, shape, accesses[0].vector)
    owners: dict[tuple[int, int], tuple[int, int]] = {}
    for map in maps:
        _find_owners(position_map(map, shape), corner, shape.elements, owners)
    warp = kernel.kernel.origin.analysis.device.warp_size
    block_order = {block: i for i, block in enumerate(sorted({block for block, _ in owners.values()}))}
    warps = -(-math.prod(kernel.block) // warp)

    def color(owner: tuple[int, int]) -> str:
        block, thread = owner
        if warp == 1:
            return hue(block_order[block] * 5 % 12, 12)
        return hue(thread // warp, warps, _LIGHT if block_order[block] % 2 == 0 else _DARK)

    cells = [
        Cell(row, column, color(owner), str(owner[1] if warp > 1 else owner[0]))
        for (row, column), owner in owners.items()
    ]
    missing = [
        Cell(row, column, _NOBODY)
        for row in range(corner.rows)
        for column in range(corner.columns)
        if (row, column) not in owners and row * corner.step + column * corner.unit < shape.elements
    ]
    legend: dict[str, str] = {}
    if warp > 1:
        for number in sorted({thread // warp for _, thread in owners.values()})[:_MOST_NAMED]:
            legend[hue(number, warps, _LIGHT)] = f"warp {number} of a block"
        if len(block_order) > 1:
            legend[hue(0, warps, _DARK)] = "warp 0 of the next block, and so on in turn"
    if missing:
        legend[_NOBODY] = "another block, or nobody"
    each = f"{corner.unit} elements" if corner.unit > 1 else "1 element"
    threads = "that one thread takes at once, its number the thread in its block, its colour the warp"
    who = threads if warp > 1 else "of the array, its number and its colour the work group"
    return Panel(
        title,
        f"{shape}: {_where(corner, shape)}\na cell is {each} {who}",
        [_row_label(row, corner) for row in range(corner.rows)],
        [str(column * corner.unit) if column % 4 == 0 else "" for column in range(corner.columns)],
        [*cells, *missing],
        legend,
    )


def _where(corner: _Corner, shape: Shape) -> str:
    """What the rows and columns of a picture are."""
    order = list(reversed(shape.minor_to_major))
    if corner.along is None:
        return f"the first {min(shape.elements, corner.rows * corner.columns * corner.unit)} elements"
    minor = " and ".join(str(d) for d in order[-corner.minor_dims :])
    rows = f"rows along dimension {order[corner.along]}, columns along {minor}"
    others = [str(d) for i, d in enumerate(order[: -corner.minor_dims]) if i != corner.along and shape.dims[d] > 1]
    return rows + (f", dimension {' and '.join(others)} at 0" if others else "")


def _row_label(row: int, corner: _Corner) -> str:
    return str(row) if corner.along is not None else str(row * corner.step)


def _find_owners(
    place: IndexingMap, corner: _Corner, elements: int, owners: dict[tuple[int, int], tuple[int, int]]
) -> None:
    """For each cell of the corner the (block, thread) that takes its first element; the first one found stays."""
    names = [each.name for each in place.dim_vars]
    block_at = next((i for i, name in enumerate(names) if name in _BLOCK_IDS), None)
    thread_at = names.index("th_x") if "th_x" in names else None
    for dims, symbols in _points(place):
        where = np.broadcast_to(np.asarray(place.evaluate(dims, symbols)[0]), dims[0].shape)
        row, rest = where // corner.step, where % corner.step
        inside = (where < elements) & (row < corner.rows) & (rest < corner.columns * corner.unit)
        for i in np.flatnonzero(inside & (rest % corner.unit == 0)).tolist():
            key = int(row[i]), int(rest[i]) // corner.unit
            block = int(dims[block_at][i]) if block_at is not None else 0
            owners.setdefault(key, (block, int(dims[thread_at][i]) if thread_at is not None else 0))
        if len(owners) >= corner.rows * corner.columns:
            return


def _points(map: IndexingMap) -> Iterator[tuple[list[IntArray], list[IntArray]]]:
    """The points of a map, block by block, in pieces; no more than are worth drawing."""
    order = sorted(range(map.num_dims), key=lambda i: map.dim_vars[i].name not in _BLOCK_IDS)
    turned = _reordered(map, order)
    for start in range(0, min(_MOST_POINTS, _volume(map)), _PIECE):
        dims, symbols = points(turned, start, start + _PIECE)
        yield [dims[order.index(i)] for i in range(len(order))], symbols


def _volume(map: IndexingMap) -> int:
    return math.prod(each.size for each in (*map.dim_vars, *map.symbol_vars))


def _reordered(map: IndexingMap, order: Sequence[int]) -> IndexingMap:
    """The same domain with the dimensions in another order, without results."""
    moved: dict[Expr, Expr] = {dim(old): dim(new) for new, old in enumerate(order)}
    memo = dict(moved)
    return IndexingMap.make(
        [map.dim_vars[old] for old in order],
        [],
        range_vars=map.range_vars,
        rt_vars=map.rt_vars,
        constraints=[(substitute(expr, moved, memo), interval) for expr, interval in map.constraints.items()],
    )


# --------------------------------------------------------------------------------------------------------------- banks
def banks_panel(title: str, tile: SharedTile, map: IndexingMap) -> Panel:
    """The tile, and what warp 0 touches in its first access."""
    flat = Shape(tile.dtype, tile.dims)
    bits = tile.dtype.bits
    sizes = [each for each in tile.dims if each > 1] or [1]
    columns = math.prod(sizes[1:]) if len(sizes) > 1 else sizes[0]
    rows = math.prod(tile.dims) // columns
    pack = max(1, 8 * _WORD // bits)  # elements of a word
    unit = pack if columns % pack == 0 else 1
    words = max(1, bits // (8 * _WORD))  # words of an element
    lanes = lane_positions(position_map(map, flat), 32)
    hit: dict[int, list[int]] = {}
    banks: dict[int, set[int]] = {}
    for lane, place in enumerate(lanes):
        if place is not None:
            word = place * bits // (8 * _WORD)
            hit.setdefault(place // unit, []).append(lane)
            # Wide accesses go by half or quarter warps: banks are counted within those.
            banks.setdefault(word % _BANKS + _BANKS * (lane // (32 // words)), set()).add(word)
    crowded = {word for found in banks.values() if len(found) > 1 for word in found}
    last = max((place for place in lanes if place is not None), default=0) // columns
    shown_rows, shown_columns = min(rows, max(ROWS, last + 1)), min(columns // unit, TILE_COLUMNS)
    cells: list[Cell] = []
    for row in range(shown_rows):
        for column in range(shown_columns):
            place = row * columns + column * unit
            word = place * bits // (8 * _WORD)
            taken = hit.get(place // unit, [])
            text = str(taken[0]) if taken else ""
            cells.append(
                Cell(row, column, hue(word % _BANKS, _BANKS), text, bool(taken), word in crowded and bool(taken))
            )
    turns = max((len(found) for found in banks.values()), default=1)
    verdict = "no conflicts" if turns == 1 else f"{turns} lanes meet in one bank: {turns} turns instead of 1"
    legend = {hue(bank, _BANKS): f"bank {bank}" for bank in range(0, _BANKS, 4)}
    legend["frame #111111"] = "a lane of warp 0"
    if crowded:
        legend["frame #c00000"] = "a conflict"
    each = f"{unit} elements, one word" if unit > 1 else "1 element"
    active = sum(len(taken) for taken in hit.values())
    return Panel(
        title,
        f"{tile.dtype.name}{list(tile.dims)}, a cell is {each}, its colour the bank; framed: one access of warp 0, by "
        "lane\n"
        f"{active} {'lane' if active == 1 else 'lanes'}, {verdict}",
        [str(row) if row % 2 == 0 else "" for row in range(shown_rows)],
        [str(column * unit) if column % 4 == 0 else "" for column in range(shown_columns)],
        cells,
        legend,
    )
