"""Elements of 2 and 4 bits: packing, arrays in and out, bitcasts between widths, kernels of both machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from differential import check_passes
from fusion_corpus import Case
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.support import SupportCase, check

from warpsmith.arrays import Array
from warpsmith.compiler import compile
from warpsmith.dtypes import by_name, pack, unpack
from warpsmith.hlo.evaluator import evaluate
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.numerics.inputs import Profile, random_array

CASES = Path(__file__).parents[1] / "hlo" / "cases"
NARROW = ("s2", "u2", "s4", "u4", "f4e2m1fn")


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 15), max_size=40), st.sampled_from([2, 4]))
def test_packing_keeps_order_lowest_bits_first(codes: list[int], bits: int) -> None:
    codes = [code & (1 << bits) - 1 for code in codes]
    packed = pack(np.array(codes, np.uint8), bits)
    # One long number, element i at bit i * bits: little endian throughout, zeros at the end.
    number = sum(code << (i * bits) for i, code in enumerate(codes))
    assert packed.tobytes() == number.to_bytes(-(-len(codes) * bits // 8), "little")
    assert unpack(packed, bits, len(codes)).tolist() == codes


def test_packing_ignores_what_numpy_leaves_in_upper_bits() -> None:
    assert pack(np.array([0xF1, 0x82], np.uint8), 4).tolist() == [0x21]


def same_bits(found: Array, wanted: Array) -> bool:
    return found.dtype == wanted.dtype and bool(np.array_equal(found.view(np.uint8), wanted.view(np.uint8)))


def run(text: str, seed: int = 0) -> tuple[list[Array], list[Array]]:
    """Outputs on this computer and the reference interpreter's."""
    module = parse_hlo(text)
    shapes = [parameter.array_shape for parameter in module.entry.parameters]
    arrays = [random_array(s.dtype, s.dims, seed=seed, parameter=i) for i, s in enumerate(shapes)]
    return compile(module, cache=False)(*arrays), evaluate(module, *arrays)


