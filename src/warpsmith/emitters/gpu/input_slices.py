"""The input-slices emitter: threads are spread over what is sliced; each computes its element once.

    element (linear, of the slices' operand) = (block * threads + thread) * unroll + vector_index
    slices that lie apart:   for each root:  if its slice holds the element: write @operand(element) there
    slices that overlap:     if any slice holds the element: values = @operands(element)
                             for each root:  if its slice holds the element: write its value there

Roots that take parts of one array so read it once, and compute what it is made of once.

In: an analysis whose roots are slices, of stride 1, of operands of one shape.  Out: the kernel.
XLA had such an emitter (`xla/service/gpu/fusions/input_slices.cc`); its loop emitter, which it runs today, would make a
function call a root.
"""

from __future__ import annotations

from itertools import combinations

from warpsmith.emitters.elemental import ElementalEmitter, Values
from warpsmith.emitters.elemental.emitter import Indices
from warpsmith.emitters.elemental.index_ops import check
from warpsmith.emitters.kernel.entry import KernelFunctions
from warpsmith.emitters.kernel.grid import grid_ids, over_ids, through
from warpsmith.emitters.kernel.launch import calculate_launch, unroll_factor
from warpsmith.emitters.kernel.origin import EmittedKernel
from warpsmith.emitters.kernel.outputs import split_roots, write_outputs
from warpsmith.emitters.kernel.results import make_kernel
from warpsmith.emitters.kernel.types import leaf_types
from warpsmith.emitters.shared.loop import entry_emitter, outputs_of
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.fusion.partitioner import Subgraph, partition
from warpsmith.fusion.reasons import Reason, reason
from warpsmith.fusion.traversal import slice_dims
from warpsmith.hlo.indexing.maps import input_to_output_indexing
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.shapes import Shape
from warpsmith.indexing import IndexingMap, work_item_map
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.dialects import arith, gpu, scf
from warpsmith.kernel import Launch

__all__ = ["NAME", "emit", "launch", "matches", "slices_overlap", "thread_to_input", "thread_to_output"]

NAME = "input_slices"
BYTE = 8


def matches(analysis: FusionAnalysis) -> Reason | None:
    """None for elements of whole bytes, in an array that isn't empty."""
    if analysis.smallest_output_bits < BYTE:
        return reason(
            f"slices of {analysis.smallest_output_bits}-bit elements, narrower than a byte, begin within one: two "
            "threads would write parts of it",
            bits=analysis.smallest_output_bits,
            least=BYTE,
        )
    if any(0 in root.array_shape.dims for root in analysis.roots):
        return reason("a slice is empty")
    return None


def slices_overlap(roots: tuple[HloInstruction, ...]) -> bool:
    """Whether some element lies in two slices."""
    boxes = [[(part.start, part.limit) for part in slice_dims(root)] for root in roots]
    return any(
        all(max(a, c) < min(b, d) for (a, b), (c, d) in zip(first, second, strict=True))
        for first, second in combinations(boxes, 2)
    )


def _operand_shape(analysis: FusionAnalysis) -> Shape:
    return analysis.roots[0].operands[0].array_shape


def launch(analysis: FusionAnalysis) -> Launch:
    """Enough threads for the slices' operand."""
    shape = _operand_shape(analysis)
    return calculate_launch(shape.elements, analysis.device, unroll_factor(analysis, shape))


def thread_to_input(shape: Shape, launch: Launch) -> IndexingMap:
    """(ids)[vector_index] -> index in the slices' operand."""
    return work_item_map(shape.dims, shape.minor_to_major, launch.block, launch.grid, launch.unroll)


def thread_to_output(root: HloInstruction, launch: Launch) -> IndexingMap:
    """(ids)[vector_index] -> index in a slice, where it holds the thread's element."""
    into_slice = input_to_output_indexing(root, 0)[0]
    return thread_to_input(root.operands[0].array_shape, launch).then(into_slice).simplify()


def emit(analysis: FusionAnalysis, *, numerics: str, name: str) -> EmittedKernel:
    """The kernel: a loop a root, or one for all where slices overlap."""
    chosen = launch(analysis)
    operands = tuple(dict.fromkeys(root.operands[0] for root in analysis.roots))
    overlap = slices_overlap(analysis.roots)
    parts = partition(analysis.body, [operands] if overlap else [(each,) for each in operands])
    functions = KernelFunctions(analysis, parts, numerics=numerics, name=name)
    e = entry_emitter(functions)
    ids = grid_ids(functions, chosen)
    if overlap:
        results = _together(functions, e, ids, chosen, parts.groups[0])
    else:
        results = _apart(functions, e, ids, chosen)
    e.drop_unused()
    functions.close_entry(results, chosen, NAME)
    read = thread_to_input(_operand_shape(analysis), chosen)
    maps = [(f"thread -> {each.name}", through(read, None, chosen)) for each in operands]
    maps += [(f"thread -> {root.name}", over_ids(thread_to_output(root, chosen), chosen)) for root in analysis.roots]
    return make_kernel(functions, chosen, NAME, maps)


