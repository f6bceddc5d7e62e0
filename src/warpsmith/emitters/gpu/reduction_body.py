"""The phases of a reduction kernel, for one group of roots.

In: the functions of the fusion, a geometry, a group.  Out: the group's outputs, written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from warpsmith.emitters.elemental import ElementalEmitter, Values
from warpsmith.emitters.elemental.emitter import Indices
from warpsmith.emitters.gpu.reduction_geometry import Bound, Geometry, Shared
from warpsmith.emitters.gpu.reduction_groups import ReductionGroup
from warpsmith.emitters.kernel.entry import KernelFunctions, insert_element
from warpsmith.emitters.kernel.grid import over_ids
from warpsmith.emitters.kernel.outputs import root_map, split_roots, write_outputs
from warpsmith.emitters.kernel.types import element_types, tensor_type
from warpsmith.emitters.shared.loop import first_shape, outputs_of
from warpsmith.emitters.shared.reduction_combiner import Combiner, by_hero, combiner_of
from warpsmith.errors import UnsupportedFusion
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.fusion.partitioner import Epilogue, Subgraph, partition
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.shapes import Shape
from warpsmith.indexing import IndexingMap, bitcast_map
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.dialects import arith, gpu, memory, vector
from warpsmith.kernel import Launch

__all__ = ["GroupEmitter", "ReductionParts"]


class ReductionParts:
    """The functions of the fusion: an epilogue and a side function a group, where it has such roots."""

    def __init__(self, analysis: FusionAnalysis, groups: Sequence[ReductionGroup], chosen: Geometry) -> None:
        self.analysis = analysis
        self.groups = groups
        self.geometry = chosen
        self.combiners = {hero: _combiner(hero) for group in groups for hero in group.heroes}
        heroes = dict(zip(analysis.roots, analysis.heroes, strict=True))
        self._places = {root: self._result_map(heroes[root], root) for group in groups for root in group.reduced}
        epilogues = [
            Epilogue(group.heroes, group.reduced, chosen.output_dims, tuple(self._places[r] for r in group.reduced))
            for group in groups
            if group.reduced
        ]
        sides = [group.sides for group in groups if group.sides]
        self.partition = partition(analysis.body, sides, epilogues=epilogues)
        of_epilogue = iter(self.partition.epilogues)
        of_sides = iter(self.partition.groups)
        self.epilogues = [next(of_epilogue) if group.reduced else None for group in groups]
        self.sides = [next(of_sides) if group.sides else None for group in groups]

    def _result_map(self, hero: HloInstruction, root: HloInstruction) -> IndexingMap | None:
        """From an index over `output_dims`, kept elements in the operand's order in memory, to the index in a root."""
        source = hero.operands[0].array_shape
        reduced = hero.ints("dimensions")
        kept = [d for d in range(source.rank) if d not in reduced]
        dims = [source.dims[d] for d in kept]
        order = [kept.index(d) for d in source.minor_to_major if d in kept]
        map = bitcast_map(self.geometry.output_dims, None, dims, order)
        if root is not hero:
            result, target = first_shape(hero), first_shape(root)
            map = map.then(bitcast_map(result.dims, result.minor_to_major, target.dims, target.minor_to_major))
        map = map.simplify()
        return None if map.is_identity else map

    def operand_map(self, shape: Shape) -> IndexingMap | None:
        """From an index over `input_dims` to the index in an operand, or in a side output."""
        return root_map(self.geometry.input_dims, shape)

    def result_map(self, root: HloInstruction) -> IndexingMap | None:
        """From an index over `output_dims` to the index in a reduced root."""
        return self._places[root]

    def maps(self) -> Iterator[tuple[str, IndexingMap, IndexingMap | None]]:
        """(title, map from ids, place) for each operand and root."""
        count = len(self.groups)
        read, write = self.geometry.input_map(count), self.geometry.output_map(count)
        for group in self.groups:
            for hero in group.heroes:
                for operand in hero.operands[: len(hero.operands) // 2]:
                    yield f"thread -> {operand.name}", read, self.operand_map(operand.array_shape)
            for root in group.sides:
                yield f"thread -> {root.name}", read, self.operand_map(first_shape(root))
            for root in group.reduced:
                yield f"thread -> {root.name}", write, self.result_map(root)


def _combiner(hero: HloInstruction) -> Combiner:
    found = combiner_of(hero)
    if isinstance(found, str):
        raise UnsupportedFusion(found, span=hero.span)
    return found


class GroupEmitter:
    """Emits one group at the entry's insertion point."""

    def __init__(
        self,
        functions: KernelFunctions,
        parts: ReductionParts,
        number: int,
        e: ElementalEmitter,
        ids: Sequence[Value],
        launch: Launch,
    ) -> None:
        self.functions = functions
        self.parts = parts
        self.geometry = parts.geometry
        self.group = parts.groups[number]
        self.epilogue = parts.epilogues[number]
        self.sides = parts.sides[number]
        self.e = e
        self.ids = ids
        self.launch = launch
        self.combiners = [parts.combiners[hero] for hero in self.group.heroes]
        self.outputs = outputs_of(parts.analysis, self.group.reduced)
        self.side_outputs = outputs_of(parts.analysis, self.group.sides)

    def emit(self, outputs: Sequence[Value]) -> list[Value]:
        """The group's code; all outputs, this group's written."""
        results = list(outputs)
        partial = self._read(results)
        if self.epilogue is not None:
            partial = self._shuffle(partial, self.geometry.distance)
            if self.geometry.shared is not None:
                partial = self._across_warps(partial, self.geometry.shared)
            self._write(self.epilogue, partial, results)
        return results

    # -- shared means
    def _over_ids(self, map: IndexingMap) -> IndexingMap:
        return over_ids(map, self.launch)

    @property
    def _groups(self) -> int:
        return self.launch.grid[2]

    def _starts(self) -> list[Value]:
        """Every scalar's start value."""
        return [value for combiner in self.combiners for value in combiner.start(self.e)]

    def _lane(self, values: Sequence[Value], symbols: Sequence[Value]) -> list[Value]:
        """The scalars that a thread's vectors hold for the loop's symbol."""
        if not self.geometry.vectors:
            return list(values)
        return [vector.extract(self.e.b, value, symbols[0]) for value in values]

    # -- the thread's own share
    def _read(self, results: list[Value]) -> list[Value]:
        """The loop over a thread's elements: its partial results; side outputs go to `results`."""
        e, several = self.e, self.geometry.vectors
        starts = self._starts()
        if several:
            starts = [vector.broadcast(e.b, value, self.geometry.vector) for value in starts]
        map = self._over_ids(self.geometry.input_map(self._groups))
        sides = [results[each.number] for each in self.side_outputs]
        names = [f"input_dim{i}" for i in range(map.num_results)]
        iters = [*["iter"] * len(sides), *["acc"] * len(starts)]
        loop = gpu.loop(e.b, self.ids, map, [*sides, *starts], result_names=names, iter_names=iters)
        with e.inside(loop.body):
            count, rank = map.num_symbols, map.num_results
            args = loop.body.args
            indices = tuple(args[count : count + rank])
            tensors = args[count + rank : count + rank + len(sides)]
            kept = args[count + rank + len(sides) :]
            last = args[count - 1]
            current = [vector.extract(e.b, value, last) for value in kept] if several else list(kept)
            new: list[Value] = []
            for combiner, values in by_hero(self.combiners, current):
                new += combiner.combine(e, values, self._operands(combiner, indices))
            if several:
                new = [vector.insert(e.b, value, old, last) for value, old in zip(new, kept, strict=True)]
            written = self._side_outputs(indices, tensors)
            gpu.yield_(e.b, [*written, *new])
        for output, tensor in zip(self.side_outputs, loop.results, strict=False):
            results[output.number] = tensor
        return list(loop.results[len(sides) :])

    def _operands(self, combiner: Combiner, indices: Indices) -> Values:
        """A hero's operands at an index over `input_dims`, in the types of partial results."""
        hero = combiner.hero
        values = [
            self.e.evaluate(operand, self._at(self.parts.operand_map(operand.array_shape), indices))
            for operand in hero.operands[: len(hero.operands) // 2]
        ]
        return combiner.widened(self.e, values)

    def _at(self, map: IndexingMap | None, indices: Indices) -> Indices:
        return indices if map is None else self.e.apply(map, indices)

    def _side_outputs(self, indices: Indices, tensors: Sequence[Value]) -> list[Value]:
        roots = self.group.sides
        if self.sides is None:
            return []
        places = {root: self._at(self.parts.operand_map(first_shape(root)), indices) for root in roots}
        values = self.functions.call(self.e.b, self.sides, self.functions.inputs, places[roots[0]])
        return write_outputs(self.e, self.side_outputs, tensors, split_roots(roots, values), places)

    # -- other threads
    def _shuffle(self, values: list[Value], distance: int) -> list[Value]:
        """Combine lanes up to `distance` apart; the first of them has the result."""
        if not distance:
            return values
        found: list[Value] = []
        for combiner, own in by_hero(self.combiners, values):
            name = self.functions.function_of(combiner.computation)
            found += gpu.shuffle_reduce(self.e.b, name, own, distance)
        return found

    def _across_warps(self, values: list[Value], shared: Shared) -> list[Value]:
        """Through shared memory to where one warp reads what belongs together, and combines it."""
        e = self.e
        tiles = [
            gpu.allocate_shared(e.b, tensor_type(Shape(dtype, shared.dims)))
            for combiner in self.combiners
            for dtype in combiner.kept
        ]
        map = self._over_ids(self.geometry.shared_map(shared.write, shared.writers, self._groups))
        loop = gpu.loop(e.b, self.ids, map, tiles, result_names=["shmem_dim0", "shmem_dim1"])
        with e.inside(loop.body):
            count = map.num_symbols
            place = tuple(loop.body.args[count : count + 2])
            elements = self._elements(self._lane(values, loop.body.args[:count]))
            carried = loop.body.args[count + 2 :]
            gpu.yield_(
                e.b, [insert_element(e.b, e, parts, t, place) for parts, t in zip(elements, carried, strict=True)]
            )
        synced = gpu.sync_threads(e.b, loop.results)
        return self._gather(synced, shared)

    def _elements(self, values: Sequence[Value]) -> list[Values]:
        """Flat scalars as those of each tile's element."""
        return [parts for combiner, own in by_hero(self.combiners, values) for parts in combiner.split(own)]

    def _gather(self, tiles: Sequence[Value], shared: Shared) -> list[Value]:
        """Read the tiles and shuffle; all threads do, those that aren't readers with start values."""
        e, readers, distance = self.e, shared.readers, shared.distance
        map = self._over_ids(self.geometry.shared_map(shared.read, (), self._groups))
        if not self.geometry.vectors:
            return self._shuffle(self._from_tiles(tiles, e.apply(map, self.ids), readers), distance)
        inits = [vector.broadcast(e.b, value, self.geometry.vector) for value in self._starts()]
        loop = gpu.loop(e.b, self.ids, map, inits, result_names=["shmem_dim0", "shmem_dim1"])
        with e.inside(loop.body):
            lane, row, column, *kept = loop.body.args
            values = self._shuffle(self._from_tiles(tiles, (row, column), readers), distance)
            gpu.yield_(e.b, [vector.insert(e.b, v, old, lane) for v, old in zip(values, kept, strict=True)])
        return list(loop.results)

    def _from_tiles(self, tiles: Sequence[Value], place: Indices, readers: Sequence[Bound]) -> list[Value]:
        e = self.e
        condition: Value | None = None
        starts: list[Value] = []
        if readers:
            ((expr, interval),) = readers
            ids = self._over_ids(self.geometry.shared_map([expr], (), self._groups))
            (value,) = e.apply(ids, self.ids)
            condition = arith.cmpi(e.b, "sle", value, e.index(interval.upper))
            starts = self._starts()
        found: list[Value] = []
        types = [element_types(dtype) for combiner in self.combiners for dtype in combiner.kept]
        for tile, parts in zip(tiles, types, strict=True):
            for part in range(len(parts)):
                at = place if len(parts) == 1 else (*place, e.index(part))
                if condition is None:
                    found.append(memory.extract(e.b, tile, at))
                else:
                    found.append(gpu.predicated_extract(e.b, tile, at, condition, starts[len(found)]))
        return found

    # -- the result
    def _write(self, epilogue: Subgraph, values: list[Value], results: list[Value]) -> None:
        """The epilogue of the writers' results, to the outputs."""
        e = self.e
        initial = [c.initial(e) if c.initial_counts else None for c in self.combiners]
        map = self._over_ids(self.geometry.output_map(self._groups))
        dests = [results[each.number] for each in self.outputs]
        names = [f"dim{i}" for i in range(map.num_results)]
        loop = gpu.loop(e.b, self.ids, map, dests, result_names=names)
        with e.inside(loop.body):
            count, rank = map.num_symbols, map.num_results
            args = loop.body.args
            indices = tuple(args[count : count + rank])
            injected: list[Value] = []
            heroes = by_hero(self.combiners, self._lane(values, args[:count]))
            for (combiner, own), first in zip(heroes, initial, strict=True):
                whole = own if first is None else combiner.combine(e, first, own)
                injected += combiner.narrowed(e, whole)
            scalars = self.functions.call(e.b, epilogue, self.functions.inputs, indices, injected)
            roots = self.group.reduced
            places = {root: self._at(self.parts.result_map(root), indices) for root in roots}
            written = write_outputs(e, self.outputs, args[count + rank :], split_roots(roots, scalars), places)
            gpu.yield_(e.b, written)
        for output, tensor in zip(self.outputs, loop.results, strict=True):
            results[output.number] = tensor
