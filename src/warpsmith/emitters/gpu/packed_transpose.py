"""The transpose of elements narrower than a word: tiles of words, transposed again in registers.

    block: a tile of `rows` x `cols` elements, at most 32 words a side; rows along T2, columns along A and T1

      input [.. T2 .., A, T1]               shared tile                             output [.. T1 .., A, T2]
      warp w, step s: row s*4+w             row r is turned by r/vector words:      warp w, step s: vector columns
      lane l: one word of the row  -->      tile[r, (c + r/vector*vector) mod side]   from (s*4+w)*vector on
                                                            -- sync -->             lane l: vector rows from l*vector on

In the second phase a thread reads a word from each of `vector` rows, which makes a square of vector x vector elements,
and writes it column by column: each column is a word of the output.  Turning the rows keeps both the words of a row and
those at one column of every vector-th row in different banks, without padding.

In: an analysis whose description has a packed tile.  Out: the kernel.
XLA: `PackedTranspose` of `xla/backends/gpu/codegen/emitters/transpose.cc`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from warpsmith.emitters.elemental import ElementalEmitter, Values
from warpsmith.emitters.kernel.entry import KernelFunctions
from warpsmith.emitters.kernel.grid import grid_ids, over_ids, through
from warpsmith.emitters.kernel.origin import EmittedKernel, SharedTile
from warpsmith.emitters.kernel.outputs import to_dims
from warpsmith.emitters.kernel.results import make_kernel
from warpsmith.emitters.kernel.types import scalar_type
from warpsmith.emitters.shared.loop import entry_emitter
from warpsmith.emitters.shared.transpose import TransposeParts, roots_of
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.fusion.transposes import TILE, PackedTile
from warpsmith.hlo.module import HloInstruction
from warpsmith.indexing import (
    Expr,
    IndexingMap,
    Interval,
    Variable,
    add,
    delinearize,
    dim,
    floordiv,
    grid_variables,
    mod,
    mul,
    symbol,
)
from warpsmith.indexing.rewire import range_vars_to_dims, remove_unused_symbols
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.core.types import vector as vector_type
from warpsmith.ir.dialects import gpu, vector
from warpsmith.kernel import Launch

__all__ = ["emit", "launch", "shared_bytes", "thread_to_input", "thread_to_output", "tile_of"]

NAME, VARIANT = "transpose", "packed"
WARPS = 4


def tile_of(analysis: FusionAnalysis) -> PackedTile:
    """The tile of the fusion's transposes."""
    assert analysis.transpose is not None
    assert analysis.transpose.packed is not None
    return analysis.transpose.packed


def side(tile: PackedTile) -> int:
    """Rows and columns of the shared tile."""
    return TILE * tile.vector


def shared_bytes(analysis: FusionAnalysis) -> int:
    """One tile a hero."""
    elements = side(tile_of(analysis)) ** 2
    return sum(hero.array_shape.dtype.byte_size(elements) for hero in roots_of(analysis).heroes)


def input_dims(tile: PackedTile) -> tuple[int, ...]:
    """The input's dims, those of size 1 that the canonical form has included."""
    sizes = [0] * len(tile.dimensions)
    for size, source in zip(tile.dimensions, tile.permutation, strict=True):
        sizes[source] = size
    return tuple(sizes)


