"""Factors cut where the dims of a shape end, and parts of one dim's factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.errors import InvalidLayout
from warpsmith.tile.layout.axes import Axis
from warpsmith.tile.layout.iters import Iter, merged, product

__all__ = ["Part", "grouped", "sliced_group"]


def grouped(iters: Sequence[Iter], shape: Sequence[int]) -> tuple[list[Iter], list[int]]:
    """The factors, split where a dim ends, and the bounds of each dim's factors.  InvalidLayout if they can't be."""
    if any(extent < 1 for extent in shape):
        raise InvalidLayout(f"a dim of shape {tuple(shape)} has no elements", help="every extent is at least 1")
    found: list[Iter] = []
    bounds = [0]
    running = 1
    for each in iters:
        left, extent, stride = each.extent, each.extent, each.stride
        running *= extent
        while len(bounds) <= len(shape) and running % shape[len(bounds) - 1] == 0:
            inner = running // shape[len(bounds) - 1]
            if left % inner:
                raise _crosses(iters, shape)
            found.append(Iter(left // inner, stride * inner, each.axis))
            bounds.append(len(found))
            left = running = inner
        if left != 1:
            found.append(Iter(left, stride, each.axis))
    if len(bounds) != len(shape) + 1 or bounds[-1] != len(found):
        raise _crosses(iters, shape)
    return found, bounds


def _crosses(iters: Sequence[Iter], shape: Sequence[int]) -> InvalidLayout:
    extents = tuple(each.extent for each in iters)
    return InvalidLayout(
        f"factors of extents {extents} can't be grouped by shape {tuple(shape)}",
        help="every dim must be a product of whole factors, or of parts that divide them",
    )


@dataclass(frozen=True, slots=True)
class Part:
    """The factors of a part of a dim, and where it begins."""

    iters: list[Iter]
    offset: dict[Axis, int]


def sliced_group(iters: Sequence[Iter], begin: int, length: int) -> Part | None:
    """`length` elements of one dim from `begin`; None where no factors place them."""
    iters = merged([each for each in iters if each.extent != 1]) or [Iter(1, 1, iters[0].axis)]
    blocks = [product(iters[k + 1 :]) for k in range(len(iters))]
    starts = [
        begin // block if len(iters) == 1 else begin // block % each.extent
        for each, block in zip(iters, blocks, strict=True)
    ]
    offset: dict[Axis, int] = {}
    for each, start in zip(iters, starts, strict=True):
        if start * each.stride:
            offset[each.axis] = offset.get(each.axis, 0) + start * each.stride
    if len(iters) == 1:
        return Part([Iter(length, iters[0].stride, iters[0].axis)], offset)
    shard = _cut(iters, starts, length)
    return None if shard is None else Part(shard, offset)


def _cut(iters: Sequence[Iter], starts: Sequence[int], rest: int) -> list[Iter] | None:
    """Whole factors from the inside, then a part of the next one."""
    peeled: list[Iter] = []
    k = len(iters) - 1
    while k >= 0 and starts[k] == 0 and rest % iters[k].extent == 0:
        peeled.insert(0, iters[k])
        rest //= iters[k].extent
        k -= 1
    if k < 0:
        return peeled if rest == 1 else None
    pivot, start = iters[k], starts[k]
    if start + rest <= pivot.extent:
        return [Iter(rest, pivot.stride, pivot.axis), *peeled]
    return _straddling(iters, starts, k, rest, peeled)


def _straddling(
    iters: Sequence[Iter], starts: Sequence[int], k: int, rest: int, peeled: Sequence[Iter]
) -> list[Iter] | None:
    """Half of the part at the end of one turn of factor k, half at the start of the next."""
    pivot, start = iters[k], starts[k]
    half = rest // 2
    if rest % 2 or start + half != pivot.extent or k == 0:
        return None
    outer = iters[k - 1]
    if outer.axis != pivot.axis or starts[k - 1] + 1 >= outer.extent:
        return None
    jump = outer.stride - (pivot.extent - half) * pivot.stride
    return [Iter(2, jump, pivot.axis), Iter(half, pivot.stride, pivot.axis), *peeled]
