"""cvt: between integers, floats, and packed pairs of narrow floats, in every rounding mode.

A float becomes an integer by clamping; a NaN becomes 0, or the integer's top bit alone when 64-bit types are involved.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from warpsmith.arrays import Array
from warpsmith.dtypes import by_name
from warpsmith.numerics.rounding import FORMATS, in_fractions, odd_sum, round_to
from warpsmith.simt.ptx.spec import Compute, Form, Spec, binary, unary
from warpsmith.simt.ptx.text.module import TYPE_BITS
from warpsmith.simt.ptx.values import flush, reader, resize, writer

__all__ = ["convert_spec"]

_FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
_INTEGRAL: dict[str, Callable[[Array], Array]] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
_NARROW = {"e4m3": by_name("f8e4m3fn"), "e5m2": by_name("f8e5m2"), "e2m1": by_name("f4e2m1fn")}
_ELEMENTS = {"f16x2": "f16", "bf16x2": "bf16", "e4m3x2": "e4m3", "e5m2x2": "e5m2", "e2m1x2": "e2m1"}


def convert_spec(form: Form) -> Spec | None:
    """What a cvt does; None for one that doesn't exist."""
    if form.base != "cvt" or len(form.types) != 2:
        return None
    target, source = form.types
    if target in _ELEMENTS:
        return _packed(form, target, source)
    if target == "tf32" and source == "f32":
        mode = form.rounding or "rna"
        return Spec(("f32",), "b32", unary(lambda a: _tf32(a, mode)))
    if target in _FLOATS and source in _FLOATS:
        return Spec((source,), target, _float_to_float(form, target, source))
    if target in _FLOATS and _is_integer(source):
        return Spec((source,), target, _integer_to_float(form, target))
    if _is_integer(target) and source in _FLOATS:
        return Spec((source,), target, _float_to_integer(form, target, source))
    if _is_integer(target) and _is_integer(source):
        return Spec((source,), target, _integer_to_integer(form, target))
    return None


def _is_integer(type: str) -> bool:
    return type[0] in "us" and type[1:].isdigit()


# ------------------------------------------------------------------------------------------------------------ integers
def _numpy_integer(type: str) -> tuple[int, int, str]:
    bits, signed = TYPE_BITS[type], type[0] == "s"
    least = -(1 << (bits - 1)) if signed else 0
    most = (1 << (bits - 1)) - 1 if signed else (1 << bits) - 1
    return least, most, f"{'i' if signed else 'u'}{bits // 8}"


def _integer_to_integer(form: Form, target: str) -> Compute:
    least, most, name = _numpy_integer(target)

    def convert(a: Array) -> Array:
        if "sat" in form.flags:
            info = np.iinfo(a.dtype)
            a = np.clip(a, max(least, info.min), min(most, info.max))
        return a.astype(name)

    return convert


def _exact_sum(x: Fraction, y: Fraction) -> Fraction:
    return x + y


def _integer_to_float(form: Form, target: str) -> Compute:
    mode = form.rounding or "rn"

    def convert(a: Array) -> Array:
        if mode == "rn" and target in ("f32", "f64"):
            return _clamped(a.astype(f"f{TYPE_BITS[target] // 8}"), form)
        low = (a & a.dtype.type(0xFFFFFFFF if a.dtype.itemsize == 8 else 0x7F)).astype(np.float64)
        high = (a - low.astype(a.dtype)).astype(np.float64)
        if target == "f64":
            return in_fractions(_exact_sum, mode, np.zeros(1), high, low)
        return _clamped(_round(odd_sum(high, low), target, mode), form)

    return convert


def _float_to_integer(form: Form, target: str, source: str) -> Compute:
    least, most, name = _numpy_integer(target)
    bits = TYPE_BITS[target]
    integral = _INTEGRAL[form.rounding if form.rounding in _INTEGRAL else "rzi"]
    nan = (1 << (bits - 1)) if source == "f64" or bits == 64 else 0
    nan = least if nan and least else nan

    def convert(a: Array) -> Array:
        values = integral((flush(a, source) if form.ftz else a).astype(np.float64))
        low, high = values < float(least), values > float(most) - (0.5 if bits < 64 else 0)
        high |= values >= 2.0 ** (bits - 1 if least else bits)
        missing = np.isnan(values)
        inside = np.where(low | high | missing, 0.0, values)
        result = inside.astype(name)
        scalar = result.dtype.type
        result = np.where(low, scalar(least), np.where(high & ~missing, scalar(most), result))
        return np.where(missing, scalar(nan), result)

    return convert


