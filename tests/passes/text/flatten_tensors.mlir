// RUN: flatten-tensors

func.func @tensor_extract(%arg0: tensor<2x3xf32, dense<[0, 1]> : tensor<2xi64>>, %arg1: index, %arg2: index) -> f32 {
  %v = tensor.extract %arg0[%arg1, %arg2] : tensor<2x3xf32, dense<[0, 1]> : tensor<2xi64>>
  return %v : f32
}
// CHECK: indexing_map<"(d0, d1) -> (d1 * 2 + d0), domain: d0 in [0, 1], d1 in [0, 2]">
// CHECK-LABEL: @tensor_extract(%arg0: tensor<6xf32>,
// CHECK-NEXT: %[[I:\w+]] = xla_gpu.apply_indexing #{{.*}}(%arg1, %arg2)
// CHECK-NEXT: tensor.extract %arg0[%[[I]]] : tensor<6xf32>

// -----

func.func @tensor_insert(%arg0: tensor<10x24xcomplex<f32>>) -> tensor<10x24xcomplex<f32>> {
  %c1 = arith.constant 1 : index
  %v = "test.complex"() : () -> complex<f32>
  %out = tensor.insert %v into %arg0[%c1, %c1] : tensor<10x24xcomplex<f32>>
  return %out : tensor<10x24xcomplex<f32>>
}
// CHECK-LABEL: @tensor_insert(%arg0: tensor<240xcomplex<f32>>) -> tensor<240xcomplex<f32>>
// CHECK: %[[I:\w+]] = arith.constant 25 : index
// CHECK: tensor.insert %{{\w+}} into %arg0[%[[I]]]

// -----

func.func @atomic_rmw(%in: tensor<2x4xf32>, %i: index, %j: index) -> tensor<2x4xf32> {
  %ret = xla_gpu.atomic_rmw %in[%i, %j] : tensor<2x4xf32> {
    ^bb0(%current: f32):
      %c42 = arith.constant 42.0 : f32
      %add = arith.minimumf %current, %c42 : f32
      xla_gpu.yield %add : f32
  }
  return %ret : tensor<2x4xf32>
}
// CHECK: (d0 * 4 + d1)
// CHECK-LABEL: @atomic_rmw(%in: tensor<8xf32>
// CHECK: xla_gpu.atomic_rmw %in[%{{\w+}}] : tensor<8xf32>

// -----

func.func private @callee(%t: tensor<2x4xf32>, %i: index) -> tensor<2x4xf32> {
  return %t : tensor<2x4xf32>
}
func.func @pure_call(%t: tensor<2x4xf32>, %i: index) -> tensor<2x4xf32> {
  %r = xla_gpu.pure_call @callee(%t, %i) : (tensor<2x4xf32>, index) -> tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}
// CHECK: @callee(%t: tensor<8xf32>, %i: index) -> tensor<8xf32>
// CHECK: pure_call @callee(%t, %i) : (tensor<8xf32>, index) -> tensor<8xf32>

// -----

func.func @for_loop(%t0: tensor<32x1024xf32>, %t1: tensor<64x8x4xf32>) -> (tensor<32x1024xf32>, tensor<64x8x4xf32>, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c0f = arith.constant 0.0 : f32
  %for:3 = scf.for %i = %c0 to %c64 step %c1 iter_args(%a = %t0, %b = %t1, %s = %c0f) -> (tensor<32x1024xf32>, tensor<64x8x4xf32>, f32) {
    %u = tensor.insert %c0f into %a[%c1, %i] : tensor<32x1024xf32>
    %v = tensor.insert %c0f into %b[%i, %c1, %c1] : tensor<64x8x4xf32>
    scf.yield %u, %v, %s : tensor<32x1024xf32>, tensor<64x8x4xf32>, f32
  } {some_attr}
  return %for#0, %for#1, %for#2 : tensor<32x1024xf32>, tensor<64x8x4xf32>, f32
}
// CHECK-DAG: #[[M0:\w+]] = {{.*}}(d0) -> (d0 + 1024)
// CHECK-DAG: #[[M1:\w+]] = {{.*}}(d0) -> (d0 * 32 + 5)
// CHECK-LABEL: @for_loop
// CHECK: scf.for %[[I:\w+]]
// CHECK-DAG: apply_indexing #[[M0]](%[[I]])
// CHECK-DAG: apply_indexing #[[M1]](%[[I]])
// CHECK: some_attr

// -----

func.func @if_op(%cond: i1, %t: tensor<2x4xf32>, %v: f32, %i: index) -> tensor<2x4xf32> {
  %r = scf.if %cond -> (tensor<2x4xf32>) {
    %u = tensor.insert %v into %t[%i, %i] : tensor<2x4xf32>
    scf.yield %u : tensor<2x4xf32>
  } else {
    scf.yield %t : tensor<2x4xf32>
  }
  return %r : tensor<2x4xf32>
}
// CHECK-LABEL: @if_op
// CHECK-NOT: 2x4
// CHECK: scf.if %cond -> (tensor<8xf32>)

// -----

func.func @shared_and_sync(%i: index, %j: index) -> f32 {
  %s = xla_gpu.allocate_shared : tensor<16x8x4xf32>
  %t = xla_gpu.sync_threads %s : tensor<16x8x4xf32>
  %e = tensor.extract %t[%i, %j, %j] : tensor<16x8x4xf32>
  return %e : f32
}
// CHECK: (d0 * 32 + d1 * 5)
// CHECK: allocate_shared : tensor<512xf32>
// CHECK: sync_threads {{.*}} : tensor<512xf32>

// -----

func.func @constant(%i: index, %j: index) -> f32 {
  %c = arith.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %e = tensor.extract %c[%i, %j] : tensor<2x3xf32>
  return %e : f32
}
// CHECK-LABEL: @constant
// CHECK: dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00, 5.000000e+00, 6.000000e+00]> : tensor<6xf32>

// -----

// One linear index serves a read and a write of the same place; rank 1 and 0 stay.
func.func @shared_index(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %c: tensor<5xf32>, %i: index, %j: index) -> (tensor<4x8xf32>, f32) {
  %e = tensor.extract %a[%i, %j] : tensor<4x8xf32>
  %n = arith.negf %e : f32
  %o = tensor.insert %n into %b[%i, %j] : tensor<4x8xf32>
  %f = tensor.extract %c[%i] : tensor<5xf32>
  return %o, %f : tensor<4x8xf32>, f32
}
// CHECK-LABEL: @shared_index
// CHECK-COUNT-1: xla_gpu.apply_indexing
// CHECK-NOT: xla_gpu.apply_indexing
// CHECK: tensor.extract %c[%i] : tensor<5xf32>
