// RUN: allocate-on-stack

// A work group's own memory is allocated once, before the loop over work groups; other globals stay.
// CHECK: memref.global "private" constant @table : memref<2xf32>
// CHECK-NOT: @shared_0
// CHECK-LABEL: func.func @main
// CHECK-NEXT: [[T:%\w+]] = memref.alloca() {alignment = 64 : i64} : memref<64xf32>
// CHECK: scf.for
// CHECK: memref.store {{%\w+}}, [[T]][%i] : memref<64xf32>
// CHECK: memref.get_global @table
memref.global "private" @shared_0 : memref<64xf32, 3> = uninitialized
memref.global "private" constant @table : memref<2xf32> = dense<[1.0, 2.0]>
func.func @main(%x: f32, %n: index) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %shared = memref.get_global @shared_0 : memref<64xf32, 3>
    memref.store %x, %shared[%i] : memref<64xf32, 3>
  }
  %t = memref.get_global @table : memref<2xf32>
  %y = memref.load %t[%c0] : memref<2xf32>
  return %y : f32
}
