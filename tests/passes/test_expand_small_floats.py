"""expand-small-floats computes the same bits as the formats' definitions: all codes, all 16-bit numbers, ties."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from small_floats import FORMATS, Format, probes

import warpsmith.ir.dialects
from warpsmith.arrays import Array
from warpsmith.dtypes import by_name
from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.verifier import verify
from warpsmith.ir.text.parser import parse_module
from warpsmith.passes.manager import run_pipeline
from warpsmith.simt import run_kernel

assert warpsmith.ir.dialects.arith

IDS = [form.name for form in FORMATS]
SOURCES: dict[str, Any] = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def kernel(body: str, source: str, target: str, count: int) -> Operation:
    """A module that computes `body` (from %x, giving %y) for each element."""
    return parse_module(
        f"""
func.func @main(%in: memref<{count}x{source}>, %out: memref<{count}x{target}>)
    attributes {{xla.entry, warpsmith.target = "cpu", warpsmith.workgroups = 1 : i64}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant {count} : index
  scf.for %i = %c0 to %n step %c1 {{
    %x = memref.load %in[%i] : memref<{count}x{source}>
    {body}
    memref.store %y, %out[%i] : memref<{count}x{target}>
  }}
  return
}}"""
    )


def expanded(body: str, values: Array, source: str, target: str, options: str = "") -> Array:
    """`body` of the values, run after the pass."""
    module = kernel(body, source, target, values.size)
    run_pipeline(module, f"expand-small-floats{options}")
    verify(module)
    for op in module.walk():
        assert op.name in ("arith.bitcast", "memref.load", "memref.store", "arith.constant") or not any(
            str(v.type).startswith(("f8", "f4")) for v in op.operands
        ), f"{op.name} is left"
    return run_kernel(module, [values])[0]


@cache
def codes_of(form: Format) -> Array:
    dtype = by_name(form.name).numpy
    return np.arange(1 << form.bits, dtype=np.uint8).view(dtype)


def same_numbers(found: Array, wanted: Array) -> None:
    with np.errstate(invalid="ignore"):
        found = found.astype(np.float64)
    nan = np.isnan(wanted)
    assert (np.isnan(found) == nan).all()
    assert (found[~nan] == wanted[~nan]).all()
    assert (np.signbit(found[~nan]) == np.signbit(wanted[~nan])).all()


@pytest.mark.parametrize("form", FORMATS, ids=IDS)
@pytest.mark.parametrize("target", ["f32", "f64", "bf16"])
def test_every_code_widens_to_its_value(form: Format, target: str) -> None:
    found = expanded(f"%y = arith.extf %x : {form.ir} to {target}", codes_of(form), form.ir, target)
    same_numbers(found, np.array([form.decode(code) for code in range(1 << form.bits)]))


@pytest.mark.parametrize("form", FORMATS, ids=IDS)
def test_the_definitions_agree_with_ml_dtypes(form: Format) -> None:
    """The oracle itself, against another implementation."""
    same_numbers(codes_of(form).astype(np.float64), np.array([form.decode(code) for code in range(1 << form.bits)]))


def encoded(form: Format, values: Array) -> Array:
    """Each value's code by the definition."""
    with np.errstate(invalid="ignore"):
        return form.encode(values.astype(np.float64))


def check_rounding(form: Format, values: Array, source: str) -> None:
    found = expanded(f"%y = arith.truncf %x : {source} to {form.ir}", values, source, form.ir).view(np.uint8)
    wanted = encoded(form, values)
    wrong = np.flatnonzero(found & ((1 << form.bits) - 1) != wanted)
    assert not wrong.size, f"{values[wrong[0]]!r} gave {found[wrong[0]]:#04x}, not {wanted[wrong[0]]:#04x}"


@pytest.mark.parametrize("form", FORMATS, ids=IDS)
@pytest.mark.parametrize("source", ["f16", "bf16"])
def test_every_16_bit_number_rounds_once(form: Format, source: str) -> None:
    check_rounding(form, np.arange(1 << 16, dtype=np.uint16).view(SOURCES[source]), source)


@pytest.mark.parametrize("form", FORMATS, ids=IDS)
@pytest.mark.parametrize("source", ["f32", "f64"])
def test_ties_their_neighbours_and_all_magnitudes_round_once(form: Format, source: str) -> None:
    check_rounding(form, probes(form, SOURCES[source], 4000), source)


