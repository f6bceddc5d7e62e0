"""How a layout is written: `S[(32, 8) : (1 @ laneid, 1)] + R[2 : 4 @ warpid] + 5 @ warpid`.

In: subscripts of `S` (shard) and `R` (replica), distances along axes.  Out: a `Spec`, which `TileLayout` takes;
`layout_text` writes one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from warpsmith.errors import InvalidLayout
from warpsmith.tile.layout.axes import AXES, Axis, Strided, integer
from warpsmith.tile.layout.iters import Iter

__all__ = ["R", "S", "Spec", "layout_text"]

M = AXES["m"]


@dataclass(frozen=True, slots=True)
class Spec:
    """Shard, replica and offset as they are put together with `+`."""

    shard: tuple[Iter, ...] = ()
    replica: tuple[Iter, ...] = ()
    offset: tuple[Strided, ...] = ()

    def __add__(self, other: Spec | Strided | int) -> Spec:
        if isinstance(other, Spec):
            return Spec(self.shard + other.shard, self.replica + other.replica, self.offset + other.offset)
        return Spec(self.shard, self.replica, (*self.offset, _distance(other)))

    __radd__ = __add__


class _Shard:
    """What `S` is: subscripts make a `Spec`."""

    def __getitem__(self, item: object) -> Spec:
        return Spec(shard=_iters(item))

    def __repr__(self) -> str:
        return "S"


class _Replica:
    """What `R` is."""

    def __getitem__(self, item: object) -> Spec:
        return Spec(replica=_iters(item))

    def __repr__(self) -> str:
        return "R"


S = _Shard()
"""`S[extents : strides]`: how elements are spread.  A stride without an axis counts elements of memory; left out, the
strides are row-major."""

R = _Replica()
"""`R[extents : strides]`: where further copies of every element are."""


def _iters(item: object) -> tuple[Iter, ...]:
    if not isinstance(item, slice):
        extents = _extents(item)
        strides: list[Strided] = []
        block = 1
        for extent in reversed(extents):
            strides.append(Strided(block, M))
            block *= extent
        return tuple(Iter(e, s.amount, s.axis) for e, s in zip(extents, reversed(strides), strict=True))
    parts = cast("slice[object, object, object]", item)
    sizes, steps, third = parts.start, parts.stop, parts.step
    if third is not None:
        raise InvalidLayout("a layout has extents and strides, and no third part", help="S[(32, 8) : (8, 1)]")
    extents = _extents(sizes)
    distances = [_distance(each) for each in _sequence(steps)]
    if len(extents) != len(distances):
        raise InvalidLayout(
            f"{len(extents)} extents and {len(distances)} strides", help="one stride an extent: S[(32, 8) : (8, 1)]"
        )
    return tuple(Iter(e, s.amount, s.axis) for e, s in zip(extents, distances, strict=True))


def _sequence(item: object) -> Sequence[object]:
    return cast("Sequence[object]", item) if isinstance(item, (tuple, list)) else (item,)


def _extents(item: object) -> list[int]:
    return [integer(each, "an extent") for each in _sequence(item)]


def _distance(item: object) -> Strided:
    return item if isinstance(item, Strided) else Strided(integer(item, "a stride"), M)


def layout_text(shard: Sequence[Iter], replica: Sequence[Iter], offset: Mapping[Axis, int]) -> str:
    """A layout as text, which `parse_layout` reads: `S[(32, 8):(1@laneid, 1)] + R[2:4@warpid] + 5@laneid`."""
    parts = [_part("S", shard)]
    if replica:
        parts.append(_part("R", replica))
    return " + ".join([*parts, *(f"{amount}{_at(axis)}" for axis, amount in offset.items())])


def _part(letter: str, iters: Sequence[Iter]) -> str:
    extents = [str(each.extent) for each in iters]
    strides = [f"{each.stride}{_at(each.axis)}" for each in iters]
    if len(iters) == 1:
        return f"{letter}[{extents[0]}:{strides[0]}]"
    return f"{letter}[({', '.join(extents)}):({', '.join(strides)})]"


def _at(axis: Axis) -> str:
    return "" if axis == M else f"@{axis.name}"
