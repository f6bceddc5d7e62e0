"""sort on the host by numpy, where the comparator orders by keys.

In: a sort.  Out: a function of its arrays, or None.  A comparator orders by keys when it is `k(a) < k(b)` with one
function k of each side's elements, or such comparisons one after another (`k1(a) < k1(b) or k1(a) == k1(b) and ...`),
on integers or in total order.  JAX's comparators do.  Keys are computed once an element, then sorted stably.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType
from warpsmith.hlo.evaluator.interpreter import Interpreter, is_lane_safe
from warpsmith.hlo.module import HloComputation, HloInstruction
from warpsmith.library.dot_and_convolution import HostFunction

__all__ = ["sort_function"]

_Key = tuple[HloInstruction, bool]
"""The key of the left side, and whether larger ones come first."""


def sort_function(instruction: HloInstruction) -> HostFunction | None:
    """What sorts the arrays; None when the comparator has another form."""
    comparator = instruction.attr("to_apply", HloComputation)
    if not is_lane_safe(comparator):
        return None
    keys = _Comparator().keys(comparator.root)
    if keys is None:
        return None
    (axis,) = instruction.ints("dimensions")
    interpreter = Interpreter()
    readers = [HloComputation(f"{comparator.name}.key", _needed(comparator, key), key) for key, _ in keys]
    dtypes = [key.array_shape.dtype for key, _ in keys]

    def run(arrays: Sequence[Array]) -> Sequence[Array]:
        if not arrays[0].size:
            return [array.copy() for array in arrays]
        interpreter.restart()
        pairs = [each for array in arrays for each in (array, array)]
        columns: list[Array] = []
        with np.errstate(all="ignore"):
            for reader, dtype, (_, descending) in zip(readers, dtypes, keys, strict=True):
                (values,) = interpreter.run_lanes(reader, pairs)
                ordered = _integers(values, dtype)
                columns.append(np.invert(ordered) if descending else ordered)
        order = _order(columns, axis)
        return [np.take_along_axis(array, order, axis) for array in arrays]

    return run


def _order(columns: Sequence[Array], axis: int) -> Array:
    """The stable order by the first column, then the second..."""
    if len(columns) == 1:
        return np.argsort(columns[0], axis=axis, kind="stable")
    return np.lexsort(tuple(reversed(columns)), axis=axis)


def _integers(values: Array, dtype: DType) -> Array:
    """Integers that compare as the keys do: floats in total order."""
    if not dtype.is_float:
        return values.astype(np.uint8) if values.dtype == np.bool_ else values
    bits = np.ascontiguousarray(values).view(f"i{values.dtype.itemsize}")
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def _needed(comparator: HloComputation, key: HloInstruction) -> tuple[HloInstruction, ...]:
    """The parameters and what the key is made of."""
    found = {key, *comparator.parameters}
    for each in reversed(comparator.instructions):
        if each in found:
            found.update(each.operands)
    return tuple(each for each in comparator if each in found)


class _Comparator:
    """Reads a comparator's form."""

    def keys(self, root: HloInstruction) -> list[_Key] | None:
        """The keys that `root` compares by, the first first."""
        found: list[_Key] = []
        while True:
            if root.opcode == "compare":
                last = self._key(root, ("LT", "GT"))
                return None if last is None else [*found, last]
            split = self._first_key(root)
            if split is None:
                return None
            key, root = split
            found.append(key)

    def _first_key(self, root: HloInstruction) -> tuple[_Key, HloInstruction] | None:
        """`or(k(a) < k(b), and(k(a) == k(b), rest))` as (k, rest)."""
        if root.opcode != "or":
            return None
        less, both = root.operands
        if less.opcode == "and":
            less, both = both, less
        if less.opcode != "compare" or both.opcode != "and":
            return None
        key = self._key(less, ("LT", "GT"))
        for equal, rest in (both.operands, reversed(both.operands)):
            if key is not None and equal.opcode == "compare":
                same = self._key(equal, ("EQ",))
                if same is not None and self._equal(same[0], key[0], swapped=False):
                    return key, rest
        return None

    def _key(self, compare: HloInstruction, directions: tuple[str, ...]) -> _Key | None:
        left, right = compare.operands
        direction = str(compare.attributes.get("direction"))
        dtype = left.array_shape.dtype
        total = str(compare.attributes.get("type", "")) == "TOTALORDER"
        whole = dtype.is_integer and dtype.bits >= 8
        if direction not in directions or not (whole or (dtype.is_float and total and dtype.bits >= 8)):
            return None
        if self._parity(left) == 0 and self._equal(left, right, swapped=True):
            return left, direction == "GT"
        return None

    def _parity(self, key: HloInstruction) -> int | None:
        """0 when a key reads left sides only, 1 for right sides, None for both or neither."""
        sides: set[int] = set()
        stack, seen = [key], {key}
        while stack:
            each = stack.pop()
            if each.parameter_number is not None:
                sides.add(each.parameter_number % 2)
            for operand in each.operands:
                if operand not in seen:
                    seen.add(operand)
                    stack.append(operand)
        return sides.pop() if len(sides) == 1 else None

    def _equal(self, a: HloInstruction, b: HloInstruction, *, swapped: bool) -> bool:
        """Whether two keys are the same function, of the same side's elements or of the other side's."""
        stack, seen = [(a, b)], {(a, b)}
        while stack:
            one, two = stack.pop()
            if one.parameter_number is not None or two.parameter_number is not None:
                if one.parameter_number is None or two.parameter_number is None:
                    return False
                if two.parameter_number != (one.parameter_number ^ 1 if swapped else one.parameter_number):
                    return False
                continue
            if one is two and not one.operands:
                continue
            same = one.opcode == two.opcode and one.shape == two.shape and one.literal == two.literal
            if not same or len(one.operands) != len(two.operands) or _stated(one) != _stated(two):
                return False
            for pair in zip(one.operands, two.operands, strict=True):
                if pair not in seen:
                    seen.add(pair)
                    stack.append(pair)
        return True


def _stated(instruction: HloInstruction) -> dict[str, object]:
    return {name: value for name, value in instruction.attributes.items() if name != "metadata"}
