// RUN: lower-loops-to-scf

#map = #xla_gpu.indexing_map<"(d0)[s0, s1] -> (s0, s1), domain: d0 in [0, 3], s0 in [0, 1024], s1 in [0, 32], s0 + s1 in [0, 90]">
func.func @loop_op(%input: tensor<1024x32xf32>, %init: f32, %dim: index) -> f32 {
  %sum = xla_gpu.loop (%dim)[%i, %j] -> (%r0, %r1) in #map iter_args(%sum_ = %init) -> (f32) {
    %t = tensor.extract %input[%r0, %r1] : tensor<1024x32xf32>
    %add = arith.addf %sum_, %t : f32
    xla_gpu.yield %add : f32
  }
  return %sum : f32
}
// CHECK-LABEL: @loop_op
// CHECK-DAG: %[[C0:c0]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:c1]] = arith.constant 1 : index
// CHECK-DAG: %[[C3:c3]] = arith.constant 3 : index
// CHECK-DAG: %[[C33:c33]] = arith.constant 33 : index
// CHECK-DAG: %[[C90:c90]] = arith.constant 90 : index
// CHECK-DAG: %[[C1025:c1025]] = arith.constant 1025 : index
// CHECK: scf.for %[[I:\w+]] = %[[C0]] to %[[C1025]] step %[[C1]] iter_args(%[[A:\w+]] = %init)
// CHECK-NEXT: scf.for %[[J:\w+]] = %[[C0]] to %[[C33]] step %[[C1]] iter_args(%[[B:\w+]] = %[[A]])
// CHECK-NEXT: %[[E:\w+]] = xla_gpu.apply_indexing #{{.*}}(%dim)[%[[I]], %[[J]]]
// CHECK-NEXT: arith.cmpi sge, %[[E]], %[[C0]]
// CHECK-NEXT: arith.cmpi sle, %[[E]], %[[C90]]
// CHECK-NEXT: arith.andi
// CHECK-NEXT: arith.cmpi sge, %dim, %[[C0]]
// CHECK-NEXT: arith.cmpi sle, %dim, %[[C3]]
// CHECK-NEXT: arith.andi
// CHECK-NEXT: %[[IN:\w+]] = arith.andi
// CHECK-NEXT: scf.if %[[IN]] -> (f32) {
// CHECK-NEXT: %[[R0:\w+]] = xla_gpu.apply_indexing #{{.*}}(%dim)[%[[I]], %[[J]]]
// CHECK-NEXT: %[[R1:\w+]] = xla_gpu.apply_indexing #{{.*}}(%dim)[%[[I]], %[[J]]]
// CHECK-NEXT: tensor.extract %input[%[[R0]], %[[R1]]]
// CHECK-NEXT: arith.addf %[[B]]
// CHECK-NEXT: scf.yield
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[B]]

// -----

#map = #xla_gpu.indexing_map<"(d0)[s0] -> (s0), domain: d0 in [0, 3], s0 in [0, 8]">
func.func @loop_yields_value_from_above(%input: f32, %init: f32, %dim: index) -> f32 {
  %sum = xla_gpu.loop (%dim)[%i] -> (%r0) in #map iter_args(%sum_ = %init) -> (f32) {
    xla_gpu.yield %input : f32
  }
  return %sum : f32
}
// CHECK-LABEL: @loop_yields_value_from_above
// CHECK: scf.if
// CHECK-NEXT: scf.yield %input

// -----

// Without symbols there is no loop; a point is compared with eq.
#map = #xla_gpu.indexing_map<"(d0, d1) -> (d0), domain: d0 in [0, 3], d1 in [2, 2]">
func.func @no_symbols(%init: f32, %x: index, %y: index) -> f32 {
  %sum = xla_gpu.loop (%x, %y)[] -> (%r0) in #map iter_args(%a = %init) -> (f32) {
    %b = "test.use"(%a, %r0) : (f32, index) -> f32
    xla_gpu.yield %b : f32
  }
  return %sum : f32
}
// CHECK-LABEL: @no_symbols
// CHECK-NOT: scf.for
// CHECK: arith.cmpi eq, %y
// CHECK: scf.if
