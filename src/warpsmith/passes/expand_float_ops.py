"""expand-float-ops: 16-bit float arithmetic that the target lacks is done in f32 and rounded after every op.

    %s = arith.addf %a, %b : bf16   ->   %x = extf %a ; %y = extf %b ; %t = arith.addf %x, %y : f32 ; %s = truncf %t

One rounding to f32 and one to the narrow format equal a single rounding for + - * / sqrt, because f32 has more than
twice the narrow precision plus two bits.  A chain stays in f32 lanes that hold narrow values, so that nothing is
narrowed and widened again between two ops.

On a CPU bf16 is rounded by integers: `r = b + 0x7fff + ((b >> 16) & 1)`, low half cleared.  Measured, that beats the
AVX512-BF16 instruction, which flushes subnormals and would need a guard.  A NaN needs no care where the value comes
from widened operands: its low 16 bits are zero, so no carry reaches the exponent.  On a GPU the conversions stay
(`cvt.rn.bf16.f32`), and sm_90 adds and multiplies bf16 by itself.
"""

from __future__ import annotations

from collections.abc import Callable

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Block, Operation, Trait, Value
from warpsmith.ir.core.types import BF16, F16, F32, F64, I16, I32, I64, Type, element_type, with_element
from warpsmith.ir.dialects import arith, func
from warpsmith.passes.support.capabilities import Capabilities, capabilities

CONTRACT = "bit-exact, but for functions that are near-exact themselves (numerics/bounds.py)"

_NARROW: tuple[Type, ...] = (BF16, F16)
_EXACT = {
    "arith.negf",
    "math.absf",
    "arith.maximumf",
    "arith.minimumf",
    "arith.maxnumf",
    "arith.minnumf",
    "math.copysign",
} | {f"math.{n}" for n in ("floor", "ceil", "trunc", "round", "roundeven")}
# What a processor with arithmetic on a format does in it, correctly rounded.
_NATIVE = {"arith.addf", "arith.subf", "arith.mulf", "arith.negf", "math.absf"}


def run(module: Operation, *, target: str = "") -> None:
    """Rewrite all functions for `target` ("cpu", "sm_80"...); by default the entry function's own."""
    can = capabilities(module, target)
    for op in func.functions(module):
        _Expansion(can).run(op)


