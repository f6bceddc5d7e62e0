"""Elements as a kernel holds them: those narrower than a byte packed, and whole words where steps exchange words."""

from __future__ import annotations

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType, from_numpy

__all__ = ["empty", "pack_words", "unpack_words", "whole_words"]

_WORD = 4


def _per_byte(dtype: DType) -> int:
    return 8 // dtype.bits if dtype.bits and dtype.bits < 8 else 1


def empty(dtype: DType, count: int) -> Array:
    """Memory for a result; 0xFF bytes are a NaN, or -1, where the kernel forgets to write."""
    if _per_byte(dtype) > 1:
        return np.full(-(-dtype.byte_size(count) // 4) * 4, 0xFF, np.uint8)
    return np.full(count * dtype.numpy.itemsize, 0xFF, np.uint8).view(dtype.numpy)


def pack_words(array: Array) -> Array:
    """Elements narrower than a byte, low bits first, to whole words: they are written by 32-bit atomics."""
    dtype = from_numpy(array.dtype)
    per_byte = _per_byte(dtype)
    if per_byte == 1:
        return array
    bits = array.astype(np.int8).view(np.uint8) if dtype.is_integer else array.view(np.uint8)
    fields = np.zeros(-(-array.size // (4 * per_byte)) * 4 * per_byte, np.uint8)
    fields[: array.size] = bits & ((1 << dtype.bits) - 1)
    rows = fields.reshape(-1, per_byte) << (np.arange(per_byte, dtype=np.uint8) * np.uint8(dtype.bits))
    return np.bitwise_or.reduce(rows, axis=1)


def whole_words(array: Array) -> Array:
    """A copy with room to the end of its last word; 0xFF there."""
    bytes = np.full(-(-array.nbytes // _WORD) * _WORD, 0xFF, np.uint8)
    bytes[: array.nbytes] = array.view(np.uint8)
    return bytes.view(array.dtype)


def unpack_words(data: Array, dtype: DType, count: int) -> Array:
    """`count` elements of `dtype`, one an item, from memory in whole words: the inverse of `pack_words`."""
    per_byte = _per_byte(dtype)
    if per_byte == 1:
        return data[:count]
    places = np.arange(per_byte, dtype=np.uint8) * np.uint8(dtype.bits)
    fields = ((data[:, None] >> places) & np.uint8((1 << dtype.bits) - 1)).reshape(-1)[:count]
    if not dtype.is_integer:
        return fields.view(dtype.numpy)
    if dtype.is_signed:
        shift = np.uint8(8 - dtype.bits)
        return ((fields << shift).view(np.int8) >> shift.view(np.int8)).astype(dtype.numpy)
    return fields.astype(dtype.numpy)
