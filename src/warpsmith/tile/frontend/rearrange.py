"""Reordering a layout's dims, and the little language of `.rearrange("a (b c) -> (a b) c", b=4)`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from warpsmith.errors import InvalidTileProgram
from warpsmith.tile.layout import ComposeLayout, TileLayout
from warpsmith.tile.model.buffers import AnyLayout

__all__ = ["parse_pattern", "rearranged"]


def rearranged(layout: AnyLayout, shape: Sequence[int], order: Sequence[int]) -> AnyLayout:
    """The layout of a buffer of `shape` whose dims are put into `order`."""
    if isinstance(layout, ComposeLayout):
        return layout.with_tile(_reordered(layout.tile, shape, order))
    return _reordered(layout, shape, order)


def _reordered(layout: TileLayout, shape: Sequence[int], order: Sequence[int]) -> TileLayout:
    grouped, seps = layout.group(tuple(shape))
    iters = [each for d in order for each in grouped.shard[seps[d] : seps[d + 1]]]
    return TileLayout(shard=tuple(iters), replica=layout.replica, offset=layout.offset)


_TOKEN = re.compile(r"\(|\)|[A-Za-z_]\w*|1|\S")


def _groups(side: str) -> list[list[str]]:
    groups: list[list[str]] = []
    inside = False
    for token in _TOKEN.findall(side):
        if token == "(":
            if inside:
                raise InvalidTileProgram(f"nested parentheses in '{side}'")
            inside = True
            groups.append([])
        elif token == ")":
            if not inside:
                raise InvalidTileProgram(f"')' without '(' in '{side}'")
            inside = False
        elif token == "1":
            if not inside:
                groups.append([])
        elif token.isidentifier():
            if inside:
                groups[-1].append(token)
            else:
                groups.append([token])
        else:
            raise InvalidTileProgram(f"'{token}' has no meaning in '{side}'")
    if inside:
        raise InvalidTileProgram(f"'(' without ')' in '{side}'")
    return groups


def parse_pattern(
    pattern: str, shape: Sequence[int], sizes: Mapping[str, int]
) -> tuple[list[int], list[int], list[int]]:
    """(extents after splitting, their new order, extents after joining).  InvalidTileProgram if it doesn't fit."""
    left_text, arrow, right_text = pattern.partition("->")
    left, right = _groups(left_text), _groups(right_text)
    names = [name for group in left for name in group]
    if not arrow or sorted(names) != sorted(name for group in right for name in group) or len(set(names)) != len(names):
        raise InvalidTileProgram(f"both sides of '{pattern}' name the same parts, each once", help="a (b c) -> (a b) c")
    if len(left) != len(shape):
        raise InvalidTileProgram(f"'{left_text.strip()}' has {len(left)} dims, the buffer has {len(shape)}")
    extents: dict[str, int] = {}
    for group, extent in zip(left, shape, strict=True):
        _split(group, extent, sizes, extents)
    unknown = set(sizes) - set(names)
    if unknown:
        raise InvalidTileProgram(f"'{min(unknown)}' isn't in '{pattern}'")
    flat = [name for group in right for name in group]
    return (
        [extents[name] for name in names],
        [names.index(name) for name in flat],
        [math.prod(extents[name] for name in group) for group in right],
    )


def _split(group: Sequence[str], extent: int, sizes: Mapping[str, int], extents: dict[str, int]) -> None:
    known = {name: int(sizes[name]) for name in group if name in sizes}
    open_ = [name for name in group if name not in known]
    product = math.prod(known.values())
    if len(open_) > 1 or extent % product or (not open_ and product != extent):
        raise InvalidTileProgram(
            f"({' '.join(group)}) can't be {extent} elements with {known or 'no sizes'}", help="give all sizes but one"
        )
    extents.update(known)
    if open_:
        extents[open_[0]] = extent // product