def _apart(functions: KernelFunctions, e: ElementalEmitter, ids: list[Value], chosen: Launch) -> list[Value]:
    """A loop a root over the elements that its slice holds."""
    results = list(functions.outputs)
    for root in functions.analysis.roots:
        rank = root.array_shape.rank
        read, write = thread_to_input(root.operands[0].array_shape, chosen), thread_to_output(root, chosen)
        both = over_ids(write.with_results([*write.results, *read.results]).simplify(), chosen)
        outputs = outputs_of(functions.analysis, (root,))
        names = [*(f"dim{i}" for i in range(rank)), *(f"input_dim{i}" for i in range(rank))]
        loop = gpu.loop(e.b, ids, both, [results[each.number] for each in outputs], result_names=names)
        with e.inside(loop.body):
            args = loop.body.args[both.num_symbols :]
            place: Indices = tuple(args[:rank])
            value = e.evaluate(root.operands[0], tuple(args[rank : 2 * rank]))
            gpu.yield_(e.b, write_outputs(e, outputs, args[2 * rank :], {root: value}, {root: place}))
        for output, tensor in zip(outputs, loop.results, strict=True):
            results[output.number] = tensor
    return results


def _together(
    functions: KernelFunctions, e: ElementalEmitter, ids: list[Value], chosen: Launch, operands: Subgraph
) -> list[Value]:
    """One loop: the operands' values where some slice holds the element, then a test for each root."""
    roots, shape = functions.analysis.roots, _operand_shape(functions.analysis)
    map = over_ids(thread_to_input(shape, chosen), chosen)
    names = [f"input_dim{i}" for i in range(shape.rank)]
    loop = gpu.loop(e.b, ids, map, functions.outputs, result_names=names)
    with e.inside(loop.body):
        args = loop.body.args[map.num_symbols :]
        indices: Indices = tuple(args[: shape.rank])
        tensors: list[Value] = [*args[shape.rank :]]
        inside = {root: check(e, input_to_output_indexing(root, 0)[0], shape.dims, indices) for root in roots}
        values = split_roots(operands.roots, _where_any(functions, e, list(inside.values()), operands, indices))
        for root in roots:
            outputs = outputs_of(functions.analysis, (root,))
            old = [tensors[each.number] for each in outputs]
            new = _write_where(e, root, inside[root], old, values[root.operands[0]], indices, functions)
            for output, tensor in zip(outputs, new, strict=True):
                tensors[output.number] = tensor
        gpu.yield_(e.b, tensors)
    return list(loop.results)


def _where_any(
    functions: KernelFunctions,
    e: ElementalEmitter,
    conditions: list[Value | None],
    operands: Subgraph,
    indices: Indices,
) -> Values:
    """The operands' values where one of the conditions holds (None always does), zeros elsewhere."""
    known = [each for each in conditions if each is not None]
    if len(known) < len(conditions):
        return functions.call(e.b, operands, functions.inputs, indices)
    condition = known[0]
    for each in known[1:]:
        condition = arith.binary(e.b, "ori", condition, each)
    types = [type for root in operands.roots for type in leaf_types(root.shape)]
    branch = e.if_(condition, types)
    with e.inside(branch.regions[0].blocks[0]):
        scf.yield_(e.b, functions.call(e.b, operands, functions.inputs, indices))
    with e.inside(branch.regions[1].blocks[0]):
        scf.yield_(e.b, [e.constant(0, type) for type in types])
    return tuple(branch.results)


def _write_where(
    e: ElementalEmitter,
    root: HloInstruction,
    condition: Value | None,
    tensors: list[Value],
    value: Values,
    indices: Indices,
    functions: KernelFunctions,
) -> list[Value]:
    """The root's outputs with the element written, if its slice holds it."""
    outputs = outputs_of(functions.analysis, (root,))

    def write() -> list[Value]:
        place = e.apply(input_to_output_indexing(root, 0)[0], indices)
        return write_outputs(e, outputs, tensors, {root: value}, {root: place})

    return write() if condition is None else e.only_if(condition, tensors, write)
