"""The transpose emitter: tiles that go through shared memory, so that reads and writes both coalesce.

    block: one tile of 32 x 32 elements (times a vector) of the two dimensions that change places

      input, rows of the tile      shared tile, one column wider        output, rows of the transposed tile
      warp w, step s: row s*4+w    a row of the input is written        warp w, step s: row s*4+w of the output's
      lane l: column l        -->  as a column: [l, row]     -- sync -->  tile is a row of shared memory: [row, l]

The extra column makes both the columns and the rows of the tile hit 32 different banks.  When the minor dimension
stays in place it is small, and each thread takes a whole row of it.  Elements narrower than a word go two or four to a
thread where that leaves enough blocks.  Roots that aren't transposed are written in the first phase, at the input's
indices; what follows the transpose, the epilogue, is computed in the second.

In: an analysis with a transpose description.  Out: the kernel.  XLA: `xla/backends/gpu/codegen/emitters/transpose.cc`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.devices import Device
from warpsmith.emitters.elemental.emitter import Indices
from warpsmith.emitters.gpu import packed_transpose
from warpsmith.emitters.kernel.entry import KernelFunctions
from warpsmith.emitters.kernel.grid import grid_ids, over_ids, through
from warpsmith.emitters.kernel.launch import shared_tile_bytes
from warpsmith.emitters.kernel.origin import EmittedKernel, SharedTile
from warpsmith.emitters.kernel.outputs import to_dims
from warpsmith.emitters.kernel.results import make_kernel
from warpsmith.emitters.shared.loop import entry_emitter
from warpsmith.emitters.shared.transpose import TransposeParts, roots_of
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.fusion.reasons import Reason, reason
from warpsmith.fusion.transposes import TILE, TransposeDescription
from warpsmith.indexing import (
    Expr,
    IndexingMap,
    Interval,
    Variable,
    add,
    delinearize,
    dim,
    grid_variables,
    mul,
    symbol,
)
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.dialects import gpu
from warpsmith.kernel import Launch

__all__ = ["NAME", "Tile", "emit", "launch", "matches", "thread_to_input", "thread_to_output", "tile_of"]

NAME = "transpose"
ROWS = 4  # warps of a block: rows of the tile that move at once
WORD = 4  # bytes


@dataclass(frozen=True, slots=True)
class Tile:
    """One block's share, in the dims of the input: `sizes` elements, of which `vector` neighbours are a thread's."""

    description: TransposeDescription
    sizes: tuple[int, ...]
    vector: int

    @property
    def moves_minor(self) -> bool:
        """Whether the transpose moves the fastest dimension."""
        return self.description.permutation[-1] != len(self.sizes) - 1

    @property
    def swapped(self) -> tuple[int, int]:
        """The two input dims that are tiled: the one that becomes the output's most minor (moved) one, and the one
        that was the input's."""
        last = len(self.sizes) - (1 if self.moves_minor else 2)
        return self.description.permutation[last], last

    @property
    def blocks(self) -> tuple[int, ...]:
        """How many tiles the input has along each dim."""
        return tuple(-(-n // size) for n, size in zip(self.description.input_dimensions, self.sizes, strict=True))

    @property
    def shared_dims(self) -> tuple[int, ...]:
        """The tile in shared memory, one wider so that columns spread over the banks."""
        wide = self.swapped[1]
        return tuple(size + (d == wide) for d, size in enumerate(self.sizes))

    @property
    def steps(self) -> int:
        """How often a block of threads goes over the tile."""
        return math.prod(self.sizes) // (TILE * ROWS * self.vector)


def matches(analysis: FusionAnalysis) -> Reason | None:
    """None unless the tiles don't fit into shared memory."""
    if analysis.transpose is None:
        return reason("no hero is a transpose that wants a tile")
    shared = _shared_bytes(analysis)
    if shared > analysis.device.shared_per_block:
        most = analysis.device.shared_per_block
        return reason(f"its tiles take {shared} bytes of shared memory, a block has {most}", bytes=shared, most=most)
    return None


def _description(analysis: FusionAnalysis) -> TransposeDescription:
    assert analysis.transpose is not None
    return analysis.transpose


def _shared_bytes(analysis: FusionAnalysis) -> int:
    if _description(analysis).packed is not None:
        return packed_transpose.shared_bytes(analysis)
    tile = tile_of(analysis)
    elements, run = math.prod(tile.shared_dims), 1 if tile.moves_minor else tile.vector
    return sum(shared_tile_bytes(hero.array_shape.dtype, elements, run) for hero in roots_of(analysis).heroes)


def tile_of(analysis: FusionAnalysis) -> Tile:
    """The tile of the padded transpose."""
    description = _description(analysis)
    sizes = [1] * len(description.dimensions)
    whole = Tile(description, tuple(sizes), 1)
    a, b = whole.swapped
    sizes[a] = sizes[b] = TILE
    if not whole.moves_minor:
        sizes[-1] = description.dimensions[-1]
        return Tile(description, tuple(sizes), sizes[-1])
    widths = [hero.array_shape.dtype.byte_size(1) for hero in roots_of(analysis).heroes]
    vector = _vector(Tile(description, tuple(sizes), 1), widths, analysis.device)
    sizes[a] = sizes[b] = TILE * vector
    return Tile(description, tuple(sizes), vector)


def _vector(tile: Tile, widths: Sequence[int], device: Device) -> int:
    """Elements that a thread moves together: enough to fill a word, if enough blocks remain."""
    threads = math.prod(tile.blocks) * TILE * ROWS
    bytes_ = sum(TILE * (TILE + 1) * width for width in widths)
    dims = tile.description.input_dimensions
    vector = WORD // max(widths)
    while vector > 1:
        if (
            threads >= vector**2 * device.resident_threads
            and vector**2 * bytes_ <= device.shared_per_block
            and not any(dims[d] % vector for d in tile.swapped)
        ):
            return vector
        vector //= 2
    return 1


def launch(analysis: FusionAnalysis) -> Launch:
    """One block of 128 threads a tile."""
    if _description(analysis).packed is not None:
        return packed_transpose.launch(analysis)
    tile = tile_of(analysis)
    return Launch((math.prod(tile.blocks), 1, 1), (TILE * ROWS, 1, 1), tile.vector)


def _offset(tile: Tile) -> Expr:
    """The place of a thread's element in the order of the tile."""
    return add(mul(symbol(0), TILE * ROWS * tile.vector), mul(dim(0), tile.vector), symbol(1))


def _element_map(tile: Tile, sizes: Sequence[int], blocks: Sequence[Expr], dims: Sequence[int]) -> IndexingMap:
    """(ids)[step, vector index] -> an index over `dims`, of which block `blocks` takes `sizes` elements each."""
    offsets = delinearize(_offset(tile), sizes)
    results = [add(mul(block, size), offset) for block, size, offset in zip(blocks, sizes, offsets, strict=True)]
    return IndexingMap.make(
        grid_variables((TILE * ROWS,), (math.prod(tile.blocks),)),
        results,
        range_vars=_symbols(tile),
        constraints=[(result, Interval.of_size(n)) for result, n in zip(results, dims, strict=True)],
    ).simplify()


def _symbols(tile: Tile) -> tuple[Variable, Variable]:
    return Variable("i", Interval.of_size(tile.steps)), Variable("vector_index", Interval.of_size(tile.vector))


def thread_to_input(tile: Tile) -> IndexingMap:
    """(ids)[step, vector index] -> index in the input, in its normalised dims: what the first phase reads."""
    return _element_map(tile, tile.sizes, delinearize(dim(3), tile.blocks), tile.description.input_dimensions)


def thread_to_output(tile: Tile) -> IndexingMap:
    """(ids)[step, vector index] -> index in the output, in its normalised dims: what the second phase writes."""
    order = tile.description.permutation
    blocks = delinearize(dim(3), tile.blocks)
    return _element_map(
        *(tile, [tile.sizes[d] for d in order], [blocks[d] for d in order]), tile.description.dimensions
    )


def _shared_place(tile: Tile, swap: bool) -> list[Expr]:
    """Where a thread's element of a phase lies in the shared tile: rows are read as they lie, written as columns."""
    offsets = list(delinearize(_offset(tile), tile.sizes))
    if swap:
        a, b = tile.swapped
        offsets[a], offsets[b] = offsets[b], offsets[a]
    return offsets


def emit(analysis: FusionAnalysis, *, numerics: str, name: str) -> EmittedKernel:
    """The kernel: one loop that fills the tiles, a barrier, one that empties them."""
    if _description(analysis).packed is not None:
        return packed_transpose.emit(analysis, numerics=numerics, name=name)
    tile, chosen = tile_of(analysis), launch(analysis)
    parts = TransposeParts(analysis)
    functions = KernelFunctions(analysis, parts.partition, numerics=numerics, name=name)
    e = entry_emitter(functions)
    ids = grid_ids(functions, chosen)
    tiles = parts.tiles(e, tile.shared_dims)
    read = to_dims(thread_to_input(tile), tile.description.input_dimensions, parts.input_dims)
    write = to_dims(thread_to_output(tile), tile.description.dimensions, parts.output_dims)

    def placed(map: IndexingMap, swap: bool) -> IndexingMap:
        """A thread's elements, and behind each its place in the tile."""
        return map.with_results([*map.results, *_shared_place(tile, swap)]).simplify()

    def place_of(map: IndexingMap, swap: bool) -> IndexingMap:
        rank = map.num_results
        return over_ids(placed(map, swap).select_results(range(rank, rank + len(tile.sizes))), chosen)

    def loop(map: IndexingMap, swap: bool, stem: str, inits: Sequence[Value]) -> tuple[Operation, Indices, Indices]:
        """A phase: a loop over a thread's elements, their indices and their places in the tile."""
        rank, end = map.num_results, map.num_results + len(tile.sizes)
        with_place = placed(map, swap)
        names = [f"{stem}{i}" for i in range(rank)] + [f"shmem_dim{i}" for i in range(end - rank)]
        op = gpu.loop(e.b, ids, over_ids(with_place, chosen), inits, result_names=names)
        args = op.body.args[2:]
        return op, tuple(args[:rank]), tuple(args[rank:end])

    sides = [functions.outputs[each.number] for each in parts.side_outputs]
    first, indices, place = loop(read, True, "input_dim", [*tiles, *sides])
    with e.inside(first.body):
        carried = first.body.args[-len(first.results) :]
        values = parts.input_values(e, indices)
        side_values = parts.side_values(functions, e, indices)
        filled = parts.fill(e, values, carried[: len(tiles)], place)
        gpu.yield_(e.b, [*filled, *parts.write_sides(e, side_values, indices, carried[len(tiles) :])])
    synced = gpu.sync_threads(e.b, first.results[: len(tiles)])

    outputs = [functions.outputs[each.number] for each in parts.outputs]
    second, indices, place = loop(write, False, "dim", outputs)
    with e.inside(second.body):
        heroes = [parts.element(e, h, t, place) for h, t in zip(parts.roots.heroes, synced, strict=True)]
        gpu.yield_(e.b, parts.write_transposed(functions, e, heroes, indices, second.body.args[-len(outputs) :]))

    results = parts.results(functions, first.results[len(tiles) :], second.results)
    e.drop_unused()
    functions.close_entry(results, chosen, NAME, "padded")
    maps = [
        *((f"thread -> {h.operands[0].name}", through(read, parts.input_map(h), chosen)) for h in parts.roots.heroes),
        *((f"thread -> {r.name}", through(read, parts.side_map(r), chosen)) for r in parts.roots.sides),
        *((f"thread -> {r.name}", through(write, parts.output_map(r), chosen)) for r in parts.roots.transposed),
    ]
    hero = parts.roots.heroes[0].array_shape.dtype
    shared = SharedTile(tile.shared_dims, hero, place_of(read, True), place_of(write, False), len(tiles))
    return make_kernel(
        *(functions, chosen, NAME, maps), variant="padded", shared_bytes=_shared_bytes(analysis), tile=shared
    )
