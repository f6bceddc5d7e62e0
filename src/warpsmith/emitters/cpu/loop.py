"""The loop emitter for CPUs: a work group is a piece of the output for one core, walked in memory order.

    flat (every access follows the output's linear index):   element = workgroup * chunk + i,  i = 0..chunk-1
    nest (anything else): the outer dimensions in memory order are dealt out to work groups in ranges of rows, one loop
                          for each dimension from there on, the innermost over neighbours in memory

In: an analysis.  Out: the kernel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from warpsmith.dtypes import Kind
from warpsmith.emitters.kernel.entry import KernelFunctions
from warpsmith.emitters.kernel.origin import EmittedKernel
from warpsmith.emitters.kernel.results import make_kernel
from warpsmith.emitters.shared.loop import emit_group_loop, entry_emitter, first_shape, root_groups
from warpsmith.fusion.analysis import FusionAnalysis
from warpsmith.fusion.partitioner import partition
from warpsmith.fusion.reasons import Reason
from warpsmith.fusion.traversal import reshape_is_bitcast
from warpsmith.hlo.attributes import Window
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.opcodes import OPCODES
from warpsmith.hlo.shapes import Shape, TupleShape
from warpsmith.indexing import (
    Expr,
    IndexingMap,
    Interval,
    Variable,
    add,
    const,
    delinearize,
    dim,
    floordiv,
    mod,
    mul,
    symbol,
)
from warpsmith.ir.dialects import gpu
from warpsmith.kernel import Launch

__all__ = ["NAME", "Pieces", "emit", "launch", "matches", "thread_to_output"]

NAME = "loop"
MOST_CHUNK = 1 << 16  # elements a work group takes at most, each counted with the loops under it
ONE_PIECE = 1 << 14  # a kernel of up to so many isn't worth handing to other cores
GROUPS_PER_CORE = 4  # when there is enough work, so that a slow core holds nobody up
LINE = 64  # chunks are multiples of this many elements: whole cache lines of every type
_SYMBOLS = ("i", "j", "k", "l", "m", "n")


@dataclass(frozen=True, slots=True)
class Pieces:
    """How the output `shape` is dealt out.

    Flat: each of `workgroups` takes `rows` neighbouring elements.  Nest: dimensions are numbered from the outermost in
    memory; those before `split` are fixed by the work group, which takes `rows` indices of dimension `split` and all of
    the inner ones.
    """

    shape: Shape
    workgroups: int
    rows: int
    flat: bool
    split: int = 0


def matches(analysis: FusionAnalysis) -> Reason | None:
    """None: the loop emitter takes every fusion whose ops can be emitted element by element."""
    return None


def launch(analysis: FusionAnalysis) -> Pieces:
    """The pieces of the largest root."""
    shape = max((first_shape(root) for root in analysis.roots), key=lambda each: each.elements)
    chunk = _chunk(shape.elements, _cost(analysis), analysis.device.core_count)
    if shape.rank < 2 or shape.elements <= 1 or _is_flat(analysis, shape):
        return Pieces(shape, -(-max(1, shape.elements) // chunk), chunk, True)
    sizes = shape.physical_dims()
    split, inner = 0, math.prod(sizes[1:])
    while inner > chunk:
        split += 1
        inner //= sizes[split]
    rows = max(1, min(sizes[split], chunk // inner))
    blocks = -(-sizes[split] // rows)
    rows = -(-sizes[split] // blocks)
    if split == len(sizes) - 1 and blocks > 1:
        rows = -(-rows // LINE) * LINE
        blocks = -(-sizes[split] // rows)
    return Pieces(shape, math.prod(sizes[:split]) * blocks, rows, False, split)


def _chunk(elements: int, cost: int, cores: int) -> int:
    """Elements a work group should take: few enough for the caches and for every core to get some."""
    elements = max(1, elements)
    work = elements * cost
    if work <= ONE_PIECE:
        return elements
    if work >= MOST_CHUNK * cores:
        chunk = max(1, min(MOST_CHUNK // cost, -(-elements // (GROUPS_PER_CORE * cores))))
    else:
        chunk = -(-elements // cores)
    lines = -(-chunk // LINE) * LINE
    return chunk if lines * cores > elements else lines


def _cost(analysis: FusionAnalysis) -> int:
    """The longest loop under one element."""
    return max([1, *map(_loop_length, analysis.instructions)])


def _loop_length(instruction: HloInstruction) -> int:
    match instruction.opcode:
        case "reduce":
            sizes = instruction.operands[0].array_shape.dims
            return math.prod(sizes[d] for d in instruction.ints("dimensions"))
        case "dot":
            sizes = instruction.operands[0].array_shape.dims
            return math.prod(sizes[d] for d in instruction.ints("lhs_contracting_dims", ()))
        case "reduce-window" | "convolution":
            window = instruction.attributes.get("window")
            return math.prod(each.size for each in window.dims) if isinstance(window, Window) else 1
        case _:
            return 1


def _is_flat(analysis: FusionAnalysis, shape: Shape) -> bool:
    """Whether every access follows the linear index of the output, or is to a single element."""
    return all(_follows(each, shape) for each in analysis.instructions if each.opcode != "tuple")


def _follows(instruction: HloInstruction, shape: Shape) -> bool:
    own = instruction.shape
    if isinstance(own, TupleShape):
        return False
    if own.elements == 1:
        return all(each.shape.leaves()[0].elements == 1 for each in instruction.operands)
    if own.elements != shape.elements:
        return False
    if instruction.opcode in ("parameter", "constant"):
        return instruction.opcode == "parameter" or (instruction.literal is not None and instruction.literal.is_splat)
    row = OPCODES.get(instruction.opcode)
    sources = [each.shape for each in instruction.operands]
    if instruction.opcode == "broadcast":
        return all(not isinstance(each, TupleShape) and each.elements == 1 for each in sources)
    if instruction.opcode == "bitcast":
        return own.dtype.bits == sources[0].leaves()[0].dtype.bits
    if instruction.opcode == "reshape":
        return not isinstance(sources[0], TupleShape) and reshape_is_bitcast(sources[0], own)
    if row is None or not row.elementwise or own.dtype.kind is Kind.TOKEN:
        return False
    return all(
        not isinstance(each, TupleShape)
        and (each.rank == 0 or (each.dims == own.dims and each.minor_to_major == own.minor_to_major))
        for each in sources
    )


def thread_to_output(shape: Shape, pieces: Pieces) -> IndexingMap:
    """(workgroup_id)[loops] -> index in `shape`, which is the pieces' shape or another root's."""
    main = pieces.shape
    if pieces.flat or shape.dims != main.dims or shape.minor_to_major != main.minor_to_major:
        same = shape.elements == main.elements and pieces.flat
        return _flat_map(
            shape, pieces.workgroups, pieces.rows if same else -(-max(1, shape.elements) // pieces.workgroups)
        )
    return _nest_map(shape, pieces)


def _flat_map(shape: Shape, workgroups: int, chunk: int) -> IndexingMap:
    position = add(mul(dim(0), chunk), symbol(0))
    return IndexingMap.make(
        [Variable("workgroup_id", Interval.of_size(workgroups))],
        delinearize(position, shape.dims, shape.minor_to_major),
        range_vars=[Variable("i", Interval.of_size(chunk))],
        constraints=[(position, Interval.of_size(shape.elements))],
    ).simplify()


def _nest_map(shape: Shape, pieces: Pieces) -> IndexingMap:
    sizes = shape.physical_dims()
    split, rows = pieces.split, pieces.rows
    blocks = -(-sizes[split] // rows)
    group = dim(0)
    row = add(mul(mod(group, blocks), rows), symbol(0))
    indices: list[Expr] = [*delinearize(floordiv(group, blocks), sizes[:split]), row]
    loops = [Variable(_SYMBOLS[0], Interval.of_size(rows))]
    for size in sizes[split + 1 :]:
        if size == 1:
            indices.append(const(0))
            continue
        indices.append(symbol(len(loops)))
        loops.append(Variable(_SYMBOLS[len(loops) % len(_SYMBOLS)], Interval.of_size(size)))
    by_dimension = dict(zip(reversed(shape.minor_to_major), indices, strict=True))
    return IndexingMap.make(
        [Variable("workgroup_id", Interval.of_size(pieces.workgroups))],
        [by_dimension[d] for d in range(shape.rank)],
        range_vars=loops,
        constraints=[(row, Interval.of_size(sizes[split]))],
    ).simplify()


def emit(analysis: FusionAnalysis, *, numerics: str, name: str) -> EmittedKernel:
    """The kernel: an xla_gpu.loop over the work group's elements, one for each group of roots of one size."""
    pieces = launch(analysis)
    parts = partition(analysis.body, root_groups(analysis))
    functions = KernelFunctions(analysis, parts, numerics=numerics, name=name)
    constants = entry_emitter(functions)
    ids = [gpu.workgroup_id(functions.b, "x", pieces.workgroups)]
    results = dict(enumerate(functions.outputs))
    maps: list[tuple[str, IndexingMap]] = []
    for group in parts.groups:
        map = thread_to_output(first_shape(group.roots[0]), pieces)
        results.update(emit_group_loop(functions, group, ids, map, constants))
        maps.append((f"work group -> {group.roots[0].name}", map))
    chosen = Launch((pieces.workgroups, 1, 1), (1, 1, 1))
    constants.drop_unused()
    functions.close_entry([results[i] for i in range(len(results))], chosen, NAME)
    chunk = -(-max(1, pieces.shape.elements) // pieces.workgroups)
    return make_kernel(functions, chosen, NAME, maps, chunk=chunk)
