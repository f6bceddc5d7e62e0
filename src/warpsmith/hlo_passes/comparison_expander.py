"""comparison-expander: a total-order compare of floats becomes a compare of integers.

    c = pred[8] compare(a, b), direction=LT, type=TOTALORDER
->
    x = s32[8] bitcast-convert(a)            negative numbers: all bits but the sign's are inverted
    x' = s32[8] xor(x, and(shift-right-arithmetic(x, 31), 2147483647))
    c = pred[8] compare(x', y'), direction=LT

-NaN < -inf < ... < -0 < +0 < ... < +inf < +NaN then is the integers' order (IEEE 754-2019, 5.10).
"""

from __future__ import annotations

import numpy as np

from warpsmith.dtypes import by_name
from warpsmith.hlo.module import HloInstruction, HloModule
from warpsmith.hlo.shapes import Shape
from warpsmith.hlo_passes.local import Site, rewrite

__all__ = ["NAME", "run"]

NAME = "comparison-expander"

_INTEGERS = {16: "s16", 32: "s32", 64: "s64"}


def run(module: HloModule) -> HloModule:
    """`module` without total-order compares of f16, bf16, f32 and f64."""
    return rewrite(module, _rule)


def _rule(site: Site) -> HloInstruction | None:
    old = site.old
    if old.opcode != "compare" or str(old.attributes.get("type")) != "TOTALORDER":
        return None
    dtype = site.operands[0].array_shape.dtype
    if not dtype.is_float or dtype.bits not in _INTEGERS:
        return None
    sides = [_ordered(site, operand) for operand in site.operands]
    attributes = {"direction": old.attributes["direction"]}
    return site.builder.add("compare", old.shape, sides, attributes, name=f"{old.name}.compare")


def _ordered(site: Site, value: HloInstruction) -> HloInstruction:
    """Integers in the order of the floats."""
    bits = value.array_shape.dtype.bits
    shape = Shape(by_name(_INTEGERS[bits]), value.array_shape.dims, value.array_shape.layout)
    whole = site.add("bitcast-convert", shape, [value])
    shift, magnitude = (_splat(site, number, shape) for number in (bits - 1, (1 << (bits - 1)) - 1))
    sign = site.add("shift-right-arithmetic", shape, [whole, shift])
    flipped = site.add("and", shape, [sign, magnitude])
    return site.add("xor", shape, [whole, flipped])


def _splat(site: Site, number: int, shape: Shape) -> HloInstruction:
    scalar = site.builder.constant(np.array(number, shape.dtype.numpy), name=f"{site.old.name}.constant")
    return site.add("broadcast", shape, [scalar], {"dimensions": ()})
