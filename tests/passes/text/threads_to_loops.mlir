// RUN: threads-to-loops,canonicalize,cse

// The barrier ends a loop; x, a float, waits in an array for the next one, the address is computed again.
// CHECK-LABEL: func.func @main
// CHECK-SAME: warpsmith.index_bits = 64 : i64, warpsmith.target = "cpu"
// CHECK-DAG: [[KEPT:%\w+]] = memref.alloca() {alignment = 64 : i64} : memref<64xf32>
// CHECK-DAG: [[GROUP:%\w+]] = xla_gpu.workgroup_id x {xla.range = [0 : index, 7 : index]}
// CHECK: scf.for %thread = %c0 to %c64 step %c1 {
// CHECK: [[X:%\w+]] = memref.load %in
// CHECK: memref.store [[X]], [[KEPT]][%thread] : memref<64xf32>
// CHECK: memref.store [[X]], %tile[%thread] : memref<64xf32, 3>
// CHECK: }
// CHECK-NOT: gpu.barrier
// CHECK: scf.for %thread = %c0 to %c64 step %c1 {
// CHECK: arith.subi %c63, %thread
// CHECK: memref.load [[KEPT]][%thread] : memref<64xf32>
// CHECK: memref.store
memref.global "private" @tile : memref<64xf32, 3> = uninitialized
func.func @main(%in: memref<512xf32>, %out: memref<512xf32>) attributes {warpsmith.block = array<i64: 64, 1, 1>, warpsmith.grid = array<i64: 8, 1, 1>, xla.entry} {
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %t = gpu.thread_id x {xla.range = [0 : index, 63 : index]}
  %b = gpu.block_id x {xla.range = [0 : index, 7 : index]}
  %first = arith.muli %b, %c64 : index
  %g = arith.addi %first, %t : index
  %tile = memref.get_global @tile : memref<64xf32, 3>
  %x = memref.load %in[%g] : memref<512xf32>
  memref.store %x, %tile[%t] : memref<64xf32, 3>
  gpu.barrier
  %back = arith.subi %c63, %t : index
  %y = memref.load %tile[%back] : memref<64xf32, 3>
  %z = arith.addf %x, %y : f32
  memref.store %z, %out[%g] : memref<512xf32>
  return
}

// -----

// A private array has a copy a thread, register by register; the loop over registers stands outside.  A scalar argument
// is a buffer of one element.
// CHECK-LABEL: func.func @scalars
// CHECK-SAME: %n: memref<1xindex>
// CHECK: [[N:%\w+]] = memref.load %n[%c0] : memref<1xindex>
// CHECK: [[R:%\w+]] = memref.alloca() {alignment = 64 : i64} : memref<128xf32>
// CHECK: scf.for %i = %c0 to [[N]] step %c1 {
// CHECK: scf.for %thread = %c0 to %c32 step %c1 {
// CHECK: [[REGISTER:%\w+]] = arith.muli %i, %c32
// CHECK: [[PLACE:%\w+]] = arith.addi [[REGISTER]], %thread
// CHECK: memref.store {{%\w+}}, [[R]][[[PLACE]]] : memref<128xf32>
func.func @scalars(%in: memref<32xf32>, %out: memref<32xf32>, %n: index) attributes {warpsmith.block = array<i64: 32, 1, 1>, warpsmith.grid = array<i64: 1, 1, 1>, xla.entry} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %t = gpu.thread_id x {xla.range = [0 : index, 31 : index]}
  %r = memref.alloca() {alignment = 16 : i64} : memref<4xf32, 5>
  scf.for %i = %c0 to %n step %c1 {
    %x = memref.load %in[%t] : memref<32xf32>
    memref.store %x, %r[%i] : memref<4xf32, 5>
  }
  %y = memref.load %r[%c3] : memref<4xf32, 5>
  memref.store %y, %out[%t] : memref<32xf32>
  return
}

// -----

// Lanes bring what they exchange to an array; ids and constants say who takes a branch, and so how long its loops are.
// CHECK-LABEL: func.func @lanes
// CHECK: scf.for %thread = %c0 to %c32 step %c1 {
// CHECK: memref.store {{%\w+}}, [[BROUGHT:%\w+]][%thread] : memref<64xf32>
// CHECK: scf.for %thread = %c0 to %c32 step %c1 {
// CHECK: [[LANE:%\w+]] = arith.xori {{%\w+}}, %c16 : index
// CHECK: memref.load [[BROUGHT]][{{%\w+}}] : memref<64xf32>
// CHECK-NOT: gpu.shuffle
func.func @lanes(%in: memref<64xf32>, %out: memref<64xf32>) attributes {warpsmith.block = array<i64: 64, 1, 1>, warpsmith.grid = array<i64: 1, 1, 1>, xla.entry} {
  %c32 = arith.constant 32 : index
  %i16 = arith.constant 16 : i32
  %i32 = arith.constant 32 : i32
  %t = gpu.thread_id x {xla.range = [0 : index, 63 : index]}
  %low = arith.cmpi ult, %t, %c32 : index
  scf.if %low {
    %x = memref.load %in[%t] : memref<64xf32>
    %s:2 = gpu.shuffle xor %x, %i16, %i32 : f32
    memref.store %s#0, %out[%t] : memref<64xf32>
  }
  return
}
