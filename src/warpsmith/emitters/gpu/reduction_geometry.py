"""How a reduction's elements are spread over blocks, threads and loops, in the words that all variants share.

In: nothing; the variants (`reduction_row`, `reduction_column`) make geometries.  Out: indexing maps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from warpsmith.devices import Device
from warpsmith.emitters.kernel.launch import split_grid_x
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.indexing import Expr, IndexingMap, Interval, Variable, add, delinearize, dim, grid_variables, mul

__all__ = ["Bound", "Geometry", "Shared", "block_ids", "symbols", "vector_size"]

Bound = tuple[Expr, Interval]


@dataclass(frozen=True, slots=True)
class Shared:
    """Partial results that cross warps: who writes them where, who reads them, and over how many lanes they combine.

    `dims` include what keeps columns off one bank.  `write` and `read` are places in the tile; a thread outside
    `writers` writes nothing, one outside `readers` takes the start value.
    """

    dims: tuple[int, ...]
    write: tuple[Expr, ...]
    read: tuple[Expr, ...]
    writers: tuple[Bound, ...]
    readers: tuple[Bound, ...]
    distance: int


@dataclass(frozen=True, slots=True)
class Geometry:
    """A reduction of an array seen as `input_dims` to one seen as `output_dims`, both row-major.

    `threads` and `blocks` are how ids are split.  `read`: the element that a thread takes, by `loops` (its symbols).
    `distance`: over how many lanes values are combined right after the loop (0: not at all).  `write`: the result that
    the threads in `writers` have in the end.  With `vectors` each thread keeps `vector` results, one a value of the
    last symbol; `shared` and `write` then have a symbol for them.
    """

    variant: str
    input_dims: tuple[int, ...]
    output_dims: tuple[int, ...]
    threads: tuple[int, ...]
    blocks: tuple[int, ...]
    grid: tuple[int, int]
    vector: int
    vectors: bool
    loops: tuple[Variable, ...]
    read: tuple[Expr, ...]
    distance: int
    shared: Shared | None
    write: tuple[Expr, ...]
    writers: tuple[Bound, ...]

    @property
    def block_size(self) -> int:
        """Threads a block."""
        return math.prod(self.threads)

    @property
    def lanes(self) -> tuple[Variable, ...]:
        """The symbol over a thread's results, if it keeps several."""
        return (Variable("vector_index", Interval.of_size(self.vector)),) if self.vectors else ()

    def _map(
        self, results: Iterable[Expr], loops: Sequence[Variable], bounds: Iterable[Bound], groups: int
    ) -> IndexingMap:
        dims = grid_variables((self.block_size,), (*self.grid, groups))
        return IndexingMap.make(dims, results, range_vars=loops, constraints=bounds).simplify()

    def input_map(self, groups: int = 1) -> IndexingMap:
        """(ids)[loops] -> index over `input_dims`: what a thread reads."""
        return self._map(self.read, self.loops, _inside(self.read, self.input_dims), groups)

    def output_map(self, groups: int = 1) -> IndexingMap:
        """(ids)[vector_index] -> index over `output_dims`: what a thread writes."""
        bounds = [*_inside(self.write, self.output_dims), *self.writers]
        return self._map(self.write, self.lanes, bounds, groups)

    def shared_map(self, place: Sequence[Expr], bounds: Iterable[Bound] = (), groups: int = 1) -> IndexingMap:
        """(ids)[vector_index] -> place in the shared tile."""
        return self._map(place, self.lanes, bounds, groups)


def _inside(exprs: Sequence[Expr], dims: Sequence[int]) -> list[Bound]:
    return [(expr, Interval.of_size(n)) for expr, n in zip(exprs, dims, strict=True)]


def symbols(sizes: Sequence[int]) -> tuple[Variable, ...]:
    """Loops of a thread, the last over the elements of a vector."""
    names = [*"ijkl"[: len(sizes) - 1], "vector_index"]
    return tuple(Variable(name, Interval.of_size(size)) for name, size in zip(names, sizes, strict=True))


def block_ids(blocks: Sequence[int], device: Device) -> tuple[tuple[int, int], tuple[Expr, ...]]:
    """Grid x and y for `blocks`, and a block's place along each of their dims.

    A grid too long in x may have more blocks than there are: the first place then lies beyond its dim.
    """
    grid = split_grid_x(math.prod(blocks), device)
    linear = add(dim(3), mul(dim(4), grid[0]))
    return grid, delinearize(linear, blocks)


def vector_size(analysis: FusionAnalysis, minor: int, threads: int) -> int:
    """How many neighbours a thread reads at once, when `threads` threads share `minor` elements."""
    heroes = [hero for hero in analysis.heroes if hero.opcode == "reduce"]
    operands = [operand for hero in heroes for operand in hero.operands[: len(hero.operands) // 2]]
    bits = analysis.smallest_input_bits
    if minor % 2 or 2 * threads > minor or bits >= 64 or any(o.array_shape.dtype.is_complex for o in operands):
        return 1
    if bits >= 32 or 4 * threads > minor or minor % 4:
        return 2
    return 4
