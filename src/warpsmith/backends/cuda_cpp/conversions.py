"""Conversions, selections and constants as C++ expressions."""

from __future__ import annotations

from collections.abc import Mapping

from warpsmith.backends.cuda_cpp.integer_signs import signed, unsigned, wide_type
from warpsmith.backends.cuda_cpp.literals import integer_literal, unsigned_literal
from warpsmith.backends.cuda_cpp.signs import is_signed
from warpsmith.backends.cuda_cpp.types import (
    BOOL,
    FLOATS,
    INT,
    UNSIGNED,
    Expr,
    binary,
    call,
    cast,
    conditional,
    integer_type,
    prefix,
    width_of,
)
from warpsmith.backends.cuda_cpp.writer import Handler, Writer
from warpsmith.ir.core.attributes import DenseAttr
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import BF16, F16, F32, F64, I1, IndexType, Type, bit_width

__all__ = ["EXPRESSIONS", "choose"]


def _select(w: Writer, source: Operation) -> Expr:
    condition, yes, no = (w.value(v) for v in source.operands)
    return choose(w, condition, yes, no, source.result)


def choose(w: Writer, condition: Expr, yes: Expr, no: Expr, result: Value) -> Expr:
    """A conditional expression; both arms get one type."""
    type = result.type
    if type is I1 and yes.text == "true":
        return binary("||", condition, no, BOOL)
    if type is I1 and no.text == "false":
        return binary("&&", condition, yes, BOOL)
    width = width_of(type, w.index)
    if not width or type is I1 or isinstance(type, IndexType):
        return conditional(condition, yes, no, w.type(type))
    if width < 32:
        clear = all(v.literal is not None or (v.exact and not v.type.signed) for v in (yes, no))
        yes, no = (_plain(v, width) for v in (yes, no))
        return conditional(condition, yes, no, integer_type(width, False) if clear else INT, exact=clear)
    arms = [v for v in (yes, no) if v.literal is None]
    has_sign = all(v.type.signed or v.type.bits < 32 for v in arms) if arms else is_signed(result)
    if not has_sign:
        yes, no = (_arm(v, width) for v in (yes, no))
    return conditional(condition, yes, no, integer_type(width, has_sign))


def _plain(value: Expr, width: int) -> Expr:
    return value if value.literal is None else integer_literal(value.literal & (1 << width) - 1, 32)


def _arm(value: Expr, width: int) -> Expr:
    return value if value.literal is None else unsigned_literal(value.literal, max(width, 32))


def _extend_float(w: Writer, source: Operation) -> Expr:
    value = w.value(source.operands[0])
    kind, target = source.operands[0].type, source.result.type
    if kind in (F16, BF16):
        value = call("__half2float" if kind is F16 else "__bfloat162float", (value,), FLOATS[F32])
    return cast(w.type(target), value)


def _truncate_float(w: Writer, source: Operation) -> Expr:
    value = w.value(source.operands[0])
    kind, target = source.operands[0].type, source.result.type
    if target in (F16, BF16):
        start = "__double2" if kind is F64 else "__float2"
        return call(start + ("half" if target is F16 else "bfloat16"), (value,), w.type(target))
    return cast(w.type(target), value)


def _extend_integer(has_sign: bool) -> Handler:
    def handler(w: Writer, source: Operation) -> Expr:
        value = w.value(source.operands[0])
        old, new = (width_of(t, w.index) for t in (source.operands[0].type, source.result.type))
        if old == 1:
            if has_sign:
                return prefix("-", call("int", (value,), INT), wide_type(new, signed=True), exact=True)
            return Expr(value.text, value.level, BOOL, value.op)
        value = signed(value, old, w) if has_sign else unsigned(value, old)
        target = integer_type(new, has_sign)
        if new <= 32 and old < 32 and value.type.bits <= 32:
            return value.of_type(INT if new == 32 else integer_type(new, value.type.signed))
        return cast(target, value)

    return handler


