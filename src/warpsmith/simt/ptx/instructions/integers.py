"""Integer and bit instructions.  Arithmetic wraps; a division by zero gives all ones, as the hardware does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpsmith.arrays import Array
from warpsmith.simt.ptx.spec import Compute, Form, Spec, binary, ternary, unary
from warpsmith.simt.ptx.text.module import TYPE_BITS

__all__ = ["integer_spec", "multiply_high"]

_SIGNED_OR_NOT = frozenset({"u16", "s16", "u32", "s32", "u64", "s64"})
_BITS = frozenset({"b16", "b32", "b64", "pred"})

# ---------------------------------------------------------------------------------------------------------- arithmetic


def multiply_high(a: Array, b: Array) -> Array:
    """The upper half of the product of two integer arrays of one type."""
    if a.dtype.itemsize < 8:
        wide = np.int64 if a.dtype.kind == "i" else np.uint64
        width = a.dtype.itemsize * 8
        return ((a.astype(wide) * b.astype(wide)) >> wide(width)).astype(a.dtype)
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    x, y = a.view(np.uint64), b.view(np.uint64)
    x0, x1, y0, y1 = x & mask, x >> half, y & mask, y >> half
    middle = x1 * y0 + ((x0 * y0) >> half)
    cross = x0 * y1 + (middle & mask)
    high = x1 * y1 + (middle >> half) + (cross >> half)
    if a.dtype.kind == "i":
        zero = np.uint64(0)
        high = high - np.where(a < 0, y, zero) - np.where(b < 0, x, zero)
    return high.view(a.dtype)


def _widen(a: Array) -> Array:
    return a.astype(f"{a.dtype.kind}{a.dtype.itemsize * 2}")


def _divide(a: Array, b: Array) -> Array:
    safe = np.where(b == 0, b.dtype.type(1), b)
    if a.dtype.kind == "u":
        quotient = a // safe
    else:
        quotient = a // safe
        quotient = quotient + ((quotient * safe != a) & ((a < 0) != (safe < 0))).astype(a.dtype)
    return np.where(b == 0, ~np.zeros_like(quotient), quotient)


def _remainder(a: Array, b: Array) -> Array:
    safe = np.where(b == 0, b.dtype.type(1), b)
    return np.where(b == 0, a, a - _divide(a, safe) * safe)


def _saturate(wide: Array, type: str) -> Array:
    limits = np.iinfo(f"{'i' if type[0] == 's' else 'u'}{TYPE_BITS[type] // 8}")
    return np.clip(wide, limits.min, limits.max).astype(limits.dtype)


def _low24(a: Array) -> Array:
    shift = a.dtype.type(8)
    return (a << shift) >> shift  # sign-extended where the type is signed


def _product24(a: Array, b: Array) -> Array:
    return _widen(_low24(a)) * _widen(_low24(b))


def _difference(a: Array, b: Array, c: Array) -> Array:
    return c + np.where(a < b, b - a, a - b)


Pick = Callable[[Array, Array], Array]


def _parts(form: Form) -> Pick | None:
    """lo, hi or wide of a product."""
    if "hi" in form.flags:
        return multiply_high
    if "wide" in form.flags:
        return lambda a, b: _widen(a) * _widen(b)
    if "lo" in form.flags:
        return lambda a, b: a * b
    return None


def _wide_type(type: str) -> str:
    return f"{type[0]}{int(type[1:]) * 2}"


def _multiply(form: Form, type: str) -> Spec | None:
    pick = _parts(form)
    output = _wide_type(type) if "wide" in form.flags else type
    return None if pick is None else Spec((type, type), output, pick)


def _multiply_add(form: Form, type: str) -> Spec | None:
    pick = _parts(form)
    if pick is None:
        return None
    output = _wide_type(type) if "wide" in form.flags else type

    def compute(a: Array, b: Array, c: Array) -> Array:
        product = pick(a, b)
        if "sat" in form.flags:
            return _saturate(_widen(product) + _widen(c), type)
        return product + c

    return Spec((type, type, output), output, compute)


def _multiply24(form: Form, type: str) -> Spec:
    shift = np.int64(16) if type == "s32" else np.uint64(16)

    def compute(a: Array, b: Array) -> Array:
        product = _product24(a, b)
        return (product >> shift if "hi" in form.flags else product).astype(a.dtype)

    if form.base == "mad24":
        return Spec((type,) * 3, type, ternary(lambda a, b, c: compute(a, b) + c))
    return Spec((type, type), type, compute)


def _add(form: Form, type: str) -> Spec:
    subtract = form.base == "sub"
    if "sat" in form.flags:
        return Spec(
            (type, type),
            type,
            binary(lambda a, b: _saturate(_widen(a) - _widen(b) if subtract else _widen(a) + _widen(b), type)),
        )
    return Spec((type, type), type, np.subtract if subtract else np.add)


def _dot(form: Form, _type: str) -> Spec | None:
    """dp4a and dp2a: products of bytes (or of halves with bytes) added to a word."""
    if len(form.types) != 2:
        return None
    first, second = ("i" if t == "s32" else "u" for t in form.types)
    output = "s32" if "s32" in form.types else "u32"
    quads = form.base == "dp4a"

    def compute(a: Array, b: Array, c: Array) -> Array:
        left = a[:, None].view(f"{first}1" if quads else f"{first}2").astype(np.int64)
        right = b[:, None].view(f"{second}1").astype(np.int64)
        if not quads:
            right = right[:, 2:] if "hi" in form.flags else right[:, :2]
        return ((left * right).sum(axis=1) + c).astype(c.dtype)

    return Spec(("b32", "b32", output), output, compute)


# ---------------------------------------------------------------------------------------------------------------- bits
def _bit_width(a: Array) -> int:
    return a.dtype.itemsize * 8


def _leading_zeros(a: Array) -> Array:
    filled = a.copy()
    step = 1
    while step < _bit_width(a):
        filled |= filled >> a.dtype.type(step)
        step *= 2
    return (_bit_width(a) - np.bitwise_count(filled).astype(np.int64)).astype(np.uint32)


def _find(form: Form, type: str) -> Spec:
    """bfind: the place of the highest bit that isn't the sign."""

    def compute(a: Array) -> Array:
        bits = np.where(a < 0, ~a, a).view(f"u{a.dtype.itemsize}") if a.dtype.kind == "i" else a
        zeros = _leading_zeros(bits)
        place = zeros if "shiftamt" in form.flags else np.uint32(_bit_width(a) - 1) - zeros
        return np.where(bits == 0, np.uint32(0xFFFFFFFF), place)

    return Spec((type,), "u32", compute)


