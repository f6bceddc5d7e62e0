"""Exchange between the lanes of a warp, of values of any width: the hardware moves 32 bits."""

from __future__ import annotations

from warpsmith.ir import attributes as at
from warpsmith.ir.builder import Builder
from warpsmith.ir.core import Value
from warpsmith.ir.dialects import arith
from warpsmith.ir.types import F32, I1, I32, I64, FloatType, bit_width, integer

__all__ = ["shuffle"]

WARP = 32


def shuffle(b: Builder, mode: str, value: Value, offset: Value) -> Value:
    """Each lane's value from the lane that `offset` (i32) names by `mode` ("xor", "up", "down", "idx")."""
    type = value.type
    width = bit_width(type)
    if type in (I32, F32):
        return _move(b, mode, value, offset)
    bits = value if type is integer(width) else b.op1("arith.bitcast", (value,), integer(width))
    if width == 64:
        low = b.op1("arith.trunci", (bits,), I32)
        high = b.op1("arith.trunci", (arith.binary(b, "shrui", bits, arith.constant(b, 32, I64)),), I32)
        low, high = (b.op1("arith.extui", (_move(b, mode, half, offset),), I64) for half in (low, high))
        moved = arith.binary(b, "ori", arith.binary(b, "shli", high, arith.constant(b, 32, I64)), low)
    else:
        wide = b.op1("arith.extui", (bits,), I32)
        moved = b.op1("arith.trunci", (_move(b, mode, wide, offset),), integer(width))
    return b.op1("arith.bitcast", (moved,), type) if isinstance(type, FloatType) else moved


def _move(b: Builder, mode: str, value: Value, offset: Value) -> Value:
    attributes = {"mode": at.opaque(f"#gpu<shuffle_mode {mode}>")}
    size = arith.constant(b, WARP, I32)
    return b.create("gpu.shuffle", (value, offset, size), (value.type, I1), attributes, hint="shuffled").results[0]
