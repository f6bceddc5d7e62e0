"""How far a correct kernel may be from the reference interpreter: errors, propagated forward with the evaluation.

In: a module, its arrays, the documented error of each op in ulp.  Out: the interpreter's results and an absolute bound
for each element.  A kernel and the interpreter agree exactly on every op that rounds correctly; one that is only near
(exp, tanh...) may differ by its documented error; what follows passes the difference on
(`elementwise`, `sums`) and adds an ulp of rounding where operands differ at all.  Discrete results that
such a difference leaves open have an infinite bound.  Runs in chunks, at a small multiple of the evaluation's cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType, Kind
from warpsmith.hlo.evaluator.arithmetic import floats
from warpsmith.hlo.evaluator.bounds.elementwise import PROPAGATE, Operand, Situation, monotone, unsettled
from warpsmith.hlo.evaluator.bounds.rounding import near_overflow, rounded
from warpsmith.hlo.evaluator.bounds.sums import SUMS, Depth
from warpsmith.hlo.evaluator.bounds.values import (
    Bounded,
    BoundedDomain,
    BoundedKernel,
    BoundedValue,
    UlpBound,
    bounded_leaves,
    errors_of,
    number,
    real_part,
    singles,
    ulp,
)
from warpsmith.hlo.evaluator.interpreter import Interpreter, arguments_of, enough_memory, is_lane_safe, owned
from warpsmith.hlo.evaluator.machine import STEP_LIMIT, Machine
from warpsmith.hlo.evaluator.ops.collectives import PASSING
from warpsmith.hlo.evaluator.ops.control import CONTROL, branches_of, chosen_branch
from warpsmith.hlo.evaluator.ops.elementwise import ELEMENTWISE, apply_lanes, make_function, unsupported
from warpsmith.hlo.evaluator.ops.indexed import INDEXED
from warpsmith.hlo.evaluator.ops.movement import MOVEMENT
from warpsmith.hlo.evaluator.ops.spectral import transform_axes
from warpsmith.hlo.evaluator.table import rule_of
from warpsmith.hlo.evaluator.values import Value, leaves, zero_like
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule
from warpsmith.hlo.shapes import TupleShape
from warpsmith.hlo.verifier import verify_module
from warpsmith.numerics.functions.table import BY_OPCODE

__all__ = ["BoundMachine", "evaluate_with_bounds", "plain_value", "within_bounds", "without_error"]

_DATA_OPERANDS = {"dynamic-slice": 1, "dynamic-update-slice": 2, "gather": 1}
"""How many leading operands of an indexed op are data; the others are indices."""

_DISCRETE_ON_INTEGERS = frozenset({"divide", "remainder", "power"})
_COMPLEX_OPS = frozenset(
    {"add", "subtract", "multiply", "divide", "negate", "complex", "real", "imag", "abs", "select"}
)


class BoundMachine(Machine[BoundedValue]):
    """Evaluates values and their errors together."""

    def __init__(self, op_ulp_bound: UlpBound, depth: Depth, step_limit: int = STEP_LIMIT) -> None:
        super().__init__(BoundedDomain(), step_limit=step_limit)
        self._bound = op_ulp_bound
        self._depth = depth
        self._plain = Interpreter()

    def in_chunks(self, instruction: HloInstruction) -> bool:
        """Whether the op may be computed a block at a time."""
        return instruction.opcode in ELEMENTWISE

    def make_kernel(self, instruction: HloInstruction) -> BoundedKernel:
        """The function from operands to the result, errors included.  UnsupportedHlo for an unknown op."""
        opcode = instruction.opcode
        if opcode in CONTROL:
            return self._control(instruction)
        if opcode in ELEMENTWISE:
            return self._elementwise(instruction)
        if opcode in MOVEMENT:
            return self._moved(instruction, len(instruction.operands))
        if opcode in INDEXED:
            return self._moved(instruction, _DATA_OPERANDS[opcode])
        if opcode in SUMS:
            return self._summed(instruction)
        if opcode in PASSING:
            return self._passed(instruction)
        if opcode == "fft":
            return self._transformed(instruction)
        if rule_of(opcode) is None:
            raise unsupported(instruction)
        return self._opaque(instruction)

    def _own_ulps(self, instruction: HloInstruction) -> float:
        """By how many ulp a kernel and the interpreter may differ on equal operands."""
        dtype = instruction.array_shape.dtype
        if not (dtype.is_float or dtype.is_complex):
            return 0.0
        # The modulus of a complex number is real, but as inexact as complex ops are.
        source = instruction.operands[0].array_shape.dtype if instruction.opcode == "abs" else dtype
        bound = self._bound(instruction.opcode, source if source.is_complex else dtype)
        if bound <= 0.5:
            return 0.0
        # numpy's float64 functions, which f64 results come from, aren't correctly rounded themselves.
        return bound + (1.0 if dtype.bits == 64 or dtype.bits == 128 else 0.0)

    def _elementwise(self, instruction: HloInstruction) -> BoundedKernel:
        opcode, dtype = instruction.opcode, instruction.array_shape.dtype
        if opcode == "copy":
            return lambda values: values[0]
        function, own = make_function(instruction), self._own_ulps(instruction)
        rule = PROPAGATE[opcode]
        dtypes = [operand.array_shape.dtype for operand in instruction.operands]
        if opcode in _DISCRETE_ON_INTEGERS and not (dtype.is_float or dtype.is_complex):
            rule = unsettled
        if any(each.is_complex for each in (dtype, *dtypes)) and opcode not in _COMPLEX_OPS:
            rule = unsettled
        # The mode xla's f32 programs reach their limit by an FMA alone, which not every processor has.
        row = BY_OPCODE.get(opcode)
        flat_from = row.exact_from if row is not None and dtype.is_float and dtype.bits != 32 else np.inf
        slack = 1.0 if rule is not monotone and (dtype.is_float or dtype.is_complex) else 0.0

        def kernel(values: Sequence[BoundedValue]) -> BoundedValue:
            operands = singles(values)
            result = apply_lanes(function, [operand.value for operand in operands])
            exact = all(operand.error is None for operand in operands)
            if exact and own == 0.0:
                return Bounded(result)
            found = number(result, dtype)
            detailed = [
                Operand(operand.value, number(operand.value, source), error, operand.error is None, source)
                for operand, source, error in zip(operands, dtypes, errors_of(operands), strict=True)
            ]
            situation = Situation(instruction, function, detailed, found, dtype)
            propagated = zero_like(result) if exact else _unknown_stays(situation, rule(situation))
            error = rounded(found, propagated, dtype, own, slack)
            if own and opcode in floats.WIDE_UNARY and dtype.bits < 64 and dtype.is_float:
                error = near_overflow(opcode, detailed[0].number, found, error, dtype, own)
            if flat_from < np.inf:  # an infinity times 1 - tanh(x), which is 0, is certain then
                error = np.where(np.abs(detailed[0].number) - detailed[0].error >= flat_from, 0.0, error)
            return Bounded(result, np.broadcast_to(error, result.shape))

        return kernel

    def _moved(self, instruction: HloInstruction, data: int) -> BoundedKernel:
        plain = self._plain.make_kernel(instruction)
        recast = "bitcast" in instruction.opcode and (
            instruction.operands[0].array_shape.dtype is not instruction.array_shape.dtype
        )

        def kernel(values: Sequence[BoundedValue]) -> BoundedValue:
            operands = singles(values)
            result = plain([operand.value for operand in operands])
            if isinstance(result, tuple) or all(operand.error is None for operand in operands):
                return without_error(result)
            if recast or any(operand.error is not None for operand in operands[data:]):
                return Bounded(result, np.broadcast_to(np.asarray(np.inf), result.shape))
            indices = [operand.value for operand in operands[data:]]
            moved = plain([*errors_of(operands[:data]), *indices])
            return Bounded(result, next(leaves(moved)))

        return kernel

    def _summed(self, instruction: HloInstruction) -> BoundedKernel:
        plain, rule = self._plain.make_kernel(instruction), SUMS[instruction.opcode]

        def kernel(values: Sequence[BoundedValue]) -> BoundedValue:
            operands = singles(values)
            result = plain([operand.value for operand in operands])
            results = list(leaves(result))
            errors = rule(instruction, operands, results, self._plain.make_kernel, self._depth)
            pairs = [_pair(each, error) for each, error in zip(results, errors, strict=True)]
            return tuple(pairs) if isinstance(result, tuple) else pairs[0]

        return kernel

    def _control(self, instruction: HloInstruction) -> BoundedKernel:
        opcode = instruction.opcode
        if opcode == "tuple":
            return tuple
        if opcode == "get-tuple-element":
            index = instruction.attr("index", int)
            return lambda values: values[0][index] if isinstance(values[0], tuple) else values[0]
        if opcode in ("call", "fusion"):
            computation = instruction.attr("calls" if opcode == "fusion" else "to_apply", HloComputation)
            return lambda values: self.run(computation, values)
        if opcode == "map":
            computation = instruction.attr("to_apply", HloComputation)
            if is_lane_safe(computation):
                return lambda values: self.run(computation, values)
        if opcode == "while":
            return self._while(instruction)
        if opcode == "conditional":
            return self._conditional(instruction)
        return self._opaque(instruction)

    def _while(self, instruction: HloInstruction) -> BoundedKernel:
        """Round by round; a condition that an error leaves open leaves everything open."""
        condition, body = (instruction.attr(name, HloComputation) for name in ("condition", "body"))

        def kernel(values: Sequence[BoundedValue]) -> BoundedValue:
            state, certain = values[0], True
            while True:
                (verdict,) = bounded_leaves(self.run(condition, [state]))
                certain = certain and (verdict.error is None or not verdict.error.any())
                if not bool(verdict.value):
                    return state if certain else _unknown(plain_value(state))
                state = self.run(body, [state])

        return kernel

    def _conditional(self, instruction: HloInstruction) -> BoundedKernel:
        branches = branches_of(instruction)

        def kernel(values: Sequence[BoundedValue]) -> BoundedValue:
            (selector,) = bounded_leaves(values[0])
            chosen = chosen_branch(instruction, selector.value)
            result = self.run(branches[chosen], [values[1 + chosen]])
            certain = selector.error is None or not selector.error.any()
            return result if certain else _unknown(plain_value(result))

        return kernel

    def _passed(self, instruction: HloInstruction) -> BoundedKernel:
        """Ops that hand on what they get."""
        self._plain.make_kernel(instruction)  # refuses what can't be handed on
        if instruction.opcode in ("opt-barrier", "add-dependency", "domain", "all-reduce-done"):
            return lambda values: values[0]
        return tuple if isinstance(instruction.shape, TupleShape) else lambda values: values[0]

    def _transformed(self, instruction: HloInstruction) -> BoundedKernel:
        """fft: each result is a sum over the transformed dimensions, with factors of modulus 1 (inverse: 1/n)."""
        plain, axes = self._plain.make_kernel(instruction), transform_axes(instruction)
        inverse = "I" in str(instruction.attributes.get("fft_type", "FFT")).upper().removesuffix("FFT")
        dtype = instruction.array_shape.dtype
        part = real_part(dtype)

        def kernel(values: Sequence[BoundedValue]) -> BoundedValue:
            (operand,) = singles(values)
            result = next(leaves(plain([operand.value])))
            if operand.error is None:
                return Bounded(result)
            # Half of a real spectrum counts twice.
            total = operand.error.sum(axis=axes, keepdims=True) * 2.0
            total = total / np.prod([result.shape[axis] for axis in axes]) if inverse else total
            size = np.abs(number(result, dtype)) + total
            return Bounded(result, np.broadcast_to(total + 2.0 * ulp(size, part), result.shape))

        return kernel

    def _opaque(self, instruction: HloInstruction) -> BoundedKernel:
        """Ops that no error passes through: exact where their operands and every op inside are, else unknown."""
        plain = self._plain.make_kernel(instruction)
        exact_inside = all(self._is_exact(callee) for callee in instruction.called_computations)

        def kernel(values: Sequence[BoundedValue]) -> BoundedValue:
            result = plain([plain_value(value) for value in values])
            known = exact_inside and all(leaf.error is None for value in values for leaf in bounded_leaves(value))
            return without_error(result) if known else _unknown(result)

        return kernel

    def _is_exact(self, computation: HloComputation) -> bool:
        """Whether no op of `computation`, or of one that it calls, may differ between kernels on equal operands."""
        for instruction in computation.instructions:
            if instruction.opcode in SUMS and any(leaf.dtype.is_float for leaf in instruction.shape.leaves()):
                return False
            if instruction.opcode in ELEMENTWISE and self._own_ulps(instruction):
                return False
            if not all(self._is_exact(callee) for callee in instruction.called_computations):
                return False
        return True


def _pair(result: Array, error: Array) -> Bounded:
    return Bounded(result, error if error.any() else None)


def without_error(value: Value) -> BoundedValue:
    """A value that every correct kernel has to the bit."""
    return tuple(without_error(element) for element in value) if isinstance(value, tuple) else Bounded(value)


def _unknown(value: Value) -> BoundedValue:
    if isinstance(value, tuple):
        return tuple(_unknown(element) for element in value)
    return Bounded(value, np.broadcast_to(np.asarray(np.inf), value.shape))


def plain_value(value: BoundedValue) -> Value:
    """The value without its errors."""
    return tuple(plain_value(element) for element in value) if isinstance(value, tuple) else value.value


def _unknown_stays(at: Situation, propagated: Array) -> Array:
    """A float of which nothing is known may be NaN, and then so may the result, bounded or not."""
    if at.instruction.opcode == "select":
        return propagated
    for operand in at.operands:
        if not operand.exact and (operand.dtype.is_float or operand.dtype.is_complex):
            unknown = np.isinf(operand.error)
            if unknown.any():
                propagated = np.where(unknown, np.inf, propagated)
    return propagated


def evaluate_with_bounds(
    module: HloModule,
    *arrays: Any,
    op_ulp_bound: UlpBound,
    depth: Depth | None = None,
    step_limit: int = STEP_LIMIT,
) -> tuple[list[Array], list[Array]]:
    """The interpreter's outputs, and for each an array (float64, the same dims) that bounds |kernel - output|.

    `op_ulp_bound(opcode, dtype)` is the documented distance in ulp between the kernel's result of one op, of result
    type `dtype`, and the correctly rounded one (`numerics.bounds.bound`); 0.5 or less means none.  `depth(n)` is the
    longest chain of additions that a kernel makes of a sum of n terms (n by default).  A bound is 0 where a kernel must
    agree exactly and infinite where nothing is known.  For complex outputs it bounds the modulus.  Errors as
    `evaluate`.
    """
    verify_module(module)
    arguments = arguments_of(module.entry, arrays)
    machine = BoundMachine(op_ulp_bound, depth or (lambda terms: terms), step_limit)
    with np.errstate(all="ignore"), enough_memory():
        result = machine.run(module.entry, [without_error(argument) for argument in arguments])
    shapes = module.entry.root.shape.leaves()
    pairs = zip(bounded_leaves(result), shapes, strict=True)
    found = [each for each, shape in pairs if shape.dtype.kind is not Kind.TOKEN]
    given = [leaf for argument in arguments for leaf in leaves(argument)]
    outputs = owned([each.value for each in found], given)
    return outputs, [zero_like(each.value) if each.error is None else each.error for each in found]


def within_bounds(actual: Array, expected: Array, bound: Array, dtype: DType) -> Array:
    """Where `actual` agrees with `expected` within `bound`: a bool array.

    NaN agrees with NaN, an infinity with itself, -0 with +0; an infinite bound with anything.
    """
    with np.errstate(all="ignore"):
        mine, theirs = number(actual, dtype), number(expected, dtype)
        same = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
        return cast("Array", same | (np.abs(mine - theirs) <= bound) | np.isinf(bound))
