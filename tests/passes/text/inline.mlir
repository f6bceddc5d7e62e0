// RUN: erase-dead-functions,inline

// A chain of single users collapses; dead callers don't count.
func.func private @mul(%a: f32, %b: f32) -> f32 {
  %r = arith.mulf %a, %b : f32
  return %r : f32
}
func.func private @add(%a: f32, %b: f32) -> f32 {
  %m = xla_gpu.pure_call @mul(%a, %b) : (f32, f32) -> f32
  %r = arith.addf %a, %m : f32
  return %r : f32
}
func.func private @dead(%a: f32, %b: f32) -> f32 {
  %m = xla_gpu.pure_call @mul(%a, %b) : (f32, f32) -> f32
  return %m : f32
}
func.func @caller(%a: f32, %b: f32) -> f32 {
  %r = xla_gpu.pure_call @add(%a, %b) : (f32, f32) -> f32
  return %r : f32
}
// CHECK: module {
// CHECK-NEXT: func.func @caller
// CHECK-NOT: pure_call
// CHECK: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK-NEXT: return
// CHECK-NOT: func.func

// -----

func.func private @mul(%a: f32, %b: f32) -> f32 {
  %r = arith.mulf %a, %b : f32
  return %r : f32
}
func.func @noinline(%a: f32, %b: f32) -> f32 {
  %r = xla_gpu.pure_call @mul(%a, %b) {noinline} : (f32, f32) -> f32
  return %r : f32
}
// CHECK: @noinline
// CHECK-NEXT: pure_call @mul

// -----

// One callee from two functions stays a function.
func.func private @f(%t: tensor<4xf32>, %i: index) -> f32 {
  %a = tensor.extract %t[%i] : tensor<4xf32>
  %r = arith.mulf %a, %a : f32
  return %r : f32
}
func.func @one(%t: tensor<4xf32>, %i: index) -> f32 {
  %r = xla_gpu.pure_call @f(%t, %i) : (tensor<4xf32>, index) -> f32
  return %r : f32
}
func.func @two(%t: tensor<4xf32>, %i: index) -> f32 {
  %r = xla_gpu.pure_call @f(%t, %i) : (tensor<4xf32>, index) -> f32
  return %r : f32
}
// CHECK-COUNT-2: pure_call @f

// -----

// The same on a CPU is inlined: the function is small.
func.func private @f(%t: tensor<4xf32>, %i: index) -> f32 {
  %a = tensor.extract %t[%i] : tensor<4xf32>
  %r = arith.mulf %a, %a : f32
  return %r : f32
}
func.func @one(%t: tensor<4xf32>, %i: index) -> f32 attributes {xla.entry, warpsmith.target = "cpu"} {
  %r = xla_gpu.pure_call @f(%t, %i) : (tensor<4xf32>, index) -> f32
  return %r : f32
}
func.func @two(%t: tensor<4xf32>, %i: index) -> f32 {
  %r = xla_gpu.pure_call @f(%t, %i) : (tensor<4xf32>, index) -> f32
  return %r : f32
}
// CHECK-NOT: pure_call

// -----

// Two different arguments: the body is not multiplied. Equal calls are one.
func.func private @f(%t: tensor<4xf32>, %i: index) -> f32 {
  %a = tensor.extract %t[%i] : tensor<4xf32>
  %r = arith.mulf %a, %a : f32
  return %r : f32
}
func.func @different(%t: tensor<4xf32>, %i: index, %j: index) -> f32 {
  %r = xla_gpu.pure_call @f(%t, %i) : (tensor<4xf32>, index) -> f32
  %s = xla_gpu.pure_call @f(%t, %j) : (tensor<4xf32>, index) -> f32
  %u = arith.addf %r, %s : f32
  return %u : f32
}
// CHECK-LABEL: @different
// CHECK-COUNT-2: pure_call @f

// -----

