"""Elementwise ops: one function of arrays an instruction, picked once by opcode and element types.

In: an instruction.  Out: `make_function` gives the function on its operands' arrays; `elementwise_rule` the kernel
around it, which also computes a splat (an operand with zero strides) once instead of once an element.
Every result is rounded to the instruction's own type: each step has its own rounding.  Unary ops on types of 16 bits
or fewer go through a table of all codes once arrays are large.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType, Kind, by_name
from warpsmith.errors import InvalidHlo, UnsupportedHlo
from warpsmith.hlo.evaluator.arithmetic import complexes, floats, integers
from warpsmith.hlo.evaluator.arithmetic.convert import converter, reduce_precision
from warpsmith.hlo.evaluator.arithmetic.formats import round_once, wide, widen
from warpsmith.hlo.evaluator.arithmetic.integers import load, store
from warpsmith.hlo.evaluator.values import Caller, Kernel, Value, arrays_of
from warpsmith.hlo.module import HloInstruction

__all__ = [
    "ELEMENTWISE",
    "apply_lanes",
    "elementwise_rule",
    "make_function",
    "unsupported",
]

Function: TypeAlias = Callable[..., Array]
Unary: TypeAlias = Callable[[Array], Array]
Maker: TypeAlias = Callable[[HloInstruction], Function]

_TABLE_FROM = 1 << 15
_tables: dict[Hashable, Array] = {}


def unsupported(instruction: HloInstruction, what: str = "") -> UnsupportedHlo:
    """The error for an op, or an op on a type, that the interpreter has no row for."""
    detail = f" on {what}" if what else ""
    return UnsupportedHlo(
        f"the reference interpreter can't evaluate {instruction.opcode}{detail} ('{instruction.name}')",
        span=instruction.span,
    )


def _operand_dtype(instruction: HloInstruction, index: int = 0) -> DType:
    if index >= len(instruction.operands):
        raise InvalidHlo(
            f"{instruction.opcode} '{instruction.name}' lacks an operand",
            span=instruction.span,
        )
    return instruction.operands[index].array_shape.dtype


def _tabled(function: Function, source: DType, *key: Hashable) -> Function:
    """`function` of one array; large arrays of a type of at most 16 bits look their results up."""
    if source.bits > 16:
        return function
    codes = np.dtype(np.uint8) if source.bits <= 8 else np.dtype(np.uint16)
    name = (source, *key)

    def look_up(x: Array) -> Array:
        table = _tables.get(name)
        if table is None:
            if x.size < _TABLE_FROM:
                return function(x)
            every = np.arange(1 << (8 * codes.itemsize), dtype=codes)
            table = _tables[name] = function(every.view(source.numpy))
        return table[x.view(codes)] if x.flags.c_contiguous else table[np.ascontiguousarray(x).view(codes)]

    return look_up


def _through(into: Unary, op: Function, out: Unary) -> Function:
    """`op` with `into` before it on each operand and `out` after it."""

    def function(*arrays: Array) -> Array:
        return out(op(*[into(array) for array in arrays]))

    return function


def _complex_parts(x: Array) -> Array:
    return x.astype(np.complex128)


def _stored_as(dtype: DType) -> Unary:
    target = dtype.numpy
    return lambda x: x.astype(target)


def _float_op(dtype: DType, exact: Function | None, rounded: Function | None) -> Function | None:
    """An op on floats, in the carrier when it is exact there, else in float64; None for neither."""
    if exact is not None:
        if dtype.bits >= 32:
            return exact
        return _through(partial(widen, dtype=dtype), exact, partial(round_once, dtype=dtype))
    if rounded is not None:
        return _through(partial(wide, dtype=dtype), rounded, partial(round_once, dtype=dtype))
    return None


def _integer_op(dtype: DType, op: Function) -> Function:
    return _through(partial(load, dtype=dtype), partial(op, width=dtype.bits), partial(store, dtype=dtype))


def _zeros(x: Array, dtype: DType) -> Array:
    """Zeros of a float type; NaN in a type of scales, which has none."""
    return round_once(np.zeros(x.shape, np.float32), dtype)


def _unary(instruction: HloInstruction) -> Function:
    opcode, dtype = instruction.opcode, _operand_dtype(instruction)
    if dtype.is_float:
        if opcode == "imag":
            return partial(_zeros, dtype=dtype)
        function = _float_op(dtype, floats.EXACT_UNARY.get(opcode), floats.WIDE_UNARY.get(opcode))
        if function is not None:
            return _tabled(function, dtype, opcode)
    if dtype.is_integer and opcode in integers.UNARY:
        return _integer_op(dtype, integers.UNARY[opcode])
    if dtype.kind is Kind.PRED and opcode == "not":
        return np.logical_not
    if dtype.is_complex:
        function = complexes.TO_REAL.get(opcode) or complexes.UNARY.get(opcode)
        if function is not None:
            return _through(_complex_parts, function, _stored_as(instruction.array_shape.dtype))
    raise unsupported(instruction, dtype.name)


_NEVER_ZERO = frozenset({"multiply", "divide", "power", "atan2"})


def _positive(op: Function | None) -> Function | None:
    """An op on scales, which are positive, gives no zero, though float64 may: that would be NaN as a scale."""
    return None if op is None else lambda *arrays: np.where((found := op(*arrays)) == 0, 2.0**-200, found)


def _binary(instruction: HloInstruction) -> Function:
    opcode, dtype = instruction.opcode, _operand_dtype(instruction)
    if dtype.is_float:
        exact, rounded = floats.EXACT_BINARY.get(opcode), floats.WIDE_BINARY.get(opcode)
        if dtype.name == "f8e8m0fnu" and opcode in _NEVER_ZERO:
            exact, rounded = None, _positive(exact or rounded)
        function = _float_op(dtype, exact, rounded)
        if function is not None:
            return function
    if dtype.is_integer and opcode in integers.BINARY:
        return _integer_op(dtype, integers.BINARY[opcode])
    if dtype.kind is Kind.PRED and opcode in integers.PRED_BINARY:
        return integers.PRED_BINARY[opcode]
    if dtype.is_complex and opcode in complexes.BINARY:
        return _through(_complex_parts, complexes.BINARY[opcode], _stored_as(dtype))
    raise unsupported(instruction, dtype.name)


def _same(x: Array) -> Array:
    return x


def _compare(instruction: HloInstruction) -> Function:
    dtype, direction = _operand_dtype(instruction), str(instruction.attr("direction", str))
    table = complexes.COMPARE if dtype.is_complex else floats.COMPARE
    if direction not in table:
        raise InvalidHlo(f"no comparison direction '{direction}'", span=instruction.span)
    relation = table[direction]
    if dtype.is_integer:
        return _through(partial(load, dtype=dtype), relation, _same)
    if dtype.is_float and instruction.attributes.get("type") == "TOTALORDER":
        return _through(lambda x: floats.total_order(widen(x, dtype)), relation, _same)
    if dtype.is_float:
        return _through(partial(widen, dtype=dtype), relation, _same)
    return relation


def _bits_view(array: Array) -> Array:
    """The array as unsigned integers of its item size, where numpy is quicker than on ml_dtypes' types."""
    return array.view(f"u{array.dtype.itemsize}") if array.dtype.itemsize <= 2 and array.dtype != np.bool_ else array


