"""The concatenate emitter for CPUs: from each operand in turn, whole stretches of neighbours.

    seen as [outer, operand's size * inner] each operand is rows, which stand side by side in the output's rows
    work group, for each operand:  for its rows, for their elements:  output[row, start + i] = epilogue(operand[row, i])

No element asks which operand it comes from, so each copy is as wide as the machine's vectors, and large outputs are
written in whole lines past the caches (vectorize-cpu begins each stretch with the rest of a line).

In: an analysis whose hero is a concatenate.  Out: the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from warpsmith.emitters.cpu.rows import Rows, row_loop
from warpsmith.emitters.cpu.shares import groups_for
from warpsmith.emitters.elemental.emitter import Indices
from warpsmith.emitters.kernel.entry import KernelFunctions
from warpsmith.emitters.kernel.origin import EmittedKernel
from warpsmith.emitters.kernel.outputs import write_outputs
from warpsmith.emitters.kernel.results import make_kernel
from warpsmith.emitters.shared.loop import entry_emitter, outputs_of
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.fusion.partitioner import Epilogue, partition
from warpsmith.hlo.indexing.maps import input_to_output_indexing
from warpsmith.hlo.module import HloInstruction
from warpsmith.indexing import IndexingMap, bitcast_map
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.dialects import gpu
from warpsmith.kernel import Launch

__all__ = ["NAME", "emit", "matches"]

NAME = "concatenate"
SHORT = 16  # elements: of shorter stretches the loop emitter makes vectors with a choice in them


def matches(analysis: FusionAnalysis) -> str | None:
    """None unless stretches are short, or operands lie in memory in other orders than the output."""
    hero = analysis.heroes[0]
    if hero.opcode != "concatenate":
        return "the hero is no concatenate"
    order = hero.array_shape.minor_to_major
    for operand in hero.operands:
        if operand.array_shape.minor_to_major != order:
            return f"'{operand.name}' lies in memory in another order than '{hero.name}'"
    count = _outer(hero)
    shortest = min((_length(hero, each) for each in hero.operands if each.array_shape.elements), default=0)
    if count > 1 and shortest < SHORT:
        return f"'{hero.name}' puts stretches of only {shortest} elements together"
    return None


def _sizes(hero: HloInstruction, operand: HloInstruction) -> tuple[list[int], list[int]]:
    """The operand's dims in memory order: those before the concatenated one, and from it on."""
    order = list(reversed(hero.array_shape.minor_to_major))
    at = order.index(hero.ints("dimensions")[0])
    dims = operand.array_shape.dims
    return [dims[d] for d in order[:at]], [dims[d] for d in order[at:]]


def _outer(hero: HloInstruction) -> int:
    return math.prod(_sizes(hero, hero)[0])


def _length(hero: HloInstruction, operand: HloInstruction) -> int:
    return math.prod(_sizes(hero, operand)[1])


def emit(analysis: FusionAnalysis, *, numerics: str, name: str) -> EmittedKernel:
    """The kernel: a loop an operand, one after the other."""
    (hero,), (root,) = analysis.heroes, analysis.roots
    groups = groups_for(hero.array_shape.elements, analysis.device.core_count)
    parts = partition(analysis.body, epilogues=[Epilogue((hero,), (root,), root.array_shape.dims, (None,))])
    functions = KernelFunctions(analysis, parts, numerics=numerics, name=name)
    e = entry_emitter(functions)
    group = gpu.workgroup_id(e.b, "x", groups)
    outputs = outputs_of(analysis, (root,))
    tensors = [functions.outputs[each.number] for each in outputs]
    result, target = hero.array_shape, root.array_shape
    to_root = bitcast_map(result.dims, result.minor_to_major, target.dims, target.minor_to_major)
    maps: list[tuple[str, IndexingMap]] = []
    for number, operand in enumerate(hero.operands):
        shape = operand.array_shape
        if not shape.elements:
            continue
        rows = Rows(_outer(hero), _length(hero, operand), groups)
        read = bitcast_map((rows.count, rows.length), None, shape.dims, shape.minor_to_major)
        write = read.then(input_to_output_indexing(hero, number)[0]).then(to_root).simplify()

        def copy(
            row: Value,
            element: Value,
            carried: Sequence[Value],
            operand: HloInstruction = operand,
            read: IndexingMap = read,
            write: IndexingMap = write,
        ) -> list[Value]:
            place: Indices = e.apply(write, (row, element))
            value = e.evaluate(operand, e.apply(read, (row, element)))
            values = functions.call(e.b, parts.epilogues[0], functions.inputs, place, value)
            return write_outputs(e, outputs, carried, {root: values}, {root: place})

        tensors = row_loop(e, group, rows, tensors, copy)
        maps.append((f"work group -> {operand.name}", rows.map().then(read).simplify()))
        maps.append((f"work group -> {root.name}", rows.map().then(write).simplify()))
    e.drop_unused()
    launch = Launch((groups, 1, 1), (1, 1, 1))
    functions.close_entry(tensors, launch, NAME)
    return make_kernel(functions, launch, NAME, maps, chunk=-(-hero.array_shape.elements // groups))