MODULES = {
    "constant": "ENTRY e { p = s4[5] parameter(0)  c = s4[5] constant({1,-2,3,-8,7})  ROOT r = s4[5] add(p, c) }",
    "returned": "ENTRY e { p = u2[5] parameter(0)  c = u2[3] constant({1,2,3})  ROOT t = (u2[5], u2[3]) tuple(p, c) }",
    "column major": "ENTRY e { p = s4[3,5]{0,1} parameter(0)  ROOT r = s4[3,5]{1,0} negate(p) }",
    "two kernels": "ENTRY e { p = s4[9] parameter(0)  n = s4[9] negate(p)  s = s4[9] sort(n), dimensions={0}, "
    "to_apply=less  ROOT r = s4[9] add(s, n) }\nless { a = s4[] parameter(0)  b = s4[] parameter(1)  "
    "ROOT c = pred[] compare(a, b), direction=LT }",
    "bitcast": "ENTRY e { p = s4[8] parameter(0)  b = s8[4] bitcast(p)  ROOT r = s8[4] add(b, b) }",
    "bitcast back": "ENTRY e { p = s32[3] parameter(0)  b = u2[48] bitcast(p)  ROOT r = u2[48] add(b, b) }",
    "bitcast result": "ENTRY e { p = f4e2m1fn[6] parameter(0)  ROOT b = f8e5m2[3] bitcast(p) }",
    "two views": "ENTRY e { p = u4[4] parameter(0)  b = u2[8] bitcast(p)  ROOT r = (u2[8], u4[4]) tuple(b, p) }",
    "bitcast-convert": "ENTRY e { p = s4[4,2] parameter(0)  ROOT b = s8[4] bitcast-convert(p) }",
    "bitcast-convert down": "ENTRY e { p = u16[4] parameter(0)  ROOT b = u2[4,8] bitcast-convert(p) }",
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_with_narrow_buffers(name: str) -> None:
    found, wanted = run(f"HloModule m\n{MODULES[name]}")
    for mine, theirs in zip(found, wanted, strict=True):
        assert same_bits(mine, np.ascontiguousarray(theirs))


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("size", [1, 2, 3, 63, 64, 65, 20_001])
def test_any_length(dtype: str, size: int) -> None:
    """Odd lengths end within a byte on a GPU, within a vector on a CPU; 20,001 elements go to several cores."""
    shape = f"{dtype}[{size}]"
    found, wanted = run(f"HloModule m\nENTRY e {{ p = {shape} parameter(0)  ROOT r = {shape} add(p, p) }}")
    assert same_bits(found[0], wanted[0])


def test_upper_bits_of_arrays_are_ignored() -> None:
    exe = compile(parse_hlo("HloModule m\nENTRY e { p = u4[4] parameter(0)  ROOT r = s32[4] convert(p) }"), cache=False)
    dirty = np.array([0xF1, 0x22, 0x8F, 0x70], np.uint8).view(ml_dtypes.uint4)
    assert exe(dirty)[0].tolist() == [1, 2, 15, 0]


LARGE = 1 << 19  # enough elements for unrolled GPU code with vector accesses

KERNELS = {
    "s4 vectors": f"p = s4[{LARGE}] parameter(0)  q = s4[{LARGE}] parameter(1)  ROOT r = s4[{LARGE}] add(p, q)",
    "u2 vectors": f"p = u2[{LARGE}] parameter(0)  ROOT r = u2[{LARGE}] multiply(p, p)",
    "f4 widens": f"p = f4e2m1fn[{LARGE}] parameter(0)  ROOT r = f32[{LARGE}] convert(p)",
    "f4 narrows": f"p = f32[{LARGE}] parameter(0)  ROOT r = f4e2m1fn[{LARGE}] convert(p)",
    "odd": "p = s4[12345] parameter(0)  ROOT r = s4[12345] negate(p)",
    "two widths": "p = f32[999] parameter(0)  a = u2[999] convert(p)  n = f32[999] negate(p)  "
    "ROOT r = (f32[999], u2[999]) tuple(n, a)",
    "column major": "p = s4[33,17]{0,1} parameter(0)  ROOT r = s4[33,17]{1,0} negate(p)",
}


@pytest.mark.parametrize("target", ["sm_90", "cpu"])
@pytest.mark.parametrize("name", KERNELS)
def test_packed_kernels_compute_the_same_after_every_pass(name: str, target: str) -> None:
    large = target != "cpu" and name == "s4 vectors"  # one such case is slow enough
    body = KERNELS[name] if large else KERNELS[name].replace(str(LARGE), "4099")
    counts = check_passes(Case(name, f"HloModule m\nf {{ {body} }}", Profile.MIXTURE), target)
    assert counts.simulated > 5


VECTORS = {
    "s4": KERNELS["s4 vectors"],
    "u2": KERNELS["u2 vectors"],
    "f4": KERNELS["f4 narrows"],
    "f8": f"p = f8e4m3fn[{LARGE}] parameter(0)  ROOT r = f8e5m2[{LARGE}] convert(p)",
}


@pytest.mark.parametrize("name", VECTORS)
def test_ptx_with_vector_accesses_is_right(name: str) -> None:
    """Run in the PTX simulator; small fusions, which the support table tries, have one element a thread."""
    body = VECTORS[name]
    row = check(SupportCase(name, by_name("f32"), f"HloModule m\nf {{ {body} }}"), ["sm_90"])
    assert not row.refused
    assert not row.wrong, row.wrong


def test_ptx_moves_whole_bytes() -> None:
    text = compile(parse_hlo(f"HloModule m\nf {{ {KERNELS['s4 vectors']} }}"), "sm_90").artifact("ptx")
    stores = [line for line in text.splitlines() if "st.global" in line]
    assert len(stores) == 1  # four elements, two bytes, one instruction
    assert "atom" not in text


def array_of(data: dict[str, Any]) -> Array:
    scalar = getattr(ml_dtypes, data["dtype"], None)
    dtype = np.dtype(scalar if scalar is not None else data["dtype"])
    values = [float(v) if isinstance(v, str) else v for v in data["values"]]
    return np.array(values).astype(dtype).reshape(data["shape"])


SHARED = ("f8-nonfinite-decode", "f8e4m3fn-overflow", "s4-odd", "complex-abs", "bitcast-convert-width")


@pytest.mark.parametrize("name", SHARED)
def test_shared_cases(name: str) -> None:
    """Known failures of other compilers, with the right answers."""
    (case,) = (each for each in json.loads((CASES / "cases.json").read_text()) if each["id"] == name)
    exe = compile(parse_hlo((CASES / f"{name}.hlo").read_text()), cache=False)
    for found, data in zip(exe(*map(array_of, case["inputs"])), case["expected"], strict=True):
        wanted = array_of(data)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(
            found.astype(np.float64), wanted.astype(np.float64), rtol=case["tolerance"] or 0, atol=0, equal_nan=True
        )


def test_element_types_know_their_packed_size() -> None:
    assert [by_name(name).byte_size(7) for name in NARROW] == [2, 2, 4, 4, 4]