def _reverse(a: Array) -> Array:
    width = _bit_width(a)
    result, step = a, 1
    while step < width:
        mask = a.dtype.type(sum(((1 << step) - 1) << i for i in range(0, width, 2 * step)))
        shift = a.dtype.type(step)
        result = ((result >> shift) & mask) | ((result & mask) << shift)
        step *= 2
    return result


def _ones(count: Array, dtype: np.dtype[np.uint64]) -> Array:
    """The lowest `count` bits set, as 64-bit integers cut to a type."""
    wide = np.minimum(count, 64).astype(np.uint64)
    full = wide >= 64
    ones = (np.uint64(1) << np.where(full, np.uint64(0), wide)) - np.uint64(1)
    return np.where(full, ~np.uint64(0), ones).astype(dtype)


def _extract(form: Form, type: str) -> Spec:
    """bfe: `length` bits from `start`, past the top the sign."""

    def compute(a: Array, start: Array, length: Array) -> Array:
        width = _bit_width(a)
        first, count = start & np.uint32(255), length & np.uint32(255)
        end = np.minimum(first + count, np.uint32(width))
        up = np.minimum(np.uint32(width) - end, np.uint32(width - 1)).astype(a.dtype)
        bits = ((a << up) >> up) >> np.minimum(first, np.uint32(width - 1)).astype(a.dtype)
        empty = (count == 0) | ((first >= width) if a.dtype.kind == "u" else (count == 0))
        return np.where(empty, a.dtype.type(0), bits)

    return Spec((type, "u32", "u32"), type, compute)


def _insert(a: Array, b: Array, start: Array, length: Array) -> Array:
    """bfi: the low `length` bits of a into b at `start`."""
    width = _bit_width(a)
    first, count = start & np.uint32(255), length & np.uint32(255)
    outside = first >= width
    shift = np.where(outside, np.uint32(0), first).astype(a.dtype)
    mask = np.where(outside, a.dtype.type(0), _ones(count, a.dtype) << shift)
    return (b & ~mask) | ((a << shift) & mask)


def _lookup(a: Array, b: Array, c: Array, table: Array) -> Array:
    """lop3: any function of three bits, given by its eight values."""
    result: Array = np.zeros(1, np.uint32)
    for row in range(8):
        term = a if row & 4 else ~a
        term = term & (b if row & 2 else ~b) & (c if row & 1 else ~c)
        chosen = np.negative((table >> np.uint32(row)) & np.uint32(1))
        result = result | (term & chosen)
    return result


