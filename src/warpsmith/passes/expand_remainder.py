"""expand-remainder (GPU): `arith.remf` becomes a long division in integers, exact for all operands.

    %r = arith.remf %x, %y : f32
      ->  %q = the significand of x, shifted, mod that of y ; scf.for the difference of exponents, 40 bits each { ... }

x = mx * 2^ex and y = my * 2^ey with integers mx and my, so x mod y = (mx * 2^(ex-ey) mod my) * 2^ey.  The power of two
is multiplied in a piece at a time, as many bits as a 64-bit remainder has room for.  What LLVM makes of `frem` on NVPTX
(a division, a truncation, an fma) is off as soon as the quotient has more bits than the significand.  A CPU keeps the
op: there it is C's fmod.
"""

from __future__ import annotations

from warpsmith.dtypes import BY_IR
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Operation, Value
from warpsmith.ir.core.types import F32, F64, I64, INDEX, FloatType, VectorType, element_type, integer
from warpsmith.ir.dialects import arith, func, scf, vector

CONTRACT = "bit-exact"
ILLEGAL_AFTER = ("arith.remf",)


def run(module: Operation) -> None:
    """Rewrite all functions; f16 and bf16 are in f32 by then."""
    for function in func.functions(module):
        for op in list(function.walk()):
            if op.name == "arith.remf" and element_type(op.result.type) in (F32, F64):
                _rewrite(op)


def _rewrite(op: Operation) -> None:
    b = Builder.before(op)
    type = op.result.type
    if isinstance(type, VectorType):
        pairs = [[vector.extract(b, v, i) for v in op.operands] for i in range(type.elements)]
        result = b.op1("vector.from_elements", [_remainder(b, x, y) for x, y in pairs], type)
    else:
        result = _remainder(b, *op.operands)
    result.name = op.result.name
    op.replace_by((result,))


def _remainder(b: Builder, x: Value, y: Value) -> Value:
    assert isinstance(x.type, FloatType)
    form, bits = BY_IR[x.type.text].format, integer(x.type.width)
    step = 63 - form.mantissa  # bits that a remainder below 2^(mantissa+1) can be shifted by within 64

    def number(value: int) -> Value:
        return arith.constant(b, value - (1 << form.bits) if value >> (form.bits - 1) else value, bits)

    def binary(name: str, p: Value, q: Value | int) -> Value:
        return arith.binary(b, name, p, number(q) if isinstance(q, int) else q)

    def parts(magnitude: Value) -> tuple[Value, Value]:
        """The exponent field (1 for subnormal numbers) and the significand, 64 bits wide."""
        field = binary("shrui", magnitude, form.mantissa)
        hidden = arith.select(b, arith.cmpi(b, "ne", field, number(0)), number(1 << form.mantissa), number(0))
        significand = binary("ori", binary("andi", magnitude, (1 << form.mantissa) - 1), hidden)
        wide = significand if bits is I64 else arith.cast(b, "extui", significand, I64)
        return binary("maxui", field, 1), wide

    x_bits, y_bits = (arith.cast(b, "bitcast", v, bits) for v in (x, y))
    below = (1 << (form.bits - 1)) - 1
    x_size, y_size = binary("andi", x_bits, below), binary("andi", y_bits, below)
    (x_exponent, x_part), (y_exponent, y_part) = parts(x_size), parts(y_size)
    one = arith.constant(b, 1, I64)
    divisor = arith.binary(b, "maxui", y_part, one)
    distance = binary("maxsi", binary("subi", x_exponent, y_exponent), 0)
    whole = binary("divui", distance, step)
    rest = binary("subi", distance, binary("muli", whole, step))
    first = arith.binary(b, "shli", x_part, rest if bits is I64 else arith.cast(b, "extui", rest, I64))
    loop = scf.for_(
        b,
        arith.index(b, 0),
        b.op1("arith.index_castui", (whole,), INDEX),
        arith.index(b, 1),
        [arith.binary(b, "remui", first, divisor)],
        iter_names=("rest",),
    )
    inner = Builder.at_end(loop.body, b.location)
    moved = arith.binary(inner, "shli", loop.body.args[1], arith.constant(inner, step, I64))
    scf.yield_(inner, (arith.binary(inner, "remui", moved, divisor),))
    # 2^(y's exponent - mantissa bits), a subnormal number where the exponent field is no larger than that.
    normal = binary("shli", binary("subi", y_exponent, form.mantissa), form.mantissa)
    tiny = binary("shli", number(1), binary("minui", binary("subi", y_exponent, 1), form.mantissa))
    is_normal = arith.cmpi(b, "ugt", y_exponent, number(form.mantissa))
    scale = arith.cast(b, "bitcast", arith.select(b, is_normal, normal, tiny), x.type)
    size = arith.binary(b, "mulf", arith.cast(b, "uitofp", loop.results[0], x.type), scale)
    found = arith.cast(b, "bitcast", size, bits)
    found = arith.select(b, arith.cmpi(b, "ult", x_size, y_size), x_size, found)
    found = binary("ori", found, binary("andi", x_bits, 1 << (form.bits - 1)))
    # No remainder of infinity, none by zero, none with NaN.
    infinity, nan = number(form.overflow), number(form.nan)
    bad = arith.binary(b, "ori", arith.cmpi(b, "uge", x_size, infinity), arith.cmpi(b, "ugt", y_size, infinity))
    bad = arith.binary(b, "ori", bad, arith.cmpi(b, "eq", y_size, number(0)))
    return arith.cast(b, "bitcast", arith.select(b, bad, nan, found), x.type)
