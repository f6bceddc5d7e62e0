"""Elementwise ops on floats: rows of the table.

f16 and bf16 stay in their own type (later passes expand them); composites (logistic, sign) of 16-bit types are computed
in f32 and rounded once.
"""

from __future__ import annotations

from warpsmith.dtypes import by_name
from warpsmith.emitters.elemental.bits import reduce_precision
from warpsmith.emitters.elemental.emitter import Values
from warpsmith.emitters.elemental.scalars import Row, Scalar, Scalars, as_pred
from warpsmith.emitters.kernel.types import scalar_type
from warpsmith.ir.core.attributes import opaque
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.core.types import F32, FloatType, integer
from warpsmith.numerics.functions.table import BY_OPCODE, implemented

__all__ = ["FLOAT_ROWS", "compare_values"]


def _arith(name: str) -> Scalar:
    return lambda s: (s.arith(name, s.x, s.y),)


def _math(name: str) -> Scalar:
    return lambda s: (s.math(name, *(each[0] for each in s.args)),)


def _approximate(name: str) -> Scalar:
    """exp and log: in xla numerics the 16-bit types may use the device's approximation."""

    def emit(s: Scalars) -> Values:
        value = s.math(name, s.x)
        op = value.defining_op
        if not s.emitter.strict and s.bits == 16 and op is not None:
            op.attributes["fastmath"] = opaque("#arith.fastmath<afn>")
        return (value,)

    return emit


_ORDERED = {"EQ": "oeq", "NE": "une", "LT": "olt", "LE": "ole", "GT": "ogt", "GE": "oge"}
_SIGNED = {"EQ": "eq", "NE": "ne", "LT": "slt", "LE": "sle", "GT": "sgt", "GE": "sge"}


def compare_values(s: Scalars, direction: str, x: Value, y: Value) -> Value:
    """Partial order: anything but NE is false for NaN."""
    return s.cmpf(_ORDERED[direction], x, y)


def _total_order_key(s: Scalars, x: Value) -> Value:
    """Bits whose order as signed integers is the total order: -NaN < -inf < .. < -0 < +0 < .. < inf < NaN."""
    type = integer(s.bits)
    bits = s.bitcast(x, type)
    sign = s.arith("shrsi", bits, s.constant(s.bits - 1, type))
    return s.arith("xori", bits, s.arith("shrui", sign, s.constant(1, type)))


def _compare(s: Scalars) -> Values:
    direction = str(s.instruction.attributes["direction"])
    if s.emitter.strict and str(s.instruction.attributes.get("type", "")) == "TOTALORDER":
        x, y = _total_order_key(s, s.x), _total_order_key(s, s.y)
        return as_pred(s, s.cmpi(_SIGNED[direction], x, y))
    return as_pred(s, compare_values(s, direction, s.x, s.y))


def _in_f32(emit: Scalar) -> Scalar:
    """16-bit types in f32, rounded once at the end."""

    def wide(s: Scalars) -> Values:
        type = s.type
        assert isinstance(type, FloatType)
        if type.width > 16:
            return emit(s)
        args = [tuple(s.resize_float(part, F32) for part in each) for each in s.args]
        values = emit(Scalars(s.emitter, s.instruction, args, by_name("f32")))
        return tuple(s.resize_float(value, type) for value in values)

    return wide


def _logistic(s: Scalars) -> Values:
    """1 / (1 + exp(-x)); in strict numerics the form that keeps precision for very negative x, in f32 at least."""
    if s.emitter.strict:
        return _in_f32(_logistic_of_size)(s)
    one = s.constant(1.0)
    return (s.arith("divf", one, s.arith("addf", one, s.math("exp", s.negf(s.x)))),)


def _logistic_of_size(s: Scalars) -> Values:
    one = s.constant(1.0)
    power = s.math("exp", s.negf(s.math("absf", s.x)))
    top = s.select(s.cmpf("olt", s.x, s.constant(0.0)), power, one)
    return (s.arith("divf", top, s.arith("addf", one, power)),)


def _sign(s: Scalars) -> Values:
    """NaN and zeros stay as they are."""
    one = s.math("copysign", s.constant(1.0), s.x)
    keeps = s.cmpf("ueq", s.x, s.constant(0.0))
    return (s.select(keeps, s.x, one),)


def _is_finite(s: Scalars) -> Values:
    return as_pred(s, s.cmpf("one", s.math("absf", s.x), s.constant(float("inf"))))


def _complex(s: Scalars) -> Values:
    """Parts in the result's format, should they be narrower."""
    part = scalar_type(s.instruction.array_shape.dtype)
    assert isinstance(part, FloatType)
    return s.resize_float(s.x, part), s.resize_float(s.y, part)


def _clamp(s: Scalars) -> Values:
    low, x, high = (each[0] for each in s.args)
    return (s.arith("minimumf", s.arith("maximumf", x, low), high),)


_OWN: dict[str, Scalar] = {
    "exponential": _approximate("exp"),
    "log": _approximate("log"),
    "logistic": _logistic,
}
"""Elementary functions that are more than an op of the math dialect."""


def _functions() -> dict[str, Row]:
    known = {row.opcode: _math(row.name) for row in BY_OPCODE.values() if row.math_op} | _OWN
    made = implemented("emitters/elemental/floats.py", known, BY_OPCODE)
    return {opcode: Row(float=emit) for opcode, emit in made.items()}


FLOAT_ROWS: dict[str, Row] = {
    "add": Row(float=_arith("addf")),
    "subtract": Row(float=_arith("subf")),
    "multiply": Row(float=_arith("mulf")),
    "divide": Row(float=_arith("divf")),
    "remainder": Row(float=_arith("remf")),
    "maximum": Row(float=_arith("maximumf")),
    "minimum": Row(float=_arith("minimumf")),
    "negate": Row(float=lambda s: (s.negf(s.x),)),
    "abs": Row(float=_math("absf")),
    "sign": Row(float=_sign),
    "is-finite": Row(float=_is_finite),
    "compare": Row(float=_compare),
    "clamp": Row(float=_clamp),
    "reduce-precision": Row(float=reduce_precision),
    "round-nearest-even": Row(float=_math("roundeven")),
    "round-nearest-afz": Row(float=_math("round")),
    "real": Row(float=lambda s: (s.x,)),
    "imag": Row(float=lambda s: (s.constant(0.0),)),
    "complex": Row(float=_complex),
    "ceil": Row(float=_math("ceil")),
    "floor": Row(float=_math("floor")),
    **_functions(),
}