class _Expansion:
    """One function's rewrite.  `wide` maps a narrow value to f32 lanes that hold the same value."""

    def __init__(self, can: Capabilities) -> None:
        self.native = can.arithmetic
        self.by_integers = frozenset[Type]() if can.converts_bf16 else frozenset((BF16,))
        self.wide: dict[Value, Value] = {}

    def run(self, function: Operation) -> None:
        for op in list(function.walk()):
            handler = _TABLE.get(op.name)
            if handler is not None:
                handler(self, op)
            elif op.row.has(Trait.ELEMENTWISE) and op.operands and _is_narrow(op.operands[0].type):
                self.arithmetic(op)

    # -- values in f32 lanes
    def widen(self, b: Builder, value: Value) -> Value:
        """f32 lanes that hold the value of a narrow one, made where the value is defined so that all its users share
        them.
        """
        found = self.wide.get(value)
        if found is not None:
            return found
        producer = value.defining_op
        b = Builder.after(producer) if producer is not None else Builder.at_start(_block(value))
        b.location = producer.location if producer is not None else b.location
        if element_type(value.type) in self.by_integers:
            bits = arith.cast(b, "extui", arith.cast(b, "bitcast", value, I16), I32)
            shifted = arith.binary(b, "shli", bits, arith.constant(b, 16, bits.type))
            wide = arith.cast(b, "bitcast", shifted, F32)
        else:
            wide = arith.cast(b, "extf", value, F32)
        self.wide[value] = wide
        return wide

    def narrow(self, b: Builder, wide: Value, element: Type) -> Value:
        """The narrow value that f32 lanes hold exactly."""
        if element in self.by_integers:
            bits = arith.cast(b, "bitcast", wide, I32)
            high = arith.binary(b, "shrui", bits, arith.constant(b, 16, bits.type))
            result = arith.cast(b, "bitcast", arith.cast(b, "trunci", high, I16), BF16)
        else:
            result = arith.cast(b, "truncf", wide, element)
        self.wide[result] = wide
        return result

    def rounded(self, b: Builder, value: Value, element: Type, *, may_be_nan_payload: bool = False) -> Value:
        """f32 lanes rounded to `element`'s precision.  `may_be_nan_payload`: a NaN may have any payload."""
        if element not in self.by_integers:
            return arith.cast(b, "extf", arith.cast(b, "truncf", value, element), F32)
        bits = arith.cast(b, "bitcast", value, I32)
        type = bits.type
        odd = arith.binary(
            b, "andi", arith.binary(b, "shrui", bits, arith.constant(b, 16, type)), arith.constant(b, 1, type)
        )
        biased = arith.binary(b, "addi", arith.binary(b, "addi", bits, arith.constant(b, 0x7FFF, type)), odd)
        if may_be_nan_payload:
            quiet = arith.binary(b, "ori", bits, arith.constant(b, 0x400000, type))
            biased = arith.select(b, arith.cmpf(b, "uno", value, value), quiet, biased)
        cleared = arith.binary(b, "andi", biased, arith.constant(b, -0x10000, type))
        return arith.cast(b, "bitcast", cleared, F32)

    def finish(self, op: Operation, b: Builder, wide: Value) -> None:
        """`wide` holds the narrow result of `op` exactly."""
        wide.name = op.result.name
        result = self.narrow(b, wide, element_type(op.result.type))
        op.replace_by((result,))

    # -- ops
    def arithmetic(self, op: Operation) -> None:
        """An elementwise op on narrow floats: the same op in f32."""
        element = element_type(op.operands[0].type)
        b = Builder.before(op)
        if element in self.native and op.name in _NATIVE:
            return
        operands = [self.widen(b, v) for v in op.operands]
        type = op.result.type
        gives_narrow = _is_narrow(type)
        result = b.op1(op.name, operands, with_element(type, F32) if gives_narrow else type, op.attributes)
        if not gives_narrow:
            op.replace_by((result,))
            return
        if op.row.has(Trait.INEXACT):
            # The value is about to be rounded to 8 or 11 bits: the expansion may be the shorter one.
            defining = result.defining_op
            assert defining is not None
            defining.attributes["warpsmith.accuracy"] = at.string(element.text)
        exact = op.name in _EXACT
        self.finish(op, b, result if exact else self.rounded(b, result, element))

    def select(self, op: Operation) -> None:
        """Only in f32 lanes already: a select of memory values stays narrow."""
        element = element_type(op.result.type)
        values = op.operands[1:]
        if element in _NARROW and element not in self.native and any(v in self.wide for v in values):
            b = Builder.before(op)
            self.finish(op, b, arith.select(b, op.operands[0], *(self.widen(b, v) for v in values)))

    def constant(self, op: Operation) -> None:
        """A narrow constant is a wide one in f32 lanes."""
        value = arith.constant_value(op.result)
        if isinstance(value, at.FloatAttr) and value.type in _NARROW:
            self.wide[op.result] = arith.constant(Builder.after(op), value.value, with_element(op.result.type, F32))

    def extend(self, op: Operation) -> None:
        source, target = element_type(op.operands[0].type), element_type(op.result.type)
        if source not in _NARROW:
            return
        b = Builder.before(op)
        wide = self.widen(b, op.operands[0])
        op.replace_by((wide if target is F32 else arith.cast(b, "extf", wide, target),))

    def truncate(self, op: Operation) -> None:
        source, target = element_type(op.operands[0].type), element_type(op.result.type)
        b = Builder.before(op)
        value = op.operands[0]
        if target not in _NARROW:
            if source in _NARROW:  # to 8 bits, in `expand-small-floats`: rounded once, from an exact f32
                op.set_operand(0, self.widen(b, value))
            return
        if source is F64:
            value = self.odd_f32(b, value)
        self.finish(op, b, self.rounded(b, value, target, may_be_nan_payload=True))

    def odd_f32(self, b: Builder, value: Value) -> Value:
        """f64 to f32 by rounding to odd, so that a second rounding to a narrower format is right (Boldo, Melquiond
        2008).
        """
        near = arith.cast(b, "truncf", value, F32)
        back = arith.cast(b, "extf", near, F64)
        bits = arith.cast(b, "bitcast", near, I32)
        one = arith.constant(b, 1, bits.type)
        even = arith.cmpi(b, "eq", arith.binary(b, "andi", bits, one), arith.constant(b, 0, bits.type))
        inexact = arith.cmpf(b, "one", back, value)
        # In magnitude, one step down if the nearest was above, one step up if below.
        magnitude = b.op1("math.absf", (value,), value.type)
        above = arith.cmpf(b, "ogt", b.op1("math.absf", (back,), back.type), magnitude)
        moved = arith.select(b, above, arith.binary(b, "subi", bits, one), arith.binary(b, "addi", bits, one))
        fixed = arith.select(b, arith.binary(b, "andi", inexact, even), moved, bits)
        return arith.cast(b, "bitcast", fixed, F32)

    def from_integer(self, op: Operation) -> None:
        """An integer to a narrow float, rounded once: through f64, exact to 53 bits, sticky beyond."""
        target = element_type(op.result.type)
        if target not in _NARROW:
            return
        b = Builder.before(op)
        value = op.operands[0]
        element = element_type(value.type)
        width = 64 if element is I64 else 32 if element is I32 else 16
        name = op.name.removeprefix("arith.")
        if width == 16:
            wide = arith.cast(b, name, value, F32)
        else:
            if width == 64:
                value = self._sticky(b, value)
            wide = self.odd_f32(b, arith.cast(b, name, value, F64))
        self.finish(op, b, self.rounded(b, wide, target))

    def _sticky(self, b: Builder, value: Value) -> Value:
        """A 64-bit integer whose low 11 bits are gathered in the next: a double, rounded to odd of sorts."""
        type = value.type
        low = arith.constant(b, 0x7FF, type)
        rest = arith.binary(b, "andi", value, low)
        zero = arith.constant(b, 0, type)
        mark = arith.select(b, arith.cmpi(b, "ne", rest, zero), arith.constant(b, 0x800, type), zero)
        cleared = arith.binary(b, "ori", arith.binary(b, "andi", value, arith.constant(b, ~0x7FF, type)), mark)
        small = arith.cmpi(
            b,
            "ult",
            arith.binary(b, "addi", value, arith.constant(b, 1 << 52, type)),
            arith.constant(b, 1 << 53, type),
        )
        return arith.select(b, small, value, cleared)

    def to_integer(self, op: Operation) -> None:
        if _is_narrow(op.operands[0].type):
            b = Builder.before(op)
            op.replace_by((b.op1(op.name, (self.widen(b, op.operands[0]),), op.result.type, op.attributes),))


def _is_narrow(type: Type) -> bool:
    return element_type(type) in _NARROW


def _block(value: Value) -> Block:
    block = value.parent_block
    assert block is not None
    return block


_TABLE: dict[str, Callable[[_Expansion, Operation], None]] = {
    "arith.constant": _Expansion.constant,
    "arith.select": _Expansion.select,
    "arith.extf": _Expansion.extend,
    "arith.truncf": _Expansion.truncate,
    "arith.sitofp": _Expansion.from_integer,
    "arith.uitofp": _Expansion.from_integer,
    "arith.fptosi": _Expansion.to_integer,
    "arith.fptoui": _Expansion.to_integer,
    "arith.bitcast": lambda _expansion, _op: None,
}
