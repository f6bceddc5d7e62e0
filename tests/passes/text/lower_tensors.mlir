// RUN: lower-tensors

// Every tensor stands for the buffer its chain of inserts began with; loops stop carrying it.
// CHECK-LABEL: func.func @copy(%in: memref<8xf32> {{.*}}, %out: memref<8xf32> {llvm.align = 16 : index}) {
// CHECK: scf.for %i = %c0 to %c8 step %c1 {
// CHECK-NEXT: %x = memref.load %in[%i] {invariant} : memref<8xf32>
// CHECK-NEXT: memref.store %x, %out[%i] : memref<8xf32>
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @copy(%in: tensor<8xf32> {llvm.align = 16 : index, xla.invariant}, %out: tensor<8xf32> {llvm.align = 16 : index}) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%o = %out) -> (tensor<8xf32>) {
    %x = tensor.extract %in[%i] : tensor<8xf32>
    %t = tensor.insert %x into %o[%i] : tensor<8xf32>
    scf.yield %t : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

// A branch keeps the results that are no tensors.
// CHECK-LABEL: func.func @branch
// CHECK-SAME: -> f32
// CHECK: [[R:%\w+]] = scf.if %c -> (f32) {
// CHECK-NEXT: memref.store %x, %out[%i] : memref<4xf32>
// CHECK-NEXT: scf.yield %x : f32
// CHECK: return [[R]] : f32
func.func @branch(%c: i1, %x: f32, %out: tensor<4xf32>, %i: index) -> (tensor<4xf32>, f32) {
  %r:2 = scf.if %c -> (f32, tensor<4xf32>) {
    %t = tensor.insert %x into %out[%i] : tensor<4xf32>
    scf.yield %x, %t : f32, tensor<4xf32>
  } else {
    %y = arith.negf %x : f32
    scf.yield %y, %out : f32, tensor<4xf32>
  }
  return %r#1, %r#0 : tensor<4xf32>, f32
}

// -----

// A transfer claims the alignment of its size, as far as its buffer has it.
// CHECK-LABEL: func.func @vectors
// CHECK: vector.load %in[%i] {alignment = 8 : i64} : memref<8xbf16>, vector<4xbf16>
// CHECK-NEXT: vector.store {{%\w+}}, %out[%i] {alignment = 4 : i64} : memref<8xbf16>, vector<4xbf16>
func.func @vectors(%in: tensor<8xbf16> {llvm.align = 16 : index}, %out: tensor<8xbf16> {llvm.align = 4 : index}, %i: index) -> tensor<8xbf16> {
  %p = arith.constant 0.0 : bf16
  %v = vector.transfer_read %in[%i], %p {in_bounds = [true]} : tensor<8xbf16>, vector<4xbf16>
  %r = vector.transfer_write %v, %out[%i] {in_bounds = [true]} : vector<4xbf16>, tensor<8xbf16>
  return %r : tensor<8xbf16>
}

// -----

// Dense constants and shared tiles become buffers of the module.
// CHECK-DAG: memref.global "private" @[[TILE:\w+]] : memref<32xf32, 3> = uninitialized
// CHECK-DAG: memref.global "private" constant @[[TABLE:\w+]] : memref<3xf32> = dense<[1.000000e+00, 2.000000e+00, 4.000000e+00]>
// CHECK-LABEL: func.func @module_buffers
// CHECK: %k = memref.get_global @[[TABLE]] : memref<3xf32>
// CHECK-NEXT: %s = memref.get_global @[[TILE]] : memref<32xf32, 3>
// CHECK-NEXT: %x = memref.load %k[%i]
// CHECK-NEXT: memref.store %x, %s[%i]
// CHECK-NEXT: gpu.barrier
// CHECK-NEXT: memref.load %s[%i]
func.func @module_buffers(%i: index) -> f32 {
  %k = arith.constant dense<[1.0, 2.0, 4.0]> : tensor<3xf32>
  %s = xla_gpu.allocate_shared : tensor<32xf32>
  %x = tensor.extract %k[%i] : tensor<3xf32>
  %t = tensor.insert %x into %s[%i] : tensor<32xf32>
  %u = xla_gpu.sync_threads %t : tensor<32xf32>
  %y = tensor.extract %u[%i] : tensor<32xf32>
  return %y : f32
}

// -----

// A tensor of rank 0 is a buffer of one element.
// CHECK-LABEL: func.func @scalar(%in: memref<1xi8>, %out: memref<1xi8>) {
// CHECK: memref.load %in[%c0]
// CHECK: memref.store {{%\w+}}, %out[%c0
func.func @scalar(%in: tensor<i8>, %out: tensor<i8>) -> tensor<i8> {
  %x = tensor.extract %in[] : tensor<i8>
  %r = tensor.insert %x into %out[] : tensor<i8>
  return %r : tensor<i8>
}

// -----

// Accesses in regions of any op are lowered.
// CHECK-LABEL: func.func @while
// CHECK: scf.while
// CHECK-NEXT: memref.load %in[{{%\w+}}] : memref<8xi32>
func.func @while(%in: tensor<8xi32>, %i: index) -> index {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %r = scf.while (%a = %i) : (index) -> index {
    %x = tensor.extract %in[%a] : tensor<8xi32>
    %more = arith.cmpi ne, %x, %zero : i32
    scf.condition(%more) %a : index
  } do {
  ^bb0(%b: index):
    %next = arith.addi %b, %c1 : index
    scf.yield %next : index
  }
  return %r : index
}
