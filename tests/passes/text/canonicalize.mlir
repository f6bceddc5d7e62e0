// RUN: canonicalize

func.func @simplify_apply_indexing(%d0: index, %s0: index) -> (index, index) {
  %0:2 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0)[s0] -> (d0 + 1, d0 mod 2), domain: d0 in [0, 4], s0 in [0, 2]"> (%d0)[%s0]
  return %0#0, %0#1 : index, index
}
// CHECK: indexing_map<"(d0) -> (d0 + 1, d0 mod 2), domain: d0 in [0, 4]">
// CHECK-LABEL: @simplify_apply_indexing
// CHECK: xla_gpu.apply_indexing #{{.*}}(%d0)
// CHECK-NOT: s0]

// -----

func.func @remove_dims_and_move_symbols(%d0: index, %d1: index, %s0: index) -> index {
  %0 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1)[s0] -> (d0 * 2 + s0), domain: d0 in [0, 4], d1 in [0, 5], s0 in [0, 3]"> (%d0, %d1)[%s0]
  return %0 : index
}
// CHECK: indexing_map<"(d0, d1) -> (d0 * 2 + d1), domain: d0 in [0, 4], d1 in [0, 3]">
// CHECK: xla_gpu.apply_indexing #{{.*}}(%d0, %s0)

// -----

// Results that are constants or bare variables leave the op.
func.func @fold_indexing_map_results(%d0: index, %d1: index) -> (index, index, index) {
  %0:3 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (1, d1, d0 + d1), domain: d0 in [0, 4], d1 in [0, 5]"> (%d0, %d1)
  return %0#0, %0#1, %0#2 : index, index, index
}
// CHECK: indexing_map<"(d0, d1) -> (d0 + d1), domain: d0 in [0, 4], d1 in [0, 5]">
// CHECK-LABEL: @fold_indexing_map_results
// CHECK-NEXT: %[[C:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[S:.*]] = xla_gpu.apply_indexing
// CHECK-NEXT: return %[[C]], %d1, %[[S]]

// -----

func.func @remove_unused_results(%d0: index, %d1: index) -> index {
  %0:2 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 * 4, d0 + d1), domain: d0 in [0, 4], d1 in [0, 5]"> (%d0, %d1)
  return %0#0 : index
}
// CHECK: indexing_map<"(d0) -> (d0 * 4), domain: d0 in [0, 4]">
// CHECK: xla_gpu.apply_indexing #{{.*}}(%d0)

// -----

func.func @fold_operands(%d0: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %0 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1)[s0, s1] -> (d0 + d1 + s0 + s1), domain: d0 in [0, 10], d1 in [0, 4], s0 in [0, 3], s1 in [0, 2]"> (%d0, %c0)[%c1, %c2]
  return %0 : index
}
// CHECK: indexing_map<"(d0) -> (d0 + 3), domain: d0 in [0, 10]">
// CHECK: xla_gpu.apply_indexing #{{.*}}(%d0)

// -----

func.func @fold_operands_and_results(%d0: index) -> (index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0:2 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1)[s0] -> (d1 * 2 + s0, d0), domain: d0 in [0, 10], d1 in [0, 4], s0 in [0, 3]"> (%d0, %c0)[%c1]
  return %0#0, %0#1 : index, index
}
// CHECK-LABEL: @fold_operands_and_results
// CHECK-NEXT: %[[C:.*]] = arith.constant 1 : index
// CHECK-NEXT: return %[[C]], %d0

// -----

func.func @fold_sequence(%d0: index, %d1: index) -> index {
  %0 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 + d1), domain: d0 in [0, 5], d1 in [0, 6]">(%d0, %d1)
  %1 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 mod 100 + 42), domain: d0 in [0, 10000]">(%0)
  return %1 : index
}
// CHECK: indexing_map<"(d0, d1) -> (d0 + d1 + 42), domain: d0 in [0, 5], d1 in [0, 6]">
// CHECK-COUNT-1: xla_gpu.apply_indexing #
// CHECK-NOT: xla_gpu.apply_indexing #

// -----

// A producer without other users is composed although nothing gets simpler.
func.func @fold_sequence_no_simplification_needed(%d0: index, %d1: index) -> index {
  %0 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 mod 8 + d1 * 8), domain: d0 in [0, 50], d1 in [0, 6]">(%d0, %d1)
  %1 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 * 3 + 1), domain: d0 in [0, 10000]">(%0)
  return %1 : index
}
// CHECK-COUNT-1: xla_gpu.apply_indexing #
// CHECK-NOT: xla_gpu.apply_indexing #

