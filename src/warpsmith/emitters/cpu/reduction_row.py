"""Row reductions on a CPU: a vector of partial results goes along each row, and is folded in the end.

    row:          {major reduced, kept, minor reduced}: lane l takes elements l, l + lanes, l + 2 lanes ..
    few columns:  {major kept, reduced, columns}: lane l has column l mod columns, of every lanes/columns-th row

A vector of four registers is four chains of operations that don't wait for one another.

In: an analysis of such a reduction.  Out: the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.emitters.cpu.reduction_parts import ReductionParts
from warpsmith.emitters.cpu.shares import Shares, shares
from warpsmith.emitters.elemental.emitter import Indices
from warpsmith.emitters.kernel.origin import EmittedKernel
from warpsmith.emitters.kernel.results import make_kernel
from warpsmith.emitters.shared.reduction_combiner import combiner_of
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.indexing import Expr, IndexingMap, Interval, Variable, add, const, dim, mul, symbol
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.core.types import bit_width
from warpsmith.ir.dialects import arith, gpu, vector
from warpsmith.kernel import Launch

__all__ = ["RowPlan", "emit_row", "registers_of", "row_plan", "widest_bits"]

REGISTER_BITS = 512
MOST_REGISTERS = 4
SIMPLE = 8  # elementwise ops before the reduce, up to which a vector takes all the registers


@dataclass(frozen=True, slots=True)
class RowPlan:
    """`input_dims` are (major, rows, row) or, with several `columns`, (rows, row); a row has `length` elements.

    Of the `lanes` each `columns`-th belongs to one result.
    """

    input_dims: tuple[int, ...]
    output_dims: tuple[int, ...]
    major: int
    rows: int
    length: int
    columns: int
    lanes: int
    shares: Shares


def widest_bits(analysis: FusionAnalysis) -> int:
    """Of the partial results, and of the results of ops before them."""
    bits = 8
    for hero in analysis.heroes:
        found = combiner_of(hero) if hero.opcode == "reduce" else ""
        if not isinstance(found, str):
            bits = max([bits, *(bit_width(type) for type in found.types)])
    return bits


def registers_of(analysis: FusionAnalysis) -> int:
    """How many registers a vector of partial results should take: fewer when much is computed for an element."""
    ops = sum(each.opcode not in ("parameter", "constant", "broadcast", "reduce") for each in analysis.instructions)
    return MOST_REGISTERS if ops <= SIMPLE else 1


def row_plan(analysis: FusionAnalysis) -> RowPlan:
    """Lanes to fill the registers, unless a row is shorter."""
    dims = analysis.reduction
    assert dims is not None
    if dims.is_row:
        major, rows, length = dims.sizes
        columns, input_dims, output_dims = 1, dims.sizes, (rows,)
    else:
        rows, reduced, columns = dims.sizes
        major, length = 1, reduced * columns
        input_dims, output_dims = (rows, length), (rows, columns)
    most = max(1, registers_of(analysis) * REGISTER_BITS // widest_bits(analysis) // columns)
    wanted = min(most, max(1, length // columns))
    groups = 1 << (wanted.bit_length() - 1)
    return RowPlan(
        *(tuple(input_dims), tuple(output_dims), major, rows, length, columns, groups * columns),
        shares((rows,), major * length, analysis.device.core_count),
    )


def emit_row(analysis: FusionAnalysis, plan: RowPlan, *, numerics: str, name: str) -> EmittedKernel:
    """The kernel: a loop over a work group's rows."""
    parts = ReductionParts(analysis, plan.input_dims, plan.output_dims, numerics=numerics, name=name)
    functions, e = parts.functions, parts.e
    group = gpu.workgroup_id(e.b, "x", plan.shares.workgroups)
    body = _Row(parts, plan)
    sides = [functions.outputs[each.number] for each in parts.side_outputs]
    outputs = [functions.outputs[each.number] for each in parts.outputs]
    outer = parts.open_loop([group], plan.shares.map(), [*sides, *outputs])
    with e.inside(outer.body):
        _, row, *tensors = outer.body.args
        written, partial = body.read(row, tensors[: len(sides)])
        gpu.yield_(e.b, [*written, *body.write(row, body.folded(partial), tensors[len(sides) :])])
    results = parts.ordered(outer.results[: len(sides)], outer.results[len(sides) :])
    e.drop_unused()
    launch = Launch((plan.shares.workgroups, 1, 1), (1, 1, 1))
    variant = "row" if plan.columns == 1 else "few_columns"
    functions.close_entry(results, launch, "reduction", variant)
    maps = list(parts.maps(*_shown(plan)))
    return make_kernel(functions, launch, "reduction", maps, variant=variant, chunk=plan.shares.each)


def _shown(plan: RowPlan) -> tuple[IndexingMap, IndexingMap]:
    """What a work group reads and writes."""
    whole = plan.shares.map()
    row = whole.results[0]
    item = whole.range_vars[0]
    loops = [Variable("j", Interval.of_size(plan.length))]
    read: list[Expr] = [row, symbol(1)]
    if len(plan.input_dims) == 3:
        loops.append(Variable("major", Interval.of_size(plan.major)))
        read.insert(0, symbol(2))
    dims, limits = whole.dim_vars, list(whole.constraints.items())
    kept = [Variable("column", Interval.of_size(plan.columns))] if plan.columns > 1 else []
    write = [row, symbol(1)] if plan.columns > 1 else [row]
    return (
        IndexingMap.make(dims, read, range_vars=[item, *loops], constraints=limits).simplify(),
        IndexingMap.make(dims, write, range_vars=[item, *kept], constraints=limits).simplify(),
    )


