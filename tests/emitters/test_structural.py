"""Ops that move elements or loop over them give what the reference interpreter gives, on both machines' loop forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_runner import check

from warpsmith.dtypes import by_name
from warpsmith.numerics.inputs import Profile

REDUCERS = """
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] maximum(a, b) }
sumb { a = bf16[] parameter(0)  b = bf16[] parameter(1)  ROOT r = bf16[] add(a, b) }
prod { a = s32[] parameter(0)  b = s32[] parameter(1)  ROOT r = s32[] multiply(a, b) }
body {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  t = f32[] multiply(a, a)
  u = f32[] add(t, b)
  ROOT r = f32[] tanh(u)
}
argmax {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  g = pred[] compare(a, b), direction=GE
  m = f32[] select(g, a, b)
  n = s32[] select(g, i, j)
  ROOT t = (f32[], s32[]) tuple(m, n)
}
"""

MOVES = {
    "broadcast": "x = f32[5,3] parameter(0)\n ROOT r = f32[3,4,5] broadcast(x), dimensions={2,0}",
    "reshape and transpose": "x = f32[6,4] parameter(0)\n y = f32[3,8] reshape(x)\n"
    " ROOT r = f32[8,3] transpose(y), dimensions={1,0}",
    "layouts": "x = f32[6,4]{0,1} parameter(0)\n y = f32[6,4]{1,0} copy(x)\n"
    " ROOT r = f32[4,6]{0,1} transpose(y), dimensions={1,0}",
    "reshape of column-major": "x = f32[6,4]{0,1} parameter(0)\n ROOT r = f32[3,8]{1,0} reshape(x)",
    "slice": "x = f32[20,7] parameter(0)\n ROOT r = f32[6,3] slice(x), slice={[2:20:3],[1:7:2]}",
    "reverse": "x = f32[20,7] parameter(0)\n ROOT r = f32[20,7] reverse(x), dimensions={1,0}",
    "pad": "x = f32[5,7] parameter(0)\n v = f32[] parameter(1)\n ROOT r = f32[12,6] pad(x, v), padding=2_1_1x-1_0_0",
    "pad that crops": "x = f32[5] parameter(0)\n v = f32[] parameter(1)\n ROOT r = f32[7] pad(x, v), padding=-2_-4_2",
    "concatenate": "x = f32[5,2] parameter(0)\n y = f32[5,3] parameter(1)\n z = f32[5,1] parameter(2)\n"
    " ROOT r = f32[5,8] concatenate(x, y, z, x), dimensions={1}",
    "iota": "ROOT r = bf16[5,300] iota(), iota_dimension=1",
    "iota that wraps": "ROOT r = s8[300] iota(), iota_dimension=0",
    "complex iota": "ROOT r = c64[30] iota(), iota_dimension=0",
    "64-bit iota": "ROOT r = u64[30] iota(), iota_dimension=0",
    "constant": "x = f32[2,3] parameter(0)\n c = f32[2,3] constant({{1,2,3},{4,5,-6}})\n ROOT r = f32[2,3] add(x, c)",
    "unsigned constant": "x = u4[4] parameter(0)\n c = u4[4] constant({1,15,8,7})\n ROOT r = u4[4] add(x, c)",
    "complex constant": "x = c64[2] parameter(0)\n c = c64[2] constant({(1,2),(3,-4)})\n ROOT r = c64[2] add(x, c)",
    "bits to narrower": "x = f32[5,3] parameter(0)\n ROOT r = u8[5,3,4] bitcast-convert(x)",
    "bits to wider": "x = u8[5,3,4] parameter(0)\n ROOT r = f32[5,3] bitcast-convert(x)",
    "bits of one width": "x = bf16[5,3] parameter(0)\n ROOT r = s16[5,3] bitcast-convert(x)",
    "map": "x = f32[5,9] parameter(0)\n y = f32[5,9] parameter(1)\n"
    " ROOT r = f32[5,9] map(x, y), dimensions={0,1}, to_apply=body",
    "scalar": "x = f32[] parameter(0)\n ROOT r = f32[] tanh(x)",
    "sub-byte": "x = s4[7] parameter(0)\n w = s8[7] convert(x)\n ROOT r = s8[7] multiply(w, w)",
}

SUMS = {
    "reduce": "x = f32[5,9,4] parameter(0)\n z = f32[] parameter(1)\n"
    " ROOT r = f32[9] reduce(x, z), dimensions={0,2}, to_apply=sum",
    "maximum": "x = f32[5,9,4] parameter(0)\n z = f32[] constant(-inf)\n"
    " ROOT r = f32[5,4] reduce(x, z), dimensions={1}, to_apply=max",
    "bf16 sum": "x = bf16[5,900] parameter(0)\n z = bf16[] constant(0)\n"
    " ROOT r = bf16[5] reduce(x, z), dimensions={1}, to_apply=sumb",
    "integer product": "x = s32[5,9] parameter(0)\n z = s32[] constant(1)\n"
    " ROOT r = s32[5] reduce(x, z), dimensions={1}, to_apply=prod",
    "to a scalar": "x = f32[64] parameter(0)\n z = f32[] constant(0)\n"
    " ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=sum",
    "variadic": "x = f32[5,9] parameter(0)\n i = s32[5,9] iota(), iota_dimension=1\n z = f32[] constant(-inf)\n"
    " k = s32[] constant(0)\n ROOT r = (f32[5], s32[5]) reduce(x, i, z, k), dimensions={1}, to_apply=argmax",
    "reduce-window": "x = f32[9,8] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[5,7] reduce-window(x, z), "
    "window={size=3x2 stride=2x1 pad=1_1x0_0}, to_apply=sum",
    "dilated window": "x = f32[9] parameter(0)\n z = f32[] constant(-inf)\n ROOT r = f32[8] reduce-window(x, z), "
    "window={size=3 stride=2 pad=1_2 lhs_dilate=2 rhs_dilate=2}, to_apply=max",
    "dot": "x = f32[5,9] parameter(0)\n y = f32[9,4] parameter(1)\n"
    " ROOT r = f32[5,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "batched bf16 dot": "x = bf16[3,5,9] parameter(0)\n y = bf16[3,9,4] parameter(1)\n ROOT r = f32[3,5,4] dot(x, y), "
    "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}",
    "complex dot": "x = c64[5,9] parameter(0)\n y = c64[9,4] parameter(1)\n"
    " ROOT r = c64[5,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "pred dot": "x = pred[5,9] parameter(0)\n y = pred[9,4] parameter(1)\n"
    " ROOT r = pred[5,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "8-bit dot": "x = s8[5,9] parameter(0)\n y = s8[9,4] parameter(1)\n"
    " ROOT r = s32[5,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "convolution": "x = f32[2,5,6,4] parameter(0)\n y = f32[3,2,4,3] parameter(1)\n"
    " ROOT r = f32[2,3,5,3] convolution(x, y), window={size=3x2 stride=2x1 pad=1_1x0_0}, dim_labels=b01f_01io->b01f",
    "grouped convolution": "x = f32[2,5,4] parameter(0)\n y = f32[3,2,6] parameter(1)\n"
    " ROOT r = f32[2,9,6] convolution(x, y), window={size=3 pad=1_1 lhs_dilate=2 rhs_reversal=1}, "
    "dim_labels=b0f_0io->b0f, feature_group_count=2",
}


def entry(body: str) -> str:
    return f"HloModule m\n{REDUCERS}\nENTRY e {{\n {body}\n}}"


@pytest.mark.parametrize("target", ["sm_90", "cpu"])
@pytest.mark.parametrize("name", MOVES)
def test_moves(name: str, target: str) -> None:
    check(entry(MOVES[name]), target=target)


@pytest.mark.parametrize("target", ["sm_90", "cpu"])
@pytest.mark.parametrize("name", SUMS)
def test_sums(name: str, target: str) -> None:
    check(entry(SUMS[name]), target=target, profile=Profile.TAME)


X = np.arange(72, dtype=np.float32).reshape(9, 8)


@pytest.mark.parametrize(("i", "j", "dtype"), [(-5, 0, "s32"), (2, 200, "u8"), (100, 3, "s32"), (-100, 100, "s8")])
def test_dynamic_slice_clamps_its_start(i: int, j: int, dtype: str) -> None:
    """A u8 start of 200 isn't -56; the slice is moved to where it fits."""
    text = entry(
        f"x = f32[9,8] parameter(0)\n i = {dtype}[] parameter(1)\n j = {dtype}[] parameter(2)\n"
        " ROOT r = f32[4,3] dynamic-slice(x, i, j), dynamic_slice_sizes={4,3}"
    )
    row, column = min(max(i, 0), 5), min(j, 5)
    for target in ("sm_90", "cpu"):
        start = by_name(dtype).numpy.type
        (found,) = check(text, [X, start(i), start(j)], target)
        np.testing.assert_array_equal(found, X[row : row + 4, column : column + 3])


