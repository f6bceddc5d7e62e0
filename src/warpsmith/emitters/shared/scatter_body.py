"""The code of a scatter: where a slice goes, how an update is combined in, and two ways to share the work.

    ScatterBody.by_update   threads take elements of the updates
    IndexSpread.by_index    warps take neighbouring indices, which are sorted; lanes share each slice

A third, for updates whose order counts, is `scatter_order`; CPUs share out the output (`cpu/scatter.py`).

In: the functions of the fusion and a scatter.  Out: the outputs, written.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.dtypes import DType
from warpsmith.emitters.elemental import ElementalEmitter, Values
from warpsmith.emitters.elemental.converts import convert
from warpsmith.emitters.elemental.emitter import Indices
from warpsmith.emitters.elemental.scalars import Scalars
from warpsmith.emitters.kernel.entry import KernelFunctions, insert_element
from warpsmith.emitters.kernel.grid import over_ids
from warpsmith.emitters.kernel.types import element_types
from warpsmith.fusion.combiners import partial_combiner
from warpsmith.fusion.scatters import Scatter
from warpsmith.hlo.module import HloComputation
from warpsmith.indexing import (
    IndexingMap,
    Interval,
    Variable,
    add,
    bitcast_map,
    delinearize,
    dim,
    floordiv,
    grid_variables,
    mod,
    mul,
    symbol,
    work_item_map,
)
from warpsmith.indexing.rewire import remove_unused_symbols
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.core.types import I1, INDEX, IntegerType, integer
from warpsmith.ir.core.types import vector as vector_type
from warpsmith.ir.dialects import arith, gpu, memory, vector
from warpsmith.kernel import Launch

__all__ = ["IndexSpread", "ScatterBody", "update_map"]


def update_map(scatter: Scatter, launch: Launch) -> IndexingMap:
    """(ids)[vector_index] -> index in the updates."""
    shape = scatter.updates[0].array_shape
    return work_item_map(shape.dims, shape.minor_to_major, launch.block, launch.grid, launch.unroll)


class ScatterBody:
    """What all ways share; and the way that takes elements of the updates."""

    def __init__(
        self, functions: KernelFunctions, scatter: Scatter, e: ElementalEmitter, ids: Sequence[Value], launch: Launch
    ) -> None:
        self.functions = functions
        self.scatter = scatter
        self.e = e
        self.ids = ids
        self.launch = launch

    # -- where a slice goes
    def position(self, number: Value) -> Indices:
        """A slice's number as an index over the updates' scatter dims."""
        sizes = [self.scatter.update_dims[d] for d in self.scatter.scatter_dims]
        return self.e.apply(bitcast_map((self.scatter.slices,), None, sizes, None), (number,))

    def update_index(self, position: Indices, window: Sequence[Value]) -> Indices:
        """Where the updates hold an element of a slice: `window` is its place there, by `window_dims`."""
        found: dict[int, Value] = dict(zip(self.scatter.scatter_dims, position, strict=True))
        found.update(zip(self.scatter.window_dims, window, strict=True))
        return tuple(found[d] for d in range(len(found)))

    def numbers(self, position: Indices) -> list[Value]:
        """The index vector of a slice, as index values."""
        scatter = self.scatter
        found: list[Value] = []
        for k in range(len(scatter.index_map)):
            at = list(position)
            if scatter.vector_dim < scatter.indices.array_shape.rank:
                at.insert(scatter.vector_dim, self.e.index(k))
            (value,) = self.e.evaluate(scatter.indices, tuple(at))
            found.append(self._as_index(value))
        return found

    def _as_index(self, value: Value) -> Value:
        signed = self.scatter.indices.array_shape.dtype.is_signed
        if isinstance(value.type, IntegerType) and value.type.width < 8:
            value = arith.cast(self.e.b, "extsi" if signed else "extui", value, integer(32))
        return arith.cast(self.e.b, "index_cast" if signed else "index_castui", value, INDEX)

    def fits(self, numbers: Sequence[Value]) -> Value:
        """Whether the slice lies in the operand: one unsigned comparison refuses negative numbers, too."""
        e, scatter = self.e, self.scatter
        found: Value | None = None
        for number, d in zip(numbers, scatter.index_map, strict=True):
            limit = scatter.operand_dims[d] - scatter.window[d]
            if limit < 0:
                return e.constant(0, I1)
            test = arith.cmpi(e.b, "ule", number, e.index(limit))
            found = test if found is None else arith.binary(e.b, "andi", found, test)
        return e.constant(1, I1) if found is None else found

    def place(self, numbers: Sequence[Value], position: Indices, window: Sequence[Value]) -> Indices:
        """Where an element of a slice goes: `window` is its place there, by `kept_dims`."""
        e, scatter = self.e, self.scatter
        found: list[Value | None] = [None] * len(scatter.operand_dims)
        for number, d in zip(numbers, scatter.index_map, strict=True):
            found[d] = number
        for d, at in scatter.batching:
            found[d] = position[at - (at > scatter.vector_dim)]
        for d, index in zip(scatter.kept_dims, window, strict=True):
            known = found[d]
            found[d] = index if known is None else arith.binary(e.b, "addi", known, index)
        return tuple(e.index(0) if each is None else each for each in found)

    # -- what happens there
    def updates(self, index: Indices) -> list[Values]:
        """The updates at an index."""
        return [self.e.evaluate(each, index) for each in self.scatter.updates]

    def combined(
        self, current: Sequence[Values], updates: Sequence[Values], computation: HloComputation | None = None
    ) -> list[Values]:
        """The values of the scatter's computation, or of another."""
        computation = computation or self.scatter.computation
        flat = self.functions.call_computation(self.e, computation, [*current, *updates])
        found: list[Values] = []
        for leaf in computation.root.shape.leaves():
            width = len(element_types(leaf.dtype))
            found.append(tuple(flat[:width]))
            flat = flat[width:]
        return found

    def put(self, tensors: Sequence[Value], place: Indices, updates: Sequence[Values]) -> list[Value]:
        """Combine an element of the updates into the outputs."""
        if self.scatter.overwrites:
            return self.write(tensors, place, updates)
        if self.scatter.needs_step:
            return [self._step(tensors[0], place, updates[0])]
        return self.write(tensors, place, self.combined(self.read(tensors, place), updates))

    def read(self, tensors: Sequence[Value], place: Indices) -> list[Values]:
        """What the operands hold at a place."""
        e = self.e
        widths = [len(element_types(each.array_shape.dtype)) for each in self.scatter.operands]
        return [
            tuple(memory.extract(e.b, tensor, (*place, e.index(part))) for part in range(width))
            if width > 1
            else (memory.extract(e.b, tensor, place),)
            for tensor, width in zip(tensors, widths, strict=True)
        ]

    def write(self, tensors: Sequence[Value], place: Indices, values: Sequence[Values]) -> list[Value]:
        """The operands with other values at a place."""
        e = self.e
        return [insert_element(e.b, e, parts, tensor, place) for tensor, parts in zip(tensors, values, strict=True)]

    def _step(self, tensor: Value, place: Indices, update: Values) -> Value:
        """A read-modify-write that no other thread comes in between; of a complex sum, one of each part."""
        for part in range(len(update)):
            at = place if len(update) == 1 else (*place, self.e.index(part))
            step = gpu.atomic_rmw(self.e.b, tensor, at)
            with self.e.inside(step.body):
                current: list[Value] = [self.e.constant(0, each.type) for each in update]
                current[part] = step.body.args[0]
                new = self.combined([tuple(current)], [update])[0]
                gpu.yield_(self.e.b, [new[part]])
            tensor = step.results[0]
        return tensor

    # -- threads take elements of the updates
    def by_update(self, tensors: Sequence[Value]) -> list[Value]:
        """Each thread's elements lie in one slice, or it has but one."""
        e, scatter = self.e, self.scatter
        whole = update_map(scatter, self.launch)
        first = whole
        if whole.num_symbols:
            first = remove_unused_symbols(whole.with_symbol_bounds(0, Interval.point(0)).simplify())
        rank = whole.num_results
        names = [f"update_dim{i}" for i in range(rank)]
        outer = gpu.loop(e.b, self.ids, over_ids(first, self.launch), tensors, result_names=names)
        with e.inside(outer.body):
            index, carried = tuple(outer.body.args[:rank]), outer.body.args[rank:]
            position = tuple(index[d] for d in scatter.scatter_dims)
            numbers = self.numbers(position)

            def put() -> Sequence[Value]:
                inner = gpu.loop(e.b, self.ids, over_ids(whole, self.launch), carried, result_names=names)
                with e.inside(inner.body):
                    args = inner.body.args[whole.num_symbols :]
                    own = tuple(args[:rank])
                    window = [own[d] for d in scatter.window_dims]
                    place = self.place(numbers, position, window)
                    gpu.yield_(e.b, self.put(args[rank:], place, self.updates(own)))
                return inner.results

            gpu.yield_(e.b, e.only_if(self.fits(numbers), carried, put))
        return list(outer.results)


