func.func @buffers(%p: memref<256xf32>) {
  %c0 = "arith.constant"() {value = 0 : index} : () -> index
  %A = "tile.match_buffer"(%p) {dtype = "float32", layout = #tile.layout<S[(32, 8):(8, 1)]>} : (memref<256xf32>) -> memref<32x8xf32>
  "tile.device_entry"() : () -> ()
  %lane = "tile.scope_id"() {extents = array<i64: 32>, kind = "lane_id"} : () -> index
  %s = "tile.alloc"() {alignment = 64 : i64, dtype = "float32", layout = #tile.layout<S[(32, 8):(8, 1)]>, scope = "shared"} : () -> memref<32x8xf32, 3>
  %v = "tile.view"(%s) {dtype = "float32", kind = "view", layout = #tile.layout<S[(8, 32):(1, 8)]>} : (memref<32x8xf32, 3>) -> memref<8x32xf32, 3>
  %x = "tile.load"(%v, %c0, %c0) : (memref<8x32xf32, 3>, index, index) -> f32
  "tile.store"(%x, %s, %c0, %c0) : (f32, memref<32x8xf32, 3>, index, index) -> ()
  "func.return"() : () -> ()
}

func.func @jumps() {
  "tile.break"() : () -> ()
  "tile.continue"() : () -> ()
  "func.return"() : () -> ()
}

func.func @barriers(%mask: i32, %id: i32, %count: i32) {
  "nvvm.bar.warp.sync"(%mask) : (i32) -> ()
  %e = "nvvm.elect.sync"() : () -> i1
  "func.return"() : () -> ()
}

func.func @part_of_a_block(%id: i32, %count: i32) {
  "nvvm.barrier"(%id, %count) : (i32, i32) -> ()
  "func.return"() : () -> ()
}

func.func @copies_in_flight(%s: memref<256xf16, 3>, %g: memref<256xf16>, %i: index) {
  "nvgpu.device_async_copy"(%s, %i, %g, %i) {bytes = 16 : i64} : (memref<256xf16, 3>, index, memref<256xf16>, index) -> ()
  "nvvm.cp.async.commit.group"() : () -> ()
  "nvvm.cp.async.wait.group"() {n = 1 : i32} : () -> ()
  "func.return"() : () -> ()
}

func.func @matrices(%s: memref<256xbf16, 3>, %i: index, %c: vector<4xf32>) -> vector<4xf32> {
  %a = "nvgpu.ldmatrix"(%s, %i) {num_tiles = 4 : i64, transpose = false} : (memref<256xbf16, 3>, index) -> vector<8xbf16>
  %b = "nvgpu.ldmatrix"(%s, %i) {num_tiles = 2 : i64, transpose = true} : (memref<256xbf16, 3>, index) -> vector<4xbf16>
  "nvgpu.stmatrix"(%b, %s, %i) {num_tiles = 2 : i64, transpose = false} : (vector<4xbf16>, memref<256xbf16, 3>, index) -> ()
  %d = "nvgpu.mma.sync"(%a, %b, %c) {shape = array<i64: 16, 8, 16>} : (vector<8xbf16>, vector<4xbf16>, vector<4xf32>) -> vector<4xf32>
  "func.return"(%d) : (vector<4xf32>) -> ()
}

func.func @primitives(%s: memref<32x8xf32, 3>, %i: index) {
  %r = "tile.region"(%s, %i, %i) {extents = array<i64: 32, 8>} : (memref<32x8xf32, 3>, index, index) -> memref<32x8xf32, 3>
  "tile.copy"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.copy_async"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.permute_layout"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.gemm"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.gemm_async"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.fill"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.memset"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.zero"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.cast"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.sqrt"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.exp"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.exp2"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.log"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.log2"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.reciprocal"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.silu"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.abs"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.neg"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.relu"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.rsqrt"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.tanh"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.sigmoid"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.sin"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.cos"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.erf"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.floor"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.ceil"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.square"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.add"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.sub"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.mul"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.fdiv"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.maximum"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.minimum"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.fma"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.select"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.sum"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.max"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.min"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.binary_reduce"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.unary_reduce"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.binary_chain"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.reduce_negate"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "tile.compose_op"(%r, %r) {dtypes = ["float32", "float32"], roles = ["dst", "src"], scope = "warp"} : (memref<32x8xf32, 3>, memref<32x8xf32, 3>) -> ()
  "func.return"() : () -> ()
}
