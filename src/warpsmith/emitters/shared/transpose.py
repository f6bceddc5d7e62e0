"""What the two transposes share: which roots go through the tile, the functions of the fusion, and how they are used.

In: an analysis with a transpose description.  Out: heroes' values in the first phase, epilogues in the second, side
outputs.  Indices are those of the first hero's operand, and of the first hero.
XLA: `xla/backends/gpu/codegen/emitters/transpose.cc`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.emitters.elemental import ElementalEmitter, Values
from warpsmith.emitters.elemental.emitter import Indices
from warpsmith.emitters.kernel.entry import KernelFunctions, insert_element
from warpsmith.emitters.kernel.outputs import root_map, split_roots, write_outputs
from warpsmith.emitters.kernel.types import element_types, tensor_type
from warpsmith.emitters.shared.loop import first_shape, outputs_of
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.fusion.heroes import tiled_transpose
from warpsmith.fusion.partitioner import Epilogue, partition
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.shapes import Shape
from warpsmith.indexing import IndexingMap, bitcast_map
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.dialects import gpu, memory

__all__ = ["TransposeParts", "TransposeRoots", "roots_of"]


@dataclass(frozen=True, slots=True)
class TransposeRoots:
    """The transposes that need a tile (each once), the roots behind them, and the other roots."""

    heroes: tuple[HloInstruction, ...]
    transposed: tuple[HloInstruction, ...]
    sides: tuple[HloInstruction, ...]


def roots_of(analysis: FusionAnalysis) -> TransposeRoots:
    """Heroes and roots of a fusion of kind transpose."""
    pairs = list(zip(analysis.roots, analysis.heroes, strict=True))
    through = [(root, hero) for root, hero in pairs if tiled_transpose(hero) is not None]
    transposed = tuple(root for root, _ in through)
    return TransposeRoots(
        *(tuple(dict.fromkeys(hero for _, hero in through)), transposed),
        tuple(root for root, _ in pairs if root not in transposed),
    )


class TransposeParts:
    """The functions of the fusion, seen from indices over `input_dims` (first phase) and `output_dims` (second).

    Heroes and their operands are row-major: other layouts get no tile.
    """

    def __init__(self, analysis: FusionAnalysis) -> None:
        self.roots = roots_of(analysis)
        hero = self.roots.heroes[0]
        self.input_dims, self.output_dims = hero.operands[0].array_shape.dims, hero.array_shape.dims
        first = self.roots.transposed[0]
        dims = first.array_shape.dims
        order = first.array_shape.minor_to_major
        # The epilogue's own indices are those of its first root; that all roots are bitcasts of one another is what a
        # hero search walks through.
        maps = tuple(_between(dims, order, root.array_shape) for root in self.roots.transposed)
        self.partition = partition(
            *(analysis.body, [self.roots.sides] if self.roots.sides else []),
            epilogues=[Epilogue(self.roots.heroes, self.roots.transposed, dims, maps)],
        )
        self.outputs = outputs_of(analysis, self.roots.transposed)
        self.side_outputs = outputs_of(analysis, self.roots.sides)

    # -- maps
    def input_map(self, hero: HloInstruction) -> IndexingMap | None:
        """From an index over `input_dims` to the index in the hero's operand; None when they are one."""
        return root_map(self.input_dims, hero.operands[0].array_shape)

    def output_map(self, root: HloInstruction) -> IndexingMap | None:
        """From an index over `output_dims` to the index in a transposed root; None when they are one."""
        return root_map(self.output_dims, root.array_shape)

    def side_map(self, root: HloInstruction) -> IndexingMap | None:
        """From an index over `input_dims` to the index in a side output; None when they are one."""
        return root_map(self.input_dims, first_shape(root))

    # -- first phase
    def tiles(self, e: ElementalEmitter, dims: Sequence[int]) -> list[Value]:
        """A shared tile of `dims` for each hero."""
        shapes = [Shape(hero.array_shape.dtype, tuple(dims)) for hero in self.roots.heroes]
        return [gpu.allocate_shared(e.b, tensor_type(shape)) for shape in shapes]

    def input_values(self, e: ElementalEmitter, indices: Indices) -> list[Values]:
        """Each hero's operand at an index over `input_dims`."""
        return [e.evaluate(hero.operands[0], _at(e, self.input_map(hero), indices)) for hero in self.roots.heroes]

    def fill(
        self, e: ElementalEmitter, values: Sequence[Values], tiles: Sequence[Value], place: Indices
    ) -> list[Value]:
        """Insert each hero's element at its place of the tile."""
        return [insert_element(e.b, e, parts, t, place) for parts, t in zip(values, tiles, strict=True)]

    def side_values(
        self, functions: KernelFunctions, e: ElementalEmitter, indices: Indices
    ) -> dict[HloInstruction, Values]:
        """All side outputs at an index over `input_dims`."""
        sides = self.roots.sides
        if not sides:
            return {}
        at = _at(e, self.side_map(sides[0]), indices)
        return split_roots(sides, functions.call(e.b, self.partition.groups[0], functions.inputs, at))

    def write_sides(
        self,
        e: ElementalEmitter,
        values: dict[HloInstruction, Values],
        indices: Indices,
        tensors: Sequence[Value],
    ) -> list[Value]:
        """Insert side outputs at an index over `input_dims`."""
        places = {root: _at(e, self.side_map(root), indices) for root in self.roots.sides}
        return write_outputs(e, self.side_outputs, tensors, values, places)

    # -- second phase
    def element(self, e: ElementalEmitter, hero: HloInstruction, tile: Value, indices: Indices) -> Values:
        """The hero's element at a place of its tile."""
        types = element_types(hero.array_shape.dtype)
        if len(types) == 1:
            return (memory.extract(e.b, tile, indices),)
        return tuple(memory.extract(e.b, tile, (*indices, e.index(part))) for part in range(len(types)))

    def write_transposed(
        self,
        functions: KernelFunctions,
        e: ElementalEmitter,
        heroes: Sequence[Values],
        indices: Indices,
        tensors: Sequence[Value],
    ) -> list[Value]:
        """The epilogue of the heroes' elements at an index over `output_dims`, inserted."""
        roots = self.roots.transposed
        places = {root: _at(e, self.output_map(root), indices) for root in roots}
        injected = [part for each in heroes for part in each]
        epilogue = self.partition.epilogues[0]
        values = functions.call(e.b, epilogue, functions.inputs, places[roots[0]], injected)
        return write_outputs(e, self.outputs, tensors, split_roots(roots, values), places)

    def results(self, functions: KernelFunctions, sides: Sequence[Value], transposed: Sequence[Value]) -> list[Value]:
        """The entry's results in ABI order."""
        found = dict(enumerate(functions.outputs))
        found.update({output.number: value for output, value in zip(self.side_outputs, sides, strict=True)})
        found.update({output.number: value for output, value in zip(self.outputs, transposed, strict=True)})
        return [found[i] for i in range(len(found))]


def _between(dims: tuple[int, ...], order: tuple[int, ...], shape: Shape) -> IndexingMap | None:
    found = bitcast_map(dims, order, shape.dims, shape.minor_to_major)
    return None if found.is_identity else found


def _at(e: ElementalEmitter, map: IndexingMap | None, indices: Indices) -> Indices:
    return indices if map is None else e.apply(map, indices)
