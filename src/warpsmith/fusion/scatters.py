"""What a scatter's dimension numbers and flags come to.

In: a scatter.  Out: `Scatter`; whether the order in which its updates are combined can be seen in its result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from warpsmith.fusion.combiners import combiner_opcode
from warpsmith.hlo.attributes import FrontendAttributes
from warpsmith.hlo.module import HloComputation, HloInstruction

__all__ = ["ORDER_KEPT", "Scatter", "order_matters"]

INDEX_LOAD_BITS = 128  # of neighbouring indices, or update elements, that a lane reads at once
INDICES_PER_CORE = 4
BYTE = 8

ORDER_KEPT = ("update_order", "kept")
"""The frontend attribute of a scatter whose updates are combined one after another, as the interpreter does."""

_ORDER_FREE = frozenset(("add", "multiply", "and", "or", "xor", "maximum", "minimum"))
_ORDER_FREE_ON_FLOATS = frozenset(("maximum", "minimum"))
_ONE_NAN_BITS = 32  # `max.NaN` and `min.NaN` give one NaN for all; f64 has no such instruction


@dataclass(frozen=True)
class Scatter:
    """One scatter: its operands, flags and dims by name."""

    instruction: HloInstruction

    @cached_property
    def count(self) -> int:
        """Operands, and updates."""
        return len(self.instruction.operands) // 2

    @property
    def operands(self) -> tuple[HloInstruction, ...]:
        """The arrays that are updated."""
        return self.instruction.operands[: self.count]

    @property
    def indices(self) -> HloInstruction:
        """The array of indices."""
        return self.instruction.operands[self.count]

    @property
    def updates(self) -> tuple[HloInstruction, ...]:
        """The arrays of updates, one an operand."""
        return self.instruction.operands[self.count + 1 :]

    @property
    def computation(self) -> HloComputation:
        """What combines an element and its update."""
        return self.instruction.attr("to_apply", HloComputation)

    @property
    def is_unique(self) -> bool:
        """Whether the module promises that no element is updated twice."""
        return self.instruction.attributes.get("unique_indices") is True

    @property
    def may_repeat(self) -> bool:
        """Whether an element may be updated more than once."""
        return not self.is_unique and self.slices > 1 and self.slice_elements > 0

    @property
    def needs_step(self) -> bool:
        """Whether an update is one step: others may come to the element, or to the byte that it is a part of."""
        if self.overwrites or self.keeps_order:
            return False
        return self.may_repeat or (self.count == 1 and self.operands[0].array_shape.dtype.bits < BYTE)

    @property
    def keeps_order(self) -> bool:
        """Whether updates are to be combined in the order of the slices."""
        found = self.instruction.attributes.get("frontend_attributes")
        return isinstance(found, FrontendAttributes) and ORDER_KEPT in found.fields

    @property
    def is_sorted(self) -> bool:
        """Whether the module promises that indices ascend."""
        return self.instruction.attributes.get("indices_are_sorted") is True

    @cached_property
    def overwrites(self) -> bool:
        """The computation gives the update, whatever was there."""
        found = self.computation
        return self.count == 1 and len(found.parameters) == 2 and found.root is found.parameters[1]

    # -- dims
    @cached_property
    def operand_dims(self) -> tuple[int, ...]:
        """The dims of each operand."""
        return self.operands[0].array_shape.dims

    @cached_property
    def update_dims(self) -> tuple[int, ...]:
        """The dims of each array of updates."""
        return self.updates[0].array_shape.dims

    @cached_property
    def window_dims(self) -> tuple[int, ...]:
        """Dims of the update that are places within a slice."""
        return self.instruction.ints("update_window_dims", ())

    @cached_property
    def scatter_dims(self) -> tuple[int, ...]:
        """Dims of the update that number the slices."""
        return tuple(d for d in range(len(self.update_dims)) if d not in self.window_dims)

    @cached_property
    def batching(self) -> tuple[tuple[int, int], ...]:
        """(operand dim, indices dim) that go along with one another."""
        ours = self.instruction.ints("input_batching_dims", ())
        theirs = self.instruction.ints("scatter_indices_batching_dims", ())
        return tuple(zip(ours, theirs, strict=True))

    @cached_property
    def kept_dims(self) -> tuple[int, ...]:
        """Operand dims that a slice extends over, in the order of `window_dims`."""
        gone = {*self.instruction.ints("inserted_window_dims", ()), *(d for d, _ in self.batching)}
        return tuple(d for d in range(len(self.operand_dims)) if d not in gone)

    @cached_property
    def window(self) -> tuple[int, ...]:
        """The slice's size along each operand dim."""
        sizes = [1] * len(self.operand_dims)
        for d, at in zip(self.kept_dims, self.window_dims, strict=True):
            sizes[d] = self.update_dims[at]
        return tuple(sizes)

    @cached_property
    def index_map(self) -> tuple[int, ...]:
        """The operand dim that each number of an index vector belongs to."""
        return self.instruction.ints("scatter_dims_to_operand_dims", ())

    @cached_property
    def vector_dim(self) -> int:
        """The dimension of the indices that holds the components of an index."""
        return self.instruction.attr("index_vector_dim", int)

    @cached_property
    def is_simple(self) -> bool:
        """Indices [n, k], updates [n, slice...], a slice over all operand dims."""
        return (
            self.indices.array_shape.rank == 2
            and self.vector_dim == 1
            and self.scatter_dims == (0,)
            and self.window_dims == tuple(range(1, len(self.update_dims)))
            and len(self.kept_dims) == len(self.operand_dims)
        )

    @cached_property
    def is_aligned(self) -> bool:
        """Whether two slices that fit lie on one another or apart, but for batching: none begins inside another."""
        return all(self.window[d] in (1, self.operand_dims[d]) for d in self.index_map)

    @cached_property
    def has_runs(self) -> bool:
        """Whether slices on one another are neighbours: their order says how far each run of them goes."""
        in_order = self.is_sorted or not self.index_map
        return in_order and self.is_aligned and len(self.scatter_dims) == 1 and not self.batching

    @cached_property
    def lie_apart(self) -> bool:
        """Whether the slices of a simple scatter's updates lie one behind the other in memory."""
        shape = self.updates[0].array_shape
        return next((d for d in reversed(shape.minor_to_major) if shape.dims[d] != 1), 0) == 0

    @cached_property
    def slices(self) -> int:
        """How many slices there are."""
        return math.prod(self.update_dims[d] for d in self.scatter_dims)

    @cached_property
    def slice_elements(self) -> int:
        """How many elements an index updates."""
        return math.prod(self.window)

    # -- sorted indices
    def spreads_indices(self, cores: int) -> bool:
        """Whether warps take neighbouring indices, rather than threads the updates' elements."""
        return self.is_simple and self.is_sorted and not self.is_unique and self.slices > INDICES_PER_CORE * cores

    def indices_per_warp(self, cores: int) -> tuple[int, int]:
        """How many indices a warp takes, and how many of them it reads at once."""
        sizes = zip(self.operand_dims, self.window, strict=True)
        places = math.prod([a - b + 1 for a, b in sizes][: len(self.index_map)])
        found = -(-self.slices // max(INDICES_PER_CORE * cores, places))
        together = INDEX_LOAD_BITS // self.indices.array_shape.dtype.bits
        if len(self.index_map) > 1 or found <= together:
            return found, 1
        return -(-found // together) * together, together

    def elements_per_lane(self, warp: int) -> int:
        """How many neighbouring elements of a slice a lane takes at once."""
        bits = self.updates[0].array_shape.dtype.bits
        found = math.gcd(self.slice_elements, INDEX_LOAD_BITS // bits)
        while found > 1 and warp * found > self.slice_elements:
            found //= 2
        return found


def order_matters(scatter: Scatter) -> bool:
    """Whether another order of the updates could give other bits.

    Not where no element is updated twice, nor where the combiner is one op of integers or preds that commutes and
    associates exactly: atomic steps give the same in any order.  So do the maximum and the minimum of floats of up to
    32 bits, in which every NaN becomes the same one; of f64 a NaN's payload may survive, and two differ.
    """
    if not scatter.may_repeat:
        return False
    if scatter.count > 1 or scatter.overwrites:
        return True
    opcode, dtype = combiner_opcode(scatter.computation), scatter.operands[0].array_shape.dtype
    if dtype.is_float:
        return opcode not in _ORDER_FREE_ON_FLOATS or dtype.bits > _ONE_NAN_BITS
    return opcode not in _ORDER_FREE or dtype.is_complex
