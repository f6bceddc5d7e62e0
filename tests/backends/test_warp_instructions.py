"""A warp's ops on their way to machine code: which PTX instructions they become, and which targets lack them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from needs import needs_ptxas
from warp_kernels import DTYPES, TARGETS, cuda, in_registers, ptx, staged

from warpsmith.arrays import Array
from warpsmith.backends.cuda_cpp import cuda_source
from warpsmith.backends.cuda_cpp.pipeline import STRUCTURED_BLOCKS
from warpsmith.backends.nvptx import codegen as nvptx_codegen
from warpsmith.backends.nvptx import ptxas
from warpsmith.backends.nvptx.cuda_files import HELP, find
from warpsmith.errors import LoweringError
from warpsmith.ir.text.parser import parse_module
from warpsmith.passes.manager import run_pipeline
from warpsmith.simt.core.checks import Checks
from warpsmith.simt.ptx.launch import PtxLaunch, simulate_ptx

NVCC = find("bin/nvcc", "WARPSMITH_NVCC")
needs_nvcc = pytest.mark.skipif(NVCC is None, reason=f"nvcc isn't installed: {HELP}")
ELEMENTS = ("f16", "bf16")
COUNTS = {1: "vector<2xf16>", 2: "vector<4xf16>", 4: "vector<8xf16>"}


def one_op(body: str, target: str) -> str:
    """A kernel of one op on 256 shared elements: %s at %t, and 256 global ones: %g."""
    groups = ", %begin: index, %end: index" if target == "cpu" else ""
    return f"""