def _select(instruction: HloInstruction) -> Function:
    target = instruction.array_shape.dtype.numpy

    def select(pred: Array, on_true: Array, on_false: Array) -> Array:
        return np.where(pred, _bits_view(on_true), _bits_view(on_false)).view(target)

    return select


def _between(least: Function, most: Function) -> Function:
    def clamp(low: Array, x: Array, high: Array) -> Array:
        return most(least(x, low), high)

    return clamp


def _clamp(instruction: HloInstruction) -> Function:
    dtype = instruction.array_shape.dtype
    if dtype.is_float:
        between = _between(floats.maximum, floats.minimum)
        return _through(partial(widen, dtype=dtype), between, partial(round_once, dtype=dtype))
    if dtype.is_integer:
        between = _between(np.maximum, np.minimum)
        return _through(partial(load, dtype=dtype), between, partial(store, dtype=dtype))
    if dtype.kind is Kind.PRED:
        return _between(np.logical_or, np.logical_and)
    if dtype.is_complex:
        between = _between(complexes.BINARY["maximum"], complexes.BINARY["minimum"])
        return _through(_complex_parts, between, _stored_as(dtype))
    raise unsupported(instruction, dtype.name)


def _is_finite(instruction: HloInstruction) -> Function:
    dtype = _operand_dtype(instruction)
    if not dtype.is_float:
        raise unsupported(instruction, dtype.name)
    return _tabled(_through(partial(widen, dtype=dtype), np.isfinite, _same), dtype, "is-finite")


