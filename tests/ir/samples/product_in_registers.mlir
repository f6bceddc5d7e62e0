// A 32 x 16 by 16 x 8 product of row-major matrices by one warp: fragments and sums lie in private arrays.
memref.global "private" @A_smem : memref<512xf16, 3> = uninitialized {alignment = 128 : i64}
memref.global "private" @B_smem : memref<128xf16, 3> = uninitialized {alignment = 128 : i64}
func.func @k(
    %A: memref<512xf16> {llvm.align = 16 : i64, llvm.noalias},
    %B: memref<128xf16> {llvm.align = 16 : i64, llvm.noalias},
    %C: memref<256xf32> {llvm.align = 16 : i64, llvm.noalias}) attributes {
    xla.entry, warpsmith.block = array<i64: 32, 1, 1>, warpsmith.grid = array<i64: 1, 1, 1>, warpsmith.index_bits = 32 : i64, warpsmith.target = "sm_90"} {
  %A_frag = "memref.alloca"() {alignment = 16 : i64, operandSegmentSizes = array<i32: 0, 0>} : () -> memref<16xf16, 5>
  %B_frag = "memref.alloca"() {alignment = 16 : i64, operandSegmentSizes = array<i32: 0, 0>} : () -> memref<4xf16, 5>
  %acc = "memref.alloca"() {alignment = 16 : i64, operandSegmentSizes = array<i32: 0, 0>} : () -> memref<8xf32, 5>
  %all = arith.constant -1 : i32
  %c64 = arith.constant 64 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant dense<0.0> : vector<4xf32>
  %lane = gpu.thread_id x {xla.range = [0 : index, 31 : index]}
  %A_smem = memref.get_global @A_smem : memref<512xf16, 3>
  %B_smem = memref.get_global @B_smem : memref<128xf16, 3>
  %l8 = arith.muli %lane, %c8 : index
  %l4 = arith.muli %lane, %c4 : index
  %r = arith.remui %lane, %c16 : index
  %t = arith.divui %lane, %c16 : index
  %r16 = arith.muli %r, %c16 : index
  %t8 = arith.muli %t, %c8 : index
  %A_row = arith.addi %r16, %t8 : index
  %B_row = arith.muli %r, %c8 : index
  scf.for %i = %c0 to %c2 step %c1 {
    %i256 = arith.muli %i, %c256 : index
    %at = arith.addi %l8, %i256 : index
    "nvgpu.device_async_copy"(%A_smem, %at, %A, %at) {bytes = 16 : i64} : (memref<512xf16, 3>, index, memref<512xf16>, index) -> ()
  }
  "nvgpu.device_async_copy"(%B_smem, %l4, %B, %l4) {bytes = 8 : i64} : (memref<128xf16, 3>, index, memref<128xf16>, index) -> ()
  "nvvm.cp.async.commit.group"() : () -> ()
  "nvvm.cp.async.wait.group"() {n = 0 : i32} : () -> ()
  "nvvm.bar.warp.sync"(%all) : (i32) -> ()
  scf.for %i = %c0 to %c2 step %c1 {
    %i4 = arith.muli %i, %c4 : index
    vector.store %zero, %acc[%i4] {alignment = 16 : i64} : memref<8xf32, 5>, vector<4xf32>
    %i256 = arith.muli %i, %c256 : index
    %from = arith.addi %A_row, %i256 : index
    %a = "nvgpu.ldmatrix"(%A_smem, %from) {num_tiles = 4 : i64, transpose = false} : (memref<512xf16, 3>, index) -> vector<8xf16>
    %i8 = arith.muli %i, %c8 : index
    vector.store %a, %A_frag[%i8] {alignment = 16 : i64} : memref<16xf16, 5>, vector<8xf16>
  } {tile.unroll}
  %b = "nvgpu.ldmatrix"(%B_smem, %B_row) {num_tiles = 2 : i64, transpose = true} : (memref<128xf16, 3>, index) -> vector<4xf16>
  vector.store %b, %B_frag[%c0] {alignment = 8 : i64} : memref<4xf16, 5>, vector<4xf16>
  scf.for %i = %c0 to %c2 step %c1 {
    %i8 = arith.muli %i, %c8 : index
    %i4 = arith.muli %i, %c4 : index
    %fa = vector.load %A_frag[%i8] {alignment = 16 : i64} : memref<16xf16, 5>, vector<8xf16>
    %fb = vector.load %B_frag[%c0] {alignment = 8 : i64} : memref<4xf16, 5>, vector<4xf16>
    %fc = vector.load %acc[%i4] {alignment = 16 : i64} : memref<8xf32, 5>, vector<4xf32>
    %fd = "nvgpu.mma.sync"(%fa, %fb, %fc) {shape = array<i64: 16, 8, 16>} : (vector<8xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
    vector.store %fd, %acc[%i4] {alignment = 16 : i64} : memref<8xf32, 5>, vector<4xf32>
  } {tile.unroll}
  %g = arith.divui %lane, %c4 : index
  %q = arith.remui %lane, %c4 : index
  %g8 = arith.muli %g, %c8 : index
  %p = arith.muli %q, %c2 : index
  %to = arith.addi %g8, %p : index
  scf.for %i = %c0 to %c4 step %c1 {
    %i2 = arith.muli %i, %c2 : index
    %x = vector.load %acc[%i2] {alignment = 8 : i64} : memref<8xf32, 5>, vector<2xf32>
    %i64 = arith.muli %i, %c64 : index
    %at = arith.addi %to, %i64 : index
    vector.store %x, %C[%at] {alignment = 8 : i64} : memref<256xf32>, vector<2xf32>
  } {tile.unroll}
  return
}
