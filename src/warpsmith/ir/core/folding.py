"""Folding one op: to a constant or to a value that exists already.

In: an op and its operands' constants.  Out: one entry a result (a `Value` or an attribute), or None.  Order: the row's
own `fold`; then, for pure ops whose operands are all constant, the row's numpy function.  Both are exact: an op marked
`Trait.INEXACT` (an approximation on the target) is never computed here, so a folded result has the bits that exact
arithmetic in the op's own format gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from warpsmith.ir.core.attributes import Attribute, DenseAttr, FloatAttr, IntegerAttr, dense, float_bits, integer_attr
from warpsmith.ir.core.ssa import Fold, Operation, Trait, Value
from warpsmith.ir.core.types import (
    I1,
    FloatType,
    IndexType,
    IntegerType,
    ShapedType,
    TensorType,
    Type,
    VectorType,
    bit_width,
    numpy_dtype,
)

__all__ = ["attribute_of", "constant_array", "constant_attribute", "fold"]

_MAX_ELEMENTS = 4096  # a larger result is left to run time: folding it would cost more than it saves


def constant_attribute(value: Value) -> Attribute | None:
    """The `value` attribute of the constant op that makes `value`; None for anything else."""
    op = value.defining_op
    if op is None or not op.row.traits & Trait.CONSTANT:
        return None
    return op.attributes.get("value")


def constant_array(attribute: Attribute) -> np.ndarray | None:
    """A constant as a numpy array (0-d for a scalar) in its type's dtype."""
    if isinstance(attribute, IntegerAttr):
        return np.array(attribute.value, dtype=numpy_dtype(attribute.type))
    if isinstance(attribute, FloatAttr):
        return np.array(attribute.scalar)
    return attribute.array if isinstance(attribute, DenseAttr) else None


def attribute_of(array: np.ndarray, type: Type) -> Attribute | None:
    """The constant of `type` with the values of `array`; None when the type has no constants."""
    if isinstance(type, ShapedType):
        return dense(np.broadcast_to(array, type.shape), type)
    if isinstance(type, FloatType):
        dtype = numpy_dtype(type)
        return float_bits(int(np.asarray(array).astype(dtype).reshape(1).view(f"u{dtype.itemsize}")[0]), type)
    if isinstance(type, (IntegerType, IndexType)):
        return integer_attr(int(np.asarray(array).reshape(())[()]), type)
    return None


def fold(op: Operation) -> Sequence[Fold] | None:
    """What the results of `op` are known to be, one entry a result, or None.

    The entries are values that dominate the op, or constant attributes of the results' types.
    """
    row = op.row
    if row.fold is None and (row.numpy is None or not op.results):
        return None
    constants = [constant_attribute(v) for v in op.operands]
    if row.fold is not None:
        found = row.fold(op, constants)
        if found is not None:
            return found
    if row.numpy is None or row.effects or op.regions or row.traits & Trait.INEXACT or not op.results or not constants:
        return None
    known: list[Attribute] = []
    for constant in constants:
        if constant is None:
            return None
        known.append(constant)
    return _compute(op, known)


def _compute(op: Operation, constants: Sequence[Attribute]) -> Sequence[Attribute] | None:
    for result in op.results:
        if not _has_constants(result.type):
            return None
    if op.row.traits & (Trait.DIVISION | Trait.SHIFT):
        return _guarded(op, constants)
    return _run(op, constants)


def _has_constants(type: Type) -> bool:
    if isinstance(type, VectorType):
        return type.elements <= _MAX_ELEMENTS and isinstance(type.element, (FloatType, IntegerType, IndexType))
    return isinstance(type, (FloatType, IndexType)) or (isinstance(type, IntegerType) and type.width in _WIDTHS)


_WIDTHS = frozenset((1, 2, 4, 8, 16, 32, 64))


def _guarded(op: Operation, constants: Sequence[Attribute]) -> Sequence[Attribute] | None:
    """Division by zero and shifts past the width are undefined: they stay as they are."""
    right = constant_array(constants[1])
    if right is None:
        return None
    element = op.results[0].type
    width = bit_width(element.element if isinstance(element, ShapedType) else element)
    if op.row.has(Trait.DIVISION):
        signed_minimum = -1 in right.astype(np.int64) and op.row.name.endswith("si")
        if not right.all() or (signed_minimum and op.results[0].type is not I1 and _least(constants[0], width)):
            return None
        return _run(op, constants)
    amount = right.astype(np.int64)
    return None if (amount < 0).any() or (amount >= width).any() else _run(op, constants)


def _least(attribute: Attribute, width: int) -> bool:
    """Whether a constant of `width` bits holds the least integer."""
    array = constant_array(attribute)
    return array is not None and bool((array.astype(np.int64) == -(1 << (width - 1))).any())


def _run(op: Operation, constants: Sequence[Attribute]) -> Sequence[Attribute] | None:
    arrays: list[np.ndarray] = []
    for constant in constants:
        array = constant_array(constant)
        if array is None or (isinstance(constant, DenseAttr) and isinstance(constant.type, TensorType)):
            return None
        arrays.append(array)
    function = op.row.numpy
    if function is None:
        return None
    with np.errstate(all="ignore"):
        result: object = function(op, *arrays)
    outs = cast("tuple[np.ndarray, ...]", result) if isinstance(result, tuple) else (cast("np.ndarray", result),)
    folded: list[Attribute] = []
    for out, value in zip(outs, op.results, strict=True):
        attribute = attribute_of(np.asarray(out), value.type)
        if attribute is None:
            return None
        folded.append(attribute)
    return folded
