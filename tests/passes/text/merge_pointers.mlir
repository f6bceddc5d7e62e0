// RUN: merge-pointers

// Two arguments of one slice are one buffer: a private function loses the second, the entry keeps its signature.
// CHECK-LABEL: func.func private @callee(%a: memref<8xf32> {llvm.noalias}, %i: index) -> f32
// CHECK-NEXT: memref.load %a[%i]
// CHECK-NEXT: memref.load %a[%i]
func.func private @callee(%a: memref<8xf32> {xla.slice_index = 0 : index}, %b: memref<8xf32> {xla.slice_index = 0 : index}, %i: index) -> f32 {
  %x = memref.load %a[%i] : memref<8xf32>
  %y = memref.load %b[%i] : memref<8xf32>
  %z = arith.addf %x, %y : f32
  return %z : f32
}

// A buffer that isn't invariant may alias.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%a: memref<8xf32> {llvm.noalias}, %b: memref<8xf32>, %out: memref<8xf32> {llvm.noalias})
// CHECK: call @callee(%a, %c1) : (memref<8xf32>, index) -> f32
// CHECK: memref.store {{%\w+}}, %a[%c1]
func.func @main(%a: memref<8xf32> {xla.slice_index = 0 : index}, %b: memref<8xf32> {xla.slice_index = 1 : index, xla.not_invariant}, %out: memref<8xf32> {xla.slice_index = 0 : index}) attributes {xla.entry} {
  %c1 = arith.constant 1 : index
  %x = func.call @callee(%a, %a, %c1) : (memref<8xf32>, memref<8xf32>, index) -> f32
  %y = memref.load %b[%c1] : memref<8xf32>
  %z = arith.addf %x, %y : f32
  memref.store %z, %out[%c1] : memref<8xf32>
  return
}
