"""How far a kernel is likely to be from the reference where no bound says: evaluations with random errors.

In: a module, its arrays, the documented error of each op.  Out: for each element of each output an estimate of
|kernel - output|.  Bounds that are sure (`error_bound`) add up the worst of every rounding: along twenty products of a
training step they grow to the size of the values and more, though the errors of real kernels hardly ever line up.
Here the module runs several times.  Each op that kernels may do differently gets a random error, several times as
large as it may be; every op after it rounds as usual.  The estimate is the largest distance seen, with a margin.

This is stochastic arithmetic (`numerics.spread`), a statistical check and no proof: a sum of n terms gets an error of
some sqrt(n) roundings, the probabilistic bound of Higham and Mary ("A new approach to probabilistic rounding error
analysis", 2019), instead of n.  In every second run all errors of one op have the same sign, as a function that is off
in one direction has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType, Kind
from warpsmith.hlo.evaluator.arithmetic.formats import round_once
from warpsmith.hlo.evaluator.bounds.error_bound import BoundMachine, evaluate_with_bounds, plain_value, without_error
from warpsmith.hlo.evaluator.bounds.sums import SUMS, likely_scatter_error
from warpsmith.hlo.evaluator.bounds.values import (
    Bounded,
    BoundedKernel,
    BoundedValue,
    UlpBound,
    bounded_leaves,
    number,
    real_part,
    singles,
    ulp,
)
from warpsmith.hlo.evaluator.interpreter import arguments_of, enough_memory
from warpsmith.hlo.evaluator.machine import STEP_LIMIT
from warpsmith.hlo.evaluator.ops.elementwise import apply_lanes, make_function
from warpsmith.hlo.evaluator.values import Value, leaves
from warpsmith.hlo.module import HloInstruction, HloModule
from warpsmith.numerics.spread import Spread

__all__ = ["estimate_errors", "evaluate_with_limits"]

_RUNS = 8
_AMPLIFIED = 4.0
"""How many times its documented error an op errs in a run."""
_MARGIN = 2.0
"""The estimate, in parts of the largest distance seen."""
_CONFIDENCE = 2.0
"""Higham and Mary's lambda: roundings of a sum of n terms add up to lambda * sqrt(n) of them."""


def _likely_depth(terms: int) -> int:
    return min(terms, math.ceil(_CONFIDENCE * math.sqrt(terms)))


