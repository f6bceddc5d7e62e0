// RUN: canonicalize,cse,simplify-arith,simplify-affine,licm,unroll-marked-loops,expand-float-ops,expand-small-floats,canonicalize,cse

// What a copy writes is read again after it is waited for; equal copies are two, and stay in their loop.
// CHECK-LABEL: @copies
// CHECK: %x = memref.load %s[%i]
// CHECK: scf.for
// CHECK-COUNT-2: "nvgpu.device_async_copy"(%s, %i, %g, %i)
// CHECK: "nvvm.cp.async.commit.group"
// CHECK: "nvvm.cp.async.wait.group"
// CHECK: }
// CHECK: %y = memref.load %s[%i]
// CHECK: arith.addf %x, %y
func.func @copies(%g: memref<64xf32>, %s: memref<64xf32, 3>, %out: memref<1xf32>, %i: index) attributes {xla.entry, warpsmith.target = "sm_80"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %x = memref.load %s[%i] : memref<64xf32, 3>
  scf.for %k = %c0 to %c9 step %c1 {
    "nvgpu.device_async_copy"(%s, %i, %g, %i) {bytes = 16 : i64} : (memref<64xf32, 3>, index, memref<64xf32>, index) -> ()
    "nvgpu.device_async_copy"(%s, %i, %g, %i) {bytes = 16 : i64} : (memref<64xf32, 3>, index, memref<64xf32>, index) -> ()
    "nvvm.cp.async.commit.group"() : () -> ()
    "nvvm.cp.async.wait.group"() {n = 0 : i32} : () -> ()
  }
  %y = memref.load %s[%i] : memref<64xf32, 3>
  %z = arith.addf %x, %y : f32
  memref.store %z, %out[%c0] : memref<1xf32>
  return
}

// -----

// bf16 and f16 fragments stay what they are where the target has no arithmetic on them; a loop carries its sum.
// CHECK-LABEL: @product
// CHECK: %d = scf.for {{.*}} iter_args(%c = %cst) -> (vector<4xf32>)
// CHECK-NEXT: %a = "nvgpu.ldmatrix"(%s, %i)
// CHECK-SAME: -> vector<8xbf16>
// CHECK-NEXT: %b = "nvgpu.ldmatrix"(%s, %i)
// CHECK-SAME: -> vector<4xbf16>
// CHECK-NEXT: [[D:%\w+]] = "nvgpu.mma.sync"(%a, %b, %c)
// CHECK-NEXT: scf.yield [[D]]
// CHECK: "nvgpu.stmatrix"
// CHECK-NOT: arith.extf
func.func @product(%s: memref<64xbf16, 3>, %out: memref<4xf32>, %i: index) attributes {xla.entry, warpsmith.target = "sm_80"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %cst = arith.constant dense<0.0> : vector<4xf32>
  %d = scf.for %k = %c0 to %c9 step %c1 iter_args(%c = %cst) -> (vector<4xf32>) {
    %a = "nvgpu.ldmatrix"(%s, %i) {num_tiles = 4 : i64, transpose = false} : (memref<64xbf16, 3>, index) -> vector<8xbf16>
    %b = "nvgpu.ldmatrix"(%s, %i) {num_tiles = 2 : i64, transpose = true} : (memref<64xbf16, 3>, index) -> vector<4xbf16>
    %e = "nvgpu.mma.sync"(%a, %b, %c) {shape = array<i64: 16, 8, 16>} : (vector<8xbf16>, vector<4xbf16>, vector<4xf32>) -> vector<4xf32>
    scf.yield %e : vector<4xf32>
  }
  vector.store %d, %out[%c0] : memref<4xf32>, vector<4xf32>
  %h = arith.truncf %d : vector<4xf32> to vector<4xbf16>
  "nvgpu.stmatrix"(%h, %s, %i) {num_tiles = 2 : i64, transpose = false} : (vector<4xbf16>, memref<64xbf16, 3>, index) -> ()
  return
}
