"""Integer arithmetic, comparisons and logic as C++ expressions.

Sums wrap: data is computed without sign.  Indices don't overflow: they are `int`, or `int64_t`.
"""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.backends.cuda_cpp.integer_signs import flexible, signed, unsigned, wide_type
from warpsmith.backends.cuda_cpp.literals import integer_literal, unsigned_literal
from warpsmith.backends.cuda_cpp.types import (
    BOOL,
    INT,
    CType,
    Expr,
    binary,
    call,
    cast,
    integer_type,
    prefix,
    width_of,
)
from warpsmith.backends.cuda_cpp.writer import Handler, Statement, Writer
from warpsmith.ir.analysis.ranges import range_of
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import I1, IndexType, Type, bit_width
from warpsmith.ir.dialects.arith import CMPI, constant_int

__all__ = ["EXPRESSIONS", "STATEMENTS"]

_PREDICATES = {number: name for name, number in CMPI.items()}
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}


def _wrapping(op: str) -> Handler:
    """`+ - * <<`: on data without sign, so that overflow wraps; on indices, which don't overflow, as they are."""

    def handler(w: Writer, source: Operation) -> Expr:
        lhs, rhs = (w.value(v) for v in source.operands)
        type = source.result.type
        if isinstance(type, IndexType):
            return _sum(op, lhs, rhs, w.index)
        width = bit_width(type)
        if op == "<<":
            lhs = _without_sign(lhs, width)
            return binary(op, lhs, _amount(rhs), lhs.type, exact=width >= 32)
        if op == "+" and rhs.literal is not None and rhs.literal < 0:
            return _difference(lhs, integer_literal(-rhs.literal, width), width)
        if op == "-":
            return _difference(lhs, rhs, width)
        if _is_small(lhs, width) and _is_small(rhs, width) and (op == "+" or width <= 8):
            return binary(op, lhs, rhs, INT, exact=False)
        lhs, rhs = _one_without_sign(lhs, rhs, width)
        return binary(op, lhs, rhs, wide_type(width), exact=width >= 32)

    return handler


def _sum(op: str, lhs: Expr, rhs: Expr, type: CType) -> Expr:
    if op == "<<" and lhs.literal is not None:
        lhs = cast(type, lhs) if type.bits == 64 else lhs
    if op == "+" and rhs.literal is not None and rhs.literal < 0:
        return binary("-", lhs, integer_literal(-rhs.literal, type.bits), type)
    if op == "*" and rhs.literal == -1:
        return prefix("-", lhs, type)
    if op == "+" and lhs.literal is not None:
        lhs, rhs = rhs, lhs
    return binary(op, lhs, rhs, type)


def _difference(lhs: Expr, rhs: Expr, width: int) -> Expr:
    if _is_small(lhs, width) and _is_small(rhs, width):
        return binary("-", lhs, rhs, INT, exact=False)
    if lhs.literal == 0:
        return prefix("-", _without_sign(rhs, width), wide_type(width), exact=width >= 32)
    lhs, rhs = _one_without_sign(lhs, rhs, width)
    return binary("-", lhs, rhs, wide_type(width), exact=width >= 32)


def _is_small(value: Expr, width: int) -> bool:
    """Far from the ends of int, where C++ computes."""
    return width < 32 and value.exact


def _without_sign(value: Expr, width: int) -> Expr:
    """In the unsigned type that C++ computes in; upper bits may be anything."""
    wide = wide_type(width)
    if value.literal is not None:
        return unsigned_literal(value.literal, wide.bits)
    return value if value.type == wide else call(wide.name, (value,), wide)


def _one_without_sign(lhs: Expr, rhs: Expr, width: int) -> tuple[Expr, Expr]:
    """If one operand has no sign, C++ makes the other one like it."""
    wide = wide_type(width)
    if lhs.type == wide or rhs.type == wide:
        return flexible(lhs, rhs, width), flexible(rhs, lhs, width)
    if rhs.literal is not None:
        return lhs, unsigned_literal(rhs.literal, wide.bits)
    if lhs.literal is not None:
        return unsigned_literal(lhs.literal, wide.bits), rhs
    return _without_sign(lhs, width), rhs


def _amount(value: Expr) -> Expr:
    return value if value.literal is None else integer_literal(value.literal, 32)


