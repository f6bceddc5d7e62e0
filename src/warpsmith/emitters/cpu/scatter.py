"""The scatter emitter for CPUs: each core owns a part of the output, and takes the updates that go there in order.

    work group: the places [low, high) along the first dim that indices count
        output[low .. high] = operand[low .. high], unless they are one buffer
        for some slices at a time:  those that fit and begin here, by number, without a branch  ->  list
                                    for each in the list:  output[start + i] = combine(output[start + i], update[i])

No two cores write to one element, so nothing is lost and nothing needs an atomic step; each element sees its updates in
their order, so results don't depend on the number of cores.  A slice that doesn't fit is dropped as a whole.

In: an analysis whose root is a scatter.  Out: the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warpsmith.emitters.cpu.shares import ONE_PIECE
from warpsmith.emitters.elemental import ElementalEmitter
from warpsmith.emitters.elemental.emitter import Indices
from warpsmith.emitters.kernel.entry import KernelFunctions
from warpsmith.emitters.kernel.origin import EmittedKernel
from warpsmith.emitters.kernel.results import make_kernel
from warpsmith.emitters.shared.loop import entry_emitter
from warpsmith.emitters.shared.scatter_body import ScatterBody
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.fusion.partitioner import partition
from warpsmith.fusion.scatters import Scatter
from warpsmith.indexing import Expr, IndexingMap, Interval, Variable, add, const, dim, mul, symbol
from warpsmith.ir.core import types
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.core.types import I8, I32, INDEX, TensorType, integer, tensor
from warpsmith.ir.dialects import arith, cpu, gpu, memory, scf, vector
from warpsmith.kernel import Launch

__all__ = ["NAME", "emit", "matches"]

NAME = "scatter"
LISTED = 1024  # slices looked at before any is written: their list stays in the first cache
LANES = 16  # of them at a time
EXAMINED = 0.25  # looking at a slice costs as much as so much of an element of it, with vectors of 512 bits
WORTH_IT = 0.8  # of one core's time


def matches(analysis: FusionAnalysis) -> str | None:
    """None: any scatter can be taken in order."""
    return None if analysis.roots[0].opcode == "scatter" else "the root is no scatter"


def _in_place(analysis: FusionAnalysis, scatter: Scatter) -> bool:
    """Whether the operands are buffers that nothing else in the fusion reads."""
    operands = scatter.operands
    users = [user for each in operands for user in analysis.body.users(each)]
    return (
        all(each.opcode == "parameter" for each in operands)
        and len(set(operands)) == len(operands) == len(users)
        and not any(each in operands for each in (scatter.indices, *scatter.updates))
    )


def _parts_of(analysis: FusionAnalysis, scatter: Scatter) -> int:
    """How many work groups share the output.  Each examines all slices, which pays only where slices are long."""
    if scatter.slices * scatter.slice_elements <= ONE_PIECE or not scatter.index_map:
        return 1
    cores = min(analysis.device.core_count, scatter.operand_dims[scatter.index_map[0]])
    return cores if EXAMINED + scatter.slice_elements / max(1, cores) < WORTH_IT * scatter.slice_elements else 1


def emit(analysis: FusionAnalysis, *, numerics: str, name: str) -> EmittedKernel:
    """The kernel: one part of the output a work group."""
    scatter = Scatter(analysis.roots[0])
    in_place = _in_place(analysis, scatter)
    wanted = dict.fromkeys((scatter.indices, *scatter.updates, *(() if in_place else scatter.operands)))
    parts = partition(analysis.body, [(each,) for each in wanted])
    aliases = {i: each.parameter_number or 0 for i, each in enumerate(scatter.operands)} if in_place else {}
    functions = KernelFunctions(analysis, parts, numerics=numerics, name=name, aliases=aliases)
    body = _Part(functions, scatter, _parts_of(analysis, scatter))
    results: Sequence[Value] = functions.outputs
    if not in_place:
        results = body.start(results)
    results = body.update(results)
    body.e.drop_unused()
    launch = Launch((body.groups, 1, 1), (1, 1, 1))
    variant = "in_place" if in_place else "copy"
    functions.close_entry(results, launch, NAME, variant)
    return make_kernel(functions, launch, NAME, body.maps(), variant=variant, chunk=body.size)


class _Part:
    """The code of one work group, which owns `size` places along the dim `along`."""

    def __init__(self, functions: KernelFunctions, scatter: Scatter, groups: int) -> None:
        self.functions = functions
        self.scatter = scatter
        self.e: ElementalEmitter = entry_emitter(functions)
        self.along = scatter.index_map[0] if scatter.index_map else 0
        places = scatter.operand_dims[self.along] if scatter.operand_dims else 1
        self.size = max(1, -(-places // groups))
        self.groups = max(1, -(-places // self.size))
        self.places = places
        self.group = gpu.workgroup_id(self.e.b, "x", self.groups)
        self.body = ScatterBody(functions, scatter, self.e, [self.group], Launch((self.groups, 1, 1), (1, 1, 1)))
        self.low, self.high = self._bounds()

    def _bounds(self) -> tuple[Value, Value]:
        e = self.e
        low = arith.binary(e.b, "muli", self.group, e.index(self.size))
        high = arith.binary(e.b, "minsi", arith.binary(e.b, "addi", low, e.index(self.size)), e.index(self.places))
        return low, high

    def maps(self) -> list[tuple[str, IndexingMap]]:
        """The part of the output that a work group owns."""
        scatter = self.scatter
        own = add(mul(dim(0), self.size), symbol(0))
        results: list[Expr] = []
        loops = [Variable("place", Interval.of_size(self.size))]
        for d, size in enumerate(scatter.operand_dims):
            if d == self.along:
                results.append(own)
            else:
                results.append(symbol(len(loops)))
                loops.append(Variable(f"d{d}", Interval.of_size(size)))
        if not results:
            loops = []
        map = IndexingMap.make(
            [Variable("workgroup_id", Interval.of_size(self.groups))],
            results,
            range_vars=loops,
            constraints=[(own, Interval.of_size(self.places))] if results else [],
        ).simplify()
        return [(f"work group -> {scatter.instruction.name}", map)]

    # -- the operands
    def start(self, tensors: Sequence[Value]) -> list[Value]:
        """The operands' elements of this part into the outputs."""
        e, shape = self.e, self.scatter.operands[0].array_shape
        order = list(reversed(shape.minor_to_major))
        loops: list[Variable] = []
        results: dict[int, Expr] = {}
        for d in order:
            size = self.size if d == self.along else shape.dims[d]
            place = symbol(len(loops))
            results[d] = add(mul(dim(0), self.size), place) if d == self.along else place
            loops.append(Variable(f"d{d}", Interval.of_size(size)))
        map = IndexingMap.make(
            [Variable("workgroup_id", Interval.of_size(self.groups))],
            [results[d] for d in range(shape.rank)],
            range_vars=loops,
            constraints=[(results[self.along], Interval.of_size(self.places))] if shape.rank else [],
        ).simplify()
        loop = gpu.loop(e.b, [self.group], map, tensors)
        with e.inside(loop.body):
            args = loop.body.args[map.num_symbols :]
            index: Indices = tuple(args[: shape.rank])
            values = [e.evaluate(each, index) for each in self.scatter.operands]
            gpu.yield_(e.b, self.body.write(args[shape.rank :], index, values))
        return list(loop.results)

    # -- the updates
    def update(self, tensors: Sequence[Value]) -> list[Value]:
        """All slices in order."""
        if self.scatter.slice_elements == 0:
            return list(tensors)
        if self.groups > 1:
            return self._listed(tensors)
        return self._over(
            self._positions(), [], tensors, lambda at, now: self._slice_if(self.body.position(at[0]), now)
        )

    def _over(
        self,
        map: IndexingMap,
        dims: Sequence[Value],
        carried: Sequence[Value],
        body: Callable[[Indices, Sequence[Value]], Sequence[Value]],
    ) -> list[Value]:
        """A loop over a map: `body` takes its results and what is carried."""
        e = self.e
        loop = gpu.loop(e.b, dims, map, carried)
        with e.inside(loop.body):
            args = loop.body.args[map.num_symbols :]
            gpu.yield_(e.b, body(tuple(args[: map.num_results]), args[map.num_results :]))
        return list(loop.results)

    def _positions(self) -> IndexingMap:
        """()[slice] -> its number."""
        count = self.scatter.slices
        return IndexingMap.make([], [symbol(0)], range_vars=[Variable("slice", Interval.of_size(count))])

    def _mine(self, numbers: Sequence[Value]) -> Value:
        """Whether a slice fits, and some of it is in this part."""
        e, scatter = self.e, self.scatter
        if len(numbers) == 1 and scatter.window[self.along] == 1:
            # A place of this part is one of the operand's: one unsigned comparison says both.
            offset = arith.binary(e.b, "subi", numbers[0], self.low)
            return arith.cmpi(e.b, "ult", offset, arith.binary(e.b, "subi", self.high, self.low))
        found = self.body.fits(numbers)
        last = arith.binary(e.b, "addi", numbers[0], e.index(scatter.window[self.along] - 1))
        begins = arith.cmpi(e.b, "slt", numbers[0], self.high)
        ends = arith.cmpi(e.b, "sge", last, self.low)
        return arith.binary(e.b, "andi", found, arith.binary(e.b, "andi", begins, ends))

    def _listed(self, tensors: Sequence[Value]) -> list[Value]:
        """Some slices at a time: whether each is this part's, the numbers of those that are, then their updates."""
        e, count = self.e, self.scatter.slices
        together = -(-min(LISTED, count) // LANES) * LANES
        blocks = -(-count // together)
        outer = IndexingMap.make([], [symbol(0)], range_vars=[Variable("block", Interval.of_size(blocks))])
        flags = gpu.allocate_shared(e.b, tensor((together,), I8))
        waiting = gpu.allocate_shared(e.b, tensor((together + LANES,), I32))

        def block(at: Indices, now: Sequence[Value]) -> list[Value]:
            marked = self._marked(at, now[0], blocks * together > count)
            slots, length = self._compressed(marked, now[1])
            first = arith.binary(e.b, "muli", at[0], e.index(together))
            loop = scf.for_(e.b, e.index(0), length, e.index(1), now[2:], "k")
            with e.inside(loop.body):
                k, *carried = loop.body.args
                number = arith.cast(e.b, "index_castui", memory.extract(e.b, slots, [k]), INDEX)
                position = self.body.position(arith.binary(e.b, "addi", first, number))
                scf.yield_(e.b, self._slice(position, self.body.numbers(position), carried))
            return [marked, slots, *loop.results]

        return self._over(outer, [], [flags, waiting, *tensors], block)[2:]

    def _marked(self, block: Indices, flags: Value, has_rest: bool) -> Value:
        """For each slice of a block 1 if it is this part's, else 0; no slice is behind the last one."""
        e, count = self.e, self.scatter.slices
        assert isinstance(flags.type, TensorType)
        together = flags.type.shape[0]
        items = [Variable("i", Interval.of_size(together))]
        if has_rest:

            def clear(at: Indices, now: Sequence[Value]) -> list[Value]:
                return [memory.insert(e.b, e.constant(0, I8), now[0], at)]

            (flags,) = self._over(IndexingMap.make([], [symbol(0)], range_vars=items), [], [flags], clear)
        number = add(mul(dim(0), together), symbol(0))
        map = IndexingMap.make(
            [Variable("block", Interval.of_size(-(-count // together)))],
            [symbol(0), number],
            range_vars=items,
            constraints=[(number, Interval.of_size(count))],
        ).simplify()

        def mark(at: Indices, now: Sequence[Value]) -> list[Value]:
            mine = self._mine(self.body.numbers(self.body.position(at[1])))
            return [memory.insert(e.b, arith.cast(e.b, "extui", mine, I8), now[0], at[:1])]

        return self._over(map, block, [flags], mark)[0]

    def _compressed(self, flags: Value, slots: Value) -> tuple[Value, Value]:
        """The numbers of the marked slices in order, and how many they are: no branch that nobody can foresee."""
        e = self.e
        assert isinstance(flags.type, TensorType)
        map = IndexingMap.make(
            [], [mul(symbol(0), LANES)], range_vars=[Variable("row", Interval.of_size(flags.type.shape[0] // LANES))]
        )

        def compress(at: Indices, now: Sequence[Value]) -> list[Value]:
            zero = e.constant(0, I8)
            row = vector.transfer_read(e.b, flags, at[0], zero, types.vector((LANES,), I8))
            mask = arith.cmpi(e.b, "ne", row, arith.constant(e.b, 0, row.type))
            first = vector.broadcast(e.b, arith.cast(e.b, "index_cast", at[0], I32), LANES)
            lanes = arith.cast(e.b, "index_cast", vector.step(e.b, LANES), I32)
            chosen = cpu.compress(e.b, arith.binary(e.b, "addi", first, lanes), mask)
            written = vector.transfer_write(e.b, chosen, now[0], now[1]).result
            bits = vector.extract(e.b, vector.bitcast(e.b, mask, types.vector((1,), integer(LANES))), 0)
            count = arith.cast(e.b, "index_castui", e.b.op1("math.ctpop", (bits,), bits.type), INDEX)
            return [written, arith.binary(e.b, "addi", now[1], count)]

        numbers, length = self._over(map, [], [slots, e.index(0)], compress)
        return numbers, length

    def _slice_if(self, position: Indices, tensors: Sequence[Value]) -> list[Value]:
        """A slice's updates, if it fits."""
        numbers = self.body.numbers(position)
        return self.e.only_if(self.body.fits(numbers), tensors, lambda: self._slice(position, numbers, tensors))

    def _slice(self, position: Indices, numbers: Sequence[Value], tensors: Sequence[Value]) -> list[Value]:
        """A slice's updates; of one that reaches into other parts, what is in this one."""
        scatter = self.scatter
        order = [d for d in reversed(scatter.operands[0].array_shape.minor_to_major) if d in scatter.kept_dims]
        loops = [d for d in order if scatter.window[d] > 1]
        results = {d: const(0) if d not in loops else symbol(loops.index(d)) for d in order}
        map = IndexingMap.make(
            [],
            [results[d] for d in scatter.kept_dims],
            range_vars=[Variable(f"w{d}", Interval.of_size(scatter.window[d])) for d in loops],
        )
        guarded = self.groups > 1 and scatter.window[self.along] > 1
        if not loops:
            zeros = tuple(self.e.index(0) for _ in scatter.kept_dims)
            return self._element(position, numbers, zeros, tensors)

        def element(window: Indices, now: Sequence[Value]) -> list[Value]:
            if not guarded:
                return self._element(position, numbers, window, now)
            return self._element_if(position, numbers, window, now)

        return self._over(map, [], tensors, element)

    def _element_if(
        self, position: Indices, numbers: Sequence[Value], window: Indices, tensors: Sequence[Value]
    ) -> list[Value]:
        e = self.e
        place = arith.binary(e.b, "addi", numbers[0], window[self.scatter.kept_dims.index(self.along)])
        begun, open_ = arith.cmpi(e.b, "sge", place, self.low), arith.cmpi(e.b, "slt", place, self.high)
        inside = arith.binary(e.b, "andi", begun, open_)
        return e.only_if(inside, tensors, lambda: self._element(position, numbers, window, tensors))

    def _element(
        self, position: Indices, numbers: Sequence[Value], window: Indices, tensors: Sequence[Value]
    ) -> list[Value]:
        """One element of the updates combined with what is there."""
        place = self.body.place(numbers, position, window)
        updates = self.body.updates(self.body.update_index(position, window))
        if not self.scatter.overwrites:
            updates = self.body.combined(self.body.read(tensors, place), updates)
        return self.body.write(tensors, place, updates)
