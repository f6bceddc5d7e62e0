"""Arrays as a kernel's memory: element [i, j] of an array is element [i, j] of the buffer, wherever its layout has it.

In: an array of a parameter's shape.  Out: flat memory that its layout reaches into, and the array back from such
memory.  Padding between elements is zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from warpsmith.arrays import Array
from warpsmith.errors import ArgumentMismatch
from warpsmith.ir.core.types import MemRefType, numpy_dtype
from warpsmith.tile.frontend.values import ParameterInfo
from warpsmith.tile.layout import ComposeLayout
from warpsmith.tile.model.buffers import AnyLayout, memory_elements, plain

__all__ = ["array_of", "memory_of", "swizzled"]


def memory_of(parameter: ParameterInfo, array: Array, type: MemRefType, *, copied: bool = True) -> Array:
    """A parameter's memory, of the elements of `type`; `copied`: never the array's own.

    ArgumentMismatch where the layout has two elements at one place, and the array two values for them.
    """
    flat = np.ascontiguousarray(array).reshape(-1)
    if parameter.layout is None:
        found = flat.copy() if copied and flat.base is not None else flat
    else:
        places = _places(parameter.layout, array.shape)
        found = np.zeros(memory_elements(parameter.layout, array.shape), array.dtype)
        found[places] = flat
        kept = found[places]
        if not ((kept == flat) | ((kept != kept) & (flat != flat))).all():
            raise ArgumentMismatch(f"the layout of '{parameter.name}' has several elements at one place; they differ")
    return found.view(numpy_dtype(type.element))


def array_of(parameter: ParameterInfo, memory: Array, like: Array) -> Array:
    """The array that lies in a parameter's memory, of the shape and type of `like`."""
    typed = memory.view(like.dtype)
    if parameter.layout is None:
        return typed[: like.size].reshape(like.shape)
    return typed[_places(parameter.layout, like.shape)].reshape(like.shape)


def _places(layout: AnyLayout, shape: Sequence[int]) -> Array:
    """Where each element lies, in row-major order: its number split over the layout's factors, last one fastest."""
    number = np.arange(math.prod(shape))
    inner = plain(layout)
    found = np.full(number.shape, sum(inner.offset.values()))
    for each in reversed(inner.shard):
        found += number % each.extent * each.stride
        number = number // each.extent
    return swizzled(layout, found) if isinstance(layout, ComposeLayout) else found


def swizzled(layout: ComposeLayout, places: Array) -> Array:
    """Where the swizzle of a layout puts what its tile has at some places."""
    mask, low = (1 << layout.swizzle_len) - 1, layout.per_element
    high = low + layout.atom_len
    if layout.inner:
        return places ^ ((places >> high & mask) << low)
    return places ^ ((places >> low & mask) << high)
