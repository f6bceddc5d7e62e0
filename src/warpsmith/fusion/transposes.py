"""When a transpose is worth a shared-memory tile.

In: a transpose instruction.  Out: `TransposeDescription` (normalised dims and permutation), or the `Reason` why the
loop emitter does as well.
XLA: `GetDescriptionForTiledTransposeEmitter` of `xla/service/gpu/ir_emission_utils.cc`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from warpsmith.fusion.reasons import Reason, reason
from warpsmith.hlo.module import HloInstruction
from warpsmith.hlo.shapes import Shape, TupleShape

__all__ = ["PackedTile", "TransposeDescription", "describe_transpose", "normalize_transpose", "packed_tile"]

TILE = 32  # lanes of a warp, banks of shared memory
MIN_DIM = 16
MIN_COMBINED_DIM = 8
MIN_COMBINED_ELEMENTS = 64 * 128
MAX_UNMOVED_BITS = 64
MIN_UNMOVED_BITS = 128


@dataclass(frozen=True, slots=True)
class PackedTile:
    """Tile sizes of the swizzled transpose of elements narrower than 32 bits: `vector` of them fill a word."""

    vector: int
    tile_t1: int
    tile_a: int
    tile_t2: int
    dimensions: tuple[int, ...]
    permutation: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TransposeDescription:
    """Output dims and permutation, size-1 dims dropped, runs merged: output dim i is input dim permutation[i]."""

    dimensions: tuple[int, ...]
    permutation: tuple[int, ...]
    bits: int
    shared_bytes: int
    packed: PackedTile | None

    @property
    def input_dimensions(self) -> tuple[int, ...]:
        """The dims before the transpose; `dimensions` are those after it."""
        sizes = [0] * len(self.dimensions)
        for size, source in zip(self.dimensions, self.permutation, strict=True):
            sizes[source] = size
        return tuple(sizes)

    def is_equivalent(self, other: TransposeDescription) -> bool:
        """Whether one tile serves both."""
        return (self.dimensions, self.permutation, self.bits) == (other.dimensions, other.permutation, other.bits)


def normalize_transpose(shape: Shape, permutation: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Output dims and permutation without size-1 dims, dims that stay neighbours merged."""
    kept = [i for i, size in enumerate(shape.dims) if size != 1]
    ranks = {source: rank for rank, source in enumerate(sorted(permutation[i] for i in kept))}
    sizes: list[int] = []
    sources: list[int] = []
    last = -2
    for i in kept:
        source = ranks[permutation[i]]
        if source == last + 1:
            sizes[-1] *= shape.dims[i]
        else:
            sizes.append(shape.dims[i])
            sources.append(source)
        last = source
    order = {source: rank for rank, source in enumerate(sorted(sources))}
    return tuple(sizes), tuple(order[source] for source in sources)


def packed_tile(dimensions: tuple[int, ...], permutation: tuple[int, ...], bits: int) -> PackedTile | None:
    """The tile of the packed transpose, or None where it doesn't apply."""
    if bits >= TILE:
        return None
    vector = TILE // bits
    dims, perm = list(dimensions), list(permutation)
    if perm[-1] != len(perm) - 1:
        dims.append(1)
        perm.append(len(perm))
    rank = len(dims)
    if dims[-1] != 1 or rank < 3:
        return None
    if perm[rank - 3] != rank - 3:
        # A fixed dimension of size 1 stands before the two that swap, on both sides.
        perm = [source + (source >= rank - 2) for source in perm]
        dims.insert(rank - 2, 1)
        perm.insert(rank - 2, rank - 2)
        rank += 1
    sizes = [0] * rank
    for size, source in zip(dims, perm, strict=True):
        sizes[source] = size
    side = TILE * vector
    t1, t2 = sizes[rank - 2], dims[rank - 2]
    tile_t1 = min(t1, side)
    tile_a = min(dims[rank - 3], side // tile_t1)
    tile_t2 = min(t2, side)
    rows, columns = tile_t2, tile_a * tile_t1
    if min(rows, columns) < 10 * vector or rows % vector or columns % vector or (t2 % tile_t2) % vector:
        return None
    return PackedTile(vector, tile_t1, tile_a, tile_t2, tuple(dims), tuple(perm))


def describe_transpose(instruction: HloInstruction) -> TransposeDescription | Reason:
    """The description of a transpose that a tile pays for; otherwise why none does."""
    source, shape = instruction.operands[0].shape, instruction.shape
    if isinstance(source, TupleShape) or isinstance(shape, TupleShape):
        return reason("it transposes a tuple")
    if not (source.is_row_major and shape.is_row_major):
        return reason(f"'{instruction.name}' doesn't keep row-major layouts on both sides")
    dims, permutation = normalize_transpose(shape, instruction.ints("dimensions"))
    if len(dims) < 2:
        return reason(f"'{instruction.name}' moves no data: only dimensions of size 1 change place")
    bits = shape.dtype.bits
    packed = packed_tile(dims, permutation, bits)
    if packed is not None:
        return TransposeDescription(dims, permutation, bits, TILE * 4 * TILE * packed.vector, packed)
    rank, minor = len(dims), dims[-1]
    sizes = [0] * rank
    for size, origin in zip(dims, permutation, strict=True):
        sizes[origin] = size
    if permutation[-1] == rank - 1:
        row = bits * minor
        if row > MAX_UNMOVED_BITS:
            return reason(
                f"'{instruction.name}' keeps rows of {minor} x {bits} bits together: {row} bits, more than "
                f"{MAX_UNMOVED_BITS}, are wide enough for direct access",
                row_bits=row,
                most=MAX_UNMOVED_BITS,
            )
        run = row * min(sizes[rank - 2], dims[rank - 2])
        if run < MIN_UNMOVED_BITS:
            return reason(
                f"'{instruction.name}' turns {sizes[rank - 2]} x {dims[rank - 2]} rows of {row} bits: the shorter side "
                f"has {run} bits, fewer than {MIN_UNMOVED_BITS}",
                side_bits=run,
                least=MIN_UNMOVED_BITS,
            )
        return TransposeDescription(dims, permutation, bits, math.ceil(TILE * (TILE + 1) * bits * minor / 8), None)
    if bits == 4:
        return reason(f"'{instruction.name}' moves 4-bit elements, which the padded tile doesn't take")
    small, large = sorted((sizes[-1], minor))
    if small >= MIN_DIM or (small >= MIN_COMBINED_DIM and small * large >= MIN_COMBINED_ELEMENTS):
        return TransposeDescription(dims, permutation, bits, math.ceil(TILE * (TILE + 1) * bits / 8), None)
    return reason(
        f"'{instruction.name}' has minor dimensions {sizes[-1]} (input) and {minor} (output): a tile wants both >= "
        f"{MIN_DIM}, or both >= {MIN_COMBINED_DIM} and their product {sizes[-1] * minor} >= {MIN_COMBINED_ELEMENTS}",
        input_minor=sizes[-1],
        output_minor=minor,
        least=MIN_DIM,
        least_combined=MIN_COMBINED_DIM,
        product=sizes[-1] * minor,
        least_product=MIN_COMBINED_ELEMENTS,
    )
