// RUN: pair-registers

// Two registers at a time; one that all iterations read is in both lanes, and constants, too.
// CHECK: scf.for %f = %c0 to %c8 step %c2
// CHECK: [[X:%\w+]] = vector.load %r[%f] : memref<8xf32, 5>, vector<2xf32>
// CHECK: vector.broadcast {{%\w+}} : f32 to vector<2xf32>
// CHECK: arith.addf [[X]], {{%\w+}} : vector<2xf32>
// CHECK: arith.mulf {{%\w+}}, {{%\w+}} : vector<2xf32>
// CHECK: vector.store {{%\w+}}, %s[%f] : memref<8xf32, 5>, vector<2xf32>
// CHECK: tile.unroll
func.func @main() attributes {xla.entry, warpsmith.target = "sm_100"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %half = arith.constant 0.5 : f32
  %r = memref.alloca() : memref<8xf32, 5>
  %s = memref.alloca() : memref<8xf32, 5>
  %m = memref.alloca() : memref<1xf32, 5>
  scf.for %f = %c0 to %c8 step %c1 {
    %x = memref.load %r[%f] : memref<8xf32, 5>
    %y = memref.load %m[%c0] : memref<1xf32, 5>
    %z = arith.addf %x, %y : f32
    %w = arith.mulf %z, %half : f32
    memref.store %w, %s[%f] : memref<8xf32, 5>
  } {tile.unroll}
  return
}

// -----

// A processor without such sums takes one at a time, but conversions in pairs.
// CHECK: arith.addf {{%\w+}}, {{%\w+}} : f32
// CHECK: arith.truncf {{%\w+}} : vector<2xf32> to vector<2xf16>
func.func @main() attributes {xla.entry, warpsmith.target = "sm_90"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = memref.alloca() : memref<8xf32, 5>
  %h = memref.alloca() : memref<8xf16, 5>
  scf.for %f = %c0 to %c8 step %c1 {
    %x = memref.load %r[%f] : memref<8xf32, 5>
    %z = arith.addf %x, %x : f32
    memref.store %z, %r[%f] : memref<8xf32, 5>
  } {tile.unroll}
  scf.for %f = %c0 to %c8 step %c1 {
    %x = memref.load %r[%f] : memref<8xf32, 5>
    %z = arith.truncf %x : f32 to f16
    memref.store %z, %h[%f] : memref<8xf16, 5>
  } {tile.unroll}
  return
}

// -----

// Not: an odd number, registers two apart, memory of others, what the iteration before wrote, or an op that has no pair.
// CHECK-NOT: vector
func.func @main(%a: memref<8xf32>) attributes {xla.entry, warpsmith.target = "sm_100"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %r = memref.alloca() : memref<16xf32, 5>
  scf.for %f = %c0 to %c7 step %c1 {
    %x = memref.load %r[%f] : memref<16xf32, 5>
    %z = arith.addf %x, %x : f32
    memref.store %z, %r[%f] : memref<16xf32, 5>
  } {tile.unroll}
  scf.for %f = %c0 to %c8 step %c1 {
    %i = arith.muli %f, %c2 : index
    %x = memref.load %r[%i] : memref<16xf32, 5>
    %z = arith.addf %x, %x : f32
    memref.store %z, %r[%i] : memref<16xf32, 5>
  } {tile.unroll}
  scf.for %f = %c0 to %c8 step %c1 {
    %x = memref.load %a[%f] : memref<8xf32>
    %z = arith.addf %x, %x : f32
    memref.store %z, %a[%f] : memref<8xf32>
  } {tile.unroll}
  scf.for %f = %c0 to %c8 step %c1 {
    %x = memref.load %r[%f] : memref<16xf32, 5>
    %z = arith.addf %x, %x : f32
    %i = arith.addi %f, %c1 : index
    memref.store %z, %r[%i] : memref<16xf32, 5>
  } {tile.unroll}
  scf.for %f = %c0 to %c8 step %c1 {
    %x = memref.load %r[%f] : memref<16xf32, 5>
    %z = math.sqrt %x : f32
    memref.store %z, %r[%f] : memref<16xf32, 5>
  } {tile.unroll}
  scf.for %f = %c0 to %c8 step %c1 {
    %x = memref.load %r[%f] : memref<16xf32, 5>
    %z = arith.addf %x, %x : f32
    memref.store %z, %r[%f] : memref<16xf32, 5>
  }
  return
}
