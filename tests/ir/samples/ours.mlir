// A sample of each op that MLIR lacks.

#map = #xla_gpu.indexing_map<"(d0, d1)[s0, s1] -> (d0 + s0, d1 * 2 + s1), domain: d0 in [0, 1], d1 in [0, 3], s0 in [0, 2], s1 in [0, 1]">
#map1 = #xla_gpu.indexing_map<"(d0, d1)[s0] -> (d0 floordiv 2, d1 + s0), domain: d0 in [0, 7], d1 in [0, 3], s0 in [0, 2]">
#map2 = #xla_gpu.indexing_map<"()[s0] -> (s0 mod 5), domain: s0 in [0, 9]">
#map3 = #xla_gpu.indexing_map<"() -> (7)">
func.func private @callee(f32) -> f32
func.func private @combine(f32, i32, f32, i32) -> (f32, i32)

func.func @xla_gpu_workgroup_id() {
  %0 = xla_gpu.workgroup_id  x {xla.range = [0 : index, 7 : index]}
  return
}

func.func @xla_gpu_loop(%i: index, %j: index, %c: i1, %x: f32, %k: i32, %t: tensor<4x8xf32>, %s: tensor<32xf32>) {
  %0 = xla_gpu.loop (%i, %j)[%a, %b] -> (%r, %q) in #map iter_args(%iter = %t) -> (tensor<4x8xf32>) {
    %1 = tensor.insert %x into %iter[%r, %q] : tensor<4x8xf32>
    xla_gpu.yield %1 : tensor<4x8xf32>
  } {k = 1 : i64}
  return
}

func.func @xla_gpu_yield(%i: index, %j: index, %c: i1, %x: f32, %k: i32, %t: tensor<4x8xf32>, %s: tensor<32xf32>) {
  %0:2 = xla_gpu.loop (%i, %j)[%a, %b] -> (%r, %q) in #map iter_args(%p = %t, %o = %x) -> (tensor<4x8xf32>, f32) {
    xla_gpu.yield %p, %o : tensor<4x8xf32>, f32
  }
  return
}

func.func @xla_gpu_pure_call(%i: index, %j: index, %c: i1, %x: f32, %k: i32, %t: tensor<4x8xf32>, %s: tensor<32xf32>) {
  %0 = xla_gpu.pure_call @callee(%x) {noinline} : (f32) -> f32
  return
}

func.func @xla_gpu_apply_indexing(%i: index, %j: index, %c: i1, %x: f32, %k: i32, %t: tensor<4x8xf32>, %s: tensor<32xf32>) {
  %0:2 = xla_gpu.apply_indexing #map1(%i, %j)[%i]
  %1 = xla_gpu.apply_indexing #map2[%j]
  %2 = xla_gpu.apply_indexing #map3()
  return
}

func.func @xla_gpu_atomic_rmw(%i: index, %j: index, %c: i1, %x: f32, %k: i32, %t: tensor<4x8xf32>, %s: tensor<32xf32>) {
  %0 = xla_gpu.atomic_rmw %t[%i, %j] : tensor<4x8xf32> {
  ^bb0(%current: f32):
    %1 = arith.addf %current, %x : f32
    xla_gpu.yield %1 : f32
  }
  return
}

func.func @xla_gpu_allocate_shared() {
  %shmem = xla_gpu.allocate_shared : tensor<32x1x33xf32>
  return
}

func.func @xla_gpu_sync_threads(%i: index, %j: index, %c: i1, %x: f32, %k: i32, %t: tensor<4x8xf32>, %s: tensor<32xf32>) {
  %0 = xla_gpu.sync_threads %t : tensor<4x8xf32>
  %1:2 = xla_gpu.sync_threads %0, %s : tensor<4x8xf32>, tensor<32xf32>
  return
}

func.func @xla_gpu_predicated_insert(%i: index, %j: index, %c: i1, %x: f32, %k: i32, %t: tensor<4x8xf32>, %s: tensor<32xf32>) {
  %0 = xla_gpu.predicated_insert %x into %t[%i, %j] if %c : tensor<4x8xf32>
  return
}

func.func @xla_gpu_predicated_extract(%i: index, %j: index, %c: i1, %x: f32, %k: i32, %t: tensor<4x8xf32>, %s: tensor<32xf32>) {
  %0 = xla_gpu.predicated_extract %t[%i, %j] if %c else %x : tensor<4x8xf32>
  return
}

func.func @xla_cpu_prefetch(%m: memref<256xf32>, %i: index) {
  xla_cpu.prefetch %m[%i] {elem_type = f32} : memref<256xf32>
  return
}
func.func @xla_cpu_compress(%v: vector<16xi32>, %m: vector<16xi1>) {
  %0 = xla_cpu.compress %v, %m : vector<16xi32>
  return
}
func.func @xla_cpu_lookup(%m: memref<256xf32>, %b: i8, %v: vector<16xi8>) {
  %0 = xla_cpu.lookup %m[%b] : memref<256xf32>, i8 -> f32
  %1 = xla_cpu.lookup %m[%v] : memref<256xf32>, vector<16xi8> -> vector<16xf32>
  return
}

func.func @xla_gpu_shuffle_reduce(%i: index, %j: index, %c: i1, %x: f32, %k: i32, %t: tensor<4x8xf32>, %s: tensor<32xf32>) {
  %0:2 = xla_gpu.shuffle_reduce(%x, %k) to 16 combiner=@combine {k} : f32, i32
  return
}

func.func @llvm_intr_fptosi_sat(%x: f32, %y: f32, %z: f32, %v: vector<4xf32>, %w: vector<4xf32>, %i: i32, %j: i32, %l: i64, %c: i1, %p: !llvm.ptr, %q: !llvm.ptr<3>, %vi: vector<4xi32>, %vl: vector<4xi64>, %mask: vector<4xi1>, %ptrs: vector<4x!llvm.ptr>) {
  %0 = llvm.intr.fptosi.sat(%x) : (f32) -> i32
  return
}

func.func @xla_gpu_compare_exchange(%m: memref<8xf32>, %i: index, %x: f32, %y: f32) {
  %0:2 = xla_gpu.compare_exchange %m[%i], %x, %y : memref<8xf32>
  return
}
