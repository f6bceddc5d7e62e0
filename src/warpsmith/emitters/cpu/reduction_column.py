"""Column reductions on a CPU: a strip of columns keeps its partial results in the core's own memory while rows go by.

    strip of columns, in memory of the work group:   partial[c] = identity
    for each few rows, for each column c of the strip:   partial[c] = combine(.. combine(partial[c], row 0) .., row k)
    for each column c:   output[c] = epilogue(partial[c])

Rows are read in order, a stretch of neighbours each, some rows side by side; partial results stay in the first cache.

In: an analysis of a column reduction.  Out: the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.emitters.cpu.reduction_parts import ReductionParts
from warpsmith.emitters.cpu.shares import Shares, shares
from warpsmith.emitters.kernel.origin import EmittedKernel
from warpsmith.emitters.kernel.results import make_kernel
from warpsmith.emitters.shared.reduction_combiner import combiner_of
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.indexing import Expr, IndexingMap, Interval, Variable, add, dim, mul, symbol
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.core.types import bit_width, tensor
from warpsmith.ir.dialects import gpu, memory
from warpsmith.kernel import Launch

__all__ = ["ColumnPlan", "column_plan", "emit_column"]

STRIP_BYTES = 16 << 10  # of partial results: half of a first cache
LEAST_STRIP = 256  # columns, so that a row's stretch fills some lines
MULTIPLE = 64  # columns: whole lines of any type
ROWS = 8  # that go by at once


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """`dims` are (major kept, reduced, columns); an item of work is a strip of `strip` columns of one major index."""

    dims: tuple[int, int, int]
    strip: int
    shares: Shares


def column_plan(analysis: FusionAnalysis) -> ColumnPlan:
    """Strips as wide as their partial results' memory allows, in shares for all cores."""
    dims = analysis.reduction
    assert dims is not None
    major, reduced, columns = dims.sizes
    cores = analysis.device.core_count
    bytes_ = 0
    for hero in dict.fromkeys(analysis.heroes):
        found = combiner_of(hero) if hero.opcode == "reduce" else ""
        if not isinstance(found, str):
            bytes_ += sum(max(8, bit_width(type)) // 8 for type in found.types)
    strips = -(-columns // max(MULTIPLE, STRIP_BYTES // bytes_))
    if major * reduced * columns > LEAST_STRIP * MULTIPLE:
        strips = max(strips, min(-(-cores // major), -(-columns // LEAST_STRIP)))
    strip = -(-columns // strips)
    if strips > 1:
        strip = -(-strip // MULTIPLE) * MULTIPLE
        strips = -(-columns // strip)
    return ColumnPlan(dims.sizes, strip, shares((major, strips), reduced * strip, cores))


def emit_column(analysis: FusionAnalysis, plan: ColumnPlan, *, numerics: str, name: str) -> EmittedKernel:
    """The kernel: a loop over a work group's strips."""
    major, _, columns = plan.dims
    parts = ReductionParts(analysis, plan.dims, (major, columns), numerics=numerics, name=name)
    functions, e = parts.functions, parts.e
    group = gpu.workgroup_id(e.b, "x", plan.shares.workgroups)
    body = _Strip(parts, plan)
    sides = [functions.outputs[each.number] for each in parts.side_outputs]
    outputs = [functions.outputs[each.number] for each in parts.outputs]
    partial = [
        gpu.allocate_shared(e.b, tensor((plan.strip,), type)) for combiner in parts.combiners for type in combiner.types
    ]
    outer = parts.open_loop([group], plan.shares.map(), [*sides, *outputs, *partial])
    with e.inside(outer.body):
        _, first, second, *tensors = outer.body.args
        place = (first, second)
        middle, end = len(sides), len(sides) + len(outputs)
        started = body.start(tensors[end:])
        written, partial = body.read(place, tensors[:middle], started)
        gpu.yield_(e.b, [*written, *body.write(place, partial, tensors[middle:end]), *partial])
    middle, end = len(sides), len(sides) + len(outputs)
    results = parts.ordered(outer.results[:middle], outer.results[middle:end])
    e.drop_unused()
    launch = Launch((plan.shares.workgroups, 1, 1), (1, 1, 1))
    functions.close_entry(results, launch, "reduction", "column")
    maps = list(parts.maps(*_shown(plan)))
    return make_kernel(functions, launch, "reduction", maps, variant="column", chunk=plan.shares.each)


def _shown(plan: ColumnPlan) -> tuple[IndexingMap, IndexingMap]:
    """What a work group reads and writes."""
    _, reduced, columns = plan.dims
    whole = plan.shares.map()
    item, strip = whole.range_vars[0], Variable("c", Interval.of_size(plan.strip))
    first, second = whole.results
    column = add(mul(second, plan.strip), symbol(1))
    limits = [*whole.constraints.items(), (column, Interval.of_size(columns))]
    rows = Variable("row", Interval.of_size(reduced))
    return (
        IndexingMap.make(
            whole.dim_vars, [first, symbol(2), column], range_vars=[item, strip, rows], constraints=limits
        ).simplify(),
        IndexingMap.make(whole.dim_vars, [first, column], range_vars=[item, strip], constraints=limits).simplify(),
    )


class _Strip:
    """The code for one strip: its place is (major index, number of the strip)."""

    def __init__(self, parts: ReductionParts, plan: ColumnPlan) -> None:
        self.parts = parts
        self.plan = plan
        self.e = parts.e

    def _column(self) -> Variable:
        return Variable("c", Interval.of_size(self.plan.strip))

    def _map(self, results: Sequence[Expr], symbols: Sequence[Variable]) -> IndexingMap:
        """(major, strip)[..] -> `results`, the last of which is a column."""
        return IndexingMap.make(
            [
                Variable("major", Interval.of_size(self.plan.dims[0])),
                Variable("strip", Interval.of_size(self.plan.shares.sizes[1])),
            ],
            results,
            range_vars=symbols,
            constraints=[(results[-1], Interval.of_size(self.plan.dims[2]))],
        ).simplify()

    def _column_of(self, c: Expr) -> Expr:
        return add(mul(dim(1), self.plan.strip), c)

    def start(self, partial: Sequence[Value]) -> list[Value]:
        """Every partial result's start value."""
        e, values = self.e, self.parts.starts()
        loop = self.parts.open_loop([], IndexingMap.make([], [], range_vars=[self._column()]), partial)
        with e.inside(loop.body):
            c, *tensors = loop.body.args
            gpu.yield_(e.b, [memory.insert(e.b, v, t, [c]) for v, t in zip(values, tensors, strict=True)])
        return list(loop.results)

    def read(
        self, place: Sequence[Value], sides: Sequence[Value], partial: Sequence[Value]
    ) -> tuple[list[Value], list[Value]]:
        """All rows, `ROWS` at a time and then what is left: side outputs, and partial results."""
        count = len(sides)
        carried = [*sides, *partial]
        blocks, rest = divmod(self.plan.dims[1], ROWS)
        for first, times, rows in ((0, blocks, ROWS), (blocks * ROWS, 1, rest)):
            if times and rows:
                carried = self._rows(place, carried, count, first, times, rows)
        return carried[:count], carried[count:]

    def _rows(
        self, place: Sequence[Value], carried: Sequence[Value], sides: int, first: int, times: int, rows: int
    ) -> list[Value]:
        """`times` blocks of `rows` rows from row `first` on."""
        e = self.e
        block = Variable("block", Interval.of_size(times))
        c = symbol(1)
        results = [dim(0), add(mul(symbol(0), rows), first), c, self._column_of(c)]
        map = self._map(results, [block, self._column()])
        outer = self.parts.open_loop(place, map, carried)
        with e.inside(outer.body):
            args = outer.body.args[map.num_symbols :]
            major, start, at, column, *now = args
            held = [memory.extract(e.b, tensor, [at]) for tensor in now[sides:]]
            values = [*now[:sides], *held]
            for number in range(rows):
                row = IndexingMap.make(
                    [Variable("start", Interval.of_size(self.plan.dims[1] - rows + 1))], [add(dim(0), number)]
                )
                indices = (major, *e.apply(row, (start,)), column)
                new = self.parts.with_operands(values[sides:], indices)
                values = [*self.parts.write_sides(indices, values[:sides]), *new]
            stored = [memory.insert(e.b, v, t, [at]) for v, t in zip(values[sides:], now[sides:], strict=True)]
            gpu.yield_(e.b, [*values[:sides], *stored])
        return list(outer.results)

    def write(self, place: Sequence[Value], partial: Sequence[Value], outputs: Sequence[Value]) -> list[Value]:
        """The epilogue of each column's result."""
        e = self.e
        c = symbol(0)
        map = self._map([dim(0), c, self._column_of(c)], [self._column()])
        loop = self.parts.open_loop(place, map, outputs)
        with e.inside(loop.body):
            _, major, at, column, *tensors = loop.body.args
            results = self.parts.whole([memory.extract(e.b, each, [at]) for each in partial])
            gpu.yield_(e.b, self.parts.write(results, (major, column), tensors))
        return list(loop.results)