def _truncate_integer(w: Writer, source: Operation) -> Expr:
    value = w.value(source.operands[0])
    width = bit_width(source.result.type)
    if width == 1:
        if value.type is BOOL:
            return value
        return binary("!=", binary("&", value, integer_literal(1, 32), INT), integer_literal(0, 32), BOOL)
    if width == 32:
        return cast(UNSIGNED, value)
    return value.of_type(value.type, exact=False)


def _index_cast(has_sign: bool) -> Handler:
    def handler(w: Writer, source: Operation) -> Expr:
        value = w.value(source.operands[0])
        old, new = (width_of(t, w.index) for t in (source.operands[0].type, source.result.type))
        if isinstance(source.result.type, IndexType):
            if old == 1:
                return value.of_type(BOOL)
            value = signed(value, old, w) if has_sign or old == w.index.bits else unsigned(value, old)
            return value.of_type(w.index) if value.type.bits < new else cast(w.index, value)
        if new < old:
            return value.of_type(value.type, exact=False) if new < 32 else cast(integer_type(new, True), value)
        return value if new == old else cast(integer_type(new, has_sign), value)

    return handler


def _integer_to_float(has_sign: bool) -> Handler:
    def handler(w: Writer, source: Operation) -> Expr:
        value = w.value(source.operands[0])
        width = width_of(source.operands[0].type, w.index)
        target = source.result.type
        if width > 1:
            value = signed(value, width, w) if has_sign else unsigned(value, width)
        result = call(w.type(F64 if target is F64 else F32).name, (value,), FLOATS[F32])
        if has_sign and width == 1:
            result = prefix("-", result, FLOATS[F32])
        if target in (F16, BF16):
            return call("__float2half" if target is F16 else "__float2bfloat16", (result,), w.type(target))
        return result.of_type(w.type(target))

    return handler


def _float_to_integer(has_sign: bool) -> Handler:
    def handler(w: Writer, source: Operation) -> Expr:
        width = bit_width(source.result.type)
        target = wide_type(width, signed=has_sign)
        return call(target.name, (w.value(source.operands[0]),), target).of_type(target, exact=width >= 32)

    return handler


_BITS: Mapping[tuple[Type, bool], str] = {
    (F32, True): "__float_as_uint",
    (F64, True): "__double_as_longlong",
    (F16, True): "__half_as_ushort",
    (BF16, True): "__bfloat16_as_ushort",
    (F32, False): "__uint_as_float",
    (F64, False): "__longlong_as_double",
    (F16, False): "__ushort_as_half",
    (BF16, False): "__ushort_as_bfloat16",
}


def _bitcast(w: Writer, source: Operation) -> Expr:
    value = w.value(source.operands[0])
    old, new = source.operands[0].type, source.result.type
    if old in FLOATS and new in FLOATS:
        bits = call(_BITS[old, True], (value,), integer_type(bit_width(old), False))
        return call(_BITS[new, False], (bits,), w.type(new))
    if old in FLOATS:
        # This one function gives a number with a sign.
        return call(_BITS[old, True], (value,), integer_type(bit_width(old), old is F64))
    if new in FLOATS:
        return call(_BITS[new, False], (_wrapped(value, bit_width(new)),), w.type(new))
    return value


def _wrapped(value: Expr, width: int) -> Expr:
    """A literal as bits; a parameter's type converts all else."""
    return unsigned_literal(value.literal, width) if value.literal is not None else value


def _constant(w: Writer, source: Operation) -> Expr:
    """A literal; a vector's is a list of them."""
    value = source.attributes["value"]
    return w.vector_constant(value) if isinstance(value, DenseAttr) else w.literal(value)


EXPRESSIONS: dict[str, Handler] = {
    "arith.constant": _constant,
    "arith.select": _select,
    "arith.extf": _extend_float,
    "arith.truncf": _truncate_float,
    "arith.extsi": _extend_integer(True),
    "arith.extui": _extend_integer(False),
    "arith.trunci": _truncate_integer,
    "arith.index_cast": _index_cast(True),
    "arith.index_castui": _index_cast(False),
    "arith.sitofp": _integer_to_float(True),
    "arith.uitofp": _integer_to_float(False),
    "arith.fptosi": _float_to_integer(True),
    "arith.fptoui": _float_to_integer(False),
    "arith.bitcast": _bitcast,
}