class _Row:
    """The code for one row."""

    def __init__(self, parts: ReductionParts, plan: RowPlan) -> None:
        self.parts = parts
        self.plan = plan
        self.e = parts.e

    def _map(self, block: Expr, symbols: Sequence[Variable]) -> IndexingMap:
        """(row)[.., lane] -> the element of lane `lane` of a block, an index over the plan's `input_dims`."""
        plan = self.plan
        element = add(mul(block, plan.lanes), symbol(len(symbols)))
        results: list[Expr] = [dim(0), element]
        if len(plan.input_dims) == 3:
            results.insert(0, symbol(0))
        lanes = Variable("lane", Interval.of_size(plan.lanes))
        return IndexingMap.make([Variable("row", Interval.of_size(plan.rows))], results, range_vars=[*symbols, lanes])

    def read(self, row: Value, sides: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        """Side outputs, and the vectors of partial results."""
        plan = self.plan
        carried = [*sides, *self.parts.broadcast(self.parts.starts(), plan.lanes)]
        blocks, rest = divmod(plan.length, plan.lanes)
        majors = [Variable("major", Interval.of_size(plan.major))] if len(plan.input_dims) == 3 else []
        if blocks:
            loops = [*majors, Variable("block", Interval.of_size(blocks))]
            carried = self._loop(row, self._map(symbol(len(majors)), loops), carried, len(sides), None)
        if rest:
            from_ = self._map(const(blocks), majors)
            carried = self._loop(row, from_, carried, len(sides), rest)
        return carried[: len(sides)], carried[len(sides) :]

    def _loop(
        self, row: Value, map: IndexingMap, carried: Sequence[Value], sides: int, limit: int | None
    ) -> list[Value]:
        """All lanes of some blocks; only the first `limit` lanes have an element."""
        e = self.e
        loop = self.parts.open_loop([row], map, carried)
        with e.inside(loop.body):
            args = loop.body.args
            lane, start = args[map.num_symbols - 1], map.num_symbols
            indices = tuple(args[start : start + map.num_results])
            now = args[start + map.num_results :]
            if limit is None:
                gpu.yield_(e.b, self._step(lane, indices, now, sides))
            else:
                inside = arith.cmpi(e.b, "slt", lane, e.index(limit))
                gpu.yield_(e.b, e.only_if(inside, now, lambda: self._step(lane, indices, now, sides)))
        return list(loop.results)

    def _step(self, lane: Value, indices: Indices, now: Sequence[Value], sides: int) -> list[Value]:
        e = self.e
        kept = now[sides:]
        new = self.parts.with_operands([vector.extract(e.b, each, lane) for each in kept], indices)
        written = self.parts.write_sides(indices, now[:sides])
        return [*written, *(vector.insert(e.b, v, old, lane) for v, old in zip(new, kept, strict=True))]

    def folded(self, vectors: Sequence[Value]) -> list[Value]:
        """Halves combined until one lane a column is left."""
        e, lanes = self.e, self.plan.lanes
        while lanes > self.plan.columns:
            lanes //= 2
            low = [vector.shuffle(e.b, each, each, range(lanes)) for each in vectors]
            high = [vector.shuffle(e.b, each, each, range(lanes, 2 * lanes)) for each in vectors]
            vectors = self._pairs(low, high, lanes)
        return list(vectors)

    def _pairs(self, low: Sequence[Value], high: Sequence[Value], lanes: int) -> list[Value]:
        e = self.e
        map = IndexingMap.make([], [], range_vars=[Variable("lane", Interval.of_size(lanes))])
        loop = self.parts.open_loop([], map, low)
        with e.inside(loop.body):
            lane, *now = loop.body.args
            new = self.parts.with_others(
                [vector.extract(e.b, each, lane) for each in now], [vector.extract(e.b, each, lane) for each in high]
            )
            gpu.yield_(e.b, [vector.insert(e.b, v, old, lane) for v, old in zip(new, now, strict=True)])
        return list(loop.results)

    def write(self, row: Value, vectors: Sequence[Value], tensors: Sequence[Value]) -> list[Value]:
        """The epilogue of a row's results."""
        e, plan = self.e, self.plan
        if plan.columns == 1:
            results = self.parts.whole([vector.extract(e.b, each, 0) for each in vectors])
            return self.parts.write(results, (row,), tensors)
        map = IndexingMap.make(
            [Variable("row", Interval.of_size(plan.rows))],
            [dim(0), symbol(0)],
            range_vars=[Variable("column", Interval.of_size(plan.columns))],
        )
        loop = self.parts.open_loop([row], map, tensors)
        with e.inside(loop.body):
            column, first, second, *now = loop.body.args
            results = self.parts.whole([vector.extract(e.b, each, column) for each in vectors])
            gpu.yield_(e.b, self.parts.write(results, (first, second), now))
        return list(loop.results)
