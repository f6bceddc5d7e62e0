"""How errors pass through ops that sum: reduce, reduce-window, dot, convolution, scatter.

In: operands with errors, results.  Out: errors of the results.  HLO leaves the order of a sum open, so that a kernel
may differ from the float64 sum by (n + 1) u / (1 - (n + 1) u) times the sum of magnitudes, where u is the unit
roundoff of its partial sums (float32, or float64 for f64 results) and n the longest chain of additions, which the
caller may know to be shorter than the number of terms.  Magnitudes run through the same op in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType, by_name
from warpsmith.hlo.attributes import ConvDimNumbers, Window
from warpsmith.hlo.evaluator.bounds.values import Bounded, errors_of, number, real_part, ulp
from warpsmith.hlo.evaluator.ops.dot import narrowed
from warpsmith.hlo.evaluator.ops.reduce import single_op
from warpsmith.hlo.evaluator.ops.scatter import destinations, rounds
from warpsmith.hlo.evaluator.ops.window import window_slices
from warpsmith.hlo.evaluator.values import Kernel, leaves, zero_like
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.shapes import AnyShape, Shape

__all__ = ["SUMS", "Depth", "MakeKernel", "SumRule", "likely_scatter_error"]

Depth: TypeAlias = Callable[[int], int]
"""The number of terms of a sum to the longest chain of additions in a kernel."""

MakeKernel: TypeAlias = Callable[[HloInstruction], Kernel]
"""The reference interpreter's kernel of an instruction."""

SumRule: TypeAlias = Callable[[HloInstruction, Sequence[Bounded], Sequence[Array], MakeKernel, Depth], "list[Array]"]
"""(instruction, operands, results, kernels, depth) to one error array a result; asked only where errors can arise."""

_F64 = by_name("f64")
_EXACT_OPS = frozenset(
    {
        *("abs", "and", "bitcast", "broadcast", "clamp", "compare", "constant", "copy", "get-tuple-element"),
        *("is-finite", "maximum", "minimum", "negate", "not", "or", "parameter", "reshape", "select", "sign"),
        *("tuple", "xor"),
    }
)


def _rounds_nothing(computation: HloComputation) -> bool:
    """Whether every op of a combiner is exact (it selects, or works on integers and preds), so that every kernel
    gives the same result."""
    return all(
        instruction.opcode in _EXACT_OPS
        or not any(leaf.dtype.is_float or leaf.dtype.is_complex for leaf in instruction.shape.leaves())
        for instruction in computation.instructions
    )


def _in_float64(instruction: HloInstruction) -> HloInstruction:
    """The same op with every operand and the result in f64."""
    operands = tuple(
        HloInstruction(operand.name, "parameter", _wide_shape(operand.shape), parameter_number=place)
        for place, operand in enumerate(instruction.operands)
    )
    attributes = {name: value for name, value in instruction.attributes.items() if name != "algorithm"}
    return HloInstruction(instruction.name, instruction.opcode, _wide_shape(instruction.shape), operands, attributes)


def _wide_shape(shape: AnyShape) -> Shape:
    return Shape(_F64, shape.leaves()[0].dims)


def _apply(kernel: Kernel, arrays: Sequence[Array]) -> Array:
    return next(leaves(kernel(arrays)))


def _unknown(results: Sequence[Array]) -> list[Array]:
    return [np.broadcast_to(np.asarray(np.inf), result.shape) for result in results]


def _nothing(results: Sequence[Array]) -> list[Array]:
    return [zero_like(result) for result in results]


def _all_exact(operands: Sequence[Bounded]) -> bool:
    return all(operand.error is None for operand in operands)