def _bitwise(op: str) -> Handler:
    logical = {"&": "&&", "|": "||"}.get(op, "!=")

    def handler(w: Writer, source: Operation) -> Expr:
        lhs, rhs = (w.value(v) for v in source.operands)
        type = source.result.type
        if type is I1:
            if op == "^" and constant_int(source.operands[1]):
                return _not(w, source.operands[0], lhs)
            return binary("!=" if op == "^" else logical, lhs, rhs, BOOL)
        width = width_of(type, w.index)
        if isinstance(type, IndexType):
            return binary(op, lhs, rhs, w.index)
        if op == "^" and rhs.literal == -1:
            return prefix("~", lhs, lhs.type if width >= 32 else INT, exact=width >= 32)
        if lhs.literal is not None:
            lhs, rhs = rhs, lhs
        masks = rhs.literal is not None
        if rhs.literal is not None:
            bits = rhs.literal & (1 << width) - 1
            rhs = integer_literal(bits, 32) if bits <= 255 else unsigned_literal(bits, max(width, 32))
        if width < 32:
            # Upper bits are clear where both operands' are, or where a constant clears them.
            clear = all(v.exact and not v.type.signed for v in ((lhs,) if masks else (lhs, rhs))) or (
                masks and op == "&"
            )
            return binary(op, lhs, rhs, integer_type(width, False) if clear else INT, exact=clear)
        keeps_sign = all(v.type.signed or v.type.bits < 32 for v in (lhs, rhs))
        return binary(op, lhs, rhs, integer_type(width, keeps_sign))

    return handler


def _not(w: Writer, operand: Value, text: Expr) -> Expr:
    """The opposite comparison of integers; else `!x`."""
    op = operand.defining_op
    if op is not None and op.name == "arith.cmpi" and w.is_folded(op):
        name = _PREDICATES[op.int_attr("predicate")]
        stem = name[-2:]
        return _compare_integers(w, op, name[: len(name) - 2] + _OPPOSITE[stem])
    return prefix("!", text, BOOL)


def _is_natural(value: Value) -> bool:
    known = range_of(value)
    return known is not None and known.lower >= 0


def _division(op: str, has_sign: bool) -> Handler:
    def handler(w: Writer, source: Operation) -> Expr:
        lhs, rhs = (w.value(v) for v in source.operands)
        type = source.result.type
        width = width_of(type, w.index)
        if isinstance(type, IndexType) and (has_sign or all(w.is_nonnegative(v) for v in source.operands)):
            return binary(op, lhs, rhs, w.index)
        if has_sign or all(map(_is_natural, source.operands)):
            lhs, rhs = signed(lhs, width, w), signed(rhs, width, w)
            return binary(op, lhs, rhs, integer_type(width, True))
        lhs, rhs = unsigned(lhs, width), unsigned(rhs, width)
        return _settled(w, binary(op, lhs, flexible(rhs, lhs, width), integer_type(width, False)), type)

    return handler


def _ceil_division(w: Writer, source: Operation) -> Expr:
    width = width_of(source.result.type, w.index)
    w.unit.need("ceil_div")
    return call("ceil_div", tuple(unsigned(w.value(v), width) for v in source.operands), wide_type(width))


def _floor_division(w: Writer, source: Operation) -> Expr:
    width = width_of(source.result.type, w.index)
    w.unit.need("floor_div")
    return call(
        "floor_div", tuple(signed(w.value(v), width, w) for v in source.operands), wide_type(width, signed=True)
    )


def _shift_right(has_sign: bool) -> Handler:
    def handler(w: Writer, source: Operation) -> Expr:
        lhs, amount = (w.value(v) for v in source.operands)
        type = source.result.type
        width = width_of(type, w.index)
        if isinstance(type, IndexType) and (has_sign or w.is_nonnegative(source.operands[0])):
            return binary(">>", lhs, amount, w.index)
        lhs = signed(lhs, width, w) if has_sign else unsigned(lhs, width)
        if lhs.literal is not None and width == 64:
            lhs = cast(integer_type(64, has_sign), lhs)
        return _settled(w, binary(">>", lhs, _amount(amount), integer_type(width, has_sign)), type)

    return handler


def _extreme(function: str, has_sign: bool) -> Handler:
    def handler(w: Writer, source: Operation) -> Expr:
        lhs, rhs = (w.value(v) for v in source.operands)
        type = source.result.type
        width = width_of(type, w.index)
        if isinstance(type, IndexType) and (has_sign or all(map(w.is_nonnegative, source.operands))):
            return call(function, (_exactly(lhs, w.index), _exactly(rhs, w.index)), w.index)
        if has_sign:
            lhs, rhs = signed(lhs, width, w), signed(rhs, width, w)
        else:
            lhs, rhs = unsigned(lhs, width), unsigned(rhs, width)
        wide = wide_type(width, signed=has_sign)
        # CUDA's min and max choose their type by both arguments.
        return _settled(
            w, call(function, (_exactly(lhs, wide), _exactly(rhs, wide)), integer_type(width, has_sign)), type
        )

    return handler


