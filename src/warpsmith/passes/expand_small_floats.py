"""expand-small-floats: floats of 8 and 4 bits become integer bit manipulation, on scalars and vectors alike.

    %w = arith.extf %x : f8E4M3FN to f32    ->   %b = extui (bitcast %x) ; shifted, re-biased ; bitcast to f32
    %y = arith.truncf %w : f32 to f8E5M2    ->   %b = bitcast %w ; rounded, re-biased, cut to i8 ; bitcast to f8E5M2

Straight-line code with no branch and no table, so that a loop around it can become vectors afterwards.  Rounding is to
nearest even, once: from f32 or f64 directly, from f16 and bf16 through f32, which holds them exactly.  Subnormal
results round by an addition that aligns the value with their grid.  Overflow gives infinity in the IEEE-like formats,
NaN in `FN` and `FNUZ` ones, the largest value in f4E2M1FN; a NaN keeps its sign where the format has one; f4E2M1FN,
which has no NaN, gets -0.  f8E8M0FNU holds powers of two alone: ties go up, and what isn't positive is NaN.

Any other arithmetic on these types is done in f32 and rounded once.  With `f16`, conversions from and to f16 are
expanded as well, for x86 processors without F16C.
"""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.dtypes import BY_IR, FloatFormat
from warpsmith.ir.core.attributes import FloatAttr
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Operation, Trait, Value
from warpsmith.ir.core.types import (
    BF16,
    F16,
    F32,
    F64,
    I16,
    I32,
    I64,
    FloatType,
    Type,
    element_type,
    integer,
    with_element,
)
from warpsmith.ir.dialects import arith, func

CONTRACT = "bit-exact"


_SCALE = "f8E8M0FNU"


def _format(type: Type) -> FloatFormat:
    """How the bits of a float type's elements are read."""
    return BY_IR[element_type(type).text].format


def run(module: Operation, *, f16: bool = False) -> None:
    """Rewrite all functions; `f16` expands that format's conversions too."""
    for function in func.functions(module):
        expansion = _Expansion(f16)
        for op in list(function.walk()):
            if any(map(expansion.is_small_value, op.operands)) or any(map(expansion.is_small_value, op.results)):
                expansion.op(op)


class _Expansion:
    """One function's rewrite.  `decoded` maps a small value to its f32, so that its users share one."""

    def __init__(self, f16: bool) -> None:
        self.f16 = f16
        self.decoded: dict[Value, Value] = {}
        self._known: dict[Type, bool] = {}

    def is_small(self, type: Type) -> bool:
        element = element_type(type)
        return isinstance(element, FloatType) and (element.width <= 8 or (self.f16 and element is F16))

    def is_small_value(self, value: Value) -> bool:
        """Asked of every value of a function, so remembered by type."""
        found = self._known.get(value.type)
        if found is None:
            found = self._known[value.type] = self.is_small(value.type)
        return found

    def op(self, op: Operation) -> None:
        handler = _TABLE.get(op.name)
        if handler is not None:
            handler(self, op)
        elif op.row.has(Trait.ELEMENTWISE):
            self.arithmetic(op)

    # -- ops
    def extend(self, op: Operation) -> None:
        b = Builder.before(op)
        op.replace_by((self.from_f32(b, self.widen(op.operands[0]), element_type(op.result.type)),))

    def truncate(self, op: Operation) -> None:
        b = Builder.before(op)
        value, target = op.operands[0], element_type(op.result.type)
        source = element_type(value.type)
        if self.is_small(value.type):
            value = self.widen(value)
        elif source not in (F32, F64):
            value = arith.cast(b, "extf", value, F32)
        if not self.is_small(op.result.type):
            op.replace_by((self.from_f32(b, value, target),))
            return
        op.replace_by((encode(b, value, target),))

    def from_integer(self, op: Operation) -> None:
        """Integers of 2^24 and more are beyond the largest value, as is what f32 makes of them; but scales go on."""
        b = Builder.before(op)
        value, target = op.operands[0], element_type(op.result.type)
        name = op.name.removeprefix("arith.")
        carrier = F32
        if target.text == _SCALE or target is F16:
            carrier = F64
            if element_type(value.type) is I64:
                value = _cut_to_53_bits(b, value)
        op.replace_by((encode(b, arith.cast(b, name, value, carrier), target),))

    def to_integer(self, op: Operation) -> None:
        wide = self.widen(op.operands[0])
        op.replace_by((Builder.before(op).op1(op.name, (wide,), op.result.type, op.attributes),))

    def arithmetic(self, op: Operation) -> None:
        """The op in f32, rounded once: it has more than twice the bits plus two, so + - * / and sqrt come out right."""
        b = Builder.before(op)
        operands = [self.widen(v) if self.is_small(v.type) else v for v in op.operands]
        type = op.result.type
        if not self.is_small(type):
            op.replace_by((b.op1(op.name, operands, type, op.attributes),))
            return
        wide = b.op1(op.name, operands, with_element(type, F32), op.attributes)
        op.replace_by((encode(b, wide, element_type(type)),))

    # -- values
    def widen(self, value: Value) -> Value:
        """f32 lanes with the value of small ones, made once, where those are defined."""
        found = self.decoded.get(value)
        if found is not None:
            return found
        producer = value.defining_op
        constant = arith.constant_value(value)
        if producer is not None:
            b = Builder.after(producer)
            b.location = producer.location
        else:
            block = value.parent_block
            assert block is not None
            b = Builder.at_start(block)
        if isinstance(constant, FloatAttr):
            wide = arith.constant(b, constant.value, with_element(value.type, F32))
        else:
            wide = decode(b, value)
        self.decoded[value] = wide
        return wide

    def from_f32(self, b: Builder, wide: Value, target: Type) -> Value:
        """An f32 that came from a small float, in a wider format that holds it."""
        if target is F32:
            return wide
        if target is BF16:
            bits = arith.cast(b, "bitcast", wide, I32)
            high = arith.binary(b, "shrui", bits, arith.constant(b, 16, bits.type))
            return arith.cast(b, "bitcast", arith.cast(b, "trunci", high, I16), BF16)
        if self.is_small(target):
            return encode(b, wide, target)
        return arith.cast(b, "truncf" if target is F16 else "extf", wide, target)


