"""The in-place dynamic-update-slice emitter: threads are spread over the update; the rest of the buffer stays.

    element (linear, of the update) = (block * threads + thread) * unroll + vector_index
    thread, for each root:  output[element + start] = update[element],   start clamped so that the update fits

The output is the updated operand's buffer (`Kernel.aliases` says which), so nothing else is read or written.
Elements of the operand that the fusion reads besides lie where the update goes, or the analysis would have refused.

In: an analysis with in-place updates.  Out: the kernel.
XLA: `xla/codegen/emitters/dynamic_update_slice_kernel_emitter.cc`.
"""

from __future__ import annotations

from warpsmith.emitters.elemental.emitter import Indices
from warpsmith.emitters.kernel.entry import KernelFunctions
from warpsmith.emitters.kernel.grid import grid_ids, over_ids
from warpsmith.emitters.kernel.launch import calculate_launch, unroll_factor
from warpsmith.emitters.kernel.origin import EmittedKernel
from warpsmith.emitters.kernel.outputs import write_outputs
from warpsmith.emitters.kernel.results import make_kernel
from warpsmith.emitters.shared.in_place import matches, place, update_shape, updated_parameters
from warpsmith.emitters.shared.loop import entry_emitter, outputs_of
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.fusion.partitioner import partition
from warpsmith.hlo.module import HloInstruction
from warpsmith.indexing import IndexingMap, work_item_map
from warpsmith.ir.dialects import gpu
from warpsmith.kernel import Launch

__all__ = ["NAME", "emit", "launch", "matches", "thread_to_input"]

NAME = "dynamic_update_slice"


def launch(analysis: FusionAnalysis) -> Launch:
    """Enough threads for the update."""
    shape = update_shape(analysis)
    return calculate_launch(shape.elements, analysis.device, unroll_factor(analysis, shape))


def thread_to_input(analysis: FusionAnalysis, launch: Launch) -> IndexingMap:
    """(ids)[vector_index] -> index in the updates, which have one shape."""
    shape = update_shape(analysis)
    return work_item_map(shape.dims, shape.minor_to_major, launch.block, launch.grid, launch.unroll)


def emit(analysis: FusionAnalysis, *, numerics: str, name: str) -> EmittedKernel:
    """The kernel: one loop over the update's elements."""
    chosen = launch(analysis)
    wanted = dict.fromkeys(each for update in analysis.updates for each in update.operands[1:])
    parts = partition(analysis.body, [(each,) for each in wanted])
    functions = KernelFunctions(analysis, parts, numerics=numerics, name=name, aliases=updated_parameters(analysis))
    e = entry_emitter(functions)
    ids = grid_ids(functions, chosen)
    outputs = outputs_of(analysis, analysis.roots)
    map = over_ids(thread_to_input(analysis, chosen), chosen)
    names = [f"input_dim{i}" for i in range(map.num_results)]
    loop = gpu.loop(e.b, ids, map, [functions.outputs[each.number] for each in outputs], result_names=names)
    with e.inside(loop.body):
        args = loop.body.args[map.num_symbols :]
        indices: Indices = tuple(args[: map.num_results])
        values = {r: e.evaluate(u.operands[1], indices) for r, u in _pairs(analysis)}
        places = {r: place(e, r, u, indices) for r, u in _pairs(analysis)}
        gpu.yield_(e.b, write_outputs(e, outputs, args[map.num_results :], values, places))
    results = list(functions.outputs)
    for output, tensor in zip(outputs, loop.results, strict=True):
        results[output.number] = tensor
    e.drop_unused()
    functions.close_entry(results, chosen, NAME)
    maps = [(f"thread -> {update.operands[1].name}", map) for update in analysis.updates]
    return make_kernel(functions, chosen, NAME, maps)


def _pairs(analysis: FusionAnalysis) -> list[tuple[HloInstruction, HloInstruction]]:
    return list(zip(analysis.roots, analysis.updates, strict=True))
