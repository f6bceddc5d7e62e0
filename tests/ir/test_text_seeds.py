"""The IR that the published walk-through shows is read, is valid, and prints back to itself.

The snippets are the walk-through's, with its few slips put right: names that differ between signature and body,
constants and ids that a snippet leaves out, `...`, and a missing comma.
"""

from __future__ import annotations

import pytest
from oracle.equality import structurally_equal

from warpsmith.ir.core.ssa import Operation
from warpsmith.ir.core.verifier import verify
from warpsmith.ir.text.parser import parse_module
from warpsmith.ir.text.printer import print_module
from warpsmith.passes.manager import lookup
from warpsmith.passes.support.legality import Legality

_MAP = """#map = #xla_gpu.indexing_map<"(th_x, bl_x)[vector_index] -> ("
 "bl_x floordiv 4096, (bl_x floordiv 8) mod 512, (bl_x mod 8) * 512 + th_x * 4 + vector_index),"
 "domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]">
"""

EMITTED = (
    _MAP
    + """
func.func @main(%input: tensor<6x512x4096xbf16> , %output: tensor<6x512x4096xbf16>)
   -> tensor<6x512x4096xbf16> {
 %thread_id_x = gpu.thread_id  x {xla.range = [0 : index, 127 : index]}
 %block_id_x = gpu.block_id  x {xla.range = [0 : index, 24575 : index]}

 %xla_loop = xla_gpu.loop (%thread_id_x, %block_id_x)[%vector_index] -> (%dim0, %dim1, %dim2)
     in #map iter_args(%iter = %output) -> (tensor<6x512x4096xbf16>) {
   %pure_call = xla_gpu.pure_call @gelu(%input, %dim0, %dim1, %dim2)
      : (tensor<6x512x4096xbf16>, index, index, index) -> bf16
   %inserted = tensor.insert %pure_call into %iter[%dim0, %dim1, %dim2] : tensor<6x512x4096xbf16>
   xla_gpu.yield %inserted : tensor<6x512x4096xbf16>
 }
 return %xla_loop : tensor<6x512x4096xbf16>
}

func.func private @gelu(%arg0: tensor<6x512x4096xbf16>, %i: index, %j: index, %k: index) -> bf16 {
  %cst = arith.constant 5.000000e-01 : bf16
  %cst_0 = arith.constant 1.000000e+00 : bf16
  %cst_1 = arith.constant 7.968750e-01 : bf16
  %cst_2 = arith.constant 4.467770e-02 : bf16
  %extracted = tensor.extract %arg0[%i, %j, %k] : tensor<6x512x4096xbf16>
  %0 = arith.mulf %extracted, %extracted : bf16
  %1 = arith.mulf %0, %extracted : bf16
  %2 = arith.mulf %1, %cst_2 : bf16
  %3 = arith.addf %extracted, %2 : bf16
  %4 = arith.mulf %3, %cst_1 : bf16
  %5 = math.tanh %4 : bf16
  %6 = arith.addf %5, %cst_0 : bf16
  %7 = arith.mulf %6, %cst : bf16
  %8 = arith.mulf %extracted, %7 : bf16
  return %8 : bf16
}
"""
)

