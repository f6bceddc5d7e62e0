"""The GELU of the published walk-through goes through the shapes that the walk-through shows, stage by stage."""

from __future__ import annotations

import pytest
from ir.filecheck import check

import warpsmith.ir.dialects
from warpsmith.ir.text.parser import parse_module
from warpsmith.ir.text.printer import print_module
from warpsmith.passes.manager import run_pipeline
from warpsmith.passes.pipeline import GPU_PIPELINE

assert warpsmith.ir.dialects.arith

GELU = """
#map = #xla_gpu.indexing_map<"(th_x, bl_x)[vector_index] -> ("
 "bl_x floordiv 4096, (bl_x floordiv 8) mod 512, (bl_x mod 8) * 512 + th_x * 4 + vector_index),"
 "domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]">

func.func @main(%input: tensor<6x512x4096xbf16> , %output: tensor<6x512x4096xbf16>)
   -> tensor<6x512x4096xbf16> attributes {xla.entry} {
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

ARITHMETIC = """
// CHECK-NEXT: %[[A0:\\w+]] = arith.mulf %[[X]], %[[X]] : bf16
// CHECK-NEXT: %[[A1:\\w+]] = arith.mulf %[[A0]], %[[X]] : bf16
// CHECK-NEXT: %[[A2:\\w+]] = arith.mulf %[[A1]], %cst{{\\w*}} : bf16
// CHECK-NEXT: %[[A3:\\w+]] = arith.addf %[[X]], %[[A2]] : bf16
// CHECK-NEXT: %[[A4:\\w+]] = arith.mulf %[[A3]], %cst{{\\w*}} : bf16
// CHECK-NEXT: %[[A5:\\w+]] = math.tanh %[[A4]] : bf16
// CHECK-NEXT: %[[A6:\\w+]] = arith.addf %[[A5]], %cst{{\\w*}} : bf16
// CHECK-NEXT: %[[A7:\\w+]] = arith.mulf %[[A6]], %cst{{\\w*}} : bf16
// CHECK-NEXT: %[[A8:\\w+]] = arith.mulf %[[X]], %[[A7]] : bf16
"""

INLINED = f"""
// CHECK: func.func @main(%input: tensor<6x512x4096xbf16>, %output: tensor<6x512x4096xbf16>) -> tensor<6x512x4096xbf16>
// CHECK: %thread_id_x = gpu.thread_id x {{xla.range = [0 : index, 127 : index]}}
// CHECK-NEXT: %block_id_x = gpu.block_id x {{xla.range = [0 : index, 24575 : index]}}
// CHECK-NEXT: %xla_loop = xla_gpu.loop (%thread_id_x, %block_id_x)[%vector_index] -> (%dim0, %dim1, %dim2)
// CHECK-SAME: in #map iter_args(%iter = %output) -> (tensor<6x512x4096xbf16>)
// CHECK-NEXT: %[[X:extracted]] = tensor.extract %input[%dim0, %dim1, %dim2] : tensor<6x512x4096xbf16>
{ARITHMETIC}
// CHECK-NEXT: %inserted = tensor.insert %[[A8]] into %iter[%dim0, %dim1, %dim2] : tensor<6x512x4096xbf16>
// CHECK-NEXT: xla_gpu.yield %inserted : tensor<6x512x4096xbf16>
// CHECK: return %xla_loop
// CHECK-NOT: func.func
"""

LOOPS = """
// CHECK: %xla_loop = scf.for %vector_index = %c0 to %c4 step %c1 iter_args(%iter = %output)
// CHECK-NEXT: %[[C2:\\w+]] = arith.cmpi sge, %thread_id_x, %c0 : index
// CHECK-NEXT: %[[C3:\\w+]] = arith.cmpi sle, %thread_id_x, %c127 : index
// CHECK-NEXT: %[[C4:\\w+]] = arith.andi %[[C2]], %[[C3]] : i1
// CHECK-NEXT: %[[C5:\\w+]] = arith.cmpi sge, %block_id_x, %c0 : index
// CHECK-NEXT: %[[C6:\\w+]] = arith.cmpi sle, %block_id_x, %c24575 : index
// CHECK-NEXT: %[[C7:\\w+]] = arith.andi %[[C5]], %[[C6]] : i1
// CHECK-NEXT: %[[IN:\\w+]] = arith.andi %[[C4]], %[[C7]] : i1
// CHECK-NEXT: %[[IF:\\w+]] = scf.if %[[IN]] -> (tensor<6x512x4096xbf16>) {
// CHECK-NEXT: %dim0 = xla_gpu.apply_indexing #map(%thread_id_x, %block_id_x)[%vector_index]
// CHECK-NEXT: %dim1 = xla_gpu.apply_indexing #map1(%thread_id_x, %block_id_x)[%vector_index]
// CHECK-NEXT: %dim2 = xla_gpu.apply_indexing #map2(%thread_id_x, %block_id_x)[%vector_index]
// CHECK-NEXT: %extracted = tensor.extract %input[%dim0, %dim1, %dim2] : tensor<6x512x4096xbf16>
// CHECK: %inserted = tensor.insert %{{\\w+}} into %iter[%dim0, %dim1, %dim2] : tensor<6x512x4096xbf16>
// CHECK-NEXT: scf.yield %inserted : tensor<6x512x4096xbf16>
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %iter : tensor<6x512x4096xbf16>
// CHECK-NEXT: }
// CHECK-NEXT: scf.yield %[[IF]] : tensor<6x512x4096xbf16>
"""

FLAT = f"""
// CHECK: #map = #xla_gpu.indexing_map<"(th_x, bl_x, vector_index) -> (th_x * 4 + bl_x * 512 + vector_index)
// CHECK-NEXT: domain: th_x in [0, 127], bl_x in [0, 24575], vector_index in [0, 3]
// CHECK: func.func @main(%input: tensor<12582912xbf16>, %output: tensor<12582912xbf16>) -> tensor<12582912xbf16>
// CHECK: %xla_loop = scf.for %vector_index = %c0 to %c4 step %c1
// CHECK-SAME: iter_args(%iter = %output) -> (tensor<12582912xbf16>) {{
// CHECK-NEXT: %dim = xla_gpu.apply_indexing #map(%thread_id_x, %block_id_x, %vector_index)
// CHECK-NEXT: %[[X:extracted]] = tensor.extract %input[%dim] : tensor<12582912xbf16>
{ARITHMETIC}
// CHECK-NEXT: %inserted = tensor.insert %[[A8]] into %iter[%dim] : tensor<12582912xbf16>
// CHECK-NEXT: scf.yield %inserted : tensor<12582912xbf16>
// CHECK-NEXT: }}
// CHECK-NEXT: return %xla_loop : tensor<12582912xbf16>
"""

VECTOR = f"""
// CHECK: %[[ZERO:\\w+]] = arith.constant dense<0.000000e+00> : vector<4xbf16>
// CHECK: %[[AT:\\w+]] = xla_gpu.apply_indexing #map(%thread_id_x, %block_id_x, %c0)
// CHECK-NEXT: %[[V:\\w+]] = vector.transfer_read %input[%[[AT]]], %cst{{{{\\w*}}}} {{in_bounds = [true]}}
// CHECK-SAME: tensor<12582912xbf16>, vector<4xbf16>
// CHECK-NEXT: %[[L:\\w+]]:2 = scf.for %vector_index = %c0 to %c4 step %c1
// CHECK-SAME: iter_args(%iter = %output, %iter_vector = %[[ZERO]]) -> (tensor<12582912xbf16>, vector<4xbf16>) {{
// CHECK-NEXT: %[[X:\\w+]] = vector.extract %[[V]][%vector_index] : bf16 from vector<4xbf16>
{ARITHMETIC}
// CHECK-NEXT: %[[N:\\w+]] = vector.insert %[[A8]], %iter_vector [%vector_index] : bf16 into vector<4xbf16>
// CHECK-NEXT: scf.yield %iter, %[[N]] : tensor<12582912xbf16>, vector<4xbf16>
// CHECK-NEXT: }}
// CHECK-NEXT: %[[R:\\w+]] = vector.transfer_write %[[L]]#1, %output[%[[AT]]] {{in_bounds = [true]}}
// CHECK-SAME: vector<4xbf16>, tensor<12582912xbf16>
// CHECK-NEXT: return %[[R]]
"""


def _unrolled(k: int, before: str) -> str:
    return f"""