@pytest.mark.parametrize(("i", "j"), [(-(2**60), 0), (2, 7), (2**40, 3)])
def test_dynamic_update_slice_clamps_its_start(i: int, j: int) -> None:
    text = entry(
        "x = f32[9,8] parameter(0)\n u = f32[4,8] parameter(1)\n i = s64[] parameter(2)\n j = s64[] parameter(3)\n"
        " ROOT r = f32[9,8] dynamic-update-slice(x, u, i, j)"
    )
    update = -np.ones((4, 8), np.float32)
    expected = X.copy()
    row = min(max(i, 0), 5)
    expected[row : row + 4] = update
    for target in ("sm_90", "cpu"):
        (found,) = check(text, [X, update, np.int64(i), np.int64(j)], target)
        np.testing.assert_array_equal(found, expected)


GATHERS = {
    "canonical": (
        "x = f32[9,8] parameter(0)\n i = s32[6,2] parameter(1)\n ROOT r = f32[6,2,3] gather(x, i), "
        "offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={1,0}, index_vector_dim=1, slice_sizes={2,3}",
        (9, 8),
        (6, 2),
    ),
    "collapsed": (
        "x = f32[9,8] parameter(0)\n i = s32[6,2] parameter(1)\n ROOT r = f32[3,6,2] gather(x, i), "
        "offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,3}",
        (9, 8),
        (6, 2),
    ),
    "batched": (
        "x = f32[4,9,8] parameter(0)\n i = s32[4,6,1] parameter(1)\n ROOT r = f32[4,6,8] gather(x, i), "
        "offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, "
        "start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,8}",
        (4, 9, 8),
        (4, 6, 1),
    ),
}