SCF = (
    _MAP.replace("#map =", "#map0 =")
    + """
#map = #xla_gpu.indexing_map<"(th_x, bl_x)[v] -> (bl_x floordiv 4096),"
 "domain: th_x in [0, 127], bl_x in [0, 24575], v in [0, 3]">
#map1 = #xla_gpu.indexing_map<"(th_x, bl_x)[v] -> ((bl_x floordiv 8) mod 512),"
 "domain: th_x in [0, 127], bl_x in [0, 24575], v in [0, 3]">
#map2 = #xla_gpu.indexing_map<"(th_x, bl_x)[v] -> ((bl_x mod 8) * 512 + th_x * 4 + v),"
 "domain: th_x in [0, 127], bl_x in [0, 24575], v in [0, 3]">
func.func @main(%input: tensor<6x512x4096xbf16>, %output: tensor<6x512x4096xbf16>) -> tensor<6x512x4096xbf16> {
 %c0 = arith.constant 0 : index
 %c1 = arith.constant 1 : index
 %c4 = arith.constant 4 : index
 %c127 = arith.constant 127 : index
 %c24575 = arith.constant 24575 : index
 %thread_id_x = gpu.thread_id  x {xla.range = [0 : index, 127 : index]}
 %block_id_x = gpu.block_id  x {xla.range = [0 : index, 24575 : index]}
%xla_loop = scf.for %vector_index = %c0 to %c4 step %c1 iter_args(%iter = %output) -> (tensor<6x512x4096xbf16>) {
   %2 = arith.cmpi sge, %thread_id_x, %c0 : index
   %3 = arith.cmpi sle, %thread_id_x, %c127 : index
   %4 = arith.andi %2, %3 : i1
   %5 = arith.cmpi sge, %block_id_x, %c0 : index
   %6 = arith.cmpi sle, %block_id_x, %c24575 : index
   %7 = arith.andi %5, %6 : i1
   %inbounds = arith.andi %4, %7 : i1
   %9 = scf.if %inbounds -> (tensor<6x512x4096xbf16>) {
     %dim0 = xla_gpu.apply_indexing #map(%thread_id_x,  %block_id_x)[%vector_index]
     %dim1 = xla_gpu.apply_indexing #map1(%thread_id_x, %block_id_x)[%vector_index]
     %dim2 = xla_gpu.apply_indexing #map2(%thread_id_x, %block_id_x)[%vector_index]
     %extracted = tensor.extract %input[%dim0, %dim1, %dim2] : tensor<6x512x4096xbf16>
     // ... more arithmetic operations
     %29 = arith.mulf %extracted, %extracted : bf16
     %inserted = tensor.insert %29 into %iter[%dim0, %dim1, %dim2] : tensor<6x512x4096xbf16>
     scf.yield %inserted : tensor<6x512x4096xbf16>
   } else {
     scf.yield %iter : tensor<6x512x4096xbf16>
   }
   scf.yield %9 : tensor<6x512x4096xbf16>
 }
 return %xla_loop : tensor<6x512x4096xbf16>
}
"""
)

_FLAT_MAP = """#map = #xla_gpu.indexing_map<"(th_x, bl_x, vector_index) -> (th_x * 4 + bl_x * 512 + vector_index),"
 "domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]">
"""
_IDS = """
 %c0 = arith.constant 0 : index
 %c1 = arith.constant 1 : index
 %c2 = arith.constant 2 : index
 %c4 = arith.constant 4 : index
 %cst = arith.constant 5.000000e-01 : bf16
 %thread_id_x = gpu.thread_id  x {xla.range = [0 : index, 127 : index]}
 %block_id_x = gpu.block_id  x {xla.range = [0 : index, 24575 : index]}
"""

FLAT = (
    _FLAT_MAP
    + "func.func @main(%input: tensor<12582912xbf16>, %output: tensor<12582912xbf16>) -> tensor<12582912xbf16> {"
    + _IDS
    + """
 %xla_loop = scf.for %vector_index = %c0 to %c4 step %c1 iter_args(%iter = %output) -> (tensor<12582912xbf16>) {
   %dim = xla_gpu.apply_indexing #map(%thread_id_x, %block_id_x, %vector_index)
   %extracted = tensor.extract %input[%dim] : tensor<12582912xbf16>
   %2 = arith.mulf %extracted, %extracted : bf16
   %10 = arith.mulf %extracted, %2 : bf16
   %inserted = tensor.insert %10 into %iter[%dim] : tensor<12582912xbf16>
   scf.yield %inserted : tensor<12582912xbf16>
 }
 return %xla_loop : tensor<12582912xbf16>
}
"""
)

VECTORIZED = (
    _FLAT_MAP
    + "func.func @main(%input: tensor<12582912xbf16>, %output: tensor<12582912xbf16>) -> tensor<12582912xbf16> {"
    + _IDS
    + """
 %vector_0 = arith.constant dense<0.000000e+00> : vector<4xbf16>
 %0 = xla_gpu.apply_indexing #map(%thread_id_x, %block_id_x, %c0)
 %2 = vector.transfer_read %input[%0], %cst {in_bounds = [true]} : tensor<12582912xbf16>, vector<4xbf16>
 %xla_loop:2 = scf.for %vector_index = %c0 to %c4 step %c1
     iter_args(%iter = %output, %iter_vector = %vector_0) -> (tensor<12582912xbf16>, vector<4xbf16>) {
   %5 = vector.extract %2[%vector_index] : bf16 from vector<4xbf16>
   %6 = arith.mulf %5, %5 : bf16
   %14 = arith.mulf %5, %6 : bf16
   %15 = vector.insert %14, %iter_vector [%vector_index] : bf16 into vector<4xbf16>
   scf.yield %iter, %15 : tensor<12582912xbf16>, vector<4xbf16>
 }
 %4 = vector.transfer_write %xla_loop#1, %output[%0] {in_bounds = [true]}
     : vector<4xbf16>, tensor<12582912xbf16>
 return %4 : tensor<12582912xbf16>
}
"""
)

