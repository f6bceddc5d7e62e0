"""comparison-expander: a total-order compare of floats becomes a compare of integers.

    c = pred[8] compare(a, b), direction=LT, type=TOTALORDER
->
    x = s32[8] bitcast-convert(a)            negative numbers: all bits but the sign's are inverted
    x' = s32[8] xor(x, and(shift-right-arithmetic(x, 31), 2147483647))
    c = pred[8] compare(x', y'), direction=LT

-NaN < -inf < ... < -0 < +0 < ... < +inf < +NaN then is the integers' order (IEEE 754-2019, 5.10).
"""

from __future__ import annotations

from warpsmith.devices import Device
from warpsmith.dtypes import by_name
from warpsmith.hlo.literals import Literal
from warpsmith.hlo.module import HloInstruction, HloModule
from warpsmith.hlo.shapes import Shape
from warpsmith.hlo_passes.kit import Rewriting, rewrite

__all__ = ["CONTRACT", "run"]

CONTRACT = "E"

_INTEGERS = {16: "s16", 32: "s32", 64: "s64"}


def run(module: HloModule, _: Device) -> HloModule:
    """`module` without total-order compares of f16, bf16, f32 and f64."""
    return rewrite(module, _rule)


def _rule(at: Rewriting) -> HloInstruction | None:
    old = at.old
    if old.opcode != "compare" or str(old.attributes.get("type")) != "TOTALORDER":
        return None
    dtype = old.operands[0].array_shape.dtype
    if not dtype.is_float or dtype.bits not in _INTEGERS:
        return None
    sides = [_ordered(at, operand) for operand in at.operands(old)]
    attributes = {"direction": old.attributes["direction"]}
    return at.add("compare", old.shape, sides, attributes)


def _ordered(at: Rewriting, value: HloInstruction) -> HloInstruction:
    """Integers in the order of the floats."""
    bits = value.array_shape.dtype.bits
    shape = Shape(by_name(_INTEGERS[bits]), value.array_shape.dims, value.array_shape.layout)
    whole = at.add("bitcast-convert", shape, [value])
    shift, magnitude = (
        at.full(Literal.scalar(shape.dtype, number), shape) for number in (bits - 1, (1 << (bits - 1)) - 1)
    )
    sign = at.add("shift-right-arithmetic", shape, [whole, shift])
    flipped = at.add("and", shape, [sign, magnitude])
    return at.add("xor", shape, [whole, flipped])