// -----

func.func @no_fold_when_producer_has_two_users(%d0: index, %d1: index) -> (index, index) {
  %0 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 mod 8 + d1 * 8), domain: d0 in [0, 50], d1 in [0, 6]">(%d0, %d1)
  %1 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 + 1), domain: d0 in [0, 10000]">(%0)
  %2 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 mod 33), domain: d0 in [0, 10000]">(%0)
  return %1, %2 : index, index
}
// CHECK-COUNT-3: xla_gpu.apply_indexing #
// CHECK: return

// -----

// With two users it is composed where the map gets simpler.
func.func @fold_when_simpler(%d0: index, %d1: index) -> (index, index) {
  %0 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 + d1 * 8), domain: d0 in [0, 7], d1 in [0, 6]">(%d0, %d1)
  %1 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 floordiv 8), domain: d0 in [0, 10000]">(%0)
  return %0, %1 : index, index
}
// CHECK-COUNT-1: xla_gpu.apply_indexing #
// CHECK-NEXT: return %{{.*}}, %d1

// -----

func.func @fold_sequence_shared_operands(%d0: index, %d1: index) -> index {
  %0 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 + d1), domain: d0 in [0, 5], d1 in [0, 6]">(%d0, %d1)
  %1 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0, d1) -> (d0 + d1), domain: d0 in [0, 10000], d1 in [0, 5]">(%0, %d0)
  return %1 : index
}
// CHECK: indexing_map<"(d0, d1) -> (d0 * 2 + d1), domain: d0 in [0, 5], d1 in [0, 6]">
// CHECK: xla_gpu.apply_indexing #{{.*}}(%d0, %d1)

// -----

#map = #xla_gpu.indexing_map<"(d0)[s0] -> (s0 + d0), domain: d0 in [0, 3], s0 in [0, 7]">
func.func @loop_of_apply_indexing(%x: index, %init: f32) -> f32 {
  %d = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 floordiv 32), domain: d0 in [0, 127]">(%x)
  %r = xla_gpu.loop (%d)[%i] -> (%j) in #map iter_args(%a = %init) -> (f32) {
    %b = "test.use"(%a, %j) : (f32, index) -> f32
    xla_gpu.yield %b : f32
  }
  return %r : f32
}
// CHECK: indexing_map<"(d0)[s0] -> (d0 floordiv 32 + s0), domain: d0 in [0, 127], s0 in [0, 7]">
// CHECK-LABEL: @loop_of_apply_indexing
// CHECK-NEXT: xla_gpu.loop (%x)

// -----

// A point inside its bounds goes into the map and shifts constraints; one outside stays (the loop is empty then).
#map = #xla_gpu.indexing_map<"(bl_x, bl_y, th_x)[s0] -> (s0 * 2 + bl_x, bl_y, th_x), domain: bl_x in [0, 9], bl_y in [0, 7], th_x in [0, 5], s0 in [0, 7], s0 + bl_x in [2, 9]">
func.func @fold_constant_dimensions(%x: index, %init: f32) -> f32 {
  %c4 = arith.constant 4 : index
  %c9 = arith.constant 9 : index
  %r = xla_gpu.loop (%c4, %c9, %x)[%i] -> (%j, %k, %l) in #map iter_args(%a = %init) -> (f32) {
    %b = "test.use"(%a, %j, %k, %l) : (f32, index, index, index) -> f32
    xla_gpu.yield %b : f32
  }
  return %r : f32
}
// CHECK: indexing_map<"(bl_y, th_x)[s0] -> (s0 * 2 + 4, bl_y, th_x), domain: bl_y in [0, 7], th_x in [0, 5], s0 in [0, 5]">
// CHECK: xla_gpu.loop (%c9, %x)

// -----

