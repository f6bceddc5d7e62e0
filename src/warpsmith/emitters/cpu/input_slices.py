"""The input-slices emitter for CPUs: each slice in turn, in its own memory order.

    work group, for each root:  for its rows of the slice, for their elements:  output[row, i] = @operand(start + ..)

Elements that lie in two slices are computed for each: reading twice costs less than asking every element where it goes.

In: an analysis whose roots are slices of stride 1 of operands of one shape.  Out: the kernel.
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
from warpsmith.emitters.shared.loop import entry_emitter, outputs_of
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.fusion.partitioner import partition
from warpsmith.hlo.indexing.maps import output_to_input_indexing
from warpsmith.hlo.module import HloInstruction
from warpsmith.indexing import IndexingMap, bitcast_map
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.dialects import gpu
from warpsmith.kernel import Launch

__all__ = ["NAME", "emit", "matches"]

NAME = "input_slices"


def matches(analysis: FusionAnalysis) -> str | None:
    """None unless a slice is empty."""
    if any(0 in root.array_shape.dims for root in analysis.roots):
        return "a slice is empty"
    return None


def _rows(root: HloInstruction, groups: int) -> Rows:
    """A slice as rows along its most minor dimension that isn't 1."""
    sizes = root.array_shape.physical_dims() or (1,)
    last = max((i for i, size in enumerate(sizes) if size > 1), default=len(sizes) - 1)
    return Rows(math.prod(sizes[:last]), math.prod(sizes[last:]), groups)


def emit(analysis: FusionAnalysis, *, numerics: str, name: str) -> EmittedKernel:
    """The kernel: a loop a root."""
    operands = tuple(dict.fromkeys(root.operands[0] for root in analysis.roots))
    parts = partition(analysis.body, [(each,) for each in operands])
    functions = KernelFunctions(analysis, parts, numerics=numerics, name=name)
    e = entry_emitter(functions)
    elements = sum(root.array_shape.elements for root in analysis.roots)
    groups = groups_for(elements, analysis.device.core_count)
    group = gpu.workgroup_id(e.b, "x", groups)
    results = list(functions.outputs)
    maps: list[tuple[str, IndexingMap]] = []
    for root in analysis.roots:
        shape = root.array_shape
        rows = _rows(root, groups)
        write = bitcast_map((rows.count, rows.length), None, shape.dims, shape.minor_to_major)
        read = write.then(output_to_input_indexing(root)[0][0]).simplify()
        outputs = outputs_of(analysis, (root,))

        def copy(
            row: Value,
            element: Value,
            carried: Sequence[Value],
            root: HloInstruction = root,
            read: IndexingMap = read,
            write: IndexingMap = write,
        ) -> list[Value]:
            value = e.evaluate(root.operands[0], e.apply(read, (row, element)))
            place = e.apply(write, (row, element))
            return write_outputs(e, outputs_of(analysis, (root,)), carried, {root: value}, {root: place})

        found = row_loop(e, group, rows, [results[each.number] for each in outputs], copy)
        for output, tensor in zip(outputs, found, strict=True):
            results[output.number] = tensor
        maps.append((f"work group -> {root.operands[0].name}", rows.map().then(read).simplify()))
        maps.append((f"work group -> {root.name}", rows.map().then(write).simplify()))
    e.drop_unused()
    launch = Launch((groups, 1, 1), (1, 1, 1))
    functions.close_entry(results, launch, NAME)
    return make_kernel(functions, launch, NAME, maps, chunk=-(-elements // groups))
