"""What a row of the elementwise tables works with, and the small pieces that rows share.

In: the emitter, the instruction, its operands' scalars.  Out: IR values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from warpsmith.dtypes import DType, Kind, by_name
from warpsmith.emitters.elemental.emitter import ElementalEmitter, Values
from warpsmith.emitters.kernel.types import scalar_type
from warpsmith.hlo.module import HloInstruction
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.core.types import F32, I1, I8, FloatType, IntegerType, Type, bit_width, integer
from warpsmith.ir.dialects import arith
from warpsmith.ir.dialects import math as math_ops

__all__ = ["Row", "Scalar", "Scalars", "as_bool", "as_pred", "is_small", "narrow", "widen"]

PRED = by_name("pred")


class Scalars:
    """One elementwise op at one index: `args[k]` are the parts of operand k; `dtype` is what the op works in."""

    __slots__ = ("args", "dtype", "emitter", "instruction")

    def __init__(
        self, emitter: ElementalEmitter, instruction: HloInstruction, args: Sequence[Values], dtype: DType
    ) -> None:
        self.emitter = emitter
        self.instruction = instruction
        self.args = args
        self.dtype = dtype

    @property
    def x(self) -> Value:
        """The first operand's only part."""
        return self.args[0][0]

    @property
    def y(self) -> Value:
        """The second operand's only part."""
        return self.args[1][0]

    @property
    def type(self) -> Type:
        """The IR type of one part."""
        return scalar_type(self.dtype)

    @property
    def bits(self) -> int:
        """The width of the type."""
        return bit_width(self.type)

    def constant(self, value: float | int, type: Type | None = None) -> Value:
        """A constant of this type, or of another one."""
        return self.emitter.constant(value, self.type if type is None else type)

    def arith(self, name: str, x: Value, y: Value) -> Value:
        """`arith.name` of two values."""
        return arith.binary(self.emitter.b, name, x, y)

    def math(self, name: str, *operands: Value) -> Value:
        """`math.name` of one or two values."""
        if len(operands) == 1:
            return math_ops.unary(self.emitter.b, name, operands[0])
        return math_ops.binary(self.emitter.b, name, operands[0], operands[1])

    def negf(self, x: Value) -> Value:
        """The negated value; of NaN, with the sign changed."""
        return self.emitter.b.op1("arith.negf", (x,), x.type)

    def cmpi(self, predicate: str, x: Value, y: Value) -> Value:
        """An integer comparison, by MLIR's name of the predicate (`slt`, `ult`...)."""
        return arith.cmpi(self.emitter.b, predicate, x, y)

    def cmpf(self, predicate: str, x: Value, y: Value) -> Value:
        """A comparison of floats, by MLIR's name of the predicate (`olt`, `uno`...)."""
        return arith.cmpf(self.emitter.b, predicate, x, y)

    def select(self, condition: Value, x: Value, y: Value) -> Value:
        """`x` where the condition holds, else `y`."""
        return arith.select(self.emitter.b, condition, x, y)

    def cast(self, name: str, x: Value, type: Type) -> Value:
        """`arith.name` of a value, to another type."""
        return arith.cast(self.emitter.b, name, x, type)

    def bitcast(self, x: Value, type: Type) -> Value:
        """The value's bits as another type of the same width."""
        return x if x.type is type else self.cast("bitcast", x, type)

    def resize_float(self, x: Value, type: FloatType) -> Value:
        """A float in another format, rounded at most once."""
        source = x.type
        assert isinstance(source, FloatType)
        if source is type:
            return x
        if source.width == type.width:  # bf16 and f16, or two 8-bit formats: f32 holds both exactly
            return self.cast("truncf", self.cast("extf", x, F32), type)
        if source.width < type.width:
            if source.width <= 8 and type.width < 32:
                return self.cast("truncf", self.cast("extf", x, F32), type)
            return self.cast("extf", x, type)
        if type.width <= 8 and source.width == 16:
            return self.cast("truncf", self.cast("extf", x, F32), type)
        return self.cast("truncf", x, type)

    def resize_int(self, x: Value, width: int, *, signed: bool) -> Value:
        """An integer in another width: cut, or extended by sign or zeros."""
        source = x.type
        assert isinstance(source, IntegerType)
        if source.width == width:
            return x
        if source.width > width:
            return self.cast("trunci", x, integer(width))
        return self.cast("extsi" if signed else "extui", x, integer(width))


Scalar = Callable[[Scalars], Values]


class Row:
    """How one opcode is computed, by the kind of its operands; None where HLO has no such op."""

    __slots__ = ("_by_kind",)

    def __init__(
        self,
        *,
        pred: Scalar | None = None,
        signed: Scalar | None = None,
        unsigned: Scalar | None = None,
        float: Scalar | None = None,
        complex: Scalar | None = None,
    ) -> None:
        self._by_kind = {
            Kind.PRED: pred,
            Kind.SINT: signed,
            Kind.UINT: unsigned,
            Kind.FLOAT: float,
            Kind.COMPLEX: complex,
        }

    def of(self, kind: Kind) -> Scalar | None:
        """What computes the op on elements of this kind; None if nothing does."""
        return self._by_kind.get(kind)


def as_pred(s: Scalars, condition: Value) -> Values:
    """An i1 as a pred value (i8)."""
    return (s.cast("extui", condition, I8),)


def as_bool(s: Scalars, pred: Value) -> Value:
    """A pred value as i1."""
    return s.cast("trunci", pred, I1)


def is_small(dtype: DType) -> bool:
    """Floats of 8 bits and fewer: computed in f32 (which rounds their + - * / and sqrt right) and rounded once."""
    return dtype.kind is Kind.FLOAT and dtype.bits <= 8


def widen(s: Scalars) -> Scalars:
    """The same op with 8-bit and narrower float operands in f32."""
    args = [
        tuple(
            s.resize_float(part, F32) if isinstance(part.type, FloatType) and part.type.width <= 8 else part
            for part in each
        )
        for each in s.args
    ]
    return Scalars(s.emitter, s.instruction, args, by_name("f32"))


def narrow(s: Scalars, values: Values, dtype: DType) -> Values:
    """Results of a widened op in the format that the instruction gives."""
    type = scalar_type(dtype)
    if not isinstance(type, FloatType):
        return values
    return tuple(s.resize_float(part, type) for part in values)
