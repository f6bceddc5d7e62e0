"""select-and-scatter: each window of the operand picks one element, whose place the source's element is combined into.

In: operand, source, init scalar, `select`, `scatter`, a window.  Out: an array of the operand's dims.  A window is
walked in row-major order: its first element stands until `select(standing, next)` is false.  Places in the padding are
skipped.  Float sums run in float64 and round once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from warpsmith.arrays import Array
from warpsmith.hlo.attributes import Window, WindowDim
from warpsmith.hlo.evaluator.arithmetic.formats import round_once, wide
from warpsmith.hlo.evaluator.ops.reduce import single_op
from warpsmith.hlo.evaluator.ops.scatter import rounds
from warpsmith.hlo.evaluator.ops.window import window_slices
from warpsmith.hlo.evaluator.values import Caller, Kernel, Rule, Value, arrays_of
from warpsmith.hlo.module import HloComputation, HloInstruction

__all__ = ["WINDOW_SCATTER"]


def _select_and_scatter(caller: Caller, instruction: HloInstruction) -> Kernel:
    select, combiner = instruction.attr("select", HloComputation), instruction.attr("scatter", HloComputation)
    rank = instruction.array_shape.rank
    window = instruction.attr("window", Window) if "window" in instruction.attributes else Window(())
    window = window if window.dims else Window((WindowDim(1),) * rank)
    dtype = instruction.array_shape.dtype
    sums = single_op(combiner) == "add" and dtype.is_float

    def kernel(values: Sequence[Value]) -> Value:
        operand, source, init = arrays_of(values)
        places = _chosen(caller, select, operand, source.shape, window)
        hit = places.reshape(-1) >= 0
        targets, items = places.reshape(-1)[hit], source.reshape(-1)[hit]
        if sums:
            total = np.full(operand.size, wide(init.reshape(1), dtype)[0], np.float64)
            np.add.at(total, targets, wide(items, dtype))
            return round_once(total, dtype).reshape(operand.shape)
        result = np.full(operand.size, init, operand.dtype)
        for part in rounds(targets):
            place = targets[part]
            result[place] = caller.run_lanes(combiner, [result[place], items[part]])[0]
        return result.reshape(operand.shape)

    return kernel


def _chosen(caller: Caller, select: HloComputation, operand: Array, outputs: tuple[int, ...], window: Window) -> Array:
    """For each window the flat place of the element that it picks, -1 where it lies in the padding entirely."""
    flat = np.arange(math.prod(operand.shape), dtype=np.int64).reshape(operand.shape)
    places = np.full(outputs, -1, np.int64)
    standing = np.zeros(outputs, operand.dtype)
    for _, out, into in window_slices(window, operand.shape, outputs):
        here, best = places[(*out, ...)], standing[(*out, ...)]
        new = operand[(*into, ...)]
        kept = (here >= 0) & caller.run_lanes(select, [best, new])[0]
        places[(*out, ...)] = np.where(kept, here, flat[(*into, ...)])
        standing[(*out, ...)] = np.where(kept, best, new)
    return places


WINDOW_SCATTER: dict[str, Rule] = {"select-and-scatter": _select_and_scatter}
