"""Small maps and sizes that the indexing rules of all ops share.

In: instructions and sizes.  Out: sizes and maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

from warpsmith.hlo.attributes import SliceDim
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.shapes import Shape
from warpsmith.indexing import IndexingMap, bitcast_map, symbol

__all__ = ["Maps", "between", "dims_of", "every_index", "identity", "int_of", "slices", "to_scalar"]

Maps = list[IndexingMap]  # of one operand; more than one where it is read at several places; none when unknown


def dims_of(instruction: HloInstruction) -> tuple[int, ...]:
    """The sizes of the result; of the first array of a tuple (variadic ops have equal ones)."""
    shape = instruction.shape
    if isinstance(shape, Shape):
        return shape.dims
    leaves = shape.leaves()
    return leaves[0].dims if leaves else ()


@lru_cache(maxsize=1024)
def identity(sizes: tuple[int, ...]) -> IndexingMap:
    """The identity map over a shape."""
    return IndexingMap.identity(sizes)


@lru_cache(maxsize=1024)
def to_scalar(sizes: tuple[int, ...]) -> IndexingMap:
    """From any index of a shape to a scalar: (d0, d1) -> ()."""
    return IndexingMap.constant((), sizes)


def every_index(sizes: Sequence[int]) -> IndexingMap:
    """From a scalar: ()[s0, s1] -> (s0, s1)."""
    return IndexingMap.from_sizes([symbol(i) for i in range(len(sizes))], (), sizes)


def between(source: HloInstruction, target: HloInstruction) -> Maps:
    """From an index of `source` to that of the element at the same place in `target`; unknown for unequal counts."""
    a, b = source.array_shape, target.array_shape
    if a.elements != b.elements:
        return []
    return [bitcast_map(a.dims, a.minor_to_major, b.dims, b.minor_to_major)]


def slices(instruction: HloInstruction) -> list[SliceDim]:
    """The rows of the attribute `slice`."""
    parts = cast("tuple[object, ...]", instruction.attr("slice", tuple))
    return [part for part in parts if isinstance(part, SliceDim)]


def int_of(instruction: HloInstruction, name: str) -> int:
    """An integer attribute, 1 where it is missing."""
    value = instruction.attributes.get(name, 1)
    assert isinstance(value, int)
    return value
