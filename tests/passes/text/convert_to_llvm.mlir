// RUN: convert-to-llvm

// A GPU kernel: a pointer an argument, ids from special registers, indices of the kernel's width.
// CHECK-LABEL: llvm.func external @main(%in: !llvm.ptr {llvm.align = 16 : index, llvm.noalias}, %out: !llvm.ptr)
// CHECK-SAME: nvvm.kernel
// CHECK-NEXT: %t = nvvm.read.ptx.sreg.tid.x {xla.range = [0 : index, 7 : index]} : i32
// CHECK-NEXT: [[P:%\w+]] = llvm.getelementptr inbounds %in[%t] : (!llvm.ptr, i32) -> !llvm.ptr, f32
// CHECK-NEXT: %x = llvm.load [[P]] invariant {alignment = 4 : i64} : !llvm.ptr -> f32
// CHECK-NEXT: %y = llvm.fadd %x, %x : f32
// CHECK: llvm.store %y, {{%\w+}} {alignment = 4 : i64} : f32, !llvm.ptr
// CHECK-NEXT: llvm.return
func.func @main(%in: memref<8xf32> {llvm.align = 16 : index, llvm.noalias}, %out: memref<8xf32>) attributes {xla.entry, warpsmith.target = "sm_90", warpsmith.index_bits = 32 : i64, warpsmith.grid = array<i64: 1, 1, 1>, warpsmith.block = array<i64: 8, 1, 1>} {
  %t = gpu.thread_id x {xla.range = [0 : index, 7 : index]}
  %x = memref.load %in[%t] {invariant} : memref<8xf32>
  %y = arith.addf %x, %x : f32
  memref.store %y, %out[%t] : memref<8xf32>
  return
}

// -----

// A CPU kernel: an array of pointers, and the work groups to run.
// CHECK-LABEL: llvm.func external @main(%argv: !llvm.ptr, %begin: i64, %end: i64)
// CHECK-NEXT: [[P:%\w+]] = llvm.getelementptr inbounds %argv[0] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
// CHECK-NEXT: %in = llvm.load [[P]] {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
// CHECK-NEXT: [[P:%\w+]] = llvm.getelementptr inbounds %argv[1]
// CHECK-NEXT: %out = llvm.load [[P]]
// CHECK-NEXT: llvm.getelementptr inbounds %in[%begin] : (!llvm.ptr, i64) -> !llvm.ptr, f32
func.func @main(%in: memref<8xf32>, %out: memref<8xf32>, %begin: index, %end: index) attributes {xla.entry, warpsmith.target = "cpu", warpsmith.workgroups = 1 : i64, warpsmith.index_bits = 64 : i64} {
  %x = memref.load %in[%begin] : memref<8xf32>
  memref.store %x, %out[%end] : memref<8xf32>
  return
}

// -----

// An i1 takes a byte of memory; shared memory has an address space.
// CHECK: llvm.mlir.global internal constant @k(dense<[1, 2, 3]> : vector<3xi32>) {{.*}} : !llvm.array<3 x i32>
// CHECK: llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<32 x f32>
// CHECK: %g = llvm.mlir.addressof @k : !llvm.ptr
// CHECK: nvvm.barrier0
// CHECK-NEXT: [[B:%\w+]] = llvm.zext %b : i1 to i8
// CHECK-NEXT: [[P:%\w+]] = llvm.getelementptr inbounds %out[%i] : (!llvm.ptr, i32) -> !llvm.ptr, i8
// CHECK-NEXT: llvm.store [[B]], [[P]] {alignment = 1 : i64} : i8, !llvm.ptr
memref.global "private" constant @k : memref<3xi32> = dense<[1, 2, 3]>
memref.global "private" @tile : memref<32xf32, 3> = uninitialized
func.func @main(%out: memref<8xi1>, %i: index, %b: i1) attributes {xla.entry, warpsmith.target = "sm_90", warpsmith.index_bits = 32 : i64} {
  %g = memref.get_global @k : memref<3xi32>
  %x = memref.load %g[%i] : memref<3xi32>
  gpu.barrier
  memref.store %b, %out[%i] : memref<8xi1>
  return
}

// -----

// The address of a masked access may lie outside its buffer, so it isn't claimed to be in bounds.
// CHECK: [[P:%\w+]] = llvm.getelementptr %a[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT: llvm.intr.masked.load [[P]], %m, %v {alignment = 4 : i32}
// CHECK: llvm.intr.masked.store {{%\w+}}, {{%\w+}}, %m {alignment = 4 : i32}
// CHECK: llvm.insertelement %i,
// CHECK-NEXT: llvm.shufflevector {{%\w+}}, {{%\w+}} [0, 0, 0, 0] : vector<4xi64>
func.func @main(%a: memref<64xf32>, %i: index, %m: vector<4xi1>, %v: vector<4xf32>) attributes {xla.entry, warpsmith.target = "sm_90", warpsmith.index_bits = 64 : i64} {
  %x = vector.maskedload %a[%i], %m, %v : memref<64xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  vector.maskedstore %a[%i], %m, %x : memref<64xf32>, vector<4xi1>, vector<4xf32>
  %y = vector.broadcast %i : index to vector<4xindex>
  return
}

// -----

// Indices of a lookup that come from memory are read as words where they were loaded, not behind a store to it.
// CHECK: llvm.load {{%\w+}} {alignment = 1 : i64} : !llvm.ptr -> i64
// CHECK: llvm.store
// CHECK-NOT: -> i64
// CHECK: llvm.insertelement
func.func @main(%a: memref<64xi8>, %table: memref<256xf32>, %out: memref<64xf32>, %zero: vector<8xi8>, %i: index) attributes {xla.entry, warpsmith.target = "sm_90", warpsmith.index_bits = 64 : i64} {
  %x = vector.load %a[%i] : memref<64xi8>, vector<8xi8>
  vector.store %zero, %a[%i] : memref<64xi8>, vector<8xi8>
  %y = xla_cpu.lookup %table[%x] : memref<256xf32>, vector<8xi8> -> vector<8xf32>
  vector.store %y, %out[%i] : memref<64xf32>, vector<8xf32>
  return
}

// -----

// CHECK: [[ANY:%\w+]] = llvm.mlir.poison : vector<16xi32>
// CHECK-NEXT: llvm.call @llvm.experimental.vector.compress.v16i32(%v, %m, [[ANY]])
func.func @main(%v: vector<16xi32>, %m: vector<16xi1>, %out: memref<64xi32>, %i: index) attributes {xla.entry, warpsmith.target = "sm_90", warpsmith.index_bits = 64 : i64} {
  %x = xla_cpu.compress %v, %m : vector<16xi32>
  vector.store %x, %out[%i] : memref<64xi32>, vector<16xi32>
  return
}
