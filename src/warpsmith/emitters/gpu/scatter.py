"""The scatter emitter: updates go where indices say, into the operand's own buffer.

    updates spread over threads:   element (linear, of the updates) = (block * threads + thread) * unroll + vector_index
      thread: start = indices of the element's slice;  if the slice fits there:
              output[start + place in the slice] = combine(what is there, update), in one step

    indices spread over warps (sorted, and many):  warp w takes some neighbouring indices, its lanes share each slice
      warp: for each index:  the same as before?  then add to what is held in registers
                             else write that out, and hold this update
            in the end write out what is held

    the order of updates is kept:  the thread of a place's first update takes all its updates (`emitters/scatter_order`)

A slice that doesn't fit is dropped as a whole.  Indices that are unique need no atomic step, nor do updates that
overwrite.  In sorted order neighbours are often equal, so most combining stays in registers.

In: an analysis whose root is a scatter.  Out: the kernel.
XLA: `xla/backends/gpu/codegen/emitters/scatter.cc`.  Scatters of any dimension numbers are taken, those that XLA
simplifies scatters to by vectors.
"""

from __future__ import annotations

import math

from warpsmith.emitters.kernel.entry import KernelFunctions
from warpsmith.emitters.kernel.grid import grid_ids, over_ids
from warpsmith.emitters.kernel.launch import WARPS_PER_BLOCK, calculate_launch, unroll_factor
from warpsmith.emitters.kernel.origin import EmittedKernel
from warpsmith.emitters.kernel.results import make_kernel
from warpsmith.emitters.shared.loop import entry_emitter
from warpsmith.emitters.shared.scatter_body import IndexSpread, ScatterBody, update_map
from warpsmith.emitters.shared.scatter_order import OrderedScatter
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.fusion.combiners import combiner_opcode
from warpsmith.fusion.partitioner import partition
from warpsmith.fusion.reasons import Reason, reason
from warpsmith.fusion.scatters import Scatter
from warpsmith.kernel import Launch

__all__ = ["NAME", "emit", "launch", "matches"]

NAME = "scatter"


def matches(analysis: FusionAnalysis) -> Reason | None:
    """None where updates can go into the operand's buffer, each in one step."""
    if analysis.roots[0].opcode != "scatter":
        return reason("the root is no scatter")
    return _refusal(analysis)


def _refusal(analysis: FusionAnalysis) -> Reason | None:
    """Why updates can't go into the operand's buffer, each in one step; None when they can."""
    scatter = Scatter(analysis.roots[0])
    name = scatter.instruction.name
    if any(each.opcode != "parameter" for each in scatter.operands):
        return reason(f"an operand of '{name}' is computed inside the fusion, and updates go into its buffer")
    users = [user for each in scatter.operands for user in analysis.body.users(each)]
    is_read = any(each in scatter.operands for each in (scatter.indices, *scatter.updates))
    if is_read or len(set(scatter.operands)) < scatter.count or len(users) > scatter.count:
        return reason(f"an operand of '{name}' is read elsewhere in the fusion, while it is updated")
    if not scatter.needs_step:
        return None
    if scatter.count > 1:
        return reason(f"'{name}' combines several operands at once, and its indices may repeat: one step can't do that")
    if scatter.operands[0].array_shape.dtype.is_complex and combiner_opcode(scatter.computation) != "add":
        return reason(f"'{name}' combines complex numbers by more than an addition, and its indices may repeat")
    return None


def launch(analysis: FusionAnalysis) -> Launch:
    """A thread an element (or vector) of the updates, in whole warps; or a warp a few indices."""
    scatter, device = Scatter(analysis.roots[0]), analysis.device
    if not scatter.keeps_order and scatter.spreads_indices(device.core_count):
        per_warp, _ = scatter.indices_per_warp(device.core_count)
        blocks = -(-scatter.slices // (per_warp * WARPS_PER_BLOCK))
        vector = scatter.elements_per_lane(device.warp_size)
        return Launch((blocks, 1, 1), (WARPS_PER_BLOCK * device.warp_size, 1, 1), vector)
    shape = scatter.updates[0].array_shape
    together = scatter.is_simple and scatter.lie_apart and not scatter.keeps_order
    vector = math.gcd(scatter.slice_elements, unroll_factor(analysis, shape)) if together else 1
    found = calculate_launch(shape.elements, device, vector)
    threads = -(-found.block[0] // device.warp_size) * device.warp_size
    return Launch(found.grid, (threads, 1, 1), vector)


def emit(analysis: FusionAnalysis, *, numerics: str, name: str) -> EmittedKernel:
    """The kernel, in one of the ways."""
    scatter, chosen = Scatter(analysis.roots[0]), launch(analysis)
    wanted = dict.fromkeys((scatter.indices, *scatter.updates))
    parts = partition(analysis.body, [(each,) for each in wanted])
    aliases = {i: each.parameter_number or 0 for i, each in enumerate(scatter.operands)}
    functions = KernelFunctions(analysis, parts, numerics=numerics, name=name, aliases=aliases)
    e = entry_emitter(functions)
    ids = grid_ids(functions, chosen)
    notes: tuple[str, ...] = ()
    if scatter.keeps_order:
        ordered = OrderedScatter(functions, scatter, e, ids, chosen)
        variant = "ordered_runs" if scatter.has_runs else "ordered_search"
        results = (ordered.by_runs if scatter.has_runs else ordered.by_search)(functions.outputs)
        maps = [(f"thread -> {scatter.updates[0].name}", update_map(scatter, chosen))]
        notes = (_cost(scatter),)
    elif scatter.spreads_indices(analysis.device.core_count):
        variant, spread = "distributed_indices", IndexSpread(functions, scatter, e, ids, chosen)
        results = [spread.by_index(functions.outputs[0])]
        maps = [(f"warp -> {scatter.indices.name}", spread.index_map()), ("lane -> slice", spread.window_map())]
    else:
        variant = "distributed_updates"
        results = ScatterBody(functions, scatter, e, ids, chosen).by_update(functions.outputs)
        maps = [(f"thread -> {scatter.updates[0].name}", update_map(scatter, chosen))]
    e.drop_unused()
    functions.close_entry(results, chosen, NAME, variant)
    shown = [(title, over_ids(map, chosen)) for title, map in maps]
    return make_kernel(functions, chosen, NAME, shown, variant=variant, steps=scatter.needs_step, notes=notes)


def _cost(scatter: Scatter) -> str:
    """What it takes to keep the order of updates."""
    kept = "updates of one place are combined in their order by one thread, without atomic steps"
    elements = scatter.slices * scatter.slice_elements
    if scatter.has_runs:
        way = "equal indices are neighbours; it takes as long as the largest number of updates of one place"
        return f"{kept}: {way}, at most {scatter.slices}"
    return f"{kept}: each of {elements} threads looks through {scatter.slices} index vectors for those of its place"
