"""Float arithmetic and comparisons as C++ expressions.

A product that a sum takes is `__fmul_rn`, which is never fused: plain operators would round as `-fmad` says.
"""

from __future__ import annotations

from warpsmith.backends.cuda_cpp.types import BOOL, Expr, Level, atom, binary, call, prefix
from warpsmith.backends.cuda_cpp.writer import Handler, Writer
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.types import BF16, F16, F32, F64, Type
from warpsmith.ir.dialects.arith import CMPF

__all__ = ["EXPRESSIONS"]

_FLOAT_PREDICATES = {number: name for name, number in CMPF.items()}
_ROUNDED: dict[Type, str] = {F64: "__dmul_rn", F32: "__fmul_rn", F16: "__hmul_rn", BF16: "__hmul_rn"}


def _float(op: str) -> Handler:
    def handler(w: Writer, source: Operation) -> Expr:
        lhs, rhs = (w.value(v) for v in source.operands)
        type = w.type(source.result.type)
        if op == "*" and w.feeds_sum(source):
            return call(_ROUNDED[source.result.type], (lhs, rhs), type)
        if op == "+" and rhs.text.startswith("-") and rhs.level == Level.PREFIX:
            return binary("-", lhs, Expr(rhs.text[1:], Level.ATOM, type), type)
        return binary(op, lhs, rhs, type)

    return handler


def _negate(w: Writer, source: Operation) -> Expr:
    return prefix("-", w.value(source.operands[0]), w.type(source.result.type))


def _remainder(w: Writer, source: Operation) -> Expr:
    function = "fmod" if source.result.type is F64 else "fmodf"
    return call(function, tuple(w.value(v) for v in source.operands), w.type(source.result.type))


def _float_extreme(nan: str, number: str) -> Handler:
    """`nan`: our function that gives NaN if an operand is; `number`: C's, which then gives the other."""

    def handler(w: Writer, source: Operation) -> Expr:
        type = source.result.type
        operands = tuple(w.value(v) for v in source.operands)
        if not number:
            if type in (F16, BF16):
                return call({"maximum": "__hmax_nan", "minimum": "__hmin_nan"}[nan], operands, w.type(type))
            w.unit.need(nan + ("_f64" if type is F64 else ""))
            return call(nan, operands, w.type(type))
        if type in (F16, BF16):
            return call("__h" + number[1:], operands, w.type(type))
        return call(number if type is F64 else number + "f", operands, w.type(type))

    return handler


_UNORDERED = {"ugt": "<=", "uge": "<", "ult": ">=", "ule": ">"}
_ORDERED = {"oeq": "==", "ogt": ">", "oge": ">=", "olt": "<", "ole": "<=", "une": "!="}


def _compare_floats(w: Writer, source: Operation) -> Expr:
    lhs, rhs = (w.value(v) for v in source.operands)
    name = _FLOAT_PREDICATES[source.int_attr("predicate")]
    if name in _ORDERED:
        return binary(_ORDERED[name], lhs, rhs, BOOL)
    if name in _UNORDERED:
        return prefix("!", binary(_UNORDERED[name], lhs, rhs, BOOL), BOOL)
    if name in ("uno", "ord"):
        if lhs.text == rhs.text or w.is_never_nan(source.operands[1]):
            test = call("isnan", (lhs,), BOOL)
        else:
            test = binary("||", call("isnan", (lhs,), BOOL), call("isnan", (rhs,), BOOL), BOOL)
        return test if name == "uno" else prefix("!", test, BOOL)
    if name in ("one", "ueq"):
        apart = binary("||", binary("<", lhs, rhs, BOOL), binary(">", lhs, rhs, BOOL), BOOL)
        return apart if name == "one" else prefix("!", apart, BOOL)
    return atom(name, BOOL)


EXPRESSIONS: dict[str, Handler] = {
    "arith.addf": _float("+"),
    "arith.subf": _float("-"),
    "arith.mulf": _float("*"),
    "arith.divf": _float("/"),
    "arith.negf": _negate,
    "arith.remf": _remainder,
    "arith.maximumf": _float_extreme("maximum", ""),
    "arith.minimumf": _float_extreme("minimum", ""),
    "arith.maxnumf": _float_extreme("maximum", "fmax"),
    "arith.minnumf": _float_extreme("minimum", "fmin"),
    "arith.cmpf": _compare_floats,
}
