"""Structural ops of the reference interpreter against XLA:CPU: windows, gathers, scatters, dots, loops.

Integer modules agree exactly; float ones within a small relative error, since XLA sums in float32.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hlo import oracle

from warpsmith.dtypes import by_name
from warpsmith.hlo.evaluator import evaluate
from warpsmith.hlo.text.parser import parse_hlo

pytestmark = pytest.mark.skipif(not oracle.available(), reason=oracle.REASON)

COMBINERS = """
add { a = T[] parameter(0)  b = T[] parameter(1)  ROOT r = T[] add(a, b) }
mul { a = T[] parameter(0)  b = T[] parameter(1)  ROOT r = T[] multiply(a, b) }
mx { a = T[] parameter(0)  b = T[] parameter(1)  ROOT r = T[] maximum(a, b) }
mn { a = T[] parameter(0)  b = T[] parameter(1)  ROOT r = T[] minimum(a, b) }
set { a = T[] parameter(0)  ROOT b = T[] parameter(1) }
mad { a = T[] parameter(0)  b = T[] parameter(1)
  two = T[] constant(2)  m = T[] multiply(a, two)  ROOT r = T[] add(m, b) }
two {
  a = T[] parameter(0)  b = T[] parameter(1)  c = T[] parameter(2)  d = T[] parameter(3)
  p = T[] add(a, c)  q = T[] maximum(b, d)  ROOT r = (T[], T[]) tuple(p, q)
}
arg {
  a = T[] parameter(0)  i = s32[] parameter(1)  b = T[] parameter(2)  j = s32[] parameter(3)
  g = pred[] compare(a, b), direction=GE
  v = T[] select(g, a, b)  k = s32[] select(g, i, j)  ROOT r = (T[], s32[]) tuple(v, k)
}
less { a = T[] parameter(0)  b = T[] parameter(1)  ROOT r = pred[] compare(a, b), direction=LT }
less2 {
  a = T[] parameter(0)  b = T[] parameter(1)  c = s32[] parameter(2)  d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=GT
}
step { s = (s32[], T[4]) parameter(0)  i = s32[] get-tuple-element(s), index=0  x = T[4] get-tuple-element(s), index=1
  one = s32[] constant(1)  n = s32[] add(i, one)  y = T[4] add(x, x)  ROOT r = (s32[], T[4]) tuple(n, y) }
