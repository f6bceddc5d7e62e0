"""Scatters of floats: subnormal numbers, and runs of equal sorted indices, which a GPU holds in f32 and rounds once."""

from __future__ import annotations

import re

import numpy as np
import pytest

from warpsmith.arrays import Array
from warpsmith.compiler import compile
from warpsmith.compiler.simulated import simulated
from warpsmith.dtypes import by_name
from warpsmith.hlo.evaluator import evaluate, evaluate_with_limits
from warpsmith.hlo.module import HloModule
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.numerics.bounds import bound
from warpsmith.numerics.inputs import Profile, random_array
from warpsmith.report.run.checked_run import run

FLAGS = {
    "any": "",
    "sorted": ", indices_are_sorted=true",
    "unique": ", unique_indices=true",
    "sorted, unique": ", indices_are_sorted=true, unique_indices=true",
}
NARROW = ("f8e4m3fn", "f8e5m2", "f16", "bf16")
DTYPES = (*NARROW, "f32", "f64")
ROWS, TOGETHER, WIDTH = 450, 8, 3  # a warp takes the eight updates of a row


def scatter(dtype: str, opcode: str, flags: str = "", rows: int = 20, slices: int = 600, width: int = 3) -> HloModule:
    """Rows combined into an operand's."""
    return parse_hlo(f"""
        HloModule m
        combine {{ a = {dtype}[] parameter(0)  b = {dtype}[] parameter(1)  ROOT r = {dtype}[] {opcode}(a, b) }}
        ENTRY e {{
          x = {dtype}[{rows},{width}] parameter(0)
          i = s32[{slices},1] parameter(1)
          u = {dtype}[{slices},1,{width}] parameter(2)
          ROOT r = {dtype}[{rows},{width}] scatter(x, i, u), update_window_dims={{1,2}}, inserted_window_dims={{}},
            scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=combine{flags}
        }}""")


