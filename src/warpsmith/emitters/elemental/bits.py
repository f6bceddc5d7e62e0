"""Ops on the bits of elements: reduce-precision, and bitcasts between types.

In: scalars.  Out: scalars.  Bitcast-convert to another width, which XLA does not emit, is ours.
"""

from __future__ import annotations

from warpsmith.dtypes import DType
from warpsmith.emitters.elemental.emitter import Values
from warpsmith.emitters.elemental.scalars import Scalars
from warpsmith.emitters.kernel.types import scalar_type
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.core.types import IntegerType, bit_width, integer

__all__ = ["as_bits", "bitcast_element", "from_bits", "reduce_precision"]


def as_bits(s: Scalars, x: Value) -> Value:
    """A value as an integer of its width."""
    return x if isinstance(x.type, IntegerType) else s.bitcast(x, integer(bit_width(x.type)))


def from_bits(s: Scalars, x: Value, dtype: DType) -> Value:
    """An integer of the type's width as a value of the type."""
    return s.bitcast(x, scalar_type(dtype))


def bitcast_element(s: Scalars, parts: Values, target: DType) -> Values:
    """The same bits as another type of the same width."""
    if len(parts) == (2 if target.is_complex else 1):
        return tuple(s.bitcast(part, scalar_type(target)) for part in parts)
    if target.is_complex:  # one wide integer becomes the two parts, the real one low
        half = bit_width(scalar_type(target))
        low = s.resize_int(parts[0], half, signed=False)
        shifted = s.arith("shrui", parts[0], s.emitter.constant(half, parts[0].type))
        return (from_bits(s, low, target), from_bits(s, s.resize_int(shifted, half, signed=False), target))
    wide = integer(target.bits)
    low, high = (s.resize_int(as_bits(s, part), target.bits, signed=False) for part in parts)
    moved = s.arith("shli", high, s.emitter.constant(target.bits // 2, wide))
    return (from_bits(s, s.arith("ori", moved, low), target),)


def reduce_precision(s: Scalars) -> Values:
    """Round to fewer exponent and mantissa bits: nearest even, overflow to infinity, underflow to zero, NaN kept."""
    exponent = s.instruction.attr("exponent_bits", int)
    mantissa = s.instruction.attr("mantissa_bits", int)
    own_exponent, own_mantissa = s.dtype.exponent, s.dtype.mantissa
    type = integer(s.bits)
    x = s.bitcast(s.x, type)

    def word(value: int) -> Value:
        return s.constant(value, type)

    sign_mask = 1 << (s.bits - 1)
    exponent_mask = ((1 << own_exponent) - 1) << own_mantissa
    value = x
    if mantissa < own_mantissa:
        dropped = own_mantissa - mantissa
        last = s.arith("andi", s.arith("shrui", x, word(dropped)), word(1))
        value = s.arith("addi", s.arith("addi", value, word((1 << (dropped - 1)) - 1)), last)
        value = s.arith("andi", value, word(~((1 << dropped) - 1)))
    if exponent < own_exponent:
        # The exponent of 1.0 in both formats; all-ones is infinity in both.
        bias, reduced = (1 << (own_exponent - 1)) - 1, (1 << (exponent - 1)) - 1
        highest = (bias + reduced) << own_mantissa
        lowest = (bias - reduced) << own_mantissa
        kept = s.arith("andi", value, word(exponent_mask))
        sign = s.arith("andi", x, word(sign_mask))
        over = s.cmpi("ugt", kept, word(highest))
        under = s.cmpi("ule", kept, word(lowest))
        value = s.select(over, s.arith("ori", sign, word(exponent_mask)), value)
        value = s.select(under, sign, value)
    result = s.bitcast(value, s.type)
    if mantissa == 0:  # no bit is left to tell NaN from infinity
        nan = s.bitcast(s.arith("ori", x, word(1 << (own_mantissa - 1))), s.type)
        return (s.select(s.cmpf("uno", s.x, s.x), nan, result),)
    return (s.select(s.cmpf("uno", s.x, s.x), s.x, result),)