more { s = (s32[], T[4]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  five = s32[] constant(5)  ROOT r = pred[] compare(i, five), direction=LT }
pos { x = T[4] parameter(0)  ROOT r = T[4] add(x, x) }
neg { x = T[4] parameter(0)  ROOT r = T[4] negate(x) }
sq { a = T[] parameter(0)  b = T[] parameter(1)  m = T[] multiply(a, b)  ROOT r = T[] subtract(m, a) }
"""

# name: entry parameters, then lines; the last line is the root.  `#lo,hi` after a parameter: the range of its integers.
CASES: dict[str, str] = {
    "reduce-add": "x = T[7,33,5] p\n z = T[] constant(0)\n r = T[7,5] reduce(x, z), dimensions={1}, to_apply=add",
    "reduce-two-dims": "x = T[7,33,5] p\n z = T[] constant(1)\n r = T[33] reduce(x, z), dimensions={0,2}, to_apply=mx",
    "reduce-product": "x = T[6,4] p #1,3\n z = T[] constant(1)\n r = T[6] reduce(x, z), dimensions={1}, to_apply=mul",
    "reduce-min-all": "x = T[9,4] p\n z = T[] constant(100)\n r = T[] reduce(x, z), dimensions={0,1}, to_apply=mn",
    "reduce-variadic": "x = T[5,8] p\n y = T[5,8] p\n z = T[] constant(0)\n"
    " r = (T[5], T[5]) reduce(x, y, z, z), dimensions={1}, to_apply=two",
    "reduce-arg": "x = T[5,700] p\n i = s32[5,700] iota(), iota_dimension=1\n z = T[] constant(-100)\n"
    " n = s32[] constant(-1)\n r = (T[5], s32[5]) reduce(x, i, z, n), dimensions={1}, to_apply=arg",
    "window": "x = T[6,9] p\n z = T[] constant(0)\n r = T[3,4] reduce-window(x, z), window={size=2x3 stride=2x2},"
    " to_apply=add",
    "window-pad": "x = T[6,9] p\n z = T[] constant(0)\n"
    " r = T[4,9] reduce-window(x, z), window={size=3x3 stride=2x1 pad=1_2x1_1}, to_apply=add",
    "window-dilated": "x = T[5,6] p\n z = T[] constant(-9)\n"
    " r = T[10,4] reduce-window(x, z), window={size=2x2 pad=1_1x0_0 lhs_dilate=2x1 rhs_dilate=1x2}, to_apply=mx",
    "window-prefix": "x = T[8] p\n z = T[] constant(0)\n r = T[8] reduce-window(x, z), window={size=8 pad=7_0},"
    " to_apply=add",
    "pad-mixed": "x = T[5,6] p\n z = T[] constant(7)\n r = T[10,9] pad(x, z), padding=-1_2_1x4_-1",
    "concatenate": "x = T[2,3] p\n y = T[2,5] p\n w = T[2,1] p\n r = T[2,9] concatenate(x, y, w), dimensions={1}",
    "reverse": "x = T[4,5,2] p\n r = T[4,5,2] reverse(x), dimensions={0,2}",
    "slice": "x = T[9,8] p\n r = T[4,3] slice(x), slice={[1:9:2], [2:5]}",
    "transpose": "x = T[2,3,4] p\n r = T[4,2,3] transpose(x), dimensions={2,0,1}",
    "broadcast": "x = T[3,2] p\n r = T[3,4,2] broadcast(x), dimensions={0,2}",
    "iota": "x = T[3,4] p\n i = T[3,4] iota(), iota_dimension=1\n r = T[3,4] add(x, i)",
    "dynamic-slice": "x = T[6,7] p\n i = s32[] p #-2,8\n j = s32[] p #-2,8\n"
    " r = T[3,2] dynamic-slice(x, i, j), dynamic_slice_sizes={3,2}",
    "dynamic-update-slice": "x = T[6,7] p\n u = T[3,2] p\n i = s32[] p #-2,8\n j = s32[] p #-2,8\n"
    " r = T[6,7] dynamic-update-slice(x, u, i, j)",
    "gather-rows": "x = T[6,7] p\n i = s32[5,1] p #-2,9\n r = T[5,7] gather(x, i), offset_dims={1},"
    " collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,7}",
    "gather-windows": "x = T[6,7] p\n i = s32[2,4] p #-2,9\n r = T[3,4] gather(x, i), offset_dims={0},"
    " collapsed_slice_dims={1}, start_index_map={1,0}, index_vector_dim=0, slice_sizes={3,1}",
    "gather-scalars": "x = T[6,7] p\n i = s32[3,4] p #-2,9\n r = T[3,4,7] gather(x, i), offset_dims={2},"
    " collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,7}",
    "gather-batched": "x = T[4,6,3] p\n i = s32[4,5,1] p #-1,7\n r = T[4,5,3] gather(x, i), offset_dims={2},"
    " collapsed_slice_dims={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, start_index_map={1},"
    " index_vector_dim=2, slice_sizes={1,1,3}",
    "scatter-add": "x = T[6,7] p\n i = s32[9,1] p #-2,8\n u = T[9,7] p\n r = T[6,7] scatter(x, i, u),"
    " update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1,"
    " to_apply=add",
    "scatter-max-windows": "x = T[6,7] p\n i = s32[5,2] p #0,3\n u = T[5,2,3] p\n r = T[6,7] scatter(x, i, u),"
    " update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1,"
    " to_apply=mx",
    "scatter-in-order": "x = T[3] p\n i = s32[8,1] p #0,2\n u = T[8] p\n r = T[3] scatter(x, i, u),"
    " update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1,"
    " to_apply=mad",
    "scatter-batched": "x = T[4,6] p\n i = s32[4,3,1] p #0,5\n u = T[4,3] p\n r = T[4,6] scatter(x, i, u),"
    " update_window_dims={}, inserted_window_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0},"
    " scatter_dims_to_operand_dims={1}, index_vector_dim=2, to_apply=add",
    "dot": "x = T[5,7] p\n y = T[7,3] p\n r = T[5,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "dot-batched": "x = T[2,5,7] p\n y = T[7,3,2] p\n r = T[2,5,3] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={2},"
    " lhs_contracting_dims={2}, rhs_contracting_dims={0}",
    "dot-two-contracted": "x = T[4,3,5] p\n y = T[5,6,3] p\n r = T[4,6] dot(x, y), lhs_contracting_dims={1,2},"
    " rhs_contracting_dims={2,0}",
    "convolution": "x = T[2,7,8,3] p\n k = T[3,2,3,4] p\n r = T[2,5,7,4] convolution(x, k), window={size=3x2},"
    " dim_labels=b01f_01io->b01f",
    "convolution-strided": "x = T[2,7,8,4] p\n k = T[3,2,2,6] p\n r = T[2,4,4,6] convolution(x, k),"
    " window={size=3x2 stride=2x2 pad=2_1x1_0 rhs_dilate=1x2 rhs_reversal=1x0}, dim_labels=b01f_01io->b01f,"
    " feature_group_count=2",
    "convolution-transposed": "x = T[1,5,2] p\n k = T[3,2,4] p\n r = T[1,9,4] convolution(x, k),"
    " window={size=3 pad=1_1 lhs_dilate=2}, dim_labels=b0f_0io->b0f",
    "convolution-batch-groups": "x = T[4,5,2] p\n k = T[2,2,6] p\n r = T[2,4,6] convolution(x, k), window={size=2},"
    " dim_labels=b0f_0io->b0f, batch_group_count=2",
    "sort": "x = T[4,37] p\n r = T[4,37] sort(x), dimensions={1}, to_apply=less",
    "sort-pairs": "x = T[9,5] p #0,4\n i = s32[9,5] iota(), iota_dimension=0\n"
    " r = (T[9,5], s32[9,5]) sort(x, i), dimensions={0}, is_stable=true, to_apply=less2",
    "while": "x = T[4] p\n z = s32[] constant(0)\n s = (s32[], T[4]) tuple(z, x)\n"
    " r = (s32[], T[4]) while(s), condition=more, body=step",
    "conditional": "x = T[4] p\n c = pred[] constant(false)\n"
    " r = T[4] conditional(c, x, x), true_computation=pos, false_computation=neg",
    "branches": "x = T[4] p\n c = s32[] p #0,3\n r = T[4] conditional(c, x, x, x), branch_computations={pos, neg, pos}",
    "map": "x = T[4,5] p\n y = T[4,5] p\n r = T[4,5] map(x, y), dimensions={0,1}, to_apply=sq",
    "clamp": "x = T[9] p\n l = T[] constant(-1)\n h = T[] constant(2)\n r = T[9] clamp(l, x, h)",
    "select": "x = T[9] p\n y = T[9] p\n c = pred[9] compare(x, y), direction=LT\n r = T[9] select(c, x, y)",
}
ONLY_INTEGERS = {"scatter-in-order"}  # XLA may combine floats in another order
DTYPES = ("s32", "f32")


def _module(body: str, dtype: str) -> tuple[str, list[Any]]:
    """The module's text, and seeded inputs for its parameters."""
    rng = np.random.default_rng(len(body))
    lines: list[str] = []
    arrays: list[Any] = []
    for line in body.replace("T[", dtype + "[").splitlines():
        found = re.match(r"\s*(\w+) = (\w+)\[([\d,]*)\] p(?: #(-?\d+),(-?\d+))?$", line)
        if found is None:
            lines.append(line)
            continue
        name, kind, dims, low, high = found.groups()
        shape = [int(dim) for dim in dims.split(",") if dim]
        numbers = rng.integers(int(low or -9), int(high or 9), shape, endpoint=True)
        if low is None and kind.startswith("f"):
            numbers = numbers + rng.standard_normal(shape)
        lines.append(f"{name} = {kind}[{dims}] parameter({len(arrays)})")
        arrays.append(np.asarray(numbers).astype(by_name(kind).numpy))
    lines[-1] = "ROOT " + lines[-1].strip()
    needed = COMBINERS.replace("T[", dtype + "[")
    return "HloModule m\n" + needed + "ENTRY e {\n  " + "\n  ".join(lines) + "\n}\n", arrays


@pytest.mark.slow
def test_structural_ops_agree_with_xla() -> None:
    """A wrong index, order, clamp or padding in any structural op would show here."""
    names = [(name, dtype) for name in CASES for dtype in DTYPES if dtype == "s32" or name not in ONLY_INTEGERS]
    modules = [_module(CASES[name], dtype) for name, dtype in names]
    answers = oracle.run_all(modules)
    for (name, dtype), (text, arrays), xla in zip(names, modules, answers, strict=True):
        assert not isinstance(xla, str), f"{name}: {xla}"
        mine = evaluate(parse_hlo(text), *arrays)
        assert len(mine) == len(xla)
        for a, b in zip(mine, xla, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape), name
            if a.dtype.kind == "f":
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-4, err_msg=f"{name} {dtype}")
            else:
                np.testing.assert_array_equal(a, b, err_msg=f"{name} {dtype}")
