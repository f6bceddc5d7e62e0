"""Numbers of every element type, from text and to text.

In: number texts and an element type, or an array.  Out: a rank-1 array, each element rounded once (ties to even) from
its decimal digits; or XLA's texts: the fewest of two digit counts that reads back exactly (6 or 9 for f32, 15 or 17 for
f64), and a fixed count for narrower types.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import BY_NAME, DType, Kind

__all__ = ["NumberError", "element_texts", "nan_payload_bits", "numbers"]


class NumberError(Exception):
    """Number `index` of a list is wrong; `cause` says how."""

    def __init__(self, index: int, cause: str) -> None:
        super().__init__(cause)
        self.index = index
        self.cause = cause


_NAN = re.compile(r"([+-]?)nan(?:\(0x([0-9a-fA-F]+)\))?")
_ALLOWED_FLOAT = re.compile(r"[-+0-9.eEinfa\s]*")
_HEX_FLOAT = re.compile(r"\s*[+-]?0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*(?:[pP][+-]?[0-9]+)?\s*")
_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")
_PRED = {"true": 1, "false": 0, "1": 1, "0": 0}
_BITS: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}

_COMPONENT = {"c64": "f32", "c128": "f64"}


def numbers(texts: Sequence[str], dtype: DType) -> Array:
    """`texts` as a rank-1 array of `dtype` (not complex); NumberError for the first that isn't one."""
    if dtype.is_float:
        return _floats(texts, dtype)
    return _preds(texts) if dtype.kind is Kind.PRED else _integers(texts, dtype)


def _preds(texts: Sequence[str]) -> Array:
    values: list[int] = []
    for index, text in enumerate(texts):
        value = _PRED.get(text.strip())
        if value is None:
            raise NumberError(index, f"'{text.strip()}' isn't a pred (true, false, 1 or 0)")
        values.append(value)
    return np.array(values, np.bool_)


def _integers(texts: Sequence[str], dtype: DType) -> Array:
    low, high = integer_range(dtype)
    try:
        values = list(map(int, texts))
    except ValueError:
        values = []
    if not values or min(values) < low or max(values) > high or "_" in "".join(texts):
        for index, text in enumerate(texts):
            if _INTEGER.fullmatch(text) is None:
                raise NumberError(index, f"'{_short(text)}' isn't an integer, which {dtype} needs")
            if len(text) > 40 or not low <= int(text) <= high:
                raise NumberError(index, f"{_short(text)} is out of the range of {dtype}, [{low}, {high}]")
    if dtype.bits < 8:
        return np.array(values, np.int8 if dtype.is_signed else np.uint8).astype(dtype.numpy)
    return np.array(values, dtype.numpy)


def integer_range(dtype: DType) -> tuple[int, int]:
    """The least and the greatest number of an integer type."""
    if dtype.is_signed:
        return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1
    return 0, (1 << dtype.bits) - 1


def _short(text: str) -> str:
    text = text.strip()
    return text if len(text) <= 40 else text[:37] + "..."


def _floats(texts: Sequence[str], dtype: DType) -> Array:
    doubles = np.array(_doubles(texts, dtype), np.float64)
    values = _narrow(doubles, dtype)
    if dtype.bits < 64:
        values = _fix_ties(texts, doubles, values, dtype)
    _check_range(texts, doubles, values, dtype)
    nans = np.flatnonzero(np.isnan(doubles))
    if nans.size:
        bits = values.view(_BITS[values.dtype.itemsize])
        for index in nans.tolist():
            bits[index] = _nan_bits(index, texts[index].strip(), dtype)
    return values


def _doubles(texts: Sequence[str], dtype: DType) -> list[float]:
    """Each text rounded to a double: all at once if they are plain, one by one if any is not."""
    if _ALLOWED_FLOAT.fullmatch("".join(texts)) is not None:
        try:
            return list(map(float, texts))
        except ValueError:
            pass
    return [_one_double(index, text, dtype) for index, text in enumerate(texts)]


def _one_double(index: int, text: str, dtype: DType) -> float:
    if _HEX_FLOAT.fullmatch(text) is not None and text.strip().lower() not in ("0x", "-0x", "+0x"):
        try:
            return float.fromhex(text.strip())
        except (ValueError, OverflowError):
            raise NumberError(index, f"'{_short(text)}' isn't a number") from None
    if _NAN.fullmatch(text.strip()) is not None:
        return math.nan
    if _ALLOWED_FLOAT.fullmatch(text) is not None:
        try:
            return float(text)
        except ValueError:
            pass
    raise NumberError(index, f"'{_short(text)}' isn't a number, which {dtype} needs")


def _narrow(doubles: Array, dtype: DType) -> Array:
    """Each double rounded once to `dtype`."""
    with np.errstate(all="ignore"):
        if dtype.bits == 64:
            return doubles.copy()
        if dtype.bits == 32:
            return doubles.astype(np.float32)
        if dtype.name == "f8e8m0fnu":
            return _powers_of_two(doubles).view(dtype.numpy)
        return _round_to_odd(doubles).astype(dtype.numpy)


def _powers_of_two(doubles: Array) -> Array:
    """The codes of f8e8m0fnu: the nearest power of two, ties up, at least 2^-127; 255 (NaN) above 2^127."""
    fraction, exponent = np.frexp(doubles)
    codes = exponent.astype(np.int64) + 126 + (fraction >= 0.75)
    return np.where(np.isfinite(doubles) & (codes <= 254), np.maximum(codes, 0), 255).astype(np.uint8)


