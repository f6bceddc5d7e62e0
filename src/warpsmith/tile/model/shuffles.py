"""Exchange between the lanes of a warp, of values of any width: `gpu.shuffle` moves 32 or 64 bits."""

from __future__ import annotations

from warpsmith.ir.core import attributes as at
from warpsmith.ir.core.builder import Builder
from warpsmith.ir.core.ssa import Value
from warpsmith.ir.core.types import I1, I32, FloatType, bit_width, integer
from warpsmith.ir.dialects import arith

__all__ = ["shuffle"]

WARP = 32


def shuffle(b: Builder, mode: str, value: Value, offset: Value, name: str = "shuffled") -> Value:
    """Each lane's value from the lane that `offset` (i32) names by `mode` ("xor", "up", "down", "idx")."""
    type = value.type
    width = bit_width(type)
    if width in (32, 64):
        return _move(b, mode, value, offset, name)
    bits = value if type is integer(width) else b.op1("arith.bitcast", (value,), integer(width))
    wide = b.op1("arith.extui", (bits,), I32)
    moved = b.op1("arith.trunci", (_move(b, mode, wide, offset, name),), integer(width))
    return b.op1("arith.bitcast", (moved,), type) if isinstance(type, FloatType) else moved


def _move(b: Builder, mode: str, value: Value, offset: Value, name: str) -> Value:
    attributes = {"mode": at.opaque(f"#gpu<shuffle_mode {mode}>")}
    size = arith.constant(b, WARP, I32)
    return b.create("gpu.shuffle", (value, offset, size), (value.type, I1), attributes, hint=name).results[0]