def inputs(dtype: str, opcode: str, flags: str, rows: int, slices: int, width: int = 3) -> list[Array]:
    """A few times the least subnormal number, so that any order of a sum gives the same bits."""
    rng, form = np.random.default_rng(5), by_name(dtype)
    least = form.format.least

    def small(*dims: int) -> Array:
        return (rng.integers(-1, 2, dims) * (rng.random(dims) < 0.2) * least).astype(form.numpy)

    signs = (1.0 - 2.0 * rng.integers(0, 2, (slices, 1, width))).astype(form.numpy)
    numbers = rng.permutation(rows)[:slices] if "unique" in flags else rng.integers(-1, rows + 1, slices)
    numbers = np.sort(numbers) if "sorted" in flags else numbers
    return [
        small(rows, width),
        numbers.reshape(-1, 1).astype(np.int32),
        signs if opcode == "multiply" else small(slices, 1, width),
    ]


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("opcode", ["add", "multiply", "minimum", "maximum"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_subnormal_numbers_are_kept(dtype: str, opcode: str, flags: str) -> None:
    """Wrong: an atomic instruction, or a conversion on the way to one, to which they are zeros."""
    rows, slices = (700, 600) if "unique" in flags else (20, 600)
    module = scatter(dtype, opcode, FLAGS[flags], rows, slices)
    arrays = inputs(dtype, opcode, flags, rows, slices)
    (expected,) = evaluate(module, *arrays)
    assert np.asarray(expected, np.float64).any()
    for name, exe in {
        "cpu": compile(module, "cpu", cache=False),
        "sm_80": simulated(module, "sm_80", stage="ptx"),
        "sm_90": simulated(module, "sm_90", stage="ptx"),
    }.items():
        (found,) = exe(*arrays)
        assert found.tobytes() == expected.tobytes(), name


@pytest.mark.parametrize(
    ("dtype", "opcode", "target", "strict", "xla"),
    [
        ("f32", "add", "sm_80", "cas.b32", "add.f32"),
        ("f32", "add", "sm_90", "cas.b32", "add.f32"),
        ("f32", "add", "sm_100", "cas.b32", "add.f32"),
        ("f64", "add", "sm_90", "add.f64", "add.f64"),
        ("f16", "add", "sm_80", "add.noftz.f16", "add.noftz.f16"),
        ("bf16", "add", "sm_80", "cas.b32", "cas.b32"),
        ("bf16", "add", "sm_90", "add.noftz.bf16", "add.noftz.bf16"),
        ("c64", "add", "sm_90", "cas.b32", "add.f32"),
        ("f32", "maximum", "sm_90", "cas.b32", "cas.b32"),
        ("f8e5m2", "add", "sm_90", "cas.b32", "cas.b32"),
    ],
)
@pytest.mark.parametrize("sorted_", ["any", "sorted"])
def test_the_instruction_is_one_that_the_mode_allows(
    dtype: str, opcode: str, target: str, strict: str, xla: str, sorted_: str
) -> None:
    """Wrong: in strict numerics one that flushes subnormal numbers, in xla's a loop where XLA has an instruction."""
    module = scatter(dtype, opcode, FLAGS[sorted_])
    for numerics, wanted in (("strict", strict), ("xla", xla)):
        ptx = compile(module, target, numerics=numerics, cache=False).artifact("ptx")
        found = set(re.findall(r"\b(?:atom|red)\.(?:[a-z]+\.)*?((?:cas|add)\.[\w.]+)", ptx))
        assert found == {wanted}, numerics


def test_c_text_has_no_atomic_addition_that_flushes() -> None:
    """Wrong: CUDA C++ whose atomicAdd nvcc makes the instruction of that PTX shouldn't have."""
    module = scatter("f32", "add")
    texts = {mode: compile(module, "sm_90", numerics=mode, cache=False).artifact("cuda") for mode in ("strict", "xla")}
    assert "atomicAdd(" not in texts["strict"]
    assert "compare_exchange(" in texts["strict"]
    assert "atomicAdd(" in texts["xla"]


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize("opcode", ["add", "multiply"])
@pytest.mark.parametrize("dtype", NARROW)
def test_a_run_is_rounded_once(dtype: str, opcode: str, target: str) -> None:
    """Wrong: partial results in the type itself, in which each later update is too small to show."""
    form, count = by_name(dtype), ROWS * TOGETHER
    large, factor = 2.0 ** (form.mantissa + 1), float(np.array(1.44).astype(form.numpy))
    updates = np.ones((count, 1, WIDTH)) if opcode == "add" else np.full((count, 1, WIDTH), factor)
    if opcode == "add":
        updates[::TOGETHER] = large
    exact = large + TOGETHER - 1 if opcode == "add" else factor**TOGETHER
    start = np.full((ROWS, WIDTH), 0.0 if opcode == "add" else 1.0)
    numbers = np.repeat(np.arange(ROWS, dtype=np.int32), TOGETHER).reshape(-1, 1)
    arrays = [start.astype(form.numpy), numbers, updates.astype(form.numpy)]
    module = scatter(dtype, opcode, FLAGS["sorted"], ROWS, count, WIDTH)
    for numerics in ("strict", "xla"):
        exe = simulated(module, target, stage="ptx", numerics=numerics)
        assert exe.kernels[-1].variant == "distributed_indices"
        (found,) = exe(*arrays)
        expected = np.full(found.shape, exact).astype(np.float32).astype(form.numpy)
        assert found.tobytes() == expected.tobytes(), numerics
    (reference,) = evaluate(module, *arrays)
    (found,) = compile(module, "cpu", cache=False)(*arrays)
    assert found.tobytes() == reference.tobytes()
    assert reference.tobytes() != expected.tobytes()


@pytest.mark.parametrize("flags", ["any", "sorted"])
@pytest.mark.parametrize("dtype", [*NARROW, "f32"])
def test_a_sum_of_many_updates_is_within_its_bound(dtype: str, flags: str) -> None:
    """Wrong: a bound of roundings to f32, though each update of a narrower type is rounded to that."""
    rows, slices, width = 60, 3000, 8
    module = scatter(dtype, "add", FLAGS[flags], rows, slices, width)
    numbers = np.random.default_rng(1).integers(-1, rows + 1, (slices, 1)).astype(np.int32)
    arrays = [
        random_array(by_name(dtype), (rows, width), profile=Profile.TAME),
        np.sort(numbers, axis=0) if flags == "sorted" else numbers,
        random_array(by_name(dtype), (slices, 1, width), parameter=2, profile=Profile.TAME),
    ]
    assert run(module, *arrays, target="sm_90", platform="sim", stage="ptx").match
    _, (limit,), _ = evaluate_with_limits(module, *arrays, op_ulp_bound=bound)
    if dtype not in ("f8e4m3fn", "f8e5m2"):
        assert np.isfinite(limit).all()
