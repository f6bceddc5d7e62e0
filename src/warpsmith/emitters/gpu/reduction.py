"""The reduction emitter: threads reduce what they read, warps combine by shuffles, and warps meet in shared memory.

    thread: for its share of the input:  partial = combine(partial, operand);  write side outputs of that element
    warp:   partial results of neighbouring lanes combine: lane l with l + 16, l + 8, .. l + 1
    block:  what crosses warps goes through a shared tile  -- sync -->  one warp reads it and combines by shuffles
    writer: the epilogue of the result, to the output

How elements are spread is the variant's: row, multi-row (`reduction_row`), column, small column (`reduction_column`).
Every lane takes part in every shuffle, one without elements with the start value; only writes are guarded.  Roots
without inputs in common are separate groups: block z takes group z.

In: an analysis with reduction dimensions.  Out: the kernel.
XLA: `xla/backends/gpu/codegen/emitters/reduction.cc`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from warpsmith.emitters.elemental import ElementalEmitter
from warpsmith.emitters.gpu.reduction_body import GroupEmitter, ReductionParts
from warpsmith.emitters.gpu.reduction_column import column, small_column
from warpsmith.emitters.gpu.reduction_geometry import Geometry
from warpsmith.emitters.gpu.reduction_groups import ReductionGroup, reduction_groups
from warpsmith.emitters.gpu.reduction_row import multi_row, row
from warpsmith.emitters.kernel.entry import KernelFunctions
from warpsmith.emitters.kernel.grid import grid_ids, over_ids, through
from warpsmith.emitters.kernel.launch import shared_tile_bytes
from warpsmith.emitters.kernel.origin import EmittedKernel, SharedTile
from warpsmith.emitters.kernel.results import make_kernel
from warpsmith.emitters.shared.loop import entry_emitter
from warpsmith.emitters.shared.reduction_combiner import combiner_of
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.fusion.reasons import Reason, reason
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.dialects import arith, scf
from warpsmith.kernel import Launch

__all__ = ["NAME", "emit", "geometry", "launch", "matches"]

NAME = "reduction"


def matches(analysis: FusionAnalysis) -> Reason | None:
    """None unless a value can't be put together from partial results, or the tiles don't fit into shared memory."""
    if analysis.reduction is None:
        return reason("no hero is a reduce that a block can finish")
    groups = reduction_groups(analysis)
    for group in groups:
        for hero in group.heroes:
            found = combiner_of(hero)
            if isinstance(found, str):
                return reason(found)
    shared = _shared_bytes(geometry(analysis), groups)
    if shared > analysis.device.shared_per_block:
        most = analysis.device.shared_per_block
        return reason(f"its tiles take {shared} bytes of shared memory, a block has {most}", bytes=shared, most=most)
    return None


def geometry(analysis: FusionAnalysis) -> Geometry:
    """The variant and its numbers."""
    dims = analysis.reduction
    assert dims is not None
    if dims.is_row:
        return multi_row(analysis) or row(analysis)
    return column(analysis) if analysis.device.warp_size % dims.sizes[2] else small_column(analysis)


def launch(analysis: FusionAnalysis) -> Launch:
    """Grid (groups in z), block, and the vector factor of reads."""
    return _launch(geometry(analysis), len(reduction_groups(analysis)))


def _launch(chosen: Geometry, groups: int) -> Launch:
    return Launch((*chosen.grid, groups), (chosen.block_size, 1, 1), chosen.vector)


def _shared_bytes(chosen: Geometry, groups: Sequence[ReductionGroup]) -> int:
    if chosen.shared is None:
        return 0
    elements = math.prod(chosen.shared.dims)
    found = 0
    for group in groups:
        for hero in group.heroes:
            combiner = combiner_of(hero)
            if not isinstance(combiner, str):
                found += sum(shared_tile_bytes(dtype, elements) for dtype in combiner.kept)
    return found


def emit(analysis: FusionAnalysis, *, numerics: str, name: str) -> EmittedKernel:
    """The kernel: for each group its loop, its combining, its epilogue."""
    groups, chosen = reduction_groups(analysis), geometry(analysis)
    grid = _launch(chosen, len(groups))
    parts = ReductionParts(analysis, groups, chosen)
    functions = KernelFunctions(analysis, parts.partition, numerics=numerics, name=name)
    e = entry_emitter(functions)
    ids = grid_ids(functions, grid)
    emitters = [GroupEmitter(functions, parts, number, e, ids, grid) for number in range(len(groups))]
    results = _dispatch(e, emitters, functions.outputs, ids[-1])
    e.drop_unused()
    functions.close_entry(results, grid, NAME, chosen.variant)
    maps = [(title, through(map, place, grid)) for title, map, place in parts.maps()]
    return make_kernel(
        *(functions, grid, NAME, maps),
        variant=chosen.variant,
        shared_bytes=_shared_bytes(chosen, groups),
        tile=_tile(chosen, groups, grid),
    )


def _tile(chosen: Geometry, groups: Sequence[ReductionGroup], grid: Launch) -> SharedTile | None:
    """How the first hero's partial results go through shared memory; None where a warp finishes each result."""
    shared, combiner = chosen.shared, combiner_of(groups[0].heroes[0])
    if shared is None or isinstance(combiner, str):
        return None
    write, read = (
        over_ids(chosen.shared_map(place, bounds, len(groups)), grid)
        for place, bounds in ((shared.write, shared.writers), (shared.read, shared.readers))
    )
    count = sum(len(hero.operands) // 2 for group in groups for hero in group.heroes)
    return SharedTile(shared.dims, combiner.kept[0], write, read, count)


def _dispatch(
    e: ElementalEmitter, emitters: Sequence[GroupEmitter], outputs: Sequence[Value], block_z: Value
) -> list[Value]:
    """Block z's group: the last one asks first, the first one is what remains."""
    last = emitters[-1]
    if len(emitters) == 1:
        return last.emit(outputs)
    number = e.index(len(emitters) - 1)
    branch = e.if_(arith.cmpi(e.b, "eq", block_z, number), [each.type for each in outputs])
    with e.inside(branch.regions[0].blocks[0]):
        scf.yield_(e.b, last.emit(outputs))
    with e.inside(branch.regions[1].blocks[0]):
        scf.yield_(e.b, _dispatch(e, emitters[:-1], outputs, block_z))
    return list(branch.results)
