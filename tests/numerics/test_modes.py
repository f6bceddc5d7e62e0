"""The numerics modes: every row that says they differ does, on each target; and `xla` is what XLA's compiler prints.

xla_ptx/ holds, for one op a file, a fusion and the PTX that XLA:GPU 0.10.2's own compiler makes of it for an H200.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracle.numpy_backend import NumpyBackend

from warpsmith.arrays import Array
from warpsmith.compiler import compile
from warpsmith.compiler.generated import parameter_shapes
from warpsmith.compiler.simulated import simulated
from warpsmith.dtypes import by_name
from warpsmith.hlo.module import HloModule
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.numerics.functions import FUNCTIONS, expand
from warpsmith.numerics.inputs import Profile, random_array
from warpsmith.numerics.modes import DIFFERENCES, Difference, Example
from warpsmith.simt.ptx.launch import PtxLaunch, run_ptx

UPSTREAM = Path(__file__).parent / "xla_ptx"
_WIDTHS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
EXAMPLES = [row for row in DIFFERENCES if row.example is not None]


def _bits(array: Array) -> tuple[int, ...]:
    return tuple(np.ascontiguousarray(array).view(_WIDTHS[array.dtype.itemsize]).reshape(-1).tolist())


def _module(row: Difference, example: Example) -> tuple[HloModule, list[Array]]:
    dtype = "f32" if row.opcode in ("convert", "compare") else _result_type(row, example)
    numpy = by_name(dtype).numpy
    arrays = [np.array(bits, _WIDTHS[numpy.itemsize]).view(numpy) for bits in example.parameters]
    given = "\n".join(f"  p{i} = {dtype}[{a.size}] parameter({i})" for i, a in enumerate(arrays))
    *body, root = example.text.split("\n")
    called = f"sum {{ a = {dtype}[] parameter(0)\n b = {dtype}[] parameter(1)\n ROOT c = {dtype}[] add(a, b) }}"
    calls = [called] if "sum" in example.text else []
    text = "\n".join(["HloModule m", *calls, "f {", given, *body, f"  ROOT {root}", "}"])
    return parse_hlo(text), arrays


def _result_type(row: Difference, example: Example) -> str:
    found = re.search(r"r = (\w+)\[", example.text)
    assert found is not None
    assert found[1] in row.dtypes
    return found[1]


def _simulated(module: HloModule, arrays: Sequence[Array], numerics: str) -> Array:
    (result,) = simulated(module, "sm_90", numerics=numerics, stage="ptx")(*arrays)
    return result.reshape(-1)


def _run(ptx: str, arrays: Sequence[Array], dims: Any, dtype: Any, grid: Any, block: Any) -> Array:
    result = np.zeros(dims, dtype).reshape(-1)
    run_ptx(ptx, [*[np.array(a).reshape(-1) for a in arrays], result], PtxLaunch(grid, block))
    return result.reshape(-1)


@pytest.mark.parametrize("row", EXAMPLES, ids=lambda row: row.name)
def test_the_example_of_a_row_has_its_bits_in_ptx(row: Difference) -> None:
    """A mode that does the same as the other, or neither's value, would show here."""
    assert row.example is not None
    module, arrays = _module(row, row.example)
    assert _bits(_simulated(module, arrays, "strict")) == row.example.strict
    found, expected = _simulated(module, arrays, "xla"), row.example.xla
    assert _nan_alike(_bits(found)) == _nan_alike(expected)
    assert row.example.strict != row.example.xla


@pytest.mark.parametrize("row", EXAMPLES, ids=lambda row: row.name)
def test_the_example_of_a_row_has_its_bits_on_a_cpu(row: Difference) -> None:
    """A row for a GPU alone changes nothing on a CPU."""
    assert row.example is not None
    module, arrays = _module(row, row.example)
    found = {mode: _bits(compile(module, "cpu", numerics=mode, cache=False)(*arrays)[0]) for mode in ("strict", "xla")}
    assert found["strict"] == row.example.strict
    expected = row.example.xla if "CPU" in row.targets else row.example.strict
    assert _nan_alike(found["xla"]) == _nan_alike(expected)


def _nan_alike(bits: Sequence[int]) -> list[int]:
    """The real part of a c64 that is NaN, with any sign and payload, as one NaN."""
    return [b & ~0xFFFFFFFF | 0x7FC00000 if b > 0xFFFFFFFF and b & 0x7F800000 == 0x7F800000 and b & 0x7FFFFF else b
            for b in bits]  # fmt: skip