def _settled(w: Writer, value: Expr, type: Type) -> Expr:
    """An index has its sign back after an unsigned op."""
    return cast(w.index, value) if isinstance(type, IndexType) else value


def _exactly(value: Expr, type: CType) -> Expr:
    """What C++ sees as that very type: of 64 bits there are two, and a promoted value has another."""
    if value.literal is not None:
        if type.bits == 32 and value.type == type:
            return value
        small = 0 <= value.literal <= 255
        return call(type.name, (integer_literal(value.literal, 32) if small else value,), type)
    if value.text.startswith(f"{type.name}("):
        return value
    is_known = type.bits == 32 or value.text.isidentifier() or value.text.endswith("]")
    return value if value.type == type and is_known else call(type.name, (value,), type)


def _compare(w: Writer, source: Operation) -> Expr:
    return _compare_integers(w, source, _PREDICATES[source.int_attr("predicate")])


def _compare_integers(w: Writer, source: Operation, predicate: str) -> Expr:
    lhs, rhs = (w.value(v) for v in source.operands)
    type = source.operands[0].type
    op = _COMPARISONS[predicate[-2:]]
    width = width_of(type, w.index)
    if type is I1:
        return binary(op, lhs, rhs, BOOL)
    if isinstance(type, IndexType) and (predicate[0] != "u" or all(map(w.is_nonnegative, source.operands))):
        return binary(op, lhs, rhs, BOOL)
    if predicate[0] == "s" and len(predicate) == 3:
        return binary(op, signed(lhs, width, w), signed(rhs, width, w), BOOL)
    if len(predicate) == 3:
        lhs, rhs = unsigned(lhs, width), unsigned(rhs, width)
        return binary(op, lhs, flexible(rhs, lhs, width), BOOL)
    if lhs.exact and rhs.exact and lhs.literal is None and (lhs.type.signed == rhs.type.signed or width >= 32):
        if rhs.literal is not None and not lhs.type.signed:
            rhs = flexible(rhs, lhs, width) if rhs.literal >= 0 else unsigned(rhs, width)
        return binary(op, lhs, rhs, BOOL)
    lhs, rhs = unsigned(lhs, width), unsigned(rhs, width)
    return binary(op, lhs, flexible(rhs, lhs, width), BOOL)


_HIGH = {(32, True): "__mulhi", (32, False): "__umulhi", (64, True): "__mul64hi", (64, False): "__umul64hi"}


def _long_product(has_sign: bool) -> Callable[[Writer, Operation], None]:
    """The two halves of a product."""

    def statement(w: Writer, source: Operation) -> None:
        low, high = source.results
        width = bit_width(low.type)
        lhs, rhs = (w.value(v) for v in source.operands)
        if low.users:
            w.declare(low, binary("*", *_one_without_sign(lhs, rhs, width), wide_type(width)), hint="low")
        if high.users:
            if has_sign:
                factors = (signed(lhs, width, w), signed(rhs, width, w))
            else:
                factors = (unsigned(lhs, width), unsigned(rhs, width))
            w.declare(high, call(_HIGH[width, has_sign], factors, integer_type(width, has_sign)), hint="high")

    return statement


STATEMENTS: dict[str, Statement] = {
    "arith.mulsi_extended": _long_product(True),
    "arith.mului_extended": _long_product(False),
}
EXPRESSIONS: dict[str, Handler] = {
    "arith.addi": _wrapping("+"),
    "arith.subi": _wrapping("-"),
    "arith.muli": _wrapping("*"),
    "arith.shli": _wrapping("<<"),
    "arith.shrui": _shift_right(False),
    "arith.shrsi": _shift_right(True),
    "arith.andi": _bitwise("&"),
    "arith.ori": _bitwise("|"),
    "arith.xori": _bitwise("^"),
    "arith.divsi": _division("/", True),
    "arith.divui": _division("/", False),
    "arith.remsi": _division("%", True),
    "arith.remui": _division("%", False),
    "arith.ceildivui": _ceil_division,
    "arith.floordivsi": _floor_division,
    "arith.maxsi": _extreme("max", True),
    "arith.minsi": _extreme("min", True),
    "arith.maxui": _extreme("max", False),
    "arith.minui": _extreme("min", False),
    "arith.cmpi": _compare,
}
