"""Which lane holds what of a tile or a matrix, as the PTX ISA writes it down."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpsmith.arrays import Array

__all__ = ["element_a", "element_b", "element_c", "fragment", "tile_element"]


def tile_element(lane: int, i: int) -> tuple[int, int, int]:
    """Tile, row and column of element i of a lane: ldmatrix gives each the 32 bits lane mod 4 of row lane / 4."""
    return i // 2, lane // 4, 2 * (lane % 4) + i % 2


def element_a(lane: int, i: int) -> tuple[int, int]:
    """Row and column of a_i of mma.m16n8k16."""
    group, thread = lane >> 2, lane % 4
    row = group if 0 <= i < 2 or 4 <= i < 6 else group + 8
    return row, thread * 2 + (i & 1) + (8 if i >= 4 else 0)


def element_b(lane: int, i: int) -> tuple[int, int]:
    """Of b_i."""
    group, thread = lane >> 2, lane % 4
    return thread * 2 + (i & 1) + (8 if i >= 2 else 0), group


def element_c(lane: int, i: int) -> tuple[int, int]:
    """Of c_i and d_i."""
    group, thread = lane >> 2, lane % 4
    return group if i < 2 else group + 8, thread * 2 + (i & 1)


def fragment(matrix: Array, place: Any, count: int) -> Array:
    """What each lane holds of a matrix (or of a stack of tiles), a row a lane."""
    return np.array([[matrix[place(lane, i)] for i in range(count)] for lane in range(32)], matrix.dtype)
