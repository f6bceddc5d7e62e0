"""Values of instructions in a line: what `warpsmith run --trace` prints.

In: an instruction and its value in the reference interpreter.  Out: text such as

    tanh.3     f32[8,1024]   min -0.9987  max 0.9991  nan 0
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from warpsmith.dtypes import DType
from warpsmith.hlo.evaluator import Value, evaluate
from warpsmith.hlo.evaluator.bounds.values import number
from warpsmith.hlo.evaluator.machine import STEP_LIMIT
from warpsmith.hlo.evaluator.values import leaves
from warpsmith.hlo.module import HloInstruction, HloModule
from warpsmith.hlo.shapes import Shape, TupleShape

__all__ = ["summary", "trace_values"]


def trace_values(module: HloModule, *arrays: Any, step_limit: int = STEP_LIMIT) -> Iterator[str]:
    """A line for each value that the reference interpreter makes; in a loop each time round.

    The lines come when evaluation has ended.  Raises what `evaluate` raises, after the lines of what came before.
    """
    lines: list[str] = []
    supply = iter(arrays)
    for parameter in module.entry.parameters:
        parts = [np.asarray(next(supply)) for _ in parameter.shape.leaves()]
        lines += summary(parameter, tuple(parts) if isinstance(parameter.shape, TupleShape) else parts[0])

    def record(instruction: HloInstruction, value: Value) -> None:
        lines.extend(summary(instruction, value))

    try:
        evaluate(module, *arrays, trace=record, step_limit=step_limit)
    finally:
        yield from lines


def summary(instruction: HloInstruction, value: Value) -> list[str]:
    """A line for each array of a value."""
    shapes = instruction.shape.leaves()
    names = [instruction.name] if isinstance(instruction.shape, Shape) else _places(instruction.name, len(shapes))
    return [
        f"{name:<28} {shape.text(layout=False):<18} {_numbers(array, shape.dtype)}".rstrip()
        for name, shape, array in zip(names, shapes, leaves(value), strict=True)
    ]


def _places(name: str, count: int) -> Sequence[str]:
    return [f"{name}{{{place}}}" for place in range(count)]


def _numbers(array: Any, dtype: DType) -> str:
    """Least, greatest, and how many are NaN; of complex numbers the moduli."""
    if not dtype.is_array_element or not array.size:
        return ""
    with np.errstate(all="ignore"):
        values = number(array, dtype)
        values = np.abs(values) if dtype.is_complex else values
        known = values[~np.isnan(values)]
    nans = f"  nan {values.size - known.size}" if dtype.is_float or dtype.is_complex else ""
    if not known.size:
        return nans.strip()
    form = ".6g" if dtype.is_float or dtype.is_complex else ".0f"
    return f"min {known.min():{form}}  max {known.max():{form}}{nans}"