func.func @strict_floats(%x: f32) -> (f32, f32, f32, f32, f32) {
  %zero = arith.constant 0.0 : f32
  %negative_zero = arith.constant -0.0 : f32
  %one = arith.constant 1.0 : f32
  %a = arith.mulf %x, %zero : f32
  %b = arith.addf %x, %zero : f32
  %c = arith.addf %x, %negative_zero : f32
  %d = arith.mulf %one, %x : f32
  %e = arith.subf %x, %x : f32
  return %a, %b, %c, %d, %e : f32, f32, f32, f32, f32
}
// CHECK-LABEL: @strict_floats
// CHECK: %[[A:.*]] = arith.mulf
// CHECK-NEXT: %[[B:.*]] = arith.addf
// CHECK-NEXT: %[[E:.*]] = arith.subf
// CHECK-NEXT: return %[[A]], %[[B]], %x, %x, %[[E]]

// -----

// Constants of narrow formats fold in their own format; approximations don't fold.
func.func @constant_floats() -> (bf16, f32, f32) {
  %a = arith.constant 1.0 : bf16
  %b = arith.constant 0.00390625 : bf16
  %sum = arith.addf %a, %b : bf16
  %x = arith.constant 0.1 : f32
  %y = arith.constant 0.2 : f32
  %z = arith.addf %x, %y : f32
  %e = math.exp %x : f32
  return %sum, %z, %e : bf16, f32, f32
}
// CHECK-LABEL: @constant_floats
// CHECK-DAG: arith.constant 1.000000e+00 : bf16
// CHECK-DAG: arith.constant 3.000000e-01 : f32
// CHECK: math.exp

// -----

func.func @undefined_stays(%x: i32) -> (i32, i32) {
  %c0 = arith.constant 0 : i32
  %c7 = arith.constant 7 : i32
  %c40 = arith.constant 40 : i32
  %a = arith.divsi %c7, %c0 : i32
  %b = arith.shli %c7, %c40 : i32
  return %a, %b : i32, i32
}
// CHECK-LABEL: @undefined_stays
// CHECK: arith.divsi
// CHECK-NEXT: arith.shli

// -----

func.func @integer_chains(%x: i32, %p: i1) -> (i32, i1, i1, i8) {
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %true = arith.constant true
  %a = arith.addi %c1, %x : i32
  %b = arith.subi %a, %c2 : i32
  %lt = arith.cmpi slt, %c2, %x : i32
  %not = arith.xori %lt, %true : i1
  %wide = arith.extui %p : i1 to i32
  %again = arith.cmpi ne, %wide, %c0 : i32
  %byte = arith.trunci %wide : i32 to i8
  %c0 = arith.constant 0 : i32
  return %b, %not, %again, %byte : i32, i1, i1, i8
}
// CHECK-LABEL: @integer_chains
// CHECK: %[[B:.*]] = arith.addi %x, %c_1{{.*}} : i32
// CHECK-NEXT: %[[NOT:.*]] = arith.cmpi sle, %x, %
// CHECK-NEXT: %[[BYTE:.*]] = arith.extui %p : i1 to i8
// CHECK-NEXT: return %[[B]], %[[NOT]], %p, %[[BYTE]]

// -----

func.func @vector_elements(%v: vector<4xf32>, %x: f32, %y: f32) -> (f32, f32, f32, f32) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %cst = arith.constant dense<7.0> : vector<4xf32>
  %w = vector.insert %x, %v [%c1] : f32 into vector<4xf32>
  %a = vector.extract %w[%c1] : f32 from vector<4xf32>
  %b = vector.extract %w[%c2] : f32 from vector<4xf32>
  %c = vector.extract %cst[%c2] : f32 from vector<4xf32>
  %s = vector.broadcast %y : f32 to vector<4xf32>
  %d = vector.extract %s[3] : f32 from vector<4xf32>
  return %a, %b, %c, %d : f32, f32, f32, f32
}
// CHECK-LABEL: @vector_elements
// CHECK-NEXT: %[[C:.*]] = arith.constant 7.000000e+00 : f32
// CHECK-NEXT: %[[B:.*]] = vector.extract %v[2]
// CHECK-NEXT: return %x, %[[B]], %[[C]], %y

// -----

func.func @tensor_elements(%x: f32, %y: f32) -> (f32, i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = tensor.from_elements %x, %y : tensor<2xf32>
  %table = arith.constant dense<[5, 6]> : tensor<2xi32>
  %a = tensor.extract %t[%c1] : tensor<2xf32>
  %b = tensor.extract %table[%c0] : tensor<2xi32>
  return %a, %b : f32, i32
}
// CHECK-LABEL: @tensor_elements
// CHECK-NEXT: %[[C:.*]] = arith.constant 5 : i32
// CHECK-NEXT: return %y, %[[C]]
