"""batch-norm-training, -inference and -grad: in float64, each result rounded once.

In: an operand, vectors of one element a feature.  Out: the normalised operand and the batch's statistics, or
gradients.  The variance is the biased one.  Reference: the definitions in XLA's operation semantics.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpsmith.arrays import Array
from warpsmith.hlo.evaluator.arithmetic.formats import round_once, wide
from warpsmith.hlo.evaluator.values import Caller, Kernel, Rule, Value, arrays_of
from warpsmith.hlo.module import HloInstruction

__all__ = ["NORMALISATION"]


class _Layout:
    """Where features lie, and numbers in and out of float64."""

    def __init__(self, instruction: HloInstruction) -> None:
        shape = instruction.operands[0].array_shape
        feature = instruction.attr("feature_index", int)
        self.dtype = shape.dtype
        self.epsilon = float(instruction.attr("epsilon", float))
        self.others = tuple(axis for axis in range(shape.rank) if axis != feature)
        self._spread = tuple(slice(None) if axis == feature else None for axis in range(shape.rank))

    def load(self, values: Sequence[Value]) -> list[Array]:
        return [wide(array, self.dtype) for array in arrays_of(values)]

    def spread(self, vector: Array) -> Array:
        """A vector along the feature dimension of an operand."""
        return vector[self._spread]

    def round(self, array: Array) -> Array:
        return round_once(array, self.dtype)


def _training(_: Caller, instruction: HloInstruction) -> Kernel:
    at = _Layout(instruction)

    def kernel(values: Sequence[Value]) -> Value:
        x, scale, offset = at.load(values)
        mean, variance = x.mean(axis=at.others), x.var(axis=at.others)
        factor = scale / np.sqrt(variance + at.epsilon)
        result = (x - at.spread(mean)) * at.spread(factor) + at.spread(offset)
        return at.round(result), at.round(mean), at.round(variance)

    return kernel


def _inference(_: Caller, instruction: HloInstruction) -> Kernel:
    at = _Layout(instruction)

    def kernel(values: Sequence[Value]) -> Value:
        x, scale, offset, mean, variance = at.load(values)
        factor = scale / np.sqrt(variance + at.epsilon)
        return at.round((x - at.spread(mean)) * at.spread(factor) + at.spread(offset))

    return kernel


def _grad(_: Caller, instruction: HloInstruction) -> Kernel:
    at = _Layout(instruction)

    def kernel(values: Sequence[Value]) -> Value:
        x, scale, mean, variance, gradient = at.load(values)
        stretched = variance + at.epsilon
        centred = x - at.spread(mean)
        product = gradient * centred
        pull = at.spread(gradient.mean(axis=at.others)) + centred * at.spread(product.mean(axis=at.others) / stretched)
        inward = at.spread(scale / np.sqrt(stretched)) * (gradient - pull)
        by_scale = product.sum(axis=at.others) / np.sqrt(stretched)
        return at.round(inward), at.round(by_scale), at.round(gradient.sum(axis=at.others))

    return kernel


NORMALISATION: dict[str, Rule] = {
    "batch-norm-grad": _grad,
    "batch-norm-inference": _inference,
    "batch-norm-training": _training,
}
