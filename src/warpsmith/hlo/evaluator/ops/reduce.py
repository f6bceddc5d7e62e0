"""reduce: sums and products in float64 with one rounding, everything else by its combiner in its own type.

In: arrays, init scalars, a combiner.  Out: arrays.  A combiner that is one add or multiply of floats accumulates in
float64 (HLO leaves the order open, and so a reference must be closer than any order); one integer, bitwise, minimum or
maximum op runs as numpy's own reduction, which no order can change; any other runs in order, all results at once, and
in blocks whose results are combined in order when there is much to reduce.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType, Kind
from warpsmith.hlo.evaluator.arithmetic.formats import round_once, wide, widen
from warpsmith.hlo.evaluator.arithmetic.integers import load, store
from warpsmith.hlo.evaluator.values import Caller, Kernel, Value, arrays_of
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.shapes import TupleShape

__all__ = ["REDUCE", "fold_in_order", "reduce_extreme", "single_op"]

_COMMUTE = frozenset({"add", "multiply", "maximum", "minimum", "and", "or", "xor"})
_BLOCKS_FROM = 512


def single_op(combiner: HloComputation) -> str | None:
    """The commutative op that a combiner of two scalars consists of, if it is just one."""
    if len(combiner.parameters) != 2 or combiner.root.opcode not in _COMMUTE:
        return None
    first, second = combiner.parameters
    pair = combiner.root.operands
    return combiner.root.opcode if pair == (first, second) or pair == (second, first) else None


_INTEGER: dict[str, np.ufunc] = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_PRED: dict[str, np.ufunc] = {
    "add": np.logical_or,
    "multiply": np.logical_and,
    "maximum": np.logical_or,
    "minimum": np.logical_and,
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}
_SUM: dict[str, np.ufunc] = {"add": np.add, "multiply": np.multiply}

Reducer = Callable[[Array, Array, tuple[int, ...]], Array]
"""(elements, init scalar, axes) to the reduced array."""


def _wide_reducer(ufunc: np.ufunc, dtype: DType) -> Reducer:
    if dtype.is_complex:
        return lambda x, init, axes: ufunc.reduce(
            x, axis=axes, dtype=np.complex128, initial=complex(init.item())
        ).astype(dtype.numpy)

    def reduce(x: Array, init: Array, axes: tuple[int, ...]) -> Array:
        start = float(wide(init.reshape(1), dtype)[0])
        total = ufunc.reduce(widen(x, dtype), axis=axes, dtype=np.float64, initial=start)
        return round_once(np.asarray(total), dtype)

    return reduce


def reduce_extreme(opcode: str, dtype: DType) -> Reducer:
    """The float minimum or maximum: NaN wins, and -0 is below +0."""
    largest = opcode == "maximum"
    ufunc = np.maximum if largest else np.minimum

    def reduce(x: Array, init: Array, axes: tuple[int, ...]) -> Array:
        values, start = widen(x, dtype), widen(init.reshape(1), dtype)[0]
        result = np.asarray(ufunc.reduce(values, axis=axes, initial=start))
        zero = result == 0
        if zero.any():
            # Only the zero that the op prefers settles the sign.
            decides = (values == 0) & (np.signbit(values) != largest)
            found = decides.any(axis=axes) | ((start == 0) & (np.signbit(start) != largest))
            result = np.where(zero, np.where(found == largest, 0.0, -0.0).astype(result.dtype), result)
        return round_once(result, dtype)

    return reduce


def _quick_reducer(opcode: str | None, dtype: DType) -> Reducer | None:
    if opcode is None:
        return None
    if dtype.kind is Kind.PRED:
        ufunc = _PRED[opcode]
        return lambda x, init, axes: np.asarray(ufunc.reduce(x, axis=axes, initial=bool(init)))
    if dtype.is_integer:
        ufunc = _INTEGER[opcode]

        def reduce(x: Array, init: Array, axes: tuple[int, ...]) -> Array:
            numbers = load(x, dtype)
            start = load(init.reshape(1), dtype)[0]
            return store(
                np.asarray(ufunc.reduce(numbers, axis=axes, dtype=numbers.dtype, initial=start)),
                dtype,
            )

        return reduce
    if opcode in _SUM:
        return _wide_reducer(_SUM[opcode], dtype)
    if dtype.is_float and opcode in ("maximum", "minimum"):
        return reduce_extreme(opcode, dtype)
    return None


def fold_in_order(
    caller: Caller,
    combiner: HloComputation,
    inits: Sequence[Array],
    columns: Sequence[Array],
) -> tuple[Array, ...]:
    """Fold [outputs, n] arrays along their last dimension, starting from the init scalars; one array a result."""
    outputs, count = columns[0].shape

    def step(state: Sequence[Array], items: Sequence[Array]) -> tuple[Array, ...]:
        return caller.run_lanes(combiner, (*state, *items))

    state: tuple[Array, ...] = tuple(np.broadcast_to(init, (outputs,)) for init in inits)
    done = 0
    if count > _BLOCKS_FROM:
        blocks = math.isqrt(count)
        length = count // blocks
        done = blocks * length
        shaped = [column[:, :done].reshape(outputs * blocks, length) for column in columns]
        partial = tuple(each[:, 0] for each in shaped)
        for position in range(1, length):
            partial = step(partial, [each[:, position] for each in shaped])
        parts = [each.reshape(outputs, blocks) for each in partial]
        for block in range(blocks):
            state = step(state, [part[:, block] for part in parts])
    for position in range(done, count):
        state = step(state, [column[:, position] for column in columns])
    return state


def _reduce(caller: Caller, instruction: HloInstruction) -> Kernel:
    combiner = instruction.attr("to_apply", HloComputation)
    axes = instruction.ints("dimensions", ())
    count = len(instruction.operands) // 2
    is_tuple = isinstance(instruction.shape, TupleShape)
    quick: Reducer | None = None
    if count == 1 and axes:
        quick = _quick_reducer(single_op(combiner), instruction.operands[0].array_shape.dtype)

    def kernel(values: Sequence[Value]) -> Value:
        arrays = arrays_of(values)
        if quick is not None:
            return _once_a_splat(quick, arrays[0], arrays[1], axes)
        inputs, inits = arrays[:count], arrays[count:]
        rank = inputs[0].ndim
        kept = [axis for axis in range(rank) if axis not in axes]
        dims = [inputs[0].shape[axis] for axis in kept]
        order = [*kept, *sorted(axes)]
        outputs = math.prod(dims)
        reduced = math.prod(inputs[0].shape[axis] for axis in axes)
        columns = [each.transpose(order).reshape(outputs, reduced) for each in inputs]
        folded = tuple(each.reshape(dims) for each in fold_in_order(caller, combiner, inits, columns))
        return folded if is_tuple else folded[0]

    return kernel


def _once_a_splat(reducer: Reducer, x: Array, init: Array, axes: tuple[int, ...]) -> Array:
    """The reduction, with kept dimensions along which `x` repeats itself computed once."""
    index = tuple(
        slice(0, 1) if stride == 0 and dim > 1 and axis not in axes else slice(None)
        for axis, (stride, dim) in enumerate(zip(x.strides, x.shape, strict=True))
    )
    result = reducer(x[index], init, axes)
    dims = [dim for axis, dim in enumerate(x.shape) if axis not in axes]
    return result if list(result.shape) == dims else np.broadcast_to(result, dims)


REDUCE = {"reduce": _reduce}
