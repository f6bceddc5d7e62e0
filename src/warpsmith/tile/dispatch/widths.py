"""How wide a move may be: the widest vector that layouts, beginnings, swizzles and the base's alignment all allow.

In: digits, outermost first, of which the last is innermost; the operands that are moved.  Out: a number of elements.
Nothing here trusts a shape where a stride decides.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpsmith.devices import Device
from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.ssa import BlockArgument
from warpsmith.ir.dialects import func
from warpsmith.tile.dispatch.digits import Digit, Placement, Step
from warpsmith.tile.model import affine
from warpsmith.tile.model.buffers import BufferInfo

__all__ = ["base_alignment", "divisor", "elements", "in_vectors", "widest"]

DEFAULT_ALIGNMENT = 16  # bytes, of a parameter


def base_alignment(buffer: BufferInfo) -> int:
    """Bytes that the memory of a buffer is known to be aligned to."""
    holder = buffer.root.defining_op
    assert holder is not None
    if holder.name == "tile.alloc":
        return 16 if buffer.scope == "local" else holder.int_attr("alignment")
    argument = holder.operands[0]
    if isinstance(argument, BlockArgument) and argument.block.parent_op is not None:
        found = func.arg_attributes(argument.block.parent_op)[argument.index].get("llvm.align")
        if isinstance(found, at.IntegerAttr):
            return found.value
    return DEFAULT_ALIGNMENT


def widest(digits: Sequence[Digit], placements: Sequence[Placement], device: Device, most: int = 0) -> int:
    """Elements that one move can take: a power of two, at most 16 bytes (32 from global memory on sm_100)."""
    if not digits:
        return 1
    bytes_ = max(p.buffer.type.bytes for p in placements)
    if any(p.buffer.type.kind == "bool" for p in placements):
        return 1
    limit = 32 if device.is_blackwell and all(p.buffer.scope in ("global", "local") for p in placements) else 16
    width = max(1, min(limit // bytes_, most or limit))
    while width > 1 and not all(_allows(digits, i, p, width) for i, p in enumerate(placements)):
        width //= 2
    return width


def _allows(digits: Sequence[Digit], operand: int, placement: Placement, width: int) -> bool:
    last = digits[-1]
    inner = last.steps[operand]
    if placement.irregular or last.extent % width or inner.stride != 1 or inner.is_thread or inner.by is not None:
        return False
    if base_alignment(placement.buffer) % (width * placement.buffer.type.bytes):
        return False
    swizzle = placement.swizzle
    if swizzle is not None and width > 1 << swizzle.per_element:
        return False
    outer = [divisor(d.steps[operand]) for d in digits[:-1] if not d.steps[operand].is_thread]
    outer += [step.stride for _, step in placement.replicas if not step.is_thread]
    return all(stride % width == 0 for stride in outer) and placement.offset_divisor() % width == 0


def in_vectors(digits: Sequence[Digit], width: int) -> list[Digit]:
    """The digits without the innermost `width` elements; what is left counts vectors, in strides of elements."""
    if width == 1:
        return list(digits)
    *rest, last = digits
    steps = tuple(Step(s.stride * width, s.is_thread, s.by) for s in last.steps)
    return [*rest, Digit(last.extent // width, steps)] if last.extent > width else list(rest)


def divisor(step: Step) -> int:
    """A number that divides a step's distance."""
    return step.stride * affine.divisor(step.by) if step.by is not None else step.stride


def elements(width: int) -> str:
    """The width of a move in words."""
    return "1 element" if width == 1 else f"{width} elements"