class IndexSpread(ScatterBody):
    """Warps take neighbouring indices of a simple scatter; lanes share each slice.

    A sum or product of floats narrower than f32 is held in f32, and rounded once, when it is written out.
    """

    def __init__(
        self, functions: KernelFunctions, scatter: Scatter, e: ElementalEmitter, ids: Sequence[Value], launch: Launch
    ) -> None:
        super().__init__(functions, scatter, e, ids, launch)
        device = functions.analysis.device
        self.warp = device.warp_size
        self.per_warp, self.together = scatter.indices_per_warp(device.core_count)
        self.vector = scatter.elements_per_lane(self.warp)
        self.rounds = -(-scatter.slice_elements // (self.warp * self.vector))
        self.dtype = scatter.updates[0].array_shape.dtype
        self.partial, self.held = partial_combiner(scatter.computation, self.dtype)

    def index_map(self) -> IndexingMap:
        """(ids)[index_id_loop, index_vector_id] -> number of the slice."""
        warps = self.launch.block[0] // self.warp
        warp = add(mul(dim(3), warps), floordiv(dim(0), self.warp))
        number = add(mul(warp, self.per_warp), mul(symbol(0), self.together), symbol(1))
        loops = (("index_id_loop", self.per_warp // self.together), ("index_vector_id", self.together))
        return IndexingMap.make(
            grid_variables(self.launch.block, self.launch.grid),
            [number],
            range_vars=[Variable(name, Interval.of_size(size)) for name, size in loops],
            constraints=[(number, Interval.of_size(self.scatter.slices))],
        ).simplify()

    def window_map(self) -> IndexingMap:
        """(ids)[update_loop, vector_id] -> place in the slice."""
        linear = add(mul(symbol(0), self.vector * self.warp), mul(mod(dim(0), self.warp), self.vector), symbol(1))
        loops = (("update_loop", self.rounds), ("vector_id", self.vector))
        return IndexingMap.make(
            grid_variables(self.launch.block, self.launch.grid),
            delinearize(linear, self.scatter.window),
            range_vars=[Variable(name, Interval.of_size(size)) for name, size in loops],
            constraints=[(linear, Interval.of_size(self.scatter.slice_elements))],
        ).simplify()

    def by_index(self, tensor: Value) -> Value:
        """One slice after the other; those that go to one place meet in registers first."""
        if self.per_warp == 1:
            return self._alone(tensor)
        e, scatter = self.e, self.scatter
        none = arith.constant(e.b, -1, INDEX)
        types = element_types(self.held)
        held = [e.constant(0, vector_type((self.rounds * self.vector,), type)) for type in types]
        count = len(scatter.index_map)
        inits = [*[none] * count, e.constant(0, I1), *held, tensor]
        map = over_ids(self.index_map(), self.launch)
        names = [*["last"] * count, "fits", *["held"] * len(held), "iter"]
        loop = gpu.loop(e.b, self.ids, map, inits, result_names=["index_id"], iter_names=names)
        with e.inside(loop.body):
            _, _, number, *carried = loop.body.args
            last, fitted, kept, out = carried[:count], carried[count], carried[count + 1 : -1], carried[-1]
            numbers = self.numbers((number,))
            changed = self._differ(numbers, last)
            out = self._flush(arith.binary(e.b, "andi", changed, fitted), kept, last, out)
            fits = e.b.op1("arith.select", (changed, self.fits(numbers), fitted), I1)
            kept = self._take(fits, changed, number, kept)
            gpu.yield_(e.b, [*numbers, fits, *kept, out])
        last, fits = loop.results[:count], loop.results[count]
        return self._flush(fits, loop.results[count + 1 : -1], last, loop.results[-1])

    def _differ(self, numbers: Sequence[Value], last: Sequence[Value]) -> Value:
        found: Value | None = None
        for a, b in zip(numbers, last, strict=True):
            test = arith.cmpi(self.e.b, "ne", a, b)
            found = test if found is None else arith.binary(self.e.b, "ori", found, test)
        return self.e.constant(1, I1) if found is None else found

    def _converted(self, values: Values, source: DType, target: DType) -> Values:
        return convert(Scalars(self.e, self.scatter.instruction, (), source), values, source, target)

    def _held_at(self, loop: Value, lane: Value) -> Value:
        """The place of an element among those that a lane holds."""
        map = IndexingMap.from_sizes([add(mul(dim(0), self.vector), dim(1))], [self.rounds, self.vector])
        return self.e.apply(map, (loop, lane))[0]

    def _flush(self, condition: Value, held: Sequence[Value], last: Sequence[Value], tensor: Value) -> Value:
        """Combine what is held into the output, if the condition holds."""
        e = self.e

        def put() -> Sequence[Value]:
            loop = gpu.loop(e.b, self.ids, over_ids(self.window_map(), self.launch), [tensor])
            with e.inside(loop.body):
                update_loop, lane, *window, out = loop.body.args
                at = self._held_at(update_loop, lane)
                values = tuple(vector.extract(e.b, each, at) for each in held)
                rounded = self._converted(values, self.held, self.dtype)
                gpu.yield_(e.b, self.put([out], self.place(last, (), window), [rounded]))
            return loop.results

        return e.only_if(condition, [tensor], put)[0]

    def _take(self, condition: Value, changed: Value, number: Value, held: Sequence[Value]) -> list[Value]:
        """Hold the slice's update, alone where its place is new, if the condition holds."""
        e, map = self.e, over_ids(self.window_map(), self.launch)

        def take() -> Sequence[Value]:
            loop = gpu.loop(e.b, self.ids, map, held)
            with e.inside(loop.body):
                update_loop, lane = loop.body.args[:2]
                window = loop.body.args[2 : 2 + map.num_results]
                kept = loop.body.args[2 + map.num_results :]
                at = self._held_at(update_loop, lane)
                update = self._converted(self.updates((number, *window))[0], self.dtype, self.held)
                current = tuple(vector.extract(e.b, each, at) for each in kept)
                both = self.combined([current], [update], self.partial)[0]
                new = [
                    e.b.op1("arith.select", (changed, alone, sum), alone.type)
                    for alone, sum in zip(update, both, strict=True)
                ]
                gpu.yield_(e.b, [vector.insert(e.b, v, old, at) for v, old in zip(new, kept, strict=True)])
            return loop.results

        return e.only_if(condition, held, take)

    def _alone(self, tensor: Value) -> Value:
        """One index a warp: nothing to hold."""
        e = self.e
        map = over_ids(self.index_map(), self.launch)
        outer = gpu.loop(e.b, self.ids, map, [tensor], result_names=["index_id"])
        with e.inside(outer.body):
            _, _, number, carried = outer.body.args
            numbers = self.numbers((number,))

            def put() -> Sequence[Value]:
                inner = gpu.loop(e.b, self.ids, over_ids(self.window_map(), self.launch), [carried])
                with e.inside(inner.body):
                    _, _, *window, out = inner.body.args
                    place = self.place(numbers, (), window)
                    gpu.yield_(e.b, self.put([out], place, self.updates((number, *window))))
                return inner.results

            gpu.yield_(e.b, e.only_if(self.fits(numbers), [carried], put))
        return outer.results[0]
