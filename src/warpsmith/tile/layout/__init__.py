"""Layouts: where each element of a tile lives.

`S[(32, 8) : (1 @ laneid, 1)]`: row i in lane i, column j in its register j.  `axes` names what a step may be along,
`notation` is the brackets, `tile_layout` the algebra of one layout, `operations` of two, `swizzle` the xor layouts,
`maps` and `inverse` tie them to indexing maps, `parse` reads their text, `banks`, `words` and `picture` show.
"""

from __future__ import annotations

from warpsmith.tile.layout.axes import AXES, Axis, axis_of
from warpsmith.tile.layout.banks import bank_turns
from warpsmith.tile.layout.inverse import partition_map
from warpsmith.tile.layout.iters import Iter
from warpsmith.tile.layout.maps import covers, is_injective, owners, to_indexing_map
from warpsmith.tile.layout.matrix import mma_a, mma_b, mma_c
from warpsmith.tile.layout.notation import R, S, Spec
from warpsmith.tile.layout.operations import (
    direct_sum,
    direct_summand,
    inner_of_tile,
    outer_of_tile,
    tile,
    tile_to,
)
from warpsmith.tile.layout.parse import parse_layout
from warpsmith.tile.layout.picture import owner_picture
from warpsmith.tile.layout.swizzle import ComposeLayout, swizzle_for
from warpsmith.tile.layout.tile_layout import TileLayout, row_major
from warpsmith.tile.layout.words import explain, owner_table

tx, laneid, warpid, wgid = AXES["tx"], AXES["laneid"], AXES["warpid"], AXES["wgid"]
tid_in_wg, wid_in_wg, m = AXES["tid_in_wg"], AXES["wid_in_wg"], AXES["m"]

__all__ = [
    "AXES",
    "Axis",
    "ComposeLayout",
    "Iter",
    "R",
    "S",
    "Spec",
    "TileLayout",
    "axis_of",
    "bank_turns",
    "covers",
    "direct_sum",
    "direct_summand",
    "explain",
    "inner_of_tile",
    "is_injective",
    "laneid",
    "m",
    "mma_a",
    "mma_b",
    "mma_c",
    "outer_of_tile",
    "owner_picture",
    "owner_table",
    "owners",
    "parse_layout",
    "partition_map",
    "row_major",
    "swizzle_for",
    "tid_in_wg",
    "tile",
    "tile_to",
    "to_indexing_map",
    "tx",
    "warpid",
    "wgid",
    "wid_in_wg",
]
