// RUN: fit-loop-bounds

// The check fails from some iteration on: the loop ends there.
// CHECK-LABEL: func.func @last_group
// CHECK: [[BASE:%\w+]] = arith.muli %w, %c32 : index
// CHECK: [[ROOM:%\w+]] = arith.subi %c99,
// CHECK: [[COUNT:%\w+]] = arith.addi [[ROOM]], %c1
// CHECK-NEXT: [[END:%\w+]] = arith.minsi %c32, [[COUNT]] : index
// CHECK-NEXT: scf.for %i = %c0 to [[END]] step %c1 {
// CHECK-NOT: scf.if
// CHECK: memref.store
func.func @last_group(%w: index, %out: memref<100xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c99 = arith.constant 99 : index
  %base = arith.muli %w, %c32 : index
  scf.for %i = %c0 to %c32 step %c1 {
    %p = arith.addi %base, %i : index
    %ok = arith.cmpi sle, %p, %c99 : index
    scf.if %ok {
      memref.store %x, %out[%p] : memref<100xf32>
    }
  }
  return
}

// -----

// Steps of 2 aren't taken.
// CHECK-LABEL: func.func @stride
// CHECK: scf.for %i = %c0 to %c64
// CHECK: scf.if
func.func @stride(%out: memref<100xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %c99 = arith.constant 99 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %p = arith.muli %i, %c2 : index
    %ok = arith.cmpi sle, %p, %c99 : index
    scf.if %ok {
      memref.store %x, %out[%p] : memref<100xf32>
    }
  }
  return
}

// -----

// Nor is a check whose other way does something.
// CHECK-LABEL: func.func @else
// CHECK: scf.for %i = %c0 to %c64
// CHECK: scf.if
// CHECK: } else {
func.func @else(%out: memref<100xf32>, %x: f32, %y: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c50 = arith.constant 50 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %ok = arith.cmpi slt, %i, %c50 : index
    scf.if %ok {
      memref.store %x, %out[%i] : memref<100xf32>
    } else {
      memref.store %y, %out[%i] : memref<100xf32>
    }
  }
  return
}

// -----

// Nor one beside another access, which every iteration makes.
// CHECK-LABEL: func.func @beside
// CHECK: scf.for %i = %c0 to %c64
// CHECK: scf.if
func.func @beside(%out: memref<100xf32>, %x: f32, %y: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c50 = arith.constant 50 : index
  scf.for %i = %c0 to %c64 step %c1 {
    memref.store %y, %out[%i] : memref<100xf32>
    %ok = arith.cmpi slt, %i, %c50 : index
    scf.if %ok {
      memref.store %x, %out[%i] : memref<100xf32>
    }
  }
  return
}
