// RUN: unroll-marked-loops

// CHECK-LABEL: func.func @marked
// CHECK-NOT: scf.for
// CHECK-COUNT-4: memref.store
func.func @marked(%m: memref<8xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    memref.store %x, %m[%i] : memref<8xf32>
  } {tile.unroll}
  return
}

// Loops that nobody marked stay, and marked ones whose number of turns isn't known.
// CHECK-LABEL: func.func @others
// CHECK: scf.for
// CHECK: scf.for
func.func @others(%m: memref<8xf32>, %x: f32, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    memref.store %x, %m[%i] : memref<8xf32>
  }
  scf.for %i = %c0 to %n step %c1 {
    memref.store %x, %m[%i] : memref<8xf32>
  } {tile.unroll}
  return
}
