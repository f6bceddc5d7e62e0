"""`TileLayout`: where each element of a tile lives, on named axes of threads and memory.

In: shard, replica and offset.  Out: places of elements, spans, and the layouts that follow from one by itself (storage,
canonical form, grouping, slicing).  Layouts made of two are in `operations`.  Offsets that fuse onto one axis are added
(`docs/tile-defects.md`, B9).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from warpsmith.errors import InvalidLayout
from warpsmith.tile.layout.axes import AXES, FUSED, Axis, axis_of
from warpsmith.tile.layout.grouping import grouped, sliced_group
from warpsmith.tile.layout.iters import Amount, Iter, digits, merged, product
from warpsmith.tile.layout.notation import Spec, layout_text
from warpsmith.tile.layout.notebook import Drawn

__all__ = ["TileLayout", "row_major"]

M = AXES["m"]


class TileLayout(Drawn):
    """Element `c` lives at `offset` plus, for each shard factor, its digit of `c` times its stride.

    `replica` factors say where further copies are.  Immutable; equal when shard, replica and offset are
    (an offset of 0 in memory is none; one along
    a thread axis still says that the axis is there, and so takes part in the scopes).  InvalidLayout
    for no factors, negative extents, or thread axes whose scopes don't connect.
    """

    __slots__ = ("offset", "replica", "shard")

    shard: tuple[Iter, ...]
    replica: tuple[Iter, ...]
    offset: Mapping[Axis, int]

    def __init__(
        self,
        spec: Spec | object = None,
        *,
        shard: Sequence[Iter] = (),
        replica: Sequence[Iter] = (),
        offset: Mapping[Axis, int] | None = None,
    ) -> None:
        if spec is not None and not isinstance(spec, Spec):
            raise InvalidLayout(f"a layout is made of S[...], not {spec!r}", help="TileLayout(S[(32, 8) : (8, 1)])")
        given = spec or Spec()
        total: dict[Axis, int] = {}
        for at, amount in (offset or {}).items():
            total[axis_of(at)] = total.get(axis_of(at), 0) + amount
        for each in given.offset:
            total[each.axis] = total.get(each.axis, 0) + each.amount
        self.shard = (*given.shard, *shard)
        self.replica = (*given.replica, *replica)
        self.offset = MappingProxyType(
            {at: total[at] for at in sorted(total, key=lambda at: at.name) if total[at] or at.is_thread}
        )
        if not self.shard:
            raise InvalidLayout("a layout has at least one factor", help="TileLayout(S[1])")
        self.scope_pair()

    # ---------------------------------------------------------------------------------------------------- identity
    def _key(self) -> tuple[object, ...]:
        return self.shard, self.replica, tuple(self.offset.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TileLayout) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        return layout_text(self.shard, self.replica, self.offset)

    def __repr__(self) -> str:
        return f"TileLayout({self})"

    def _with(
        self,
        shard: Sequence[Iter] | None = None,
        replica: Sequence[Iter] | None = None,
        offset: Mapping[Axis, int] | None = None,
    ) -> TileLayout:
        return TileLayout(
            shard=self.shard if shard is None else shard,
            replica=self.replica if replica is None else replica,
            offset=self.offset if offset is None else offset,
        )

    # ----------------------------------------------------------------------------------------------------- measures
    def size(self, axis: Axis | str | None = None) -> int:
        """How many elements it places (along one axis: the product of its factors there)."""
        only = None if axis is None else axis_of(axis)
        return product(each for each in self.shard if only is None or each.axis == only)

    def span(self, axis: Axis | str | None = None) -> int:
        """One more than the greatest place along an axis; without one, along all memory axes together."""
        axis = None if axis is None else axis_of(axis)
        total = 1
        for each in (*self.shard, *self.replica):
            if each.axis == axis or (axis is None and not each.axis.is_thread):
                total += (each.extent - 1) * each.stride
        for at, amount in self.offset.items():
            if at == axis or (axis is None and not at.is_thread):
                total += amount
        return total

    def axes(self) -> tuple[Axis, ...]:
        """The axes that are used, each once, in the order of use."""
        return tuple(dict.fromkeys((*(each.axis for each in (*self.shard, *self.replica)), *self.offset)))

    def is_trivial(self) -> bool:
        """Whether element i lives at i: one memory factor of stride 1, no copies, no offset."""
        plain = self.canonical(fuse=False)
        (first, *rest) = plain.shard
        is_dense = not rest and not first.axis.is_thread and (first.stride == 1 or first.extent == 1)
        return is_dense and not plain.replica and not plain.offset

    # -------------------------------------------------------------------------------------------------------- places
    def apply(self, *coords: Amount, shape: Sequence[int] | None = None) -> dict[Axis, Amount]:
        """Where an element lives, by axis (an axis that is missing counts as 0).

        One coordinate is the element's number in row-major order; several, without a shape, are one a factor; with
        `shape`, one a dim of a tile of that shape.  Coordinates are integers or indexing expressions.  InvalidLayout
        for a wrong count, a shape with another number of elements, or a number outside its dim of the shape.
        """
        if shape is not None:
            if len(coords) != len(shape) or math.prod(shape) != self.size():
                raise InvalidLayout(
                    f"{len(coords)} coordinates of a tile of shape {tuple(shape)} in a layout of {self.size()} elements"
                )
            for coord, extent in zip(coords, shape, strict=True):
                if isinstance(coord, int) and not 0 <= coord < extent:
                    raise InvalidLayout(f"coordinate {coord} is outside the {extent} elements of its dim")
            return self._apply_shaped(coords, shape)
        if len(coords) == 1:
            return self._sum(self.shard, digits(coords[0], [each.extent for each in self.shard]))
        if len(coords) != len(self.shard):
            raise InvalidLayout(
                f"{len(coords)} coordinates for {len(self.shard)} factors",
                help="one a factor, or give the tile's shape",
            )
        return self._sum(self.shard, coords)

    def _apply_shaped(self, coords: Sequence[Amount], shape: Sequence[int]) -> dict[Axis, Amount]:
        """Each coordinate split within its own factors where that is possible: the same places, in simpler terms."""
        parts = self.try_group(shape)
        if parts is None:
            flat: Amount = 0
            for coord, extent in zip(coords, shape, strict=True):
                flat = flat * extent + coord
            return self._sum(self.shard, digits(flat, [each.extent for each in self.shard]))
        layout, bounds = parts
        values: list[Amount] = []
        for d, coord in enumerate(coords):
            values += digits(coord, [each.extent for each in layout.shard[bounds[d] : bounds[d + 1]]])
        return self._sum(layout.shard, values)

    def _sum(self, iters: Sequence[Iter], values: Sequence[Amount]) -> dict[Axis, Amount]:
        places: dict[Axis, Amount] = {each.axis: 0 for each in iters}
        for each, value in zip(iters, values, strict=True):
            places[each.axis] = places[each.axis] + value * each.stride
        for axis, amount in self.offset.items():
            places[axis] = places.get(axis, 0) + amount
        return places

    # ------------------------------------------------------------------------------------------------------- its parts
    def shifted(self, amount: int) -> TileLayout:
        """The same, so many elements of memory further on."""
        return self._with(offset={**self.offset, M: self.offset.get(M, 0) + amount})

    def storage(self) -> TileLayout:
        """What one thread holds: the memory factors, copies and offsets; one element where there is none."""
        shard = [each for each in self.shard if not each.axis.is_thread]
        return TileLayout(
            shard=shard or [Iter(1, 1, M)],
            replica=[each for each in self.replica if not each.axis.is_thread],
            offset={axis: amount for axis, amount in self.offset.items() if not axis.is_thread},
        )

    def scope_pair(self) -> tuple[str, str] | None:
        """The narrowest and the widest scope that its thread axes connect; None where there are none.

        InvalidLayout where two axes count the same thing in different scopes, or the chain of scopes has a gap.
        """
        threads = [each.axis for each in self.shard if each.axis.is_thread]
        if not threads:
            return None
        threads += [axis for axis in (*(each.axis for each in self.replica), *self.offset) if axis.is_thread]
        edges: dict[str, str] = {}
        for axis in threads:
            if axis.subscope is None or axis.scope is None:
                continue
            if edges.setdefault(axis.subscope, axis.scope) != axis.scope:
                raise InvalidLayout(
                    f"conflicting scopes: {axis.subscope}s are counted both in a {edges[axis.subscope]} and in a "
                    f"{axis.scope}",
                    help=f"use one of {', '.join(sorted({each.name for each in threads}))}",
                )
        inner = next(scope for scope in _WIDTHS if scope in edges)
        outer, used = inner, 0
        while outer in edges:
            outer, used = edges[outer], used + 1
        if used != len(edges):
            names = ", ".join(sorted({each.name for each in threads}))
            raise InvalidLayout(
                f"the scopes of {names} don't connect: nothing leads from {inner} beyond {outer}",
                help="name the axis between them, such as wid_in_wg between laneid and wgid",
            )
        return inner, outer

    # ------------------------------------------------------------------------------------------------------ same places
    def canonical(self, *, fuse: bool = True) -> TileLayout:
        """The same places with as few factors as possible, in the same order of elements.

        With `fuse`, thread axes become the one axis that their scopes span (warpid and laneid become tx).
        """
        bare = self._without_units()
        pair = bare.scope_pair() if fuse else None
        table = FUSED.get(pair, _NOTHING_FUSES) if pair is not None else _NOTHING_FUSES

        def along(axis: Axis) -> tuple[Axis, int]:
            name, factor = table.get(axis.name, (axis.name, 1))
            return axis_of(name), factor

        def fused(each: Iter) -> Iter:
            axis, factor = along(each.axis)
            return each.along(each.stride * factor if each.extent > 1 else each.stride, axis)

        offset: dict[Axis, int] = {}
        for axis, amount in bare.offset.items():
            to, factor = along(axis)
            offset[to] = offset.get(to, 0) + amount * factor
        replica = sorted(map(fused, self.replica), key=lambda each: (each.axis.name, each.stride, each.extent))
        return TileLayout(
            shard=merged([fused(each) for each in bare.shard]),
            replica=replica,
            offset={axis: amount for axis, amount in offset.items() if amount},
        )

    def _without_units(self) -> TileLayout:
        """Without factors of extent 1 (but one, if all are) and offsets of 0."""
        return self._with(
            shard=[each for each in self.shard if each.extent != 1] or [Iter(1, 1, self.shard[0].axis)],
            offset={axis: amount for axis, amount in self.offset.items() if amount},
        )

    def group(self, shape: Sequence[int]) -> tuple[TileLayout, list[int]]:
        """The same places with factors that end where dims of `shape` end, and the bounds of each dim's factors.

        Dim i owns factors bounds[i]..bounds[i+1], at least one.  InvalidLayout where a factor crosses two dims in a way
        that no factor can express, or the sizes differ.
        """
        shard, bounds = grouped(self.shard, tuple(shape))
        return self._with(shard=shard), bounds

    def try_group(self, shape: Sequence[int]) -> tuple[TileLayout, list[int]] | None:
        """`group`, or None where that is impossible."""
        try:
            return self.group(shape)
        except InvalidLayout:
            return None

    def slice(
        self, shape: Sequence[int], region: Sequence[tuple[int, int]], *, fuse: bool = False
    ) -> TileLayout | None:
        """The layout of a box of a tile of `shape`; `region` is (begin, end) a dim.  `fuse` as in `canonical`.

        None where the box's places aren't those of a layout.  InvalidLayout where the layout can't be grouped by the
        shape, or the box isn't inside it.
        """
        if len(region) != len(shape):
            raise InvalidLayout(f"a region of {len(region)} dims in a tile of shape {tuple(shape)}")
        for extent, (begin, end) in zip(shape, region, strict=True):
            if not 0 <= begin < end <= extent:
                raise InvalidLayout(
                    f"{begin}:{end} isn't a part of {extent} elements", help="a region lies inside its buffer"
                )
        plain = self.canonical(fuse=fuse)
        layout, bounds = plain.group(shape)
        shard: list[Iter] = []
        offset = dict(plain.offset)
        for d, (begin, end) in enumerate(region):
            part = sliced_group(layout.shard[bounds[d] : bounds[d + 1]], begin, end - begin)
            if part is None:
                return None
            shard += part.iters
            for axis, amount in part.offset.items():
                offset[axis] = offset.get(axis, 0) + amount
        return TileLayout(
            shard=shard, replica=plain.replica, offset={axis: amount for axis, amount in offset.items() if amount}
        )

    # ------------------------------------------------------------------------------------------------- element widths
    def unpack(self, factor: int) -> TileLayout:
        """Each element as `factor` narrower ones, side by side."""
        wider = [each if each.axis.is_thread else each.along(each.stride * factor) for each in self.shard]
        replica = [each if each.axis.is_thread else each.along(each.stride * factor) for each in self.replica]
        offset = {axis: amount if axis.is_thread else amount * factor for axis, amount in self.offset.items()}
        return self._with([*wider, Iter(factor, 1, M)], replica, offset)

    def pack(self, factor: int) -> TileLayout:
        """`factor` neighbours as one wider element.

        InvalidLayout for a factor below 1, or unless the last factor is dense memory that divides, and every other
        place is a multiple.
        """
        if factor < 1:
            raise InvalidLayout(f"a wider element is made of at least 1, not of {factor}")
        *rest, last = self.shard
        if last.axis.is_thread or last.stride != 1 or last.extent % factor:
            raise InvalidLayout(f"{self} doesn't hold {factor} neighbours side by side in memory")
        amounts = [each.stride for each in (*rest, *self.replica) if not each.axis.is_thread]
        amounts += [amount for axis, amount in self.offset.items() if not axis.is_thread]
        if any(amount % factor for amount in amounts):
            raise InvalidLayout(
                f"{self} has places that aren't multiples of {factor}: wider elements would straddle them"
            )

        def narrower(each: Iter) -> Iter:
            return each if each.axis.is_thread else each.along(each.stride // factor)

        offset = {axis: amount if axis.is_thread else amount // factor for axis, amount in self.offset.items()}
        shard = [*map(narrower, rest), Iter(last.extent // factor, 1, last.axis)]
        return self._with(shard, [narrower(each) for each in self.replica], offset)

    def broadcast(self, extent: int, position: int, axis: Axis | str = M) -> TileLayout:
        """With a factor of stride 0 put in: `extent` elements that share a place."""
        return self._with(shard=(*self.shard[:position], Iter(extent, 0, axis_of(axis)), *self.shard[position:]))

    def permute(self, order: Sequence[int]) -> TileLayout:
        """The factors in another order."""
        if sorted(order) != list(range(len(self.shard))):
            raise InvalidLayout(f"{tuple(order)} is no order of {len(self.shard)} factors")
        return self._with(shard=[self.shard[i] for i in order])


_WIDTHS = ("thread", "warp", "warpgroup", "cta", "cluster")
"""Scopes from narrow to wide."""

_NOTHING_FUSES: Mapping[str, tuple[str, int]] = MappingProxyType({})


def row_major(shape: Sequence[int]) -> TileLayout:
    """Dense memory in row-major order."""
    strides: list[int] = []
    block = 1
    for extent in reversed(shape):
        strides.append(block)
        block *= extent
    iters = [Iter(extent, stride, M) for extent, stride in zip(shape, reversed(strides), strict=True)]
    return TileLayout(shard=iters or [Iter(1, 1, M)])
