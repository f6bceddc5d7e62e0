"""What the loop emitters of both machines share: which roots go together, and the body of the loop.

In: an analysis, functions, a map from ids to the elements of a group's first root.  Out: the loop op.
XLA: `xla/codegen/emitters/loop_kernel_emitter.cc`; roots of different element counts, which it can't emit, get a loop
each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.emitters.elemental import HANDLERS, ElementalEmitter, Values
from warpsmith.emitters.elemental.emitter import Indices
from warpsmith.emitters.kernel.entry import KernelFunctions, insert_element
from warpsmith.emitters.kernel.types import element_types
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.fusion.partitioner import Subgraph
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.shapes import Shape
from warpsmith.indexing import IndexingMap, bitcast_map
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.dialects import gpu

__all__ = ["Output", "emit_group_loop", "entry_emitter", "first_shape", "outputs_of", "root_groups"]


@dataclass(frozen=True, slots=True)
class Output:
    """One output buffer: its place in the ABI, the root that fills it, and the first of the root's scalars for it."""

    number: int
    root: HloInstruction
    shape: Shape
    part: int


def first_shape(root: HloInstruction) -> Shape:
    """The array that a root's index runs over: itself, or the first of a variadic reduce."""
    return root.shape.leaves()[0]


def root_groups(analysis: FusionAnalysis) -> list[tuple[HloInstruction, ...]]:
    """Roots of equal element count together, in root order."""
    groups: dict[int, list[HloInstruction]] = {}
    for root in analysis.roots:
        groups.setdefault(first_shape(root).elements, []).append(root)
    return [tuple(group) for group in groups.values()]


def outputs_of(analysis: FusionAnalysis, roots: Sequence[HloInstruction]) -> list[Output]:
    """The output buffers that `roots` fill, in ABI order (a root that the tuple lists twice fills two)."""
    wanted = set(roots)
    body_root = analysis.body.root
    listed = body_root.operands if body_root.opcode == "tuple" else (body_root,)
    found: list[Output] = []
    number = 0
    for root in listed:
        part = 0
        for leaf in root.shape.leaves():
            if root in wanted:
                found.append(Output(number, root, leaf, part))
            part += len(element_types(leaf.dtype))
            number += 1
    return found


def emit_group_loop(
    functions: KernelFunctions, subgraph: Subgraph, ids: Sequence[Value], map: IndexingMap, constants: ElementalEmitter
) -> dict[int, Value]:
    """A loop over `map` (ids and symbols to the first root's index) that fills the group's outputs: number -> tensor.

    All values of one point are computed before the first is inserted, for an output may share an input's buffer.
    """
    outputs = outputs_of(functions.analysis, subgraph.roots)
    inits = [functions.outputs[each.number] for each in outputs]
    loop = gpu.loop(functions.b, ids, map, inits)
    first = first_shape(subgraph.roots[0])
    starts: dict[HloInstruction, int] = {}
    width = 0
    for root in subgraph.roots:
        starts[root] = width
        width += sum(len(element_types(leaf.dtype)) for leaf in root.shape.leaves())
    with constants.inside(loop.body):
        args = loop.body.args
        symbols = len(map.range_vars)
        indices = tuple(args[symbols : symbols + first.rank])
        values = functions.call(constants.b, subgraph, functions.inputs, indices)
        tensors: list[Value] = []
        for output, dest in zip(outputs, args[symbols + first.rank :], strict=True):
            start = starts[output.root] + output.part
            parts = values[start : start + len(element_types(output.shape.dtype))]
            at_root = indices
            if output.shape.dims != first.dims or output.shape.minor_to_major != first.minor_to_major:
                place = bitcast_map(first.dims, first.minor_to_major, output.shape.dims, output.shape.minor_to_major)
                at_root = constants.apply(place, indices)
            tensors.append(insert_element(constants.b, constants, parts, dest, at_root))
        gpu.yield_(constants.b, tensors)
    return {output.number: result for output, result in zip(outputs, loop.results, strict=True)}


def entry_emitter(functions: KernelFunctions) -> ElementalEmitter:
    """Constants and index arithmetic in the entry function, and values that other functions compute."""

    def provide(e: ElementalEmitter, instruction: HloInstruction, indices: Indices) -> Values:
        return functions.call(e.b, functions.partition.owners[instruction], functions.inputs, indices)

    emitter = ElementalEmitter(
        *(functions.entry.body, HANDLERS),
        tensors=functions.inputs,
        provider=provide,
        caller=functions.call_computation,
        strict=functions.numerics == "strict",
    )
    emitter.b.location = functions.b.location
    functions.b = emitter.b
    return emitter
