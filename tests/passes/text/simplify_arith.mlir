// RUN: simplify-arith

// A comparison whose ranges overlap stays; ones that are decided become constants.
func.func @unknown(%arg0: index {xla.range = [0 : index, 42 : index]}) -> i1 {
  %c12 = arith.constant 12 : index
  %eq = arith.cmpi eq, %arg0, %c12 : index
  return %eq : i1
}
// CHECK-LABEL: @unknown
// CHECK: arith.cmpi eq

func.func @true(%arg0: index {xla.range = [12 : index, 42 : index]}) -> i1 {
  %c5 = arith.constant 5 : index
  %eq = arith.cmpi sge, %arg0, %c5 : index
  return %eq : i1
}
// CHECK-LABEL: @true
// CHECK-NEXT: %[[T:.*]] = arith.constant true
// CHECK-NEXT: return %[[T]]

func.func @false(%arg0: index {xla.range = [12 : index, 42 : index]}) -> i1 {
  %c5 = arith.constant 5 : index
  %eq = arith.cmpi slt, %arg0, %c5 : index
  return %eq : i1
}
// CHECK-LABEL: @false
// CHECK-NEXT: arith.constant false

func.func @rhs_range(%arg0: index {xla.range = [12 : index, 42 : index]}) -> i1 {
  %c64 = arith.constant 64 : index
  %eq = arith.cmpi slt, %c64, %arg0 : index
  return %eq : i1
}
// CHECK-LABEL: @rhs_range
// CHECK-NEXT: arith.constant false

func.func @both_range(%arg0: index {xla.range = [12 : index, 42 : index]}, %arg1: index {xla.range = [63 : index, 100 : index]}) -> i1 {
  %eq = arith.cmpi slt, %arg0, %arg1 : index
  return %eq : i1
}
// CHECK-LABEL: @both_range
// CHECK-NEXT: arith.constant true

// An unsigned comparison is not decided by signed ranges.
func.func @unsigned_negative(%arg0: index {xla.range = [-5 : index, -1 : index]}, %arg1: index {xla.range = [3 : index, 9 : index]}) -> i1 {
  %lt = arith.cmpi ult, %arg0, %arg1 : index
  return %lt : i1
}
// CHECK-LABEL: @unsigned_negative
// CHECK: arith.cmpi ult

func.func @minsi_lhs(%arg0: index {xla.range = [12 : index, 42 : index]}, %arg1: index {xla.range = [63 : index, 100 : index]}) -> index {
  %min = arith.minsi %arg0, %arg1 : index
  return %min : index
}
// CHECK-LABEL: @minsi_lhs
// CHECK-SAME: (%[[A:\w+]]: index {{.*}}, %[[B:\w+]]: index
// CHECK-NEXT: return %[[A]]

func.func @maxsi_rhs(%arg0: index {xla.range = [12 : index, 42 : index]}, %arg1: index {xla.range = [63 : index, 100 : index]}) -> index {
  %max = arith.maxsi %arg0, %arg1 : index
  return %max : index
}
// CHECK-LABEL: @maxsi_rhs
// CHECK-SAME: (%[[A:\w+]]: index {{.*}}, %[[B:\w+]]: index
// CHECK-NEXT: return %[[B]]

func.func @maxsi_add(%arg0: index {xla.range = [102 : index, 142 : index]}, %arg1: index {xla.range = [-5 : index, 5 : index]}) -> index {
  %add = arith.addi %arg0, %arg1 : index
  %max = arith.maxsi %add, %arg1 : index
  return %max : index
}
// CHECK-LABEL: @maxsi_add
// CHECK: %[[ADD:.*]] = arith.addi
// CHECK-NEXT: return %[[ADD]]

// A clamp is known whatever comes in; i32 arithmetic that may wrap gets no range.
func.func @clamp(%arg0: i32) -> (i32, i32) {
  %c0 = arith.constant 0 : i32
  %c15 = arith.constant 15 : i32
  %min = arith.minsi %arg0, %c15 : i32
  %max = arith.maxsi %min, %c0 : i32
  %more = arith.addi %arg0, %c15 : i32
  return %max, %more : i32, i32
}
// CHECK-LABEL: @clamp
// CHECK: arith.maxsi {{.*}}xla.range = [0 : index, 15 : index]
// CHECK: arith.addi
// CHECK-NOT: xla.range
// CHECK: return

func.func @pred_reduce_bits(%arg0: i32, %arg1: i32) -> i32 {
  %a = arith.trunci %arg0 : i32 to i1
  %b = arith.trunci %arg1 : i32 to i1
  %or = arith.ori %a, %b : i1
  %r = arith.extui %or : i1 to i32
  return %r : i32
}
// CHECK-LABEL: @pred_reduce_bits
// CHECK: %[[OR:.*]] = arith.ori %{{.*}}, %{{.*}} : i32
// CHECK-NEXT: %[[T:.*]] = arith.trunci %[[OR]] : i32 to i1
// CHECK-NEXT: arith.extui %[[T]]

func.func @andi_one_trunc_arg(%arg0: i4, %arg1: i8) -> i4 {
  %t = arith.trunci %arg1 : i8 to i4
  %u = arith.andi %arg0, %arg0 : i4
  %r = arith.andi %u, %t : i4
  return %r : i4
}
// CHECK-LABEL: @andi_one_trunc_arg
// CHECK: arith.extui {{.*}} : i4 to i8
// CHECK: arith.andi {{.*}} : i8

