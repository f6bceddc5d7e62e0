// RUN: peel-loops

#map = #xla_gpu.indexing_map<"(d0)[s0, s1] -> (s0, s1), domain: d0 in [0, 3], s0 in [0, 7], s1 in [0, 6], d0 + s0 in [0, 9], d0 + s1 in [0, 8]">
func.func @peel_both_loops(%input: tensor<16x32xf32>, %init: f32, %dim: index) -> f32 {
  %sum = xla_gpu.loop (%dim)[%i, %j] -> (%r0, %r1) in #map iter_args(%sum_ = %init) -> (f32) {
    %t = tensor.extract %input[%i, %j] : tensor<16x32xf32>
    %add = arith.addf %sum_, %t : f32
    xla_gpu.yield %add : f32
  }
  return %sum : f32
}
// CHECK-DAG: #[[MAIN:\w+]] = {{.*}}(s0, s1), domain: d0 in [0, 3], s0 in [0, 6], s1 in [0, 5]">
// CHECK-DAG: #[[TAIL0:\w+]] = {{.*}}(7, s1), domain: d0 in [0, 2], s0 in [7, 7], s1 in [0, 5]">
// CHECK-DAG: #[[TAIL1:\w+]] = {{.*}}(s0, 6), domain: d0 in [0, 2], s0 in [0, 7], s1 in [6, 6]">
// CHECK-LABEL: @peel_both_loops
// CHECK: xla_gpu.loop {{.*}} in #[[MAIN]]
// CHECK: xla_gpu.loop {{.*}} in #[[TAIL0]]
// CHECK: xla_gpu.loop {{.*}} in #[[TAIL1]]

// -----

#map = #xla_gpu.indexing_map<"(d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 7]">
func.func @not_constrained_symbol(%input: tensor<16xf32>, %init: f32, %dim: index) -> f32 {
  %sum = xla_gpu.loop (%dim)[%i] -> (%r0) in #map iter_args(%sum_ = %init) -> (f32) {
    %t = tensor.extract %input[%i] : tensor<16xf32>
    %add = arith.addf %sum_, %t : f32
    xla_gpu.yield %add : f32
  }
  return %sum : f32
}
// CHECK-LABEL: @not_constrained_symbol
// CHECK-COUNT-1: xla_gpu.loop
// CHECK-NOT: xla_gpu.loop

// -----

#map = #xla_gpu.indexing_map<"(d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 7], s0 + d0 in [0, 8]">
func.func @constraint_exists_after_peeling(%input: tensor<16xf32>, %init: f32, %dim: index) -> f32 {
  %sum = xla_gpu.loop (%dim)[%i] -> (%r0) in #map iter_args(%sum_ = %init) -> (f32) {
    %t = tensor.extract %input[%i] : tensor<16xf32>
    %add = arith.addf %sum_, %t : f32
    xla_gpu.yield %add : f32
  }
  return %sum : f32
}
// CHECK-LABEL: @constraint_exists_after_peeling
// CHECK-COUNT-1: xla_gpu.loop
// CHECK-NOT: xla_gpu.loop

// -----

#map = #xla_gpu.indexing_map<"(t, b)[u] -> (u * 256 + b * 128 + t), domain: t in [0, 127], b in [0, 1], u in [0, 3], u * 256 + b * 128 + t in [0, 1000]">
func.func @last_iteration(%init: f32, %t: index, %b: index) -> f32 {
  %sum = xla_gpu.loop (%t, %b)[%i] -> (%r0) in #map iter_args(%s = %init) -> (f32) {
    %add = "test.use"(%s, %r0) : (f32, index) -> f32
    xla_gpu.yield %add : f32
  }
  return %sum : f32
}
// CHECK: #[[MAIN:.*]] = #xla_gpu.indexing_map<"(t, b)[u] -> {{.*}}
// CHECK-LABEL: @last_iteration
// CHECK: %[[A:\w+]] = xla_gpu.loop (%t, %b)[%i] -> (%{{\w+}}) in #[[MAIN]] iter_args(%{{\w+}} = %init)
// CHECK: %[[B:\w+]] = xla_gpu.loop (%t, %b)[%{{\w+}}] -> (%{{\w+}}) in #{{.*}} iter_args(%{{\w+}} = %[[A]])
// CHECK: return %[[B]]
