"""The reference interpreter: `Machine` on plain arrays.

In: a module and one array a parameter leaf.  Out: one array a leaf of the entry's result.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import Kind
from warpsmith.errors import ArgumentMismatch, InvalidHlo, RuntimeFailure
from warpsmith.hlo.evaluator.machine import STEP_LIMIT, Machine
from warpsmith.hlo.evaluator.ops.elementwise import ELEMENTWISE, unsupported
from warpsmith.hlo.evaluator.table import rule_of
from warpsmith.hlo.evaluator.values import TOKEN, Kernel, Value, leaves
from warpsmith.hlo.module import HloComputation, HloInstruction, HloModule
from warpsmith.hlo.shapes import AnyShape, Shape, TupleShape
from warpsmith.hlo.verifier import verify_module

__all__ = [
    "Interpreter",
    "Trace",
    "arguments_of",
    "array_leaves",
    "array_values",
    "evaluate",
    "evaluate_computation",
    "is_lane_safe",
    "nested",
    "owned",
]

Trace = Callable[[HloInstruction, Value], None]
"""Called with every instruction that is evaluated by itself, and its value."""

_SCALAR_MOVES = frozenset({"bitcast", "bitcast-convert", "broadcast", "copy", "reshape", "transpose"})
_LANE_OPS = frozenset(
    {
        *ELEMENTWISE,
        *_SCALAR_MOVES,
        "parameter",
        "constant",
        "tuple",
        "get-tuple-element",
    }
)
_LANE_CALLS = frozenset({"call", "fusion", "map"})


class _ArrayDomain:
    """Cutting and joining of plain arrays."""

    def cut(self, value: Value, index: tuple[slice, ...]) -> Value:
        return _array(value)[index] if _array(value).ndim else value

    def allocate(self, shape: Shape) -> Value:
        return np.empty(shape.dims, shape.dtype.numpy)

    def store(self, target: Value, index: tuple[slice, ...], piece: Value) -> None:
        _array(target)[index] = piece

    def repeats(self, value: Value, rank: int) -> list[bool]:
        array = _array(value)
        if not array.ndim:
            return [True] * rank
        return [stride == 0 and dim > 1 for stride, dim in zip(array.strides, array.shape, strict=True)]

    def spread(self, value: Value, dims: Sequence[int]) -> Value:
        return np.broadcast_to(_array(value), dims)


def _array(value: Value) -> Array:
    if isinstance(value, tuple):
        raise InvalidHlo("a tuple where an array is expected")
    return value


class Interpreter(Machine[Value]):
    """Evaluates computations on numpy arrays by the rules of `table`."""

    def __init__(self, trace: Trace | None = None, step_limit: int = STEP_LIMIT) -> None:
        super().__init__(_ArrayDomain(), trace, step_limit)
        self._lane_safe: dict[HloComputation, bool] = {}

    def restart(self) -> None:
        """Count steps from zero again."""
        self._left = self._limit

    def make_kernel(self, instruction: HloInstruction) -> Kernel:
        """The function from operands to the result.  UnsupportedHlo for an op that has no rule."""
        rule = rule_of(instruction.opcode)
        if rule is None:
            raise unsupported(instruction)
        if instruction.opcode in _SCALAR_MOVES and _moves_a_scalar(instruction):
            return lambda values: values[0]
        if _recasts_a_scalar(instruction):
            target = instruction.array_shape.dtype.numpy
            return lambda values: np.ascontiguousarray(_array(values[0])).view(target).reshape(_array(values[0]).shape)
        return rule(self, instruction)

    def in_chunks(self, instruction: HloInstruction) -> bool:
        """Whether the op may be computed a block at a time."""
        return instruction.opcode in ELEMENTWISE

    def run_lanes(self, computation: HloComputation, arguments: Sequence[Array]) -> tuple[Array, ...]:
        """A computation of scalars at every index of equally shaped arrays, all indices at once where its ops allow
        (they do unless it loops or branches)."""
        trace, self._trace = self._trace, None  # the scalars of a reducer are no values of the module
        try:
            return self._lanes(computation, arguments)
        finally:
            self._trace = trace

    def _lanes(self, computation: HloComputation, arguments: Sequence[Array]) -> tuple[Array, ...]:
        dims = np.broadcast_shapes(*[argument.shape for argument in arguments])
        safe = self._lane_safe.get(computation)
        if safe is None:
            safe = self._lane_safe[computation] = is_lane_safe(computation)
        if safe:
            found = leaves(self.run(computation, arguments))
            return tuple(leaf if leaf.shape == dims else np.broadcast_to(leaf, dims) for leaf in found)
        spread = [np.broadcast_to(argument, dims) for argument in arguments]
        results = [np.empty(dims, leaf.dtype.numpy) for leaf in computation.root.shape.leaves()]
        for index in np.ndindex(*dims):
            found = leaves(self.run(computation, [np.asarray(each[index]) for each in spread]))
            for result, leaf in zip(results, found, strict=True):
                result[index] = leaf
        return tuple(results)


def _moves_a_scalar(instruction: HloInstruction) -> bool:
    shape, operand = instruction.shape, instruction.operands[0].shape
    return (
        isinstance(shape, Shape)
        and isinstance(operand, Shape)
        and shape.rank == operand.rank == 0
        and shape.dtype is operand.dtype
    )


def _recasts_a_scalar(instruction: HloInstruction) -> bool:
    """A bitcast of a scalar to another type of its size."""
    if instruction.opcode not in ("bitcast", "bitcast-convert"):
        return False
    shape, operand = instruction.shape, instruction.operands[0].shape
    if not isinstance(shape, Shape) or not isinstance(operand, Shape) or shape.rank or operand.rank:
        return False
    return shape.dtype.bits == operand.dtype.bits >= 8


def is_lane_safe(computation: HloComputation) -> bool:
    """Whether running `computation` on arrays does to each index what it does to scalars."""
    for instruction in computation.instructions:
        if any(leaf.rank for leaf in instruction.shape.leaves()):
            return False
        if instruction.opcode in ("bitcast", "bitcast-convert"):
            if not (_moves_a_scalar(instruction) or _recasts_a_scalar(instruction)):
                return False
        elif instruction.opcode == "reshape" and not _moves_a_scalar(instruction):
            return False
        if instruction.opcode not in _LANE_OPS | _LANE_CALLS:
            return False
        if not all(is_lane_safe(callee) for callee in instruction.called_computations):
            return False
    return True


def arguments_of(computation: HloComputation, arrays: Sequence[Any]) -> list[Value]:
    """Values for the parameters, from one array a leaf; ArgumentMismatch when count, dims or dtype differ."""
    shapes = [leaf for parameter in computation.parameters for leaf in array_leaves(parameter.shape)]
    if len(arrays) != len(shapes):
        raise ArgumentMismatch(
            f"'{computation.name}' takes {len(shapes)} arrays and was given {len(arrays)}",
            help="give one array a parameter (one a leaf of a tuple parameter), in order",
        )
    checked: list[Array] = []
    for number, (array, shape) in enumerate(zip(arrays, shapes, strict=True)):
        dense = _dense(array, f"argument {number} of '{computation.name}'")
        if dense.dtype != shape.dtype.numpy or dense.shape != shape.dims:
            raise ArgumentMismatch(
                f"argument {number} of '{computation.name}' is {dense.dtype}{list(dense.shape)} where "
                f"{shape.text(layout=False)} is expected",
                span=computation.parameters[number].span if len(shapes) == len(computation.parameters) else None,
            )
        checked.append(dense)
    supply = iter(checked)
    return [nested(parameter.shape, supply) for parameter in computation.parameters]


def _dense(value: Any, what: str) -> Array:
    """A numpy array; ArgumentMismatch for what is none, or would lose its mask."""
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentMismatch(f"{what} is a masked array, and HLO has no masks", help="fill it: array.filled(value)")
    try:
        dense: Array = np.asarray(value)
    except ValueError as error:
        raise ArgumentMismatch(f"{what} is no array: {error}") from error
    if dense.dtype == object:
        raise ArgumentMismatch(f"{what} is a {type(value).__name__}, which is no array")
    return dense


def array_leaves(shape: AnyShape) -> list[Shape]:
    """The arrays of a shape in order; tokens hold nothing and are left out."""
    return [leaf for leaf in shape.leaves() if leaf.dtype.kind is not Kind.TOKEN]


def nested(shape: AnyShape, supply: Iterator[Array]) -> Value:
    """The value of a shape from the next arrays of `supply`, one a leaf."""
    if isinstance(shape, TupleShape):
        return tuple(nested(element, supply) for element in shape.elements)
    if shape.dtype.kind is Kind.TOKEN:
        return TOKEN
    return next(supply)


def evaluate(module: HloModule, *arrays: Any, trace: Trace | None = None, step_limit: int = STEP_LIMIT) -> list[Array]:
    """What `module` computes, by definition.

    Takes one array a leaf of the entry's parameters, in order, each with the HLO dtype and dims (logical order
    whatever the layout).  Gives one array a leaf of the result.  Tokens are left out of both.  An output that holds one
    value repeated may be a read-only view with zero strides.  `trace(instruction, value)` sees every value.

    ArgumentMismatch for arrays that don't fit; UnsupportedHlo, naming the op, for one without a rule; StepLimit after
    `step_limit` instructions (a loop's count each time it goes round).
    """
    verify_module(module)
    return evaluate_computation(module.entry, *arrays, trace=trace, step_limit=step_limit)


def evaluate_computation(
    computation: HloComputation, *arrays: Any, trace: Trace | None = None, step_limit: int = STEP_LIMIT
) -> list[Array]:
    """As `evaluate`, for one computation."""
    arguments = arguments_of(computation, arrays)
    with np.errstate(all="ignore"), enough_memory():
        result = Interpreter(trace, step_limit).run(computation, arguments)
        return owned(
            array_values(result, computation.root.shape),
            [leaf for argument in arguments for leaf in leaves(argument)],
        )


@contextmanager
def enough_memory() -> Generator[None]:
    """A value that doesn't fit is an error of ours, not numpy's."""
    try:
        yield
    except MemoryError as error:
        raise RuntimeFailure(f"the reference interpreter has no memory left: {error}") from error


def array_values(value: Value, shape: AnyShape) -> list[Array]:
    """The arrays of a value of `shape`, in order; tokens are left out."""
    pairs = zip(leaves(value), shape.leaves(), strict=True)
    return [array for array, leaf in pairs if leaf.dtype.kind is not Kind.TOKEN]


def owned(results: Any, arguments: Sequence[Array]) -> list[Array]:
    """The results, copied where they share memory with an argument."""
    found: list[Array] = []
    for result in results:
        aliased = any(np.may_share_memory(result, argument) for argument in arguments)
        found.append(result.copy() if aliased else result)
    return found
