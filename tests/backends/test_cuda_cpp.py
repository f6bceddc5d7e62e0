"""CUDA C++ as text: what kernels look like, that expressions mean what their trees mean, that numbers read back."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hero_kernels import body
from hypothesis import given, settings
from hypothesis import strategies as st

import warpsmith.ir.dialects
from warpsmith.backends.cuda_cpp import cuda_source
from warpsmith.backends.cuda_cpp.literals import float_literal, integer_value
from warpsmith.backends.cuda_cpp.pipeline import STRUCTURED_BLOCKS
from warpsmith.backends.cuda_cpp.types import INT, Expr, atom, binary, prefix
from warpsmith.cli import main
from warpsmith.compiler import stage_text
from warpsmith.errors import LoweringError, UsageError
from warpsmith.hlo.text.parser import parse_hlo
from warpsmith.ir.core.attributes import float_attr
from warpsmith.ir.core.types import BF16, F16, F32, F64, Type
from warpsmith.ir.text.parser import parse_module
from warpsmith.passes.manager import run_pipeline

assert warpsmith.ir.dialects.arith

TRANSPOSE = """HloModule m
ENTRY e { x = f32[1024,2048] parameter(0)  ROOT t = f32[2048,1024] transpose(x), dimensions={1,0} }"""
ROW_SUM = """HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
ENTRY e { x = f32[1024,2048] parameter(0)  z = f32[] constant(0)
  ROOT row_sum = f32[1024] reduce(x, z), dimensions={1}, to_apply=add }"""

TWO_KERNELS = """HloModule m
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
ENTRY e { x = f32[1024,2048] parameter(0)  z = f32[] constant(0)
  row_sum = f32[1024] reduce(x, z), dimensions={1}, to_apply=add
  t = f32[2048,1024] transpose(x), dimensions={1,0}
  ROOT r = (f32[1024], f32[2048,1024]) tuple(row_sum, t) }"""


def kernel(hlo: str, target: str = "sm_90") -> str:
    """The functions of a module's text, without what stands before them."""
    text = stage_text(parse_hlo(hlo), "cuda", target)
    start = re.search(r"^// \w+<<<", text, re.MULTILINE)
    assert start is not None
    return text[start.start() :]


def elementwise(op: str, type: str = "f32") -> str:
    """The kernel of a small fusion of x and y."""
    lines = [f"{name} = {type}[64] parameter({i})" for i, name in enumerate("xy")]
    return kernel(body("\n".join([*lines, *op.split("  ")])))


# ---------------------------------------------------------------------------------------------------------- whole texts
def test_a_transpose_is_what_one_would_write() -> None:
    assert (
        kernel(TRANSPOSE)
        == """\
// t<<<2048, 128>>>(...)
extern "C" __global__ void __launch_bounds__(128) t(const float* __restrict__ x, float* __restrict__ output) {
  __shared__ float tile[32 * 33];
  const int tid = threadIdx.x;
  const int bid = blockIdx.x;
  const int bx = bid % 64;
  const int warp = tid / 32;
  const int by = bid / 64;
  const int lane = tid % 32;
  const int x_base = bx * 32 + warp * 2048 + by * 65536 + lane;
  const int tile_base = lane * 33 + warp;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    tile[tile_base + i * 4] = x[x_base + i * 8192];
  }
  __syncthreads();
  const int tile_base_1 = warp * 33 + lane;
  const int output_base = bx * 32768 + warp * 1024 + by * 32 + lane;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    output[output_base + i * 4096] = tile[tile_base_1 + i * 132];
  }
}
"""
    )


def test_a_row_reduction_sums_in_one_variable_and_shuffles_in_place() -> None:
    text = kernel(ROW_SUM)
    assert "  float acc = 0.0f;\n" in text
    assert "      acc += x_vec[k];\n" in text
    assert [int(n) for n in re.findall(r"acc \+= __shfl_down_sync\(0xffffffff, acc, (\d+)\);", text)] == [
        16,
        8,
        4,
        2,
        1,
    ]
    assert "  if (lane == 0 && tid <= 224) {\n    tile[tid / 32] = acc;\n  }\n  __syncthreads();\n" in text
    assert "  float tile_value = tx <= 3 ? tile[ty * 4 + lane] : 0.0f;\n" in text


