// RUN: optimize-loops

// Two levels, both unrolled fully, inner one first.
func.func @fully_unroll(%arg0: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %ret = scf.for %i = %c0 to %c2 step %c1 iter_args(%v = %arg0) -> (f32) {
    %w = math.exp %v : f32
    %r = scf.for %j = %c0 to %c3 step %c1 iter_args(%x = %w) -> (f32) {
      %log = math.log %x : f32
      scf.yield %log : f32
    }
    scf.yield %r : f32
  }
  return %ret : f32
}
// CHECK-LABEL: @fully_unroll
// CHECK-NOT: scf.for
// CHECK: math.exp
// CHECK-COUNT-3: math.log
// CHECK-NEXT: math.exp
// CHECK-COUNT-3: math.log
// CHECK-NEXT: return

// -----

// 400 / 41 is 9; 8 divides 256.
func.func @unroll_by_factor(%arg0: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  %ret = scf.for %i = %c0 to %c256 step %c1 iter_args(%v = %arg0) -> (f32) {
    %exp = math.exp %v : f32
    %log = math.log %exp : f32
    scf.yield %log : f32
  }
  return %ret : f32
}
// CHECK-LABEL: @unroll_by_factor
// CHECK: %[[C8:\w+]] = arith.constant 8 : index
// CHECK: scf.for {{.*}} step %[[C8]]
// CHECK-COUNT-8: math.exp
// CHECK-NOT: math.exp
// CHECK: scf.yield

// -----

func.func @do_not_unroll(%arg0: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c31 = arith.constant 31 : index
  %ret = scf.for %i = %c0 to %c31 step %c1 iter_args(%v = %arg0) -> (f32) {
    %exp = math.exp %v : f32
    %log = math.log %exp : f32
    scf.yield %log : f32
  }
  return %ret : f32
}
// CHECK-LABEL: @do_not_unroll
// CHECK: scf.for
// CHECK-COUNT-1: math.exp
// CHECK-NOT: math.exp

// -----

// A body with a large expansion is never repeated.
func.func @never(%arg0: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %ret = scf.for %i = %c0 to %c6 step %c1 iter_args(%v = %arg0) -> (index) {
    %f = arith.constant 0.5 : f32
    %a = math.acos %f : f32
    %s = arith.addi %v, %i : index
    scf.yield %s : index
  }
  return %ret : index
}
// CHECK-LABEL: @never
// CHECK: scf.for
// CHECK-COUNT-1: math.acos
// CHECK-NOT: math.acos

// -----

func.func @shifted_indices(%arg0: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c800 = arith.constant 800 : index
  %ret = scf.for %i = %c0 to %c800 step %c1 iter_args(%v = %arg0) -> (index) {
    %s = "test.use"(%v, %i) : (index, index) -> index
    scf.yield %s : index
  }
  return %ret : index
}
// CHECK-DAG: #[[M1:\w+]] = {{.*}}(d0) -> (d0 + 1), domain: d0 in [0, 600]
// CHECK-DAG: #[[M199:\w+]] = {{.*}}(d0) -> (d0 + 199)
// CHECK-LABEL: @shifted_indices
// CHECK: scf.for %[[I:\w+]] = {{.*}} iter_args(%[[V:\w+]] =
// CHECK-NEXT: %[[A:\w+]] = "test.use"(%[[V]], %[[I]])
// CHECK-NEXT: %[[J:\w+]] = xla_gpu.apply_indexing #[[M1]](%[[I]])
// CHECK-NEXT: %[[B:\w+]] = "test.use"(%[[A]], %[[J]])
// CHECK: apply_indexing #[[M199]](%[[I]])
// CHECK-NEXT: %[[Z:\w+]] = "test.use"
// CHECK-NEXT: scf.yield %[[Z]]