def _blocks(tile: PackedTile) -> tuple[int, ...]:
    """How many tiles the output has along each of its dims."""
    sizes = [1] * len(tile.dimensions)
    for d, source in enumerate(tile.permutation):
        if source == len(sizes) - 2:
            sizes[d] = tile.tile_t1
    sizes[-3], sizes[-2] = tile.tile_a, tile.tile_t2
    return tuple(-(-n // size) for n, size in zip(tile.dimensions, sizes, strict=True))


def launch(analysis: FusionAnalysis) -> Launch:
    """One block of 128 threads a tile."""
    tile = tile_of(analysis)
    return Launch((math.prod(_blocks(tile)), 1, 1), (TILE * WARPS, 1, 1), tile.vector)


def _lane() -> Expr:
    return mod(dim(0), TILE)


def _group() -> Expr:
    return floordiv(dim(0), TILE)


def _element_map(tile: PackedTile, row: Expr, column: Expr, symbols: Sequence[Variable]) -> IndexingMap:
    """Row and column of the tile -> index in the input."""
    blocks = _blocks(tile)
    rank = len(blocks)
    results: list[Expr] = list(delinearize(dim(3), blocks))
    for d, source in enumerate(tile.permutation):
        if source == rank - 2:
            results[d] = add(mul(results[d], tile.tile_t1), mod(column, tile.tile_t1))
    results[rank - 3] = add(mul(results[rank - 3], tile.tile_a), floordiv(column, tile.tile_t1))
    results[rank - 2] = add(mul(results[rank - 2], tile.tile_t2), row)
    in_tile = [(row, Interval.of_size(tile.tile_t2)), (column, Interval.of_size(tile.tile_a * tile.tile_t1))]
    in_shape = [(each, Interval.of_size(n)) for each, n in zip(results, tile.dimensions, strict=True)]
    return IndexingMap.make(
        grid_variables((TILE * WARPS,), (math.prod(blocks),)),
        results,
        range_vars=symbols,
        constraints=[*in_tile, *in_shape],
    ).simplify()


def _write_place(tile: PackedTile) -> tuple[Expr, Expr]:
    """Row and column of the element that symbols (step, vector index) mean in the first phase."""
    return add(mul(symbol(0), WARPS), _group()), add(mul(_lane(), tile.vector), symbol(1))


def _read_place(tile: PackedTile) -> tuple[Expr, Expr]:
    """Row and column of the element that symbols (step, column of the square, row of it) mean in the second phase."""
    column = add(mul(add(mul(symbol(0), WARPS), _group()), tile.vector), symbol(1))
    return add(mul(_lane(), tile.vector), symbol(2)), column


def _turned(tile: PackedTile, row: Expr, column: Expr) -> Expr:
    """The column of the shared tile."""
    return mod(add(column, mul(floordiv(row, tile.vector), tile.vector)), side(tile))


def thread_to_input(tile: PackedTile) -> IndexingMap:
    """(ids)[step, vector index] -> index in the input, in its canonical dims: what the first phase reads."""
    steps = -(-tile.tile_t2 // WARPS)
    symbols = (Variable("i", Interval.of_size(steps)), Variable("vector_index", Interval.of_size(tile.vector)))
    to_output = _element_map(tile, *_write_place(tile), symbols)
    results = list(to_output.results)
    for result, source in zip(to_output.results, tile.permutation, strict=True):
        results[source] = result
    return to_output.with_results(results)


def thread_to_output(tile: PackedTile) -> IndexingMap:
    """(ids)[step, column, row of the thread's square] -> index in the output, in its canonical dims."""
    steps = -(-tile.tile_a * tile.tile_t1 // (WARPS * tile.vector))
    part = Interval.of_size(tile.vector)
    symbols = (Variable("i", Interval.of_size(steps)), Variable("column", part), Variable("vector_index", part))
    return _element_map(tile, *_read_place(tile), symbols)


def emit(analysis: FusionAnalysis, *, numerics: str, name: str) -> EmittedKernel:
    """The kernel: side outputs, one loop that fills the tiles, a barrier, one that empties them square by square."""
    tile, chosen = tile_of(analysis), launch(analysis)
    parts = TransposeParts(analysis)
    functions = KernelFunctions(analysis, parts.partition, numerics=numerics, name=name)
    e = entry_emitter(functions)
    ids = grid_ids(functions, chosen)
    read = to_dims(thread_to_input(tile), input_dims(tile), parts.input_dims)
    write = to_dims(thread_to_output(tile), tile.dimensions, parts.output_dims)
    tiles, sides = _fill(functions, parts, e, tile, ids, chosen, read)
    synced = gpu.sync_threads(e.b, tiles)
    results = _empty(functions, parts, e, tile, ids, chosen, write, synced)

    e.drop_unused()
    functions.close_entry(parts.results(functions, sides, results), chosen, NAME, VARIANT)
    maps = [
        *((f"thread -> {h.operands[0].name}", through(read, parts.input_map(h), chosen)) for h in parts.roots.heroes),
        *((f"thread -> {r.name}", through(read, parts.side_map(r), chosen)) for r in parts.roots.sides),
        *((f"thread -> {r.name}", through(write, parts.output_map(r), chosen)) for r in parts.roots.transposed),
    ]
    places = [_with_place(tile, map, place) for map, place in ((read, _write_place(tile)), (write, _read_place(tile)))]
    shared = SharedTile(
        *((side(tile), side(tile)), parts.roots.heroes[0].array_shape.dtype),
        *(over_ids(each.select_results(range(each.num_results - 2, each.num_results)), chosen) for each in places),
        count=len(tiles),
    )
    return make_kernel(
        *(functions, chosen, NAME, maps), variant=VARIANT, shared_bytes=shared_bytes(analysis), tile=shared
    )


def _with_place(tile: PackedTile, map: IndexingMap, place: tuple[Expr, Expr]) -> IndexingMap:
    """`map`, and the place in the shared tile after its results."""
    return map.with_results([*map.results, place[0], _turned(tile, *place)]).simplify()


def _fill(
    functions: KernelFunctions,
    parts: TransposeParts,
    e: ElementalEmitter,
    tile: PackedTile,
    ids: Sequence[Value],
    chosen: Launch,
    read: IndexingMap,
) -> tuple[list[Value], list[Value]]:
    """First phase: the inputs' elements to the tiles, and the roots that aren't transposed; tiles and side outputs.

    A loop over a thread's words; inside it one over a word's elements, those outside the array left 0.
    """
    rank, count = read.num_results, len(parts.roots.heroes)
    word = _with_place(tile, read, _write_place(tile)).select_results([rank, rank + 1])
    word = remove_unused_symbols(word.with_symbol_bounds(1, Interval.point(0)).simplify())
    sides = [functions.outputs[each.number] for each in parts.side_outputs]
    inits = [*parts.tiles(e, (side(tile), side(tile))), *sides]
    outer = gpu.loop(e.b, ids, over_ids(word, chosen), inits, result_names=["shmem_row", "shmem_column"])
    types = [vector_type((tile.vector,), scalar_type(hero.array_shape.dtype)) for hero in parts.roots.heroes]
    empty = [e.constant(0, type) for type in types]
    with e.inside(outer.body):
        step, row, column, *carried = outer.body.args
        map = range_vars_to_dims(over_ids(read, chosen), [0])
        names = [f"input_dim{i}" for i in range(rank)]
        inner = gpu.loop(e.b, [*ids, step], map, [*empty, *carried[count:]], result_names=names)
        with e.inside(inner.body):
            position, *args = inner.body.args
            indices = tuple(args[:rank])
            values = parts.input_values(e, indices)
            side_values = parts.side_values(functions, e, indices)
            words = [
                vector.insert(e.b, v[0], w, position) for v, w in zip(values, args[rank : rank + count], strict=True)
            ]
            gpu.yield_(e.b, [*words, *parts.write_sides(e, side_values, indices, args[rank + count :])])
        filled = [
            vector.transfer_write_row(e.b, word, t, (row, column))
            for word, t in zip(inner.results[:count], carried[:count], strict=True)
        ]
        gpu.yield_(e.b, [*filled, *inner.results[count:]])
    return list(outer.results[:count]), list(outer.results[count:])


def _empty(
    functions: KernelFunctions,
    parts: TransposeParts,
    e: ElementalEmitter,
    tile: PackedTile,
    ids: Sequence[Value],
    chosen: Launch,
    write: IndexingMap,
    synced: Sequence[Value],
) -> list[Value]:
    """Second phase: a loop over a thread's squares; inside it one over a square's elements, column by column."""
    rank = write.num_results
    outputs = [functions.outputs[each.number] for each in parts.outputs]
    square = _with_place(tile, write, _read_place(tile)).select_results([rank, rank + 1])
    corner = square.with_symbol_bounds(1, Interval.point(0)).with_symbol_bounds(2, Interval.point(0))
    outer = gpu.loop(
        *(e.b, ids, over_ids(remove_unused_symbols(corner.simplify()), chosen), outputs),
        result_names=["row", "shmem_column"],
    )
    with e.inside(outer.body):
        step, row, column = outer.body.args[:3]
        values = [_square(e, tile, hero, t, row, column) for hero, t in zip(parts.roots.heroes, synced, strict=True)]
        map = range_vars_to_dims(over_ids(write, chosen), [0])
        names = [f"dim{i}" for i in range(rank)]
        inner = gpu.loop(e.b, [*ids, step], map, outer.body.args[3:], result_names=names)
        with e.inside(inner.body):
            h, v, *args = inner.body.args
            (position,) = e.apply(_position_map(tile), (h, v))
            heroes: list[Values] = [(vector.extract(e.b, each, position),) for each in values]
            done = parts.write_transposed(functions, e, heroes, tuple(args[:rank]), args[rank:])
            gpu.yield_(e.b, done)
        gpu.yield_(e.b, inner.results)
    return list(outer.results)


def _position_map(tile: PackedTile) -> IndexingMap:
    """(column, row) of a square -> its place among the square's elements."""
    return IndexingMap.from_sizes([add(mul(dim(0), tile.vector), dim(1))], [tile.vector] * 2)


def _square(
    e: ElementalEmitter, tile: PackedTile, hero: HloInstruction, shared: Value, row: Value, column: Value
) -> Value:
    """The elements of a thread's square, column by column, read from the tile a word of each row."""
    element = scalar_type(hero.array_shape.dtype)
    rows: list[Value] = []
    for i in range(tile.vector):
        at = row if i == 0 else e.apply(_plus(tile, i), (row,))[0]
        padding = e.constant(0, element)
        rows.append(vector.transfer_read_row(e.b, shared, (at, column), padding, vector_type((tile.vector,), element)))
    columns = range(tile.vector)
    return vector.from_elements(e.b, [vector.extract(e.b, each, j) for j in columns for each in rows])


def _plus(tile: PackedTile, i: int) -> IndexingMap:
    return IndexingMap.make([Variable("", Interval(0, side(tile) - tile.vector))], [add(dim(0), i)])
