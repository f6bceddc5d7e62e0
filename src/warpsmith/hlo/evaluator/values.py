"""What flows through the evaluator: arrays, tuples of them, and the functions that make one from others.

In: nothing.  Out: types that every other file here names, and small helpers on them.  An array has the numpy dtype
of its HLO element type (`DType.numpy`) and its dims in logical order, whatever the layout; it may be a read-only view
with zero strides (a splat), so that a broadcast costs no memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np

from warpsmith.arrays import Array
from warpsmith.errors import InvalidHlo
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.hlo.shapes import AnyShape, Shape, TupleShape

__all__ = [
    "TOKEN",
    "Caller",
    "Kernel",
    "Rule",
    "Rules",
    "Value",
    "arrays_of",
    "constant_kernel",
    "leaves",
    "result_shapes",
    "zero_like",
]

Value: TypeAlias = Array | tuple["Value", ...]
TOKEN: Array = np.zeros(0, np.bool_)
"""The value of every token: it holds nothing."""

Kernel: TypeAlias = Callable[[Sequence[Value]], Value]
"""Operand values in, the result's value out; made once for an instruction, run as often as it is."""


class Caller(Protocol):
    """What a rule may ask of the machine: to run a computation that the instruction names."""

    def run(self, computation: HloComputation, arguments: Sequence[Value]) -> Value:
        """The root's value for `arguments`, one a parameter."""
        ...

    def run_lanes(self, computation: HloComputation, arguments: Sequence[Array]) -> tuple[Array, ...]:
        """A computation of scalars applied to every index of equally shaped arrays; one result array a leaf."""
        ...


Rule: TypeAlias = Callable[[Caller, HloInstruction], Kernel]
Rules: TypeAlias = Mapping[str, Rule]


def arrays_of(values: Sequence[Value]) -> list[Array]:
    """The values as arrays; InvalidHlo when one is a tuple."""
    found: list[Array] = []
    for value in values:
        if isinstance(value, tuple):
            raise InvalidHlo("an operand is a tuple where an array is expected")
        found.append(value)
    return found


def leaves(value: Value) -> Iterator[Array]:
    """The arrays of a value in order, nested tuples flattened."""
    stack: list[Value] = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, tuple):
            stack.extend(reversed(top))
        else:
            yield top


def result_shapes(shape: AnyShape) -> list[Shape]:
    """The shapes of the arrays of a result: one, or one an element of a flat tuple."""
    if isinstance(shape, TupleShape):
        return [leaf for element in shape.elements for leaf in element.leaves()]
    return [shape]


def zero_like(array: Array) -> Array:
    """Float64 zeros of an array's shape that take no memory."""
    return np.broadcast_to(np.zeros((), np.float64), array.shape)


def constant_kernel(value: Value) -> Kernel:
    """A kernel that ignores its operands."""

    def kernel(_: Sequence[Value]) -> Value:
        return value

    return kernel
