// A sample of each op of MLIR's own dialects whose text doesn't follow from its row; mlir-opt reads this file, too.

func.func private @callee(f32) -> f32
func.func private @effect()
memref.global "private" constant @table : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>
memref.global @other : memref<2xi8>
memref.global @buffer : memref<8xi8, 3> = uninitialized {alignment = 16 : i64}
llvm.func @__nv_tanhf(f32) -> f32
llvm.func @nothing()
llvm.mlir.global internal @shared() {addr_space = 3 : i32} : !llvm.array<64 x f32>
llvm.mlir.global private constant @numbers(dense<[1.0, 2.0]> : tensor<2xf32>) {addr_space = 0 : i32} : !llvm.array<2 x f32>
llvm.func internal @body(%p: !llvm.ptr {llvm.align = 16 : i64}, %n: i32) -> i32 attributes {passthrough = ["noinline"]} {
  %0 = llvm.mlir.constant(0 : i32) : i32
  llvm.br ^bb1(%0 : i32)
^bb1(%i: i32):
  %1 = llvm.icmp "slt" %i, %n : i32
  llvm.cond_br %1 weights([3, 1]), ^bb2, ^bb3
^bb2:
  %2 = llvm.add %i, %n overflow<nsw> : i32
  llvm.br ^bb1(%2 : i32)
^bb3:
  llvm.return %i : i32
}
llvm.func @stop() {
  llvm.unreachable
}
func.func @named(%a: tensor<4xf32> {llvm.align = 16 : index, xla.slice_index = 0 : index}, %b: index) -> (tensor<4xf32> {x.y}, index)
    attributes {no_compute, warpsmith.grid = array<i64: 1, 2, 3>, xla.entry} {
  return %a, %b : tensor<4xf32>, index
}

func.func @arith_constant() {
  %0 = arith.constant 5.000000e-01 : bf16
  %1 = arith.constant true
  %2 = arith.constant -7 : i8
  %3 = arith.constant 3 : index
  %4 = arith.constant dense<0.000000e+00> : vector<4xbf16>
  %5 = arith.constant dense<[1, 2, 3, -4]> : vector<4xi32>
  %6 = arith.constant 0x7F800000 : f32
  %7 = arith.constant -0.0 : f64
  %8 = arith.constant {a.b = "c"} 0x7FC1 : bf16
  %9 = arith.constant dense<[[1.0, 2.5], [-0.0, 0xFF800000]]> : tensor<2x2xf32>
  %10 = arith.constant 0.1 : f32
  %11 = arith.constant 0.12345678901234567 : f64
  %12 = arith.constant dense<[true, false]> : vector<2xi1>
  %13 = arith.constant 1.5 : f8E4M3FN
  %14 = arith.constant dense<(1.0, -2.0)> : tensor<2xcomplex<f32>>
  %15 = arith.constant dense<> : tensor<0xf32>
  return
}

func.func @arith_cmpi(%x: i32, %y: i32, %z: i32, %v: vector<4xi32>, %w: vector<4xi32>, %i: index, %j: index) {
  %0 = arith.cmpi slt, %x, %y : i32
  %1 = arith.cmpi uge, %v, %w : vector<4xi32>
  %2 = arith.cmpi ne, %i, %j : index
  return
}

func.func @arith_cmpf(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %u: vector<4xf32>) {
  %0 = arith.cmpf oge, %x, %y : f32
  %1 = arith.cmpf uno, %v, %w fastmath<nnan,ninf> {k} : vector<4xf32>
  return
}

func.func @arith_select(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %u: vector<4xf32>, %c: i1, %m: vector<4xi1>) {
  %0 = arith.select %c, %x, %y : f32
  %1 = arith.select %m, %v, %w : vector<4xi1>, vector<4xf32>
  %2 = arith.select %c, %v, %w : vector<4xf32>
  return
}

func.func @builtin_unrealized_conversion_cast(%a: i32, %b: f32) {
  %0 = builtin.unrealized_conversion_cast %a : i32 to f32
  %1:2 = builtin.unrealized_conversion_cast %a, %b : i32, f32 to f32, i32
  return
}