UNROLLED = (
    _FLAT_MAP
    + "func.func @main(%input: tensor<12582912xbf16>, %arg1: tensor<12582912xbf16>) -> tensor<12582912xbf16> {"
    + _IDS
    + """
  %cst_0 = arith.constant dense<0.000000e+00> : vector<4xbf16>
  %dim = xla_gpu.apply_indexing #map(%thread_id_x, %block_id_x, %c0)
  %2 = vector.transfer_read %input[%dim], %cst {in_bounds = [true]} : tensor<12582912xbf16>, vector<4xbf16>
  %3 = vector.extract %2[%c0] : bf16 from vector<4xbf16>
  %12 = arith.mulf %3, %3 : bf16
  %13 = vector.insert %12, %cst_0 [%c0] : bf16 into vector<4xbf16>
  %14 = vector.extract %2[%c1] : bf16 from vector<4xbf16>
  %24 = vector.insert %14, %13 [%c1] : bf16 into vector<4xbf16>
  %47 = vector.transfer_write %24, %arg1[%dim] {in_bounds = [true]} : vector<4xbf16>, tensor<12582912xbf16>
  return %47 : tensor<12582912xbf16>
}
"""
)

LLVM = """
llvm.func @__nv_tanhf(f32) -> f32
llvm.func @main(%arg0: !llvm.ptr, %arg1: !llvm.ptr) {
  %0 = llvm.mlir.constant(512 : i32) : i32
  %1 = llvm.mlir.constant(4 : i32) : i32
  %2 = llvm.mlir.constant(0 : i32) : i32
  %5 = llvm.mlir.constant(7.968750e-01 : bf16) : bf16
  %8 = llvm.mlir.constant(dense<0.000000e+00> : vector<4xbf16>) : vector<4xbf16>
  %11 = nvvm.read.ptx.sreg.tid.x : i32
  %12 = nvvm.read.ptx.sreg.ctaid.x : i32
  %13 = llvm.mul %11, %1 : i32
  %14 = llvm.mul %12, %0 : i32
  %15 = llvm.add %13, %14 : i32
  %16 = llvm.getelementptr inbounds %arg0[%15] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
  %17 = llvm.load %16 invariant : !llvm.ptr -> vector<4xbf16>
  %18 = llvm.extractelement %17[%2 : i32] : vector<4xbf16>
  %19 = llvm.fmul %18, %18  : bf16
  %23 = llvm.fmul %19, %5  : bf16
  %24 = llvm.fpext %23 : bf16 to f32
  %25 = llvm.call @__nv_tanhf(%24) : (f32) -> f32
  %26 = llvm.fptrunc %25 : f32 to bf16
  %29 = llvm.fmul %18, %26  : bf16
  %30 = llvm.insertelement %29, %8[%2 : i32] : vector<4xbf16>
  llvm.store %30, %arg1 : vector<4xbf16>, !llvm.ptr
  llvm.return
}
"""

TRANSPOSE = """
#map = #xla_gpu.indexing_map<"(th_x, bl_x)[i, j] -> (bl_x floordiv 48, bl_x mod 48, j, i, 0, th_x mod 32),"
 "domain: th_x in [0, 127], bl_x in [0, 959], i in [0, 7], j in [0, 0]">
#map1 = #xla_gpu.indexing_map<"(th_x, bl_x)[i, j] -> (bl_x, th_x, i), domain: th_x in [0, 127], bl_x in [0, 959],"
 "i in [0, 7], j in [0, 0]">
func.func @transpose(%arg0: tensor<20x160x170xf32>, %arg1: tensor<170x160x20xf32>) -> tensor<170x160x20xf32> {
  %c0 = arith.constant 0 : index
  %thread_id_x = gpu.thread_id  x {xla.range = [0 : index, 127 : index]}
  %block_id_x = gpu.block_id  x {xla.range = [0 : index, 959 : index]}

  %shmem = xla_gpu.allocate_shared : tensor<32x1x33xf32>
  %xla_loop = xla_gpu.loop (%thread_id_x, %block_id_x)[%i, %j]
      -> (%input_dim0, %input_dim1, %input_dim2, %shmem_dim0, %shmem_dim1, %shmem_dim2)
      in #map iter_args(%iter = %shmem) -> (tensor<32x1x33xf32>) {
    %extracted = tensor.extract %arg0[%input_dim0, %input_dim1, %input_dim2] : tensor<20x160x170xf32>
    %0 = math.exp %extracted : f32
    %inserted = tensor.insert %0 into %iter[%shmem_dim0, %shmem_dim1, %shmem_dim2] : tensor<32x1x33xf32>
    xla_gpu.yield %inserted : tensor<32x1x33xf32>
  }

  %synced_tensor = xla_gpu.sync_threads %xla_loop : tensor<32x1x33xf32>

  %xla_loop_0 = xla_gpu.loop (%thread_id_x, %block_id_x)[%i, %j] -> (%dim0, %dim1, %dim2)
      in #map1 iter_args(%iter = %arg1) -> (tensor<170x160x20xf32>) {
    // indexing computations
    %extracted = tensor.extract %synced_tensor[%i, %c0, %j] : tensor<32x1x33xf32>
    %2 = math.absf %extracted : f32
    %inserted = tensor.insert %2 into %iter[%dim0, %dim1, %dim2] : tensor<170x160x20xf32>
    xla_gpu.yield %inserted : tensor<170x160x20xf32>
  }
  return %xla_loop_0 : tensor<170x160x20xf32>
}
"""