@pytest.mark.parametrize("name", GATHERS)
def test_gather_of_any_form(name: str) -> None:
    """Out-of-range indices are clamped, slices always fit."""
    body, source, starts = GATHERS[name]
    values = np.arange(np.prod(source), dtype=np.float32).reshape(source)
    indices = np.random.default_rng(3).integers(-3, 12, starts).astype(np.int32)
    for target in ("sm_90", "cpu"):
        check(entry(body), [values, indices], target)


def test_roots_of_different_sizes_in_one_fusion() -> None:
    """Upstream's compiler crashes on these; each size has a loop of its own here."""
    text = """HloModule m
f {
  p = f32[40,30] parameter(0)
  a = f32[8,30] slice(p), slice={[3:11],[0:30]}
  b = f32[30,40] transpose(p), dimensions={1,0}
  c = f32[3] slice(p0), slice={[0:3]}
  ROOT t = (f32[8,30], f32[30,40], f32[3], f32[240]) tuple(a, b, c, d)
}
ENTRY e {
  p = f32[40,30] parameter(0)
  ROOT r = (f32[8,30], f32[30,40], f32[3], f32[240]) fusion(p), kind=kLoop, calls=f
}"""
    text = text.replace("  c = ", "  p0 = f32[1200] reshape(p)\n  d = f32[240] reshape(a)\n  c = ")
    for target in ("sm_90", "cpu"):
        check(text, target=target)


def test_a_root_listed_twice_fills_both_outputs() -> None:
    text = """HloModule m
f {
  p = f32[40] parameter(0)
  a = f32[40] negate(p)
  ROOT t = (f32[40], f32[40], f32[40]) tuple(a, p, a)
}
ENTRY e {
  p = f32[40] parameter(0)
  ROOT r = (f32[40], f32[40], f32[40]) fusion(p), kind=kLoop, calls=f
}"""
    for target in ("sm_90", "cpu"):
        check(text, target=target)


