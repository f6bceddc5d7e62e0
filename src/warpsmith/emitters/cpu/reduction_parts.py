"""What the CPU's reductions share: the fusion's functions, and how operands, partial results and roots are used.

In: an analysis with reduction dimensions, the dims that the emitter sees.  Out: scalars of operands, results written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from warpsmith.emitters.elemental import ElementalEmitter, Values
from warpsmith.emitters.elemental.emitter import Indices
from warpsmith.emitters.kernel.entry import KernelFunctions
from warpsmith.emitters.kernel.outputs import root_map, split_roots, write_outputs
from warpsmith.emitters.shared.loop import entry_emitter, first_shape, outputs_of
from warpsmith.emitters.shared.reduction_combiner import Combiner, by_hero, combiner_of
from warpsmith.errors import UnsupportedFusion
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.fusion.partitioner import Epilogue, partition
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.shapes import Shape
from warpsmith.indexing import IndexingMap, bitcast_map
from warpsmith.indexing.rewire import remove_unused_symbols
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.dialects import gpu, vector

__all__ = ["ReductionParts"]


class ReductionParts:
    """Operands are read at an index over `input_dims`, results written at one over `output_dims`, both row-major."""

    def __init__(
        self,
        analysis: FusionAnalysis,
        input_dims: Sequence[int],
        output_dims: Sequence[int],
        *,
        numerics: str,
        name: str,
    ) -> None:
        heroes = dict(zip(analysis.roots, analysis.heroes, strict=True))
        self.input_dims, self.output_dims = tuple(input_dims), tuple(output_dims)
        self.reduced = tuple(root for root, hero in heroes.items() if hero.opcode == "reduce")
        self.sides = tuple(root for root, hero in heroes.items() if hero.opcode != "reduce")
        self.heroes = tuple(dict.fromkeys(heroes[root] for root in self.reduced))
        self.places = {root: self._result_map(heroes[root], root) for root in self.reduced}
        self.combiners = [_combiner(hero) for hero in self.heroes]
        maps = tuple(self.places[root] for root in self.reduced)
        parts = partition(
            *(analysis.body, [self.sides] if self.sides else []),
            epilogues=[Epilogue(self.heroes, self.reduced, self.output_dims, maps)],
        )
        self.epilogue = parts.epilogues[0]
        self.side_function = parts.groups[0] if self.sides else None
        self.outputs = outputs_of(analysis, self.reduced)
        self.side_outputs = outputs_of(analysis, self.sides)
        self.functions = KernelFunctions(analysis, parts, numerics=numerics, name=name)
        self.e: ElementalEmitter = entry_emitter(self.functions)

    def _result_map(self, hero: HloInstruction, root: HloInstruction) -> IndexingMap | None:
        """From an index over `output_dims`, kept elements in the operand's order in memory, to the index in a root."""
        source = hero.operands[0].array_shape
        reduced = hero.ints("dimensions")
        kept = [d for d in range(source.rank) if d not in reduced]
        order = [kept.index(d) for d in source.minor_to_major if d in kept]
        map = bitcast_map(self.output_dims, None, [source.dims[d] for d in kept], order)
        if root is not hero:
            result, target = first_shape(hero), first_shape(root)
            map = map.then(bitcast_map(result.dims, result.minor_to_major, target.dims, target.minor_to_major))
        map = map.simplify()
        return None if map.is_identity else map

    def operand_map(self, shape: Shape) -> IndexingMap | None:
        """From an index over `input_dims` to the index in an operand, or in a side output."""
        return root_map(self.input_dims, shape)

    def maps(self, read: IndexingMap, write: IndexingMap) -> Iterator[tuple[str, IndexingMap]]:
        """(title, map from the work group) for each operand and root."""
        for hero in self.heroes:
            for operand in hero.operands[: len(hero.operands) // 2]:
                yield f"work group -> {operand.name}", _through(read, self.operand_map(operand.array_shape))
        for root in self.sides:
            yield f"work group -> {root.name}", _through(read, self.operand_map(first_shape(root)))
        for root in self.reduced:
            yield f"work group -> {root.name}", _through(write, self.places[root])

    # -- partial results, flat: scalar after scalar, hero after hero
    def starts(self) -> list[Value]:
        """The neutral values that the sums start from, one for each value of each reduction."""
        return [value for combiner in self.combiners for value in combiner.start(self.e)]

    def combined(self, current: Sequence[Value], other: Callable[[Combiner], Sequence[Value]]) -> list[Value]:
        """Each hero's partial result combined with what `other` gives for it."""
        found: list[Value] = []
        for combiner, own in by_hero(self.combiners, current):
            found += combiner.combine(self.e, own, other(combiner))
        return found

    def with_operands(self, current: Sequence[Value], indices: Indices) -> list[Value]:
        """Each hero's partial result combined with its operands at an index over `input_dims`."""
        e = self.e

        def operands(combiner: Combiner) -> Values:
            sources = combiner.hero.operands[: len(combiner.hero.operands) // 2]
            values = [e.evaluate(each, self._at(self.operand_map(each.array_shape), indices)) for each in sources]
            return combiner.widened(e, values)

        return self.combined(current, operands)

    def with_others(self, current: Sequence[Value], others: Sequence[Value]) -> list[Value]:
        """Partial results combined pairwise."""
        given = {combiner.hero: own for combiner, own in by_hero(self.combiners, others)}
        return self.combined(current, lambda combiner: given[combiner.hero])

    def whole(self, partial: Sequence[Value]) -> list[Value]:
        """Results in the heroes' types; initial values that no partial result began with are in them."""
        found: list[Value] = []
        for combiner, own in by_hero(self.combiners, partial):
            value: Sequence[Value] = own
            if combiner.initial_counts:
                value = combiner.combine(self.e, combiner.initial(self.e), own)
            found += combiner.narrowed(self.e, value)
        return found

    # -- outputs
    def write_sides(self, indices: Indices, tensors: Sequence[Value]) -> list[Value]:
        """Side outputs at an index over `input_dims`."""
        if self.side_function is None:
            return []
        places = {root: self._at(self.operand_map(first_shape(root)), indices) for root in self.sides}
        values = self.functions.call(self.e.b, self.side_function, self.functions.inputs, places[self.sides[0]])
        return write_outputs(self.e, self.side_outputs, tensors, split_roots(self.sides, values), places)

    def write(self, results: Sequence[Value], indices: Indices, tensors: Sequence[Value]) -> list[Value]:
        """The epilogue of results at an index over `output_dims`."""
        values = self.functions.call(self.e.b, self.epilogue, self.functions.inputs, indices, results)
        places = {root: self._at(self.places[root], indices) for root in self.reduced}
        return write_outputs(self.e, self.outputs, tensors, split_roots(self.reduced, values), places)

    def _at(self, map: IndexingMap | None, indices: Indices) -> Indices:
        return indices if map is None else self.e.apply(map, indices)

    def ordered(self, sides: Sequence[Value], results: Sequence[Value]) -> list[Value]:
        """All outputs in ABI order."""
        found = dict(enumerate(self.functions.outputs))
        found.update({output.number: value for output, value in zip(self.side_outputs, sides, strict=True)})
        found.update({output.number: value for output, value in zip(self.outputs, results, strict=True)})
        return [found[i] for i in range(len(found))]

    def open_loop(self, dims: Sequence[Value], map: IndexingMap, inits: Sequence[Value]) -> Operation:
        """A loop over a map's symbols that carries `inits`; its body is still empty."""
        names = [f"dim{i}" for i in range(map.num_results)]
        return gpu.loop(self.e.b, dims, map, inits, result_names=names)

    def broadcast(self, values: Sequence[Value], lanes: int) -> list[Value]:
        """Each scalar in all of `lanes` lanes of a vector."""
        return [vector.broadcast(self.e.b, value, lanes) for value in values]


def _through(map: IndexingMap, place: IndexingMap | None) -> IndexingMap:
    return remove_unused_symbols(map if place is None else map.then(place).simplify())


def _combiner(hero: HloInstruction) -> Combiner:
    found = combiner_of(hero)
    if isinstance(found, str):
        raise UnsupportedFusion(found, span=hero.span)
    return found