def _shift(form: Form, type: str) -> Spec:
    """shl, shr: an amount past the width counts as the width."""
    left = form.base == "shl"

    def compute(a: Array, amount: Array) -> Array:
        width = _bit_width(a)
        over = amount >= width
        if over.any():
            sign = a >> a.dtype.type(width - 1) if a.dtype.kind == "i" else np.zeros_like(a)
            inside = np.where(over, np.uint32(0), amount).astype(a.dtype)
            return np.where(over, np.zeros_like(a) if left else sign, a << inside if left else a >> inside)
        places = amount.astype(a.dtype)
        return a << places if left else a >> places

    return Spec((type, "u32"), type, compute)


def _funnel(form: Form, _type: str) -> Spec:
    """shf: two words as one, shifted; the upper word of a left shift, the lower of a right shift."""
    left = "l" in form.flags

    def compute(low: Array, high: Array, amount: Array) -> Array:
        places = amount & np.uint32(31) if "wrap" in form.flags else np.minimum(amount, np.uint32(32))
        both = (high.astype(np.uint64) << np.uint64(32)) | low
        moved = (both << places.astype(np.uint64)) >> np.uint64(32) if left else both >> places.astype(np.uint64)
        return moved.astype(np.uint32)

    return Spec(("b32", "b32", "u32"), "b32", compute)


_PERMUTE_MODES: dict[str, tuple[tuple[int, ...], ...]] = {
    "f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    "b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    "rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}


def _permute(form: Form, _type: str) -> Spec:
    """prmt: each byte of the result is one of eight, or its sign."""
    mode = next((_PERMUTE_MODES[flag] for flag in form.flags if flag in _PERMUTE_MODES), None)

    def compute(a: Array, b: Array, selector: Array) -> Array:
        both = (b.astype(np.uint64) << np.uint64(32)) | a
        result: Array = np.zeros(1, np.uint32)
        for place in range(4):
            if mode is not None:
                rows = np.array([row[place] for row in mode], np.uint32)
                pick = rows[selector & np.uint32(3)]
            else:
                pick = (selector >> np.uint32(4 * place)) & np.uint32(15)
            byte = (both >> ((pick & np.uint32(7)) << np.uint32(3)).astype(np.uint64)).astype(np.uint32) & np.uint32(
                255
            )
            signs = pick & np.uint32(8)
            if signs.any():
                sign = np.where(byte & np.uint32(128), np.uint32(255), np.uint32(0))
                byte = np.where(signs != 0, sign, byte)
            result = result | (byte << np.uint32(8 * place))
        return result

    return Spec(("b32", "b32", "b32"), "b32", compute)


# --------------------------------------------------------------------------------------------------------------- table
def _simple(arity: int, compute: Compute, output: str = "") -> Callable[[Form, str], Spec]:
    return lambda form, type: Spec((type,) * arity, output or type, compute)


Build = Callable[[Form, str], Spec | None]
_ARITHMETIC: dict[str, Build] = {
    "add": _add,
    "sub": _add,
    "mul": _multiply,
    "mad": _multiply_add,
    "mul24": _multiply24,
    "mad24": _multiply24,
    "sad": _simple(3, _difference),
    "div": _simple(2, _divide),
    "rem": _simple(2, _remainder),
    "abs": _simple(1, np.abs),
    "neg": _simple(1, np.negative),
    "min": _simple(2, np.minimum),
    "max": _simple(2, np.maximum),
    "bfind": _find,
    "bfe": _extract,
    "shr": _shift,
    "dp4a": _dot,
    "dp2a": _dot,
}
_LOGIC: dict[str, Build] = {
    "and": _simple(2, np.bitwise_and),
    "or": _simple(2, np.bitwise_or),
    "xor": _simple(2, np.bitwise_xor),
    "not": _simple(1, np.invert),
    "cnot": _simple(1, unary(lambda a: (a == 0).astype(a.dtype))),
    "shl": _shift,
    "shr": _shift,
    "shf": _funnel,
    "prmt": _permute,
    "lop3": lambda form, type: Spec(("b32", "b32", "b32", "u32"), "b32", _lookup),
    "popc": _simple(1, unary(lambda a: np.bitwise_count(a).astype(np.uint32)), "u32"),
    "clz": _simple(1, _leading_zeros, "u32"),
    "brev": _simple(1, _reverse),
    "bfi": lambda form, type: Spec((type, type, "u32", "u32"), type, _insert),
}


def integer_spec(form: Form) -> Spec | None:
    """What an integer or bit instruction does; None when it isn't one, or is none that exists."""
    type = form.types[0] if form.types else ""
    if type in _SIGNED_OR_NOT and form.base in _ARITHMETIC:
        return _ARITHMETIC[form.base](form, type)
    if type in _BITS and form.base in _LOGIC and TYPE_BITS[type]:
        return _LOGIC[form.base](form, type)
    return None