def _complex(instruction: HloInstruction) -> Function:
    target = instruction.array_shape.dtype.numpy

    def build(real: Array, imag: Array) -> Array:
        return complexes.join(real, imag).astype(target)

    return build


def _copy(instruction: HloInstruction) -> Function:
    return _same


def _convert(instruction: HloInstruction) -> Function:
    source, target = _operand_dtype(instruction), instruction.array_shape.dtype
    function = converter(source, target)
    return function if source.name == "bf16" and target.name == "f32" else _tabled(function, source, "convert", target)


def _reduce_precision(instruction: HloInstruction) -> Function:
    dtype = _operand_dtype(instruction)
    if not dtype.is_float:
        raise unsupported(instruction, dtype.name)
    exponent_bits, mantissa_bits = instruction.attr("exponent_bits", int), instruction.attr("mantissa_bits", int)
    if dtype.bits < 16:  # not all of them have infinities, which too large a number becomes: f32 has
        small = reduce_precision(by_name("f32"), exponent_bits, mantissa_bits)
        return _through(partial(widen, dtype=dtype), small, partial(round_once, dtype=dtype))
    return reduce_precision(dtype, exponent_bits, mantissa_bits)


_UNARY_NAMES = {
    *floats.EXACT_UNARY,
    *floats.WIDE_UNARY,
    *integers.UNARY,
    *complexes.UNARY,
    *complexes.TO_REAL,
}
_BINARY_NAMES = {
    *floats.EXACT_BINARY,
    *floats.WIDE_BINARY,
    *integers.BINARY,
    *complexes.BINARY,
}

ELEMENTWISE: Mapping[str, Maker] = {
    **dict.fromkeys(sorted(_UNARY_NAMES), _unary),
    **dict.fromkeys(sorted(_BINARY_NAMES), _binary),
    "clamp": _clamp,
    "compare": _compare,
    "complex": _complex,
    "convert": _convert,
    "copy": _copy,
    "is-finite": _is_finite,
    "reduce-precision": _reduce_precision,
    "select": _select,
}


def make_function(instruction: HloInstruction) -> Function:
    """The function of an elementwise instruction on arrays of at least one dimension; UnsupportedHlo for a type that
    the op isn't defined on."""
    return ELEMENTWISE[instruction.opcode](instruction)


def apply_lanes(function: Function, arrays: Sequence[Array]) -> Array:
    """`function(*arrays)`, the dimensions along which every array repeats itself computed once."""
    rank = max(array.ndim for array in arrays)
    if rank == 0:
        return np.asarray(function(*[array.reshape(1) for array in arrays])).reshape(())
    ranked = [array for array in arrays if array.ndim]
    repeated = [all(a.strides[axis] == 0 and a.shape[axis] > 1 for a in ranked) for axis in range(rank)]
    if not any(repeated):
        return function(*arrays)
    once = tuple(slice(0, 1) if same else slice(None) for same in repeated)
    short = function(*[np.ascontiguousarray(array[once]) if array.ndim else array for array in arrays])
    return np.broadcast_to(short, ranked[0].shape)


def elementwise_rule(_: Caller, instruction: HloInstruction) -> Kernel:
    """The kernel of an elementwise op."""
    function = make_function(instruction)
    if instruction.opcode == "copy":

        def same(values: Sequence[Value]) -> Value:
            return values[0]

        return same

    def kernel(values: Sequence[Value]) -> Value:
        return apply_lanes(function, arrays_of(values))

    return kernel
