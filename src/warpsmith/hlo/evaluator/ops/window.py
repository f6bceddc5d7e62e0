"""reduce-window, by looping over the window's positions: each takes a strided slice of the operand for all outputs.

In: arrays, init scalars, a combiner, a window.  Out: arrays.  Positions in the padding, or in the holes that base
dilation leaves, are skipped; the init value counts once a window.  Float sums and products run in float64 and round
once, as in `reduce`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType
from warpsmith.errors import InvalidHlo
from warpsmith.hlo.attributes import Window, WindowDim
from warpsmith.hlo.evaluator.arithmetic.formats import round_once, wide
from warpsmith.hlo.evaluator.ops.reduce import single_op
from warpsmith.hlo.evaluator.values import Caller, Kernel, Value, arrays_of, result_shapes
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.shapes import TupleShape

__all__ = ["WINDOW", "Place", "window_slices"]

Place: TypeAlias = tuple[tuple[int, ...], tuple[slice, ...], tuple[slice, ...]]
"""A window position, the output elements that see an operand element there, and these operand elements."""


def _axis_slices(dim: WindowDim, place: int, size: int, outputs: int) -> tuple[slice, slice] | None:
    """For one dimension and window position: which outputs see an operand element there, and which elements."""
    at = np.arange(outputs, dtype=np.int64) * dim.stride + place * dim.window_dilation - dim.pad_low
    valid = np.flatnonzero((at >= 0) & (at <= (size - 1) * dim.base_dilation) & (at % dim.base_dilation == 0))
    if not len(valid):
        return None
    elements = at[valid] // dim.base_dilation
    if len(valid) == 1:
        return slice(int(valid[0]), int(valid[0]) + 1), slice(int(elements[0]), int(elements[0]) + 1)
    # Both are arithmetic progressions: positions that fit a congruence.
    output_step, element_step = int(valid[1] - valid[0]), int(elements[1] - elements[0])
    return (
        slice(int(valid[0]), int(valid[-1]) + 1, output_step),
        slice(int(elements[0]), int(elements[-1]) + 1, element_step),
    )


def window_slices(window: Window, dims: Sequence[int], outputs: Sequence[int]) -> list[Place]:
    """(window position, output slices, operand slices) for each position that any output sees, in row-major order."""
    found: list[Place] = []
    per_axis = [
        [_axis_slices(dim, place, size, extent) for place in range(dim.size)]
        for dim, size, extent in zip(window.dims, dims, outputs, strict=True)
    ]
    for place in itertools.product(*[range(dim.size) for dim in window.dims]):
        pairs = [per_axis[axis][number] for axis, number in enumerate(place)]
        known = [pair for pair in pairs if pair is not None]
        if len(known) == len(pairs):
            found.append((place, tuple(pair[0] for pair in known), tuple(pair[1] for pair in known)))
    return found


def _reduce_window(caller: Caller, instruction: HloInstruction) -> Kernel:
    combiner = instruction.attr("to_apply", HloComputation)
    count = len(instruction.operands) // 2
    operand = instruction.operands[0].array_shape
    window = instruction.attr("window", Window) if "window" in instruction.attributes else Window(())
    if len(window.dims) != operand.rank:
        raise InvalidHlo(
            f"a window of {len(window.dims)} dimensions on {operand}",
            span=instruction.span,
        )
    outputs = result_shapes(instruction.shape)[0].dims
    is_tuple = isinstance(instruction.shape, TupleShape)
    single = single_op(combiner) if count == 1 else None
    wide_op = _WIDE.get(single or "") if operand.dtype.is_float else None

    def kernel(values: Sequence[Value]) -> Value:
        arrays = arrays_of(values)
        inputs, inits = arrays[:count], arrays[count:]
        slices = window_slices(window, inputs[0].shape, outputs)
        if wide_op is not None:
            return _wide_window(wide_op, inputs[0], inits[0], operand.dtype, outputs, slices)
        state = [np.array(np.broadcast_to(init, outputs)) for init in inits]
        for _, out, into in slices:
            here = [each[(*out, ...)] for each in state]
            new = caller.run_lanes(combiner, [*here, *[each[(*into, ...)] for each in inputs]])
            for each, value in zip(state, new, strict=True):
                each[(*out, ...)] = value
        return tuple(state) if is_tuple else state[0]

    return kernel


_WIDE = {"add": np.add, "multiply": np.multiply}


def _wide_window(
    ufunc: np.ufunc,
    array: Array,
    init: Array,
    dtype: DType,
    outputs: Sequence[int],
    slices: Sequence[tuple[tuple[int, ...], tuple[slice, ...], tuple[slice, ...]]],
) -> Array:
    numbers = wide(array, dtype)
    state = np.full(outputs, wide(init.reshape(1), dtype)[0], np.float64)
    for _, out, into in slices:
        state[(*out, ...)] = ufunc(state[(*out, ...)], numbers[(*into, ...)])
    return round_once(state, dtype)


WINDOW = {"reduce-window": _reduce_window}
