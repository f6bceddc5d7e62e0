"""Input-to-output maps: which elements of the result depend on an element of an operand.

In: instructions and the number of an operand.  Out: its maps.
"""

from __future__ import annotations

from warpsmith.hlo.indexing.common import Maps, between, dims_of, every_index, identity, slices
from warpsmith.hlo.indexing.forward import reverse as reverse_map
from warpsmith.hlo.module import HloInstruction
from warpsmith.indexing import (
    Expr,
    IndexingMap,
    Interval,
    add,
    dim,
    floordiv,
    mod,
    reshape_map,
    symbol,
    transpose_map,
    variables,
)


def elementwise(instruction: HloInstruction, operand: int) -> Maps:
    """The same index; a scalar operand reaches every index."""
    sizes = dims_of(instruction)
    if sizes and not dims_of(instruction.operands[operand]):
        return [every_index(sizes)]
    return [identity(sizes)]


def bitcast(instruction: HloInstruction, operand: int) -> Maps:
    """The same place in memory."""
    return between(instruction.operands[0], instruction)


def bitcast_convert(instruction: HloInstruction, operand: int) -> Maps:
    """The same index; unknown between widths."""
    sizes = dims_of(instruction)
    return [identity(sizes)] if sizes == dims_of(instruction.operands[0]) else []


def broadcast(instruction: HloInstruction, operand: int) -> Maps:
    """Symbols run over the new dimensions."""
    kept, output = instruction.ints("dimensions", ()), dims_of(instruction)
    new = [d for d in range(len(output)) if d not in kept]
    results = [dim(kept.index(d)) if d in kept else symbol(new.index(d)) for d in range(len(output))]
    return [IndexingMap.from_sizes(results, dims_of(instruction.operands[0]), [output[d] for d in new])]


def concatenate(instruction: HloInstruction, operand: int) -> Maps:
    """Behind the operands before it."""
    (along,) = instruction.ints("dimensions")
    sizes = dims_of(instruction.operands[operand])
    results: list[Expr] = [dim(d) for d in range(len(sizes))]
    results[along] = add(dim(along), sum(dims_of(other)[along] for other in instruction.operands[:operand]))
    return [IndexingMap.from_sizes(results, sizes)]


def reduce(instruction: HloInstruction, operand: int) -> Maps:
    """Without the reduced dimensions; an init value reaches every index."""
    if operand >= len(instruction.operands) // 2:
        return [every_index(dims_of(instruction))]
    sizes, reduced = dims_of(instruction.operands[operand]), instruction.ints("dimensions")
    return [IndexingMap.from_sizes([dim(d) for d in range(len(sizes)) if d not in reduced], sizes)]


def reshape(instruction: HloInstruction, operand: int) -> Maps:
    """The same row-major position."""
    return [reshape_map(dims_of(instruction.operands[0]), dims_of(instruction))]


def reverse(instruction: HloInstruction, operand: int) -> Maps:
    """n - 1 - d in the reversed dimensions."""
    return reverse_map(instruction)[0]


def slice(instruction: HloInstruction, operand: int) -> Maps:
    """(d - start) floordiv stride, where the slice takes the element."""
    constraints: list[tuple[Expr, Interval]] = []
    results: list[Expr] = []
    for d, (part, size) in enumerate(zip(slices(instruction), dims_of(instruction), strict=True)):
        from_start = add(dim(d), -part.start)
        results.append(floordiv(from_start, part.stride))
        constraints.append((dim(d), Interval(part.start, part.start + (size - 1) * part.stride)))
        constraints.append((mod(from_start, part.stride), Interval.point(0)))
    return [IndexingMap.make(variables(dims_of(instruction.operands[0])), results, constraints=constraints)]


def transpose(instruction: HloInstruction, operand: int) -> Maps:
    """The permutation."""
    return [transpose_map(dims_of(instruction.operands[0]), instruction.ints("dimensions"))]