def _round_to_odd(doubles: Array) -> Array:
    """Doubles as f32 with the last bit set where digits were lost, so that a second rounding is as good as one."""
    singles = doubles.astype(np.float32)
    back = singles.astype(np.float64)
    lost = (back != doubles) & ~np.isnan(doubles)
    even = (singles.view(np.uint32) & np.uint32(1)) == 0
    toward = np.where(back > doubles, np.float32(-np.inf), np.float32(np.inf)).astype(np.float32)
    return np.where(lost & even, np.nextafter(singles, toward), singles)


def _fix_ties(texts: Sequence[str], doubles: Array, values: Array, dtype: DType) -> Array:
    """Undo double rounding where a double lies on the border between two values of `dtype` but its text doesn't."""
    with np.errstate(all="ignore"):
        up, down = np.nextafter(doubles, np.inf), np.nextafter(doubles, -np.inf)
    bits = _BITS[values.dtype.itemsize]
    as_bits = values.view(bits)
    near = (_narrow(up, dtype).view(bits) != as_bits) | (_narrow(down, dtype).view(bits) != as_bits)
    near &= np.isfinite(doubles) & (doubles != 0)
    for index in np.flatnonzero(near).tolist():
        text = texts[index].strip()
        if "x" in text.lower():
            continue
        exact, double = Fraction(text), Fraction(float(doubles[index]))
        if exact != double:
            values[index] = _narrow((up if exact > double else down)[index : index + 1], dtype)[0]
    return values


def _check_range(texts: Sequence[str], doubles: Array, values: Array, dtype: DType) -> None:
    """NumberError for a finite text that `dtype` can't hold, and for a special value that it doesn't have."""
    with np.errstate(all="ignore"):
        wide = values.astype(np.float64)
    bad = ~np.isfinite(wide)
    if dtype.name == "f8e8m0fnu":
        bad |= doubles <= 0
    elif dtype.name == "f4e2m1fn":
        bad |= np.isnan(doubles)
    for index in np.flatnonzero(bad).tolist():
        text = texts[index].strip()
        special = text.lstrip("+-").startswith(("nan", "inf"))
        if special and not (dtype.name in ("f4e2m1fn", "f8e8m0fnu") and not text.endswith("nan")):
            if dtype.name == "f4e2m1fn":
                raise NumberError(index, f"{dtype} has no NaN")
            continue
        form = dtype.format
        low, high = form.least if form.unsigned else -form.most, form.most
        raise NumberError(index, f"{_short(text)} is out of the range of {dtype}, [{low:g}, {high:g}]")


def nan_payload_bits(dtype: DType) -> int:
    """How many mantissa bits a NaN of `dtype` is free to use; 0 where it has one NaN alone."""
    return dtype.format.mantissa if dtype.format.has_infinity else 0


def _nan_bits(index: int, text: str, dtype: DType) -> int:
    """The bits of the NaN that `text` names."""
    match = _NAN.fullmatch(text)
    if match is None:
        raise NumberError(index, f"'{_short(text)}' isn't a number")
    sign = 1 << (dtype.bits - 1) if match.group(1) == "-" else 0
    payload_bits = nan_payload_bits(dtype)
    if match.group(2) is not None:
        payload = int(match.group(2), 16)
        if payload == 0 or payload >> payload_bits:
            raise NumberError(index, f"NaN payload 0x{payload:x} doesn't fit in {dtype}")
    else:
        payload = 1 << (payload_bits - 1) if payload_bits else 0
    form = dtype.format
    if form.has_infinity:
        return sign | form.overflow | payload
    return sign | form.nan if form.signed_zero else form.nan


def element_texts(values: Array, dtype: DType, *, dense: bool) -> list[str]:
    """XLA's text of each element of a rank-1 array; `dense` writes pred as 1 and 0."""
    if dtype.is_complex:
        part = BY_NAME[_COMPONENT[dtype.name]]
        parts = element_texts(np.ascontiguousarray(values).view(part.numpy), part, dense=dense)
        return [f"({real}, {imag})" for real, imag in zip(parts[::2], parts[1::2], strict=True)]
    if dtype.is_integer:
        return [str(int(value)) for value in values.tolist()]
    if not dtype.is_float:
        words = ("0", "1") if dense else ("false", "true")
        return [words[bool(value)] for value in values.tolist()]
    with np.errstate(all="ignore"):
        doubles = values.astype(np.float64)
    texts = _float_texts(values, doubles, dtype)
    for index in np.flatnonzero(np.isnan(doubles)).tolist():
        texts[index] = _nan_text(values[index : index + 1], dtype)
    return texts


def _float_texts(values: Array, doubles: Array, dtype: DType) -> list[str]:
    many = dtype.format.digits
    if dtype.bits < 32:
        return [f"{value:.{many}g}" for value in doubles.tolist()]
    few = 6 if dtype.bits == 32 else 15
    texts = [f"{value:.{few}g}" for value in doubles.tolist()]
    with np.errstate(all="ignore"):
        again = np.array(list(map(float, texts)), np.float64).astype(dtype.numpy)
    for index in np.flatnonzero(again != values).tolist():
        texts[index] = f"{doubles[index]:.{many}g}"
    return texts


def _nan_text(value: Array, dtype: DType) -> str:
    bits = int(value.view(_BITS[value.dtype.itemsize])[0])
    sign = "-" if bits >> (dtype.bits - 1) and dtype.name != "f8e8m0fnu" else ""
    payload_bits = nan_payload_bits(dtype)
    payload = bits & ((1 << payload_bits) - 1)
    plain = not payload_bits or payload == 1 << (payload_bits - 1)
    return f"{sign}nan" if plain else f"{sign}nan(0x{payload:x})"