// CHECK: %[[X:\\w+]] = vector.extract %[[V]][%c{k}] : bf16 from vector<4xbf16>
{ARITHMETIC}
// CHECK-NEXT: %[[V{k}:\\w+]] = vector.insert %[[A8]], %[[{before}]] [%c{k}] : bf16 into vector<4xbf16>
"""


UNROLLED = f"""
// CHECK: %[[ZERO:\\w+]] = arith.constant dense<0.000000e+00> : vector<4xbf16>
// CHECK: %[[AT:\\w+]] = xla_gpu.apply_indexing #map(%thread_id_x, %block_id_x, %c0)
// CHECK-NEXT: %[[V:\\w+]] = vector.transfer_read %input[%[[AT]]]
{_unrolled(0, "ZERO")}{_unrolled(1, "V0")}{_unrolled(2, "V1")}{_unrolled(3, "V2")}
// CHECK-NEXT: %[[R:\\w+]] = vector.transfer_write %[[V3]], %output[%[[AT]]] {{in_bounds = [true]}}
// CHECK-NEXT: return %[[R]]
// CHECK-NOT: scf.for
"""

CANONICAL = """
// CHECK: (th_x * 4 + bl_x * 512)
// CHECK: xla_gpu.apply_indexing #map(%thread_id_x, %block_id_x)
// CHECK: vector.transfer_read
// CHECK-NEXT: vector.extract %{{\\w+}}[0]
// CHECK: vector.extract %{{\\w+}}[3]
// CHECK: vector.transfer_write
"""

# Stage -> how far the pipeline runs (the pass, counted from the left), and what it prints then.
STAGES = {
    "inlined": ("canonicalize", 1, INLINED),
    "loops": ("lower-loops-to-scf", 0, LOOPS),
    "flattened": ("flatten-tensors", 0, FLAT),
    "hoisted": ("unswitch-loops", 0, FLAT),
    "vectorised": ("vectorize-loads-stores", 0, VECTOR),
    "unrolled": ("optimize-loops", 0, UNROLLED),
    "canonical": ("canonicalize", 2, CANONICAL),
}


@pytest.mark.parametrize("stage", STAGES)
def test_gelu_has_the_shape_of_the_published_document(stage: str) -> None:
    last, occurrence, expected = STAGES[stage]
    stops = [i for i, name in enumerate(GPU_PIPELINE) if name == last]
    module = parse_module(GELU)
    run_pipeline(module, GPU_PIPELINE[: stops[occurrence] + 1])
    check(expected, print_module(module), stage)
