"""Registers hold bits; instructions see numbers.  The way from one to the other, for each PTX type.

A register is an unsigned array of its width (bool for .pred), one item a thread, or one item in all where every thread
has the same value.  `reader(type)` gives the numbers that an instruction of that type sees: f16 and bf16 as f32, which
holds them exactly and whose sums, products, quotients and roots round to them correctly the second time.
`writer(type, bits)` gives the bits back, rounding where the numbers are wider; a NaN becomes the one that the hardware
makes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.numerics.rounding import FORMATS, narrow_odd
from warpsmith.simt.ptx.text.module import TYPE_BITS

__all__ = ["NAN_BITS", "UNSIGNED", "choose", "flush", "reader", "resize", "to_bf16", "to_f16", "writer"]

UNSIGNED: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.bool_),
    8: np.dtype(np.uint8),
    16: np.dtype(np.uint16),
    32: np.dtype(np.uint32),
    64: np.dtype(np.uint64),
}
NAN_BITS: dict[str, int] = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "f64": 0x7FFFFFFFFFFFFFFF}
"""The NaN that arithmetic gives."""

_HALVES: list[Array] = []


def _half_table() -> Array:
    """The f32 value of each f16 bit pattern: a lookup is much quicker than numpy's conversion."""
    if not _HALVES:
        _HALVES.append(np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16).astype(np.float32))
    return _HALVES[0]


def resize(raw: Array, bits: int, signed: bool = False) -> Array:
    """Bits cut, or extended by zeros or the sign, to another width."""
    dtype = UNSIGNED[bits]
    if raw.dtype == dtype:
        return raw
    if signed and raw.dtype.itemsize * 8 < bits:
        return raw.view(f"i{raw.dtype.itemsize}").astype(f"i{dtype.itemsize}").view(dtype)
    return raw.astype(dtype)


def _read_bf16(raw: Array) -> Array:
    return (raw.astype(np.uint32) << np.uint32(16)).view(np.float32)


def reader(type: str) -> Callable[[Array], Array]:
    """From a register's bits to the numbers that an instruction of this type works on."""
    bits = TYPE_BITS[type]
    if type == "pred":
        return lambda raw: raw
    dtype = UNSIGNED[bits]
    if type == "f16":
        return lambda raw: _half_table().take(resize(raw, 16))
    if type == "bf16":
        return lambda raw: _read_bf16(resize(raw, 16))
    if type[0] == "s" and type[1:].isdigit():
        view = np.dtype(f"i{bits // 8}")
    elif type in ("f32", "f64", "tf32"):
        view = np.dtype(f"f{bits // 8}")
    else:
        return lambda raw: resize(raw, bits)
    return lambda raw: (raw if raw.dtype == dtype else raw.astype(dtype)).view(view)


def flush(values: Array, type: str) -> Array:
    """Subnormal numbers of the type to zeros of their sign."""
    least = FORMATS[type].least_normal
    small = (np.abs(values) < values.dtype.type(least)) & (values != 0)
    return np.where(small, np.copysign(values.dtype.type(0), values), values) if small.any() else values


def choose(mask: Array, a: Array, b: Array) -> Array:
    """a where the mask holds, else b; both are registers of one width.  Bit operations: `np.where` branches."""
    if mask.shape[0] == 1:
        return a if mask[0] else b
    if a.dtype == np.bool_:
        return (a & mask) | (b & ~mask)
    select = np.negative(mask.view(np.uint8).astype(a.dtype))
    return b ^ ((a ^ b) & select)


def to_bf16(values: Array) -> Array:
    """f32 to bf16 bits, to nearest even."""
    bits = values.view(np.uint32)
    rounded = bits + (((bits >> np.uint32(16)) & np.uint32(1)) + np.uint32(0x7FFF))
    result = (rounded >> np.uint32(16)).astype(np.uint16)
    nan = np.isnan(values)
    if nan.any():
        result[nan] = NAN_BITS["bf16"]
    return result


_HALF_OVERFLOW = np.uint32(0x477FF000)  # 65520, which rounds to infinity
_HALF_NORMAL = np.uint32(113 << 23)  # 2^-14, the least normal f16
_HALF_MAGIC = np.uint32(126 << 23)  # added to a smaller number, 0.5 leaves the f16's bits at the end


def to_f16(values: Array) -> Array:
    """f32 to f16 bits, to nearest even (numpy's conversion is slow, and much slower where it overflows)."""
    bits = values.view(np.uint32)
    sign = bits & np.uint32(0x80000000)
    size = bits ^ sign
    odd = (size >> np.uint32(13)) & np.uint32(1)
    result = (size + (odd + np.uint32(0xC8000FFF))) >> np.uint32(13)
    small = size < _HALF_NORMAL
    if small.any():
        tiny = (size.view(np.float32) + np.float32(0.5)).view(np.uint32) - _HALF_MAGIC
        result = choose(small, tiny, result)
    large = size >= _HALF_OVERFLOW
    if large.any():
        beyond = np.where(size > np.uint32(0x7F800000), np.uint32(0x7FFF), np.uint32(0x7C00))
        result = np.where(large, beyond, result)
        sign = np.where(size > np.uint32(0x7F800000), np.uint32(0), sign)
    return (result | (sign >> np.uint32(16))).astype(np.uint16)


def _narrow(values: Array) -> Array:
    return values if values.dtype == np.float32 else narrow_odd(values)


def _write_float(values: Array, type: str) -> Array:
    dtype = np.dtype(f"f{TYPE_BITS[type] // 8}")
    result = values.astype(dtype, copy=False).view(UNSIGNED[TYPE_BITS[type]])
    nan = np.isnan(values)
    if nan.any():
        result = result.copy()
        result[nan] = NAN_BITS[type]
    return result


def writer(type: str, bits: int | None = None) -> Callable[[Array], Array]:
    """From an instruction's result to a register of `bits` (default: the type's own width)."""
    own = TYPE_BITS[type]
    width = own if bits is None else bits
    if type == "pred":
        return lambda values: values
    if type == "bf16":
        return lambda values: resize(to_bf16(_narrow(values)), width)
    if type == "f16":
        return lambda values: resize(to_f16(_narrow(values)), width)
    if type in ("f32", "f64"):
        return lambda values: resize(_write_float(values, type), width)
    signed = type[0] == "s"
    dtype = UNSIGNED[own]

    def integers(values: Array) -> Array:
        raw = values.view(dtype) if values.dtype.itemsize == dtype.itemsize else values.astype(dtype)
        return resize(raw, width, signed)

    return integers
