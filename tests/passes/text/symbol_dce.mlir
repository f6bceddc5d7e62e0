// RUN: symbol-dce

memref.global "private" constant @used : memref<4xi32> = dense<[1, 2, 3, 4]>
memref.global "private" constant @unused : memref<4xi32> = dense<[1, 2, 3, 4]>
func.func private @gone() {
  %m = memref.get_global @unused : memref<4xi32>
  return
}
func.func @main(%i: index) -> i32 {
  %m = memref.get_global @used : memref<4xi32>
  %r = memref.load %m[%i] : memref<4xi32>
  return %r : i32
}
// CHECK: memref.global {{.*}}@used
// CHECK-NOT: unused
// CHECK-NOT: @gone
// CHECK: func.func @main