memref.global "private" @s : memref<256xf16, 3> = uninitialized
func.func @k(%g: memref<256xf16>{groups}) attributes {{xla.entry, warpsmith.block = array<i64: 32, 1, 1>,
    warpsmith.grid = array<i64: 1, 1, 1>, warpsmith.index_bits = 32 : i64, warpsmith.target = "{target}"}} {{
  %s = memref.get_global @s : memref<256xf16, 3>
  %t = gpu.thread_id x {{xla.range = [0 : index, 31 : index]}}
  {body}
  return
}}"""


def copy(size: int) -> str:
    types = "(memref<256xf16, 3>, index, memref<256xf16>, index) -> ()"
    return f'"nvgpu.device_async_copy"(%s, %t, %g, %t) {{bytes = {size} : i64}} : {types}'


def load(count: int, transpose: bool) -> str:
    """A load whose first element is used."""
    attributes = f"num_tiles = {count} : i64, transpose = {str(transpose).lower()}"
    return f"""%a = "nvgpu.ldmatrix"(%s, %t) {{{attributes}}} : (memref<256xf16, 3>, index) -> {COUNTS[count]}
  %x = vector.extract %a[{2 * count - 1}] : f16 from {COUNTS[count]}
  memref.store %x, %g[%t] : memref<256xf16>"""


def store(count: int, transpose: bool) -> str:
    attributes = f"num_tiles = {count} : i64, transpose = {str(transpose).lower()}"
    return f"""%a = vector.load %g[%t] : memref<256xf16>, {COUNTS[count]}
  "nvgpu.stmatrix"(%a, %s, %t) {{{attributes}}} : ({COUNTS[count]}, memref<256xf16, 3>, index) -> ()"""


PRODUCT = """%a = arith.constant dense<1.0> : vector<8xf16>
  %b = arith.constant dense<1.0> : vector<4xf16>
  %c = arith.constant dense<1.0> : vector<4xf32>
  %d = "nvgpu.mma.sync"(%a, %b, %c) {shape = array<i64: 16, 8, 16>}
    : (vector<8xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>"""
USE = """
  %x = vector.extract %d[0] : f32 from vector<4xf32>
  %y = arith.truncf %x : f32 to f16
  memref.store %y, %g[%t] : memref<256xf16>"""
COMMIT = '"nvvm.cp.async.commit.group"() : () -> ()'
ELECT = '%e = "nvvm.elect.sync"() : () -> i1\n  scf.if %e {\n    gpu.barrier\n  }'


# ------------------------------------------------------------------------------------------------------------------ PTX
def moves(verb: str, body: Callable[[int, bool], str], operands: str) -> dict[str, tuple[str, str]]:
    """Each way to move tiles, and the instruction that it is."""
    found: dict[str, tuple[str, str]] = {}
    for count in COUNTS:
        registers = "{" + ", ".join([r"%\w+"] * count) + "}"
        for transpose in (False, True):
            name = f"{verb}.sync.aligned.m8n8.x{count}{'.trans' if transpose else ''}.shared.b16"
            found[name] = (body(count, transpose), re.escape(name) + " " + operands.replace("REGISTERS", registers))
    return found


LOADS = moves("ldmatrix", load, r"REGISTERS, \[%\w+\];")
STORES = moves("stmatrix", store, r"\[%\w+\], REGISTERS;")
INSTRUCTIONS = LOADS | {
    "copy 4": (copy(4), r"cp\.async\.ca\.shared\.global \[%\w+\], \[%\w+\], 4;"),
    "copy 8": (copy(8), r"cp\.async\.ca\.shared\.global \[%\w+\], \[%\w+\], 8;"),
    "copy 16": (copy(16), r"cp\.async\.cg\.shared\.global \[%\w+\], \[%\w+\], 16;"),
    "commit": (COMMIT, r"cp\.async\.commit_group;"),
    "wait": ('"nvvm.cp.async.wait.group"() {n = 3 : i32} : () -> ()', r"cp\.async\.wait_group\s+3;"),
    "product": (PRODUCT + USE, r"mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.f16\.f16\.f32"),
}


@pytest.mark.parametrize("target", TARGETS)
def test_each_op_is_one_instruction(target: str) -> None:
    for name, (body, pattern) in (INSTRUCTIONS if target == "sm_80" else INSTRUCTIONS | STORES).items():
        text = ptx(parse_module(one_op(body, target)), target)
        assert len(re.findall(pattern, text)) == 1, (name, text)


def test_a_lane_is_elected_by_an_instruction_or_by_who_is_active() -> None:
    assert "elect.sync" in ptx(parse_module(one_op(ELECT, "sm_90")), "sm_90")
    old = ptx(parse_module(one_op(ELECT, "sm_80")), "sm_80")
    assert "elect.sync" not in old
    assert re.search(r"activemask\.b32", old)
    assert "%laneid" in old


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("element", ELEMENTS)
def test_a_product_keeps_its_operands_and_its_sum_in_registers(element: str, target: str) -> None:
    """No conversion of 16-bit operands, no local memory, and the sum is added to where it is."""
    for module in (staged(element, target, stores=target != "sm_80"), in_registers(element, target)):
        text = ptx(module, target)
        assert ".local" not in text
        found = re.findall(
            rf"mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.{element}\.{element}\.f32\s+({{[^}}]*}}),\s+{{(.*)}},\s+{{(.*)}}",
            text,
        )
        assert found
        for _, a, b in found:
            assert len(a.split(", ")) == 4
            assert len(b.split(", ")) == 2
        assert not re.search(rf"cvt\.\w*\.?f32\.{element}\b", text)
    assert text.count("ldmatrix.sync") == 3


def test_the_sum_of_a_loop_is_accumulated_in_place() -> None:
    text = ptx(staged("f16", "sm_80", stores=False), "sm_80")
    result, _, _, start = re.findall(r"\t({%r[^}]*}|{%f[^}]*})[,;]", text[text.index("mma.sync") :])[:4]
    assert result == start


def test_shared_arrays_are_aligned_as_asked() -> None:
    assert text_of_shared(ptx(staged("f16", "sm_80", stores=False), "sm_80")) == {"A_smem": 128, "B_smem": 128}


def text_of_shared(text: str) -> dict[str, int]:
    return {name: int(align) for align, name in re.findall(r"\.shared \.align (\d+) \.b8 (\w+)\[", text)}


@needs_ptxas
@pytest.mark.parametrize("target", TARGETS)
def test_ptxas_takes_it(target: str) -> None:
    bodies = INSTRUCTIONS if target == "sm_80" else INSTRUCTIONS | STORES
    together = "\n".join(re.sub(r"%([a-fx])\b", rf"%\g<1>_{i}", body) for i, (body, _) in enumerate(bodies.values()))
    texts = [ptx(parse_module(one_op(together, target)), target), ptx(parse_module(one_op(ELECT, target)), target)]
    for element in ELEMENTS:
        texts.append(ptx(staged(element, target, stores=target != "sm_80"), target))
        texts.append(ptx(in_registers(element, target), target))
    for text in texts:
        assert ptxas.assemble(text, target).kernels[0].spill_stores == 0


# -------------------------------------------------------------------------------------------------------------- results
def check_products(staged_text: str, registers_text: str, element: str, *, stores: bool) -> None:
    """Run two kernels' PTX: products of small integers, which are exact, against numpy's."""
    random = np.random.default_rng(5)
    dtype = DTYPES[element]

    def run(text: str, shapes: tuple[tuple[int, int], tuple[int, int]], outputs: list[np.dtype[Any]]) -> list[Array]:
        a, b = (random.integers(-4, 5, shape).astype(dtype) for shape in shapes)
        wanted = a.astype(np.float32) @ b.astype(np.float32)
        sizes = [(each, wanted.size) for each in outputs]
        found, stats = simulate_ptx(text, [a.ravel(), b.ravel()], sizes, PtxLaunch((1,), (32,)), checks=Checks())
        assert {each.code for each in stats.findings} <= (set() if stores else {"unwritten-output"})
        assert np.array_equal(found[0].reshape(wanted.shape), wanted)
        return [wanted.ravel(), *found[1:]]

    f32 = np.dtype(np.float32)
    wanted, narrow = run(staged_text, ((16, 64), (64, 8)), [f32, dtype])
    if stores:
        assert np.array_equal(narrow, wanted.astype(dtype))
    run(registers_text, ((32, 16), (16, 8)), [f32])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("element", ELEMENTS)
def test_llvms_ptx_multiplies_matrices(element: str, target: str) -> None:
    stores = target != "sm_80"
    texts = (ptx(staged(element, target, stores=stores), target), ptx(in_registers(element, target), target))
    check_products(*texts, element, stores=stores)


@pytest.mark.slow
@needs_nvcc
@pytest.mark.parametrize(("element", "target"), [("f16", "sm_80"), ("bf16", "sm_90"), ("f16", "sm_100")])
def test_nvccs_ptx_multiplies_matrices(element: str, target: str, tmp_path: Path) -> None:
    stores = target != "sm_80"
    one = compiled(cuda(staged(element, target, stores=stores)), target, tmp_path)
    other = compiled(cuda(in_registers(element, target)), target, tmp_path)
    check_products(one, other, element, stores=stores)


def compiled(text: str, target: str, folder: Path) -> str:
    """nvcc's PTX of a text; a warning fails."""
    source, out = folder / "kernel.cu", folder / "kernel.ptx"
    source.write_text(text)
    command = [str(NVCC), "-ptx", f"-arch={target}", "-std=c++17", "--Werror", "all-warnings", str(source)]
    done = subprocess.run([*command, "-o", str(out)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out.read_text()


@pytest.mark.parametrize("target", TARGETS)
def test_one_lane_is_elected(target: str) -> None:
    body = """%e = "nvvm.elect.sync"() : () -> i1
  %one = arith.constant 1.0 : f16
  %zero = arith.constant 0.0 : f16
  %x = arith.select %e, %one, %zero : f16
  memref.store %x, %g[%t] : memref<256xf16>"""
    text = ptx(parse_module(one_op(body, target)), target)
    (found,), _ = simulate_ptx(text, [], [(np.dtype(np.float16), 256)], PtxLaunch((1,), (32,)))
    assert found[:32].sum() == 1


# --------------------------------------------------------------------------------------------------------- capabilities
MISSING = [
    (copy(16), "sm_75", "nvgpu.device_async_copy needs compute capability 8.0, but the target sm_75 has 7.5"),
    (COMMIT, "sm_75", "needs compute capability 8.0"),
    ('"nvvm.cp.async.wait.group"() {n = 0 : i32} : () -> ()', "sm_75", "needs compute capability 8.0"),
    (PRODUCT, "sm_75", "nvgpu.mma.sync needs compute capability 8.0"),
    (store(4, False), "sm_89", "nvgpu.stmatrix needs compute capability 9.0, but the target sm_89 has 8.9"),
    (load(4, False), "sm_70", "nvgpu.ldmatrix needs compute capability 7.5"),
    (COMMIT, "cpu", "nvvm.cp.async.commit.group needs compute capability 8.0, but the target cpu is no GPU"),
]


@pytest.mark.parametrize(("body", "target", "words"), MISSING)
def test_a_target_without_the_instruction_is_refused_by_name(body: str, target: str, words: str) -> None:
    with pytest.raises(LoweringError, match=re.escape(words)) as caught:
        ptx(parse_module(one_op(body, target)), target)
    assert "compile for sm_" in (caught.value.help or "")
    assert caught.value.span is not None
    with pytest.raises(LoweringError, match=re.escape(words)):
        cuda(parse_module(one_op(body, target)))


@pytest.mark.parametrize(("body", "target"), [(load(4, True), "sm_75"), (store(2, True), "sm_90a"), (PRODUCT, "sm_86")])
def test_the_least_that_has_it_is_taken(body: str, target: str) -> None:
    assert f".target {target}\n" in ptx(parse_module(one_op(body, target)), target)


@pytest.mark.parametrize(
    ("declaration", "call", "sm"),
    [
        ("declare void @llvm.nvvm.cp.async.commit.group()", "call void @llvm.nvvm.cp.async.commit.group()", "sm_75"),
        (
            "declare { i32, i1 } @llvm.nvvm.elect.sync(i32)",
            "%e = call { i32, i1 } @llvm.nvvm.elect.sync(i32 -1)\n%f = extractvalue { i32, i1 } %e, 0\n"
            "store i32 %f, ptr %p",
            "sm_80",
        ),
    ],
)
def test_an_instruction_that_is_newer_than_the_target_does_not_end_the_process(
    declaration: str, call: str, sm: str
) -> None:
    """LLVM aborts: it has to be in a worker."""
    text = f"{declaration}\ndefine ptx_kernel void @k(ptr %p) {{\n{call}\nret void\n}}\n"
    with pytest.raises(LoweringError):
        nvptx_codegen.ptx_from_llvm(text, sm)


# ------------------------------------------------------------------------------------------------------------- CUDA C++
STAGED_CUDA = """\
  Vec<float, 4> c = {};
  for (int i = 0; i < 4; ++i) {
    // A_smem <- A, B_smem <- B
    copy_async<16>(&A_smem[A_to], &A[A_from + i * 16]);
    copy_async<8>(&B_smem[B_to], &B[B_to + i * 128]);
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
    Vec<__half, 8> a;
    ldmatrix_x4(a.lane, &A_smem[A_row]);
    Vec<__half, 4> b;
    ldmatrix_x2_trans(b.lane, &B_smem[B_row]);
    mma_m16n8k16_f16(c.lane, a.lane, b.lane);
    __syncthreads();
  }
"""
REGISTERS_CUDA = """\
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    *reinterpret_cast<Vec<float, 4>*>(&acc[i * 4]) = Vec<float, 4>{};
    ldmatrix_x4(&A_frag[i * 8], &A_smem[A_row + i * 256]);
  }
  ldmatrix_x2_trans(B_frag, &B_smem[r * 8]);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int i4 = i * 4;
    mma_m16n8k16_bf16(&acc[i4], &A_frag[i * 8], B_frag);
  }
"""


def test_a_carried_sum_is_one_variable_that_products_are_added_to() -> None:
    text = cuda(staged("f16", "sm_90"))
    assert STAGED_CUDA in text
    assert "  stmatrix_x2(&B_smem[B_row], narrow.lane);\n  __syncwarp();\n" in text


def test_fragments_in_arrays_are_used_where_they_are() -> None:
    assert REGISTERS_CUDA in cuda(in_registers("bf16", "sm_80"))


def test_a_sum_that_is_used_again_is_copied_first() -> None:
    """Both products start from %c: in place, the second would start from the first one's result."""
    text = cuda(
        parse_module(
            one_op(
                PRODUCT
                + '\n  %e = "nvgpu.mma.sync"(%a, %b, %d) {shape = array<i64: 16, 8, 16>}'
                + " : (vector<8xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>"
                + '\n  %f = "nvgpu.mma.sync"(%a, %b, %d) {shape = array<i64: 16, 8, 16>}'
                + " : (vector<8xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>",
                "sm_80",
            )
        )
    )
    body = text[text.index("// k<<<") :]
    assert "Vec<float, 4> e = d;\n  mma_m16n8k16_f16(e.lane, " in body
    assert "Vec<float, 4> f = d;\n  mma_m16n8k16_f16(f.lane, " in body


def test_a_sum_that_an_inner_loop_starts_from_is_copied_in_it() -> None:
    text = cuda(
        parse_module(
            one_op(
                PRODUCT
                + """
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  scf.for %i = %c0 to %c9 step %c1 {
    %e = "nvgpu.mma.sync"(%a, %b, %d) {shape = array<i64: 16, 8, 16>}
      : (vector<8xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
    %x = vector.extract %e[0] : f32 from vector<4xf32>
    %h = arith.truncf %x : f32 to f16
    memref.store %h, %g[%i] : memref<256xf16>
  }""",
                "sm_80",
            )
        )
    )
    assert re.search(r"\{\n    Vec<float, 4> e = d;\n    mma_m16n8k16_f16\(e\.lane, ", text)


@needs_nvcc
@pytest.mark.parametrize("target", TARGETS)
def test_nvcc_takes_the_text(target: str, tmp_path: Path) -> None:
    """A warning fails."""
    bodies = INSTRUCTIONS if target == "sm_80" else INSTRUCTIONS | STORES
    modules = [parse_module(one_op(body, target)) for body, _ in bodies.values()]
    for element in ELEMENTS:
        modules += [staged(element, target, stores=target != "sm_80"), in_registers(element, target)]
    for module in modules:
        run_pipeline(module, STRUCTURED_BLOCKS)
    text = compiled(cuda_source(*modules), target, tmp_path)
    assert text.count("mma.sync.aligned.m16n8k16") == 1 + 2 * (4 + 2)  # nvcc unrolls