def test_a_dispatched_tile_kernel_moves_128_bits_and_keeps_registers_private() -> None:
    module = parse_module("""
module {
  memref.global "private" @A_smem : memref<256xf32, 3> = uninitialized {alignment = 64 : i64}
  func.func @k(%A_ptr: memref<256xf32> {llvm.noalias}, %B_ptr: memref<32xf32> {llvm.noalias}, %n: i32) attributes {
      xla.entry, warpsmith.block = array<i64: 32, 1, 1>, warpsmith.grid = array<i64: 1, 1, 1>,
      warpsmith.index_bits = 32 : i64, warpsmith.target = "sm_90"} {
    %R = "memref.alloca"() {alignment = 16 : i64, operandSegmentSizes = array<i32: 0, 0>} : () -> memref<8xf32, 5>
    %sum = "memref.alloca"() {tile.variable, operandSegmentSizes = array<i32: 0, 0>} : () -> memref<1xf32, 5>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %cst = arith.constant 0.0 : f32
    %lane = gpu.thread_id  x {xla.range = [0 : index, 31 : index]}
    %A_smem = memref.get_global @A_smem : memref<256xf32, 3>
    memref.store %cst, %sum[%c0] : memref<1xf32, 5>
    %row = arith.muli %lane, %c8 : index
    scf.for %f = %c0 to %c8 step %c4 {
      %at = arith.addi %row, %f {tile.comment = "copy A_smem <- A"} : index
      %v = vector.load %A_ptr[%at] {alignment = 16 : i64} : memref<256xf32>, vector<4xf32>
      vector.store %v, %A_smem[%at] {alignment = 16 : i64} : memref<256xf32, 3>, vector<4xf32>
    }
    gpu.barrier
    scf.for %f = %c0 to %c8 step %c1 {
      %at = arith.addi %row, %f : index
      %x = memref.load %A_smem[%at] : memref<256xf32, 3>
      %y = math.sqrt %x : f32
      memref.store %y, %R[%f] : memref<8xf32, 5>
      %old = memref.load %sum[%c0] : memref<1xf32, 5>
      %e = math.exp %y : f32
      %new = arith.addf %old, %e : f32
      memref.store %new, %sum[%c0] : memref<1xf32, 5>
    } {tile.unroll}
    %s = arith.index_cast %n : i32 to index
    %in = arith.cmpi slt, %lane, %s : index
    scf.if %in {
      %w = memref.load %sum[%c0] : memref<1xf32, 5>
      memref.store %w, %B_ptr[%lane] : memref<32xf32>
    }
    return
  }
}""")
    run_pipeline(module, STRUCTURED_BLOCKS)
    assert (
        cuda_source(module)
        == """\
// Compile without --use_fast_math: division, sqrt and subnormal numbers are IEEE 754's.

// k<<<1, 32>>>(...)
extern "C" __global__ void __launch_bounds__(32) k(
    const float* __restrict__ A_ptr,
    float* __restrict__ B_ptr,
    int n) {
  __shared__ alignas(64) float A_smem[256];
  alignas(16) float R[8];
  const int lane = threadIdx.x;
  float sum = 0.0f;
  const int row = lane * 8;
  for (int f = 0; f < 8; f += 4) {
    // copy A_smem <- A
    const int at = row + f;
    *reinterpret_cast<float4*>(&A_smem[at]) = *reinterpret_cast<const float4*>(&A_ptr[at]);
  }
  __syncthreads();
#pragma unroll
  for (int f = 0; f < 8; ++f) {
    const float y = sqrtf(A_smem[row + f]);
    R[f] = y;
    sum += expf(y);
  }
  if (lane < n) {
    B_ptr[lane] = sum;
  }
}
"""
    )


