"""CUDA C++ through nvcc: no warning, and its PTX, run in the simulator, gives the interpreter's results.

That PTX is NVIDIA's compiler's, so this checks types, signs, parentheses, and that nothing was fused.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from differential import assert_close, fusion_of
from fusion_corpus import CASES, Case, inputs_of
from hero_kernels import case
from kernel_runner import from_memory, to_memory

from warpsmith.backends.cuda_cpp import cuda_source
from warpsmith.backends.cuda_cpp.backend import CudaCpp
from warpsmith.backends.cuda_cpp.helpers import preamble
from warpsmith.backends.nvptx.cuda_files import HELP, find
from warpsmith.devices import device
from warpsmith.emitters import emit
from warpsmith.hlo.evaluator import evaluate_with_bounds
from warpsmith.numerics.bounds import bound
from warpsmith.simt.core.checks import Checks
from warpsmith.simt.ptx.launch import PtxLaunch, simulate_ptx

NVCC = find("bin/nvcc", "WARPSMITH_NVCC")
pytestmark = pytest.mark.skipif(NVCC is None, reason=f"nvcc isn't installed: {HELP}")

TRANSPOSE = case("transpose", "x = f32[70,45] parameter(0)\nROOT t = f32[45,70] transpose(x), dimensions={1,0}")
SCATTER = case(
    "scatter",
    """x = f16[20,7] parameter(0)
    i = s32[33,1] parameter(1)
    u = f16[33,1,7] parameter(2)
    ROOT s = f16[20,7] scatter(x, i, u), update_window_dims={1,2}, inserted_window_dims={},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=min_f16""",
    indices=((1, 20),),
)
SOME: tuple[tuple[Case, str], ...] = (
    (CASES["gelu bf16"], "sm_80"),
    (CASES["gelu bf16"], "sm_90"),
    (CASES["f64 exact"], "sm_100"),
    (CASES["s8 elementwise"], "sm_90"),
    (CASES["large two outputs"], "sm_90"),
    (TRANSPOSE, "sm_100"),
    (SCATTER, "sm_80"),
)


def compiled(text: str, target: str, folder: Path, *flags: str) -> str:
    """nvcc's PTX of a text; a warning fails."""
    source, ptx = folder / "kernel.cu", folder / "kernel.ptx"
    source.write_text(text)
    command = [str(NVCC), "-ptx", f"-arch={target}", "-std=c++17", "--Werror", "all-warnings", *flags]
    done = subprocess.run([*command, str(source), "-o", str(ptx)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return ptx.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(("each", "target"), SOME, ids=[f"{each.name}-{target}" for each, target in SOME])
def test_nvccs_ptx_agrees_with_the_interpreter(each: Case, target: str, tmp_path: Path) -> None:
    module = each.module()
    arrays = inputs_of(each, module)
    expected, bounds = evaluate_with_bounds(module, *arrays, op_ulp_bound=bound)
    kernel = emit(fusion_of(module), device(target))
    CudaCpp(device(target)).lower(kernel, keep="ir")
    ptx = compiled(cuda_source(kernel.module), target, tmp_path)
    shapes = kernel.arguments
    inputs = [to_memory(array, shape) for array, shape in zip(arrays, shapes, strict=False)]
    outputs = shapes[len(arrays) :]
    found, _ = simulate_ptx(
        ptx,
        inputs,
        [(np.zeros(0, shape.dtype.numpy).dtype, shape.elements) for shape in outputs],
        PtxLaunch(kernel.launch.grid, kernel.launch.block, aliases=kernel.aliases),
        checks=Checks(),
    )
    results = [from_memory(data, shape) for data, shape in zip(found, outputs, strict=True)]
    assert_close(results, expected, bounds, module, f"{each.name} on {target}")


@pytest.mark.slow
def test_fmad_changes_nothing(tmp_path: Path) -> None:
    """Products that feed sums are functions that aren't fused: the PTX has no fma, whatever the flag says."""
    fused = case(
        "axpy",
        """x = f32[64] parameter(0)
        y = f32[64] parameter(1)
        m = f32[64] multiply(x, y)
        ROOT r = f32[64] add(m, y)""",
    )
    kernel = emit(fusion_of(fused.module()), device("sm_90"))
    CudaCpp(device("sm_90")).lower(kernel, keep="ir")
    text = cuda_source(kernel.module)
    plain = re.sub(r"__fmul_rn\(([^,]+), ([^)]+)\)", r"\1 * \2", text)
    assert "fma." in compiled(plain, "sm_90", tmp_path)
    for flag in ("-fmad=true", "-fmad=false"):
        ptx = compiled(text, "sm_90", tmp_path, flag)
        assert "mul.rn.f32" in ptx
        assert "fma." not in ptx


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
def test_every_helper_function_compiles(target: str, tmp_path: Path) -> None:
    stores = "stmatrix_x4(h, a.lane); stmatrix_x2_trans(h, b.lane);" if target != "sm_80" else ""
    use = f"""
extern "C" __global__ void k(__half* h, __nv_bfloat16* n, float* f, double* d, uint8_t* u) {{
  Vec<__half, 8> a;
  Vec<__half, 4> b;
  Vec<__nv_bfloat16, 8> p;
  Vec<__nv_bfloat16, 4> q;
  Vec<float, 4> c = {{}};
  ldmatrix_x4(a.lane, h); ldmatrix_x2_trans(b.lane, h); ldmatrix_x4_trans(p.lane, n); ldmatrix_x2(q.lane, n);
  mma_m16n8k16_f16(c.lane, a.lane, b.lane);
  mma_m16n8k16_bf16(c.lane, p.lane, q.lane);
  {stores}
  copy_async<16>(h, n); copy_async<4>(h, n); copy_async_commit(); copy_async_wait<0>(); named_barrier(1, 64);
  f[lane_id()] = c[0] + minimum(maximum(c[2], c[3]), c[1]) + elect_one();
  d[0] = minimum(maximum(d[1], d[2]), d[3]);
  atomic_or_byte(u, 3u); atomic_and_byte(u, 3u);
  uint8_t old = u[0];
  while (!compare_exchange(u, old, old * 3)) {{}}
  __half half_old = h[0];
  while (!compare_exchange(h, half_old, half_old * half_old)) {{}}
  double double_old = d[0];
  while (!compare_exchange(d, double_old, double_old * 2)) {{}}
  f[1] = sign_extend<4>(7u) + ceil_div(5u, 2u) + floor_div(-5, 2) + bit_cast<float>(3u);
  store_vec(f, load_vec<Vec<float, 4>>(f + 1));
}}
"""
    stored = ("stmatrix_x4", "stmatrix_x2_trans") if target != "sm_80" else ()
    names = [
        *("header f16", "header bf16", "Vec", "bit_cast", "load_vec", "store_vec", "sign_extend", "ceil_div"),
        *("floor_div", "maximum", "minimum", "maximum_f64", "minimum_f64", "compare_exchange", "atomic_or_byte"),
        *("atomic_and_byte", "lane_id", "named_barrier", "elect_one", "copy_async", "copy_async_commit"),
        *("copy_async_wait", "mma_m16n8k16_f16", "mma_m16n8k16_bf16", "ldmatrix_x4", "ldmatrix_x2_trans"),
        *("ldmatrix_x4_trans", "ldmatrix_x2", *stored),
    ]
    text = compiled(preamble(names, use) + use, target, tmp_path)
    for instruction in ("mma.sync.aligned.m16n8k16", "ldmatrix.sync", "cp.async.cg", "max.NaN.f32", "atom.cas.b16"):
        assert instruction in text.replace("atom.global", "atom").replace("atom.relaxed", "atom"), instruction