func.func private @f(%t: tensor<4xf32>, %i: index) -> f32 {
  %a = tensor.extract %t[%i] : tensor<4xf32>
  %r = arith.mulf %a, %a : f32
  return %r : f32
}
func.func @equal(%t: tensor<4xf32>, %i: index) -> f32 {
  %r = xla_gpu.pure_call @f(%t, %i) : (tensor<4xf32>, index) -> f32
  %s = xla_gpu.pure_call @f(%t, %i) : (tensor<4xf32>, index) -> f32
  %u = arith.addf %r, %s : f32
  return %u : f32
}
// CHECK-NOT: pure_call
// CHECK-LABEL: @equal
// CHECK-NEXT: tensor.extract
// CHECK-NEXT: %[[M:\w+]] = arith.mulf
// CHECK-NEXT: arith.addf %[[M]], %[[M]]

// -----

// A chain of overlapping callees collapses fully.
func.func private @fib0(%a: f32) -> f32 {
  %r = arith.negf %a : f32
  return %r : f32
}
func.func private @fib1(%a: f32) -> f32 {
  %r = arith.mulf %a, %a : f32
  return %r : f32
}
func.func private @fib2(%a: f32) -> f32 {
  %x = xla_gpu.pure_call @fib0(%a) : (f32) -> f32
  %y = xla_gpu.pure_call @fib1(%a) : (f32) -> f32
  %r = arith.addf %x, %y : f32
  return %r : f32
}
func.func private @fib3(%a: f32) -> f32 {
  %x = xla_gpu.pure_call @fib1(%a) : (f32) -> f32
  %y = xla_gpu.pure_call @fib2(%a) : (f32) -> f32
  %r = arith.addf %x, %y : f32
  return %r : f32
}
func.func private @fib4(%a: f32) -> f32 {
  %x = xla_gpu.pure_call @fib2(%a) : (f32) -> f32
  %y = xla_gpu.pure_call @fib3(%a) : (f32) -> f32
  %r = arith.addf %x, %y : f32
  return %r : f32
}
func.func @fib5(%a: f32) -> f32 {
  %x = xla_gpu.pure_call @fib3(%a) : (f32) -> f32
  %y = xla_gpu.pure_call @fib4(%a) : (f32) -> f32
  %r = arith.addf %x, %y : f32
  return %r : f32
}
// CHECK-LABEL: @fib5
// CHECK-DAG: arith.negf
// CHECK-DAG: arith.mulf
// CHECK-COUNT-4: arith.addf
// CHECK-NEXT: return

// -----

// Shared callees are inlined when the caller calls them as well; without that they stay.
func.func private @shared(%a: f32) -> f32 {
  %r = math.exp %a : f32
  return %r : f32
}
func.func private @user(%a: f32) -> f32 {
  %x = xla_gpu.pure_call @shared(%a) : (f32) -> f32
  %r = arith.addf %x, %x : f32
  return %r : f32
}
func.func @overlap(%a: f32) -> f32 {
  %x = xla_gpu.pure_call @shared(%a) : (f32) -> f32
  %y = xla_gpu.pure_call @user(%a) : (f32) -> f32
  %r = arith.addf %x, %y : f32
  return %r : f32
}
// CHECK-LABEL: @overlap
// CHECK-NEXT: math.exp
// CHECK-NOT: pure_call
// CHECK: return

// -----

func.func private @view(%t: tensor<4xf32>, %i: index) -> f32 attributes {no_compute} {
  %r = tensor.extract %t[%i] : tensor<4xf32>
  return %r : f32
}
func.func @no_compute(%t: tensor<4xf32>, %i: index, %j: index) -> f32 {
  %x = xla_gpu.pure_call @view(%t, %i) : (tensor<4xf32>, index) -> f32
  %y = xla_gpu.pure_call @view(%t, %j) : (tensor<4xf32>, index) -> f32
  %r = arith.addf %x, %y : f32
  return %r : f32
}
// CHECK-LABEL: @no_compute
// CHECK-COUNT-2: tensor.extract
// CHECK-NOT: pure_call
