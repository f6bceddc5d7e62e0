// RUN: cse

func.func @equal_ops(%x: f32, %y: f32) -> (f32, f32, f32) {
  %a = arith.addf %x, %y : f32
  %b = arith.addf %x, %y : f32
  %c = arith.subf %x, %y : f32
  %d = arith.mulf %a, %b : f32
  return %a, %c, %d : f32, f32, f32
}
// CHECK-LABEL: @equal_ops
// CHECK-NEXT: %[[A:.*]] = arith.addf
// CHECK-NEXT: %[[C:.*]] = arith.subf
// CHECK-NEXT: %[[D:.*]] = arith.mulf %[[A]], %[[A]]

// -----

// Attributes tell ops apart.
func.func @attributes(%x: i32, %y: i32) -> (i1, i1) {
  %a = arith.cmpi slt, %x, %y : i32
  %b = arith.cmpi sgt, %x, %y : i32
  return %a, %b : i1, i1
}
// CHECK-LABEL: @attributes
// CHECK: slt
// CHECK: sgt

// -----

// An op in a region sees the ops around it, not the other way round.
func.func @regions(%c: i1, %x: f32) -> f32 {
  %a = arith.negf %x : f32
  %r = scf.if %c -> (f32) {
    %b = arith.negf %x : f32
    %e = math.exp %x : f32
    %s = arith.addf %b, %e : f32
    scf.yield %s : f32
  } else {
    %e = math.exp %x : f32
    scf.yield %e : f32
  }
  %e = math.exp %x : f32
  %s = arith.addf %r, %e : f32
  %t = arith.addf %s, %a : f32
  return %t : f32
}
// CHECK-LABEL: @regions
// CHECK-COUNT-1: arith.negf
// CHECK-NOT: arith.negf
// CHECK-COUNT-3: math.exp
// CHECK: return

// -----

// Equal ifs are one.
func.func @region_ops(%c: i1, %x: f32, %y: f32) -> f32 {
  %r = scf.if %c -> (f32) {
    %e = math.exp %x : f32
    scf.yield %e : f32
  } else {
    scf.yield %y : f32
  }
  %q = scf.if %c -> (f32) {
    %e = math.exp %x : f32
    scf.yield %e : f32
  } else {
    scf.yield %y : f32
  }
  %s = arith.addf %r, %q : f32
  return %s : f32
}
// CHECK-LABEL: @region_ops
// CHECK-COUNT-1: scf.if
// CHECK-NOT: scf.if
// CHECK: return

// -----

func.func private @callee(index) -> f32

// Calls without side effects are merged; loads up to the next store; shared allocations and barriers never.
func.func @effects(%m: memref<8xf32>, %i: index, %x: f32) -> (f32, f32, f32, f32, f32) {
  %p = xla_gpu.pure_call @callee(%i) : (index) -> f32
  %q = xla_gpu.pure_call @callee(%i) : (index) -> f32
  %a = memref.load %m[%i] : memref<8xf32>
  %b = memref.load %m[%i] : memref<8xf32>
  memref.store %x, %m[%i] : memref<8xf32>
  %c = memref.load %m[%i] : memref<8xf32>
  return %p, %q, %a, %b, %c : f32, f32, f32, f32, f32
}
// CHECK-LABEL: @effects
// CHECK-NEXT: %[[P:.*]] = xla_gpu.pure_call @callee
// CHECK-NEXT: %[[A:.*]] = memref.load
// CHECK-NEXT: memref.store
// CHECK-NEXT: %[[C:.*]] = memref.load
// CHECK-NEXT: return %[[P]], %[[P]], %[[A]], %[[A]], %[[C]]

// -----

func.func @shared(%x: f32, %i: index) -> (tensor<4xf32>, tensor<4xf32>) {
  %s = xla_gpu.allocate_shared : tensor<4xf32>
  %t = xla_gpu.allocate_shared : tensor<4xf32>
  return %s, %t : tensor<4xf32>, tensor<4xf32>
}
// CHECK-LABEL: @shared
// CHECK-COUNT-2: xla_gpu.allocate_shared
