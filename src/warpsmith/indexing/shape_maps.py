"""Maps that follow from shapes alone: layouts, bitcasts, reshapes, and the default spread of work over a grid.

In: dimension sizes and layouts (minor-to-major lists of dimension numbers).  Out: expressions and maps.
`bitcast_map` always goes through the physical shapes, which gives the same map as XLA's three cases (transpose,
reshape, transpose-reshape-transpose).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from warpsmith.errors import IndexingError
from warpsmith.indexing.expr import Expr, add, const, dim, floordiv, mod, mul, symbol
from warpsmith.indexing.interval import Interval
from warpsmith.indexing.map import GRID_NAMES, IndexingMap, Variable, variables
from warpsmith.indexing.rewire import remove_unused_symbols

__all__ = [
    "bitcast_map",
    "delinearize",
    "descending",
    "grid_variables",
    "linear_index",
    "linearize",
    "reshape_map",
    "strides_of",
    "transpose_map",
    "work_item_map",
]


def descending(rank: int) -> tuple[int, ...]:
    """The minor-to-major list of the default (row-major) layout."""
    return tuple(range(rank - 1, -1, -1))


def strides_of(sizes: Sequence[int], minor_to_major: Sequence[int] | None = None) -> tuple[int, ...]:
    """The distance in memory, in elements, between neighbours along each dimension."""
    strides = [0] * len(sizes)
    stride = 1
    for d in descending(len(sizes)) if minor_to_major is None else minor_to_major:
        strides[d] = stride
        stride *= sizes[d]
    return tuple(strides)


def linearize(indices: Sequence[Expr], sizes: Sequence[int], minor_to_major: Sequence[int] | None = None) -> Expr:
    """The position in memory of an element, from its indices."""
    return add(0, *[mul(index, s) for index, s in zip(indices, strides_of(sizes, minor_to_major), strict=True)])


def linear_index(sizes: Sequence[int], minor_to_major: Sequence[int] | None = None) -> Expr:
    """The position in memory of element (d0, d1, ...)."""
    return linearize([dim(i) for i in range(len(sizes))], sizes, minor_to_major)


def delinearize(position: Expr, sizes: Sequence[int], minor_to_major: Sequence[int] | None = None) -> tuple[Expr, ...]:
    """The indices of the element at a position that is known to be in bounds.

    Dimensions of size 1 have index 0; the most major other dimension needs no remainder.
    """
    if 0 in sizes:
        return (const(0),) * len(sizes)
    order = descending(len(sizes)) if minor_to_major is None else minor_to_major
    strides = strides_of(sizes, order)
    major = next((d for d in reversed(order) if sizes[d] > 1), None)
    return tuple(
        const(0)
        if size == 1
        else floordiv(position, strides[d])
        if d == major
        else mod(floordiv(position, strides[d]), size)
        for d, size in enumerate(sizes)
    )


def transpose_map(sizes: Sequence[int], permutation: Sequence[int]) -> IndexingMap:
    """(d0, d1, ...) -> (d[permutation[0]], d[permutation[1]], ...) over a shape of `sizes`."""
    return IndexingMap.from_sizes([dim(p) for p in permutation], sizes)


def _reshape(sources: Sequence[Expr], from_sizes: Sequence[int], to_sizes: Sequence[int]) -> list[Expr]:
    """Indices in the shape `to_sizes` from those in `from_sizes`, by smallest groups of equal products."""
    if 0 in from_sizes or 0 in to_sizes:
        return [const(0)] * len(to_sizes)
    result: list[Expr] = []
    i = j = 0
    while i < len(to_sizes) or j < len(from_sizes):
        first_i, first_j = i, j
        to_count = from_count = 1
        while True:
            if i < len(to_sizes) and (i == first_i or to_count < from_count):
                to_count *= to_sizes[i]
                i += 1
            elif j < len(from_sizes) and (j == first_j or from_count < to_count):
                from_count *= from_sizes[j]
                j += 1
            else:
                break
        group = sources[first_j:j]
        if i - first_i == 1 and j - first_j == 1:
            result += group
        else:
            result += delinearize(linearize(group, from_sizes[first_j:j]), to_sizes[first_i:i])
    return result


def _check_counts(a: Sequence[int], b: Sequence[int]) -> None:
    if math.prod(a) != math.prod(b):
        raise IndexingError(f"shapes {list(a)} and {list(b)} differ in their numbers of elements")


@lru_cache(maxsize=1024)
def _reshape_map(from_sizes: tuple[int, ...], to_sizes: tuple[int, ...]) -> IndexingMap:
    _check_counts(from_sizes, to_sizes)
    sources = [dim(i) for i in range(len(from_sizes))]
    return IndexingMap.from_sizes(_reshape(sources, from_sizes, to_sizes), from_sizes).simplify(preserve_points=True)


def reshape_map(from_sizes: Sequence[int], to_sizes: Sequence[int]) -> IndexingMap:
    """Index in a row-major shape -> index of the same element in another.  Unequal counts are an IndexingError."""
    return _reshape_map(tuple(from_sizes), tuple(to_sizes))


@lru_cache(maxsize=1024)
def _bitcast_map(
    from_sizes: tuple[int, ...], from_layout: tuple[int, ...], to_sizes: tuple[int, ...], to_layout: tuple[int, ...]
) -> IndexingMap:
    _check_counts(from_sizes, to_sizes)
    for sizes, layout in ((from_sizes, from_layout), (to_sizes, to_layout)):
        if sorted(layout) != list(range(len(sizes))):
            raise IndexingError(f"{list(layout)} is no layout of a shape of rank {len(sizes)}")
    physical = [from_sizes[d] for d in reversed(from_layout)]
    sources: list[Expr] = [dim(d) for d in reversed(from_layout)]
    targets = _reshape(sources, physical, [to_sizes[d] for d in reversed(to_layout)])
    by_dimension = dict(zip(reversed(to_layout), targets, strict=True))
    results = [by_dimension[d] for d in range(len(to_sizes))]
    return IndexingMap.from_sizes(results, from_sizes).simplify(preserve_points=True)


def bitcast_map(
    from_sizes: Sequence[int],
    from_minor_to_major: Sequence[int] | None,
    to_sizes: Sequence[int],
    to_minor_to_major: Sequence[int] | None,
) -> IndexingMap:
    """Index in one shape -> index of the element at the same place in memory in another shape.

    A layout of None is row-major.  Unequal element counts, or a list that is no layout, are an IndexingError.
    """
    return _bitcast_map(
        tuple(from_sizes),
        descending(len(from_sizes)) if from_minor_to_major is None else tuple(from_minor_to_major),
        tuple(to_sizes),
        descending(len(to_sizes)) if to_minor_to_major is None else tuple(to_minor_to_major),
    )


def grid_variables(block: Sequence[int], grid: Sequence[int]) -> tuple[Variable, ...]:
    """The six dimensions th_x, th_y, th_z, bl_x, bl_y, bl_z of a launch (missing y and z sizes are 1)."""
    sizes = [*block, *[1] * (3 - len(block)), *grid, *[1] * (3 - len(grid))]
    return variables(sizes, GRID_NAMES)


def work_item_map(
    sizes: Sequence[int],
    minor_to_major: Sequence[int] | None,
    block: Sequence[int],
    grid: Sequence[int],
    unroll: int = 1,
) -> IndexingMap:
    """Thread and block ids (and unrolled element) -> index in a shape: consecutive threads take neighbours in memory.

    `block` and `grid` have one to three sizes.  Dimensions th_x .. bl_z, then symbols `chunk_id` (when the grid must
    walk over the shape several times) and `vector_index` (the element within a thread's `unroll` neighbours); a
    symbol with one value is left out.
    """
    layout = descending(len(sizes)) if minor_to_major is None else tuple(minor_to_major)
    return _work_item_map(tuple(sizes), layout, grid_variables(block, grid), unroll)


@lru_cache(maxsize=256)
def _work_item_map(
    sizes: tuple[int, ...], minor_to_major: tuple[int, ...], dims: tuple[Variable, ...], unroll: int
) -> IndexingMap:
    tx, ty, tz, bx, by, bz = (v.size for v in dims)
    th_x, th_y, th_z, bl_x, bl_y, bl_z = (dim(i) for i in range(6))
    elements = math.prod(sizes)
    threads = tx * ty * tz * bx * by * bz
    thread = add(
        th_x,
        mul(bl_x, tx),
        mul(add(th_y, mul(bl_y, ty)), tx * bx),
        mul(add(th_z, mul(bl_z, tz)), tx * bx * ty * by),
    )
    position = add(mul(thread, unroll), mul(symbol(0), threads * unroll), symbol(1))
    chunks = -(-elements // (threads * unroll))
    symbols = (Variable("chunk_id", Interval.of_size(chunks)), Variable("vector_index", Interval.of_size(unroll)))
    return remove_unused_symbols(
        IndexingMap.make(
            dims,
            delinearize(position, sizes, minor_to_major),
            range_vars=symbols,
            constraints=[(position, Interval.of_size(elements))],
        ).simplify()
    )
