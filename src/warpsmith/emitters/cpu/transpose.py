"""The transpose emitter for CPUs: tiles that fit the first cache, turned in registers, written in whole lines.

    work group: some tiles; a tile is a x b elements of the two dimensions that change places
    for each k rows of the tile (as many elements as 16 bytes hold):
        strip[i, j] = epilogue-free value of the input at row i, column j          (reads run along the input's rows)
        for each 64 bytes of the strip:  k registers, turned by log2(k) rounds of shuffles within 16-byte lanes:
            lane l of register c then has the k elements of one column  ->  turned[column, row .. row + k]
    for each column:  output[.., column, .., row] = epilogue(turned[column, row])   (writes run along the output's rows)

Strip and tile are the core's own memory.  Where the minor dimension stays in place its elements move together.
Elements wait in the tile as integers of their width.  Roots that aren't transposed are written with the strips.

In: an analysis with a transpose description.  Out: the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.dtypes import DType
from warpsmith.emitters.cpu.transpose_tile import LANE_BYTES, REGISTER_BYTES, Tile, matches, tile_of
from warpsmith.emitters.elemental import ElementalEmitter, Values
from warpsmith.emitters.kernel.entry import KernelFunctions
from warpsmith.emitters.kernel.origin import EmittedKernel
from warpsmith.emitters.kernel.outputs import to_dims
from warpsmith.emitters.kernel.results import make_kernel
from warpsmith.emitters.kernel.types import element_types
from warpsmith.emitters.shared.loop import entry_emitter
from warpsmith.emitters.shared.transpose import TransposeParts
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.indexing import Expr, IndexingMap, Interval, Variable, add, dim, floordiv, mod, mul, symbol
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import FloatType, Type, VectorType, integer, tensor
from warpsmith.ir.core.types import vector as vector_type
from warpsmith.ir.dialects import arith, gpu, memory, vector
from warpsmith.kernel import Launch

__all__ = ["NAME", "Tile", "emit", "matches", "tile_of"]

NAME = "transpose"


def emit(analysis: FusionAnalysis, *, numerics: str, name: str) -> EmittedKernel:
    """The kernel: a loop over a work group's tiles."""
    tile = tile_of(analysis)
    parts = TransposeParts(analysis)
    functions = KernelFunctions(analysis, parts.partition, numerics=numerics, name=name)
    e = entry_emitter(functions)
    group = gpu.workgroup_id(e.b, "x", tile.shares.workgroups)
    body = _Tiles(functions, parts, tile, e)
    sides = [functions.outputs[each.number] for each in parts.side_outputs]
    outputs = [functions.outputs[each.number] for each in parts.outputs]
    own = [gpu.allocate_shared(e.b, tensor((size,), type)) for size, type in body.memory()]
    names = [f"tile{i}" for i in range(len(tile.counts))]
    outer = gpu.loop(e.b, [group], tile.map(), [*sides, *outputs, *own], result_names=names)
    middle, end = len(sides), len(sides) + len(outputs)
    with e.inside(outer.body):
        rank = len(names)
        place, tensors = outer.body.args[2 : 2 + rank], outer.body.args[2 + rank :]
        written, kept = body.fill(place, tensors[:middle], tensors[end:])
        gpu.yield_(e.b, [*written, *body.empty(place, kept, tensors[middle:end]), *kept])
    results = parts.results(functions, outer.results[:middle], outer.results[middle:end])
    e.drop_unused()
    launch = Launch((tile.shares.workgroups, 1, 1), (1, 1, 1))
    variant = "minor_kept" if tile.minor > 1 else "registers"
    functions.close_entry(results, launch, NAME, variant)
    return make_kernel(functions, launch, NAME, body.maps(), variant=variant, chunk=tile.shares.each)