class _ErringMachine(BoundMachine):
    """Evaluates values with random errors in them.

    The error of a value is a mark, the same everywhere: None where every kernel has the very same value, 0 where some
    error has entered, infinite where an op has no rule and nothing can be said of what follows.
    """

    def __init__(self, op_ulp_bound: UlpBound, step_limit: int, seed: int) -> None:
        super().__init__(op_ulp_bound, _likely_depth, step_limit)
        self._rng = np.random.default_rng(seed)
        self._one_sided = seed % 2 == 1

    def _draws(self, shape: tuple[int, ...]) -> Array:
        """Random parts of an error bound."""
        if self._one_sided:
            return self._rng.uniform(0.5, 1.0, shape) * self._rng.choice((-1.0, 1.0))
        return self._rng.uniform(-1.0, 1.0, shape)

    def _off(self, result: Array, dtype: DType, error: Array) -> Array:
        """`result` moved by random parts of `error`, rounded; what isn't finite, or has no error, stays."""
        found = number(result, dtype)
        moves = (error > 0) & np.isfinite(found)
        if not moves.any():
            return result
        shift = np.where(moves, error * _AMPLIFIED, 0.0) * self._draws(found.shape)
        if dtype.is_complex:
            shift = shift + 1j * (np.where(moves, error * _AMPLIFIED, 0.0) * self._draws(found.shape))
            return np.where(moves, found + shift, found).astype(dtype.numpy)
        moved = found + shift
        # A function that is positive stays so.
        moved = np.where((np.sign(moved) == np.sign(found)) | (found == 0), moved, found)
        moved = round_once(moved, dtype)
        return np.where(moves & np.isfinite(number(moved, dtype)), moved, result)

    def _elementwise(self, instruction: HloInstruction) -> BoundedKernel:
        opcode, dtype = instruction.opcode, instruction.array_shape.dtype
        if opcode == "copy":
            return lambda values: values[0]
        function, own = make_function(instruction), self._own_ulps(instruction)
        narrows = opcode == "convert" and _narrows(instruction.operands[0].array_shape.dtype, dtype)

        def kernel(values: Sequence[BoundedValue]) -> BoundedValue:
            operands = singles(values)
            result = apply_lanes(function, [operand.value for operand in operands])
            mark = _mark(operands)
            # To a narrow type an error seldom shows, and then as a whole ulp: seldom enough to be missed.
            ulps = max(own, 1.0 if narrows and mark is not None else 0.0)
            if not ulps:
                return _marked(result, mark)
            part = real_part(dtype)
            size = np.abs(number(result, dtype))
            step = np.where(size > 0, ulps * ulp(size, part), 0.0)
            off = self._off(result, dtype, step / (_AMPLIFIED if narrows else 1.0))
            return _marked(off, 0.0 if mark is None else mark)

        return kernel

    def _moved(self, instruction: HloInstruction, data: int) -> BoundedKernel:
        return self._through(instruction)

    def _through(self, instruction: HloInstruction) -> BoundedKernel:
        """An op without errors of its own."""
        plain = self._plain.make_kernel(instruction)

        def kernel(values: Sequence[BoundedValue]) -> BoundedValue:
            mark = _mark([leaf for value in values for leaf in bounded_leaves(value)])
            return _all_marked(plain([plain_value(value) for value in values]), mark)

        return kernel

    def _summed(self, instruction: HloInstruction) -> BoundedKernel:
        plain, rule = self._plain.make_kernel(instruction), SUMS[instruction.opcode]

        def kernel(values: Sequence[BoundedValue]) -> BoundedValue:
            operands = singles(values)
            sure = [Bounded(operand.value) for operand in operands]
            result = plain([operand.value for operand in operands])
            results = list(leaves(result))
            errors = rule(instruction, sure, results, self._plain.make_kernel, self._depth)
            if instruction.opcode == "scatter":
                likely = likely_scatter_error(instruction, [each.value for each in operands], results[0])
                errors = errors if likely is None else [np.where(np.isinf(errors[0]), np.inf, likely)]
            marked: list[BoundedValue] = []
            for each, error in zip(results, errors, strict=True):
                mark = _mark(operands)
                if np.isinf(error).any():
                    marked.append(_marked(each, np.inf))
                    continue
                if error.any():
                    each, mark = self._off(each, _dtype_of(instruction, len(marked)), error), mark or 0.0
                marked.append(_marked(each, mark))
            return tuple(marked) if isinstance(result, tuple) else marked[0]

        return kernel

    def _transformed(self, instruction: HloInstruction) -> BoundedKernel:
        return self._through(instruction)

    def _opaque(self, instruction: HloInstruction) -> BoundedKernel:
        plain = self._through(instruction)
        if all(self._is_exact(callee) for callee in instruction.called_computations):
            return plain
        # Its computations' own errors have no rule.
        return lambda values: _all_marked(plain_value(plain(values)), np.inf)


def _dtype_of(instruction: HloInstruction, index: int) -> DType:
    return instruction.shape.leaves()[index].dtype


def _narrows(source: DType, target: DType) -> bool:
    return source.is_float and target.is_float and target.bits < min(source.bits, 32)


def _mark(values: Sequence[Bounded]) -> float | None:
    """What operands' marks come to."""
    marks = [float(value.error.flat[0]) if value.error.size else 0.0 for value in values if value.error is not None]
    return max(marks) if marks else None


def _marked(result: Array, mark: float | None) -> Bounded:
    return Bounded(result, None if mark is None else np.broadcast_to(np.asarray(mark), result.shape))


def _all_marked(value: Value, mark: float | None) -> BoundedValue:
    return tuple(_all_marked(each, mark) for each in value) if isinstance(value, tuple) else _marked(value, mark)