def _cut_to_53_bits(b: Builder, value: Value) -> Value:
    """A 64-bit integer without the bits that f64 would round: what is left is at most as large, and near enough.

    A mark stays in the last bit kept, so that a value just above a tie of a narrower format doesn't look like one.
    """
    lanes = _Lanes(b, value.type)
    low = lanes.and_(value, 0x7FF)
    mark = lanes.select(lanes.compare("ne", low, 0), 0x800, 0)
    cut = lanes.or_(lanes.and_(value, ~0x7FF), mark)
    # Between -2^52 and 2^52 f64 is exact as it is.
    small = lanes.compare("ult", lanes.add(value, 1 << 52), 1 << 53)
    return lanes.select(small, value, cut)


class _Lanes:
    """Integer arithmetic on values of one type, with Python numbers as constants."""

    __slots__ = ("b", "type")

    def __init__(self, b: Builder, type: Type) -> None:
        self.b = b
        self.type = type

    def value(self, x: Value | int) -> Value:
        if isinstance(x, Value):
            return x
        width = 64 if element_type(self.type) is I64 else 32
        signed = (x + (1 << (width - 1)) & (1 << width) - 1) - (1 << (width - 1))
        return arith.constant(self.b, signed, self.type)

    def binary(self, name: str, x: Value, y: Value | int) -> Value:
        return arith.binary(self.b, name, x, self.value(y))

    def and_(self, x: Value, y: Value | int) -> Value:
        return self.binary("andi", x, y)

    def or_(self, x: Value, y: Value | int) -> Value:
        return self.binary("ori", x, y)

    def add(self, x: Value, y: Value | int) -> Value:
        return self.binary("addi", x, y)

    def subtract(self, x: Value, y: Value | int) -> Value:
        return self.binary("subi", x, y)

    def left(self, x: Value, amount: int) -> Value:
        return self.binary("shli", x, amount) if amount else x

    def right(self, x: Value, amount: int) -> Value:
        return self.binary("shrui", x, amount) if amount else x

    def compare(self, predicate: str, x: Value, y: Value | int) -> Value:
        return arith.cmpi(self.b, predicate, x, self.value(y))

    def select(self, condition: Value, x: Value | int, y: Value | int) -> Value:
        return arith.select(self.b, condition, self.value(x), self.value(y))

    def as_float(self, x: Value) -> Value:
        return arith.cast(self.b, "bitcast", x, F64 if element_type(self.type) is I64 else F32)

    def as_bits(self, x: Value) -> Value:
        return arith.cast(self.b, "bitcast", x, element_type(self.type))


def decode(b: Builder, value: Value) -> Value:
    """The f32 with the value of a small float."""
    element = element_type(value.type)
    assert isinstance(element, FloatType)
    codes = arith.cast(b, "extui", arith.cast(b, "bitcast", value, integer(element.width)), I32)
    lanes = _Lanes(b, codes.type)
    form, carrier = _format(element), _format(F32)
    if form.unsigned:
        power = lanes.left(codes, carrier.mantissa)
        power = lanes.select(lanes.compare("eq", codes, 0), 1 << (carrier.mantissa - 1), power)  # 2^-127 is subnormal
        return lanes.as_float(lanes.select(lanes.compare("eq", codes, form.nan), carrier.nan, power))
    magnitude = lanes.and_(codes, form.sign - 1)
    sign = lanes.left(lanes.and_(codes, form.sign), carrier.bits - form.bits)
    rebias = (carrier.bias - form.bias) << carrier.mantissa
    normal = lanes.add(lanes.left(magnitude, carrier.mantissa - form.mantissa), rebias)
    step = arith.constant(b, 2.0 ** (1 - form.bias - form.mantissa), with_element(codes.type, F32))
    tiny = lanes.as_bits(arith.binary(b, "mulf", arith.cast(b, "sitofp", magnitude, F32), step))
    bits = lanes.select(lanes.compare("ult", magnitude, 1 << form.mantissa), tiny, normal)
    if form.has_infinity:
        special = lanes.select(lanes.compare("eq", magnitude, form.overflow), carrier.overflow, carrier.nan)
        bits = lanes.select(lanes.compare("uge", magnitude, form.overflow), special, bits)
    elif form.nan > form.largest and form.signed_zero and form.nan < form.sign:
        bits = lanes.select(lanes.compare("eq", magnitude, form.nan), carrier.nan, bits)
    bits = lanes.or_(bits, sign)
    if not form.signed_zero:
        bits = lanes.select(lanes.compare("eq", codes, form.nan), carrier.nan, bits)
    return lanes.as_float(bits)