func.func @func_call(%x: f32) {
  %0 = func.call @callee(%x) : (f32) -> f32
  return
}

func.func @scf_for(%c: i1, %i: index, %n: index, %s: index, %x: f32, %t: tensor<4xf32>, %k: i32) {
  scf.for %a = %i to %n step %s {
  }
  %0:2 = scf.for %a = %i to %n step %s iter_args(%acc = %x, %b = %t) -> (f32, tensor<4xf32>) {
    %1 = arith.addf %acc, %acc : f32
    scf.yield %1, %b : f32, tensor<4xf32>
  } {some.attr = 1 : i64}
  scf.for %a = %k to %k step %k : i32 {
    func.call @effect() : () -> ()
  }
  return
}

func.func @scf_yield(%c: i1, %i: index, %n: index, %s: index, %x: f32, %t: tensor<4xf32>, %k: i32) {
  %0 = scf.if %c -> (f32) {
    scf.yield %x : f32
  } else {
    scf.yield %x : f32
  }
  return
}

func.func @scf_if(%c: i1, %i: index, %n: index, %s: index, %x: f32, %t: tensor<4xf32>, %k: i32) {
  scf.if %c {
    func.call @effect() : () -> ()
  }
  %0:2 = scf.if %c -> (f32, index) {
    scf.yield %x, %i : f32, index
  } else {
    scf.yield %x, %n : f32, index
  }
  scf.if %c {
  } else {
    func.call @effect() : () -> ()
  } {b = 2 : i32}
  return
}

func.func @scf_while(%c: i1, %i: index, %n: index, %s: index, %x: f32, %t: tensor<4xf32>, %k: i32) {
  %0:2 = scf.while (%a = %i, %b = %x) : (index, f32) -> (f32, index) {
    %1 = arith.cmpi slt, %a, %n : index
    scf.condition(%1) %b, %a : f32, index
  } do {
  ^bb0(%b: f32, %a: index):
    scf.yield %a, %b : index, f32
  }
  scf.while : () -> () {
    scf.condition(%c)
  } do {
    scf.yield
  }
  return
}

func.func @scf_condition(%c: i1, %i: index, %n: index, %s: index, %x: f32, %t: tensor<4xf32>, %k: i32) {
  scf.while : () -> () {
    scf.condition(%c)
  } do {
    scf.yield
  }
  return
}

func.func @scf_index_switch(%c: i1, %i: index, %n: index, %s: index, %x: f32, %t: tensor<4xf32>, %k: i32) {
  %0 = scf.index_switch %i -> f32
  case 2 {
    scf.yield %x : f32
  }
  case -5 {
    scf.yield %x : f32
  }
  default {
    scf.yield %x : f32
  }
  scf.index_switch %i
  default {
  }
  return
}

func.func @cf_br(%c: i1, %i: index, %n: index, %s: index, %x: f32, %t: tensor<4xf32>, %k: i32) {
  cf.br ^bb1(%x, %i : f32, index)
^bb1(%a: f32, %b: index):
  return
}

func.func @cf_cond_br(%c: i1, %i: index, %n: index, %s: index, %x: f32, %t: tensor<4xf32>, %k: i32) {
  cf.cond_br %c, ^bb1(%x : f32), ^bb2
^bb1(%a: f32):
  cf.br ^bb2
^bb2:
  cf.cond_br %c, ^bb2, ^bb3
^bb3:
  return
}

func.func @tensor_extract(%t: tensor<4x8xf32>, %t1: tensor<32xf32>, %m: memref<32xf32>, %g: memref<16xbf16, 1>, %i: index, %j: index, %x: f32, %v: vector<4xf32>, %w: vector<4xf32>, %mask: vector<4xi1>, %vi: vector<4xi32>, %c: i1, %two: vector<2xf32>) {
  %0 = tensor.extract %t[%i, %j] : tensor<4x8xf32>
  return
}

