"""When a reduction gets the reduction emitter, and its three dimensions.

In: a reduce instruction.  Out: `ReductionDimensions`, or the failed condition in words.  Reference: section 2.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.shapes import Shape

__all__ = ["ReductionDimensions", "oversized", "race_free", "real_reduction", "reduction_dimensions"]

MAX_ROW_REDUCED = 1024 * 16
MAX_ROW_MAJOR = 8
MAX_COLUMN_FACTOR = 128


@dataclass(frozen=True, slots=True)
class ReductionDimensions:
    """The operand as three dims: row {major reduced, kept, minor reduced}, column {major kept, reduced, minor kept}."""

    is_row: bool
    sizes: tuple[int, int, int]


def _consecutive(positions: list[int]) -> bool:
    return all(b == a + 1 for a, b in pairwise(positions))


def reduction_dimensions(instruction: HloInstruction) -> ReductionDimensions | None:
    """The dimensions, or None where neither the kept nor the reduced dims lie together in memory."""
    source: Shape = instruction.operands[0].array_shape
    reduced = set(instruction.ints("dimensions"))
    order = list(reversed(source.minor_to_major))
    sizes = [source.dims[d] for d in order]
    kept = [i for i, d in enumerate(order) if d not in reduced]
    gone = [i for i, d in enumerate(order) if d in reduced]
    if not kept:
        return ReductionDimensions(True, (1, 1, math.prod(sizes)))
    if _consecutive(kept):
        major = math.prod(sizes[: kept[0]])
        middle = math.prod(sizes[i] for i in kept)
        minor = math.prod(sizes[kept[-1] + 1 :])
        if middle == 1:
            return ReductionDimensions(True, (1, 1, major * minor))
        if minor == 1:
            return ReductionDimensions(False, (1, major, middle))
        return ReductionDimensions(True, (major, middle, minor))
    if not gone or not _consecutive(gone):
        return None
    major = math.prod(sizes[: gone[0]])
    middle = math.prod(sizes[i] for i in gone)
    minor = math.prod(sizes[gone[-1] + 1 :])
    if minor == 1:
        return ReductionDimensions(True, (1, major, middle))
    return ReductionDimensions(False, (major, middle, minor))


def race_free(dims: ReductionDimensions, warp: int) -> bool:
    """Whether one block can finish each output, so that no atomics are needed."""
    if dims.is_row:
        return dims.sizes[2] <= MAX_ROW_REDUCED and dims.sizes[0] <= MAX_ROW_MAJOR
    return dims.sizes[1] <= warp * MAX_COLUMN_FACTOR


def _worth_it(dims: ReductionDimensions, warp: int) -> bool:
    if dims.is_row:
        return dims.sizes[2] >= warp or warp % dims.sizes[2] == 0
    reduced, minor = dims.sizes[1], dims.sizes[2]
    too_small = (
        reduced < warp
        or (reduced < 2 * warp and minor < warp)
        or (reduced < 4 * warp and minor < 8)
        or (reduced < 8 * warp and minor < 3)
    )
    return not too_small


def oversized(hero: HloInstruction, warp: int) -> ReductionDimensions | None:
    """The dimensions of a reduce that would get the reduction emitter, were it not too much for one block."""
    if hero.opcode != "reduce" or 0 in hero.operands[0].array_shape.dims:
        return None
    dims = reduction_dimensions(hero)
    return dims if dims is not None and _worth_it(dims, warp) and not race_free(dims, warp) else None


def real_reduction(root: HloInstruction, hero: HloInstruction, warp: int) -> ReductionDimensions | str:
    """The dimensions of a hero that the reduction emitter takes; otherwise the failed condition in words."""
    if hero.opcode != "reduce":
        return f"the hero '{hero.name}' is no reduce"
    if 0 in hero.operands[0].array_shape.dims:
        return f"'{hero.name}' reduces an empty array"
    dims = reduction_dimensions(hero)
    if dims is None:
        return f"neither the kept nor the reduced dimensions of '{hero.name}' lie together in memory"
    if not _worth_it(dims, warp):
        kind = "row" if dims.is_row else "column"
        return f"'{hero.name}', a {kind} reduction of {list(dims.sizes)}, is too small or too narrow"
    if not race_free(dims, warp):
        # Upstream asserts this for a reduce that is its own root; the loop emitter is right for both.
        return f"'{hero.name}' reduces more than one block can: {list(dims.sizes)}"
    return dims
