// RUN: lower-workgroups

// The id becomes the variable of a loop over the work groups that the call runs; constants stay outside.
// CHECK-LABEL: func.func @main(%in: memref<64xf32>, %out: memref<64xf32> {llvm.noalias}, %begin: index, %end: index)
// CHECK-SAME: warpsmith.workgroups = 4 : i64
// CHECK: %c16 = arith.constant 16 : index
// CHECK: scf.for [[W:%\w+]] = %begin to %end step %c1 {
// CHECK-NEXT: [[I:%\w+]] = arith.muli [[W]], %c16 : index
// CHECK-NEXT: memref.load %in[[[I]]]
// CHECK-NEXT: memref.store {{%\w+}}, %out[[[I]]]
// CHECK-NEXT: } {xla.range = [0 : index, 3 : index]}
// CHECK-NEXT: return
func.func @main(%in: memref<64xf32>, %out: memref<64xf32> {llvm.noalias}) attributes {xla.entry, warpsmith.target = "cpu"} {
  %c16 = arith.constant 16 : index
  %w = xla_gpu.workgroup_id x {xla.range = [0 : index, 3 : index]}
  %i = arith.muli %w, %c16 : index
  %x = memref.load %in[%i] : memref<64xf32>
  memref.store %x, %out[%i] : memref<64xf32>
  return
}

// -----

// A function that isn't the entry stays as it is.
// CHECK-LABEL: func.func private @helper(%i: index) -> index {
func.func private @helper(%i: index) -> index {
  return %i : index
}

// -----

// Memory of the work groups' own is allocated once.
// CHECK-LABEL: func.func @own
// CHECK: memref.alloca
// CHECK: scf.for
func.func @own(%out: memref<64xf32>) attributes {xla.entry, warpsmith.target = "cpu"} {
  %t = memref.alloca() : memref<16xf32>
  %w = xla_gpu.workgroup_id x {xla.range = [0 : index, 3 : index]}
  %x = memref.load %t[%w] : memref<16xf32>
  memref.store %x, %out[%w] : memref<64xf32>
  return
}
