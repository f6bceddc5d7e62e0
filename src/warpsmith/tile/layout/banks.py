"""Shared memory's banks: which one an element is in, and how many turns an access of a warp takes.

In: the layout of a tile in shared memory, an element's width in bits, which elements the lanes ask for.  Out: bank
numbers and turns.  There are 32 banks of 4 bytes; a turn serves one word of each, and lanes that want the same word
share it.  Lanes that move 8 bytes go in two halves of the warp, 16 bytes in four quarters (CUDA C++ programming guide,
"Shared memory").
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from warpsmith.errors import InvalidLayout
from warpsmith.tile.layout.swizzle import ComposeLayout
from warpsmith.tile.layout.tile_layout import TileLayout

__all__ = ["BANKS", "BANK_BYTES", "address_of", "bank_of", "bank_turns", "column_conflicts", "turns_of"]

BANKS = 32
BANK_BYTES = 4
_WARP = 32


def address_of(layout: TileLayout | ComposeLayout, element: int) -> int:
    """The address, in elements, of element number `element` in row-major order.

    InvalidLayout where the layout spreads elements over threads or several axes of memory.
    """
    places = (layout.tile if isinstance(layout, ComposeLayout) else layout).apply(element)
    (value, *others) = places.values()
    if others or any(axis.is_thread for axis in places) or not isinstance(value, int):
        raise InvalidLayout(
            f"{layout} has no addresses in memory: its axes are {', '.join(axis.name for axis in places)}",
            help="a tile in shared memory is laid out on axis m alone",
        )
    return layout.address(value) if isinstance(layout, ComposeLayout) else value


def bank_of(layout: TileLayout | ComposeLayout, element: int, bits: int) -> int:
    """The bank that an element, by its row-major number, begins in.  InvalidLayout as of `address_of`."""
    return address_of(layout, element) * bits // 8 // BANK_BYTES % BANKS


def bank_turns(
    layout: TileLayout | ComposeLayout, shape: Sequence[int], bits: int, lanes: Sequence[Sequence[int]], vector: int = 1
) -> tuple[int, int]:
    """(turns that one access takes, turns that it would take without conflicts).

    Lane i reads or writes `vector` elements from coordinates `lanes[i]` on, as they lie in memory.  InvalidLayout for
    no lanes or more than a warp has, coordinates outside `shape`, a vector of more than 16 bytes or whose length is no
    power of two, or one that doesn't begin at a multiple of its size.
    """
    size = max(bits * vector // 8, 1)
    if not 1 <= len(lanes) <= _WARP or vector not in (1, 2, 4, 8, 16, 32) or size > 16:
        raise InvalidLayout(
            f"no access of {len(lanes)} lanes with {vector} elements of {bits} bits",
            help=f"a warp has {_WARP} lanes, each of which moves up to 16 bytes",
        )
    starts = [address_of(layout, _number(coords, shape)) * bits // 8 for coords in lanes]
    astray = next((lane for lane, start in enumerate(starts) if start % size), None)
    if astray is not None:
        raise InvalidLayout(
            f"lane {astray} moves {size} bytes at byte {starts[astray]}, which is no multiple of them",
            help="hardware moves vectors at multiples of their size: use a shorter one, or other padding",
        )
    return turns_of(starts, size), len(_parts(starts, size))


def _number(coords: Sequence[int], shape: Sequence[int]) -> int:
    if len(coords) != len(shape) or not all(0 <= c < extent for c, extent in zip(coords, shape, strict=True)):
        raise InvalidLayout(f"{tuple(coords)} is no element of a tile of shape {tuple(shape)}")
    flat = 0
    for coord, extent in zip(coords, shape, strict=True):
        flat = flat * extent + coord
    return flat


def turns_of(starts: Sequence[int], size: int) -> int:
    """The turns of an access in which lane i moves `size` bytes (1 to 16) from byte `starts[i]` on."""
    return sum(_turns(part, size) for part in _parts(starts, size))


def _parts(starts: Sequence[int], size: int) -> list[Sequence[int]]:
    """The lanes that are served together."""
    together = _WARP // max(size // BANK_BYTES, 1)
    return [starts[first : first + together] for first in range(0, len(starts), together)]


def _turns(starts: Sequence[int], size: int) -> int:
    """The most words of one bank that accesses of `size` bytes, served together, ask for."""
    words: dict[int, set[int]] = {}
    for start in starts:
        for word in range(start // BANK_BYTES, (start + size - 1) // BANK_BYTES + 1):
            words.setdefault(word % BANKS, set()).add(word)
    return max(map(len, words.values()))


def column_conflicts(layout: TileLayout | ComposeLayout, shape: Sequence[int], bits: int) -> int:
    """The turns that 32 lanes take at most to read one column of a tile, a row each."""
    rows, columns = math.prod(shape[:-1]), shape[-1]
    return max(
        bank_turns(layout, (rows, columns), bits, [(row, column) for row in range(first, min(first + _WARP, rows))])[0]
        for column in range(columns)
        for first in range(0, rows, _WARP)
    )
