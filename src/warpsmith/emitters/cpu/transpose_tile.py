"""The tile of the CPU's transpose: how large it is, and how tiles are dealt out.

In: an analysis with a transpose description.  Out: `Tile`, or why no tile fits.
"""

from __future__ import annotations

from dataclasses import dataclass

from warpsmith.emitters.cpu.shares import Shares, shares
from warpsmith.emitters.kernel.types import element_types
from warpsmith.emitters.shared.transpose import roots_of
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.fusion.transposes import TransposeDescription
from warpsmith.indexing import IndexingMap, Interval, Variable, add, mul, symbol

__all__ = ["LANE_BYTES", "REGISTER_BYTES", "Tile", "matches", "tile_of"]

LANE_BYTES = 16  # shuffles within this are the cheap ones
REGISTER_BYTES = 64
PAGE_BYTES = 4096
ROW_BYTES = 64  # of a tile's row in the output: a line.  More rows of an input whose rows lie a power of two apart
# don't fit into the few places that a cache has for them.
COLUMN_BYTES = 256  # of a tile's row in the input: lines that the processor fetches together


@dataclass(frozen=True, slots=True)
class Tile:
    """`rows` x `columns` of the two dims (of the input, normalised) that change places; `group` scalars move together.

    `together` rows are turned at a time; a register holds `across` columns.  There are `counts` tiles along each input
    dim but a minor one that stays; `run` of them, one below the other, are an item of work.
    """

    description: TransposeDescription
    swapped: tuple[int, int]
    rows: int
    columns: int
    group: int
    scalar_bytes: int
    counts: tuple[int, ...]
    run: int
    shares: Shares

    def map(self) -> IndexingMap:
        """(workgroup_id)[item, step] -> the tile's number along each input dim but a minor one that stays.

        An item is a run of tiles along the input's rows, or rather across them: each tile's rows follow the last one's,
        so that every row of the output is written as a stream.
        """
        whole = self.shares.map()
        found = list(whole.results)
        a = self.swapped[0]
        found[a] = add(mul(found[a], self.run), symbol(1))
        limits = [*whole.constraints.items(), (found[a], Interval.of_size(self.counts[a]))]
        steps = Variable("step", Interval.of_size(self.run))
        return IndexingMap.make(
            whole.dim_vars, found, range_vars=[*whole.range_vars, steps], constraints=limits
        ).simplify()

    @property
    def together(self) -> int:
        """How many rows are turned at a time: as many as the lanes that shuffles move cheaply hold."""
        return LANE_BYTES // (self.group * self.scalar_bytes)

    @property
    def across(self) -> int:
        """How many columns a register holds."""
        return REGISTER_BYTES // (self.group * self.scalar_bytes)

    @property
    def minor(self) -> int:
        """Elements of the dimension that stays in place, minor to both; 1 where there is none."""
        dims = self.description.dimensions
        return 1 if self.swapped[1] == len(dims) - 1 else dims[-1]


def matches(analysis: FusionAnalysis) -> str | None:
    """None unless elements (or the rows that stay together) aren't 1, 2, 4, 8 or 16 bytes."""
    if analysis.transpose is None:
        return "no hero is a transpose that wants a tile"
    heroes = roots_of(analysis).heroes
    widths = {_group_bytes(analysis.transpose, hero.array_shape.dtype.bits) for hero in heroes}
    if len(widths) > 1:
        return "the heroes' elements differ in width"
    if widths <= {1, 2, 4, 8, 16}:
        return None
    return f"{widths.pop()} bytes stay together, which don't fill a register's lanes evenly"


def _group_bytes(description: TransposeDescription, bits: int) -> int:
    stays = description.permutation[-1] == len(description.permutation) - 1
    return (description.dimensions[-1] if stays else 1) * bits // 8 if bits >= 8 else 0


def tile_of(analysis: FusionAnalysis) -> Tile:
    """A tile of a few lines each way, less where a dimension is shorter."""
    description = analysis.transpose
    assert description is not None
    last = len(description.dimensions) - 1
    stays = description.permutation[last] == last
    b = last - stays
    a = description.permutation[b]
    hero = roots_of(analysis).heroes[0]
    parts = len(element_types(hero.array_shape.dtype))
    scalar_bytes = hero.array_shape.dtype.bits // 8 // parts
    group = (description.dimensions[-1] if stays else 1) * parts
    dims = description.input_dimensions
    sizes: list[int] = []
    for d, unit, most in ((a, LANE_BYTES, ROW_BYTES), (b, REGISTER_BYTES, COLUMN_BYTES)):
        unit //= group * scalar_bytes
        blocks = -(-dims[d] // (most // (group * scalar_bytes)))
        even = -(-dims[d] // blocks)
        sizes.append(-(-even // unit) * unit)
    counts = list(dims[: last + 1 - stays])
    counts[a], counts[b] = -(-dims[a] // sizes[0]), -(-dims[b] // sizes[1])
    run = max(1, min(counts[a], PAGE_BYTES // (sizes[0] * group * scalar_bytes)))
    items = list(counts)
    items[a] = -(-counts[a] // run)
    dealt = shares(items, run * sizes[0] * sizes[1] * group, analysis.device.core_count)
    return Tile(description, (a, b), sizes[0], sizes[1], group, scalar_bytes, tuple(counts), run, dealt)
