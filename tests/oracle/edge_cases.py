"""Every edge value as data to run: op x dtypes x values -> bits, from exact arithmetic.

Out: `Batch`es, each the operands of one op on one type and what it must give.  They test the interpreter, a CPU's or
GPU's code alike: `Batch.wrong(found)` names elements that differ.  The named facts of `edges.py` hold for all IEEE
types at once; here each type has its own values: all of those of at most 8 bits, and their pairs at the edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from oracle import edge_complex, edge_integers, edge_reals
from oracle.edge_batch import FLOATS, Batch, edge_codes, exponent_of, float_codes, whole_array
from oracle.edge_exact import (
    Exact,
    Special,
    array_of,
    decode,
    encode,
    is_nan,
    is_negative,
    largest,
    least_normal,
    magnitude,
    negated,
    smallest,
    two_to,
)

from warpsmith.arrays import Array
from warpsmith.dtypes import BY_NAME, DType, by_name

__all__ = ["FAMILIES", "Batch"]


INTEGERS = tuple(row for row in BY_NAME.values() if row.is_integer)
PRED = by_name("pred")
REALS = (PRED, *INTEGERS, *FLOATS)
_DIRECTIONS: dict[str, Callable[[Any, Any], bool]] = {
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
}


# ------------------------------------------------------------------------------------------------------------- families
def integers() -> Iterator[Batch]:
    """Integer arithmetic, bits and shifts; pred."""
    for dtype in INTEGERS:
        values = edge_integers.edges(dtype)
        for opcode, unary in edge_integers.UNARY.items():
            if opcode in ("abs", "sign") and not dtype.is_signed:
                continue  # HLO has them for signed integers
            expected = [unary(value, dtype) for value in values]
            yield Batch(opcode, (dtype,), (whole_array(dtype, values),), dtype, whole_array(dtype, expected))
        pairs = edge_integers.pairs(dtype)
        left, right = (whole_array(dtype, [pair[i] for pair in pairs]) for i in range(2))
        for opcode, binary in edge_integers.BINARY.items():
            expected = [binary(a, b, dtype) for a, b in pairs]
            yield Batch(opcode, (dtype, dtype), (left, right), dtype, whole_array(dtype, expected))
    truth = [(a, b) for a in (False, True) for b in (False, True)]
    left, right = (np.array([pair[i] for pair in truth]) for i in range(2))
    for opcode, op in edge_integers.PRED_BINARY.items():
        yield Batch(opcode, (PRED, PRED), (left, right), PRED, np.array([op(a, b) for a, b in truth]))
    yield Batch("not", (PRED,), (left,), PRED, ~left)


def float_unary() -> Iterator[Batch]:
    """Every unary op at every value of the narrow types, and at the edges of the others, correctly rounded."""
    for dtype in FLOATS:
        codes = float_codes(dtype)
        given = array_of(dtype, codes)
        values = [decode(dtype, code) for code in codes]
        for opcode, function in edge_reals.UNARY.items():
            if dtype.bits == 64 and opcode not in _EXACT_IN_DOUBLE:
                continue  # the platform's libm promises no correct rounding
            expected = [encode(dtype, function(value)) for value in values]
            yield Batch(opcode, (dtype,), (given,), dtype, array_of(dtype, expected))
        finite = np.array([not isinstance(value, Special) or value is Special.NEG_ZERO for value in values])
        yield Batch("is-finite", (dtype,), (given,), PRED, finite)


_EXACT_IN_DOUBLE = frozenset(
    ("abs", "negate", "sign", "floor", "ceil", "round-nearest-even", "round-nearest-afz", "sqrt", "real")
)
_EXACT_BINARY = ("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum")


def float_binary() -> Iterator[Batch]:
    """Every pair of edges; power and atan2 where the result is correctly rounded."""
    for dtype in FLOATS:
        every = edge_codes(dtype)
        exact = {code: decode(dtype, code) for code in every}
        for opcode, function in edge_reals.BINARY.items():
            codes = every
            if opcode not in _EXACT_BINARY:
                if dtype.bits == 64:
                    continue
                codes = every[:: 1 if dtype.bits <= 4 else 2]
            pairs = list(product(codes, codes))
            left, right = (array_of(dtype, [pair[i] for pair in pairs]) for i in range(2))
            expected = [encode(dtype, function(exact[a], exact[b])) for a, b in pairs]
            yield Batch(opcode, (dtype, dtype), (left, right), dtype, array_of(dtype, expected))


def clamps() -> Iterator[Batch]:
    """min(max(x, low), high), NaN if any is; with low above high too."""
    for dtype in FLOATS:
        codes = [encode(dtype, v) for v in _clamped(dtype)]
        triples = list(product(codes, repeat=3))
        exact = {code: decode(dtype, code) for code in codes}
        most, least = edge_reals.BINARY["maximum"], edge_reals.BINARY["minimum"]
        expected = [encode(dtype, least(most(exact[x], exact[a]), exact[b])) for a, x, b in triples]
        operands = tuple(array_of(dtype, [t[i] for t in triples]) for i in range(3))
        yield Batch("clamp", (dtype,) * 3, operands, dtype, array_of(dtype, expected))
    for dtype in INTEGERS:
        values = edge_integers.edges(dtype)
        few = sorted({values[0], values[1], *(v for v in (-1, 0, 1) if v in values), values[-2], values[-1]})
        triples = list(product(few, repeat=3))
        expected = [min(max(x, a), b) for a, x, b in triples]
        operands = tuple(whole_array(dtype, [t[i] for t in triples]) for i in range(3))
        yield Batch("clamp", (dtype,) * 3, operands, dtype, whole_array(dtype, expected))


def _clamped(dtype: DType) -> list[Exact]:
    zero: Exact = Fraction(0)
    return [zero, Special.NEG_ZERO, Fraction(1), Fraction(-2), Special.INF, Special.NAN, largest(dtype)]


def comparisons() -> Iterator[Batch]:
    """Every direction; floats in total order too, by the sign and magnitude of their bits."""
    for dtype in FLOATS:
        codes = edge_codes(dtype)
        if dtype.name in _SIGNED_NAN:
            top = 1 << (dtype.bits - 1)
            codes = sorted({*codes, encode(dtype, Special.NAN), encode(dtype, Special.NAN) | top})
        pairs = list(product(codes, codes))
        operands = tuple(array_of(dtype, [pair[i] for pair in pairs]) for i in range(2))
        exact = {code: decode(dtype, code) for code in codes}
        for name, relation in _DIRECTIONS.items():
            expected = [_compared(name, relation, exact[a], exact[b]) for a, b in pairs]
            yield Batch("compare", (dtype,) * 2, operands, PRED, np.array(expected), f", direction={name}")
            if dtype.name in _SIGNED_NAN:
                expected = [relation(_total(dtype, a), _total(dtype, b)) for a, b in pairs]
                attributes = f", direction={name}, type=TOTALORDER"
                yield Batch("compare", (dtype,) * 2, operands, PRED, np.array(expected), attributes)
    for dtype in INTEGERS:
        pairs = list(product(edge_integers.edges(dtype)[::3], edge_integers.edges(dtype)[::5]))
        operands = tuple(whole_array(dtype, [pair[i] for pair in pairs]) for i in range(2))
        for name, relation in _DIRECTIONS.items():
            expected = [relation(a, b) for a, b in pairs]
            yield Batch("compare", (dtype,) * 2, operands, PRED, np.array(expected), f", direction={name}")


_SIGNED_NAN = frozenset(("f16", "bf16", "f32", "f64", "f8e5m2", "f8e4m3", "f8e4m3fn", "f8e3m4"))


def _compared(name: str, relation: Callable[[Any, Any], bool], a: Exact, b: Exact) -> bool:
    """NaN is unequal to all, itself too, and in no order; zeros are equal."""
    if is_nan(a) or is_nan(b):
        return name == "NE"
    return relation(_place(a), _place(b))


def _place(value: Exact) -> Fraction:
    if isinstance(value, Special):
        return {Special.INF: two_to(5000), Special.NEG_INF: -two_to(5000)}.get(value, Fraction(0))
    return value


def _total(dtype: DType, code: int) -> int:
    """Places in the order -NaN < -inf < ... < -0 < +0 < ... < inf < NaN."""
    top = 1 << (dtype.bits - 1)
    return -(code & (top - 1)) - 1 if code & top else code


def converts() -> Iterator[Batch]:
    """Every pair of real types: wrap, saturation, NaN to 0, one rounding; and through complex types."""
    for source in REALS:
        codes = float_codes(source) if source.is_float else []
        numbers = [] if source.is_float else [0, 1] if source is PRED else edge_integers.edges(source)
        given = array_of(source, codes) if source.is_float else whole_array(source, numbers)
        exact: list[Exact] = [decode(source, code) for code in codes] or [Fraction(n) for n in numbers]
        for target in REALS:
            if target is not source and not (source.is_integer and target.is_integer):
                yield Batch("convert", (source,), (given,), target, _converted(exact, target))
        for name, part in (("c64", "f32"), ("c128", "f64")):
            real = _converted(exact, by_name(part))
            yield Batch("convert", (source,), (given,), by_name(name), real.astype(by_name(name).numpy))


def _converted(values: Sequence[Exact], target: DType) -> Array:
    if target is PRED:
        return np.array([is_nan(v) or not (v == 0 or v is Special.NEG_ZERO) for v in values])
    if target.is_float:
        return array_of(target, [encode(target, value) for value in values])
    least = -(1 << (target.bits - 1)) if target.is_signed else 0
    most = least + (1 << target.bits) - 1
    return whole_array(target, [_saturated(value, least, most) for value in values])


def _saturated(value: Exact, least: int, most: int) -> int:
    if isinstance(value, Special):
        return {Special.INF: most, Special.NEG_INF: least}.get(value, 0)
    return min(max(int(value), least), most)


def wrapping_converts() -> Iterator[Batch]:
    """Between integers the low bits are kept."""
    for source in INTEGERS:
        numbers = edge_integers.edges(source)
        for target in INTEGERS:
            if target is not source:
                yield Batch("convert", (source,), (whole_array(source, numbers),), target, whole_array(target, numbers))


def bitcasts() -> Iterator[Batch]:
    """Equal bits in another type; narrower ones low bits first."""
    whole = [row for row in (*INTEGERS, *FLOATS) if row.bits in (8, 16, 32, 64)]
    for source in whole:
        codes = (
            float_codes(source) if source.is_float else [n % (1 << source.bits) for n in edge_integers.edges(source)]
        )
        for target in whole:
            if target is source or target.bits > source.bits:
                continue
            parts = source.bits // target.bits
            pieces = [(code >> (target.bits * i)) % (1 << target.bits) for code in codes for i in range(parts)]
            expected = array_of(target, pieces)
            expected = expected.reshape(len(codes), parts) if parts > 1 else expected
            # A NaN's payload is part of its bits: they are compared as unsigned integers.
            unsigned = by_name(f"u{target.bits}")
            if target is unsigned or (parts == 1 and not target.is_float):
                yield Batch("bitcast-convert", (source,), (array_of(source, codes),), target, expected)
            elif parts == 1 and not source.is_float:
                numbers = [code for code in codes if not is_nan(decode(target, code))]
                given = array_of(source, numbers)
                yield Batch("bitcast-convert", (source,), (given,), target, array_of(target, numbers))


_PRECISIONS = ((5, 10), (8, 7), (4, 3), (5, 2), (8, 10), (2, 1), (8, 23), (11, 52), (5, 0))


def reduced_precisions() -> Iterator[Batch]:
    """Mantissas rounded to even, then too large exponents to infinity and too small ones to zero."""
    for dtype in (by_name(name) for name in ("f16", "bf16", "f32", "f64")):
        codes = float_codes(dtype)
        for exponent, mantissa in _PRECISIONS:
            expected = [encode(dtype, _reduced(decode(dtype, code), dtype, exponent, mantissa)) for code in codes]
            attributes = f", exponent_bits={exponent}, mantissa_bits={mantissa}"
            given = (array_of(dtype, codes),)
            yield Batch("reduce-precision", (dtype,), given, dtype, array_of(dtype, expected), attributes)


def _reduced(value: Exact, dtype: DType, exponent: int, mantissa: int) -> Exact:
    if isinstance(value, Special) or value == 0:
        return value
    size = magnitude(value)
    assert isinstance(size, Fraction)
    bias = (1 << (min(exponent, dtype.exponent) - 1)) - 1
    lowest = exponent_of(least_normal(dtype))
    step = two_to(max(exponent_of(size), lowest) - min(mantissa, dtype.mantissa))
    places = size / step
    if mantissa == 0 and places == Fraction(3, 2):
        # Halfway between two powers of two: to the one whose exponent, as stored, is even.
        size = step * (1 if (exponent_of(size) - exponent_of(least_normal(dtype)) + 1) % 2 == 0 else 2)
    else:
        size = round(places) * step
    if size >= two_to(bias + 1):
        return Special.NEG_INF if is_negative(value) else Special.INF
    if exponent < dtype.exponent and size < two_to(1 - bias):
        size = Fraction(0)
    return negated(size) if is_negative(value) else size


def complex_numbers() -> Iterator[Batch]:
    """Arithmetic on pairs of edges; functions where Annex G has a word."""
    for name, part_name in (("c64", "f32"), ("c128", "f64")):
        dtype, part = by_name(name), by_name(part_name)
        parts: list[Exact] = [edge_complex.named(text) for text in "0 -0 1 -1 3 -2 inf -inf nan".split()]
        parts += [smallest(part), -smallest(part)] + ([largest(part)] if name == "c64" else [])
        values = list(product(parts, parts))
        if name == "c128":  # its modulus is within its bound, and exact only where a part is zero or no number
            values = [v for v in values if any(isinstance(p, Special) or p == 0 for p in v)]
        given = _complex(part, values)
        yield Batch("abs", (dtype,), (given,), part, _reals(part, [edge_complex.modulus(v) for v in values]))
        few = list(product(parts[:9], parts[:9]))[::2]
        pairs = list(product(few, few))
        left, right = (_complex(part, [pair[i] for pair in pairs]) for i in range(2))
        for opcode, function in (("multiply", edge_complex.product), ("divide", edge_complex.divide)):
            expected = _complex(part, [function(a, b) for a, b in pairs])
            yield Batch(opcode, (dtype, dtype), (left, right), dtype, expected)
        for opcode in dict.fromkeys(row.opcode for row in edge_complex.FUNCTIONS):
            rows = [row for row in edge_complex.FUNCTIONS if row.opcode == opcode]
            operand, found = (
                _complex(part, [(_named(pair[0]), _named(pair[1])) for pair in side])
                for side in ([row.operand for row in rows], [row.result for row in rows])
            )
            free = np.array([[text.startswith("?") for text in row.result] for row in rows])
            yield Batch(opcode, (dtype,), (operand,), dtype, found, either_sign=free)
        base, exponent, power = (_complex(part, [row[i] for row in edge_complex.POWERS]) for i in range(3))
        yield Batch("power", (dtype, dtype), (base, exponent), dtype, power)


def _named(text: str) -> Exact:
    return edge_complex.named(text.removeprefix("?"))


def _reals(part: DType, values: Sequence[Exact]) -> Array:
    return array_of(part, [encode(part, value) for value in values])


def _complex(part: DType, values: Sequence[tuple[Exact, Exact]]) -> Array:
    flat = _reals(part, [each for value in values for each in value])
    return flat.view(np.complex64 if part.bits == 32 else np.complex128)


FAMILIES: dict[str, Callable[[], Iterator[Batch]]] = {
    "integers": integers,
    "float unary": float_unary,
    "float binary": float_binary,
    "clamp": clamps,
    "compare": comparisons,
    "convert": converts,
    "wrapping convert": wrapping_converts,
    "bitcast-convert": bitcasts,
    "reduce-precision": reduced_precisions,
    "complex": complex_numbers,
}
"""By name: the batches of a family of ops."""