def _sum_error(magnitude: Array, propagated: Array, terms: int, result: Array, dtype: DType, depth: Depth) -> Array:
    """The error of a sum of `terms` products: `magnitude` is the sum of their sizes, errors included.

    Each part of a complex sum has two real products a term; both parts err.
    """
    part, factor = real_part(dtype), math.sqrt(2.0) if dtype.is_complex else 1.0
    unit = 2.0**-53 if part.bits == 64 else 2.0**-24
    chain = min(depth(2 * terms if dtype.is_complex else terms) + 1, 1 << 22)
    growth = factor * chain * unit / (1 - chain * unit) if terms > 1 or dtype.is_complex else 0.0
    tiny = factor * terms * 2.0**-149 if growth and part.bits < 64 else 0.0
    propagated = np.where(np.isnan(propagated), np.inf, propagated)
    error = propagated + growth * magnitude + np.where(magnitude > 0, tiny, 0.0)
    size = np.abs(number(result, dtype))
    error = error + np.where(error > 0, factor * ulp(size + error, part), 0.0)
    # Partial sums may overflow where the whole sum doesn't.
    limit = (_F64 if part.bits == 64 else by_name("f32")).format.most
    lost = (magnitude * (1 + growth) > limit) | (size + error > part.format.most)
    # An infinite or NaN operand that is itself certain makes the result so, whatever the order.
    return np.where(np.isfinite(magnitude), np.where(lost, np.inf, error), np.where(propagated < np.inf, 0.0, np.inf))


def _product_error(
    kernel: Kernel, x: Array, error: Array, init: Array, init_error: Array, terms: int, result: Array, dtype: DType
) -> Array:
    """The error of a product of many factors."""
    unit = 2.0**-53 if dtype.bits == 64 else 2.0**-24
    chain = min(terms + 1, 1 << 22)
    growth = chain * unit / (1 - chain * unit) if terms > 1 else 0.0
    most = _apply(kernel, [np.abs(x) + error, np.abs(init) + init_error])
    size = np.abs(number(result, dtype))
    total = np.maximum(most - size, 0.0) + growth * most
    total = total + np.where(total > 0, ulp(size + total, dtype), 0.0)
    form = _F64 if dtype.bits == 64 else by_name("f32")
    above = _apply(kernel, [np.maximum(np.abs(x), 1.0), np.maximum(np.abs(init), 1.0)])
    below = _apply(kernel, [np.minimum(np.abs(x), 1.0), np.minimum(np.abs(init), 1.0)])
    lost = (above > form.format.most) | ((below < form.format.least_normal) & (below > 0))
    return np.where(lost | ~np.isfinite(total), np.where(np.isfinite(above), np.inf, 0.0), total)


def _fold(
    instruction: HloInstruction, operands: Sequence[Bounded], results: Sequence[Array], make: MakeKernel, depth: Depth
) -> list[Array]:
    """reduce and reduce-window."""
    combiner = instruction.attr("to_apply", HloComputation)
    opcode = single_op(combiner) if len(operands) == 2 else None
    dtype = instruction.operands[0].array_shape.dtype
    if _all_exact(operands) and _rounds_nothing(combiner):
        return _nothing(results)
    if opcode is None or not (dtype.is_float or (dtype.is_complex and opcode == "add")):
        return _unknown(results)
    x, init = (number(operand.value, dtype) for operand in operands)
    error, init_error = errors_of(operands)
    if opcode in ("maximum", "minimum"):
        return [_extreme_error(instruction, error, init_error, results[0])]
    terms = _terms(instruction) + (1 if init.any() or init_error.any() else 0)
    kernel = make(_in_float64(instruction))
    if opcode == "multiply":
        return [_product_error(kernel, x, error, init, init_error, terms, results[0], dtype)]
    magnitude = _apply(kernel, [np.abs(x) + error, np.abs(init) + init_error])
    propagated = _apply(kernel, [error, init_error])
    return [_sum_error(magnitude, propagated, terms, results[0], dtype, depth)]


def _terms(instruction: HloInstruction) -> int:
    """How many elements make one result of a reduce or reduce-window."""
    if instruction.opcode == "reduce":
        return math.prod(instruction.operands[0].array_shape.dims[axis] for axis in instruction.ints("dimensions", ()))
    return math.prod(dim.size for dim in instruction.attr("window", Window).dims)


def _extreme_error(instruction: HloInstruction, error: Array, init_error: Array, result: Array) -> Array:
    """A minimum or maximum moves by no more than the operand that moves most."""
    if instruction.opcode == "reduce":
        axes = instruction.ints("dimensions", ())
        return np.maximum(np.max(error, axis=axes, initial=0.0), init_error)
    state = np.full(result.shape, float(init_error), np.float64)
    for _, out, into in window_slices(instruction.attr("window", Window), error.shape, result.shape):
        state[(*out, ...)] = np.maximum(state[(*out, ...)], error[(*into, ...)])
    return state


