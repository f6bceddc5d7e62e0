// RUN: prefetch-rows

// A strip of rows that lie further apart than it is long: the next round's lines are asked for, one a line.
// CHECK-LABEL: func.func @strip
// CHECK: scf.for %c = %c0 to %c256 step %c32 {
// CHECK: [[I:%\w+]] = arith.addi
// CHECK-NEXT: [[P:%\w+]] = arith.constant 2048 : index
// CHECK-NEXT: [[A:%\w+]] = arith.addi [[I]], [[P]] : index
// CHECK-NEXT: xla_cpu.prefetch %in[[[A]]] {elem_type = f32} : memref<1048576xf32>
// CHECK-NEXT: [[Q:%\w+]] = arith.constant 2064 : index
// CHECK-NEXT: [[B:%\w+]] = arith.addi [[I]], [[Q]] : index
// CHECK-NEXT: xla_cpu.prefetch %in[[[B]]] {elem_type = f32} : memref<1048576xf32>
// CHECK-NEXT: vector.load %in[[[I]]]
func.func @strip(%in: memref<1048576xf32>, %out: memref<1048576xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c256 = arith.constant 256 : index
  %c512 = arith.constant 512 : index
  %c2048 = arith.constant 2048 : index
  scf.for %r = %c0 to %c512 step %c1 {
    %row = arith.muli %r, %c2048 : index
    scf.for %c = %c0 to %c256 step %c32 {
      %i = arith.addi %row, %c : index
      %x = vector.load %in[%i] : memref<1048576xf32>, vector<32xf32>
      vector.store %x, %out[%c] : memref<1048576xf32>, vector<32xf32>
    }
  }
  return
}

// -----

// Rows without a gap are one stream; a small array is in a cache; few rounds end before they begin.
// CHECK-LABEL: func.func @rest
// CHECK-NOT: prefetch
// CHECK: return
func.func @rest(%in: memref<1048576xf32>, %small: memref<65536xf32>, %out: memref<1048576xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c512 = arith.constant 512 : index
  %c2048 = arith.constant 2048 : index
  scf.for %r = %c0 to %c512 step %c1 {
    %row = arith.muli %r, %c2048 : index
    scf.for %c = %c0 to %c2048 step %c16 {
      %i = arith.addi %row, %c : index
      %x = vector.load %in[%i] : memref<1048576xf32>, vector<16xf32>
      vector.store %x, %out[%i] : memref<1048576xf32>, vector<16xf32>
    }
    scf.for %c = %c0 to %c512 step %c16 {
      %i = arith.addi %row, %c : index
      %x = vector.load %small[%i] : memref<65536xf32>, vector<16xf32>
      vector.store %x, %out[%i] : memref<1048576xf32>, vector<16xf32>
    }
  }
  scf.for %r = %c0 to %c8 step %c1 {
    %row = arith.muli %r, %c2048 : index
    scf.for %c = %c0 to %c512 step %c16 {
      %i = arith.addi %row, %c : index
      %x = vector.load %in[%i] : memref<1048576xf32>, vector<16xf32>
      vector.store %x, %out[%c] : memref<1048576xf32>, vector<16xf32>
    }
  }
  return
}