func.func @andi_no_trunc_arg(%arg0: i4, %arg1: i4) -> i8 {
  %a = arith.extui %arg0 : i4 to i8
  %b = arith.extui %arg1 : i4 to i8
  %r = arith.andi %a, %b : i8
  return %r : i8
}
// CHECK-LABEL: @andi_no_trunc_arg
// CHECK-COUNT-2: arith.extui
// CHECK-NEXT: arith.andi {{.*}} : i8

func.func @ori_mismatched_narrowest(%arg0: i8, %arg1: i8) -> i8 {
  %a = arith.trunci %arg1 : i8 to i4
  %b = arith.extui %a : i4 to i8
  %r = arith.ori %arg0, %b : i8
  return %r : i8
}
// CHECK-LABEL: @ori_mismatched_narrowest
// CHECK: arith.trunci {{.*}} : i8 to i4
// CHECK-NEXT: arith.extui {{.*}} : i4 to i8
// CHECK-NEXT: arith.ori {{.*}} : i8

func.func @refine_constraints(%arg0: tensor<100xf32>) -> tensor<100xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %cst = arith.constant 42.0 : f32
  %loop = scf.for %i = %c0 to %c3 step %c1 iter_args(%in = %arg0) -> (tensor<100xf32>) {
    %0 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 mod 4), domain: d0 in [0, 9]">(%i)
    %updated = tensor.insert %cst into %in[%0] : tensor<100xf32>
    scf.yield %updated : tensor<100xf32>
  }
  return %loop : tensor<100xf32>
}
// CHECK-LABEL: @refine_constraints
// CHECK: scf.for %[[I:.*]] = %{{.*}} to
// CHECK-NEXT: tensor.insert %{{.*}} into %{{.*}}[%[[I]]]

// -----

func.func @refine_constraints_for_symbol(%arg0: tensor<6000000xf32>, %arg1: index {xla.range = [0 : index, 9999 : index]}) -> tensor<6000000xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c73 = arith.constant 73 : index
  %cst = arith.constant 42.0 : f32
  %loop = scf.for %i = %c0 to %c73 step %c1 iter_args(%in = %arg0) -> (tensor<6000000xf32>) {
    %0 = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(th_x)[s0] -> ((s0 * 30000 + th_x) mod 2400000), domain: th_x in [0, 9999], s0 in [0, 199]">(%arg1)[%i]
    %updated = tensor.insert %cst into %in[%0] : tensor<6000000xf32>
    scf.yield %updated : tensor<6000000xf32>
  }
  return %loop : tensor<6000000xf32>
}
// CHECK: indexing_map<"(th_x, d1) -> (d1 * 30000 + th_x), domain: th_x in [0, 9999], d1 in [0, 72]">
// CHECK-LABEL: @refine_constraints_for_symbol

// -----

func.func @abs_index(%arg0: i32 {xla.range = [-31 : index, 17 : index]}, %arg1: i32) -> (i32, i32) {
  %c0 = arith.constant 0 : i32
  %pos = arith.cmpi sge, %arg0, %c0 : i32
  %neg = arith.subi %c0, %arg0 : i32
  %abs = arith.select %pos, %arg0, %neg : i32
  %pos1 = arith.cmpi sge, %arg1, %c0 : i32
  %neg1 = arith.subi %c0, %arg1 : i32
  %abs1 = arith.select %pos1, %arg1, %neg1 : i32
  return %abs, %abs1 : i32, i32
}
// CHECK-LABEL: @abs_index
// CHECK: arith.select {{.*}}xla.range = [0 : index, 31 : index]
// CHECK-NOT: xla.range
// CHECK: return

func.func @max_is_kept(%arg0: f32, %arg1: f32) -> f32 {
  %max = arith.maximumf %arg0, %arg1 : f32
  return %max : f32
}
// CHECK-LABEL: @max_is_kept
// CHECK-NEXT: arith.maximumf

func.func @atan2_of_one(%arg0: f32, %arg1: f32) -> (f32, f32, f32) {
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  %a = math.atan2 %arg0, %one : f32
  %b = math.atan2 %arg0, %two : f32
  %c = math.atan2 %one, %arg1 : f32
  return %a, %b, %c : f32, f32, f32
}
// CHECK-LABEL: @atan2_of_one
// CHECK: math.atan %
// CHECK-NEXT: math.atan2
// CHECK-NEXT: math.atan2

func.func @bounds_check_vanishes(%arg0: tensor<4096xf32>) -> tensor<4096xf32> {
  %cst = arith.constant 42.0 : f32
  %c0 = arith.constant 0 : index
  %c127 = arith.constant 127 : index
  %t = gpu.thread_id x {xla.range = [0 : index, 127 : index]}
  %ge = arith.cmpi sge, %t, %c0 : index
  %le = arith.cmpi sle, %t, %c127 : index
  %in = arith.andi %ge, %le : i1
  %r = scf.if %in -> (tensor<4096xf32>) {
    %i = tensor.insert %cst into %arg0[%t] : tensor<4096xf32>
    scf.yield %i : tensor<4096xf32>
  } else {
    scf.yield %arg0 : tensor<4096xf32>
  }
  return %r : tensor<4096xf32>
}
// CHECK-LABEL: @bounds_check_vanishes
// CHECK-NOT: scf.if
// CHECK: tensor.insert
// CHECK-NEXT: return
