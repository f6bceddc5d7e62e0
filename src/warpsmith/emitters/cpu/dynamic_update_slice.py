"""The in-place dynamic-update-slice emitter for CPUs: the update's rows go where they belong, the rest stays.

    work group, for its rows of the update, for their elements:  output[start + index] = update[index]

The output is the updated operand's buffer (`Kernel.aliases`); the runtime copies it first where it isn't free.

In: an analysis with in-place updates.  Out: the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from warpsmith.emitters.cpu.rows import Rows, row_loop
from warpsmith.emitters.cpu.shares import groups_for
from warpsmith.emitters.kernel.entry import KernelFunctions
from warpsmith.emitters.kernel.origin import EmittedKernel
from warpsmith.emitters.kernel.outputs import write_outputs
from warpsmith.emitters.kernel.results import make_kernel
from warpsmith.emitters.shared.in_place import matches, updated_parameters
from warpsmith.emitters.shared.in_place import place as place_of
from warpsmith.emitters.shared.loop import entry_emitter, outputs_of
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.fusion.partitioner import partition
from warpsmith.indexing import bitcast_map
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.dialects import gpu
from warpsmith.kernel import Launch

__all__ = ["NAME", "emit", "matches"]

NAME = "dynamic_update_slice"


def emit(analysis: FusionAnalysis, *, numerics: str, name: str) -> EmittedKernel:
    """The kernel: one loop over the updates, which have one shape."""
    shape = analysis.updates[0].operands[1].array_shape
    wanted = dict.fromkeys(each for update in analysis.updates for each in update.operands[1:])
    parts = partition(analysis.body, [(each,) for each in wanted])
    functions = KernelFunctions(analysis, parts, numerics=numerics, name=name, aliases=updated_parameters(analysis))
    e = entry_emitter(functions)
    groups = groups_for(shape.elements, analysis.device.core_count)
    group = gpu.workgroup_id(e.b, "x", groups)
    sizes = shape.physical_dims() or (1,)
    rows = Rows(math.prod(sizes[:-1]), sizes[-1], groups)
    index_of = bitcast_map((rows.count, rows.length), None, shape.dims, shape.minor_to_major)
    pairs = list(zip(analysis.roots, analysis.updates, strict=True))
    outputs = outputs_of(analysis, analysis.roots)

    def write(row: Value, element: Value, carried: Sequence[Value]) -> list[Value]:
        indices = e.apply(index_of, (row, element))
        values = {root: e.evaluate(update.operands[1], indices) for root, update in pairs}
        places = {root: place_of(e, root, update, indices) for root, update in pairs}
        return write_outputs(e, outputs, carried, values, places)

    found = row_loop(e, group, rows, [functions.outputs[each.number] for each in outputs], write)
    results = list(functions.outputs)
    for output, tensor in zip(outputs, found, strict=True):
        results[output.number] = tensor
    e.drop_unused()
    launch = Launch((groups, 1, 1), (1, 1, 1))
    functions.close_entry(results, launch, NAME)
    read = rows.map().then(index_of).simplify()
    maps = [(f"work group -> {update.operands[1].name}", read) for update in analysis.updates]
    return make_kernel(functions, launch, NAME, maps, chunk=-(-shape.elements // groups))
