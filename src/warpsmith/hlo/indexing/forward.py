"""Output-to-input maps of ops that rearrange, combine or reduce elements.

In: instructions.  Out: for each operand, its maps.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.hlo.indexing.common import Maps, between, dims_of, identity, slices, to_scalar
from warpsmith.hlo.module import HloInstruction
from warpsmith.indexing import (
    Expr,
    IndexingMap,
    Interval,
    Variable,
    add,
    dim,
    floordiv,
    mod,
    mul,
    reshape_map,
    symbol,
    transpose_map,
    variables,
)


def no_operands(instruction: HloInstruction) -> list[Maps]:
    """Constants, iotas, parameters."""
    return []


def elementwise(instruction: HloInstruction) -> list[Maps]:
    """The same index; a scalar operand of a ranked op serves every index."""
    sizes = dims_of(instruction)
    scalar = to_scalar(sizes)
    same = identity(sizes)
    return [[scalar if sizes and not dims_of(operand) else same] for operand in instruction.operands]


def same_place(instruction: HloInstruction) -> list[Maps]:
    """The same index of the only operand."""
    return [[identity(dims_of(instruction))]]


def bitcast_convert(instruction: HloInstruction) -> list[Maps]:
    """The same index; unknown between widths, where an element is part of another or several together."""
    # Between widths, an element is part of another or several together: no map of whole elements.
    same = dims_of(instruction) == dims_of(instruction.operands[0])
    return same_place(instruction) if same else [[]]


def broadcast(instruction: HloInstruction) -> list[Maps]:
    """Operand dimension i is result dimension `dimensions[i]`."""
    results = [dim(d) for d in instruction.ints("dimensions", ())]
    return [[IndexingMap.from_sizes(results, dims_of(instruction))]]


def bitcast(instruction: HloInstruction) -> list[Maps]:
    """The same place in memory."""
    return [between(instruction, instruction.operands[0])]


def reshape(instruction: HloInstruction) -> list[Maps]:
    """The same row-major position."""
    return [[reshape_map(dims_of(instruction), dims_of(instruction.operands[0]))]]


def transpose(instruction: HloInstruction) -> list[Maps]:
    """The inverse permutation."""
    permutation = instruction.ints("dimensions")
    inverse = sorted(range(len(permutation)), key=lambda d: permutation[d])
    return [[transpose_map(dims_of(instruction), inverse)]]


def reverse(instruction: HloInstruction) -> list[Maps]:
    """n - 1 - d in the reversed dimensions."""
    sizes, reversed_dims = dims_of(instruction), instruction.ints("dimensions")
    results = [add(size - 1, -dim(d)) if d in reversed_dims else dim(d) for d, size in enumerate(sizes)]
    return [[IndexingMap.from_sizes(results, sizes)]]


def slice(instruction: HloInstruction) -> list[Maps]:
    """start + stride * d."""
    results = [add(mul(dim(d), part.stride), part.start) for d, part in enumerate(slices(instruction))]
    return [[IndexingMap.from_sizes(results, dims_of(instruction))]]


def concatenate(instruction: HloInstruction) -> list[Maps]:
    """Each operand behind those before it, where the index is its own."""
    sizes, (along,) = dims_of(instruction), instruction.ints("dimensions")
    found: list[Maps] = []
    offset = 0
    for operand in instruction.operands:
        results: list[Expr] = [dim(d) for d in range(len(sizes))]
        results[along] = add(dim(along), -offset)
        dims = list(variables(sizes))
        size = dims_of(operand)[along]
        dims[along] = Variable("", Interval(offset, offset + size - 1))
        offset += size
        found.append([IndexingMap.make(dims, results)])
    return found


def _reduced_map(output: Sequence[int], input_sizes: Sequence[int], reduced: Sequence[int]) -> IndexingMap:
    results: list[Expr] = []
    extents = [input_sizes[d] for d in sorted(reduced)]
    for d in range(len(input_sizes)):
        before = sum(r < d for r in reduced)
        results.append(symbol(before) if d in reduced else dim(d - before))
    return IndexingMap.from_sizes(results, output, extents)


def reduce(instruction: HloInstruction) -> list[Maps]:
    """Result dimensions, and a symbol for each reduced one; init values are scalars."""
    output, inputs = dims_of(instruction), len(instruction.operands) // 2
    found = _reduced_map(output, dims_of(instruction.operands[0]), instruction.ints("dimensions"))
    return [[found]] * inputs + [[to_scalar(output)]] * inputs


def dot(instruction: HloInstruction) -> list[Maps]:
    """Batch dimensions, then the left and the right operand's own; symbols run over contracted ones."""
    output, (left, right) = dims_of(instruction), instruction.operands[:2]
    left_batch, right_batch = instruction.ints("lhs_batch_dims", ()), instruction.ints("rhs_batch_dims", ())
    left_sum = instruction.ints("lhs_contracting_dims", ())
    right_sum = instruction.ints("rhs_contracting_dims", ())
    extents = [dims_of(left)[d] for d in left_sum]
    next_output = len(left_batch)
    found: list[Maps] = []
    for operand, batch, summed in ((left, left_batch, left_sum), (right, right_batch, right_sum)):
        results: dict[int, Expr] = {d: dim(i) for i, d in enumerate(batch)}
        results.update({d: symbol(i) for i, d in enumerate(summed)})
        for d in range(len(dims_of(operand))):
            if d not in results:
                results[d] = dim(next_output)
                next_output += 1
        found.append([IndexingMap.from_sizes([results[d] for d in sorted(results)], output, extents)])
    return found


def scaled_dot(instruction: HloInstruction) -> list[Maps]:
    """As a dot; a scale serves a block of indices."""
    found = dot(instruction)
    for operand, scale in zip(instruction.operands[:2], instruction.operands[2:], strict=True):
        whole = found[len(found) - 2][0]
        blocks = [n // m if m else 1 for n, m in zip(dims_of(operand), dims_of(scale), strict=True)]
        found.append([whole.with_results([floordiv(e, max(1, n)) for e, n in zip(whole.results, blocks, strict=True)])])
    return found


def all_gather(instruction: HloInstruction) -> list[Maps]:
    """The gathered dimension within one shard."""
    output, (along,) = dims_of(instruction), instruction.ints("dimensions")
    if len(instruction.operands) != 1:
        return [[] for _ in instruction.operands]
    results: list[Expr] = [dim(d) for d in range(len(output))]
    results[along] = mod(dim(along), max(1, dims_of(instruction.operands[0])[along]))
    return [[IndexingMap.from_sizes(results, output)]]
