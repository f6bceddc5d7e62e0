"""Elementwise ops on integers and predicates: rows of the table.

All wrap around; division by zero, overflow of MIN / -1, and shifts past the width have HLO's values, never poison.
"""

from __future__ import annotations

from warpsmith.emitters.elemental.emitter import Values
from warpsmith.emitters.elemental.scalars import Row, Scalar, Scalars, as_pred
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.core.types import integer
from warpsmith.ir.dialects import scf

__all__ = ["INTEGER_ROWS"]


def _binary(name: str) -> Scalar:
    return lambda s: (s.arith(name, s.x, s.y),)


def _divide(signed: bool, remainder: bool) -> Scalar:
    """x/0 is -1 (all ones), MIN/-1 is MIN; x%0 is x, MIN%-1 is 0."""
    name = ("rem" if remainder else "div") + ("si" if signed else "ui")

    def emit(s: Scalars) -> Values:
        zero, one, ones = s.constant(0), s.constant(1), s.constant(-1)
        by_zero = s.cmpi("eq", s.y, zero)
        unsafe = by_zero
        overflow: Value | None = None
        lowest = s.constant(-(1 << (s.bits - 1)))
        if signed:
            overflow = s.arith("andi", s.cmpi("eq", s.x, lowest), s.cmpi("eq", s.y, ones))
            unsafe = s.arith("ori", by_zero, overflow)
        value = s.arith(name, s.x, s.select(unsafe, one, s.y))
        if remainder:  # dividing by 1 in place of -1 leaves 0, as it should
            return (s.select(by_zero, s.x, value),)
        # MIN / 1 is MIN, so the overflow needs no select of its own.
        return (s.select(by_zero, ones, value),)

    return emit


def _power(signed: bool) -> Scalar:
    """Square and multiply over every bit of the exponent; a negative exponent gives 0 except for bases 1 and -1."""

    def emit(s: Scalars) -> Values:
        e = s.emitter
        zero, one = s.constant(0), s.constant(1)
        loop = scf.for_(
            e.b, e.index(0), e.index(s.bits), e.index(1), (one, s.x, s.y), iter_names=("power", "base", "exponent")
        )
        with e.inside(loop.body):
            _, power, base, exponent = loop.body.args
            odd = s.cmpi("ne", s.arith("andi", exponent, one), zero)
            times = s.select(odd, s.arith("muli", power, base), power)
            scf.yield_(e.b, (times, s.arith("muli", base, base), s.arith("shrui", exponent, one)))
        value = loop.results[0]
        if not signed:
            return (value,)
        minus = s.constant(-1)
        sign = s.select(s.cmpi("eq", s.arith("andi", s.y, one), zero), one, minus)
        small = s.select(s.cmpi("eq", s.x, minus), sign, s.select(s.cmpi("eq", s.x, one), one, zero))
        return (s.select(s.cmpi("slt", s.y, zero), small, value),)

    return emit


def _shift(name: str) -> Scalar:
    """A shift by the width or more leaves zeros, or sign bits."""

    def emit(s: Scalars) -> Values:
        width = s.constant(s.bits)
        inside = s.cmpi("ult", s.y, width)
        if name == "shrsi":
            return (s.arith(name, s.x, s.select(inside, s.y, s.constant(s.bits - 1))),)
        if s.bits == 64:
            # By 63 at most, and once more beyond.  LLVM 22 takes the form below for PTX's own shift, which clamps, but
            # hands that the low half of the amount alone: a shift by 2^63 would be one by 0.
            most = s.arith("minui", s.y, s.constant(63))
            beyond = s.cast("extui", s.cmpi("uge", s.y, width), s.type)
            return (s.arith(name, s.arith(name, s.x, most), beyond),)
        return (s.select(inside, s.arith(name, s.x, s.select(inside, s.y, s.constant(0))), s.constant(0)),)

    return emit


