"""Layouts in words and as text: who owns what, and what is odd about it.

In: a layout and the shape of its tile.  Out: sentences (`in_words` one, `explain` all), and a table for a terminal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from warpsmith.errors import InvalidLayout
from warpsmith.indexing.expr_printer import print_expr
from warpsmith.tile.layout.axes import AXES, Axis
from warpsmith.tile.layout.maps import copies, is_injective, places, to_indexing_map
from warpsmith.tile.layout.swizzle import ComposeLayout
from warpsmith.tile.layout.tile_layout import TileLayout

__all__ = ["Home", "explain", "home_of", "in_words", "owner_table"]

AnyLayout = TileLayout | ComposeLayout

_NOUNS = {"laneid": "lane", "warpid": "warp", "wgid": "warpgroup", "tx": "thread"}
_INDICES = "ijklpq"
_MOST_CELLS = 64


@dataclass(frozen=True, slots=True)
class Home:
    """Where one element is, as pictures write it: its threads (none in memory), and register or address."""

    threads: tuple[str, ...]
    place: str

    def __str__(self) -> str:
        if not self.threads:
            return self.place
        shown = ",".join(self.threads) if len(self.threads) < 3 else f"{self.threads[0]}..{self.threads[-1]}"
        return f"{shown} {self.place}"


def home_of(layout: AnyLayout, element: int) -> Home:
    """The home of element number `element` in row-major order; every thread that has a copy is named.

    Thread axes count as they are in `layout`: give a canonical one for threads of the whole scope.
    """
    plain = layout.tile if isinstance(layout, ComposeLayout) else layout
    found = {axis: value for axis, value in plain.apply(element).items() if isinstance(value, int)}
    threads: dict[str, None] = {}
    for shift in copies(plain):
        there = {axis: found.get(axis, 0) + shift.get(axis, 0) for axis in plain.axes() if axis.is_thread}
        threads |= {" ".join(str(v) if len(there) == 1 else f"{a.name}{v}" for a, v in there.items()): None}
    memory = {axis: value for axis, value in found.items() if not axis.is_thread}
    if isinstance(layout, ComposeLayout):
        memory = {axis: layout.address(value) for axis, value in memory.items()}
    letter = "r" if any(threads) else ""
    if set(memory) <= {AXES["m"]}:
        place = f"{letter}{memory.get(AXES['m'], 0)}"
    else:
        place = " ".join(f"{axis.name}{value}" for axis, value in memory.items())
    return Home(tuple(each for each in threads if each), place)


def in_words(layout: AnyLayout, shape: Sequence[int]) -> str:
    """One sentence: how many threads, how many elements each holds, how many copies there are."""
    fused = _fused(layout, shape)
    size = " x ".join(map(str, shape))
    threads = _holders(fused)
    if not threads:
        swizzled = ", swizzled" if isinstance(layout, ComposeLayout) and layout.swizzle_len else ""
        dense = "dense" if fused.is_trivial() else f"within {fused.span()}"
        return f"{size} elements of memory, {dense}{swizzled}"
    axes = [axis for axis in fused.axes() if axis.is_thread]
    held = _range(sorted({len(elements) for elements in threads.values()}))
    copied = math.prod(each.extent for each in fused.replica if each.stride)
    more = f", {copied} copies of each" if copied > 1 else ""
    return (
        f"{size} elements over {len(threads)} threads ({' and '.join(a.name for a in axes)}), {held} to a thread{more}"
    )


def explain(layout: AnyLayout, shape: Sequence[int]) -> str:
    """Sentences, one a line: the size, the rule, whole rows or columns of one thread, and what is odd.

    InvalidLayout for a shape of another size.
    """
    fused = _fused(layout, shape)
    swizzled = isinstance(layout, ComposeLayout) and layout.swizzle_len > 0
    lines = [in_words(layout, shape), _rule(fused, shape) + (", before bits are xored" if swizzled else "")]
    threads = _holders(fused)
    axes = [axis for axis in fused.axes() if axis.is_thread]
    if threads and len(axes) == 1:
        lines += _ownership(axes[0], {thread[0]: elements for thread, elements in threads.items()}, shape, fused)
    if isinstance(layout, ComposeLayout) and layout.swizzle_len:
        lines.append(_xor(layout))
    if not is_injective(fused):
        lines.append("some elements share a place: what is written to one, the others read")
    return "\n".join(lines)


def owner_table(layout: AnyLayout, shape: Sequence[int]) -> str:
    """Rows of text, a cell an element: "3 r5" is register 5 of thread 3; in memory, the address.

    A tile of more than two dims has all but the last as rows; of a large one the first 64 x 64 elements are shown.
    """
    _fused(layout, shape)
    rows, columns = math.prod(shape[:-1]), shape[-1]
    shown = layout if isinstance(layout, ComposeLayout) else layout.canonical()
    wide = min(columns, _MOST_CELLS)
    table = [["", *map(str, range(wide))]]
    table += [
        [str(row), *(str(home_of(shown, row * columns + column)) for column in range(wide))]
        for row in range(min(rows, _MOST_CELLS))
    ]
    widths = [max(len(line[c]) for line in table) for c in range(wide + 1)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in table]
    if rows > _MOST_CELLS or columns > _MOST_CELLS:
        lines.append(f"the first {min(rows, _MOST_CELLS)} x {wide} of {rows} x {columns}")
    return "\n".join(lines)


# ------------------------------------------------------------------------------------------------------------- parts
def _fused(layout: AnyLayout, shape: Sequence[int]) -> TileLayout:
    if not shape or math.prod(shape) != layout.size():
        raise InvalidLayout(f"a tile of shape {tuple(shape)} in a layout of {layout.size()} elements")
    return (layout.tile if isinstance(layout, ComposeLayout) else layout).canonical()


def _holders(fused: TileLayout) -> dict[tuple[int, ...], set[int]]:
    """By place on the thread axes: the elements there.  Empty in memory."""
    axes = [axis for axis in fused.axes() if axis.is_thread]
    found: dict[tuple[int, ...], set[int]] = {}
    for element, place in places(fused) if axes else ():
        found.setdefault(tuple(place[axis] for axis in axes), set()).add(element)
    return found


def _range(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


def _noun(axis: Axis) -> str:
    return _NOUNS.get(axis.name, axis.name)


def _rule(fused: TileLayout, shape: Sequence[int]) -> str:
    """Where element (i, j) is, as expressions."""
    names = [_INDICES[d] if len(shape) <= len(_INDICES) else f"i{d}" for d in range(len(shape))]
    results = to_indexing_map(fused, shape).results
    memory = "register" if any(axis.is_thread for axis in fused.axes()) else "address"
    order = sorted(zip(fused.axes(), results, strict=True), key=lambda pair: not pair[0].is_thread)
    parts = [
        f"{_noun(axis) if axis.is_thread else memory if axis.name == 'm' else axis.name} {print_expr(result, names)}"
        for axis, result in order
    ]
    return f"element ({', '.join(names)}) is {'in' if memory == 'register' else 'at'} {', '.join(parts)}"


def _ownership(axis: Axis, threads: dict[int, set[int]], shape: Sequence[int], fused: TileLayout) -> Iterator[str]:
    noun = _noun(axis)
    if len(shape) == 2:
        elements = range(math.prod(shape))
        lines = {"row": [e // shape[1] for e in elements], "column": [e % shape[1] for e in elements]}
        for what, line in lines.items():
            # Then row i is nowhere else, so that all of it is in thread i.
            if all({line[e] for e in held} == {i} for i, held in threads.items()):
                yield f"{noun} i owns {what} i"
    used = {place.get(AXES["m"], 0) for _, place in places(fused)}
    span = fused.span()
    gaps = f" of the {span} that its addresses span" if span != len(used) else ""
    yield f"{len(used)} register{'s' if len(used) > 1 else ''} a {noun}{gaps}"
    idle = [thread for thread in range(max(threads)) if thread not in threads]
    if idle:
        yield f"{len(idle)} of the {noun}s below {max(threads) + 1} hold nothing, {noun} {idle[0]} the first"


def _xor(layout: ComposeLayout) -> str:
    m, s, b = layout.per_element, layout.atom_len, layout.swizzle_len
    low, high = _bits(m, b), _bits(m + s, b)
    source, target = (high, low) if layout.inner else (low, high)
    return f"{source} of an address are xored into {target}; {1 << m} elements stay side by side"


def _bits(first: int, count: int) -> str:
    return f"bit {first}" if count == 1 else f"bits {first} to {first + count - 1}"