@pytest.mark.parametrize("form", FORMATS, ids=IDS)
def test_integers_round_once(form: Format) -> None:
    rng = np.random.default_rng(3)
    values = rng.integers(-(2**63), 2**63 - 1, 3000) >> rng.integers(0, 63, 3000)
    ties = [(3 << k) + d for k in range(60) for d in (-1, 0, 1)]
    values = np.concatenate([values, np.array(ties, np.int64), np.arange(-300, 300)])
    found = expanded(f"%y = arith.sitofp %x : i64 to {form.ir}", values, "i64", form.ir).view(np.uint8)
    if form.family == "scale":
        wanted = np.array([_scale_of_integer(int(v)) for v in values], np.uint8)
    else:
        wanted = encoded(form, np.clip(values, -(2**40), 2**40).astype(np.float64))
    assert (found & ((1 << form.bits) - 1) == wanted).all()


def _scale_of_integer(value: int) -> int:
    if value <= 0:
        return 255
    exponent = value.bit_length() - 1
    return 127 + exponent + (2 * value >= 3 << exponent)


@pytest.mark.parametrize("form", FORMATS, ids=IDS)
@pytest.mark.parametrize("op", ["addf", "mulf", "divf", "maximumf"])
def test_arithmetic_is_rounded_once(form: Format, op: str) -> None:
    """Every pair of values (of an eighth of them): in double + * / are exact or near enough to round from."""
    codes = np.arange(0, 1 << form.bits, 1 if form.bits == 4 else 5, dtype=np.uint8)
    x, y = (a.reshape(-1) for a in np.meshgrid(codes, codes))
    pairs = (y.astype(np.uint16) << 8 | x).view(np.int16)
    narrow = "" if form.bits == 8 else "\n%lo4 = arith.trunci %lo : i8 to i4\n%hi4 = arith.trunci %hi : i8 to i4"
    suffix = "" if form.bits == 8 else "4"
    body = f"""%lo = arith.trunci %x : i16 to i8
    %c8 = arith.constant 8 : i16
    %up = arith.shrui %x, %c8 : i16
    %hi = arith.trunci %up : i16 to i8{narrow}
    %a = arith.bitcast %lo{suffix} : i{form.bits} to {form.ir}
    %b = arith.bitcast %hi{suffix} : i{form.bits} to {form.ir}
    %y = arith.{op} %a, %b : {form.ir}"""
    found = expanded(body, pairs, "i16", form.ir).view(np.uint8) & ((1 << form.bits) - 1)
    values = np.array([form.decode(code) for code in range(1 << form.bits)])
    with np.errstate(all="ignore"):
        exact = {
            "addf": lambda a, b: a + b,
            "mulf": lambda a, b: a * b,
            "divf": lambda a, b: a / b,
            "maximumf": lambda a, b: np.where((a == 0) & (b == 0), a + b, np.maximum(a, b)),
        }[op](values[x], values[y])
        if form.family == "scale":  # f32 is where scales are computed: below its least number there is nothing
            exact = exact.astype(np.float32)
    wanted = encoded(form, exact)
    nan = np.isnan(exact)
    assert (found[~nan] == wanted[~nan]).all()
    if form.family != "finite":
        decoded = values[found[nan]]
        assert np.isnan(decoded).all()


@pytest.mark.parametrize("form", FORMATS, ids=IDS)
def test_comparison_is_of_values(form: Format) -> None:
    body = f"""%zero = arith.constant 1.0 : {form.ir}
    %c = arith.cmpf ult, %x, %zero : {form.ir}
    %y = arith.extui %c : i1 to i8"""
    found = expanded(body, codes_of(form), form.ir, "i8")
    values = np.array([form.decode(code) for code in range(1 << form.bits)])
    assert (found == ~(values >= 1.0)).all()


def test_f16_conversions_expand_when_asked() -> None:
    half = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    same_numbers(expanded("%y = arith.extf %x : f16 to f32", half, "f16", "f32", "{f16=true}"), half.astype(np.float64))
    f16 = Format("f16", "f16", 16, 5, 10, 15, "ieee")
    values = probes(f16, np.float32, 20000)
    found = expanded("%y = arith.truncf %x : f32 to f16", values, "f32", "f16", "{f16=true}")
    with np.errstate(over="ignore"):
        wanted = values.astype(np.float16)  # one rounding, by the processor or numpy's own code
    nan = np.isnan(values)
    assert (found.view(np.uint16)[~nan] == wanted.view(np.uint16)[~nan]).all()
    assert np.isnan(found[nan]).all()
    assert (found.view(np.uint16)[~nan] == encoded(f16, values)[~nan]).all()
