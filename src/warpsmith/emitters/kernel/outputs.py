"""What the emitters of both machines share: where roots' elements go, and writing them to the kernel's outputs.

In: sizes and shapes; values of roots and where they go.  Out: maps; inserts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from warpsmith.emitters.elemental import ElementalEmitter, Values
from warpsmith.emitters.elemental.emitter import Indices
from warpsmith.emitters.kernel.entry import insert_element
from warpsmith.emitters.kernel.types import element_types
from warpsmith.emitters.shared.loop import Output
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.shapes import Shape
from warpsmith.indexing import IndexingMap, bitcast_map
from warpsmith.ir.core.ssa import Value

__all__ = ["root_map", "split_roots", "to_dims", "write_outputs"]


def to_dims(map: IndexingMap, sizes: Sequence[int], dims: Sequence[int]) -> IndexingMap:
    """A map to an index over `sizes` as a map to the index of the same element over `dims`, both row-major."""
    return map if tuple(sizes) == tuple(dims) else map.then(bitcast_map(sizes, None, dims, None)).simplify()


def root_map(sizes: Sequence[int], shape: Shape) -> IndexingMap | None:
    """Index in a row-major array of `sizes` to the index of the same element in `shape`; None when they are one."""
    found = bitcast_map(sizes, None, shape.dims, shape.minor_to_major)
    return None if found.is_identity else found


def split_roots(roots: Sequence[HloInstruction], values: Values) -> dict[HloInstruction, Values]:
    """Each root's share of the scalars that a function of all of them gives."""
    found: dict[HloInstruction, Values] = {}
    first = 0
    for root in roots:
        last = first + sum(len(element_types(leaf.dtype)) for leaf in root.shape.leaves())
        found[root] = values[first:last]
        first = last
    return found


def write_outputs(
    e: ElementalEmitter,
    outputs: Sequence[Output],
    tensors: Sequence[Value],
    values: Mapping[HloInstruction, Values],
    places: Mapping[HloInstruction, Indices],
) -> list[Value]:
    """Insert each output's scalars at its root's place; the new tensors."""
    new: list[Value] = []
    for output, tensor in zip(outputs, tensors, strict=True):
        parts = values[output.root][output.part : output.part + len(element_types(output.shape.dtype))]
        new.append(insert_element(e.b, e, parts, tensor, places[output.root]))
    return new
