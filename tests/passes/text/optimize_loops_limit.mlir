// RUN: optimize-loops{max_unroll=16}

func.func @unroll_up_to_max(%arg0: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %ret = scf.for %i = %c0 to %c16 step %c1 iter_args(%v = %arg0) -> (f32) {
    %exp = math.exp %v : f32
    %log = math.log %exp : f32
    scf.yield %log : f32
  }
  return %ret : f32
}
// CHECK-LABEL: @unroll_up_to_max
// CHECK-NOT: scf.for
// CHECK-COUNT-16: math.exp
// CHECK-NOT: math.exp
