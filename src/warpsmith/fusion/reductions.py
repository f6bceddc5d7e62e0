"""When a reduction gets the reduction emitter, and its three dimensions.

In: a reduce instruction.  Out: `ReductionDimensions`, or the failed condition.
XLA: `xla/service/gpu/reduction_utils.cc`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from warpsmith.fusion.reasons import Reason, reason
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.shapes import Shape

__all__ = [
    "ReductionDimensions",
    "core_reduction",
    "few_results",
    "oversized",
    "race_free",
    "real_reduction",
    "reduction_dimensions",
]

MAX_ROW_REDUCED = 1024 * 16
MAX_ROW_MAJOR = 8
MAX_COLUMN_FACTOR = 128
FEW_RESULTS = 64  # fewer don't keep all cores of a large machine busy
LEAST_SPLIT = 1 << 17  # elements, so that a second kernel costs little beside the first
LEAST_ON_A_CORE = 16  # elements to one result; fewer are as well taken by a loop over the results


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
    return _too_large(dims, warp) is None


def _too_large(dims: ReductionDimensions, warp: int) -> Reason | None:
    """Why one block can't finish an output."""
    if not dims.is_row:
        most = warp * MAX_COLUMN_FACTOR
        rows = dims.sizes[1]
        return None if rows <= most else reason(f"{rows} rows, more than {most} to a block", rows=rows, most=most)
    major, _, minor = dims.sizes
    if minor > MAX_ROW_REDUCED:
        text = f"rows of {minor} elements, more than {MAX_ROW_REDUCED} to a block"
        return reason(text, elements=minor, most=MAX_ROW_REDUCED)
    if major > MAX_ROW_MAJOR:
        return reason(f"{major} slabs, more than {MAX_ROW_MAJOR} to a block", slabs=major, most=MAX_ROW_MAJOR)
    return None


def _too_small(dims: ReductionDimensions, warp: int) -> Reason | None:
    """Why a loop over each output does as well."""
    if dims.is_row:
        minor = dims.sizes[2]
        if minor >= warp or warp % minor == 0:
            return None
        text = f"rows of {minor} elements are shorter than a warp of {warp}, and don't divide it"
        return reason(text, elements=minor, warp=warp)
    _, rows, columns = dims.sizes
    # At least so many warps of rows where there are fewer columns than (None: any number).
    for warps, fewer in ((1, None), (2, warp), (4, 8), (8, 3)):
        if rows < warps * warp and (fewer is None or columns < fewer):
            condition = "" if fewer is None else f" (with fewer than {fewer} columns)"
            text = f"{rows} rows of {columns} columns: fewer than {warps * warp} rows{condition}"
            return reason(text, rows=rows, columns=columns, least=warps * warp)
    return None


def oversized(hero: HloInstruction, warp: int) -> ReductionDimensions | None:
    """The dimensions of a reduce that would get the reduction emitter, were it not too much for one block."""
    if hero.opcode != "reduce" or 0 in hero.operands[0].array_shape.dims:
        return None
    dims = reduction_dimensions(hero)
    return dims if dims is not None and _too_small(dims, warp) is None and not race_free(dims, warp) else None


def few_results(hero: HloInstruction) -> ReductionDimensions | None:
    """The dimensions of a reduce that leaves cores idle, for it makes few results of many elements.

    That doesn't ask how many cores there are: results are the same, bit for bit, on every machine.
    """
    if hero.opcode != "reduce" or hero.operands[0].array_shape.elements < LEAST_SPLIT:
        return None
    results = next(iter(hero.shape.leaves())).elements
    return reduction_dimensions(hero) if results < FEW_RESULTS else None


def _dimensions_of(hero: HloInstruction) -> ReductionDimensions | Reason:
    """The dimensions of a hero, or why it has none."""
    if hero.opcode != "reduce":
        return reason(f"the hero is '{hero.name} = {hero.opcode}', no reduce")
    if 0 in hero.operands[0].array_shape.dims:
        return reason(f"'{hero.name}' reduces an empty array")
    return reduction_dimensions(hero) or reason(
        f"neither the kept nor the reduced dimensions of '{hero.name}' lie together in memory"
    )


def core_reduction(hero: HloInstruction) -> ReductionDimensions | Reason:
    """As `real_reduction`, for a CPU: no block has to finish a result, but each wants some elements."""
    dims = _dimensions_of(hero)
    if isinstance(dims, Reason):
        return dims
    count = dims.sizes[2] * dims.sizes[0] if dims.is_row else dims.sizes[1]
    together = dims.sizes[2] if dims.is_row else count
    if together < LEAST_ON_A_CORE:
        text = f"'{hero.name}' reduces {together} elements that lie together to one, fewer than {LEAST_ON_A_CORE}"
        return reason(text, elements=together, least=LEAST_ON_A_CORE)
    return dims


def real_reduction(hero: HloInstruction, warp: int) -> ReductionDimensions | Reason:
    """The dimensions of a hero that the reduction emitter takes; otherwise the failed condition."""
    dims = _dimensions_of(hero)
    if isinstance(dims, Reason):
        return dims
    # Upstream asserts that it isn't too large for a reduce that is its own root; the loop emitter is right for both.
    found = _too_small(dims, warp) or _too_large(dims, warp)
    if found is None:
        return dims
    kind = "row" if dims.is_row else "column"
    return Reason(f"'{hero.name}', a {kind} reduction of {list(dims.sizes)}: {found}", found.numbers)