def _products(
    instruction: HloInstruction, operands: Sequence[Bounded], results: Sequence[Array], make: MakeKernel, depth: Depth
) -> list[Array]:
    """dot and convolution."""
    dtype = instruction.array_shape.dtype
    sources = [operand.array_shape.dtype for operand in instruction.operands]
    inexact = dtype.is_float or dtype.is_complex
    if not inexact or not all(source.is_float or source.is_complex for source in sources):
        integers = not inexact
        return _nothing(results) if integers and _all_exact(operands) else _unknown(results)
    algorithm = instruction.attributes.get("algorithm")
    if algorithm is not None and not _all_exact(operands):
        return _unknown(results)
    name = str(algorithm) if algorithm is not None else None
    lhs, rhs = (
        np.abs(number(narrowed(operand.value, source, name), source))
        for operand, source in zip(operands, sources, strict=True)
    )
    lhs_error, rhs_error = errors_of(operands)
    kernel = make(_in_float64(instruction))
    magnitude = _apply(kernel, [lhs + lhs_error, rhs + rhs_error])
    if _all_exact(operands):
        propagated = zero_like(magnitude)
    else:
        propagated = _apply(kernel, [lhs, rhs_error]) + _apply(kernel, [lhs_error, rhs + rhs_error])
    return [_sum_error(magnitude, propagated, _inner(instruction), results[0], dtype, depth)]


def _inner(instruction: HloInstruction) -> int:
    """How many products make one result."""
    if instruction.opcode == "dot":
        dims = instruction.operands[0].array_shape.dims
        return math.prod(dims[axis] for axis in instruction.ints("lhs_contracting_dims", ()))
    kernel = instruction.operands[1].array_shape
    features = instruction.attr("dim_labels", ConvDimNumbers).rhs.index("o")
    return kernel.elements // max(kernel.dims[features], 1)


def _scatter(
    instruction: HloInstruction, operands: Sequence[Bounded], results: Sequence[Array], make: MakeKernel, depth: Depth
) -> list[Array]:
    combiner = instruction.attr("to_apply", HloComputation)
    count = len(operands) // 2
    dtype = instruction.operands[0].array_shape.dtype
    data = [*operands[:count], *operands[count + 1 :]]
    if _all_exact(data) and _rounds_nothing(combiner):
        return _nothing(results)
    overwrites = len(combiner.parameters) == 2 and combiner.root is combiner.parameters[1]
    opcode = "assign" if overwrites else single_op(combiner)
    if count > 1 or opcode not in _SCATTERED or not dtype.is_float or operands[count].error is not None:
        return _unknown(results)
    kept, places, order = destinations(instruction, operands[count].value)
    error, update_error = errors_of(data)
    propagated = np.array(error, np.float64).reshape(-1)
    moved = update_error.transpose(order)[kept]
    if opcode == "assign":
        propagated[places] = moved
        return [propagated.reshape(results[0].shape)]
    if opcode in ("maximum", "minimum"):
        np.maximum.at(propagated, places, moved)
        return [propagated.reshape(results[0].shape)]
    fold = np.add if opcode == "add" else np.multiply
    magnitude = (np.abs(number(data[0].value, dtype)) + error).reshape(-1)
    fold.at(magnitude, places, (np.abs(number(data[1].value, dtype)) + update_error).transpose(order)[kept])
    hits = np.bincount(places, minlength=magnitude.size)
    flat = results[0].reshape(-1)
    if opcode == "add":
        np.add.at(propagated, places, moved)
        exact = number(data[0].value, dtype).astype(np.float64).reshape(-1)
        np.add.at(exact, places, number(data[1].value, dtype).transpose(order)[kept])
        total = _scattered_sum(exact, magnitude, propagated, hits, flat, dtype, depth)
    else:
        total = _scattered_product(magnitude, data, int(hits.max(initial=0)) + 1, flat, dtype)
    untouched = np.ones(magnitude.shape, np.bool_)
    untouched[places] = False
    return [np.where(untouched, error.reshape(-1), total).reshape(results[0].shape)]


