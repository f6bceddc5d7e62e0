"""Layouts out of their text, as `str` gives it.

S[(32, 8):(1@laneid, 1)] + R[2:4@warpid] + 5@laneid
swizzle(3, 3, 3, inner) of S[(8, 64):(64, 1)]
"""

from __future__ import annotations

import re

from warpsmith.errors import InvalidLayout
from warpsmith.tile.layout.axes import AXES, Axis, axis_of
from warpsmith.tile.layout.iters import Iter
from warpsmith.tile.layout.swizzle import ComposeLayout
from warpsmith.tile.layout.tile_layout import TileLayout

__all__ = ["parse_layout"]

M = AXES["m"]


_SWIZZLE = re.compile(r"swizzle\((\d+), *(\d+), *(\d+), *(inner|outer)\) of ")
_BRACKETS = re.compile(r"([SR])\[([^:\]]+):([^\]]+)\]")
_DISTANCE = re.compile(r"(-?\d+) *(?:@ *(\w+))?")


def parse_layout(text: str) -> TileLayout | ComposeLayout:
    """The layout that a text stands for.  InvalidLayout where it is none."""
    swizzle = _SWIZZLE.match(text)
    tile = _tile(text[swizzle.end() :] if swizzle else text, text)
    if swizzle is None:
        return tile
    lengths = (int(swizzle[1]), int(swizzle[2]), int(swizzle[3]))
    return ComposeLayout(*lengths, inner=swizzle[4] == "inner", tile=tile)


def _tile(text: str, whole: str) -> TileLayout:
    parts: dict[str, tuple[Iter, ...]] = {"S": (), "R": ()}
    offset: dict[Axis, int] = {}
    for term in (each.strip() for each in text.split(" + ")):
        brackets, distance = _BRACKETS.fullmatch(term), _DISTANCE.fullmatch(term)
        if brackets is not None:
            parts[brackets[1]] += _iters(brackets[2], brackets[3], whole)
        elif distance is not None:
            axis, amount = _distance(distance)
            offset[axis] = offset.get(axis, 0) + amount
        else:
            raise _unreadable(term, whole)
    return TileLayout(shard=parts["S"], replica=parts["R"], offset=offset)


def _iters(extents: str, strides: str, whole: str) -> tuple[Iter, ...]:
    sizes = [each.strip() for each in extents.strip(" ()").split(",") if each.strip()]
    steps = [_DISTANCE.fullmatch(each.strip()) for each in strides.strip(" ()").split(",") if each.strip()]
    if len(sizes) != len(steps) or not all(each.isdecimal() for each in sizes):
        raise _unreadable(f"{extents}:{strides}", whole)
    found: list[Iter] = []
    for size, step in zip(sizes, steps, strict=True):
        if step is None:
            raise _unreadable(strides, whole)
        axis, amount = _distance(step)
        found.append(Iter(int(size), amount, axis))
    return tuple(found)


def _distance(match: re.Match[str]) -> tuple[Axis, int]:
    return axis_of(match[2]) if match[2] else M, int(match[1])


def _unreadable(part: str, whole: str) -> InvalidLayout:
    return InvalidLayout(f"can't read '{part}' in the layout '{whole}'", help="S[(32, 8):(1@laneid, 1)] + 5@warpid")