def estimate_errors(
    module: HloModule,
    *arrays: Any,
    outputs: Sequence[Array],
    op_ulp_bound: UlpBound,
    runs: int = _RUNS,
    seed: int = 0,
    step_limit: int = STEP_LIMIT,
) -> list[Array]:
    """For each of `outputs`, the reference's results, how far a kernel's are likely to be from it at most.

    Arrays of float64 in the outputs' dims.  Infinite where runs disagree on whether an element is a number, where a
    discrete result (an integer, a pred) is not the same in all runs, and behind ops whose own error no rule gives:
    there anything may come out.  0 where every kernel has the same value.  Repeats itself for a `seed`.  Errors as
    `evaluate`.
    """
    arguments = arguments_of(module.entry, arrays)
    shapes = [leaf for leaf in module.entry.root.shape.leaves() if leaf.dtype.kind is not Kind.TOKEN]
    inexact = [False] * len(outputs)
    with np.errstate(all="ignore"), enough_memory():
        numbers = [number(output, shape.dtype) for output, shape in zip(outputs, shapes, strict=True)]
        spreads = [
            Spread(reference, discrete=not (shape.dtype.is_float or shape.dtype.is_complex))
            for reference, shape in zip(numbers, shapes, strict=True)
        ]
        for run in range(runs):
            machine = _ErringMachine(op_ulp_bound, step_limit, 2 * seed * runs + run)
            result = machine.run(module.entry, [without_error(argument) for argument in arguments])
            pairs = zip(bounded_leaves(result), module.entry.root.shape.leaves(), strict=True)
            found = [each for each, shape in pairs if shape.dtype.kind is not Kind.TOKEN]
            for index, (each, spread, shape) in enumerate(zip(found, spreads, shapes, strict=True)):
                if each.error is not None:
                    inexact[index] = True
                    spread.add(number(each.value, shape.dtype), each.error)
        return [
            _with_margin(spread.largest, np.abs(reference), shape.dtype) if loose else spread.largest
            for spread, reference, shape, loose in zip(spreads, numbers, shapes, inexact, strict=True)
        ]


def _with_margin(seen: Array, size: Array, dtype: DType) -> Array:
    """The estimate: at least an ulp of the result, which may round otherwise."""
    if not (dtype.is_float or dtype.is_complex):
        return seen
    return _MARGIN * seen + np.where(np.isfinite(size) & (size > 0), ulp(size, real_part(dtype)), 0.0)


_USEFUL = 1e-2
_MOST_ELEMENTS = 1 << 20
"""Outputs of more elements keep their sure bounds: the module would be evaluated many times over."""


def evaluate_with_limits(
    module: HloModule, *arrays: Any, op_ulp_bound: UlpBound, step_limit: int = STEP_LIMIT
) -> tuple[list[Array], list[Array], list[Array]]:
    """The interpreter's outputs; how far a kernel's may be from them; and where that is an estimate (bool arrays).

    A limit is the sure bound of `evaluate_with_bounds` where that is at most a hundredth of the element, else the
    lesser of it and `estimate_errors`.  The module is evaluated again only if there are elements of the second kind,
    and no more than a million elements in all: larger results keep their sure bounds.
    """
    outputs, bounds = evaluate_with_bounds(module, *arrays, op_ulp_bound=op_ulp_bound, step_limit=step_limit)
    leaf_types = [leaf.dtype for leaf in module.entry.root.shape.leaves() if leaf.dtype.kind is not Kind.TOKEN]
    with np.errstate(all="ignore"):
        loose = [
            ~(bound <= _USEFUL * np.abs(number(output, dtype))) & (bound > 0)
            for bound, output, dtype in zip(bounds, outputs, leaf_types, strict=True)
        ]
    if not any(each.any() for each in loose) or sum(each.size for each in outputs) > _MOST_ELEMENTS:
        return outputs, bounds, [np.zeros(each.shape, np.bool_) for each in outputs]
    estimates = estimate_errors(module, *arrays, outputs=outputs, op_ulp_bound=op_ulp_bound, step_limit=step_limit)
    estimated = [each & (guess < bound) for each, guess, bound in zip(loose, estimates, bounds, strict=True)]
    limits = [np.where(e, guess, bound) for e, guess, bound in zip(estimated, estimates, bounds, strict=True)]
    return outputs, limits, estimated
