// A 16 x 64 by 64 x 8 product of row-major matrices by one warp: operands stream through shared memory by copies in
// flight, the sum is carried through the loop.  C is the sum in f32, D is it rounded.
memref.global "private" @A_smem : memref<256xf16, 3> = uninitialized {alignment = 128 : i64}
memref.global "private" @B_smem : memref<128xf16, 3> = uninitialized {alignment = 128 : i64}
func.func @k(
    %A: memref<1024xf16> {llvm.align = 16 : i64, llvm.noalias},
    %B: memref<512xf16> {llvm.align = 16 : i64, llvm.noalias},
    %C: memref<128xf32> {llvm.align = 16 : i64, llvm.noalias},
    %D: memref<128xf16> {llvm.align = 16 : i64, llvm.noalias}) attributes {
    xla.entry, warpsmith.block = array<i64: 32, 1, 1>, warpsmith.grid = array<i64: 1, 1, 1>, warpsmith.index_bits = 32 : i64, warpsmith.target = "sm_90"} {
  %all = arith.constant -1 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant dense<0.0> : vector<4xf32>
  %lane = gpu.thread_id x {xla.range = [0 : index, 31 : index]}
  %A_smem = memref.get_global @A_smem : memref<256xf16, 3>
  %B_smem = memref.get_global @B_smem : memref<128xf16, 3>
  %half = arith.divui %lane, %c2 : index
  %side = arith.remui %lane, %c2 : index
  %col = arith.muli %side, %c8 : index
  %half_row = arith.muli %half, %c64 : index
  %A_from = arith.addi %half_row, %col : index
  %A_to = arith.muli %lane, %c8 : index
  %B_to = arith.muli %lane, %c4 : index
  %r = arith.remui %lane, %c16 : index
  %t = arith.divui %lane, %c16 : index
  %r16 = arith.muli %r, %c16 : index
  %t8 = arith.muli %t, %c8 : index
  %A_row = arith.addi %r16, %t8 : index
  %B_row = arith.muli %r, %c8 : index
  %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%c = %zero) -> (vector<4xf32>) {
    %i16 = arith.muli %i, %c16 : index
    %A_at = arith.addi %A_from, %i16 : index
    %i128 = arith.muli %i, %c128 : index
    %B_at = arith.addi %B_to, %i128 : index
    "nvgpu.device_async_copy"(%A_smem, %A_to, %A, %A_at) {bytes = 16 : i64, tile.comment = "A_smem <- A, B_smem <- B"} : (memref<256xf16, 3>, index, memref<1024xf16>, index) -> ()
    "nvgpu.device_async_copy"(%B_smem, %B_to, %B, %B_at) {bytes = 8 : i64} : (memref<128xf16, 3>, index, memref<512xf16>, index) -> ()
    "nvvm.cp.async.commit.group"() : () -> ()
    "nvvm.cp.async.wait.group"() {n = 0 : i32} : () -> ()
    gpu.barrier
    %a = "nvgpu.ldmatrix"(%A_smem, %A_row) {num_tiles = 4 : i64, transpose = false} : (memref<256xf16, 3>, index) -> vector<8xf16>
    %b = "nvgpu.ldmatrix"(%B_smem, %B_row) {num_tiles = 2 : i64, transpose = true} : (memref<128xf16, 3>, index) -> vector<4xf16>
    %d = "nvgpu.mma.sync"(%a, %b, %c) {shape = array<i64: 16, 8, 16>} : (vector<8xf16>, vector<4xf16>, vector<4xf32>) -> vector<4xf32>
    gpu.barrier
    scf.yield %d : vector<4xf32>
  }
  // stmatrix, which sm_80 lacks: from here
  %narrow = arith.truncf %sum : vector<4xf32> to vector<4xf16>
  "nvgpu.stmatrix"(%narrow, %B_smem, %B_row) {num_tiles = 2 : i64, transpose = false} : (vector<4xf16>, memref<128xf16, 3>, index) -> ()
  "nvvm.bar.warp.sync"(%all) : (i32) -> ()
  %out = vector.load %B_smem[%B_to] {alignment = 8 : i64} : memref<128xf16, 3>, vector<4xf16>
  vector.store %out, %D[%B_to] {alignment = 8 : i64} : memref<128xf16>, vector<4xf16>
  // to here
  %g = arith.divui %lane, %c4 : index
  %q = arith.remui %lane, %c4 : index
  %g8 = arith.muli %g, %c8 : index
  %p = arith.muli %q, %c2 : index
  %to = arith.addi %g8, %p : index
  %low = vector.shuffle %sum, %sum [0, 1] : vector<4xf32>, vector<4xf32>
  vector.store %low, %C[%to] {alignment = 8 : i64} : memref<128xf32>, vector<2xf32>
  %below = arith.addi %to, %c64 : index
  %high = vector.shuffle %sum, %sum [2, 3] : vector<4xf32>, vector<4xf32>
  vector.store %high, %C[%below] {alignment = 8 : i64} : memref<128xf32>, vector<2xf32>
  return
}