def encode(b: Builder, value: Value, target: Type) -> Value:
    """An f32 or f64 rounded once to a small float."""
    assert isinstance(target, FloatType)
    form, carrier = _format(target), _format(value.type)
    bits = arith.cast(b, "bitcast", value, integer(carrier.bits))
    lanes = _Lanes(b, bits.type)
    codes = (_encode_scale if form.unsigned else _encode)(lanes, bits, form, carrier)
    return arith.cast(b, "bitcast", arith.cast(b, "trunci", codes, integer(target.width)), target)


def _encode(lanes: _Lanes, bits: Value, form: FloatFormat, carrier: FloatFormat) -> Value:
    magnitude = lanes.and_(bits, (1 << (carrier.bits - 1)) - 1)
    dropped = carrier.mantissa - form.mantissa
    # Half a unit of the last place kept, less one where that place is even: what is cut off has then rounded to even.
    odd = lanes.and_(lanes.right(magnitude, dropped), 1)
    rounded = lanes.right(lanes.add(lanes.add(magnitude, (1 << (dropped - 1)) - 1), odd), dropped)
    normal = lanes.subtract(rounded, (carrier.bias - form.bias) << form.mantissa)
    # Added to this number, a value below the normal range leaves its multiple of the least step in the low bits.
    least_normal = (carrier.bias + 1 - form.bias) << carrier.mantissa
    grid = (carrier.bias + 1 - form.bias - form.mantissa + carrier.mantissa) << carrier.mantissa
    aligned = arith.binary(lanes.b, "addf", lanes.as_float(magnitude), lanes.as_float(lanes.value(grid)))
    tiny = lanes.subtract(lanes.as_bits(aligned), grid)
    is_tiny = lanes.compare("ult", magnitude, least_normal)
    codes = lanes.select(is_tiny, tiny, normal)
    above = lanes.compare("sgt", normal, form.largest)
    codes = lanes.select(above, form.overflow, codes)
    is_nan = lanes.compare("ugt", magnitude, carrier.overflow)
    if form.overflow != form.nan:
        codes = lanes.select(is_nan, form.nan, codes)
    sign = lanes.and_(lanes.right(bits, carrier.bits - form.bits), form.sign)
    signed = lanes.or_(codes, sign)
    if not form.signed_zero:
        return lanes.select(lanes.compare("eq", codes, 0), 0, signed)
    return signed


def _encode_scale(lanes: _Lanes, bits: Value, form: FloatFormat, carrier: FloatFormat) -> Value:
    """The nearest power of two, ties up, at least 2^-127; NaN for zero, infinity, NaN and all negative numbers."""
    half = 1 << (carrier.mantissa - 1)
    codes = lanes.right(lanes.add(bits, half), carrier.mantissa)
    if carrier.bias == form.bias:
        # f32: below 2^-126 the numbers are subnormal: 1.5 * 2^-127 and more go up.
        upper = lanes.select(lanes.compare("uge", bits, half + half // 2), 1, 0)
        codes = lanes.select(lanes.compare("ult", bits, 2 * half), upper, codes)
    else:
        codes = lanes.binary("maxsi", lanes.subtract(codes, carrier.bias - form.bias), 0)
        codes = lanes.binary("minsi", codes, form.nan)
    # Zero becomes the largest unsigned number; negative ones, infinity and NaN are at the top as well.
    bad = lanes.compare("uge", lanes.subtract(bits, 1), carrier.overflow - 1)
    return lanes.select(bad, form.nan, codes)


def _keep(_: _Expansion, op: Operation) -> None:
    """Ops that move bits."""


_TABLE: dict[str, Callable[[_Expansion, Operation], None]] = {
    "arith.extf": _Expansion.extend,
    "arith.truncf": _Expansion.truncate,
    "arith.sitofp": _Expansion.from_integer,
    "arith.uitofp": _Expansion.from_integer,
    "arith.fptosi": _Expansion.to_integer,
    "arith.fptoui": _Expansion.to_integer,
    "arith.bitcast": _keep,
    "arith.constant": _keep,
}
