// RUN: convert-to-llvm

// A copy in flight takes addresses of shared and of global memory; 16 bytes go past the first cache.
// CHECK: llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 128 : i64}
// CHECK: [[G:%\w+]] = llvm.getelementptr inbounds %g[%j] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
// CHECK-NEXT: [[SRC:%\w+]] = llvm.addrspacecast [[G]] : !llvm.ptr to !llvm.ptr<1>
// CHECK-NEXT: [[DST:%\w+]] = llvm.getelementptr inbounds %s[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, bf16
// CHECK-NEXT: llvm.call @llvm.nvvm.cp.async.cg.shared.global.16([[DST]], [[SRC]])
// CHECK: llvm.call @llvm.nvvm.cp.async.ca.shared.global.4(
// CHECK-NEXT: llvm.call @llvm.nvvm.cp.async.commit.group()
// CHECK: [[N:%\w+]] = llvm.mlir.constant(2 : i32)
// CHECK-NEXT: llvm.call @llvm.nvvm.cp.async.wait.group([[N]])
// CHECK-COUNT-4: llvm.func
memref.global "private" @tile : memref<64xbf16, 3> = uninitialized {alignment = 128 : i64}
func.func @main(%g: memref<64xbf16>, %i: index, %j: index) attributes {xla.entry, warpsmith.target = "sm_80", warpsmith.index_bits = 32 : i64} {
  %s = memref.get_global @tile : memref<64xbf16, 3>
  "nvgpu.device_async_copy"(%s, %i, %g, %j) {bytes = 16 : i64} : (memref<64xbf16, 3>, index, memref<64xbf16>, index) -> ()
  "nvgpu.device_async_copy"(%s, %i, %g, %j) {bytes = 4 : i64} : (memref<64xbf16, 3>, index, memref<64xbf16>, index) -> ()
  "nvvm.cp.async.commit.group"() : () -> ()
  "nvvm.cp.async.wait.group"() {n = 2 : i32} : () -> ()
  return
}

// -----

// Tiles are 32-bit registers: one alone, several in a struct.
// CHECK: [[P:%\w+]] = llvm.getelementptr inbounds %s[%i] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f16
// CHECK-NEXT: [[R:%\w+]] = llvm.call @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x1.b16.p3([[P]]) : (!llvm.ptr<3>) -> i32
// CHECK-NEXT: %a = llvm.bitcast [[R]] : i32 to vector<2xf16>
// CHECK: [[S:%\w+]] = llvm.call @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.trans.b16.p3({{%\w+}}) : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32)>
// CHECK: llvm.extractvalue [[S]][0] : !llvm.struct<(i32, i32)>
// CHECK: llvm.extractvalue [[S]][1] : !llvm.struct<(i32, i32)>
// CHECK: %b = llvm.bitcast {{%\w+}} : vector<2xi32> to vector<4xf16>
// CHECK: [[W:%\w+]] = llvm.bitcast %b : vector<4xf16> to vector<2xi32>
// CHECK: llvm.call @llvm.nvvm.stmatrix.sync.aligned.m8n8.x2.b16.p3({{%\w+, %\w+, %\w+}}) : (!llvm.ptr<3>, i32, i32) -> ()
memref.global "private" @tile : memref<64xf16, 3> = uninitialized
func.func @main(%i: index) attributes {xla.entry, warpsmith.target = "sm_90", warpsmith.index_bits = 32 : i64} {
  %s = memref.get_global @tile : memref<64xf16, 3>
  %a = "nvgpu.ldmatrix"(%s, %i) {num_tiles = 1 : i64, transpose = false} : (memref<64xf16, 3>, index) -> vector<2xf16>
  %b = "nvgpu.ldmatrix"(%s, %i) {num_tiles = 2 : i64, transpose = true} : (memref<64xf16, 3>, index) -> vector<4xf16>
  "nvgpu.stmatrix"(%b, %s, %i) {num_tiles = 2 : i64, transpose = false} : (vector<4xf16>, memref<64xf16, 3>, index) -> ()
  return
}

// -----

// Pairs of bf16 go as integers.
// CHECK: llvm.bitcast %a : vector<8xbf16> to vector<4xi32>
// CHECK-NOT: vector<2xf16>
// CHECK: [[R:%\w+]] = llvm.call @llvm.nvvm.mma.m16n8k16.row.col.bf16(
// CHECK-SAME: (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
// CHECK: llvm.extractvalue [[R]][0] : !llvm.struct<(f32, f32, f32, f32)>
// CHECK: %d = llvm.insertelement
func.func private @product(%a: vector<8xbf16>, %b: vector<4xbf16>, %c: vector<4xf32>) -> vector<4xf32> {
  %d = "nvgpu.mma.sync"(%a, %b, %c) {shape = array<i64: 16, 8, 16>} : (vector<8xbf16>, vector<4xbf16>, vector<4xf32>) -> vector<4xf32>
  return %d : vector<4xf32>
}
func.func @main() attributes {xla.entry, warpsmith.target = "sm_80", warpsmith.index_bits = 32 : i64} {
  return
}

// -----

// Pairs of f16 go as vectors.
// CHECK: llvm.bitcast {{%\w+}} : i32 to vector<2xf16>
// CHECK: llvm.call @llvm.nvvm.mma.m16n8k16.row.col.f32.f32(
func.func private @product(%a: vector<8xf16>, %b: vector<4xf16>, %c: vector<4xf32>) -> vector<4xf32> {
  %d = "nvgpu.mma.sync"(%a, %b, %c) {shape = array<i64: 16, 8, 16>} : (vector<8xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
  return %d : vector<4xf32>
}
func.func @main() attributes {xla.entry, warpsmith.target = "sm_80", warpsmith.index_bits = 32 : i64} {
  return
}

// -----

// Before sm_90 no instruction elects a lane: the lowest active one is it.
// CHECK: [[M:%\w+]] = llvm.call @llvm.nvvm.activemask() : () -> i32
// CHECK-NEXT: [[L:%\w+]] = nvvm.read.ptx.sreg.laneid : i32
// CHECK-NEXT: [[F:%\w+]] = "llvm.intr.cttz"([[M]]) {{.*}}is_zero_poison = true
// CHECK-NEXT: %e = llvm.icmp "eq" [[L]], [[F]] : i32
func.func @main() attributes {xla.entry, warpsmith.target = "sm_80", warpsmith.index_bits = 32 : i64} {
  %e = "nvvm.elect.sync"() : () -> i1
  return
}

// -----

// CHECK: %e = "nvvm.elect.sync"() : () -> i1
func.func @main() attributes {xla.entry, warpsmith.target = "sm_90", warpsmith.index_bits = 32 : i64} {
  %e = "nvvm.elect.sync"() : () -> i1
  return
}
