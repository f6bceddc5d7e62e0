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

// CHECK-LABEL: func.func @in_steps
// CHECK-NOT: scf.for
// CHECK: memref.store %{{.*}}, %{{.*}}[%c1]
// CHECK: memref.store %{{.*}}, %{{.*}}[%c4]
// CHECK-NOT: memref.store
func.func @in_steps(%m: memref<8xf32>, %x: f32) {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c6 = arith.constant 6 : index
  scf.for %i = %c1 to %c6 step %c3 {
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