# -------------------------------------------------------------------------------------------------------------- floats
def _round(values: Array, target: str, mode: str) -> Array:
    """Doubles to numbers of a float type (as doubles where that type is read as f32, rounded again when written)."""
    if target == "f64":
        return values
    if mode == "rn":
        return values.astype(np.float32) if target == "f32" else values
    rounded = round_to(values, FORMATS[target], mode)
    return rounded.astype(np.float32) if target == "f32" else rounded


def _clamped(values: Array, form: Form) -> Array:
    if "sat" in form.flags:
        values = np.where(np.isnan(values), values.dtype.type(0), np.clip(values, 0, 1))
    if "relu" in form.flags:
        values = np.where(values < 0, values.dtype.type(0), values)
    return values


def _float_to_float(form: Form, target: str, source: str) -> Compute:
    narrowing = TYPE_BITS[target] < TYPE_BITS[source] or (target != source and TYPE_BITS[target] == 16)
    largest = FORMATS[target].most

    def convert(a: Array) -> Array:
        if form.ftz and source == "f32":
            a = flush(a, source)
        if form.rounding in _INTEGRAL:
            a = _INTEGRAL[form.rounding](a)
        if narrowing and (form.rounding not in ("", "rn") and form.rounding not in _INTEGRAL):
            a = _round(a.astype(np.float64), target, form.rounding)
        elif target == "f64":
            a = a.astype(np.float64)
        if "satfinite" in form.flags:
            a = np.clip(a, -largest, largest)
        a = _clamped(a, form)
        return flush(a, target) if form.ftz and target == "f32" and a.dtype == np.float32 else a

    return convert


def _tf32(a: Array, mode: str) -> Array:
    rounded = round_to(a.astype(np.float64), FORMATS["tf32"], mode).astype(np.float32)
    return writer("f32")(np.where(np.isnan(a), a, rounded))


# -------------------------------------------------------------------------------------------------------------- packed
def _encode(form: Form, element: str) -> Callable[[Array], Array]:
    """One element's bits, as uint32."""
    if element not in _NARROW:
        write = writer(element)
        mode = form.rounding or "rn"
        largest = FORMATS[element].most

        def wide(a: Array) -> Array:
            values = a if mode == "rn" else _round(a.astype(np.float64), element, mode)
            if "satfinite" in form.flags:
                values = np.clip(values, -largest, largest)
            return write(_clamped(values, form)).astype(np.uint32)

        return wide
    dtype = _NARROW[element]
    format = dtype.format

    def narrow(a: Array) -> Array:
        values = np.clip(round_to(a.astype(np.float64), format), -format.most, format.most)
        values = _clamped(values, form)
        nan = np.isnan(values)
        bits = np.where(nan, 0.0, values).astype(np.float32).astype(dtype.numpy).view(np.uint8)
        return np.where(nan, np.uint8(format.sign - 1), bits).astype(np.uint32)  # all ones is PTX's NaN, or the largest

    return narrow


def _decode(element: str) -> Callable[[Array], Array]:
    """One element's number from its bits (the low ones of a uint32)."""
    if element not in _NARROW:
        read = reader(element)
        return lambda bits: read(bits.astype(np.uint16))
    dtype = _NARROW[element].numpy
    mask = np.uint32((1 << FORMATS[element].bits) - 1)
    return lambda bits: (bits & mask).astype(np.uint8).view(dtype).astype(np.float32)


def _packed(form: Form, target: str, source: str) -> Spec | None:
    element = _ELEMENTS[target]
    encode, width = _encode(form, element), np.uint32(FORMATS[element].bits)
    raw = f"b{TYPE_BITS[target]}"
    if source == "f32":
        return Spec(("f32", "f32"), raw, binary(lambda a, b: encode(b) | (encode(a) << width)))
    if source not in _ELEMENTS:
        return None
    decode, step = _decode(_ELEMENTS[source]), np.uint32(FORMATS[_ELEMENTS[source]].bits)

    def convert(a: Array) -> Array:
        bits = resize(a, 32)
        return encode(decode(bits)) | (encode(decode(bits >> step)) << width)

    return Spec((f"b{TYPE_BITS[source]}",), raw, convert)
