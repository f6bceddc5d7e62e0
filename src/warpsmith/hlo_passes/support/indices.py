"""What gather and scatter share: their indices as a table of N rows with K components."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from warpsmith.dtypes import by_name
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.shapes import Shape
from warpsmith.hlo_passes.kit import Rewriting, of_dims

__all__ = ["flat_indices", "with_batch_components"]


def flat_indices(at: Rewriting, indices: HloInstruction, vector_dim: int) -> HloInstruction:
    """The indices as [N, K]: the vector's dim last (of size 1 where there is none), the others one dim, in order."""
    dims = indices.array_shape.dims
    if vector_dim == len(dims):
        return at.reshape(indices, (math.prod(dims), 1))
    order = [d for d in range(len(dims)) if d != vector_dim] + [vector_dim]
    turned = at.transpose(indices, order)
    return at.reshape(turned, (math.prod(dims[d] for d in order[:-1]), dims[vector_dim]))


def _wide_enough(at: Rewriting, indices: HloInstruction, count: int) -> HloInstruction:
    """The indices in a type that holds numbers below `count`."""
    shape = indices.array_shape
    if count - 1 <= np.iinfo(shape.dtype.numpy).max:
        return indices
    return at.add("convert", Shape(by_name("s64"), shape.dims), [indices])


def with_batch_components(
    at: Rewriting,
    indices: HloInstruction,
    component_dims: Sequence[int],
    vector_dim: int,
    operand_batch: Sequence[int],
    indices_batch: Sequence[int],
) -> tuple[HloInstruction, tuple[int, ...], int]:
    """The indices with a component more for each batch dim (its own number there), what the components index, and the
    dim of the vector, which is the last one."""
    if not operand_batch:
        return indices, tuple(component_dims), vector_dim
    dims = list(indices.array_shape.dims)
    if vector_dim == len(dims):
        indices = at.reshape(indices, (*dims, 1))
    else:
        indices = at.transpose(indices, [d for d in range(len(dims)) if d != vector_dim] + [vector_dim])
    outer = indices.array_shape.dims[:-1]
    indices = _wide_enough(at, indices, max(outer))
    # Dims of the indices behind the vector have moved one to the front.
    places = [d if d < vector_dim else d - 1 for d in indices_batch]
    numbers: list[HloInstruction] = []
    for place in places:
        shape = Shape(indices.array_shape.dtype, (*outer, 1))
        numbers.append(at.add("iota", shape, [], {"iota_dimension": place}))
    total = indices.array_shape.dims[-1] + len(numbers)
    joined = at.add(
        "concatenate", of_dims(indices, (*outer, total)), [*numbers, indices], {"dimensions": (len(outer),)}
    )
    return joined, (*operand_batch, *component_dims), len(outer)
