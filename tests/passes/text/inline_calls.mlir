// RUN: inline-calls{growth=12}

// A reduction's combiner is inlined however often it's called.
func.func private @add(%a: f32, %b: f32) -> f32 {
  %r = arith.addf %a, %b : f32
  return %r : f32
}
func.func @combine(%a: f32, %b: f32, %c: f32) -> f32 {
  %x = xla_gpu.pure_call @add(%a, %b) : (f32, f32) -> f32
  %y = xla_gpu.pure_call @add(%x, %c) : (f32, f32) -> f32
  return %y : f32
}
// CHECK-NOT: pure_call
// CHECK: func.func @combine
// CHECK-NEXT: %[[X:\w+]] = arith.addf %a, %b
// CHECK-NEXT: arith.addf %[[X]], %c

// -----

// Copies may make 12 ops here: two of a body of five don't fit when it's called three times.
func.func private @f(%t: tensor<4xf32>, %i: index) -> f32 {
  %a = tensor.extract %t[%i] : tensor<4xf32>
  %b = arith.mulf %a, %a : f32
  %c = arith.mulf %b, %a : f32
  %r = arith.mulf %c, %a : f32
  return %r : f32
}
func.func @large(%t: tensor<4xf32>, %i: index, %j: index, %k: index) -> (f32, f32, f32) {
  %r = xla_gpu.pure_call @f(%t, %i) : (tensor<4xf32>, index) -> f32
  %s = xla_gpu.pure_call @f(%t, %j) : (tensor<4xf32>, index) -> f32
  %u = xla_gpu.pure_call @f(%t, %k) : (tensor<4xf32>, index) -> f32
  return %r, %s, %u : f32, f32, f32
}
// CHECK-COUNT-3: pure_call

// -----

func.func private @f(%t: tensor<4xf32>, %i: index) -> f32 {
  %a = tensor.extract %t[%i] : tensor<4xf32>
  %b = arith.mulf %a, %a : f32
  %c = arith.mulf %b, %a : f32
  %r = arith.mulf %c, %a : f32
  return %r : f32
}
func.func @small(%t: tensor<4xf32>, %i: index, %j: index) -> (f32, f32) {
  %r = xla_gpu.pure_call @f(%t, %i) : (tensor<4xf32>, index) -> f32
  %s = xla_gpu.pure_call @f(%t, %j) : (tensor<4xf32>, index) -> f32
  return %r, %s : f32, f32
}
// CHECK-NOT: pure_call
// CHECK: @small