def test_an_atomic_without_an_instruction_tries_again() -> None:
    text = kernel("""HloModule m
larger { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] maximum(a, b) }
ENTRY e { x = f32[20,7] parameter(0)  i = s32[33,1] parameter(1)  u = f32[33,1,7] parameter(2)
  ROOT s = f32[20,7] scatter(x, i, u), update_window_dims={1,2}, inserted_window_dims={},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=larger }""")
    assert re.search(
        r"float old = x\[x_index\];\n *while \(!compare_exchange\(&x\[x_index\], old, maximum\(old, u_value\)\)\) {}",
        text,
    )


# ----------------------------------------------------------------------------------------------------------- statements
@pytest.mark.parametrize(
    ("op", "wanted"),
    [
        ("ROOT r = f32[64] add(x, y)", "r[tid] = x[tid] + y[tid];"),
        ("m = f32[64] multiply(x, y)  ROOT r = f32[64] negate(m)", "r[tid] = -(x[tid] * y[tid]);"),
        ("m = f32[64] multiply(x, y)  ROOT r = f32[64] add(m, y)", "= __fmul_rn(x[tid], y_value) + y_value;"),
        ("d = f32[64] divide(x, y)  ROOT r = f32[64] subtract(y, d)", "= y_value - x[tid] / y_value;"),
        ("s = f32[64] subtract(x, y)  ROOT r = f32[64] subtract(x, s)", "= x_value - (x_value - y[tid]);"),
        ("ROOT r = f32[64] sqrt(x)", "= sqrtf(x[tid]);"),
        ("ROOT r = f32[64] maximum(x, y)", "= maximum(x[tid], y[tid]);"),
    ],
)
def test_expressions_of_floats(op: str, wanted: str) -> None:
    text = elementwise(op)
    assert wanted in text, text


THIRD = """c = u8[] constant(3)
d = u8[64] broadcast(c), dimensions={}
a = u8[64] add(x, y)
ROOT r = u8[64] divide(a, d)"""


@pytest.mark.parametrize(
    ("type", "op", "wanted"),
    [
        ("s32", "ROOT r = s32[64] add(x, y)", "const unsigned* __restrict__ x"),
        ("s32", "ROOT r = s32[64] maximum(x, y)", "max(x[tid], y[tid])"),
        ("u8", "ROOT r = u8[64] add(x, y)", "= x[tid] + y[tid];"),
        ("u16", "ROOT r = u16[64] multiply(x, y)", "= unsigned(x[tid]) * y[tid];"),
        ("u8", THIRD, "uint8_t(x[tid] + y[tid]) / 3"),
    ],
)
def test_integers_wrap_and_are_cut_where_it_matters(type: str, op: str, wanted: str) -> None:
    text = elementwise(op, type)
    assert wanted in text, text


def test_indices_are_64_bits_wide_where_they_have_to_be() -> None:
    text = kernel("HloModule m\nENTRY e { x = s8[70000,70000] parameter(0)  ROOT r = s8[70000,70000] negate(x) }")
    assert "const int64_t bid = blockIdx.x;" in text


def test_kernels_of_a_module_are_one_file() -> None:
    text = stage_text(parse_hlo(TWO_KERNELS), "cuda", "sm_90")
    assert re.findall(r"// (\w+)<<<", text) == ["row_sum", "t"]
    assert text.count("struct alignas") == 1


# ------------------------------------------------------------------------------------------------- expressions, numbers
_VALUES = {"a": 5, "b": -3, "c": 11}
_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "<<": lambda x, y: x << (y & 3),
    "&": lambda x, y: x & y,
    "|": lambda x, y: x | y,
    "^": lambda x, y: x ^ y,
}


def _leaves() -> st.SearchStrategy[tuple[Expr, int]]:
    return st.sampled_from(sorted(_VALUES)).map(lambda name: (atom(name, INT), _VALUES[name]))