func.func @tensor_insert(%t: tensor<4x8xf32>, %t1: tensor<32xf32>, %m: memref<32xf32>, %g: memref<16xbf16, 1>, %i: index, %j: index, %x: f32, %v: vector<4xf32>, %w: vector<4xf32>, %mask: vector<4xi1>, %vi: vector<4xi32>, %c: i1, %two: vector<2xf32>) {
  %0 = tensor.insert %x into %t[%i, %j] : tensor<4x8xf32>
  return
}

func.func @tensor_from_elements(%t: tensor<4x8xf32>, %t1: tensor<32xf32>, %m: memref<32xf32>, %g: memref<16xbf16, 1>, %i: index, %j: index, %x: f32, %v: vector<4xf32>, %w: vector<4xf32>, %mask: vector<4xi1>, %vi: vector<4xi32>, %c: i1, %two: vector<2xf32>) {
  %0 = tensor.from_elements %x, %x : tensor<2xf32>
  return
}

func.func @memref_load(%t: tensor<4x8xf32>, %t1: tensor<32xf32>, %m: memref<32xf32>, %g: memref<16xbf16, 1>, %i: index, %j: index, %x: f32, %v: vector<4xf32>, %w: vector<4xf32>, %mask: vector<4xi1>, %vi: vector<4xi32>, %c: i1, %two: vector<2xf32>) {
  %0 = memref.load %m[%i] {nontemporal = true} : memref<32xf32>
  %1 = memref.load %g[%i] : memref<16xbf16, 1>
  return
}

func.func @memref_store(%t: tensor<4x8xf32>, %t1: tensor<32xf32>, %m: memref<32xf32>, %g: memref<16xbf16, 1>, %i: index, %j: index, %x: f32, %v: vector<4xf32>, %w: vector<4xf32>, %mask: vector<4xi1>, %vi: vector<4xi32>, %c: i1, %two: vector<2xf32>) {
  memref.store %x, %m[%i] {alignment = 16 : i64} : memref<32xf32>
  return
}

func.func @memref_alloca(%t: tensor<4x8xf32>, %t1: tensor<32xf32>, %m: memref<32xf32>, %g: memref<16xbf16, 1>, %i: index, %j: index, %x: f32, %v: vector<4xf32>, %w: vector<4xf32>, %mask: vector<4xi1>, %vi: vector<4xi32>, %c: i1, %two: vector<2xf32>) {
  %0 = memref.alloca() {alignment = 16 : i64} : memref<8xf32>
  return
}

func.func @memref_get_global() {
  %0 = memref.get_global @table : memref<4xf32>
  return
}

func.func @vector_transfer_read(%t: tensor<4x8xf32>, %t1: tensor<32xf32>, %m: memref<32xf32>, %g: memref<16xbf16, 1>, %i: index, %j: index, %x: f32, %v: vector<4xf32>, %w: vector<4xf32>, %mask: vector<4xi1>, %vi: vector<4xi32>, %c: i1, %two: vector<2xf32>) {
  %0 = vector.transfer_read %t1[%i], %x {in_bounds = [true]} : tensor<32xf32>, vector<4xf32>
  %1 = vector.transfer_read %m[%i], %x : memref<32xf32>, vector<4xf32>
  %2 = vector.transfer_read %t[%i, %j], %x, %mask {in_bounds = [true]} : tensor<4x8xf32>, vector<4xf32>
  %3 = vector.transfer_read %t[%i, %j], %x {in_bounds = [true], permutation_map = affine_map<(d0, d1) -> (d0)>} : tensor<4x8xf32>, vector<4xf32>
  return
}

func.func @vector_transfer_write(%t: tensor<4x8xf32>, %t1: tensor<32xf32>, %m: memref<32xf32>, %g: memref<16xbf16, 1>, %i: index, %j: index, %x: f32, %v: vector<4xf32>, %w: vector<4xf32>, %mask: vector<4xi1>, %vi: vector<4xi32>, %c: i1, %two: vector<2xf32>) {
  %0 = vector.transfer_write %v, %t1[%i] {in_bounds = [true]} : vector<4xf32>, tensor<32xf32>
  vector.transfer_write %v, %m[%i], %mask {in_bounds = [true]} : vector<4xf32>, memref<32xf32>
  return
}

