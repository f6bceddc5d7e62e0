"""dot: products summed in float64 (complex128; the result's own integers), rounded once.

In: two arrays and the batch and contracting dimensions.  Out: [batch..., lhs rest..., rhs rest...].  An `algorithm`
that narrows its operands (`dot_bf16_bf16_f32`, `dot_tf32_tf32_f32`...) narrows them here too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType, Kind, by_name
from warpsmith.hlo.evaluator.arithmetic.convert import converter, plain_integer, reduce_precision
from warpsmith.hlo.evaluator.arithmetic.formats import round_once, wide
from warpsmith.hlo.evaluator.arithmetic.integers import load, store
from warpsmith.hlo.evaluator.values import Caller, Kernel, Value, arrays_of
from warpsmith.hlo.module import HloInstruction

__all__ = ["DOT", "matrices", "narrowed", "sum_of_products"]

_NARROW: dict[str, tuple[int, int]] = {
    "bf16_bf16": (8, 7),
    "f16_f16": (5, 10),
    "tf32_tf32": (8, 10),
}
"""Operand formats of algorithms by name: exponent and mantissa bits."""


def narrowed(array: Array, dtype: DType, algorithm: str | None) -> Array:
    """The operand as the algorithm reads it."""
    if algorithm is None or dtype.name not in ("f32", "f64"):
        return array
    words = algorithm.removeprefix("dot_").split("_")
    form = _NARROW.get("_".join(words[:2]))
    if form is None or any(word.startswith("x") for word in words):  # x3, x6, x9: sums that make up for the narrowing
        return array
    if form == (5, 10):
        return array.astype(np.float16).astype(dtype.numpy)
    return reduce_precision(dtype, *form)(array)


def matrices(
    array: Array,
    batch: Sequence[int],
    contracting: Sequence[int],
    *,
    contracting_last: bool,
) -> tuple[Array, list[int]]:
    """`array` as [batch, rest, contracting] (or [batch, contracting, rest]), and the dims of the rest."""
    rest = [dim for dim in range(array.ndim) if dim not in batch and dim not in contracting]
    order = [*batch, *rest, *contracting] if contracting_last else [*batch, *contracting, *rest]
    sizes = [
        math.prod(array.shape[dim] for dim in group)
        for group in ((batch, rest, contracting) if contracting_last else (batch, contracting, rest))
    ]
    return array.transpose(order).reshape(sizes), [array.shape[dim] for dim in rest]


def sum_of_products(lhs: Array, rhs: Array, sources: Sequence[DType], target: DType) -> Array:
    """[B, M, K] x [B, K, N] to [B, M, N] of `target`, rounded once."""
    if target.kind is Kind.PRED:
        return np.matmul(lhs, rhs)
    if target.is_complex:
        return np.matmul(lhs.astype(np.complex128), rhs.astype(np.complex128)).astype(target.numpy)
    if target.is_float:
        parts = [_as_float64(each, dtype) for each, dtype in zip((lhs, rhs), sources, strict=True)]
        return round_once(np.matmul(*parts), target)
    plain = plain_integer(target)
    numbers = [load(converter(dtype, target)(each), target) for each, dtype in zip((lhs, rhs), sources, strict=True)]
    if max(dtype.bits for dtype in sources) <= 16 and lhs.shape[-1] < 1 << 20:  # exact in float64, which is quicker
        exact = np.matmul(*[each.astype(np.float64) for each in numbers])
        return store(exact.astype(np.int64).astype(plain), target)
    return store(np.matmul(*numbers), target)


def _as_float64(array: Array, dtype: DType) -> Array:
    return wide(array, dtype) if dtype.is_float else converter(dtype, by_name("f64"))(array)


def _dot(_: Caller, instruction: HloInstruction) -> Kernel:
    lhs_batch, rhs_batch = (
        instruction.ints("lhs_batch_dims", ()),
        instruction.ints("rhs_batch_dims", ()),
    )
    lhs_sum, rhs_sum = (
        instruction.ints("lhs_contracting_dims", ()),
        instruction.ints("rhs_contracting_dims", ()),
    )
    dtypes = [operand.array_shape.dtype for operand in instruction.operands[:2]]
    target = instruction.array_shape
    algorithm = instruction.attributes.get("algorithm")
    name = str(algorithm) if algorithm is not None else None

    def kernel(values: Sequence[Value]) -> Value:
        lhs, rhs = (narrowed(array, dtype, name) for array, dtype in zip(arrays_of(values)[:2], dtypes, strict=True))
        left, _ = matrices(lhs, lhs_batch, lhs_sum, contracting_last=True)
        right, _ = matrices(rhs, rhs_batch, rhs_sum, contracting_last=False)
        return sum_of_products(left, right, dtypes, target.dtype).reshape(target.dims)

    return kernel


DOT = {"dot": _dot}
