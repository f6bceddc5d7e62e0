"""Constants, casts, and the arithmetic that takes several LLVM instructions."""

from __future__ import annotations

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import REGISTRY, Operation, Value
from warpsmith.ir.core.types import (
    I64,
    INDEX,
    FloatType,
    IntegerType,
    ShapedType,
    VectorType,
    bit_width,
    element_type,
    integer,
    numpy_dtype,
    with_element,
)
from warpsmith.passes.convert_to_llvm.types import Handler, Lowering, number


def constant(low: Lowering, op: Operation) -> None:
    """`arith.constant` to `llvm.mlir.constant`; index becomes i64."""
    value = op.attributes["value"]
    op.row = REGISTRY["llvm.mlir.constant"]
    type = op.result.type
    if isinstance(value, at.IntegerAttr) and value.type is INDEX:
        op.attributes["value"] = at.integer_attr(value.value, type)
    elif isinstance(value, at.FloatAttr) and isinstance(type, IntegerType):
        op.attributes["value"] = at.integer_attr(value.bits, type)
    elif isinstance(value, at.DenseAttr) and value.type is not type:
        assert isinstance(type, ShapedType)
        flat = value.array
        target = numpy_dtype(type.element)
        if isinstance(value.type.element, FloatType):
            flat = flat.view(target)
        op.attributes["value"] = at.dense(flat.astype(target), type)


def index_cast(low: Lowering, op: Operation) -> None:
    """`arith.index_cast` to an extension, a truncation, or nothing."""
    source, target = bit_width(op.operands[0].type), bit_width(op.result.type)
    if source == target:
        op.replace_by(op.operands)
        return
    signed = op.name == "arith.index_cast"
    op.row = REGISTRY["llvm.trunc" if source > target else "llvm.sext" if signed else "llvm.zext"]
    op.attributes.pop("xla.range", None)


def bitcast(low: Lowering, op: Operation) -> None:
    """`arith.bitcast` to `llvm.bitcast`, or nothing where both types become one."""
    if op.operands[0].type is op.result.type:
        op.replace_by(op.operands)
    else:
        op.row = REGISTRY["llvm.bitcast"]


def multiply_extended(low: Lowering, op: Operation) -> None:
    """The two halves by one double-width multiplication."""
    b = Builder.before(op)
    extend = "llvm.sext" if op.name == "arith.mulsi_extended" else "llvm.zext"
    narrow = op.results[0].type
    width = bit_width(element_type(narrow))
    if width == 64 and isinstance(narrow, VectorType):
        op.replace_by(_long_product(b, *op.operands, signed=op.name == "arith.mulsi_extended"))
        return
    wide = with_element(narrow, integer(2 * width))
    lhs, rhs = (b.op1(extend, (v,), wide) for v in op.operands)
    product = b.op1("llvm.mul", (lhs, rhs), wide)
    amount = number(b, width, wide)
    lower = b.op1("llvm.trunc", (product,), narrow)
    upper = b.op1("llvm.trunc", (b.op1("llvm.lshr", (product, amount), wide),), narrow)
    op.replace_by((lower, upper))


def _long_product(b: Builder, x: Value, y: Value, *, signed: bool) -> tuple[Value, Value]:
    """The halves of 64-bit lanes' products, by 32-bit digits: no lane has 128 bits."""
    type = x.type

    def op(name: str, p: Value, q: Value) -> Value:
        return b.op1(f"llvm.{name}", (p, q), type)

    digit, half = number(b, (1 << 32) - 1, type), number(b, 32, type)
    (x0, x1), (y0, y1) = ((op("and", v, digit), op("lshr", v, half)) for v in (x, y))
    middle = op("add", op("mul", x1, y0), op("lshr", op("mul", x0, y0), half))
    other = op("add", op("mul", x0, y1), op("and", middle, digit))
    carries = op("add", op("lshr", middle, half), op("lshr", other, half))
    high = op("add", op("mul", x1, y1), carries)
    if signed:  # a negative factor was taken as 2^64 more than it is
        last = number(b, 63, type)
        for sign, factor in ((x, y), (y, x)):
            high = op("sub", high, op("and", op("ashr", sign, last), factor))
    return op("mul", x, y), high


def absolute_int(low: Lowering, op: Operation) -> None:
    """`math.absi` to a comparison and a choice."""
    b = Builder.before(op)
    value, type = op.operands[0], op.result.type
    zero = number(b, 0, type)
    negated = b.op1("llvm.sub", (zero, value), type)
    op.replace_by((b.op1("llvm.intr.smax", (value, negated), type),))


def ceil_div(low: Lowering, op: Operation) -> None:
    """(x + d - 1) / d would overflow near the top; x/d + (x mod d != 0) doesn't."""
    b = Builder.before(op)
    lhs, rhs = op.operands
    type = op.result.type
    quotient = b.op1("llvm.udiv", (lhs, rhs), type)
    remainder = b.op1("llvm.urem", (lhs, rhs), type)
    zero = number(b, 0, type)
    rest = b.op1("llvm.icmp", (remainder, zero), with_element(type, integer(1)), {"predicate": at.integer_attr(1, I64)})
    op.replace_by((b.op1("llvm.add", (quotient, b.op1("llvm.zext", (rest,), type)), type),))


TABLE: dict[str, Handler] = {
    "arith.constant": constant,
    "arith.index_cast": index_cast,
    "arith.index_castui": index_cast,
    "arith.bitcast": bitcast,
    "arith.mulsi_extended": multiply_extended,
    "arith.mului_extended": multiply_extended,
    "arith.ceildivui": ceil_div,
    "math.absi": absolute_int,
    "vector.bitcast": bitcast,
}