_SCATTERED = frozenset(("assign", "add", "multiply", "maximum", "minimum"))


def _scattered_sum(
    exact: Array, magnitude: Array, propagated: Array, hits: Array, result: Array, dtype: DType, depth: Depth
) -> Array:
    """The error of sums to which `hits` updates are added one after another, in any order, each rounded to the type.

    `exact` is the sum in float64, from which the reference is as far as it is, and a kernel as far as rounding allows.
    """
    counts, which = np.unique(hits, return_inverse=True)
    unit = 2.0 ** -(dtype.mantissa + 1)
    growth = np.expm1(np.array([depth(int(n) + 1) for n in counts]) * math.log1p(unit))[which.reshape(-1)]
    found = number(result, dtype)
    drift = growth * magnitude if dtype.bits == _F64.bits else np.abs(found - exact)
    error = np.where(np.isnan(propagated), np.inf, propagated) + drift + growth * magnitude
    error = error + np.where(error > 0, ulp(np.abs(found) + error, dtype), 0.0)
    lost = magnitude * (1 + growth) > dtype.format.most
    return np.where(np.isfinite(magnitude), np.where(lost, np.inf, error), np.where(propagated < np.inf, 0.0, np.inf))


def likely_scatter_error(instruction: HloInstruction, arrays: Sequence[Array], result: Array) -> Array | None:
    """How far a sum of floats narrower than f32 is likely to be from the reference; None for any other scatter.

    Roundings of partial sums add up like random numbers, of the size that partial sums have in the given order.
    """
    dtype = instruction.operands[0].array_shape.dtype
    opcode = single_op(instruction.attr("to_apply", HloComputation))
    if len(arrays) != 3 or opcode != "add" or not dtype.is_float or dtype.bits >= 32:
        return None
    kept, places, order = destinations(instruction, arrays[1])
    updates = number(arrays[2], dtype).transpose(order)[kept]
    exact = number(arrays[0], dtype).astype(np.float64).reshape(-1)
    squares = np.zeros(exact.shape)
    for turn in rounds(places):
        at = places[turn]
        exact[at] += updates[turn]
        squares[at] += exact[at] ** 2
    drift = np.abs(number(result, dtype) - exact.reshape(result.shape))
    return drift + 2.0 ** -(dtype.mantissa + 1) * np.sqrt(squares).reshape(result.shape)


def _scattered_product(most: Array, data: Sequence[Bounded], terms: int, result: Array, dtype: DType) -> Array:
    """The error of products of at most `terms` factors, `most` in size, none of which may over- or underflow."""
    sizes = [np.abs(number(each.value, dtype)) for each in data]
    span = max((float(np.max(np.where(s > 0, np.abs(np.log2(s)), 0.0), initial=0.0)) for s in sizes), default=0.0)
    part = _F64 if dtype.bits == 64 else by_name("f32")
    if not span * terms < -math.log2(part.format.least_normal) - 1:
        return np.broadcast_to(np.asarray(np.inf), result.shape)
    unit = 2.0 ** -(dtype.mantissa + 1)
    growth = terms * unit / (1 - terms * unit) if terms * unit < 0.5 else np.inf
    size = np.abs(number(result, dtype))
    # Two factors, both exact, are rounded once, as the reference does.
    drift = 0.0 if terms <= 2 else growth
    total = np.where(_all_exact(data), 0.0, np.maximum(most - size, 0.0) * (1 + growth)) + drift * most
    return total + np.where(total > 0, ulp(size + total, dtype), 0.0)


def _needs_exact(
    instruction: HloInstruction, operands: Sequence[Bounded], results: Sequence[Array], make: MakeKernel, depth: Depth
) -> list[Array]:
    return _nothing(results) if _all_exact(operands) else _unknown(results)


SUMS: Mapping[str, SumRule] = {
    "reduce": _fold,
    "reduce-window": _fold,
    "dot": _products,
    "convolution": _products,
    "scatter": _scatter,
    "sort": _needs_exact,
}
