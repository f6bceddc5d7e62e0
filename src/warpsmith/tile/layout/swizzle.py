"""`ComposeLayout`: a tile's addresses with some bits xored into others, so that columns spread over banks.

    inner: bits [M+S, M+S+B) of an address are xored into bits [M, M+B); outer: the other way round

M is `per_element` (a chunk of 2^M elements stays whole), B `swizzle_len`, S `atom_len`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpsmith.errors import InvalidLayout
from warpsmith.tile.layout.axes import integer
from warpsmith.tile.layout.notebook import Drawn
from warpsmith.tile.layout.tile_layout import TileLayout, row_major

__all__ = ["ComposeLayout", "swizzle_for"]

_LENGTHS = {32: 1, 64: 2, 128: 3}


class ComposeLayout(Drawn):
    """A swizzle over a tile's memory.  Without a tile it is bare: `over(shape)` puts it over a dense one.

    InvalidLayout for negative lengths, or bits that overlap (`atom_len` less than `swizzle_len`).
    """

    __slots__ = ("atom_len", "inner", "per_element", "swizzle_len", "tile")

    def __init__(
        self,
        per_element: int,
        swizzle_len: int,
        atom_len: int,
        inner: bool | TileLayout = True,
        tile: TileLayout | None = None,
    ) -> None:
        per_element, swizzle_len, atom_len = (integer(n, "a length") for n in (per_element, swizzle_len, atom_len))
        if isinstance(inner, TileLayout) or inner not in (True, False):
            raise InvalidLayout(f"inner is True or False, not {inner!r}", help="ComposeLayout(3, 3, 3, tile=layout)")
        if per_element < 0 or swizzle_len < 0 or atom_len < swizzle_len:
            raise InvalidLayout(
                f"swizzle({per_element}, {swizzle_len}, {atom_len}) isn't well formed",
                help="no length is negative, and atom_len is at least swizzle_len",
            )
        self.per_element, self.swizzle_len, self.atom_len, self.inner = per_element, swizzle_len, atom_len, inner
        self.tile = tile if tile is not None else row_major((1,))

    def _key(self) -> tuple[object, ...]:
        return self.per_element, self.swizzle_len, self.atom_len, self.inner, self.tile

    def __str__(self) -> str:
        side = "inner" if self.inner else "outer"
        return f"swizzle({self.per_element}, {self.swizzle_len}, {self.atom_len}, {side}) of {self.tile}"

    def __repr__(self) -> str:
        return f"ComposeLayout({self})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeLayout) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    @property
    def period(self) -> int:
        """Elements after which the pattern repeats; a tile at a multiple of it is swizzled as one at 0."""
        return 1 << (self.per_element + self.atom_len + self.swizzle_len)

    @property
    def is_bare(self) -> bool:
        """Whether there is no tile yet."""
        return self.tile.is_trivial() and self.tile.size() == 1

    def over(self, shape: Sequence[int]) -> ComposeLayout:
        """The swizzle over the dense tile of a shape."""
        return self.with_tile(row_major(tuple(shape)))

    def with_tile(self, tile: TileLayout) -> ComposeLayout:
        """The same swizzle over another tile."""
        return ComposeLayout(self.per_element, self.swizzle_len, self.atom_len, self.inner, tile)

    def size(self) -> int:
        """How many elements the layout places."""
        return self.tile.size()

    def span(self) -> int:
        """Elements of memory, whole periods: within one, any place may be used."""
        return -(-self.tile.span() // self.period) * self.period if self.swizzle_len else self.tile.span()

    def slice(self, shape: Sequence[int], region: Sequence[tuple[int, int]]) -> ComposeLayout | None:
        """The layout of a box; where it begins is added before bits are xored.  As `TileLayout.slice`."""
        tile = (self.over(shape) if self.is_bare else self).tile.slice(shape, region)
        return None if tile is None else self.with_tile(tile)

    def address(self, value: int) -> int:
        """Where the element that the tile puts at `value` goes."""
        mask = (1 << self.swizzle_len) - 1
        m, s = self.per_element, self.atom_len
        if self.inner:
            return value ^ ((value >> (m + s) & mask) << m)
        return value ^ ((value >> m & mask) << (m + s))

    def addresses(self, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """`address` of 0, 1, ..., count - 1."""
        return np.fromiter((self.address(value) for value in range(count)), np.int64, count)

    def apply(self, *coords: int, shape: Sequence[int] | None = None) -> int:
        """The address of an element of the tile; coordinates as in `TileLayout.apply`, numbers alone.

        A bare swizzle is taken over the dense tile of `shape`.  InvalidLayout where the tile's places aren't addresses:
        along an axis of threads, or along two.
        """
        tile = row_major(shape) if self.is_bare and shape is not None else self.tile
        places = tile.apply(*coords, shape=shape)
        values = [place for axis, place in places.items() if not axis.is_thread]
        if len(places) != 1 or len(values) != 1:
            raise InvalidLayout(
                f"{tile} has no addresses whose bits could be xored",
                help="a swizzle is of a tile on one axis of memory",
            )
        (value,) = values
        if not isinstance(value, int):
            raise InvalidLayout("an indexing expression has no xor", help="give a swizzle's coordinates as numbers")
        return self.address(value)


def swizzle_for(bits: int, mode: int) -> ComposeLayout:
    """The bare swizzle of hardware's 32-, 64- and 128-byte modes for elements of `bits` bits.

    Chunks of 16 bytes stay whole.  InvalidLayout for another mode or width.
    """
    if mode not in _LENGTHS or bits not in (4, 8, 16, 32, 64, 128):
        raise InvalidLayout(
            f"no swizzle mode of {mode} bytes for elements of {bits} bits", help="modes are 32, 64 and 128 bytes"
        )
    return ComposeLayout((128 // bits).bit_length() - 1, _LENGTHS[mode], 3)
