"""dot-operand-upcaster: operands narrower than a dot's or convolution's result are converted to its type first.

    d = s32[4,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}          a, b are s8
->
    d.convert = s32[4,8] convert(a)
    d.convert.1 = s32[8,4] convert(b)
    d.dot = s32[4,4] dot(d.convert, d.convert.1), ...

A convert to a wider type is exact, so the result is the same; emitters then multiply in one type.
"""

from __future__ import annotations

from warpsmith.devices import Device
from warpsmith.dtypes import DType
from warpsmith.hlo.module import HloInstruction, HloModule
from warpsmith.hlo.shapes import Shape
from warpsmith.hlo_passes.kit import Rewriting, rewrite

__all__ = ["CONTRACT", "run"]

CONTRACT = "E"


def run(module: HloModule, _: Device) -> HloModule:
    """`module` whose dots and convolutions multiply in their result's type where that is wider."""
    return rewrite(module, _rule)


def _rule(at: Rewriting) -> HloInstruction | None:
    old = at.old
    if old.opcode not in ("dot", "convolution") or "sparsity" in old.attributes:
        return None
    target = old.array_shape.dtype
    given = at.operands(old)
    operands = [_upcast(at, operand, target) for operand in given]
    if all(a is b for a, b in zip(operands, given, strict=True)):
        return None
    return at.add(old.opcode, old.shape, operands, old.attributes)


def _upcast(at: Rewriting, operand: HloInstruction, target: DType) -> HloInstruction:
    shape = operand.array_shape
    if not _holds(target, shape.dtype):
        return operand
    return at.add("convert", Shape(target, shape.dims, shape.layout), [operand])


def _holds(wide: DType, narrow: DType) -> bool:
    """Whether every value of `narrow` is one of `wide`, which is wider."""
    if wide.bits <= narrow.bits:
        return False
    if narrow.is_float or narrow.is_complex:
        return (wide.is_float and narrow.is_float) or wide.is_complex
    return wide.is_integer and (wide.is_signed or not narrow.is_signed)
