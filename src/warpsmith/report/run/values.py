"""Values of instructions in a line: what `warpsmith run --trace` prints.

In: an instruction and its value in the reference interpreter.  Out: text such as

    tanh.3     f32[8,1024]   min -0.9987  max 0.9991  nan 0

and, where there are NaNs, the first op that makes one of operands that have none.
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
    nans = _Nans(module)
    supply = iter(arrays)
    for parameter in module.entry.parameters:
        parts = [np.asarray(next(supply)) for _ in parameter.shape.leaves()]
        value = tuple(parts) if isinstance(parameter.shape, TupleShape) else parts[0]
        lines += summary(parameter, value)
        nans.add(parameter, value)

    def record(instruction: HloInstruction, value: Value) -> None:
        lines.extend(summary(instruction, value))
        nans.add(instruction, value)

    try:
        evaluate(module, *arrays, trace=record, step_limit=step_limit)
    finally:
        yield from lines
        yield from nans.first


class _Nans:
    """Which values hold a NaN, and a line for the first op that made one, or for a parameter that brought one."""

    def __init__(self, module: HloModule) -> None:
        self.first: list[str] = []
        self._seen: dict[HloInstruction, bool] = {}
        # What a computation's parameters stand for: in a trace only values have a line.
        self._given: dict[HloInstruction, HloInstruction] = {}
        for each in module.instructions():
            for called in each.called_computations:
                if len(called.parameters) == len(each.operands):
                    self._given.update(zip(called.parameters, each.operands, strict=True))

    def add(self, instruction: HloInstruction, value: Value) -> None:
        """A value, in the order of evaluation."""
        types = [shape.dtype for shape in instruction.shape.leaves()]
        holds = any(_nan_count(array, dtype) for array, dtype in zip(leaves(value), types, strict=True))
        self._seen[instruction] = holds
        if holds and not self.first and not any(self._holds(operand) for operand in instruction.operands):
            self.first.append(_first_line(instruction))

    def _holds(self, instruction: HloInstruction) -> bool:
        while instruction not in self._seen and instruction in self._given:
            instruction = self._given[instruction]
        return self._seen.get(instruction, False)


def _first_line(instruction: HloInstruction) -> str:
    """`first NaN: log.3 (log), of operands without one, at f.hlo:3:5, from model.py:12 (jit(f)/log)`."""
    if instruction.opcode == "parameter":
        text = f"first NaN: in parameter {instruction.parameter_number}, {instruction.name}"
    else:
        text = f"first NaN: {instruction.name} ({instruction.opcode}), of operands without one"
    if instruction.span is not None:
        text += f", at {instruction.span}"
    metadata = instruction.metadata
    if metadata is None:
        return text
    file, line, name = (metadata.get(field) for field in ("source_file", "source_line", "op_name"))
    if file is not None:
        text += f", from {file}" + ("" if line is None else f":{line}")
    return text if name is None else f"{text} ({name})"


def _nan_count(array: Any, dtype: DType) -> int:
    if not (dtype.is_float or dtype.is_complex) or not array.size:
        return 0
    with np.errstate(all="ignore"):
        return int(np.isnan(number(array, dtype)).sum())


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