func.func @vector_extract(%t: tensor<4x8xf32>, %t1: tensor<32xf32>, %m: memref<32xf32>, %g: memref<16xbf16, 1>, %i: index, %j: index, %x: f32, %v: vector<4xf32>, %w: vector<4xf32>, %mask: vector<4xi1>, %vi: vector<4xi32>, %c: i1, %two: vector<2xf32>) {
  %0 = vector.extract %v[%i] : f32 from vector<4xf32>
  %1 = vector.extract %v[2] : f32 from vector<4xf32>
  return
}

func.func @vector_insert(%t: tensor<4x8xf32>, %t1: tensor<32xf32>, %m: memref<32xf32>, %g: memref<16xbf16, 1>, %i: index, %j: index, %x: f32, %v: vector<4xf32>, %w: vector<4xf32>, %mask: vector<4xi1>, %vi: vector<4xi32>, %c: i1, %two: vector<2xf32>) {
  %0 = vector.insert %x, %v [%i] : f32 into vector<4xf32>
  %1 = vector.insert %x, %v [0] : f32 into vector<4xf32>
  return
}

func.func @vector_load(%t: tensor<4x8xf32>, %t1: tensor<32xf32>, %m: memref<32xf32>, %g: memref<16xbf16, 1>, %i: index, %j: index, %x: f32, %v: vector<4xf32>, %w: vector<4xf32>, %mask: vector<4xi1>, %vi: vector<4xi32>, %c: i1, %two: vector<2xf32>) {
  %0 = vector.load %m[%i] {nontemporal = true} : memref<32xf32>, vector<4xf32>
  return
}

func.func @vector_store(%t: tensor<4x8xf32>, %t1: tensor<32xf32>, %m: memref<32xf32>, %g: memref<16xbf16, 1>, %i: index, %j: index, %x: f32, %v: vector<4xf32>, %w: vector<4xf32>, %mask: vector<4xi1>, %vi: vector<4xi32>, %c: i1, %two: vector<2xf32>) {
  vector.store %v, %m[%i] {alignment = 32 : i64} : memref<32xf32>, vector<4xf32>
  return
}

func.func @vector_maskedload(%t: tensor<4x8xf32>, %t1: tensor<32xf32>, %m: memref<32xf32>, %g: memref<16xbf16, 1>, %i: index, %j: index, %x: f32, %v: vector<4xf32>, %w: vector<4xf32>, %mask: vector<4xi1>, %vi: vector<4xi32>, %c: i1, %two: vector<2xf32>) {
  %0 = vector.maskedload %m[%i], %mask, %v : memref<32xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  return
}

func.func @vector_maskedstore(%t: tensor<4x8xf32>, %t1: tensor<32xf32>, %m: memref<32xf32>, %g: memref<16xbf16, 1>, %i: index, %j: index, %x: f32, %v: vector<4xf32>, %w: vector<4xf32>, %mask: vector<4xi1>, %vi: vector<4xi32>, %c: i1, %two: vector<2xf32>) {
  vector.maskedstore %m[%i], %mask, %v : memref<32xf32>, vector<4xi1>, vector<4xf32>
  return
}

func.func @vector_gather(%t: tensor<4x8xf32>, %t1: tensor<32xf32>, %m: memref<32xf32>, %g: memref<16xbf16, 1>, %i: index, %j: index, %x: f32, %v: vector<4xf32>, %w: vector<4xf32>, %mask: vector<4xi1>, %vi: vector<4xi32>, %c: i1, %two: vector<2xf32>) {
  %0 = vector.gather %m[%i] [%vi], %mask, %v : memref<32xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  return
}

func.func @vector_broadcast(%t: tensor<4x8xf32>, %t1: tensor<32xf32>, %m: memref<32xf32>, %g: memref<16xbf16, 1>, %i: index, %j: index, %x: f32, %v: vector<4xf32>, %w: vector<4xf32>, %mask: vector<4xi1>, %vi: vector<4xi32>, %c: i1, %two: vector<2xf32>) {
  %0 = vector.broadcast %x : f32 to vector<4xf32>
  return
}

