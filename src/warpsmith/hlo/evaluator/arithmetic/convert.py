"""convert between every pair of element types, bitcast-convert, reduce-precision.

In: an array of one HLO type.  Out: an array of another.  Each conversion rounds at most once.  Float to integer
saturates and sends NaN to 0; integer to integer keeps the low bits; anything non-zero (NaN too) is a true pred.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import DType, Kind, by_name
from warpsmith.hlo.evaluator.arithmetic.formats import round_once, wide, widen
from warpsmith.hlo.evaluator.arithmetic.integers import load, store

__all__ = ["bitcast_elements", "converter", "plain_integer", "reduce_precision"]

Conversion: TypeAlias = Callable[[Array], Array]
_U8, _F64, _C128 = by_name("u8"), by_name("f64"), by_name("c128")


def converter(source: DType, target: DType) -> Conversion:
    """The function that converts arrays of `source` to arrays of `target`."""
    if source is target:
        return lambda x: x
    if source.kind is Kind.PRED:
        inner = converter(_U8, target) if target is not _U8 else None
        return lambda x: x.astype(np.uint8) if inner is None else inner(x.astype(np.uint8))
    if source.is_complex:
        return _from_complex(source, target)
    if target.is_complex:
        part = converter(source, by_name("f64" if target is _C128 else "f32"))
        return lambda x: part(x).astype(target.numpy)
    make = _MAKERS[(_family(source), _family(target))]
    return make(source, target)


def _family(dtype: DType) -> str:
    if dtype.kind is Kind.PRED:
        return "pred"
    return "int" if dtype.is_integer else "float"


def _from_complex(source: DType, target: DType) -> Conversion:
    if target.kind is Kind.PRED:
        return lambda x: x != 0
    if target.is_complex:
        return lambda x: x.astype(target.numpy)
    part = converter(by_name("f64" if source is _C128 else "f32"), target)
    return lambda x: part(np.real(x).copy())


def plain_integer(dtype: DType) -> np.dtype[np.integer]:
    """The numpy integer type that holds an HLO integer type's values."""
    return np.dtype(f"{'i' if dtype.is_signed else 'u'}{max(dtype.bits // 8, 1)}")


def _int_to_pred(source: DType, target: DType) -> Conversion:
    return lambda x: load(x, source) != 0


def _float_to_pred(source: DType, target: DType) -> Conversion:
    return lambda x: widen(x, source) != 0


def _int_to_int(source: DType, target: DType) -> Conversion:
    plain = plain_integer(target)
    return lambda x: store(load(x, source).astype(plain), target)


def _int_to_float(source: DType, target: DType) -> Conversion:
    if target.bits >= 32:
        return lambda x: load(x, source).astype(target.numpy)
    if source.bits < 64:
        return lambda x: round_once(load(x, source).astype(np.float64), target)
    return lambda x: round_once(_odd_float64(x), target)


def _odd_float64(x: Array) -> Array:
    """64-bit integers as float64, cut to 53 bits with the last one set if anything was lost ("round to odd"): a later
    rounding to 51 bits or less then comes out as if it were the only one."""
    big = (x >= 1 << 52) | (x < -(1 << 52)) if x.dtype.kind == "i" else x >= 1 << 52
    cut = ((x >> 12) | ((x & 0xFFF) != 0)).astype(np.float64) * 4096.0
    return np.where(big, cut, x.astype(np.float64))


def _float_to_int(source: DType, target: DType) -> Conversion:
    plain = plain_integer(target)
    least = -(1 << (target.bits - 1)) if target.is_signed else 0
    beyond = 1 << (target.bits - 1 if target.is_signed else target.bits)

    def convert(x: Array) -> Array:
        whole = np.trunc(wide(x, source))
        over, under = whole >= float(beyond), whole < float(least)
        safe = np.where(over | under | np.isnan(whole), 0.0, whole).astype(plain)
        return store(
            np.where(over, plain.type(beyond - 1), np.where(under, plain.type(least), safe)),
            target,
        )

    return convert


def _float_to_float(source: DType, target: DType) -> Conversion:
    return lambda x: round_once(widen(x, source), target)


_MAKERS: dict[tuple[str, str], Callable[[DType, DType], Conversion]] = {
    ("int", "pred"): _int_to_pred,
    ("float", "pred"): _float_to_pred,
    ("int", "int"): _int_to_int,
    ("int", "float"): _int_to_float,
    ("float", "int"): _float_to_int,
    ("float", "float"): _float_to_float,
}


def reduce_precision(dtype: DType, exponent_bits: int, mantissa_bits: int) -> Conversion:
    """Arrays of an IEEE-like float type as if stored with fewer exponent and mantissa bits and read back: mantissas
    round to even, exponents too large give infinity, too small (subnormal in the small format) a zero of the sign."""
    kind = np.dtype(f"u{dtype.bits // 8}")

    def number(value: int) -> np.unsignedinteger:
        return kind.type(value)

    cut = dtype.mantissa - mantissa_bits
    sign_mask = number(1 << (dtype.bits - 1))
    exponent_mask = number(((1 << dtype.exponent) - 1) << dtype.mantissa)
    exponent_bits = min(exponent_bits, dtype.exponent)  # more than there are change nothing
    bias, small_bias = (1 << (dtype.exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
    largest, smallest = (
        number((bias + small_bias) << dtype.mantissa),
        number((bias - small_bias) << dtype.mantissa),
    )

    def reduce(x: Array) -> Array:
        bits = x.view(kind)
        result = bits
        if cut > 0:
            last = (bits >> number(cut)) & number(1)
            result = (bits + last + number((1 << (cut - 1)) - 1)) & ~number((1 << cut) - 1)
        if exponent_bits < dtype.exponent:
            exponent, sign = result & exponent_mask, result & sign_mask
            result = np.where(exponent > largest, sign | exponent_mask, result)
            result = np.where(exponent <= smallest, sign, result)
        nan = (bits & ~sign_mask) > exponent_mask
        return np.where(nan, bits, result).view(dtype.numpy)

    return reduce


def bitcast_elements(array: Array, source: DType, target: DType) -> Array:
    """The bits of `array` read as `target`.  A narrower target adds a last dimension (low bits first), a wider one
    uses up the last dimension."""
    if source is target:
        return array
    dense = np.ascontiguousarray(array).reshape(array.shape)
    if source.bits == target.bits:
        if target.kind is Kind.PRED:
            return dense.view(np.uint8) != 0
        return dense.view(target.numpy)
    dims = array.shape if target.bits < source.bits else array.shape[:-1]
    if target.bits < source.bits:
        dense = dense[..., None]
    bits = np.unpackbits(
        dense.view(np.uint8).reshape(*dense.shape, source.numpy.itemsize),
        axis=-1,
        bitorder="little",
    )
    stream = bits[..., : source.bits].reshape(*dims, max(source.bits // target.bits, 1), target.bits)
    room = target.numpy.itemsize * 8
    padded = np.zeros((*stream.shape[:-1], room), np.uint8)
    padded[..., : target.bits] = stream
    words = np.packbits(padded, axis=-1, bitorder="little").view(target.numpy)[..., 0]
    return words if target.bits < source.bits else words[..., 0]