SNIPPETS = {
    "emitted": EMITTED,
    "scf": SCF,
    "flat": FLAT,
    "vectorized": VECTORIZED,
    "unrolled": UNROLLED,
    "llvm": LLVM,
    "transpose": TRANSPOSE,
}


def lines_of(text: str) -> list[str]:
    """Lines without indentation, comments and empty ones."""
    return [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("//")]


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippet_is_valid_and_prints_to_what_reads_back_equal(name: str) -> None:
    module = parse_module(SNIPPETS[name], f"{name}.mlir")
    verify(module)
    for generic in (False, True):
        printed = print_module(module, generic=generic)
        again = parse_module(printed)
        assert structurally_equal(module, again)
        assert print_module(again, generic=generic) == printed


def test_body_of_gelu_prints_line_for_line_as_published() -> None:
    printed = lines_of(print_module(parse_module(EMITTED)))
    published = lines_of(EMITTED[EMITTED.index("func.func private @gelu") :])
    begin = printed.index(published[0])
    assert printed[begin : begin + len(published)] == published


def test_loop_prints_as_published() -> None:
    printed = print_module(parse_module(EMITTED))
    assert (
        "%xla_loop = xla_gpu.loop (%thread_id_x, %block_id_x)[%vector_index] -> (%dim0, %dim1, %dim2) in #map "
        "iter_args(%iter = %output) -> (tensor<6x512x4096xbf16>) {" in printed
    )
    assert "%thread_id_x = gpu.thread_id  x {xla.range = [0 : index, 127 : index]}" in printed


def test_both_loops_of_the_transpose_keep_their_names() -> None:
    printed = print_module(parse_module(TRANSPOSE))
    for name in ("%extracted = tensor.extract", "%inserted = tensor.insert", "(%iter = %"):
        assert printed.count(name) == 2
    assert "%xla_loop_0 = xla_gpu.loop" in printed


@pytest.mark.parametrize(
    ("passes", "text"),
    [
        ("", EMITTED),
        ("lower-xla-to-scf,lower-loops-to-scf", SCF),
        ("flatten-tensors", FLAT),
        ("flatten-tensors", VECTORIZED),
        ("flatten-tensors", UNROLLED),
        ("convert-to-llvm", LLVM),
    ],
)
def test_snippet_is_legal_after_its_pass(passes: str, text: str) -> None:
    """If this failed, our passes would do away with less, or more, than XLA's do."""
    module = parse_module(text)
    verify(module)
    for each in filter(None, passes.split(",")):
        Legality().check(module, each, lookup(each).illegal_after)


def test_spelling_of_current_xla_means_the_same() -> None:
    today = EMITTED.replace("xla_gpu.loop", "xla.loop").replace("xla_gpu.pure_call", "xla.pure_call")
    today = today.replace("xla_gpu.yield", "xla.yield").replace("#xla_gpu.indexing_map", "#xla.indexing_map")
    today = today.replace("floordiv", "/")
    assert structurally_equal(parse_module(today), parse_module(EMITTED))


def ops_named(module: Operation, name: str) -> list[Operation]:
    return [op for op in module.walk() if op.name == name]


def test_location_of_an_op_is_its_place_in_the_text() -> None:
    (tanh,) = ops_named(parse_module(EMITTED, "gelu.mlir"), "math.tanh")
    line = EMITTED.splitlines().index("  %5 = math.tanh %4 : bf16") + 1
    assert (tanh.location.file, tanh.location.line, tanh.location.column) == ("gelu.mlir", line, 3)
