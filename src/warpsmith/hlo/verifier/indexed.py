"""Rules of ops that read or write where indices say: dynamic slices, gather, scatter.

In: an instruction.  Out: the shape of its result.  `INDEXED` is the table.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.shapes import UNBOUNDED, AnyShape, Shape
from warpsmith.hlo.verifier.common import (
    Rule,
    agree,
    array_operand,
    brief,
    dimensions,
    fail,
    of_dims,
    one_or_tuple,
)
from warpsmith.hlo.verifier.reductions import check_function, combiner_types

__all__ = ["INDEXED"]


def _check_starts(instruction: HloInstruction, first: int, rank: int) -> None:
    """Start indices from operand `first` on: one integer scalar a dimension, or one vector."""
    count = len(instruction.operands) - first
    shapes = [array_operand(instruction, index) for index in range(first, len(instruction.operands))]
    vector = count == 1 and shapes[0].rank == 1
    if count != rank and not vector:
        raise fail(
            instruction,
            "index.count",
            f"{instruction.opcode} of rank {rank} needs {rank} start indices, {count} are given",
        )
    for operand, shape in zip(instruction.operands[first:], shapes, strict=True):
        if not shape.dtype.is_integer or not (shape.dims == () or (vector and agree(shape.dims, (rank,)))):
            raise fail(
                instruction, "index.type", f"start index '{operand.name}' is {brief(shape)}, not an integer scalar"
            )
        if shape.dtype is not shapes[0].dtype:
            raise fail(
                instruction,
                "index.type",
                f"start index '{operand.name}' is {shape.dtype}, the first one {shapes[0].dtype}",
            )


def _dynamic_slice(instruction: HloInstruction) -> AnyShape:
    operand = array_operand(instruction, 0)
    _check_starts(instruction, 1, operand.rank)
    sizes = instruction.ints("dynamic_slice_sizes")
    if len(sizes) != operand.rank:
        raise fail(instruction, "dimensions.count", f"{len(sizes)} slice sizes for an array of rank {operand.rank}")
    for dim, (size, whole) in enumerate(zip(sizes, operand.dims, strict=True)):
        if size < 0 or (size > whole and whole != UNBOUNDED):
            raise fail(
                instruction, "dynamic-slice.sizes", f"slice size {size} doesn't fit in dimension {dim} of size {whole}"
            )
    return of_dims(operand.dtype, sizes)


def _dynamic_update_slice(instruction: HloInstruction) -> AnyShape:
    operand, update = array_operand(instruction, 0), array_operand(instruction, 1)
    _check_starts(instruction, 2, operand.rank)
    if update.dtype is not operand.dtype:
        raise fail(instruction, "operand.same-type", f"an update of {update.dtype} goes into {operand.dtype}")
    if update.rank != operand.rank:
        raise fail(instruction, "update.sizes", f"an update of {brief(update)} doesn't fit into {brief(operand)}")
    for dim, (size, whole) in enumerate(zip(update.dims, operand.dims, strict=True)):
        if size > whole and UNBOUNDED not in (size, whole):
            raise fail(
                instruction,
                "update.sizes",
                f"an update of {brief(update)} doesn't fit into {brief(operand)}: "
                f"it has size {size} in dimension {dim}, the array {whole}",
            )
    return operand


def _index_vector(instruction: HloInstruction, indices: Shape) -> tuple[int, list[int]]:
    """How many components an index vector has, and the sizes of the indices' other dimensions."""
    if not indices.dtype.is_integer:
        raise fail(instruction, "index.type", f"the indices are {brief(indices)}, not integers")
    dim = instruction.attr("index_vector_dim", int)
    if not 0 <= dim <= indices.rank:
        raise fail(instruction, "gather.index-vector", f"index_vector_dim is {dim}, the indices are {brief(indices)}")
    if dim == indices.rank:
        return 1, list(indices.dims)
    return indices.dims[dim], [size for each, size in enumerate(indices.dims) if each != dim]


def _check_index_map(instruction: HloInstruction, name: str, operand: Shape, components: int) -> tuple[int, ...]:
    mapped = dimensions(instruction, operand.rank, name)
    if len(mapped) != components and components != UNBOUNDED:
        raise fail(
            instruction,
            "gather.index-map",
            f"{name} names {len(mapped)} dimensions, an index vector has {components} components",
        )
    return mapped


def _batching(instruction: HloInstruction, names: tuple[str, str], operand: Shape, indices: Shape) -> tuple[int, ...]:
    """The operand's batching dimensions; they pair up with the indices' ones."""
    of_operand = dimensions(instruction, operand.rank, names[0], default=(), ascending=True)
    of_indices = dimensions(instruction, indices.rank, names[1], default=())
    if len(of_operand) != len(of_indices):
        raise fail(
            instruction,
            "gather.batching",
            f"{names[0]} names {len(of_operand)} dimensions, {names[1]} {len(of_indices)}",
        )
    if instruction.attr("index_vector_dim", int) in of_indices:
        raise fail(instruction, "gather.batching", f"{names[1]} names the dimension of the index vectors")
    for a, b in zip(of_operand, of_indices, strict=True):
        if not agree((operand.dims[a],), (indices.dims[b],)):
            raise fail(
                instruction,
                "gather.batching",
                f"dimension {a} of the operand has size {operand.dims[a]}, "
                f"dimension {b} of the indices, its partner, {indices.dims[b]}",
            )
    return of_operand


def _check_disjoint(instruction: HloInstruction, rule: str, **dims: Sequence[int]) -> None:
    """InvalidHlo when the two attributes `dims` have a dimension in common."""
    first, second = dims
    both = set(dims[first]) & set(dims[second])
    if both:
        raise fail(instruction, rule, f"{first} and {second} both name dimension {min(both)}")


