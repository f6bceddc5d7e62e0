"""The reduction emitter for CPUs: vectors of partial results, a lane an element, in an order that is the shape's alone.

    row (what is reduced lies together; also few columns, side by side):
        partial: a vector of identities;  for each block of the row: partial[lane] = combine(partial[lane], element)
        halves of the vector combine until one result (or one row of columns) is left
    column (neighbours belong to different results):
        a strip of columns has its partial results in the core's own memory; rows go by, some at a time, in order

Each result is one work group's, so threads share no memory.  Where results are too few for the cores, `split` has made
two kernels of the reduction before.  Sums of narrow floats are kept in f32 (`fusion.combiners`).

In: an analysis with reduction dimensions.  Out: the kernel.
"""

from __future__ import annotations

from warpsmith.emitters.cpu.reduction_column import column_plan, emit_column
from warpsmith.emitters.cpu.reduction_row import emit_row, row_plan
from warpsmith.emitters.kernel.origin import EmittedKernel
from warpsmith.emitters.shared.reduction_combiner import combiner_of
from warpsmith.fusion.analysis import FusionAnalysis

__all__ = ["NAME", "emit", "matches"]

NAME = "reduction"
FEW_COLUMNS = 16  # up to so many side by side are lanes of one vector, row after row


def matches(analysis: FusionAnalysis) -> str | None:
    """None unless a value can't be put together from partial results."""
    if analysis.reduction is None:
        return "no hero is a reduce of enough elements"
    for hero in dict.fromkeys(analysis.heroes):
        if hero.opcode == "reduce":
            found = combiner_of(hero)
            if isinstance(found, str):
                return found
    return None


def emit(analysis: FusionAnalysis, *, numerics: str, name: str) -> EmittedKernel:
    """The kernel, in one of the two ways."""
    dims = analysis.reduction
    assert dims is not None
    if dims.is_row or dims.sizes[2] <= FEW_COLUMNS:
        return emit_row(analysis, row_plan(analysis), numerics=numerics, name=name)
    return emit_column(analysis, column_plan(analysis), numerics=numerics, name=name)