func.func @vector_step() {
  %0 = vector.step : vector<4xindex>
  return
}

func.func @vector_shuffle(%t: tensor<4x8xf32>, %t1: tensor<32xf32>, %m: memref<32xf32>, %g: memref<16xbf16, 1>, %i: index, %j: index, %x: f32, %v: vector<4xf32>, %w: vector<4xf32>, %mask: vector<4xi1>, %vi: vector<4xi32>, %c: i1, %two: vector<2xf32>) {
  %0 = vector.shuffle %v, %w [0, 4, 1, 5, 2, 6, 3, 7] : vector<4xf32>, vector<4xf32>
  return
}

func.func @vector_bitcast(%t: tensor<4x8xf32>, %t1: tensor<32xf32>, %m: memref<32xf32>, %g: memref<16xbf16, 1>, %i: index, %j: index, %x: f32, %v: vector<4xf32>, %w: vector<4xf32>, %mask: vector<4xi1>, %vi: vector<4xi32>, %c: i1, %two: vector<2xf32>) {
  %0 = vector.bitcast %v : vector<4xf32> to vector<8xbf16>
  return
}

func.func @vector_create_mask(%t: tensor<4x8xf32>, %t1: tensor<32xf32>, %m: memref<32xf32>, %g: memref<16xbf16, 1>, %i: index, %j: index, %x: f32, %v: vector<4xf32>, %w: vector<4xf32>, %mask: vector<4xi1>, %vi: vector<4xi32>, %c: i1, %two: vector<2xf32>) {
  %0 = vector.create_mask %i : vector<8xi1>
  return
}

func.func @vector_from_elements(%t: tensor<4x8xf32>, %t1: tensor<32xf32>, %m: memref<32xf32>, %g: memref<16xbf16, 1>, %i: index, %j: index, %x: f32, %v: vector<4xf32>, %w: vector<4xf32>, %mask: vector<4xi1>, %vi: vector<4xi32>, %c: i1, %two: vector<2xf32>) {
  %0 = vector.from_elements %x, %x : vector<2xf32>
  return
}

func.func @vector_extract_strided_slice(%t: tensor<4x8xf32>, %t1: tensor<32xf32>, %m: memref<32xf32>, %g: memref<16xbf16, 1>, %i: index, %j: index, %x: f32, %v: vector<4xf32>, %w: vector<4xf32>, %mask: vector<4xi1>, %vi: vector<4xi32>, %c: i1, %two: vector<2xf32>) {
  %0 = vector.extract_strided_slice %v {offsets = [2], sizes = [2], strides = [1]} : vector<4xf32> to vector<2xf32>
  return
}

func.func @vector_insert_strided_slice(%t: tensor<4x8xf32>, %t1: tensor<32xf32>, %m: memref<32xf32>, %g: memref<16xbf16, 1>, %i: index, %j: index, %x: f32, %v: vector<4xf32>, %w: vector<4xf32>, %mask: vector<4xi1>, %vi: vector<4xi32>, %c: i1, %two: vector<2xf32>) {
  %0 = vector.insert_strided_slice %two, %v {offsets = [1], strides = [1]} : vector<2xf32> into vector<4xf32>
  return
}

func.func @gpu_thread_id() {
  %0 = gpu.thread_id  x {xla.range = [0 : index, 127 : index]}
  %1 = gpu.thread_id  y upper_bound 64
  return
}

func.func @gpu_block_id() {
  %0 = gpu.block_id  z
  return
}

func.func @gpu_block_dim() {
  %0 = gpu.block_dim  x
  return
}

func.func @gpu_grid_dim() {
  %0 = gpu.grid_dim  x
  return
}

func.func @gpu_lane_id() {
  %0 = gpu.lane_id
  %1 = gpu.lane_id upper_bound 32 {k}
  return
}

