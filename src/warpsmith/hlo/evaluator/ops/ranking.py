"""topk: the k largest (or smallest) elements along the last dimension, and where they stood.

In: an array.  Out: values and s32 indices, best first.  Elements compare in total order (-NaN < -inf < ... < -0 < +0
< ... < inf < NaN); of equal ones the first counts as better.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType
from warpsmith.hlo.evaluator.arithmetic.integers import load
from warpsmith.hlo.evaluator.values import Caller, Kernel, Rule, Value, arrays_of
from warpsmith.hlo.module import HloInstruction

__all__ = ["RANKING", "top_k"]


def _ordered(array: Array, dtype: DType) -> Array:
    """Integers that compare as the elements do in total order."""
    if not dtype.is_float:
        return load(array, dtype) if dtype.is_integer else array.astype(np.uint8)
    bits = np.ascontiguousarray(array).view(f"i{array.dtype.itemsize}")
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def top_k(array: Array, dtype: DType, k: int, *, largest: bool) -> tuple[Array, Array]:
    """(values, indices) along the last dimension."""
    keys = _ordered(array, dtype)
    # Inverting all bits turns an order around without overflow.
    places = np.argsort(np.invert(keys) if largest else keys, axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(array, places, axis=-1), places.astype(np.int32)


def _topk(_: Caller, instruction: HloInstruction) -> Kernel:
    dtype = instruction.operands[0].array_shape.dtype
    k = instruction.attr("k", int)
    largest = bool(instruction.attributes.get("largest", True))

    def kernel(values: Sequence[Value]) -> Value:
        return top_k(arrays_of(values)[0], dtype, k, largest=largest)

    return kernel


RANKING: dict[str, Rule] = {"topk": _topk}