def _interleave(rank: int, at: Sequence[int], placed: Sequence[int], others: Sequence[int]) -> list[int]:
    """`rank` sizes: those of `placed` at positions `at`, those of `others` in the rest, in order."""
    found, rest = dict(zip(at, placed, strict=True)), iter(others)
    return [found[dim] if dim in found else next(rest) for dim in range(rank)]


def _gather(instruction: HloInstruction) -> AnyShape:
    operand, indices = array_operand(instruction, 0), array_operand(instruction, 1)
    components, batch = _index_vector(instruction, indices)
    mapped = _check_index_map(instruction, "start_index_map", operand, components)
    collapsed = dimensions(instruction, operand.rank, "collapsed_slice_dims", ascending=True)
    batching = _batching(instruction, ("operand_batching_dims", "start_indices_batching_dims"), operand, indices)
    sizes, offsets = instruction.ints("slice_sizes"), instruction.ints("offset_dims")
    rank = len(offsets) + len(batch)
    dimensions(instruction, rank, "offset_dims", ascending=True)
    _check_disjoint(instruction, "gather.dimensions", collapsed_slice_dims=collapsed, operand_batching_dims=batching)
    _check_disjoint(instruction, "gather.batching", start_index_map=mapped, operand_batching_dims=batching)
    if len(sizes) != operand.rank:
        raise fail(instruction, "gather.slice-sizes", f"{len(sizes)} slice sizes for an array of rank {operand.rank}")
    for dim, (size, whole) in enumerate(zip(sizes, operand.dims, strict=True)):
        if size < 0 or (size > whole and whole != UNBOUNDED):
            raise fail(
                instruction, "gather.slice-sizes", f"slice size {size} doesn't fit in dimension {dim} of size {whole}"
            )
        if size > 1 and dim in (*collapsed, *batching):
            raise fail(
                instruction, "gather.collapsed", f"dimension {dim} is collapsed or batched, its slice size is {size}"
            )
    window = [size for dim, size in enumerate(sizes) if dim not in collapsed and dim not in batching]
    if len(window) != len(offsets):
        raise fail(
            instruction,
            "gather.dimensions",
            f"offset_dims names {len(offsets)} dimensions, {len(window)} of the operand are neither collapsed nor "
            "batched",
        )
    dims = _interleave(rank, offsets, window, batch)
    empty = [dim for dim in (*collapsed, *batching) if sizes[dim] == 0]
    if empty and 0 not in dims:
        raise fail(instruction, "gather.empty", f"elements are read from dimension {empty[0]}, whose slice size is 0")
    return of_dims(operand.dtype, dims)


def _scatter(instruction: HloInstruction) -> AnyShape:
    count = (len(instruction.operands) - 1) // 2
    shapes = [array_operand(instruction, index) for index in range(len(instruction.operands))]
    operands, indices, updates = shapes[:count], shapes[count], shapes[count + 1 :]
    for what, group in (("operands", operands), ("updates", updates)):
        for shape in group:
            if not agree(shape.dims, group[0].dims):
                raise fail(
                    instruction, "operand.sizes", f"the {what} of scatter are {brief(group[0])} and {brief(shape)}"
                )
    operand, update = operands[0], updates[0]
    components, batch = _index_vector(instruction, indices)
    mapped = _check_index_map(instruction, "scatter_dims_to_operand_dims", operand, components)
    windows = dimensions(instruction, update.rank, "update_window_dims", ascending=True)
    inserted = dimensions(instruction, operand.rank, "inserted_window_dims", ascending=True)
    batching = _batching(instruction, ("input_batching_dims", "scatter_indices_batching_dims"), operand, indices)
    _check_disjoint(instruction, "scatter.windows", inserted_window_dims=inserted, input_batching_dims=batching)
    _check_disjoint(instruction, "gather.batching", scatter_dims_to_operand_dims=mapped, input_batching_dims=batching)
    kept = [size for dim, size in enumerate(operand.dims) if dim not in inserted and dim not in batching]
    if len(kept) != len(windows):
        raise fail(
            instruction,
            "scatter.windows",
            f"update_window_dims names {len(windows)} dimensions, {len(kept)} of the operand are neither inserted nor "
            "batched",
        )
    if update.rank != len(windows) + len(batch):
        raise fail(
            instruction,
            "scatter.updates",
            f"updates are {brief(update)}, {len(windows)} window dimensions and {len(batch)} dimensions of the indices "
            f"make rank {len(windows) + len(batch)}",
        )
    for dim, whole in zip(windows, kept, strict=True):
        if update.dims[dim] > whole and whole != UNBOUNDED:
            raise fail(
                instruction,
                "update.sizes",
                f"window dimension {dim} of the updates has size {update.dims[dim]}, the operand's {whole}",
            )
    expected = _interleave(update.rank, windows, [update.dims[dim] for dim in windows], batch)
    if not agree(expected, update.dims):
        raise fail(
            instruction,
            "scatter.updates",
            f"updates are {brief(update)}, the indices {brief(indices)} need [{','.join(map(str, expected))}]",
        )
    called = instruction.attr("to_apply", HloComputation)
    types = [each.dtype for each in operands]
    check_function(instruction, called, [*types, *(each.dtype for each in updates)], "scatter")
    combiner_types(instruction, called, types)
    return one_or_tuple(operands)


INDEXED: dict[str, Rule] = {
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update_slice,
    "gather": _gather,
    "scatter": _scatter,
}
"""The rule of each op that reads or writes where indices say."""