def test_every_difference_has_an_example_or_is_an_instruction_of_unknown_bits() -> None:
    """The simulator's unit is exact, so div.full and sqrt.approx give what div.rn and sqrt.rn give."""
    assert {row.name for row in DIFFERENCES if row.example is None} == {"division", "sqrt"}


_ARITHMETIC = re.compile(
    r"^\s+((?:div|rcp|ex2|lg2|fma|mul\.rn|add\.rn|sub\.rn|sqrt|rsqrt|cvt\.rn|cvt\.f32|cvt\.f16|neg|setp\.\w+\.f)\S*)",
    re.MULTILINE,
)
# Our exp and log are other programs than libdevice's; conversions to f8 are integer arithmetic; clamps are selects.
_OTHER_PROGRAM = {"exp_f32", "log_f32", "logistic_f16", "logistic_bf16"}
_OTHER_INSTRUCTIONS = _OTHER_PROGRAM | {"cvt_e4m3", "cvt_e4m3_f16", "cvt_e5m2"}
_CLAMPED = {"tanh_f32", "erf_f32"}
NAMES = sorted(path.stem for path in UPSTREAM.glob("*.ptx"))


def _arithmetic(ptx: str, name: str) -> Counter[str]:
    found = Counter(_ARITHMETIC.findall(ptx))
    return Counter({op: n for op, n in found.items() if not (name in _CLAMPED and op.startswith("setp"))})


@pytest.mark.parametrize("name", [each for each in NAMES if each not in _OTHER_INSTRUCTIONS])
def test_the_arithmetic_is_that_of_xlas_own_ptx(name: str) -> None:
    """Which instructions compute the result; `dot`, whose loop is unrolled another number of times, which kinds."""
    module = parse_hlo((UPSTREAM / f"{name}.hlo").read_text())
    ours = _arithmetic(compile(module, "sm_90", numerics="xla", cache=False).artifact("ptx"), name)
    theirs = _arithmetic((UPSTREAM / f"{name}.ptx").read_text(), name)
    assert theirs
    assert set(ours) == set(theirs)
    threads_alike = name not in ("dot_f16",)
    if threads_alike:
        least = min(ours.values()) // min(theirs.values())
        assert ours == Counter({op: n * least for op, n in theirs.items()})


@pytest.mark.parametrize("name", [each for each in NAMES if each not in ("exp_f32", "log_f32")])
def test_the_bits_are_those_of_xlas_own_ptx(name: str) -> None:
    """Both run in the simulator on a thousand inputs, edge values among them; NaN compares as NaN."""
    module = parse_hlo((UPSTREAM / f"{name}.hlo").read_text())
    arrays = [
        random_array(shape.dtype, shape.dims, seed=3, parameter=i, profile=Profile.MIXTURE)
        for i, shape in enumerate(parameter_shapes(module))
    ]
    ours = _simulated(module, arrays, "xla")
    text = (UPSTREAM / f"{name}.ptx").read_text()
    threads = re.search(r"\.reqntid (\d+)", text)
    assert threads is not None
    block = (int(threads[1]), 1, 1)
    (leaf,) = module.entry.root.shape.leaves()
    theirs = _run(
        text, arrays, leaf.dims, leaf.dtype.numpy, (1024 // block[0] if name != "dot_f16" else 8, 1, 1), block
    )
    same = np.array(_bits(ours)) == np.array(_bits(theirs))
    if leaf.dtype.is_complex:
        same |= np.isnan(ours.real) & np.isnan(theirs.real) | np.isnan(ours.imag) & np.isnan(theirs.imag)
    else:
        same |= np.isnan(ours) & np.isnan(theirs) if leaf.dtype.is_float else False
    assert same.all(), (np.flatnonzero(~same)[:4], ours[~same][:4], theirs[~same][:4])


def test_xlas_programs_are_near_the_functions() -> None:
    """They are for numbers that agree with XLA's; a wrong coefficient would still be far off."""
    x = np.linspace(-6, 6, 20001).astype(np.float32)
    rows = [row for row in FUNCTIONS.values() if row.xla is not None]
    assert {row.name for row in rows} == {"erf", "tanh"}
    for row in rows:
        got = np.asarray(expand(row.name, NumpyBackend(fuse=True), x, xla=True), np.float64)
        ours = np.asarray(expand(row.name, NumpyBackend(fuse=True), x), np.float64)
        assert (np.abs(got - ours) <= (row.xla_ulp + row.max_ulp) * np.spacing(np.float32(1)) / 2).all()
