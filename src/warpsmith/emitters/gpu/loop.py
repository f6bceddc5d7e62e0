"""The loop emitter: each thread computes `unroll` neighbouring elements of the output.

    element (linear) = (block * threads + thread) * unroll + vector_index
    thread:  for vector_index in 0..unroll-1:  values = @roots(inputs, index(element));  write each root's value

Nobody waits for anybody; neighbouring threads write neighbouring elements, so writes coalesce whatever is read.
In: an analysis.  Out: the kernel.  XLA: `xla/backends/gpu/codegen/emitters/loop.cc`.
"""

from __future__ import annotations

from warpsmith.emitters.kernel.entry import KernelFunctions
from warpsmith.emitters.kernel.grid import grid_ids, over_ids
from warpsmith.emitters.kernel.launch import calculate_launch, split_grid_x, unroll_factor
from warpsmith.emitters.kernel.origin import EmittedKernel
from warpsmith.emitters.kernel.results import make_kernel
from warpsmith.emitters.shared.loop import emit_group_loop, entry_emitter, first_shape, root_groups
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.fusion.partitioner import partition
from warpsmith.fusion.reasons import Reason
from warpsmith.hlo.shapes import Shape
from warpsmith.indexing import IndexingMap, work_item_map
from warpsmith.ir.core import attributes as at
from warpsmith.kernel import Launch

__all__ = ["NAME", "emit", "launch", "matches", "thread_to_output"]

NAME = "loop"


def matches(analysis: FusionAnalysis) -> Reason | None:
    """None: the loop emitter takes every fusion whose ops can be emitted element by element."""
    return None


def launch_shape(analysis: FusionAnalysis) -> Shape:
    """The shape that the launch runs over: the first root's; the largest when roots differ in size."""
    shapes = [first_shape(root) for root in analysis.roots]
    return max(shapes, key=lambda shape: shape.elements) if len(root_groups(analysis)) > 1 else shapes[0]


def launch(analysis: FusionAnalysis) -> Launch:
    """Grid, block and unroll factor."""
    shape, device = launch_shape(analysis), analysis.device
    found = calculate_launch(shape.elements, device, unroll_factor(analysis, shape))
    if found.grid[0] <= device.grid_limits[0]:
        return found
    x, y = split_grid_x(found.grid[0], device)
    return Launch((x, y, found.grid[1]), found.block, found.unroll)


def thread_to_output(shape: Shape, launch: Launch) -> IndexingMap:
    """(thread and block ids)[vector_index] -> index in `shape`; ids with one value are left out, x ones kept."""
    return over_ids(work_item_map(shape.dims, shape.minor_to_major, launch.block, launch.grid, launch.unroll), launch)


def emit(analysis: FusionAnalysis, *, numerics: str, name: str) -> EmittedKernel:
    """The kernel: an xla_gpu.loop over the threads' elements, one for each group of roots of one size."""
    chosen = launch(analysis)
    parts = partition(analysis.body, root_groups(analysis))
    functions = KernelFunctions(analysis, parts, numerics=numerics, name=name)
    constants = entry_emitter(functions)
    ids = grid_ids(functions, chosen)
    results = dict(enumerate(functions.outputs))
    maps: list[tuple[str, IndexingMap]] = []
    for group in parts.groups:
        map = thread_to_output(first_shape(group.roots[0]), chosen)
        results.update(emit_group_loop(functions, group, ids, map, constants))
        maps.append((f"thread -> {group.roots[0].name}", map))
    constants.drop_unused()
    functions.close_entry([results[i] for i in range(len(results))], chosen, NAME)
    if analysis.smallest_output_bits < 8:  # the unroll factor is chosen so
        functions.entry.attributes["warpsmith.whole_bytes"] = at.UNIT
    return make_kernel(functions, chosen, NAME, maps)
