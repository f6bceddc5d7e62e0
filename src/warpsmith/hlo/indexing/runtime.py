"""Output-to-input maps of ops that read indices from memory: dynamic-slice, dynamic-update-slice, gather.

In: instructions.  Out: for each operand, its maps; and where the runtime variables in them come from.  Unlike
in XLA's `indexing_analysis.cc`, a start index that is a constant is folded, and a dynamic-update-slice's update map
covers just the elements that it overwrites.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.hlo.indexing.common import Maps, dims_of, identity, int_of, to_scalar
from warpsmith.hlo.module import HloInstruction
from warpsmith.indexing import Expr, IndexingMap, Interval, Variable, add, const, dim, symbol, variables


@dataclass(frozen=True, slots=True)
class RuntimeVariable:
    """Where a runtime variable's value lies: `operand` at the index that `map` gives for an output index.

    The value is clamped to the variable's bounds before use.
    """

    operand: int
    map: IndexingMap


def _starts(
    instruction: HloInstruction, first: int, whole: Sequence[int], part: Sequence[int]
) -> tuple[list[Expr], list[Variable], list[RuntimeVariable]]:
    """The start of a slice in each dimension: a constant, or a runtime variable."""
    starts: list[Expr] = []
    runtime: list[Variable] = []
    sources: list[RuntimeVariable] = []
    output = dims_of(instruction)
    for d, (size, taken) in enumerate(zip(whole, part, strict=True)):
        together = len(instruction.operands) == first + 1 and len(dims_of(instruction.operands[first])) == 1
        operand = instruction.operands[first if together else first + d]
        constant = None if together or operand.literal is None else int(operand.literal.array[()])
        if size - taken <= 0:
            starts.append(const(0))
        elif constant is not None:
            starts.append(const(min(max(constant, 0), size - taken)))
        else:
            starts.append(symbol(len(runtime)))
            runtime.append(Variable("", Interval(0, size - taken)))
            place = IndexingMap.constant((d,) if together else (), output)
            sources.append(RuntimeVariable(first if together else first + d, place))
    return starts, runtime, sources


def _index_operands(instruction: HloInstruction, first: int) -> list[Maps]:
    output = dims_of(instruction)
    return [
        [
            IndexingMap.from_sizes([symbol(0)], output, dims_of(operand))
            if len(dims_of(operand)) == 1
            else to_scalar(output)
        ]
        for operand in instruction.operands[first:]
    ]


def dynamic_slice(instruction: HloInstruction) -> list[Maps]:
    """d + start; start operands are scalars."""
    output = dims_of(instruction)
    starts, runtime, _ = _starts(instruction, 1, dims_of(instruction.operands[0]), output)
    results = [add(dim(d), start) for d, start in enumerate(starts)]
    return [[IndexingMap.make(variables(output), results, rt_vars=runtime)], *_index_operands(instruction, 1)]


def dynamic_update_slice(instruction: HloInstruction) -> list[Maps]:
    """The operand at the same index; the update at d - start, where it covers."""
    output, update = dims_of(instruction), dims_of(instruction.operands[1])
    starts, runtime, _ = _starts(instruction, 2, output, update)
    results = [add(dim(d), -start) for d, start in enumerate(starts)]
    covered = IndexingMap.make(
        variables(output),
        results,
        rt_vars=runtime,
        constraints=[(e, Interval.of_size(n)) for e, n, m in zip(results, update, output, strict=True) if n < m],
    )
    return [[identity(output)], [covered], *_index_operands(instruction, 2)]


def _gather_starts(instruction: HloInstruction) -> tuple[list[Variable], list[RuntimeVariable]]:
    output, operand = dims_of(instruction), dims_of(instruction.operands[0])
    taken, vector = instruction.ints("slice_sizes"), instruction.ints("start_index_map")
    one_index = len(dims_of(instruction.operands[1])) == 1
    runtime: list[Variable] = []
    sources: list[RuntimeVariable] = []
    for d in sorted(vector):
        runtime.append(Variable("", Interval(0, operand[d] - taken[d])))
        place = [dim(0)] if one_index else [dim(0), const(vector.index(d))]
        sources.append(RuntimeVariable(1, IndexingMap.from_sizes(place, output)))
    return runtime, sources


def gather(instruction: HloInstruction) -> list[Maps]:
    """Offset dimension plus start; unknown unless in the simplified form (one batch dimension, nothing collapsed)."""
    output, indices = dims_of(instruction), dims_of(instruction.operands[1])
    offsets, vector = instruction.ints("offset_dims"), sorted(instruction.ints("start_index_map"))
    simple = (
        not instruction.ints("collapsed_slice_dims", ())
        and not instruction.ints("operand_batching_dims", ())
        and offsets == tuple(range(1, len(output)))
        and len(indices) in (1, 2)
        and int_of(instruction, "index_vector_dim") == 1
    )
    if not simple:
        return [[], []]
    runtime, _ = _gather_starts(instruction)
    results: list[Expr] = [
        add(dim(offset), symbol(vector.index(d))) if d in vector else dim(offset) for d, offset in enumerate(offsets)
    ]
    reads = IndexingMap.make(variables(output), results, rt_vars=runtime)
    place = IndexingMap.from_sizes([dim(0), symbol(0)][: len(indices)], output, indices[1:])
    return [[reads], [place]]


def dynamic_slice_sources(instruction: HloInstruction) -> tuple[RuntimeVariable, ...]:
    """The runtime variables of a dynamic-slice's operand map."""
    return tuple(_starts(instruction, 1, dims_of(instruction.operands[0]), dims_of(instruction))[2])


def dynamic_update_slice_sources(instruction: HloInstruction) -> tuple[RuntimeVariable, ...]:
    """The runtime variables of a dynamic-update-slice's update map."""
    return tuple(_starts(instruction, 2, dims_of(instruction), dims_of(instruction.operands[1]))[2])


def gather_sources(instruction: HloInstruction) -> tuple[RuntimeVariable, ...]:
    """The runtime variables of a gather's operand map."""
    return tuple(_gather_starts(instruction)[1])
