"""The math dialect as calls of CUDA's functions.

Fusions come here expanded to plain arithmetic, but for f64, where a function is CUDA's own.  Tile kernels call `expf`
and the like: what their author asked for.
"""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.backends.cuda_cpp.integer_signs import signed, unsigned
from warpsmith.backends.cuda_cpp.literals import integer_literal
from warpsmith.backends.cuda_cpp.types import INT, Expr, binary, call, integer_type
from warpsmith.backends.cuda_cpp.writer import Handler, Writer
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.types import BF16, F16, F32, F64, bit_width
from warpsmith.numerics.functions.table import FUNCTIONS

__all__ = ["EXPRESSIONS"]

_NAMES = {
    **{name: name for name in ("ceil", "floor", "trunc", "round", "copysign", "fma")},
    "absf": "fabs",
    "roundeven": "rint",
    **{row.name: row.c_name for row in FUNCTIONS.values() if row.math_op},
}
_HALF = {"absf": "__habs", "fma": "__hfma"}
"""Functions of 16-bit floats whose names don't follow the rule: `h` and the name."""


def _function(name: str) -> Handler:
    def handler(w: Writer, source: Operation) -> Expr:
        operands = tuple(w.value(v) for v in source.operands)
        type = source.result.type
        if type in (F16, BF16):
            return call(_HALF.get(name, "h" + _NAMES[name]), operands, w.type(type))
        return call(_NAMES[name] + ("" if type is F64 else "f"), operands, w.type(type))

    return handler


def _copysign(w: Writer, source: Operation) -> Expr:
    """CUDA has none of 16 bits; the way through f32 is exact."""
    type = source.result.type
    if type not in (F16, BF16):
        return _function("copysign")(w, source)
    to, back = ("__half2float", "__float2half") if type is F16 else ("__bfloat162float", "__float2bfloat16")
    operands = tuple(call(to, (w.value(v),), w.type(F32)) for v in source.operands)
    return call(back, (call("copysignf", operands, w.type(F32)),), w.type(type))


def _absolute(w: Writer, source: Operation) -> Expr:
    """The least integer is its own: unsigned arithmetic, where that is so."""
    width = bit_width(source.result.type)
    value = signed(w.value(source.operands[0]), width, w)
    return call("abs", (value,), integer_type(max(width, 32), True)).of_type(
        integer_type(max(width, 32), True), exact=width >= 32
    )


def _bits(function: Callable[[str, Expr, int], Expr]) -> Handler:
    def handler(w: Writer, source: Operation) -> Expr:
        width = bit_width(source.result.type)
        value = unsigned(w.value(source.operands[0]), width)
        result = function("ll" if width == 64 else "", value, width)
        return result.of_type(integer_type(width, False) if width < 32 else INT) if width <= 32 else result

    return handler


def _leading_zeros(suffix: str, value: Expr, width: int) -> Expr:
    count = call(f"__clz{suffix}", (value,), INT)
    return count if width >= 32 else binary("-", count, integer_literal(32 - width, 32), INT)


def _trailing_zeros(suffix: str, value: Expr, width: int) -> Expr:
    """Of zero it is the width: a bit is put there."""
    if width >= 32:
        reversed_ = call(f"__brev{suffix}", (value,), value.type)
    else:
        reversed_ = call("__brev", (binary("|", value, integer_literal(1 << width, 32), INT),), value.type)
    return call(f"__clz{suffix}", (reversed_,), INT)


EXPRESSIONS: dict[str, Handler] = {
    **{f"math.{name}": _function(name) for name in _NAMES},
    "math.copysign": _copysign,
    "math.absi": _absolute,
    "math.ctpop": _bits(lambda suffix, value, _: call(f"__popc{suffix}", (value,), INT)),
    "math.ctlz": _bits(_leading_zeros),
    "math.cttz": _bits(_trailing_zeros),
}
