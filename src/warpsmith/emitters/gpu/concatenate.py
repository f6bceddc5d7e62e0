"""The concatenate emitter: threads are spread over the largest operand, and copy from each operand in turn.

    element (linear, of the largest operand) = (block * threads + thread) * unroll + vector_index
    thread, for each operand that has an element there:  value = epilogue(operand[element])
                                                         output[element moved behind the operands before] = value

No thread asks which operand its element of the output comes from, so reads and writes are contiguous, and vectors
where every operand's size along the concatenated dimension is a multiple of them.  Threads beyond a smaller operand do
nothing for it.

In: an analysis whose hero is a concatenate of at most four operands.  Out: the kernel.
XLA: `xla/codegen/emitters/concatenate_kernel_emitter.cc`.
"""

from __future__ import annotations

import math

from warpsmith.emitters.elemental.emitter import Indices
from warpsmith.emitters.kernel.entry import KernelFunctions
from warpsmith.emitters.kernel.grid import grid_ids, over_ids
from warpsmith.emitters.kernel.launch import calculate_launch, unroll_factor
from warpsmith.emitters.kernel.origin import EmittedKernel
from warpsmith.emitters.kernel.outputs import write_outputs
from warpsmith.emitters.kernel.results import make_kernel
from warpsmith.emitters.shared.loop import entry_emitter, outputs_of
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.fusion.partitioner import Epilogue, partition
from warpsmith.fusion.reasons import Reason, reason
from warpsmith.hlo.indexing.maps import input_to_output_indexing
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.shapes import Shape
from warpsmith.indexing import IndexingMap, Interval, bitcast_map, work_item_map
from warpsmith.ir.core import attributes as at
from warpsmith.ir.dialects import gpu
from warpsmith.kernel import Launch

__all__ = ["NAME", "emit", "launch", "matches", "thread_to_input", "thread_to_output"]

NAME = "concatenate"
BYTE = 8


def matches(analysis: FusionAnalysis) -> Reason | None:
    """None unless operands would begin within a byte of the output."""
    hero = analysis.heroes[0]
    if hero.opcode != "concatenate":
        return reason("the hero is no concatenate")
    bits = analysis.roots[0].array_shape.dtype.bits
    written = _unroll(analysis) * bits
    if bits < BYTE and written % BYTE:
        return reason(
            f"operands of '{hero.name}' begin within a byte: two threads would write parts of one, {written} bits each",
            bits=written,
            byte=BYTE,
        )
    return None


def _along(hero: HloInstruction) -> int:
    return hero.ints("dimensions")[0]


def _largest(hero: HloInstruction) -> Shape:
    """The shape of the first operand that is as long as any along the concatenated dimension."""
    return max((each.array_shape for each in hero.operands), key=lambda shape: shape.dims[_along(hero)])


def _unroll(analysis: FusionAnalysis) -> int:
    hero = analysis.heroes[0]
    sizes = [each.array_shape.dims[_along(hero)] for each in hero.operands]
    return math.gcd(unroll_factor(analysis, _largest(hero)), *sizes)


def launch(analysis: FusionAnalysis) -> Launch:
    """Enough threads for the largest operand."""
    return calculate_launch(_largest(analysis.heroes[0]).elements, analysis.device, _unroll(analysis))


def thread_to_input(hero: HloInstruction, number: int, launch: Launch) -> IndexingMap:
    """(ids)[vector_index] -> index in an operand, where it has one."""
    shape, along = _largest(hero), _along(hero)
    map = work_item_map(shape.dims, shape.minor_to_major, launch.block, launch.grid, launch.unroll)
    size = hero.operands[number].array_shape.dims[along]
    return map.add_constraint(map.results[along], Interval.of_size(size)).simplify()


def thread_to_output(hero: HloInstruction, root: HloInstruction, number: int, launch: Launch) -> IndexingMap:
    """(ids)[vector_index] -> index in the root of what a thread copies from an operand."""
    moved, result, target = input_to_output_indexing(hero, number)[0], hero.array_shape, root.array_shape
    to_root = bitcast_map(result.dims, result.minor_to_major, target.dims, target.minor_to_major)
    return thread_to_input(hero, number, launch).then(moved).then(to_root).simplify()


def emit(analysis: FusionAnalysis, *, numerics: str, name: str) -> EmittedKernel:
    """The kernel: a loop an operand, one after the other."""
    (hero,), (root,) = analysis.heroes, analysis.roots
    chosen = launch(analysis)
    parts = partition(analysis.body, epilogues=[Epilogue((hero,), (root,), root.array_shape.dims, (None,))])
    functions = KernelFunctions(analysis, parts, numerics=numerics, name=name)
    e = entry_emitter(functions)
    ids = grid_ids(functions, chosen)
    outputs = outputs_of(analysis, (root,))
    tensors = [functions.outputs[each.number] for each in outputs]
    rank, source_rank = root.array_shape.rank, hero.array_shape.rank
    names = [*(f"dim{i}" for i in range(rank)), *(f"input_dim{i}" for i in range(source_rank))]
    maps: list[tuple[str, IndexingMap]] = []
    for number, operand in enumerate(hero.operands):
        if 0 in operand.array_shape.dims:
            continue
        write, read = thread_to_output(hero, root, number, chosen), thread_to_input(hero, number, chosen)
        both = over_ids(write.with_results([*write.results, *read.results]).simplify(), chosen)
        loop = gpu.loop(e.b, ids, both, tensors, result_names=names)
        with e.inside(loop.body):
            args = loop.body.args[both.num_symbols :]
            indices: Indices = tuple(args[:rank])
            value = e.evaluate(operand, tuple(args[rank : rank + source_rank]))
            values = functions.call(e.b, parts.epilogues[0], functions.inputs, indices, value)
            gpu.yield_(e.b, write_outputs(e, outputs, args[rank + source_rank :], {root: values}, {root: indices}))
        tensors = list(loop.results)
        maps.append((f"thread -> {operand.name}", over_ids(read, chosen)))
        maps.append((f"thread -> {root.name}", over_ids(write, chosen)))
    e.drop_unused()
    functions.close_entry(tensors, chosen, NAME)
    if root.array_shape.dtype.bits < BYTE:
        functions.entry.attributes["warpsmith.whole_bytes"] = at.UNIT
    return make_kernel(functions, chosen, NAME, maps)