func.func @gpu_barrier() {
  gpu.barrier
  return
}

func.func @gpu_shuffle(%x: i32, %y: i32, %z: i32, %v: vector<4xi32>, %w: vector<4xi32>, %i: index, %j: index) {
  %0, %1 = gpu.shuffle xor %x, %y, %z : i32
  %shuffleResult, %valid = gpu.shuffle down %x, %y, %z : i32
  return
}

func.func @llvm_call(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.call @__nv_tanhf(%x) : (f32) -> f32
  llvm.call @nothing() : () -> ()
  return
}

func.func @llvm_mlir_constant() {
  %0 = llvm.mlir.constant(1 : i32) : i32
  %1 = llvm.mlir.constant(dense<0.000000e+00> : vector<4xf32>) : vector<4xf32>
  return
}

func.func @llvm_mlir_poison() {
  %0 = llvm.mlir.poison : vector<4xf32>
  return
}

func.func @llvm_mlir_zero() {
  %0 = llvm.mlir.zero : !llvm.ptr
  return
}

func.func @llvm_mlir_addressof() {
  %0 = llvm.mlir.addressof @shared : !llvm.ptr<3>
  return
}

func.func @llvm_alloca(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.alloca %i x f32 {alignment = 8 : i64} : (i32) -> !llvm.ptr
  return
}

func.func @llvm_getelementptr(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.getelementptr inbounds %p[%i] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
  %1 = llvm.getelementptr %q[0, 3] : (!llvm.ptr<3>) -> !llvm.ptr<3>, !llvm.array<8 x f32>
  %2 = llvm.getelementptr inbounds|nuw %p[%l] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  return
}

func.func @llvm_load(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.load %p invariant : !llvm.ptr -> vector<4xbf16>
  %1 = llvm.load %q {alignment = 4 : i64, nontemporal} : !llvm.ptr<3> -> f32
  return
}

func.func @llvm_prefetch(%p: !llvm.ptr) {
  "llvm.intr.prefetch"(%p) <{rw = 0 : i32, hint = 2 : i32, cache = 1 : i32}> : (!llvm.ptr) -> ()
  return
}
func.func @llvm_store(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  llvm.store %x, %p {alignment = 4 : i64} : f32, !llvm.ptr
  return
}

func.func @llvm_extractelement(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.extractelement %v[%i : i32] : vector<4xf32>
  return
}

func.func @llvm_insertelement(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.insertelement %x, %v[%l : i64] : vector<4xf32>
  return
}

func.func @llvm_shufflevector(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.shufflevector %v, %w [0, 4, 1, -1] : vector<4xf32>
  return
}

func.func @llvm_extractvalue(%s: !llvm.struct<(f32, array<2 x i1>)>) {
  %0 = llvm.extractvalue %s[1, 0] : !llvm.struct<(f32, array<2 x i1>)>
  return
}

func.func @llvm_insertvalue(%x: f32, %s: !llvm.struct<(f32, i1)>) {
  %0 = llvm.insertvalue %x, %s[0] : !llvm.struct<(f32, i1)>
  return
}

func.func @llvm_icmp(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.icmp "slt" %i, %j : i32
  %1 = llvm.icmp "ne" %vi, %vi : vector<4xi32>
  return
}

