"""The in-place dynamic-update-slice emitter: threads are spread over the update; the rest of the buffer stays.

    element (linear, of the update) = (block * threads + thread) * unroll + vector_index
    thread, for each root:  output[element + start] = update[element],   start clamped so that the update fits

The output is the updated operand's buffer (`EmittedKernel.aliases` says which), so nothing else is read or written.
Elements of the operand that the fusion reads besides lie where the update goes, or the analysis would have refused.

In: an analysis with in-place updates.  Out: the kernel.  Reference: section 5.4.
"""

from __future__ import annotations

from warpsmith.emitters.elemental import ElementalEmitter
from warpsmith.emitters.elemental.emitter import Indices
from warpsmith.emitters.elemental.index_ops import clamp_start
from warpsmith.emitters.entry import KernelFunctions
from warpsmith.emitters.gpu.grid import grid_ids, over_ids, write_outputs
from warpsmith.emitters.kernel import EmittedKernel
from warpsmith.emitters.launch import Launch, calculate_launch, unroll_factor
from warpsmith.emitters.loop_common import entry_emitter, outputs_of
from warpsmith.emitters.results import make_kernel
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.fusion.partitioner import partition
from warpsmith.fusion.reasons import Reason, reason
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.shapes import Shape
from warpsmith.indexing import IndexingMap, bitcast_map, work_item_map
from warpsmith.ir.core import Value
from warpsmith.ir.dialects import arith, gpu

__all__ = ["NAME", "emit", "launch", "matches", "place", "thread_to_input", "updated_parameters"]

NAME = "dynamic_update_slice"


def matches(analysis: FusionAnalysis) -> Reason | None:
    """None unless a root is a bitcast to another type, or there is nothing to write."""
    for root, update in zip(analysis.roots, analysis.updates, strict=True):
        if root.array_shape.dtype is not update.array_shape.dtype:
            return reason(f"'{root.name}' is another type's view of the updated buffer")
    if not analysis.updates:
        return reason("no root is a dynamic-update-slice")
    return reason("the update is empty") if 0 in _update_shape(analysis).dims else None


def _update_shape(analysis: FusionAnalysis) -> Shape:
    return analysis.updates[0].operands[1].array_shape


def updated_parameters(analysis: FusionAnalysis) -> dict[int, int]:
    """The parameter whose buffer each output shares, by number."""
    found: dict[int, int] = {}
    for root, update in zip(analysis.roots, analysis.updates, strict=True):
        buffer = update.operands[0]
        source = buffer.operands[0] if buffer.opcode == "bitcast" else buffer
        assert source.parameter_number is not None
        for output in outputs_of(analysis, (root,)):
            found[output.number] = source.parameter_number
    return found


def launch(analysis: FusionAnalysis) -> Launch:
    """Enough threads for the update."""
    shape = _update_shape(analysis)
    return calculate_launch(shape.elements, analysis.device, unroll_factor(analysis, shape))


def thread_to_input(analysis: FusionAnalysis, launch: Launch) -> IndexingMap:
    """(ids)[vector_index] -> index in the updates, which have one shape."""
    shape = _update_shape(analysis)
    return work_item_map(shape.dims, shape.minor_to_major, launch.block, launch.grid, launch.unroll)


def emit(analysis: FusionAnalysis, *, numerics: str, name: str) -> EmittedKernel:
    """The kernel: one loop over the update's elements."""
    chosen = launch(analysis)
    wanted = dict.fromkeys(each for update in analysis.updates for each in update.operands[1:])
    parts = partition(analysis.body, [(each,) for each in wanted])
    functions = KernelFunctions(*(analysis, parts), numerics=numerics, name=name, aliases=updated_parameters(analysis))
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


def place(e: ElementalEmitter, root: HloInstruction, update: HloInstruction, indices: Indices) -> Indices:
    """Where an element of the update goes in the root."""
    whole, part = update.array_shape, update.operands[1].array_shape
    found: list[Value] = []
    for d, index in enumerate(indices):
        limit = whole.dims[d] - part.dims[d]
        if limit <= 0:  # the start can only be 0: it isn't even read
            found.append(index)
            continue
        source = update.operands[2] if _has_vector_start(update) else update.operands[2 + d]
        (start,) = e.evaluate(source, (e.index(d),) if _has_vector_start(update) else ())
        found.append(arith.binary(e.b, "addi", index, clamp_start(e, start, source, limit)))
    target = root.array_shape
    if root is update:
        return tuple(found)
    return e.apply(bitcast_map(whole.dims, whole.minor_to_major, target.dims, target.minor_to_major), found)


def _has_vector_start(update: HloInstruction) -> bool:
    """One vector of start indices instead of scalars (an older form)."""
    return len(update.operands) == 3 and update.operands[2].array_shape.rank == 1
