"""Seeded input of scatters that reaches what they can get wrong: indices that keep promises, sums that are subnormal.

In: a module and its seeded arrays.  Out: the arrays, changed in place, where what a scatter is given are parameters of
the entry, or of a fusion that the entry calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import by_name
from warpsmith.fusion.combiners import combiner_opcode
from warpsmith.fusion.scatters import Scatter
from warpsmith.hlo.evaluator.ops.scatter import destinations
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule
from warpsmith.numerics.inputs import indices, subnormals

__all__ = ["make_scatters_meet"]

_EVERY = 4
_SELECTING = frozenset(("add", "minimum", "maximum"))
_S64 = by_name("s64")


def make_scatters_meet(module: HloModule, arrays: list[Array], *, seed: int, subnormal: bool) -> None:
    """Indices become mostly in range, sorted and unique where that is promised.

    `subnormal`: at every fourth place of a sum, minimum or maximum, operand and updates become subnormal numbers.
    """
    if any(len(each.shape.leaves()) != 1 for each in module.entry.parameters):
        return
    for instruction, given in _scatters(module):
        scatter = Scatter(instruction)
        if scatter.count > 1 or given[1] is None or 0 in scatter.operand_dims:
            continue
        if scatter.index_map and scatter.slices:
            arrays[given[1]] = _index_vectors(scatter, seed, given[1])
        if subnormal and None not in given:
            _make_subnormal(scatter, arrays, [number for number in given if number is not None], seed)


def _scatters(module: HloModule) -> Iterator[tuple[HloInstruction, list[int | None]]]:
    """Each scatter of the entry and its fusions, and which of the entry's parameters its operands are."""
    for instruction in module.entry.instructions:
        given = [each.parameter_number for each in instruction.operands]
        if instruction.opcode == "scatter":
            yield instruction, given
        elif instruction.opcode == "fusion":
            for each in instruction.attr("calls", HloComputation).instructions:
                if each.opcode == "scatter":
                    inner = [operand.parameter_number for operand in each.operands]
                    yield each, [None if number is None else given[number] for number in inner]


def _index_vectors(scatter: Scatter, seed: int, parameter: int) -> Array:
    """The indices of a scatter; those of several numbers count through the places that they may name.

    Where slices may not meet, each begins a slice's size from the next, so that they don't overlap in part.
    """
    dtype, is_unique = scatter.indices.array_shape.dtype, scatter.is_unique
    sizes = [(scatter.operand_dims[d], scatter.window[d]) for d in scatter.index_map]
    steps = [max(1, window) if is_unique else 1 for _, window in sizes]
    limits = [max(1, (size - window) // step + 1) for (size, window), step in zip(sizes, steps, strict=True)]
    flags = {"ordered": scatter.is_sorted, "unique": is_unique}
    rest = indices((scatter.slices,), _S64, prod(limits), seed=seed, parameter=parameter, **flags)
    columns: list[Array] = []
    for limit, step in zip(reversed(limits[1:]), reversed(steps[1:]), strict=True):
        rest, column = np.divmod(rest, limit)
        columns.insert(0, column * step)
    columns.insert(0, rest * steps[0])
    if dtype.bits >= 8:
        info = np.iinfo(dtype.numpy)
        columns = [np.clip(column, info.min, info.max) for column in columns]
    dims = [size for d, size in enumerate(scatter.indices.array_shape.dims) if d != scatter.vector_dim]
    axis = min(scatter.vector_dim, len(dims))
    found = np.stack([column.reshape(dims) for column in columns], axis=axis)
    return found.astype(dtype.numpy).reshape(scatter.indices.array_shape.dims)


def _make_subnormal(scatter: Scatter, arrays: list[Array], given: list[int], seed: int) -> None:
    operand, numbers, updates = given
    dtype = scatter.operands[0].array_shape.dtype
    if combiner_opcode(scatter.computation) not in _SELECTING or not dtype.is_float:
        return
    kept, places, order = destinations(scatter.instruction, arrays[numbers])
    chosen = np.zeros(kept.shape, np.bool_)
    chosen[kept] = places % _EVERY == _EVERY - 1
    moved = arrays[updates].transpose(order)
    moved[chosen] = subnormals(dtype, int(chosen.sum()), seed=seed, parameter=updates)
    flat = arrays[operand].reshape(-1)[_EVERY - 1 :: _EVERY]
    flat[:] = subnormals(dtype, flat.size, seed=seed, parameter=operand)