def _grown(inner: st.SearchStrategy[tuple[Expr, int]]) -> st.SearchStrategy[tuple[Expr, int]]:
    def both(op: str, x: tuple[Expr, int], y: tuple[Expr, int]) -> tuple[Expr, int]:
        if op == "<<":
            amount = binary("&", y[0], atom("3", INT), INT)
            return binary(op, x[0], amount, INT), _OPERATIONS[op](x[1], y[1])
        return binary(op, x[0], y[0], INT), _OPERATIONS[op](x[1], y[1])

    return st.one_of(
        st.builds(both, st.sampled_from(sorted(_OPERATIONS)), inner, inner),
        inner.map(lambda x: (prefix("-", x[0], INT), -x[1])),
        inner.map(lambda x: (prefix("~", x[0], INT), ~x[1])),
    )


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.recursive(_leaves(), _grown, max_leaves=12))
def test_text_means_what_the_tree_means(tree: tuple[Expr, int]) -> None:
    """Python binds these operators as C++ does."""
    expr, value = tree
    assert eval(expr.text, {}, dict(_VALUES)) == value
    assert "--" not in expr.text


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_f32_literals_read_back(bits: int) -> None:
    value = np.uint32(bits).view(np.float32)
    text = float_literal(float_attr(value, F32)).text
    if np.isfinite(value):
        assert np.float32(text.removesuffix("f")).tobytes() == value.tobytes()
    elif np.isinf(value):
        assert text == ("-INFINITY" if value < 0 else "INFINITY")
    else:
        assert text == "NAN" or int(text[text.index("0x") : -1], 16) == bits


@pytest.mark.parametrize(("type", "dtype"), [(F16, np.dtype(np.float16)), (BF16, np.dtype(ml_dtypes.bfloat16))])
def test_16_bit_literals_read_back(type: Type, dtype: np.dtype) -> None:
    """Every bit pattern: the shortest decimal that f32 and then the type round to it."""
    for bits in range(0, 1 << 16, 7):
        value = np.array([bits], np.uint16).view(dtype)[0]
        text = float_literal(float_attr(value, type)).text
        function, argument = text.rstrip(")").split("(")
        if function.startswith("__float2"):
            assert np.array([np.float32(argument.removesuffix("f"))]).astype(dtype).view(np.uint16)[0] == bits
        else:
            assert int(argument, 16) == bits


def test_f64_literals_read_back() -> None:
    for value in (0.1, -2.5e-300, 5e-324, 1e22):
        assert struct.pack("d", float(float_literal(float_attr(value, F64)).text)) == struct.pack("d", value)


@pytest.mark.parametrize(
    ("value", "bits", "signed", "text"),
    [
        (-3, 8, False, "253"),
        (-3, 8, True, "-3"),
        (-3, 4, False, "13"),
        (-1, 32, False, "0xffffffffu"),
        (5, 64, False, "5"),
    ],
)
def test_numbers_stored_in_variables(value: int, bits: int, signed: bool, text: str) -> None:
    assert integer_value(value, bits, signed=signed) == text


# --------------------------------------------------------------------------------------------------------------- errors
def test_an_op_without_a_form_is_refused_with_its_name() -> None:
    module = parse_module("""
module {
  func.func @k(%a: memref<8xf32>) attributes {xla.entry} {
    %c = arith.constant 3 : index
    %m = vector.create_mask %c : vector<8xi1>
    return
  }
}""")
    with pytest.raises(LoweringError, match=r"vector\.create_mask has no C\+\+ form"):
        cuda_source(module)


def test_a_cpu_has_no_such_stage() -> None:
    with pytest.raises(UsageError, match="no stage 'cuda'"):
        stage_text(parse_hlo(TRANSPOSE), "cuda", "cpu")


def test_the_command_prints_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.hlo"
    path.write_text(TRANSPOSE)
    assert main(["compile", str(path), "--target", "sm_90", "--stage", "cuda"]) == 0
    assert "__shared__ float tile[32 * 33];" in capsys.readouterr().out