class _Tiles:
    """The code for one tile, whose place is its number along each input dim (but the minor one that stays)."""

    def __init__(self, functions: KernelFunctions, parts: TransposeParts, tile: Tile, e: ElementalEmitter) -> None:
        self.functions = functions
        self.parts = parts
        self.tile = tile
        self.e = e
        self.heroes = parts.roots.heroes
        self.bits = integer(8 * tile.scalar_bytes)

    def memory(self) -> list[tuple[int, Type]]:
        """A strip and a turned tile for each hero."""
        tile = self.tile
        strip, turned = tile.together * tile.columns * tile.group, tile.columns * tile.rows * tile.group
        return [(size, self.bits) for _ in self.heroes for size in (strip, turned)]

    # -- indices
    def _starts(self) -> list[Expr]:
        """The first element of a tile along each input dim; of the minor one that stays, none."""
        a, b = self.tile.swapped
        sizes = {a: self.tile.rows, b: self.tile.columns}
        return [mul(dim(d), sizes[d]) if d in sizes else dim(d) for d in range(len(self.tile.counts))]

    def _variables(self) -> list[Variable]:
        return [Variable(f"tile{d}", Interval.of_size(size)) for d, size in enumerate(self.tile.counts)]

    def _inner(self, a: Expr, b: Expr, minor: Expr, by_output: bool) -> list[Expr]:
        """The input index of row `a` and column `b` of a tile, or the output index."""
        found = self._starts()
        first, second = self.tile.swapped
        found[first], found[second] = add(found[first], a), add(found[second], b)
        if self.tile.minor > 1:
            found.append(minor)
        if by_output:
            return [found[d] for d in self.tile.description.permutation]
        return found

    # -- the two halves
    def fill(
        self, place: Sequence[Value], sides: Sequence[Value], own: Sequence[Value]
    ) -> tuple[list[Value], list[Value]]:
        """All strips of a tile, turned: side outputs, the tiles."""
        e, tile, count = self.e, self.tile, len(sides)
        a = self.tile.swapped[0]
        row = add(mul(dim(a), tile.rows), mul(symbol(0), tile.together))
        strips = IndexingMap.make(
            self._variables(),
            [mul(symbol(0), tile.together)],
            range_vars=[Variable("strip", Interval.of_size(tile.rows // tile.together))],
            constraints=[(row, Interval.of_size(tile.description.input_dimensions[a]))],
        ).simplify()
        outer = gpu.loop(e.b, place, strips, [*sides, *own], result_names=["row"])
        with e.inside(outer.body):
            _, start, *tensors = outer.body.args
            carried = self._read(place, start, tensors[:count], tensors[count::2])
            turned = self._turn(start, carried[count:], tensors[count + 1 :: 2])
            pairs = zip(carried[count:], turned, strict=True)
            gpu.yield_(e.b, [*carried[:count], *(each for pair in pairs for each in pair)])
        return list(outer.results[:count]), list(outer.results[count:])

    def _read(
        self, place: Sequence[Value], start: Value, sides: Sequence[Value], strips: Sequence[Value]
    ) -> list[Value]:
        """Some rows of the tile into the strips; side outputs on the way."""
        e, tile = self.e, self.tile
        a, b = tile.swapped
        sizes = tile.description.input_dimensions
        rows = IndexingMap.make(
            [*self._variables(), Variable("start", Interval.of_size(tile.rows))],
            [add(dim(len(place)), symbol(0)), symbol(0)],
            range_vars=[Variable("i", Interval.of_size(tile.together))],
            constraints=[(add(mul(dim(a), tile.rows), dim(len(place)), symbol(0)), Interval.of_size(sizes[a]))],
        ).simplify()
        outer = gpu.loop(e.b, [*place, start], rows, [*sides, *strips], result_names=["row", "i"])
        with e.inside(outer.body):
            _, row, i, *carried = outer.body.args
            extra = len(place)
            width = tile.columns * tile.minor
            column, minor = floordiv(symbol(0), tile.minor), mod(symbol(0), tile.minor)
            within = add(mul(dim(extra + 1), width), symbol(0))
            limit = (add(mul(dim(b), width), symbol(0)), Interval.of_size(sizes[b] * tile.minor))
            columns = IndexingMap.make(
                [
                    *self._variables(),
                    Variable("row", Interval.of_size(tile.rows)),
                    Variable("i", Interval.of_size(tile.together)),
                ],
                [*self._inner(dim(extra), column, minor, False), within],
                range_vars=[Variable("j", Interval.of_size(width))],
                constraints=[limit],
            )
            map = self._to_input(columns)
            inner = self._element_loop([*place, row, i], map, carried, "input_dim")
            with e.inside(inner.body):
                args = inner.body.args[map.num_symbols :]
                indices, (at, *now) = tuple(args[: map.num_results - 1]), args[map.num_results - 1 :]
                values = self.parts.input_values(e, indices)
                extra_values = self.parts.side_values(self.functions, e, indices)
                filled = [self._insert(v, t, at) for v, t in zip(values, now[len(sides) :], strict=True)]
                gpu.yield_(e.b, [*self.parts.write_sides(e, extra_values, indices, now[: len(sides)]), *filled])
            gpu.yield_(e.b, inner.results)
        return list(outer.results)

    def _turn(self, start: Value, strips: Sequence[Value], turned: Sequence[Value]) -> list[Value]:
        """The strips' rows become columns from `start` on of the turned tiles."""
        e, tile = self.e, self.tile
        lanes = REGISTER_BYTES // tile.scalar_bytes
        blocks = tile.columns // tile.across
        k = tile.together
        first = mul(symbol(0), lanes)
        sources = [add(first, i * tile.columns * tile.group) for i in range(k)]
        columns = [add(mul(symbol(0), tile.across), n) for n in range(tile.across)]
        targets = [mul(add(mul(column, tile.rows), dim(0)), tile.group) for column in columns]
        map = IndexingMap.make(
            [Variable("start", Interval.of_size(tile.rows - k + 1))],
            [*sources, *targets],
            range_vars=[Variable("block", Interval.of_size(blocks))],
        ).simplify()
        loop = gpu.loop(e.b, [start], map, turned)
        padding = e.constant(0, self.bits)
        type = vector_type((lanes,), self.bits)
        short = LANE_BYTES // tile.scalar_bytes
        with e.inside(loop.body):
            _, *args = loop.body.args
            found: list[Value] = []
            for strip, dest in zip(strips, args[len(sources) + len(targets) :], strict=True):
                rows = [vector.transfer_read(e.b, strip, at, padding, type) for at in args[: len(sources)]]
                registers = _turned(e, rows, tile.group, short)
                for n, at in enumerate(args[len(sources) : len(sources) + len(targets)]):
                    lane, register = divmod(n, k)
                    part = vector.shuffle(
                        *(e.b, registers[register], registers[register]), range(lane * short, (lane + 1) * short)
                    )
                    dest = vector.transfer_write(e.b, part, dest, at).result
                found.append(dest)
            gpu.yield_(e.b, found)
        return list(loop.results)

    def empty(self, place: Sequence[Value], own: Sequence[Value], outputs: Sequence[Value]) -> list[Value]:
        """The turned tile, column after column, through the epilogue to the outputs."""
        e, tile = self.e, self.tile
        a, b = tile.swapped
        sizes = tile.description.input_dimensions
        columns = IndexingMap.make(
            self._variables(),
            [symbol(0)],
            range_vars=[Variable("j", Interval.of_size(tile.columns))],
            constraints=[(add(mul(dim(b), tile.columns), symbol(0)), Interval.of_size(sizes[b]))],
        ).simplify()
        outer = gpu.loop(e.b, place, columns, outputs, result_names=["column"])
        with e.inside(outer.body):
            _, column, *carried = outer.body.args
            extra = len(place)
            width = tile.rows * tile.minor
            row, minor = floordiv(symbol(0), tile.minor), mod(symbol(0), tile.minor)
            limit = (add(mul(dim(a), width), symbol(0)), Interval.of_size(sizes[a] * tile.minor))
            rows = IndexingMap.make(
                [*self._variables(), Variable("column", Interval.of_size(tile.columns))],
                [*self._inner(row, dim(extra), minor, True), add(mul(dim(extra), width), symbol(0))],
                range_vars=[Variable("i", Interval.of_size(width))],
                constraints=[limit],
            )
            map = self._to_output(rows)
            inner = self._element_loop([*place, column], map, carried, "dim")
            with e.inside(inner.body):
                args = inner.body.args[map.num_symbols :]
                indices, (where, *tensors) = tuple(args[: map.num_results - 1]), args[map.num_results - 1 :]
                heroes = [
                    self._extract(h.array_shape.dtype, t, where) for h, t in zip(self.heroes, own[1::2], strict=True)
                ]
                gpu.yield_(e.b, self.parts.write_transposed(self.functions, e, heroes, indices, tensors))
            gpu.yield_(e.b, inner.results)
        return list(outer.results)

    # -- elements
    def _element_loop(self, dims: Sequence[Value], map: IndexingMap, inits: Sequence[Value], stem: str) -> Operation:
        names = [*(f"{stem}{i}" for i in range(map.num_results - 1)), "place"]
        return gpu.loop(self.e.b, dims, map, inits, result_names=names)

    def _to_input(self, map: IndexingMap) -> IndexingMap:
        """A map to a normalised input index, and a place behind it, as one to the first hero's operand."""
        return _with_place(map, self.tile.description.input_dimensions, self.parts.input_dims)

    def _to_output(self, map: IndexingMap) -> IndexingMap:
        return _with_place(map, self.tile.description.dimensions, self.parts.output_dims)

    def _insert(self, parts: Values, strip: Value, place: Value) -> Value:
        """An element's scalars, as integers, into a strip."""
        e = self.e
        for number, value in enumerate(parts):
            at = place
            if len(parts) > 1:
                at = arith.binary(e.b, "addi", arith.binary(e.b, "muli", place, e.index(2)), e.index(number))
            bits = arith.cast(e.b, "bitcast", value, self.bits) if isinstance(value.type, FloatType) else value
            strip = memory.insert(e.b, bits, strip, [at])
        return strip

    def _extract(self, dtype: DType, turned: Value, place: Value) -> Values:
        e = self.e
        found: list[Value] = []
        types = element_types(dtype)
        for number, type in enumerate(types):
            at = place
            if len(types) > 1:
                at = arith.binary(e.b, "addi", arith.binary(e.b, "muli", place, e.index(2)), e.index(number))
            bits = memory.extract(e.b, turned, [at])
            found.append(arith.cast(e.b, "bitcast", bits, type) if isinstance(type, FloatType) else bits)
        return tuple(found)

    def maps(self) -> list[tuple[str, IndexingMap]]:
        """What a work group reads and writes: the elements of its tiles."""
        tile = self.tile
        a, b = tile.swapped
        whole = tile.map()
        rows, columns = symbol(2), symbol(3)
        loops = [
            *whole.range_vars,
            Variable("row", Interval.of_size(tile.rows)),
            Variable("column", Interval.of_size(tile.columns * tile.minor)),
        ]
        found: list[Expr] = list(whole.results)
        found[a] = add(mul(found[a], tile.rows), rows)
        found[b] = add(mul(found[b], tile.columns), floordiv(columns, tile.minor))
        limits = [*whole.constraints.items()]
        sizes = tile.description.input_dimensions
        limits += [(found[d], Interval.of_size(sizes[d])) for d in tile.swapped]
        if tile.minor > 1:
            found.append(mod(columns, tile.minor))
        order = tile.description.permutation
        read = IndexingMap.make(whole.dim_vars, found, range_vars=loops, constraints=limits).simplify()
        write = read.with_results([read.results[d] for d in order])
        read = to_dims(read, sizes, self.parts.input_dims)
        write = to_dims(write, tile.description.dimensions, self.parts.output_dims)
        roots = self.parts.roots
        return [
            *((f"work group -> {h.operands[0].name}", _through(read, self.parts.input_map(h))) for h in roots.heroes),
            *((f"work group -> {r.name}", _through(read, self.parts.side_map(r))) for r in roots.sides),
            *((f"work group -> {r.name}", _through(write, self.parts.output_map(r))) for r in roots.transposed),
        ]


def _through(map: IndexingMap, place: IndexingMap | None) -> IndexingMap:
    return map if place is None else map.then(place).simplify()


def _with_place(map: IndexingMap, sizes: Sequence[int], dims: Sequence[int]) -> IndexingMap:
    """The map's index over `sizes` as one over `dims`; the last result stays."""
    *index, place = map.results
    moved = to_dims(map.with_results(index), sizes, dims)
    return moved.with_results([*moved.results, place]).simplify()


def _turned(e: ElementalEmitter, rows: list[Value], group: int, short: int) -> list[Value]:
    """k registers, of which lane l (of `short` scalars) of register c has place c of lane l of every one of `rows`.

    A round puts groups of twice the width together: of rows i and i + k/2, alternately.
    """
    k, type = len(rows), rows[0].type
    assert isinstance(type, VectorType)
    lanes = type.elements // short
    rounds = k.bit_length() - 1
    registers = rows
    for _ in range(rounds):
        half = k // 2
        new: list[Value] = []
        for i in range(half):
            for upper in (0, 1):
                mask: list[int] = []
                for lane in range(lanes):
                    for n in range(short // group // 2):
                        start = lane * short + (n + upper * (short // group // 2)) * group
                        mask += range(start, start + group)
                        mask += range(lanes * short + start, lanes * short + start + group)
                new.append(vector.shuffle(e.b, registers[i], registers[i + half], mask))
        registers = new
    return registers
