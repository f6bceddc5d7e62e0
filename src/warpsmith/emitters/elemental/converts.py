"""Conversions between element types: every pair.

In: a value's parts, its HLO type and the wanted one.  Out: the parts of the converted value.  Float to integer
saturates and makes NaN 0; to pred asks for "not zero" (NaN is true).
"""

from __future__ import annotations

from warpsmith.dtypes import DType, Kind
from warpsmith.emitters.elemental.emitter import Values
from warpsmith.emitters.elemental.scalars import Scalars, as_pred
from warpsmith.emitters.kernel.types import component, scalar_type
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.core.types import F32, FloatType, bit_width, integer

__all__ = ["convert"]

_WORD = 32  # narrower integers go through a 32-bit one on their way from and to floats


def convert(s: Scalars, parts: Values, source: DType, target: DType) -> Values:
    """`parts`, of type `source`, as `target`."""
    if source is target:
        return parts
    if target.kind is Kind.PRED:
        return as_pred(s, _is_nonzero(s, parts))
    if target.is_complex:
        to = component(target)
        if source.is_complex:
            return tuple(_real(s, part, component(source), to) for part in parts)
        return (_real(s, parts[0], source, to), s.emitter.constant(0.0, scalar_type(to)))
    return (_real(s, parts[0], component(source), target),)


def _is_nonzero(s: Scalars, parts: Values) -> Value:
    found: Value | None = None
    for part in parts:
        if isinstance(part.type, FloatType):
            wide = s.resize_float(part, F32) if part.type.width <= 8 else part
            test = s.cmpf("une", wide, s.emitter.constant(0.0, wide.type))
        else:
            test = s.cmpi("ne", part, s.emitter.constant(0, part.type))
        found = test if found is None else s.arith("ori", found, test)
    assert found is not None
    return found


def _real(s: Scalars, x: Value, source: DType, target: DType) -> Value:
    if source is target:
        return x
    to = scalar_type(target)
    if isinstance(to, FloatType):
        if source.is_float:
            return s.resize_float(x, to)
        return _int_to_float(s, x, source, to)
    if source.is_float:
        return _float_to_int(s, x, target)
    return s.resize_int(x, bit_width(to), signed=source.is_signed)


def _int_to_float(s: Scalars, x: Value, source: DType, to: FloatType) -> Value:
    if source.bits < 8:
        x = s.resize_int(x, _WORD, signed=source.is_signed)
    name = "sitofp" if source.is_signed else "uitofp"
    if to.width <= 8:
        return s.resize_float(s.cast(name, x, F32), to)
    return s.cast(name, x, to)


def _float_to_int(s: Scalars, x: Value, target: DType) -> Value:
    """Truncation toward zero; beyond the range the nearest bound; NaN gives 0."""
    type = x.type
    assert isinstance(type, FloatType)
    if type.width <= 16:
        x = s.resize_float(x, F32)
    width = max(target.bits, _WORD)
    wide = integer(width)
    signed = target.is_signed
    lowest, highest = (
        (-(1 << (target.bits - 1)), (1 << (target.bits - 1)) - 1) if signed else (0, (1 << target.bits) - 1)
    )
    value = s.cast("fptosi" if signed else "fptoui", x, wide)
    below = s.cmpf("ole", x, s.emitter.constant(float(lowest), x.type))
    value = s.select(below, s.emitter.constant(lowest, wide), value)
    above = s.cmpf("oge", x, s.emitter.constant(float(highest), x.type))
    value = s.select(above, s.emitter.constant(highest, wide), value)
    value = s.select(s.cmpf("uno", x, x), s.emitter.constant(0, wide), value)
    return s.resize_int(value, target.bits, signed=signed)
