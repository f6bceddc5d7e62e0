// RUN: lower-atomics

// One float addition: the instruction.
// CHECK-LABEL: func.func @add
// CHECK: memref.atomic_rmw addf %x, %m[%i] : (f32, memref<8xf32>) -> f32
// CHECK-NOT: xla_gpu
func.func @add(%m: memref<8xf32>, %x: f32, %i: index) {
  %0 = xla_gpu.atomic_rmw %m[%i] : memref<8xf32> {
  ^bb0(%old: f32):
    %1 = arith.addf %x, %old : f32
    xla_gpu.yield %1 : f32
  }
  return
}

// -----

// Unsigned maximum of words has one, too.
// CHECK-LABEL: func.func @max
// CHECK: memref.atomic_rmw maxu %x, %m[%i] : (i64, memref<8xi64>) -> i64
func.func @max(%m: memref<8xi64>, %x: i64, %i: index) {
  %0 = xla_gpu.atomic_rmw %m[%i] : memref<8xi64> {
  ^bb0(%old: i64):
    %1 = arith.maxui %old, %x : i64
    xla_gpu.yield %1 : i64
  }
  return
}

// -----

// A body that forgets the old value is a store.
// CHECK-LABEL: func.func @set
// CHECK: memref.store %x, %m[%i] : memref<8xbf16>
// CHECK-NOT: atomic
func.func @set(%m: memref<8xbf16>, %x: bf16, %i: index) {
  %0 = xla_gpu.atomic_rmw %m[%i] : memref<8xbf16> {
  ^bb0(%old: bf16):
    xla_gpu.yield %x : bf16
  }
  return
}

// -----

// Anything else: try, look whether somebody came in between, try again with what he left.
// CHECK-LABEL: func.func @mul
// CHECK: [[FIRST:%\w+]] = memref.load %m[%i] : memref<8xi8>
// CHECK: scf.while ([[OLD:%\w+]] = [[FIRST]]) : (i8) -> i8 {
// CHECK-NEXT: [[NEW:%\w+]] = arith.muli [[OLD]], %x : i8
// CHECK-NEXT: [[SEEN:%\w+]]:2 = xla_gpu.compare_exchange %m[%i], [[OLD]], [[NEW]] : memref<8xi8>
// CHECK: [[AGAIN:%\w+]] = arith.xori [[SEEN]]#1
// CHECK-NEXT: scf.condition([[AGAIN]]) [[SEEN]]#0 : i8
func.func @mul(%m: memref<8xi8>, %x: i8, %i: index) {
  %0 = xla_gpu.atomic_rmw %m[%i] : memref<8xi8> {
  ^bb0(%old: i8):
    %1 = arith.muli %old, %x : i8
    xla_gpu.yield %1 : i8
  }
  return
}

// -----

// An addition of smaller integers has no instruction.
// CHECK-LABEL: func.func @small
// CHECK: xla_gpu.compare_exchange
func.func @small(%m: memref<8xi16>, %x: i16, %i: index) {
  %0 = xla_gpu.atomic_rmw %m[%i] : memref<8xi16> {
  ^bb0(%old: i16):
    %1 = arith.addi %old, %x : i16
    xla_gpu.yield %1 : i16
  }
  return
}

// -----

// An addition that takes subnormal numbers for zeros is a loop where they are kept: in strict numerics.
// CHECK-LABEL: func.func @strict
// CHECK-NOT: memref.atomic_rmw
// CHECK: xla_gpu.compare_exchange %m[
func.func @strict(%m: memref<8xf32>, %x: f32, %i: index) attributes {warpsmith.numerics = "strict", warpsmith.target = "sm_90"} {
  %0 = xla_gpu.atomic_rmw %m[%i] : memref<8xf32> {
  ^bb0(%old: f32):
    %1 = arith.addf %old, %x : f32
    xla_gpu.yield %1 : f32
  }
  return
}

// -----

// XLA uses it.
// CHECK-LABEL: func.func @xla
// CHECK: memref.atomic_rmw addf %x, %m[%i] : (f32, memref<8xf32>) -> f32
func.func @xla(%m: memref<8xf32>, %x: f32, %i: index) attributes {warpsmith.numerics = "xla", warpsmith.target = "sm_90"} {
  %0 = xla_gpu.atomic_rmw %m[%i] : memref<8xf32> {
  ^bb0(%old: f32):
    %1 = arith.addf %old, %x : f32
    xla_gpu.yield %1 : f32
  }
  return
}

// -----

// In shared memory it keeps them, and so does that of f64.
// CHECK-LABEL: func.func @shared
// CHECK: memref.atomic_rmw addf %x, %m[%i] : (f32, memref<8xf32, 3>) -> f32
// CHECK: memref.atomic_rmw addf %y, %n[%i] : (f64, memref<8xf64>) -> f64
func.func @shared(%m: memref<8xf32, 3>, %x: f32, %n: memref<8xf64>, %y: f64, %i: index) attributes {warpsmith.numerics = "strict", warpsmith.target = "sm_90"} {
  %0 = xla_gpu.atomic_rmw %m[%i] : memref<8xf32, 3> {
  ^bb0(%old: f32):
    %1 = arith.addf %old, %x : f32
    xla_gpu.yield %1 : f32
  }
  %2 = xla_gpu.atomic_rmw %n[%i] : memref<8xf64> {
  ^bb0(%old: f64):
    %3 = arith.addf %old, %y : f64
    xla_gpu.yield %3 : f64
  }
  return
}