_INT_COMPARE = {"EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}


def _compare(signed: bool) -> Scalar:
    def emit(s: Scalars) -> Values:
        name = _INT_COMPARE[str(s.instruction.attributes["direction"])]
        return as_pred(s, s.cmpi(name if name in ("eq", "ne") else ("s" if signed else "u") + name, s.x, s.y))

    return emit


def _abs(s: Scalars) -> Values:
    zero = s.constant(0)
    return (s.select(s.cmpi("sge", s.x, zero), s.x, s.arith("subi", zero, s.x)),)


def _sign(s: Scalars) -> Values:
    zero = s.constant(0)
    negative = s.select(s.cmpi("slt", s.x, zero), s.constant(-1), s.constant(1))
    return (s.select(s.cmpi("eq", s.x, zero), zero, negative),)


def _unsigned_sign(s: Scalars) -> Values:
    zero = s.constant(0)
    return (s.select(s.cmpi("eq", s.x, zero), zero, s.constant(1)),)


def _clamp(low: str, high: str) -> Scalar:
    return lambda s: (s.arith(high, s.arith(low, s.args[1][0], s.args[0][0]), s.args[2][0]),)


def _bit_count(name: str) -> Scalar:
    """Types narrower than a byte are counted in a wider one."""

    def emit(s: Scalars) -> Values:
        if s.bits >= 8:
            return (s.math(name, s.x),)
        wide = s.math(name, s.cast("extui", s.x, integer(8)))
        if name == "ctlz":
            wide = s.arith("subi", wide, s.emitter.constant(8 - s.bits, wide.type))
        return (s.cast("trunci", wide, s.type),)

    return emit


def _high_half(signed: bool) -> Scalar:
    name = "arith.mulsi_extended" if signed else "arith.mului_extended"
    return lambda s: (s.emitter.b.create(name, (s.x, s.y), (s.type, s.type)).results[1],)


def _not_pred(s: Scalars) -> Values:
    return as_pred(s, s.cmpi("eq", s.x, s.constant(0)))


def _pred_binary(name: str) -> Scalar:
    """On the i1 values, so that bytes other than 0 and 1 count as true."""

    def emit(s: Scalars) -> Values:
        zero = s.constant(0)
        x, y = s.cmpi("ne", s.x, zero), s.cmpi("ne", s.y, zero)
        return as_pred(s, s.arith(name, x, y))

    return emit


def _both(signed: Scalar, unsigned: Scalar | None = None, pred: Scalar | None = None) -> Row:
    return Row(signed=signed, unsigned=unsigned or signed, pred=pred)


_OR, _AND, _XOR = _pred_binary("ori"), _pred_binary("andi"), _pred_binary("xori")


def _same(s: Scalars) -> Values:
    return (s.x,)


INTEGER_ROWS: dict[str, Row] = {
    "add": _both(_binary("addi"), pred=_OR),
    "subtract": _both(_binary("subi")),
    "multiply": _both(_binary("muli"), pred=_AND),
    "divide": _both(_divide(True, False), _divide(False, False)),
    "remainder": _both(_divide(True, True), _divide(False, True)),
    "power": _both(_power(True), _power(False)),
    "maximum": _both(_binary("maxsi"), _binary("maxui"), _OR),
    "minimum": _both(_binary("minsi"), _binary("minui"), _AND),
    "and": _both(_binary("andi"), pred=_AND),
    "or": _both(_binary("ori"), pred=_OR),
    "xor": _both(_binary("xori"), pred=_XOR),
    "not": _both(lambda s: (s.arith("xori", s.x, s.constant(-1)),), pred=_not_pred),
    "negate": _both(lambda s: (s.arith("subi", s.constant(0), s.x),)),
    "abs": _both(_abs, _same),
    "sign": _both(_sign, _unsigned_sign),
    "shift-left": _both(_shift("shli")),
    "shift-right-logical": _both(_shift("shrui")),
    "shift-right-arithmetic": _both(_shift("shrsi")),
    "compare": _both(_compare(True), _compare(False), _compare(False)),
    "clamp": _both(_clamp("maxsi", "minsi"), _clamp("maxui", "minui"), _clamp("maxui", "minui")),
    "popcnt": _both(_bit_count("ctpop")),
    "count-leading-zeros": _both(_bit_count("ctlz")),
    "mulhi": _both(_high_half(True), _high_half(False)),
}