func.func @llvm_fcmp(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.fcmp "oeq" %x, %y : f32
  %1 = llvm.fcmp "uno" %v, %w {fastmathFlags = #llvm.fastmath<nnan>} : vector<4xf32>
  return
}

func.func @llvm_select(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.select %c, %x, %y : i1, f32
  %1 = llvm.select %mask, %v, %w : vector<4xi1>, vector<4xf32>
  return
}

func.func @llvm_intr_ctpop(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.intr.ctpop(%i) : (i32) -> i32
  return
}

func.func @llvm_intr_ctlz(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = "llvm.intr.ctlz"(%i) {is_zero_poison = false} : (i32) -> i32
  return
}

func.func @llvm_intr_cttz(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = "llvm.intr.cttz"(%i) {is_zero_poison = false} : (i32) -> i32
  return
}

func.func @llvm_intr_masked_load(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.intr.masked.load %p, %mask, %v {alignment = 4 : i32} : (!llvm.ptr, vector<4xi1>, vector<4xf32>) -> vector<4xf32>
  return
}

func.func @llvm_intr_masked_store(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  llvm.intr.masked.store %v, %p, %mask {alignment = 4 : i32} : vector<4xf32>, vector<4xi1> into !llvm.ptr
  return
}

func.func @llvm_intr_masked_gather(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.intr.masked.gather %ptrs, %mask, %v {alignment = 4 : i32} : (vector<4x!llvm.ptr>, vector<4xi1>, vector<4xf32>) -> vector<4xf32>
  return
}

func.func @llvm_fence() {
  llvm.fence syncscope("workgroup") release
  return
}
func.func @nvvm_barrier0() {
  nvvm.barrier0
  return
}

func.func @nvvm_shfl_sync(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = nvvm.shfl.sync bfly %i, %x, %j, %i : f32 -> f32
  return
}

func.func @llvm_intr_maximum(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.intr.maximum(%x, %y) : (f32, f32) -> f32
  return
}

func.func @llvm_intr_minimum(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.intr.minimum(%x, %y) : (f32, f32) -> f32
  return
}

func.func @llvm_intr_maxnum(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.intr.maxnum(%x, %y) : (f32, f32) -> f32
  return
}

func.func @llvm_intr_minnum(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.intr.minnum(%x, %y) : (f32, f32) -> f32
  return
}

func.func @llvm_intr_smax(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.intr.smax(%i, %j) : (i32, i32) -> i32
  return
}

func.func @llvm_intr_smin(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.intr.smin(%i, %j) : (i32, i32) -> i32
  return
}

func.func @llvm_intr_umax(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.intr.umax(%i, %j) : (i32, i32) -> i32
  return
}

func.func @llvm_intr_umin(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.intr.umin(%i, %j) : (i32, i32) -> i32
  return
}

func.func @llvm_intr_copysign(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.intr.copysign(%x, %y) : (f32, f32) -> f32
  return
}

func.func @llvm_intr_fabs(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.intr.fabs(%x) : (f32) -> f32
  return
}

func.func @llvm_intr_ceil(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.intr.ceil(%x) : (f32) -> f32
  return
}

func.func @llvm_intr_floor(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.intr.floor(%x) : (f32) -> f32
  return
}

func.func @llvm_intr_trunc(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.intr.trunc(%x) : (f32) -> f32
  return
}

func.func @llvm_intr_roundeven(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.intr.roundeven(%x) : (f32) -> f32
  return
}

func.func @llvm_intr_round(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.intr.round(%x) : (f32) -> f32
  return
}

func.func @llvm_intr_sqrt(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.intr.sqrt(%x) : (f32) -> f32
  return
}

func.func @llvm_intr_fma(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.intr.fma(%x, %y, %z) : (f32, f32, f32) -> f32
  return
}

func.func @memref_atomic_rmw(%x: f32, %k: i32, %m: memref<8xf32>, %n: memref<4x8xi32>, %i: index) {
  %0 = memref.atomic_rmw addf %x, %m[%i] : (f32, memref<8xf32>) -> f32
  %1 = memref.atomic_rmw maxu %k, %n[%i, %i] : (i32, memref<4x8xi32>) -> i32
  return
}

func.func @llvm_atomicrmw(%p: !llvm.ptr, %x: f32, %k: i32) {
  %0 = llvm.atomicrmw fadd %p, %x monotonic : !llvm.ptr, f32
  %1 = llvm.atomicrmw _and %p, %k acq_rel : !llvm.ptr, i32
  return
}

func.func @llvm_cmpxchg(%p: !llvm.ptr, %k: i32, %n: i32) {
  %0 = llvm.cmpxchg %p, %k, %n monotonic monotonic : !llvm.ptr, i32
  %1 = llvm.extractvalue %0[1] : !llvm.struct<(i32, i1)>
  return
}