@pytest.mark.slow
def test_sums_of_narrow_floats_round_once() -> None:
    """Ten thousand ones in bf16: partial sums in bf16 would stop at 256."""
    text = entry(
        "x = bf16[10000] parameter(0)\n z = bf16[] constant(0)\n"
        " ROOT r = bf16[] reduce(x, z), dimensions={0}, to_apply=sumb"
    )
    (found,) = check(text, [np.ones(10000, ml_dtypes.bfloat16)], "cpu")
    assert float(found) == 9984.0  # the bf16 nearest to 10000


CASES = Path(__file__).parents[1] / "hlo" / "cases"
RUNNABLE = (
    *("argmax-nan", "bf16-subnormal", "bitcast-convert-width", "column-major", "complex-abs", "crop-into-window"),
    *("ds-clamp", "ds-u8-index", "dus-runtime-vars", "dus-self-shift", "exponential-users", "f32-to-s32-nan"),
    *("f8-nonfinite-decode", "f8e4m3fn-overflow", "fma-contract", "int-div-zero", "nan-clamp", "narrowing-kept"),
    *("negzero-reduce-max", "pad-neg-interior", "reduce-odd-sizes", "s4-odd", "s8-wrap-abs", "shift-over-width"),
    *("sqrt-square-overflow", "transpose-degenerate", "window1-neg-pad", "x-times-zero", "xor-atan2", "zero-sized"),
)


@pytest.mark.parametrize("name", RUNNABLE)
def test_cases_that_have_broken_compilers(name: str) -> None:
    for target in ("sm_90", "cpu"):
        check((CASES / f"{name}.hlo").read_text(), target=target)


@st.composite
def chains(draw: Any) -> str:
    """A fusion of moves and arithmetic on one array, each step reading one of the last two."""
    lines = ["p = f32[6,4] parameter(0)"]
    known = [("p", (6, 4))]
    for i in range(draw(st.integers(2, 8))):
        name, (rows, columns) = draw(st.sampled_from(known[-2:]))
        kind = draw(
            st.sampled_from(["negate", "transpose", "reverse", "reshape", "add", "slice", "pad", "concatenate"])
        )
        new, dims = f"v{i}", (rows, columns)
        match kind:
            case "transpose":
                dims = (columns, rows)
                op = f"transpose({name}), dimensions={{1,0}}"
            case "reverse":
                op = f"reverse({name}), dimensions={{{draw(st.sampled_from([0, 1]))}}}"
            case "reshape":
                dims = (1, rows * columns) if draw(st.booleans()) else (columns, rows)
                op = f"reshape({name})"
            case "add":
                other = draw(st.sampled_from([each for each, size in known if size == (rows, columns)]))
                op = f"add({name}, {other})"
            case "slice" if rows > 1:
                dims = (rows - 1, columns)
                op = f"slice({name}), slice={{[1:{rows}],[0:{columns}]}}"
            case "pad" if rows * columns < 60:
                lines.append(f"z{i} = f32[] constant({i})")
                dims = (rows + 1, 2 * columns - 1)
                op = f"pad({name}, z{i}), padding=0_1_0x0_0_1"
            case "concatenate" if rows * columns < 60:
                dims = (2 * rows, columns)
                op = f"concatenate({name}, {name}), dimensions={{0}}"
            case _:
                op = f"negate({name})"
        lines.append(f"{new} = f32[{dims[0]},{dims[1]}] {op}")
        known.append((new, dims))
    lines[-1] = "ROOT " + lines[-1]
    _, (rows, columns) = known[-1]
    body = "\n  ".join(lines)
    return (
        f"HloModule m\nf {{\n  {body}\n}}\nENTRY e {{\n  p = f32[6,4] parameter(0)\n"
        f"  ROOT r = f32[{rows},{columns}] fusion(p), kind=kLoop, calls=f\n}}"
    )


@settings(max_examples=40, deadline=None)
@given(chains(), st.sampled_from(["sm_90", "cpu"]))
def test_random_chains_of_moves(text: str, target: str) -> None:
    """Wrong: a map, the composition of maps, or a value used outside the region it was made in."""
    check(text, target=target)
