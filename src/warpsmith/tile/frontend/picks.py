"""Parts of buffers that brackets pick: `A.chunk((4, None))[b, :]`, `A.sub[2, ::4]`, `A.tile(0, (4, -1))[w, :]`.

In: a buffer, and what stands in the brackets.  Out: a view, where the picks are known while the kernel is read;
otherwise a region of a view.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from warpsmith.errors import InvalidTileProgram
from warpsmith.tile.frontend import subscripts, views
from warpsmith.tile.frontend.state import KernelState
from warpsmith.tile.frontend.values import Buffer, Picks, Region, items
from warpsmith.tile.layout import ComposeLayout, TileLayout
from warpsmith.tile.model.buffers import buffer_of

__all__ = ["chunk", "sub", "tile"]


def chunk(state: KernelState, buffer: Buffer, counts: Any) -> Picks:
    """Dims cut into equal parts, of which brackets pick one: `A.chunk((4, None))[b, :]` is rows b * n / 4 and on.

    A region, as if the author had written from where to where.
    """
    shape, name = buffer_of(buffer.value).shape, buffer.value.name
    parts = items(counts) or [counts]
    if len(parts) != len(shape):
        raise InvalidTileProgram(f"{len(parts)} numbers of parts for the {len(shape)} dims of '{name}'")
    for d, (part, extent) in enumerate(zip(parts, shape, strict=True)):
        if part is None:
            continue
        if isinstance(part, bool) or not isinstance(part, int) or part < 1 or extent < 0 or extent % part:
            held = f"{extent} elements" if extent >= 0 else "a symbolic extent"
            raise InvalidTileProgram(f"dim {d} of '{name}' has {held}, and can't be cut into {part!r} equal parts")

    def take(index: Any) -> Region:
        picks: list[Any] = items(index) or [index]
        for d, (count, pick) in enumerate(zip(parts, picks, strict=False)):
            if count is not None:
                if isinstance(pick, slice) or pick is Ellipsis:
                    raise InvalidTileProgram(f"dim {d} of '{name}' is cut into parts: name one of them")
                wide = shape[d] // count
                start = state.scalars.binary("mul", subscripts.integer(state, pick), wide)
                picks[d] = slice(start, state.scalars.binary("add", start, wide))
        return subscripts.region(state, buffer, tuple(picks))

    return Picks(take)


def sub(state: KernelState, buffer: Buffer, index: Any) -> Buffer | Region:
    """As numpy indexes: an integer drops its dim, `a:b` narrows it, `a::s` takes every s-th element."""
    parts: list[Any] = items(index) or [index]
    split: list[int] = []
    picked: list[Any] = []
    shape = buffer_of(buffer.value).shape
    for d, extent in enumerate(shape):
        part = parts[d] if d < len(parts) else slice(None)
        start, stop, step = subscripts.slice_bounds(part) if isinstance(part, slice) else (None, None, None)
        if step in (None, 1):
            split.append(extent)
            picked.append(part)
            continue
        first = start or 0
        if not isinstance(step, int) or step < 1 or extent % step or stop is not None or not 0 <= first < step:
            raise InvalidTileProgram(
                f"dim {d} of '{buffer.value.name}', {extent} elements, has no part {first}::{step}",
                help="a::s takes every s-th element of a dim that s divides, a being less than s",
            )
        split += [extent // step, step]
        picked += [slice(None), first]
    if len(parts) > len(shape):
        raise InvalidTileProgram(f"{len(parts)} indices for '{buffer.value.name}' of shape {shape}")
    whole = buffer if split == list(shape) else views.view(state, buffer, *split)
    return _taken(state, whole, picked, [1] * len(picked))


def tile(state: KernelState, buffer: Buffer, dim: int, factors: Any) -> Picks:
    """A dim split into factors, row-major (-1 once: what is left).

    Brackets have an entry a factor: an integer picks, `:` keeps, and what is kept is one dim again.
    """
    shape = buffer_of(buffer.value).shape
    name = buffer.value.name
    if not 0 <= dim < len(shape):
        raise InvalidTileProgram(f"'{name}' has no dim {dim!r}")
    sizes = [int(each) for each in items(factors) or [factors]]
    if sizes.count(-1) == 1 and math.prod(sizes) and shape[dim] % math.prod(sizes) == 0:
        sizes[sizes.index(-1)] = shape[dim] // -math.prod(sizes)
    if any(each < 1 for each in sizes) or math.prod(sizes) != shape[dim]:
        raise InvalidTileProgram(f"dim {dim} of '{name}', {shape[dim]} elements, isn't the product of {sizes}")
    whole = views.view(state, buffer, *shape[:dim], *sizes, *shape[dim + 1 :])

    def take(index: Any) -> Buffer | Region:
        given: list[Any] = items(index) or [index]
        if len(given) != len(sizes) or all(each == slice(None) for each in given):
            raise InvalidTileProgram(f"an entry for each of {len(sizes)} factors, one of which picks")
        around = [slice(None)] * dim, [slice(None)] * (len(shape) - dim - 1)
        joined = [1] * dim, [1] * len(around[1])
        kept = sum(isinstance(each, slice) for each in given)
        picked = [*around[0], *given, *around[1]]
        return _taken(state, whole, picked, [*joined[0], *([kept] if kept else []), *joined[1]])

    return Picks(take)


def _taken(state: KernelState, buffer: Buffer, picked: Sequence[Any], joined: Sequence[int]) -> Buffer | Region:
    """The part that `picked` leaves, as many of whose dims at a time as `joined` says become one.

    A region where picks or extents are known only when the kernel runs.
    """
    box = subscripts.region(state, buffer, tuple(picked))
    if any(not isinstance(start, int) for start in box.mins):
        if any(count > 1 for count in joined):
            raise InvalidTileProgram(
                "what is kept of a dim whose part is picked when the kernel runs isn't one dim",
                help="split it with .view, and take a region",
            )
        return box
    info = buffer_of(buffer.value)
    layout = info.layout
    if layout is None or -1 in info.shape:
        return box
    bounds = [(int(start), int(start) + extent) for start, extent in zip(_known(box), box.extents, strict=True)]
    part = layout.slice(info.shape, bounds)
    if part is None:
        return box
    kept = [extent for extent, stays in zip(box.extents, box.kept, strict=True) if stays]
    shape: list[int] = []
    for count in joined[: len(kept)]:
        shape.append(math.prod(kept[:count]))
        kept = kept[count:]
    return views.view(state, buffer, *(shape or [1]), layout=_grouped(part, shape or [1]))


def _known(box: Region) -> list[int]:
    return [start for start in box.mins if isinstance(start, int)]


def _grouped(layout: TileLayout | ComposeLayout, shape: Sequence[int]) -> TileLayout | ComposeLayout:
    """A layout whose factors end where dims of a shape do."""
    if isinstance(layout, ComposeLayout):
        return layout.with_tile(layout.tile.group(shape)[0])
    return layout.group(shape)[0]
